//! Where a repair writes the name.

use serde_json::{Value, json};

use crate::policy::{Facts, Policy, Subject, judge};
use crate::resources::Object;

/// The paths that the repair of a NAD changes, whose annotation has a name and whose config has none.
fn written(metadata: &Value) -> Vec<String> {
    let mut nad = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "net", "namespace": "apps", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "a.io/b"}},
        "spec": {"config": r#"{"cniVersion":"1.0.0","type":"sriov"}"#},
    });
    json_patch::merge(&mut nad["metadata"], metadata);
    let text = nad.to_string();
    let object = Object::read(&text).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
    verdict.patch.0.iter().map(|operation| operation.path().to_string()).collect()
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
