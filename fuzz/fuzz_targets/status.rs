//! Any two texts as the objects of a status write: nothing panics, and what changes nothing is never refused for what it shows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::policy::{Class, Facts, Policy, StatusWrite, judge_status};

fuzz_target!(|texts: (&str, &str, &str)| {
    let (managed, old, new) = texts;
    let policy = Policy::parse("status: {resources: {a.io/b: {strict: true}}}").expect("a policy");
    let write = |object: &str, old: &str| {
        let write = StatusWrite {
            group: "a.io",
            resource: "b",
            kind: "B",
            namespace: "n",
            name: "b",
            user: "u",
            manager: "",
            object,
            old,
        };
        judge_status(&write, &Facts::default(), &policy)
    };
    // The texts as they are, and as the parts that are looked into.
    let _ = write(new, old);
    let object = |status: &str| format!(r#"{{"metadata":{{"resourceVersion":"1","generation":3,"managedFields":{managed}}},"status":{status}}}"#);
    let (old, new) = (object(old), object(new));
    let _ = write(&new, &old);
    if let Some(verdict) = write(&old, &old) {
        // The first text may bring members of its own, another resourceVersion for one.
        assert!(matches!(verdict.class, Class::Unchanged | Class::Unversioned), "{verdict:?}");
    }
});
