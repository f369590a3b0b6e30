//! The facts that nadmit knows from its watches: every warning appears and clears with its cause.

use std::time::Instant;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::TestServer;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::processes::wait;

const KINDS: [&str; 8] = [
    "SriovNetwork",
    "SriovIBNetwork",
    "OVSNetwork",
    "Namespace",
    "SriovNetworkNodePolicy",
    "NetworkAttachmentDefinition",
    "Deployment",
    "SriovOperatorConfig",
];
const POLICIES: &str = "sriovnetworknodepolicies.sriovnetwork.openshift.io";

fn cluster() -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    knows_all(cluster.nadmit());
    cluster.namespace("apps");
    cluster
}

fn is_ready(nadmit: &TestServer, kind: &str) -> bool {
    nadmit.metric(&format!("nadmit_cache_ready{{kind=\"{kind}\"}}")) == 1.0
}

pub fn count(nadmit: &TestServer, kind: &str) -> usize {
    nadmit.metric(&format!("nadmit_cache_objects{{kind=\"{kind}\"}}")) as usize
}

pub fn knows_all(nadmit: &TestServer) {
    wait("the caches", || KINDS.iter().all(|kind| is_ready(nadmit, kind)).then_some(()));
}

/// The warnings for jane when she applies an object in a dry run.
pub fn warnings(cluster: &TestCluster, object: &Value) -> String {
    let out = cluster.kubectl("jane", &["apply", "--dry-run=server", "-f", "-"], &object.to_string());
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{text}");
    let lines = text.lines().filter_map(|line| line.strip_prefix("Warning: "));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Waits until a warning contains this text.
fn warns(cluster: &TestCluster, object: &Value, text: &str) {
    wait(text, || warnings(cluster, object).contains(text).then_some(()));
}

/// Waits until no warning contains this text.
fn has_no_warning(cluster: &TestCluster, object: &Value, text: &str) {
    wait(&format!("no {text}"), || (!warnings(cluster, object).contains(text)).then_some(()));
}

fn policies() -> String {
    format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodepolicies")
}

fn policy(name: &str, resource: &Value) -> Value {
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": { "name": name },
        "spec": { "resourceName": resource, "numVfs": 4, "nodeSelector": {}, "nicSelector": { "vendor": "15b3" } },
    })
}

#[test]
fn namespace_warnings_follow_the_cluster() {
    let cluster = cluster();
    let net = network(TestNetworkKind::Sriov, "net", "late", &json!({}));
    warns(&cluster, &net, "namespace `late` does not exist: the operator creates no NAD until the namespace exists");
    cluster.namespace("late");
    has_no_warning(&cluster, &net, "network/namespace-absent");
    // A finalizer delays its deletion.
    let mut held = nad("held", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    cluster.jane.create(&nads("late"), &held);
    cluster.admin.delete("/api/v1/namespaces/late");
    warns(&cluster, &net, "namespace `late` is being deleted");
    cluster.jane.wait(&nad_at("late", "held"), |nad| !nad["metadata"]["deletionTimestamp"].is_null());
    cluster.jane.patch(&nad_at("late", "held"), &json!({ "metadata": { "finalizers": null } }));
    warns(&cluster, &net, "namespace `late` does not exist");

    // An existing network moves.
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "mover", "apps", &json!({})));
    let moved = network(TestNetworkKind::Sriov, "mover", "next", &json!({}));
    warns(&cluster, &moved, "the NAD moves from namespace `apps` to `next`, which does not exist");
    cluster.namespace("next");
    has_no_warning(&cluster, &moved, "network/moves-to-nowhere");
}

