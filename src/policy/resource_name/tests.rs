//! Where a repair writes the name.

use serde_json::{Value, json};

use crate::policy::{
    ClaimFacts, DraMode, Facts, Lookup, MissingFact, NameVisibility, NetworkFact, OperatorFact, Operators, Policy,
    Prefix, Reference, Subject, Verdict, judge,
};
use crate::resources::{NetworkId, NetworkKind, Object};

/// The paths that the repair of a NAD changes, whose annotation has a name and whose config has none.
fn written(metadata: &Value) -> Vec<String> {
    let verdict = judged(metadata, r#"{"cniVersion":"1.0.0","type":"sriov"}"#, &Facts::default());
    verdict.patch.0.iter().map(|operation| operation.path().to_string()).collect()
}

fn judged(metadata: &Value, config: &str, facts: &Facts) -> Verdict {
    let mut nad = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "net", "namespace": "apps", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "a.io/b"}},
        "spec": {"config": config},
    });
    json_patch::merge(&mut nad["metadata"], metadata);
    let text = nad.to_string();
    let object = Object::read(&text).unwrap().unwrap();
    judge(&Subject::manifest(&object), facts, &Policy::default())
}

/// The config gets the name too where the NAD belongs to a network, however it says so.
#[test]
fn config_is_written_where_the_nad_belongs_to_a_network() {
    let owner =
        json!({"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork", "name": "net", "uid": "u"});
    let owner_ref = |text: &str| json!({"annotations": {"sriovnetwork.openshift.io/owner-ref": text}});
    for (metadata, has_config) in [
        (json!({}), false),
        (json!({"annotations": {"a": "b"}}), false),
        (owner_ref(""), false),
        (owner_ref("unknown/op/net"), true),
        (owner_ref("SriovNetwork.sriovnetwork.openshift.io/op/net"), true),
        (json!({"ownerReferences": [owner]}), true),
    ] {
        let paths = written(&metadata);
        let want: &[&str] = if has_config { &["/spec/config"] } else { &[] };
        assert_eq!(paths, want, "{metadata}");
    }
}

const OWNER_REF: &str = "SriovNetwork.sriovnetwork.openshift.io/apps/net";

fn network() -> NetworkFact {
    let id = NetworkId { kind: NetworkKind::Sriov, namespace: "apps".to_owned(), name: "net".to_owned() };
    NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "b".to_owned() }
}

/// The value of a network replaces another name in the config; the annotation alone does not.
#[test]
fn another_name_in_the_config_is_replaced_where_the_network_is_known() {
    let config = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/c"}"#;
    let metadata = json!({"annotations": {"sriovnetwork.openshift.io/owner-ref": OWNER_REF}});
    for (named_owner, is_replaced) in [(Lookup::Found(network()), true), (Lookup::Absent, false)] {
        let facts = Facts { named_owner, ..Facts::default() };
        let verdict = judged(&metadata, config, &facts);
        let mismatch = verdict.findings.iter().find(|finding| finding.rule.id == "nad/resource-name-mismatch");
        assert!(mismatch.is_some(), "{:?}", verdict.findings);
        assert_eq!(!verdict.patch.is_empty(), is_replaced, "{facts:?}");
    }
}

/// The network is read before the NAD is stored, as long as it could have another name.
#[test]
fn an_owner_that_is_not_known_is_asked_for() {
    let config = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
    let owned = json!({"annotations": {"sriovnetwork.openshift.io/owner-ref": OWNER_REF}});
    for (metadata, named_owner, is_asked) in [
        (&owned, Lookup::Unknown, true),
        (&owned, Lookup::Absent, false),
        (&owned, Lookup::Found(network()), false),
        (&json!({}), Lookup::Unknown, false),
    ] {
        let facts = Facts { named_owner, ..Facts::default() };
        let missing = judged(metadata, config, &facts).missing_fact;
        let is_owner = matches!(
            &missing,
            Some(MissingFact::Owner { is_required: false, kinds, .. }) if *kinds == [NetworkKind::Sriov]
        );
        assert_eq!((is_owner, missing.is_some()), (is_asked, is_asked), "{metadata} {missing:?}");
    }
}

/// Another domain for the same name is somebody's choice: it is not rewritten with the annotation.
#[test]
fn the_domain_in_the_config_is_left() {
    let metadata = json!({"annotations": {
        "sriovnetwork.openshift.io/owner-ref": OWNER_REF, "k8s.v1.cni.cncf.io/resourceName": "a.io/c",
    }});
    let facts = Facts { named_owner: Lookup::Found(network()), ..Facts::default() };
    for (in_config, is_written) in [("x.io/b", false), ("a.io/b", false), ("a.io/c", true), ("no name", true)] {
        let config = json!({"cniVersion": "1.0.0", "type": "sriov", "resourceName": in_config}).to_string();
        let patch = judged(&metadata, &config, &facts).patch.to_string();
        assert_eq!(patch.contains("/spec/config"), is_written, "{in_config} {patch}");
    }
}

/// A DeviceClass may serve a resource under any domain.
#[test]
fn another_domain_than_the_operators_may_be_served_by_a_class() {
    let metadata = json!({"annotations": {"sriovnetwork.openshift.io/owner-ref": OWNER_REF}});
    let config = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#;
    for (served, is_reported) in [(vec![], true), (vec!["c.io/b"], true), (vec!["c.io/b", "a.io/b"], false)] {
        let facts = Facts {
            named_owner: Lookup::Found(network()),
            prefix: Some(Prefix { value: "op.io".to_owned(), assumed: false }),
            served_by_classes: served.iter().copied().map(str::to_owned).collect(),
            ..Facts::default()
        };
        let verdict = judged(&metadata, config, &facts);
        let rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
        assert_eq!(rules.contains(&"nad/resource-name-mismatch"), is_reported, "{served:?} {rules:?}");
    }
}

