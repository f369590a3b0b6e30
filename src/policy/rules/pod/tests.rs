use crate::policy::{
    Facts, Lookup, MissingFact, NadSummary, NameVisibility, Policy, Reference, SelectedNad, Subject, judge,
};
use crate::resources::{Object, ObjectKey};

fn pod(networks: &str) -> String {
    let annotations = serde_json::json!({ "k8s.v1.cni.cncf.io/networks": networks });
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"apps","annotations":{annotations}}},"spec":{{}}}}"#
    )
}

fn judged(networks: &str, facts: &Facts) -> (Vec<String>, Option<MissingFact>) {
    let (text, policy) = (pod(networks), Policy::parse("pods: warn").unwrap());
    let object = Object::read(&text).unwrap().unwrap();
    let subject = Subject { is_final: true, ..Subject::manifest(&object) };
    let verdict = judge(&subject, facts, &policy);
    assert!(!verdict.denies() || !facts.is_cluster);
    (verdict.findings.iter().map(|finding| finding.message.clone()).collect(), verdict.missing_fact)
}

fn absent(keys: &[(&str, &str)]) -> Facts {
    let nad = |(namespace, name): &(&str, &str)| {
        (ObjectKey::new(namespace, name), SelectedNad { nad: Lookup::Absent, similar: None })
    };
    Facts {
        is_cluster: true,
        names: NameVisibility::Own(Vec::new()),
        selected: keys.iter().map(nad).collect(),
        ..Facts::default()
    }
}

/// Whoever creates a pod must not learn by its warnings which NADs there are elsewhere.
#[test]
fn nads_of_other_namespaces_need_permission() {
    let facts = absent(&[("apps", "own"), ("other", "foreign")]);
    let (found, missing) = judged("own,other/foreign", &facts);
    assert_eq!(found, ["the pod selects NAD `own`, which does not exist in its own namespace"]);
    let reference = Reference::Nad(ObjectKey::new("other", "foreign"));
    assert_eq!(missing, Some(MissingFact::NameVisibility(vec![reference.clone()])));
    let permitted = Facts { names: NameVisibility::Own(vec![reference]), ..facts.clone() };
    let (found, missing) = judged("own,other/foreign", &permitted);
    assert_eq!((found.len(), missing), (2, None));
    assert!(found[1].ends_with("does not exist in namespace `other`"), "{found:?}");
    // The same for what its config has.
    let config = Facts {
        selected: [(
            ObjectKey::new("other", "foreign"),
            SelectedNad { nad: Lookup::Found(NadSummary::default()), similar: None },
        )]
        .into(),
        ..facts
    };
    assert_eq!(judged("other/foreign", &config).0, [] as [&str; 0]);
    // However many there are, the permission is checked for few.
    let many: Vec<String> = (0..1000).map(|number| format!("other/n{number}")).collect();
    let Some(MissingFact::NameVisibility(asked)) = judged(&many.join(","), &absent(&[])).1 else { panic!("asks") };
    assert_eq!(asked.len(), 4);
}

/// An annotation may have a quarter of a megabyte; comparing its elements with each other would take minutes.
#[test]
fn many_selections_are_judged_in_one_pass() {
    let names: Vec<String> = (0..40_000).map(|number| format!("n{number}")).collect();
    let facts = absent(&[("apps", "n1"), ("apps", "n2")]);
    for networks in [
        names.join(","),
        "a@x,".repeat(40_000),
        ",".repeat(200_000),
        format!("[{}{{}}]", r#"{"name":"a/b"},"#.repeat(15_000)),
        format!("[{}{{}}]", r#"{"interface":"eth0"},"#.repeat(10_000)),
    ] {
        let (found, _) = judged(&networks, &facts);
        assert!((1..=48).contains(&found.len()), "{}", found.len());
    }
}

/// What nadmit does not read it does not judge: no selection is so large by mistake.
#[test]
fn an_annotation_beyond_the_limits_is_not_judged() {
    let deep = format!("[{{\"cni-args\":{}{}}}]", "{\"a\":".repeat(100), "1".to_owned() + &"}".repeat(100));
    assert_eq!(judged(&deep, &Facts::default()).0, [] as [&str; 0]);
}
