//! Namespaces that are created late, deleted, or changed in a network.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{LAST_NAMESPACE, TestNetworkKind, annotated, nad_at, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const COMPLETE: Option<&str> = Some("openshift.io/cx7");

fn moved(namespace: &str) -> Value {
    json!({ "spec": { "networkNamespace": namespace } })
}

#[test]
fn namespace_is_created_late_and_recreated() {
    let cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "late", &json!({})));
    wait("a reconcile", || (cluster.reconciles(TestNetworkKind::Sriov, "net") >= 1).then_some(()));
    cluster.namespace("late");
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("late", "net"), |_| true)), COMPLETE);

    cluster.admin.delete("/api/v1/namespaces/late");
    cluster.admin.wait_deleted("/api/v1/namespaces/late");
    cluster.namespace("late");
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("late", "net"), |_| true)), COMPLETE);

    // To an existing namespace.
    cluster.namespace("next");
    cluster.jane.patch(&TestNetworkKind::Sriov.at("net"), &moved("next"));
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("next", "net"), |_| true)), COMPLETE);
    cluster.jane.wait_deleted(&nad_at("late", "net"));
    cluster.jane.delete(&TestNetworkKind::Sriov.at("net"));
    cluster.jane.wait_deleted(&TestNetworkKind::Sriov.at("net"));
    cluster.jane.wait_deleted(&nad_at("next", "net"));
}

/// A network that moved before its namespace existed need not be written again.
#[test]
fn moved_network_gets_its_nad_once_the_namespace_exists() {
    let cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let name = |kind: TestNetworkKind| kind.name().to_lowercase();
    for kind in TestNetworkKind::ALL {
        cluster.jane.create(&kind.path(), &network(kind, &name(kind), "apps", &json!({})));
    }
    for kind in TestNetworkKind::ALL {
        let is_rendered = |network: &Value| network["metadata"]["annotations"][LAST_NAMESPACE] == "apps";
        cluster.jane.wait(&kind.at(&name(kind)), is_rendered);
        cluster.jane.patch(&kind.at(&name(kind)), &moved("later"));
    }
    for kind in TestNetworkKind::ALL {
        cluster.jane.wait_deleted(&nad_at("apps", &name(kind)));
    }
    cluster.namespace("later");
    let came = Instant::now();
    for kind in TestNetworkKind::ALL {
        let nad = cluster.jane.wait(&nad_at("later", &name(kind)), |_| true);
        println!("{}: {:.1?} after its namespace", kind.name(), came.elapsed());
        // The NAD of an OVS network needs no device.
        assert!(kind == TestNetworkKind::Ovs || annotated(&nad) == COMPLETE, "{nad:#}");
    }
    assert!(came.elapsed() < Duration::from_secs(10), "{:?}", came.elapsed());
}

/// A network that moves to a namespace that does not exist yet. This operator deletes the old NAD, waits, and then fails indefinitely
/// to delete it again; newer operators empty the annotation in the meantime, and fail on that, as this one would: here the test writes
/// the empty value.
#[test]
fn next_write_unblocks_a_wedged_operator() {
    let mut cluster = TestCluster::without_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let empty = json!({ "metadata": { "annotations": { LAST_NAMESPACE: "" } } });
    let mut sent = network(TestNetworkKind::Sriov, "net", "apps", &json!({}));
    sent["metadata"]["annotations"] = empty["metadata"]["annotations"].clone();
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &sent);
    wait("the operator's attempts", || (cluster.reconciles(TestNetworkKind::Sriov, "net") >= 5).then_some(()));
    assert!(cluster.jane.get(&nad_at("apps", "net")).is_none(), "the operator is stuck");
    // The operator is stuck on the network that moved, too.
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "mover", "apps", &json!({})));
    cluster.jane.wait(&TestNetworkKind::Sriov.at("mover"), |network| {
        network["metadata"]["annotations"][LAST_NAMESPACE] == "apps"
    });
    cluster.jane.patch(&TestNetworkKind::Sriov.at("mover"), &moved("later"));
    cluster.jane.wait_deleted(&nad_at("apps", "mover"));
    // An operator that finds the namespace at once creates the NAD, and never fails.
    wait("an attempt without the namespace", || {
        (cluster.waits_for_namespace(TestNetworkKind::Sriov, "mover") > 0).then_some(())
    });
    cluster.namespace("later");
    let before = cluster.failures(TestNetworkKind::Sriov, "mover");
    // Newer operators are not stuck here, and create the NAD.
    let is_stuck = wait("an attempt that fails, or the NAD", || {
        let has_failed = cluster.failures(TestNetworkKind::Sriov, "mover") > before;
        let is_there = cluster.jane.get(&nad_at("later", "mover")).is_some();
        (has_failed || is_there).then_some(!is_there)
    });

    // The next write of the network unblocks the operator, even if nadmit may not write by itself.
    cluster.deploy_with("leaveIncomplete: true");
    let freed =
        cluster.jane.patch(&TestNetworkKind::Sriov.at("net"), &json!({ "metadata": { "labels": { "a": "b" } } }));
    assert_eq!(freed["metadata"]["annotations"][LAST_NAMESPACE], Value::Null);
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("apps", "net"), |_| true)), COMPLETE);
    let freed =
        cluster.jane.patch(&TestNetworkKind::Sriov.at("mover"), &json!({ "metadata": { "labels": { "a": "b" } } }));
    assert!(!is_stuck || freed["metadata"]["annotations"][LAST_NAMESPACE].is_null(), "{freed:#}");
    cluster.jane.wait(&nad_at("later", "mover"), |nad| annotated(nad) == COMPLETE);

    // If the NAD was deleted with its namespace, and the network moves after that, the operator never gets stuck.
    cluster.admin.delete("/api/v1/namespaces/later");
    cluster.admin.wait_deleted("/api/v1/namespaces/later");
    cluster.jane.patch(&TestNetworkKind::Sriov.at("mover"), &moved("apps"));
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("apps", "mover"), |_| true)), COMPLETE);

    // Written while nadmit runs, the annotation does no harm.
    cluster.jane.patch(&TestNetworkKind::Sriov.at("net"), &empty);
    let network = cluster.jane.get(&TestNetworkKind::Sriov.at("net")).unwrap();
    assert_ne!(network["metadata"]["annotations"][LAST_NAMESPACE], "");
    cluster.namespace("next");
    cluster.jane.patch(&TestNetworkKind::Sriov.at("net"), &moved("next"));
    assert_eq!(annotated(&cluster.jane.wait(&nad_at("next", "net"), |_| true)), COMPLETE);
}