#[test]
fn claim_warnings_follow_the_cluster() {
    let cluster = cluster();
    let net = network(TestNetworkKind::Sriov, "net", "apps", &json!({}));
    assert!(!warnings(&cluster, &net).contains("network/claimed"));

    cluster.jane.create(&TestNetworkKind::Ovs.path(), &network(TestNetworkKind::Ovs, "net", "apps", &json!({})));
    warns(&cluster, &net, &format!("OVSNetwork {OPERATOR}/net also renders the NAD apps/net"));
    cluster.jane.patch(&TestNetworkKind::Ovs.at("net"), &json!({ "spec": { "networkNamespace": "default" } }));
    has_no_warning(&cluster, &net, "network/claimed");
    cluster.jane.patch(&TestNetworkKind::Ovs.at("net"), &json!({ "spec": { "networkNamespace": "apps" } }));
    warns(&cluster, &net, "network/claimed");
    cluster.jane.delete(&TestNetworkKind::Ovs.at("net"));
    has_no_warning(&cluster, &net, "network/claimed");

    cluster.jane.create(&nads("apps"), &nad("net", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
    warns(&cluster, &net, "a hand-written NAD apps/net exists");
    let owner = |name: &str| {
        let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{name}");
        json!({ "metadata": { "annotations": { "sriovnetwork.openshift.io/owner-ref": owner } } })
    };
    cluster.jane.patch(&nad_at("apps", "net"), &owner("other"));
    warns(&cluster, &net, &format!("the NAD apps/net belongs to SriovNetwork {OPERATOR}/other"));
    cluster.jane.patch(&nad_at("apps", "net"), &owner("net"));
    has_no_warning(&cluster, &net, "network/claimed");
    cluster.jane.patch(&nad_at("apps", "net"), &owner("other"));
    warns(&cluster, &net, "network/claimed");
    cluster.jane.delete(&nad_at("apps", "net"));
    has_no_warning(&cluster, &net, "network/claimed");
}

#[test]
fn node_policy_warnings_follow_the_cluster() {
    let cluster = cluster();
    let net = network(TestNetworkKind::Sriov, "net", "apps", &json!({ "resourceName": "connectx7" }));
    warns(&cluster, &net, "no SriovNetworkNodePolicy offers the resource `connectx7`");
    cluster.jane.create(&policies(), &policy("p", &json!("connectx6")));
    warns(&cluster, &net, "did you mean `connectx6`?");
    cluster.jane.patch(&format!("{}/p", policies()), &json!({ "spec": { "resourceName": "connectx7" } }));
    has_no_warning(&cluster, &net, "network/no-policy");
    cluster.jane.delete(&format!("{}/p", policies()));
    warns(&cluster, &net, "network/no-policy");

    // An object that other readers would reject does not stop the watch.
    let loose = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{POLICIES}");
    let whole = cluster.admin.get(&definition).unwrap();
    let mut versions = whole["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"] = loose;
    cluster.admin.patch(&definition, &json!({ "spec": { "versions": versions } }));
    wait("the loose schema", || cluster.jane.try_create(&policies(), &policy("odd", &json!(7))).ok());
    let mut odd = policy("odder", &json!({ "deep": [[[]]] }));
    odd["spec"]["numVfs"] = json!("many");
    cluster.jane.create(&policies(), &odd);
    odd["metadata"]["name"] = "oddest".into();
    odd["spec"] = json!(["no", "object"]);
    cluster.jane.create(&policies(), &odd);
    wait("the odd policies", || (count(cluster.nadmit(), "SriovNetworkNodePolicy") == 3).then_some(()));
    warns(&cluster, &net, "network/no-policy");
    cluster.jane.create(&policies(), &policy("good", &json!("connectx7")));
    has_no_warning(&cluster, &net, "network/no-policy");

    // Without the CRD, the offered resources are unknown; nadmit notices when the CRD is back.
    cluster.jane.delete(&format!("{}/good", policies()));
    warns(&cluster, &net, "network/no-policy");
    cluster.admin.delete(&definition);
    has_no_warning(&cluster, &net, "network/no-policy");
    wait("the deletion of the CRD", || cluster.admin.get(&definition).is_none().then_some(()));
    let again = json!({ "apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": { "name": POLICIES }, "spec": whole["spec"] });
    cluster.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &again);
    warns(&cluster, &net, "network/no-policy");
}

/// An object that stops other watches, and labels that only the API server's own rules limit.
#[test]
fn odd_objects_do_not_stop_a_watch() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    let strange = json!({ "metadata": { "name": "strange", "labels": { "a.b/C_d": "" }, "annotations": { "x": "\u{0}\u{2028}\"\\ud800 é" } } });
    cluster.admin.create("/api/v1/namespaces", &strange);
    // The operator's own watch on all OVSNetworks would end here.
    cluster
        .jane
        .create(&TestNetworkKind::Ovs.path(), &network(TestNetworkKind::Ovs, "net", "strange", &json!({ "mtu": -1 })));
    cluster.deploy();
    knows_all(cluster.nadmit());
    let net = network(TestNetworkKind::Sriov, "net", "strange", &json!({}));
    warns(&cluster, &net, &format!("OVSNetwork {OPERATOR}/net also renders the NAD strange/net"));
    assert!(!warnings(&cluster, &net).contains("network/namespace-absent"));
    cluster.jane.create(&TestNetworkKind::Ovs.path(), &network(TestNetworkKind::Ovs, "next", "apps", &json!({})));
    warns(&cluster, &network(TestNetworkKind::Sriov, "next", "apps", &json!({})), "network/claimed");
    for kind in KINDS {
        assert_eq!(cluster.nadmit().metric(&format!("nadmit_cache_skipped_total{{kind=\"{kind}\"}}")), 0.0, "{kind}");
    }
}

#[test]
fn caches_recover_after_api_server_restart() {
    let mut cluster = cluster();
    let net = network(TestNetworkKind::Sriov, "net", "late", &json!({}));
    warns(&cluster, &net, "network/namespace-absent");
    cluster.without_api_server(|cluster| {
        cluster.nadmit().wait_for_line("list or watch failed, retrying");
    });
    cluster.namespace("late");
    let back = Instant::now();
    has_no_warning(&cluster, &net, "network/namespace-absent");
    println!("known {:.1?} after the API server was back", back.elapsed());
    cluster.jane.create(&nads("late"), &nad("net", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
    warns(&cluster, &net, "a hand-written NAD late/net exists");
}
