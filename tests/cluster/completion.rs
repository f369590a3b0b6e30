//! NADs that were stored while nadmit was unavailable.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{LAST_NAMESPACE, TestNetworkKind, annotated, configured, nad, nad_at, nads, network, version};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const COMPLETE: &str = "openshift.io/cx7";
const NETWORKS: usize = 20;

fn name(number: usize) -> String {
    format!("net-{number}")
}

#[test]
fn incomplete_nads_are_completed_unless_disabled() {
    let mut cluster = TestCluster::start();
    cluster.remove_backstop();
    cluster.deploy_with("failurePolicy: {mutateNads: Ignore}");
    cluster.kill_nadmit();
    cluster.start_operator(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    for number in 0..NETWORKS {
        cluster.jane.create(
            &TestNetworkKind::Sriov.path(),
            &network(TestNetworkKind::Sriov, &name(number), "apps", &json!({})),
        );
    }
    for number in 0..NETWORKS {
        assert_eq!(annotated(&cluster.jane.wait(&nad_at("apps", &name(number)), |_| true)), None);
    }
    let config = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#;
    for namespace in ["apps", "kube-system"] {
        cluster.admin.create(&nads(namespace), &nad("own", config));
    }
    let exempt = json!({ "metadata": { "name": "exempt", "labels": { "nadmit.io/exempt": "true" } } });
    cluster.admin.create("/api/v1/namespaces", &exempt);
    cluster.admin.create(&nads("exempt"), &nad("own", config));
    let other = r#"{"cniVersion":"1.0.0","type":"macvlan"}"#;
    let untouched = version(&cluster.jane.create(&nads("apps"), &nad("other", other))).to_owned();
    // The operator is stuck on a network that moved before its namespace existed.
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "mover", "apps", &json!({})));
    cluster.jane.wait(&TestNetworkKind::Sriov.at("mover"), |network| {
        network["metadata"]["annotations"][LAST_NAMESPACE] == "apps"
    });
    cluster.jane.patch(&TestNetworkKind::Sriov.at("mover"), &json!({ "spec": { "networkNamespace": "later" } }));
    cluster.jane.wait_deleted(&nad_at("apps", "mover"));
    cluster.namespace("later");

    let wait_for_scan = |cluster: &TestCluster| {
        wait("a scan", || cluster.nadmit().log_text().contains("checked objects stored without nadmit").then_some(()));
    };
    cluster.deploy_with("{failurePolicy: {mutateNads: Ignore}, leaveIncomplete: true}");
    wait_for_scan(&cluster);
    assert_eq!(annotated(&cluster.jane.get(&nad_at("apps", "own")).unwrap()), None);
    cluster.kill_nadmit();

    cluster.deploy_with("failurePolicy: {mutateNads: Ignore}");
    let has = |want: &'static str| move |nad: &Value| annotated(nad) == Some(want);
    for number in 0..NETWORKS {
        let nad = cluster.jane.wait(&nad_at("apps", &name(number)), has(COMPLETE));
        assert_eq!(configured(&nad).as_deref(), Some(COMPLETE));
    }
    cluster.jane.wait(&nad_at("apps", "own"), has("a.io/b"));
    cluster.jane.wait(&nad_at("later", "mover"), has(COMPLETE));
    wait_for_scan(&cluster);
    for namespace in ["kube-system", "exempt"] {
        let left = cluster.admin.get(&nad_at(namespace, "own")).unwrap();
        assert_eq!(annotated(&left), None, "the API server does not call nadmit for {namespace}");
    }
    assert_eq!(version(&cluster.jane.get(&nad_at("apps", "other")).unwrap()), untouched);
    let completed = cluster.nadmit().metric("nadmit_completions_total{result=\"completed\"}");
    assert!(completed > 20.0 && completed < 25.0, "{completed}");
}
