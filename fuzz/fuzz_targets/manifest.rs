//! Any text as a manifest file: nothing panics, and what is found has a place in the text.
#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use nadmit::json::LineIndex;
use nadmit::manifests::{Assumptions, ManifestDocument, Index, documents};
use nadmit::output::locate;
use nadmit::policy::{Policy, Prefix, Subject, judge};
use nadmit::resources::Object;

/// The YAML parser's own panics are caught where it is called; the fuzzer must not take them for a crash.
fn ignore_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|location| location.file().contains("libyaml-safer")) {
                abort(info);
            }
        }));
    });
}

fuzz_target!(|text: &str| {
    ignore_caught_panics();
    let assume = Assumptions {
        prefix: Prefix { value: "openshift.io".to_owned(), assumed: true },
        operator_namespace: None,
        today: "2026-11-01".parse().expect("a date"),
    };
    let lines = LineIndex::of(text);
    let mut index = Index::default();
    documents(&lines, &mut |document| {
        if let ManifestDocument::Manifest(manifest) = document {
            index.add(&manifest);
        }
    });
    let index = index.finish();
    documents(&lines, &mut |document| {
        let ManifestDocument::Manifest(manifest) = document else { return };
        let json = manifest.node.to_json();
        let Ok(Some(object)) = Object::read(&json) else { return };
        let policy = Policy::default();
        let facts = index.facts(&object, &assume, &policy);
        let verdict = judge(&Subject::manifest(&object), &facts, &policy);
        for finding in &verdict.findings {
            let placed = locate(finding, &manifest.node, &lines);
            assert!(text.get(placed.span.clone()).is_some(), "{:?} is no place in the text", placed.span);
        }
    });
});
