//! Annotations of the operator that other users write.

use serde_json::json;

use crate::cluster::TestCluster;
use crate::lookalikes::grant;
use crate::objects::{LAST_NAMESPACE, TestNetworkKind, nad, nad_at, nads, network};

const NETWORKS: &str = "/apis/sriovnetwork.openshift.io/v1/namespaces/team-a/sriovnetworks";

/// A tenant names a victim's namespace in `last-network-namespace`: the operator would delete the victim's NAD.
#[test]
fn only_the_operator_may_set_last_network_namespace() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("team-a");
    cluster.namespace("victim");
    cluster.admin.create(&nads("victim"), &nad("prod", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
    let of_tenant = |last: Option<&str>| {
        let mut network = network(TestNetworkKind::Sriov, "prod", "", &json!({}));
        network["metadata"]["namespace"] = "team-a".into();
        network["spec"]["networkNamespace"].take();
        if let Some(last) = last {
            network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: last });
        }
        network
    };
    let error = cluster.jane.try_create(NETWORKS, &of_tenant(Some("victim"))).unwrap_err();
    assert!(error.message.contains("network/forged-last-namespace"), "{error:?}");

    // With an update that changes nothing else, even by a controller.
    let prod = format!("{NETWORKS}/prod");
    cluster.jane.create(NETWORKS, &of_tenant(None));
    let change = |last: &str| json!({ "metadata": { "annotations": { LAST_NAMESPACE: last } } });
    for user in ["jane", "robot"] {
        let error = cluster.user(user).try_patch(&prod, &change("victim")).unwrap_err();
        assert!(error.message.contains("network/forged-last-namespace"), "{user}: {error:?}");
    }
    // The network's own namespace is accepted.
    cluster.jane.patch(&prod, &change("team-a"));
    assert!(cluster.admin.get(&nad_at("victim", "prod")).is_some());
}

/// A network with another namespace as its target was stored before nadmit was installed. A service account adds only the annotation,
/// with the target as its value: the API server must still call nadmit.
#[test]
fn an_annotation_that_agrees_with_a_foreign_target_is_judged() {
    const NETWORKS: &str = "/apis/sriovnetwork.openshift.io/v1/namespaces/tenant/sriovnetworks";
    let mut cluster = TestCluster::start();
    cluster.namespace("tenant");
    cluster.namespace("victim");
    let account = json!({ "kind": "ServiceAccount", "name": "sriov-network-operator", "namespace": "tenant" });
    grant(&cluster, &account, Some("tenant"));
    let mut before = network(TestNetworkKind::Sriov, "prod", "victim", &json!({}));
    before["metadata"]["namespace"] = "tenant".into();
    cluster.admin.create(NETWORKS, &before);
    cluster.deploy();
    let prod = format!("{NETWORKS}/prod");
    let change = json!({ "metadata": { "annotations": { LAST_NAMESPACE: "victim" } } });
    for user in ["jane", "lookalike"] {
        let error = cluster.user(user).try_patch(&prod, &change).unwrap_err();
        assert!(error.message.contains("network/forged-last-namespace"), "{user}: {error:?}");
    }
    // The operator writes this annotation on each of its networks.
    cluster.user("operator").patch(&prod, &change);
}
