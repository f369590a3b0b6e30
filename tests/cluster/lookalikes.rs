//! Which account is the operator: one with the operator's permissions, and not one with only its name.

use nadmit::resources::{Object, render};
use serde_json::{Value, json};

use crate::api::ApiRejection;
use crate::cluster::{PREFIX, TestCluster};
use crate::objects::{OPERATOR, TestNetworkKind, annotated, nad, nad_at, nads, network};
use crate::processes::wait;

/// A rule denies it.
const BAD: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":9999}"#;
/// It has no resourceName.
const BARE: &str = r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","vlan":0}"#;

fn networks(namespace: &str) -> String {
    format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{namespace}/sriovnetworks")
}

/// A network of that namespace whose NAD goes to `apps`.
fn network_in(namespace: &str, name: &str) -> Value {
    let mut network = network(TestNetworkKind::Sriov, name, "apps", &json!({}));
    network["metadata"]["namespace"] = namespace.into();
    network
}

/// The operator's configuration, which every user with permission for its kind may create.
fn config(cluster: &TestCluster, namespace: &str) {
    let path = format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{namespace}/sriovoperatorconfigs");
    let config = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovOperatorConfig",
        "metadata": { "name": "default" }, "spec": {} });
    cluster.admin.create(&path, &config);
}

/// A Deployment that sets a prefix, and its service account.
fn deployment(cluster: &TestCluster, namespace: &str, name: &str, account: &str, prefix: &str) {
    let labels = json!({ "app": name });
    let env = json!([{ "name": "RESOURCE_PREFIX", "value": prefix }]);
    let pod = json!({ "serviceAccountName": account, "containers": [{ "name": "x", "image": "x", "env": env }] });
    let spec =
        json!({ "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels }, "spec": pod } });
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    cluster.admin.create(&path, &json!({ "metadata": { "name": name }, "spec": spec }));
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    cluster.admin.create(&accounts, &json!({ "metadata": { "name": account } }));
}

/// Grants an account write permission for NADs and networks: in its own namespace, as tenants have it, or in all.
pub fn grant(cluster: &TestCluster, subject: &Value, namespace: Option<&str>) {
    let kind = if namespace.is_some() { "rolebindings" } else { "clusterrolebindings" };
    let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let name = format!("networks-of-{}", subject["name"].as_str().unwrap());
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "networks" });
    let binding = json!({ "metadata": { "name": name }, "roleRef": role, "subjects": [subject] });
    cluster.admin.create(&format!("/apis/rbac.authorization.k8s.io/v1/{place}{kind}"), &binding);
}

fn account(namespace: &str, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace })
}

/// A tenant's objects that look like the operator's.
fn lookalike(cluster: &TestCluster) {
    cluster.namespace("tenant");
    config(cluster, "tenant");
    deployment(cluster, "tenant", "sriov-network-operator", "sriov-network-operator", "evil.io");
    grant(cluster, &account("tenant", "sriov-network-operator"), Some("tenant"));
}

/// Deletes the objects that identify the operator.
fn no_operator(cluster: &TestCluster) {
    cluster.admin.delete(&format!("/apis/apps/v1/namespaces/{OPERATOR}/deployments/sriov-network-operator"));
}

fn is_denied(answer: Result<Value, ApiRejection>, rule: &str) -> bool {
    match answer {
        Ok(_) => false,
        Err(error) => {
            assert!(error.message.contains(rule), "{error:?}");
            true
        }
    }
}

#[test]
fn lookalike_is_not_the_operator() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    lookalike(&cluster);
    cluster.deploy();
    let tenants = cluster.user("lookalike");
    let dry_run = |path: String| format!("{path}?dryRun=All");

    // It is not the operator, so its mistakes are denied; the real operator is still recognized.
    assert!(is_denied(tenants.try_create(&dry_run(nads("tenant")), &nad("x", BAD)), "sriov/vlan"));
    cluster.user("operator").create(&dry_run(nads("apps")), &nad("x", BAD));

    // Its namespace is not the operator's, whose networks may have other target namespaces.
    let sent = tenants.try_create(&dry_run(networks("tenant")), &network_in("tenant", "x"));
    assert!(is_denied(sent, "network/target-namespace"));
    cluster.jane.create(&networks(OPERATOR), &network_in(OPERATOR, "net"));

    // Networks are looked up in the operator's namespace, and the prefix is the operator's: a tenant's network with the same target,
    // stored before nadmit, changes nothing.
    cluster.kill_nadmit();
    tenants.create(&networks("tenant"), &network_in("tenant", "other"));
    cluster.jane.create(&networks(OPERATOR), &network_in(OPERATOR, "other"));
    cluster.deploy();
    for name in ["net", "other"] {
        let made = cluster.jane.create(&nads("apps"), &nad(name, BARE));
        assert_eq!(annotated(&made), Some(&*format!("{PREFIX}/cx7")), "{made:#}");
    }
}

/// Two namespaces with a real operator each: both are recognized.
#[test]
fn several_operators_are_recognized() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    cluster.namespace("network-operator");
    lookalike(&cluster);
    config(&cluster, "network-operator");
    deployment(&cluster, "network-operator", "network-operator-sriov", "network-operator-sriov", "nvidia.com");
    cluster.deploy();
    let dry_run = |namespace: &str| format!("{}?dryRun=All", networks(namespace));
    let is_foreign = |namespace: &str| {
        let sent = cluster.jane.try_create(&dry_run(namespace), &network_in(namespace, "net"));
        is_denied(sent, "network/target-namespace")
    };
    // Without the permission it is not an operator yet; with it, it is recognized within a minute, and the first one still is.
    assert!(is_foreign("network-operator") && !is_foreign(OPERATOR));
    grant(&cluster, &account("network-operator", "network-operator-sriov"), None);
    wait("the second operator", || (!is_foreign("network-operator")).then_some(()));
    assert!(is_foreign("tenant") && !is_foreign(OPERATOR));

    // Each has its own prefix.
    for (namespace, name, prefix) in [(OPERATOR, "one", PREFIX), ("network-operator", "two", "nvidia.com")] {
        cluster.jane.create(&networks(namespace), &network_in(namespace, name));
        let made = cluster.jane.create(&nads("apps"), &nad(name, BARE));
        assert_eq!(annotated(&made), Some(&*format!("{prefix}/cx7")), "{made:#}");
    }
}

