//! An object that is being deleted can be finalized, and its other changes are judged.

use nadmit::policy::Subject;
use nadmit::resources::{MAX_OWNERS, Object};
use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{LAST_NAMESPACE, RESOURCE_NAME, TestNetworkKind, annotated, nad, nad_at, nads, network};

const GOOD: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5}"#;
const BAD: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5000}"#;
const FINALIZER: &str = "example.com/wait";
const OWNER_REF: &str = "sriovnetwork.openshift.io/owner-ref";
const APPLY: &str = "application/apply-patch+yaml";
const SENT: &str = "2026-01-01T00:00:00Z";

/// A NAD that has its resourceName, and a finalizer.
fn nad_with_finalizer(name: &str) -> Value {
    let mut nad = nad(name, GOOD);
    nad["metadata"]["annotations"] = json!({ RESOURCE_NAME: "openshift.io/cx7" });
    nad["metadata"]["finalizers"] = json!([FINALIZER]);
    nad
}

fn config(text: &str) -> Value {
    json!({ "spec": { "config": text } })
}

fn remove_finalizer() -> Value {
    json!({ "metadata": { "finalizers": null } })
}

#[test]
fn deleting_objects_are_judged_and_can_be_finalized() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("apps");
    let jane = &cluster.jane;

    jane.create(&nads("apps"), &nad_with_finalizer("net"));
    let net = nad_at("apps", "net");
    jane.delete(&net);
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1" });
    for (what, change) in [
        ("another config", config(BAD)),
        ("another resourceName", json!({ "metadata": { "annotations": { RESOURCE_NAME: "openshift.io/" } } })),
        ("both", json!({ "metadata": { "ownerReferences": [owner] }, "spec": { "config": "not JSON" } })),
    ] {
        let error = jane.try_patch(&net, &change).unwrap_err();
        assert!(error.message.contains("denied the request"), "{what}: {error:?}");
    }
    let stored = jane.get(&net).unwrap();
    assert!(stored["metadata"]["deletionTimestamp"].is_string(), "{stored:#}");
    assert_eq!((stored["spec"]["config"].as_str(), annotated(&stored)), (Some(GOOD), Some("openshift.io/cx7")));
    // A correct config is stored, and completed like that of any other NAD.
    jane.patch(&net, &config(&GOOD.replace('5', "6")));
    jane.patch(&net, &json!({ "metadata": { "labels": { "a": "b" } } }));
    jane.patch(&net, &remove_finalizer());
    jane.wait_deleted(&net);

    let mut sent = network(TestNetworkKind::Sriov, "net", "apps", &json!({}));
    sent["metadata"]["finalizers"] = json!([FINALIZER]);
    jane.create(&TestNetworkKind::Sriov.path(), &sent);
    let net = TestNetworkKind::Sriov.at("net");
    jane.delete(&net);
    for spec in [
        json!({ "resourceName": "cx7\n  labels:\n    team: red" }),
        json!({ "ipam": "{},\"Type\":\"bridge\"" }),
        json!({ "ipam": "not JSON" }),
    ] {
        let error = jane.try_patch(&net, &json!({ "spec": spec })).unwrap_err();
        // The backstop denies some of them before nadmit is called.
        let is_denied = ["denied the request", "denied request"].iter().any(|words| error.message.contains(words));
        assert!(is_denied, "{spec}: {error:?}");
    }
    jane.patch(&net, &remove_finalizer());
    jane.wait_deleted(&net);
}

/// A deletionTimestamp in the sent object must not skip nadmit. A server-side apply that creates even stores it (measured
/// with 1.34; 1.37 does not store it, and rejects an update that sends one), so a stored one proves little, too.
#[test]
fn deletion_timestamp_in_the_request_is_ignored() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let apply = |name: &str, config: &str| {
        let mut object = nad(name, config);
        object["metadata"]["deletionTimestamp"] = SENT.into();
        cluster.jane.send("PATCH", &format!("{}?fieldManager=t", nad_at("default", name)), APPLY, Some(&object))
    };
    let error = apply("bad", BAD).unwrap_err();
    assert!(error.message.contains("denied the request"), "{error:?}");
    assert!(cluster.jane.get(&nad_at("default", "bad")).is_none());
    let made = apply("net", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#).unwrap();
    assert_eq!(annotated(&made), Some("a.io/b"), "{made:#}");
    let error = apply("net", BAD).unwrap_err();
    let is_rejected_before =
        error.message.contains("metadata.deletionTimestamp") && error.message.contains("immutable");
    assert!(error.message.contains("denied the request") || is_rejected_before, "{error:?}");

    let mut posted = nad("posted", BAD);
    posted["metadata"]["deletionTimestamp"] = SENT.into();
    assert!(cluster.jane.try_create(&nads("default"), &posted).is_err());
}

