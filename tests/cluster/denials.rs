//! A denial never blocks the operator, or the author of an object that existed before nadmit.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{TestNetworkKind, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const FINALIZER: &str = "netattdef.finalizers.sriovnetwork.openshift.io";

/// Networks that nadmit denies, and whether the operator can create a NAD for them.
fn bad() -> [(&'static str, Value, bool); 3] {
    [
        ("domain-twice", json!({ "resourceName": "openshift.io/cx7" }), true),
        ("capability-no-bool", json!({ "capabilities": r#"{"mac": "true"}"# }), true),
        ("ipam-no-json", json!({ "ipam": r#"{"type": "#  }), false),
    ]
}

/// A cluster in which they existed before nadmit.
fn with_bad() -> TestCluster {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    for (name, fields, _) in &bad() {
        cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, name, "apps", fields));
    }
    cluster
}

/// Waits until the operator has added its finalizer to a network.
fn await_finalizer(cluster: &TestCluster, name: &str) {
    cluster
        .jane
        .wait(&TestNetworkKind::Sriov.at(name), |network| network["metadata"]["finalizers"] == json!([FINALIZER]));
}

/// An operator that ends, or moves to another node, removes its finalizers from its SriovNetworks with a plain update.
#[test]
fn operator_shutdown_removes_all_finalizers() {
    let mut cluster = with_bad();
    cluster.deploy();
    cluster.start_operator(OperatorTemplate::Faulty);
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "good", "apps", &json!({})));
    let names = || bad().into_iter().map(|(name, ..)| name).chain(["good"]);
    names().for_each(|name| await_finalizer(&cluster, name));
    let log = cluster.end_operator();
    assert!(log.contains("Done clearing finalizers") && !log.contains("Failed to remove finalizer"), "{log}");
    for name in names() {
        let left = cluster.jane.get(&TestNetworkKind::Sriov.at(name)).unwrap();
        assert_eq!(left["metadata"]["finalizers"], Value::Null, "{name}");
    }
}

#[test]
fn preexisting_mistakes_do_not_block_updates_or_deletion() {
    let mut cluster = with_bad();
    let bad = bad();
    let broken = [("text", "not JSON"), ("nameless", r#"{"cniVersion":"1.0.0","type":"sriov"}"#)];
    for (name, config) in broken {
        cluster.jane.create(&nads("apps"), &nad(name, config));
    }
    cluster.deploy();
    cluster.start_operator(OperatorTemplate::Upstream);

    for (name, fields, is_rendered) in &bad {
        // The operator adds its finalizer, and its NAD is not denied.
        let at = TestNetworkKind::Sriov.at(name);
        await_finalizer(&cluster, name);
        if *is_rendered {
            cluster.jane.wait(&nad_at("apps", name), |_| true);
        }
        cluster.jane.patch(&at, &json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "vlan": 7 } }));
        // The same mistake is denied in a new object.
        let again = network(TestNetworkKind::Sriov, &format!("{name}-again"), "apps", fields);
        let error = cluster.jane.try_create(&TestNetworkKind::Sriov.path(), &again).unwrap_err();
        assert!(error.message.contains("denied the request"), "{}", error.message);
    }
    for (name, _, is_rendered) in &bad {
        if *is_rendered {
            cluster
                .jane
                .wait(&nad_at("apps", name), |nad| nad["spec"]["config"].as_str().unwrap().contains("\"vlan\": 7"));
        }
        cluster.jane.delete(&TestNetworkKind::Sriov.at(name));
        cluster.jane.wait_deleted(&TestNetworkKind::Sriov.at(name));
        cluster.jane.wait_deleted(&nad_at("apps", name));
    }
    for (name, config) in broken {
        cluster.jane.patch(&nad_at("apps", name), &json!({ "metadata": { "labels": { "a": "b" } } }));
        let error = cluster.jane.try_create(&nads("apps"), &nad(&format!("{name}-again"), config)).unwrap_err();
        assert!(error.message.contains("denied the request"), "{}", error.message);
        cluster.jane.delete(&nad_at("apps", name));
        cluster.jane.wait_deleted(&nad_at("apps", name));
    }
    let denied = |line: &Value| line["level"] == "error" && line.to_string().contains("denied the request");
    assert!(!cluster.operator_log().iter().any(denied), "the operator was denied");
}

#[test]
fn finalizers_can_be_removed_with_and_without_nadmit() {
    let mut cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    for name in ["up", "down"] {
        let mut held = nad(name, r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#);
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        cluster.jane.create(&nads("apps"), &held);
        cluster.jane.create(
            &TestNetworkKind::Sriov.path(),
            &network(TestNetworkKind::Sriov, &format!("net-{name}"), "apps", &json!({})),
        );
        cluster.jane.wait(&nad_at("apps", &format!("net-{name}")), |_| true);
    }
    for name in ["up", "down"] {
        if name == "down" {
            cluster.kill_nadmit();
        }
        cluster.jane.delete(&nad_at("apps", name));
        assert!(cluster.jane.get(&nad_at("apps", name)).is_some());
        cluster.jane.patch(&nad_at("apps", name), &json!({ "metadata": { "finalizers": null } }));
        cluster.jane.wait_deleted(&nad_at("apps", name));
        cluster.jane.delete(&TestNetworkKind::Sriov.at(&format!("net-{name}")));
        wait("the finalizer", || {
            cluster.jane.get(&TestNetworkKind::Sriov.at(&format!("net-{name}"))).is_none().then_some(())
        });
        cluster.jane.wait_deleted(&nad_at("apps", &format!("net-{name}")));
    }
}