/// Helm names the Deployment and the account after the release.
#[test]
fn renamed_operator_is_recognized() {
    let mut cluster = TestCluster::start();
    no_operator(&cluster);
    cluster.namespace("apps");
    cluster.namespace("network-operator");
    config(&cluster, "network-operator");
    deployment(
        &cluster,
        "network-operator",
        "network-operator-sriov-network-operator",
        "network-operator-sriov",
        "nvidia.com",
    );
    grant(&cluster, &account("network-operator", "network-operator-sriov"), None);
    cluster.deploy();
    let released = cluster.user("released");
    released.create(&networks("network-operator"), &network_in("network-operator", "net"));
    let mut bare = nad("net", BARE);
    let owner = "SriovNetwork.sriovnetwork.openshift.io/network-operator/net";
    bare["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
    let made = released.create(&nads("apps"), &bare);
    assert_eq!(annotated(&made), Some("nvidia.com/cx7"), "{made:#}");
    // The operator is not denied for the mistakes of a network's author.
    released.create(&format!("{}?dryRun=All", nads("apps")), &nad("other", BAD));
    // The usual namespace of the operator has no special rights without an operator.
    let sent = cluster.jane.try_create(&format!("{}?dryRun=All", networks(OPERATOR)), &network_in(OPERATOR, "net"));
    assert!(is_denied(sent, "network/target-namespace"));
}

/// The NAD that the operator renders for a stored network.
fn rendered(network: &Value) -> Value {
    let text = network.to_string();
    let Ok(Some(Object::Network(network))) = Object::read(&text) else { panic!("{text}") };
    serde_json::from_str(&render(&network, PREFIX).nad_json().unwrap()).unwrap()
}

/// Nothing identifies the operator. An account with its permissions may write the NAD that an existing network renders, and no other.
#[test]
fn rendered_nad_is_not_denied_without_known_operator() {
    let mut cluster = TestCluster::start();
    no_operator(&cluster);
    cluster.namespace("apps");
    cluster.namespace("elsewhere");
    // Stored before nadmit: pods cannot use it, but its operator must not retry indefinitely.
    let stored = cluster.jane.create(&networks("elsewhere"), &{
        let mut network = network_in("elsewhere", "old");
        network["spec"]["vlan"] = json!(4096);
        network
    });
    grant(&cluster, &account("elsewhere", "renderer"), None);
    cluster.namespace("tenant");
    grant(&cluster, &json!({ "kind": "User", "name": "tom" }), Some("apps"));
    cluster.deploy();
    let made = rendered(&stored);
    let dry_run = format!("{}?dryRun=All", nads("apps"));
    assert!(
        is_denied(cluster.user("tenant").try_create(&dry_run, &made), "sriov/vlan"),
        "a tenant has no such permission"
    );
    let stranger = cluster.user("stranger");
    stranger.create(&dry_run, &made);
    // Values that the network does not set are not excused, nor is a NAD that no network renders.
    let mut changed = made.clone();
    changed["spec"]["config"] = made["spec"]["config"].as_str().unwrap().replace("4096", "4097").into();
    assert_ne!(changed, made);
    assert!(is_denied(stranger.try_create(&dry_run, &changed), "sriov/vlan"));
    assert!(is_denied(stranger.try_create(&dry_run, &nad("nobodys", BAD)), "sriov/vlan"));
    cluster.jane.delete(&format!("{}/old", networks("elsewhere")));
    assert!(is_denied(stranger.try_create(&dry_run, &made), "sriov/vlan"));
}

/// Every author may write an owner-ref and a resource name. Only NADs that a network really renders reveal the operator's prefix.
#[test]
fn forged_owner_ref_does_not_set_the_prefix() {
    let mut cluster = TestCluster::start();
    no_operator(&cluster);
    cluster.namespace("apps");
    cluster.namespace("tenant");
    let owner = |name: &str| format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{name}");
    let mut poisoned = nad("net", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    poisoned["metadata"]["annotations"] = json!({
        "sriovnetwork.openshift.io/owner-ref": owner("net"), "k8s.v1.cni.cncf.io/resourceName": "evil.io/cx7" });
    cluster.jane.create(&nads("tenant"), &poisoned);
    for name in ["net", "sibling"] {
        cluster.jane.create(&networks(OPERATOR), &network_in(OPERATOR, name));
    }
    cluster.deploy();
    let mut bare = nad("net", BARE);
    bare["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner("net") });
    let error = cluster.jane.try_create(&nads("apps"), &bare).unwrap_err();
    assert!(
        error.message.contains("resourceName: {prefix: <domain>}") && !error.message.contains("evil.io"),
        "the message names the setting: {error:?}"
    );
    // The operator has rendered another network.
    let sibling = cluster.admin.get(&format!("{}/sibling", networks(OPERATOR))).unwrap();
    cluster.jane.create(&nads("apps"), &rendered(&sibling));
    let made = cluster.jane.create(&nads("apps"), &bare);
    assert_eq!(annotated(&made), Some("openshift.io/cx7"), "{made:#}");
    cluster.jane.wait(&nad_at("apps", "net"), |_| true);
}