/// While nadmit is down, the NADs of device plugins cannot be written. Objects that are being deleted can still be finalized, and the API
/// server calls nadmit for exactly those writes that the judge would not allow.
#[test]
fn only_deletion_progress_passes_while_nadmit_is_down() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let owner = |uid: usize| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid.to_string() });
    let owners = |count: usize| json!({ "metadata": { "ownerReferences": (0..count).map(owner).collect::<Vec<_>>() } });
    let mut unblocked = owner(0);
    unblocked["blockOwnerDeletion"] = false.into();
    let renamed = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "y", "uid": "0" });
    // Objects without owner references, with two, and with more than the condition compares one by one.
    for (name, references) in [("none", 0), ("two", 2), ("many", MAX_OWNERS + 2)] {
        let mut object = nad_with_finalizer(name);
        object["metadata"]["ownerReferences"] = owners(references)["metadata"]["ownerReferences"].clone();
        cluster.admin.create(&nads("default"), &object);
    }
    // Comparing these would exceed the cost limit of a match condition, and such an error accepts a write if the webhook fails open.
    let mut object = nad_with_finalizer("long");
    let long = |uid: usize| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x".repeat(20_000), "uid": uid.to_string() });
    object["metadata"]["ownerReferences"] = (0..MAX_OWNERS).map(long).collect();
    cluster.admin.create(&nads("default"), &object);
    cluster.admin.create(&nads("default"), &nad_with_finalizer("stays"));
    for name in ["none", "two", "many", "long"] {
        cluster.admin.delete(&nad_at("default", name));
    }
    cluster.kill_nadmit();

    let annotation = |key: &str, value: Value| json!({ "metadata": { "annotations": { key: value } } });
    let changes = [
        remove_finalizer(),
        json!({ "metadata": { "labels": { "a": "b" } } }),
        json!({ "metadata": { "annotations": null } }),
        annotation("a", "b".into()),
        annotation(RESOURCE_NAME, "openshift.io/other".into()),
        annotation(RESOURCE_NAME, Value::Null),
        annotation(RESOURCE_NAME, "".into()),
        annotation(OWNER_REF, "".into()),
        annotation(OWNER_REF, "unknown/a/b".into()),
        annotation(LAST_NAMESPACE, "apps".into()),
        config(BAD),
        config(GOOD),
        owners(0),
        owners(1),
        owners(2),
        owners(3),
        owners(MAX_OWNERS + 1),
        owners(MAX_OWNERS + 2),
        json!({ "metadata": { "ownerReferences": null } }),
        json!({ "metadata": { "ownerReferences": [unblocked] } }),
        json!({ "metadata": { "ownerReferences": [renamed] } }),
        json!({ "metadata": { "ownerReferences": [owner(1), owner(0)] } }),
        json!({ "metadata": { "ownerReferences": (1..MAX_OWNERS).rev().map(long).collect::<Vec<_>>() } }),
    ];
    let mut seen = [0, 0];
    for name in ["none", "two", "many", "long", "stays"] {
        let stored = cluster.admin.get(&nad_at("default", name)).unwrap();
        for change in &changes {
            let mut sent = stored.clone();
            json_patch::merge(&mut sent, change);
            let [old, new] = [stored.to_string(), sent.to_string()];
            let [old, new] = [&old, &new].map(|json| Object::read(json).unwrap().unwrap());
            let subject = Subject { object: &new, old: Some(&old), writer: Some("jane"), is_final: false };
            let answer = cluster.admin.try_patch(&format!("{}?dryRun=All", nad_at("default", name)), change);
            let is_asked = answer.as_ref().is_err_and(|error| error.message.contains("failed calling webhook"));
            assert!(answer.is_ok() || is_asked, "{name} {change}: {answer:?}");
            assert_eq!(is_asked, !subject.is_deletion_progress(), "{name} {change}: {answer:?}");
            seen[usize::from(is_asked)] += 1;
        }
    }
    println!("{} writes passed without nadmit, {} were sent to nadmit", seen[0], seen[1]);
    assert!(seen[0] > 20 && seen[1] > 40, "{seen:?}");
    for name in ["none", "two", "many", "long"] {
        cluster.jane.patch(&nad_at("default", name), &remove_finalizer());
        cluster.jane.wait_deleted(&nad_at("default", name));
    }
    assert!(cluster.jane.get(&nad_at("default", "stays")).is_some());
}
