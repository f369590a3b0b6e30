use super::*;
use crate::manifests::{ManifestDocument, documents};

fn index(text: &str) -> Index {
    let mut index = Index::default();
    let lines = LineIndex::of(text);
    documents(&lines, &mut |document| {
        if let ManifestDocument::Manifest(manifest) = document {
            let mut part = Index::default();
            part.add(&manifest, "a.yaml", &lines);
            index.merge(part);
        }
    });
    index.finish()
}

fn facts(index: &Index, json: &str) -> Facts {
    let assume = Assumptions {
        prefix: Prefix { value: "a.io".to_owned(), assumed: true },
        operator_namespace: Some("op".to_owned()),
        today: "2026-11-01".parse().unwrap(),
    };
    index.facts(&Object::read(json).unwrap().unwrap(), &assume, &Policy::default())
}

fn network(kind: &str, namespace: &str, name: &str, target: &str) -> String {
    format!(
        "{{apiVersion: sriovnetwork.openshift.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{resourceName: r-{name}, networkNamespace: {target}}}}}\n---\n"
    )
}

fn nad(namespace: &str, name: &str, owner: &str) -> String {
    format!(
        r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{{"name":"{name}","namespace":"{namespace}",
        "annotations":{{"sriovnetwork.openshift.io/owner-ref":"{owner}"}}}}}}"#
    )
}

#[test]
fn each_object_gets_its_own_facts() {
    let mut text = String::new();
    for name in ["d", "a", "c", "b", "e"] {
        text += &network("SriovNetwork", "op", name, "apps");
        text += &network("SriovNetwork", "op", &format!("{name}-x"), "other");
        text += &(nad("apps", &format!("{name}-nad"), "") + "\n---\n");
    }
    text += &network("OVSNetwork", "op", "c", "apps");
    let index = index(&text);
    for name in ["a", "b", "c", "d", "e"] {
        let here = facts(&index, &nad("apps", name, "")).networks_here;
        let names: Vec<_> = here.iter().map(|network| network.resource_name.as_str()).collect();
        let want = format!("r-{name}");
        assert_eq!(names, vec![want.as_str(); if name == "c" { 2 } else { 1 }]);
        let owner = format!("SriovNetwork.sriovnetwork.openshift.io/op/{name}-x");
        let Lookup::Found(found) = facts(&index, &nad("apps", name, &owner)).named_owner else { panic!("{name}") };
        assert_eq!((found.id.owner_ref(), found.target_namespace.as_str()), (owner, "other"));
        let claimant = network("SriovNetwork", "op", &format!("{name}-nad"), "apps");
        let claimant = crate::yaml::Documents::new(&claimant).next().unwrap().node.unwrap().to_json();
        assert!(matches!(facts(&index, &claimant).nad_here, Lookup::Found(_)));
    }
    let nothing = facts(&index, &nad("nowhere", "a", "SriovNetwork.sriovnetwork.openshift.io/op/zz"));
    assert!(nothing.networks_here.is_empty());
    assert_eq!(nothing.named_owner, Lookup::Unknown);
    assert_eq!(nothing.operator_namespace.as_deref(), Some("op"));
}

#[test]
fn ignores_other_api_groups() {
    let policy =
        |group: &str| format!("{{apiVersion: {group}/v1, kind: SriovNetworkNodePolicy, spec: {{resourceName: x}}}}\n");
    let network = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{"name":"n"}}"#;
    assert!(facts(&index(&policy("example.com")), network).offered.is_none());
    let offered = facts(&index(&policy("sriovnetwork.openshift.io")), network).offered.unwrap();
    assert_eq!(offered.as_ref(), ["x"]);
}
