use std::sync::Arc;

use serde_json::{Value, json};

use crate::policy::{Action, Facts, Lookup, NameVisibility, Policy, Reference, Subject, Verdict, judge};
use crate::resources::{LAST_NAMESPACE, Object};

/// The verdict on a SriovNetwork, whose operator is in namespace `op`.
fn judged(metadata: &Value, spec: &Value, facts: &Facts) -> Verdict {
    judged_as("SriovNetwork", metadata, spec, facts)
}

fn judged_as(kind: &str, metadata: &Value, spec: &Value, facts: &Facts) -> Verdict {
    let mut network = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": kind,
        "metadata": {"name": "net"}, "spec": {"resourceName": "cx7"},
    });
    json_patch::merge(&mut network["metadata"], metadata);
    json_patch::merge(&mut network["spec"], spec);
    let text = network.to_string();
    let object = Object::read(&text).unwrap().unwrap();
    judge(&Subject::manifest(&object), facts, &Policy::parse("operator: {namespace: op}").unwrap())
}

fn rules(verdict: &Verdict) -> Vec<&str> {
    verdict.findings.iter().map(|finding| finding.rule.id).collect()
}

/// A manifest without a namespace may be meant for any, also for the operator's.
#[test]
fn a_network_without_a_namespace_is_judged_as_if_it_were_rendered() {
    let spec = json!({"networkNamespace": "apps", "resourceName": "a b"});
    for (metadata, want) in [
        (json!({}), &["network/resource-name", "network/target-namespace"] as &[_]),
        (json!({"namespace": "op"}), &["network/resource-name"]),
        (json!({"namespace": "other"}), &["network/target-namespace"]),
    ] {
        assert_eq!(rules(&judged(&metadata, &spec, &Facts::default())), want, "{metadata}");
    }
}

/// What only warns in a NAD only warns in the network that it is rendered from.
#[test]
fn a_warning_about_the_nad_stays_a_warning() {
    for (range, want) in [("10.1.0.0/31", Action::Warn), ("nonsense", Action::Deny)] {
        let spec = json!({"ipam": format!(r#"{{"type":"whereabouts","range":"{range}"}}"#)});
        let verdict = judged(&json!({"namespace": "apps"}), &spec, &Facts::default());
        let actions: Vec<_> = verdict.findings.iter().map(|finding| (finding.rule.id, finding.action)).collect();
        assert_eq!(actions, [("ipam/whereabouts-range", want)], "{range}");
    }
}

/// A mistake in the rendered NAD that was there before does not deny another change of the network.
#[test]
fn a_stored_mistake_in_the_nad_is_excused() {
    let network = |range: &str, vlan: u32| {
        json!({
            "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
            "metadata": {"name": "net", "namespace": "apps"},
            "spec": {"resourceName": "cx7", "vlan": vlan, "ipam": format!(r#"{{"type":"whereabouts","range":"{range}"}}"#)},
        })
        .to_string()
    };
    let old = network("nonsense", 5);
    let old = Object::read(&old).unwrap().unwrap();
    for (range, is_denied) in [("nonsense", false), ("other", true)] {
        let new = network(range, 6);
        let new = Object::read(&new).unwrap().unwrap();
        let subject = Subject { object: &new, old: Some(&old), writer: Some("jane"), is_final: true };
        let verdict = judge(&subject, &Facts::default(), &Policy::default());
        assert_eq!(verdict.denies(), is_denied, "{range} {:?}", verdict.findings);
    }
}

#[test]
fn only_a_negative_mtu_is_wrong() {
    for (mtu, want) in [(-1, &["network/mtu"] as &[_]), (0, &[]), (1500, &[])] {
        let verdict = judged_as("OVSNetwork", &json!({"namespace": "apps"}), &json!({"mtu": mtu}), &Facts::default());
        assert_eq!(rules(&verdict), want, "{mtu}");
    }
}

/// Who may not read the node policies must not learn their names from a suggestion.
#[test]
fn a_similar_resource_is_suggested_to_those_who_may_see_it() {
    let named = NameVisibility::Own(vec![Reference::NodePolicies]);
    for (namespace, names, is_suggested) in [
        ("apps", NameVisibility::All, true),
        ("apps", named, true),
        ("apps", NameVisibility::Own(Vec::new()), false),
        ("op", NameVisibility::Own(Vec::new()), true),
    ] {
        let offered = Some(Arc::from(["cx6".to_owned(), "cx71".to_owned()]));
        let facts = Facts { offered, names, ..Facts::default() };
        let verdict = judged(&json!({"namespace": namespace}), &json!({"resourceName": "cx7x"}), &facts);
        let [finding] = &*verdict.findings else { panic!("{:?}", verdict.findings) };
        assert_eq!(finding.help.contains("did you mean `cx71`"), is_suggested, "{namespace} {}", finding.help);
    }
}

/// Whether the NAD in another namespace exists is reported only to those who may see everything.
#[test]
fn a_wedged_annotation_is_reported_to_those_who_may_see_everything() {
    let annotations = json!({ LAST_NAMESPACE: "old" });
    for (namespace, names, is_reported) in [
        ("apps", NameVisibility::All, true),
        ("apps", NameVisibility::Own(Vec::new()), false),
        ("op", NameVisibility::Own(Vec::new()), true),
    ] {
        let facts = Facts { last_nad: Lookup::Absent, names, ..Facts::default() };
        let metadata = json!({"namespace": namespace, "annotations": annotations});
        let found = judged(&metadata, &json!({}), &facts);
        assert_eq!(rules(&found).contains(&"network/wedged"), is_reported, "{namespace} {:?}", found.findings);
    }
}

/// The texts of another kind of network are not rendered, whatever they are.
#[test]
fn only_texts_of_the_same_kind_are_rendered() {
    let metadata = json!({"namespace": "apps"});
    for (kind, field, want) in [
        ("SriovNetwork", "metaPlugins", "network/fragment"),
        ("SriovNetwork", "logFile", "network/render-unsafe"),
        ("SriovNetwork", "bridge", "network/unknown-field"),
        ("OVSNetwork", "bridge", "network/render-unsafe"),
        ("OVSNetwork", "logFile", "network/unknown-field"),
    ] {
        let verdict = judged_as(kind, &metadata, &json!({ field: "\"," }), &Facts::default());
        assert_eq!(rules(&verdict), [want], "{kind} {field}");
    }
}

/// Not only texts of the spec get into the config.
#[test]
fn a_name_can_break_the_config() {
    let verdict = judged(&json!({"name": "a\"b", "namespace": "apps"}), &json!({}), &Facts::default());
    assert!(rules(&verdict).contains(&"network/render-unsafe"), "{:?}", verdict.findings);
}
