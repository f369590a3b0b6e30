//! The reviews that need the most memory to judge: as many JSON values as a config may have, and as much text.

use hyper::body::Bytes;
use serde_json::{Value, json};

/// Nearly as many values as a config may have.
const VALUES: usize = 65_000;

/// The reviews, each with its name.
pub fn worst() -> Vec<(&'static str, Bytes)> {
    let list = |item: &str| vec![item; VALUES].join(",");
    let zeros = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","x":[{}]}}"#, list("0"));
    let objects = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","x":[{}]}}"#, list("{}"));
    let members: Vec<_> = (0..VALUES).map(|number| format!("\"k{number}\":0")).collect();
    let members = format!(r#"{{"cniVersion":"1.0.0","type":"sriov",{}}}"#, members.join(","));
    let plugins = vec![r#"{"type":"x"}"#; VALUES / 2].join(",");
    let plugins = format!(r#"{{"cniVersion":"1.0.0","plugins":[{{"type":"sriov"}},{plugins}]}}"#);
    let twice: Vec<_> = (0..VALUES / 2).map(|number| format!("\"k{number}\":0,\"K{number}\":0")).collect();
    let twice = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","Vlan":1,"vlan":2,{}}}"#, twice.join(","));
    let delegates = vec![r#"{"type":"x","name":"n"}"#; VALUES / 3].join(",");
    let delegates = format!(r#"{{"cniVersion":"1.0.0","type":"multus","delegates":[{delegates}]}}"#);
    let routes = |first: &str| {
        let routes: Vec<_> = (0..VALUES / 2).map(|number| format!(r#"{{"dst":"bad{number}"}}"#)).collect();
        let routes = format!(r#"{{"dst":"{first}"}},{}"#, routes.join(","));
        format!(
            r#"{{"cniVersion":"1.0.0","type":"sriov","ipam":{{"type":"static","addresses":[],"routes":[{routes}]}}}}"#
        )
    };
    let deep = format!("{}{}{}", "[".repeat(55), list("0"), "]".repeat(55));
    let long = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","x":"{}"}}"#, r"\u00e9".repeat(170_000));
    vec![
        ("a list of numbers", review(&nad(&zeros, ""))),
        ("a list of empty objects", review(&nad(&objects, ""))),
        ("an object with as many keys", review(&nad(&members, ""))),
        ("a chain of plugins", review(&nad(&plugins, ""))),
        ("keys in two spellings", review(&nad(&twice, ""))),
        ("delegates of multus", review(&nad(&delegates, ""))),
        ("mistakes that were there before, but for one", update(&nad(&routes("old"), ""), &nad(&routes("new"), ""))),
        beyond(),
        ("a long text with escapes", review(&nad(&long, ""))),
        ("large annotations", review(&nad(&zeros, &"x".repeat(2_500_000)))),
        ("a network that is indented deeply", review(&network(&format!(r#"{{"type":"static","x":{deep}}}"#)))),
        ("a network with a dense ipam", review(&network(&format!(r#"{{"type":"static","x":[{}]}}"#, list("0"))))),
    ]
}

/// Many more values than a config may have.
fn beyond() -> (&'static str, Bytes) {
    let config = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","x":[{}]}}"#, vec!["0"; 500_000].join(","));
    ("more values than a config may have", review(&nad(&config, "")))
}

fn nad(config: &str, padding: &str) -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "net", "namespace": "apps", "annotations": { "padding": padding } },
        "spec": { "config": config },
    })
}

fn network(ipam: &str) -> Value {
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": { "name": "net", "namespace": "sriov-network-operator" },
        "spec": { "resourceName": "cx7", "networkNamespace": "apps", "ipam": ipam, "metaPlugins": ipam },
    })
}

/// An update, so that both objects are judged.
fn review(object: &Value) -> Bytes {
    let mut old = object.clone();
    old["metadata"]["labels"] = json!({ "a": "b" });
    update(&old, object)
}

fn update(old: &Value, object: &Value) -> Bytes {
    let (group, version) =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).unwrap_or_default();
    let kind = json!({ "group": group, "version": version, "kind": object["kind"] });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "x", "operation": "UPDATE", "name": "net", "namespace": object["metadata"]["namespace"],
        "userInfo": { "username": "jane" }, "kind": kind, "resource": { "group": group, "version": version, "resource": "x" },
        "object": object, "oldObject": old,
    } });
    review.to_string().into()
}