/// The help for a missing name tells what of it is not known.
#[test]
fn help_tells_whether_only_the_prefix_is_missing() {
    let nameless = json!({"annotations": {
        "k8s.v1.cni.cncf.io/resourceName": null, "sriovnetwork.openshift.io/owner-ref": OWNER_REF,
    }});
    let config = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
    let operator = |prefix: Option<&str>| {
        let prefix = prefix.map(str::to_owned);
        Operators::Known([OperatorFact { namespace: "op".to_owned(), prefix, ..OperatorFact::default() }].into())
    };
    for (named_owner, operators, is_prefix) in [
        (Lookup::Found(network()), Operators::Unknown, true),
        (Lookup::Found(network()), operator(None), true),
        (Lookup::Found(network()), operator(Some("a.io")), false),
        (Lookup::Absent, Operators::Unknown, false),
    ] {
        let facts = Facts { named_owner, operators, ..Facts::default() };
        let verdict = judged(&nameless, config, &facts);
        let finding = verdict.findings.iter().find(|finding| finding.rule.id == "nad/resource-name-missing").unwrap();
        assert_eq!(finding.help.contains("RESOURCE_PREFIX"), is_prefix, "{:?} {}", facts.operators, finding.help);
    }
}

/// A network that happens to render to the same place is not the owner of a NAD that names another one.
#[test]
fn another_owner_is_not_replaced() {
    let config = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
    let prefix = Some(Prefix { value: "op.io".to_owned(), assumed: false });
    for (owner_ref, is_completed) in [(Value::Null, true), (json!(OWNER_REF.replace("apps/net", "op/net")), false)] {
        let metadata = json!({"annotations": {
            "k8s.v1.cni.cncf.io/resourceName": null, "sriovnetwork.openshift.io/owner-ref": owner_ref,
        }});
        let facts = Facts {
            named_owner: Lookup::Absent,
            networks_here: vec![network()],
            prefix: prefix.clone(),
            ..Facts::default()
        };
        let patch = judged(&metadata, config, &facts).patch.to_string();
        assert_eq!(patch.contains("op.io/b"), is_completed, "{owner_ref} {patch}");
    }
}

/// Without an owner and without a name, any network may turn out to render the NAD.
#[test]
fn networks_are_asked_for_until_all_are_known() {
    let nameless = json!({"annotations": {"k8s.v1.cni.cncf.io/resourceName": null}});
    let config = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
    for (metadata, knows_networks, is_asked) in
        [(&nameless, false, true), (&nameless, true, false), (&json!({}), false, false)]
    {
        let facts = Facts { knows_networks, ..Facts::default() };
        let missing = judged(metadata, config, &facts).missing_fact;
        let is_owner = matches!(&missing, Some(MissingFact::Owner { is_required: true, named: None, .. }));
        assert_eq!((is_owner, missing.is_some()), (is_asked, is_asked), "{metadata} {missing:?}");
    }
}

/// A NAD may name any network; only one that renders it gives it a name.
#[test]
fn a_named_network_that_renders_elsewhere_is_ignored() {
    let metadata = json!({"annotations": {
        "k8s.v1.cni.cncf.io/resourceName": null, "sriovnetwork.openshift.io/owner-ref": OWNER_REF,
    }});
    for (target, is_completed) in [("apps", true), ("other", false)] {
        let network = NetworkFact { target_namespace: target.to_owned(), ..network() };
        let prefix = Some(Prefix { value: "op.io".to_owned(), assumed: false });
        let facts = Facts { named_owner: Lookup::Found(network), prefix, ..Facts::default() };
        let verdict = judged(&metadata, r#"{"cniVersion":"1.0.0","type":"sriov"}"#, &facts);
        assert_eq!(verdict.patch.to_string().contains("op.io/b"), is_completed, "{target}");
    }
}

/// The names that the DRA driver publishes are in its own namespace: they are named to those who may list them.
#[test]
fn published_names_are_named_to_those_who_may_read_them() {
    let config = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
    let claims = ClaimFacts {
        has_driver: Some(true),
        mode: Some(DraMode::Multus),
        is_published: Some(false),
        published: ["nic_1".to_owned()].into(),
        ..ClaimFacts::default()
    };
    let annotated = |name: Value| json!({"annotations": {"k8s.v1.cni.cncf.io/resourceName": name}});
    for metadata in [annotated(json!("a.io/nic_1")), annotated(Value::Null), annotated(json!("a.io/nic_1/"))] {
        for (names, is_named) in [
            (NameVisibility::All, true),
            (NameVisibility::Own(vec![Reference::DeviceAttributes]), true),
            (NameVisibility::Own(Vec::new()), false),
        ] {
            let facts = Facts { claims: claims.clone(), names, ..Facts::default() };
            let verdict = judged(&metadata, config, &facts);
            let [finding] = verdict.findings.as_slice() else { panic!("{:?}", verdict.findings) };
            assert_eq!(
                ["exactly nic_1", "write nic_1"].iter().any(|text| finding.help.contains(text)),
                is_named,
                "{finding:?}"
            );
            assert_eq!(finding.note.ends_with(": nic_1"), is_named && metadata == annotated(json!("a.io/nic_1")));
        }
    }
}
