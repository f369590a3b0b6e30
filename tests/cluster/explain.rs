//! `nadmit explain pod` beside a real API server, with nodes and pods that nothing runs: as an administrator, and as a tenant who
//! may not list nodes.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const TEAM: &str = "team-a";

/// The exit code, the report, and what was printed.
fn explain(cluster: &TestCluster, user: &str, arguments: &[&str]) -> (i32, Value, String) {
    let mut command = nadmit(&["explain", "pod", "--output", "json"]);
    command.args(arguments).env("KUBECONFIG", cluster.kubeconfig(user));
    let out = run(command);
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.code().unwrap(), serde_json::from_slice(&out.stdout).unwrap_or_default(), text)
}

fn create_node(cluster: &TestCluster, name: &str, site: &str, devices: &str) {
    let node = json!({ "metadata": { "name": name, "labels": { "site": site } } });
    cluster.admin.create("/api/v1/nodes", &node);
    // The API server makes each new node one that is not ready yet.
    cluster.admin.patch(&format!("/api/v1/nodes/{name}"), &json!({ "spec": { "taints": null } }));
    let devices = json!({ "openshift.io/cx7": devices, "cpu": "2" });
    let status = json!({ "status": { "capacity": devices, "allocatable": devices } });
    cluster.admin.patch(&format!("/api/v1/nodes/{name}/status"), &status);
}

/// A pod that selects these networks; no ServiceAccount controller runs.
fn create_pod(cluster: &TestCluster, name: &str, networks: &str, devices: &str) {
    let limits = if devices == "0" { json!({}) } else { json!({ "openshift.io/cx7": devices }) };
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "annotations": { "k8s.v1.cni.cncf.io/networks": networks } },
        "spec": { "automountServiceAccountToken": false, "nodeSelector": { "site": "north" },
            "containers": [{ "name": "c", "image": "i", "resources": { "limits": limits } }] } });
    cluster.admin.create(&format!("/api/v1/namespaces/{TEAM}/pods"), &pod);
}

#[test]
fn pods_are_explained_with_the_callers_permissions() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    cluster.namespace(TEAM);
    cluster.namespace("shared");
    cluster.operator_is_available(1);
    create_node(&cluster, "node-1", "north", "2");
    create_node(&cluster, "node-2", "north", "1");
    create_node(&cluster, "node-3", "south", "8");
    let policy = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy",
        "metadata": { "name": "cx7", "namespace": OPERATOR },
        "spec": { "resourceName": "cx7", "nodeSelector": {}, "nicSelector": {}, "numVfs": 4 } });
    cluster
        .admin
        .create(&format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodepolicies"), &policy);
    let sriov = network(TestNetworkKind::Sriov, "net", TEAM, &json!({ "vlan": 5 }));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &sriov);
    cluster.jane.wait(&nad_at(TEAM, "net"), |_| true);
    cluster.admin.create(
        &nads("shared"),
        &nad("management", r#"{"cniVersion":"1.0.0","type":"macvlan","ipam":{"type":"dhcp"}}"#),
    );
    create_pod(&cluster, "web", "net, net@fast, shared/management", "2");

    let (code, report, text) = explain(&cluster, "admin", &["web", "--namespace", TEAM]);
    let pod = &report["pods"][0];
    assert_eq!((code, &pod["state"]), (0, &json!("good")), "{text}");
    let interfaces: Vec<_> =
        pod["interfaces"].as_array().unwrap().iter().map(|one| (&one["name"], &one["device"]["place"])).collect();
    assert_eq!(interfaces, [(&json!("net1"), &json!(1)), (&json!("fast"), &json!(2)), (&json!("net3"), &Value::Null)]);
    let first = &pod["interfaces"][0];
    assert_eq!((&first["vlan"]["id"], &first["device"]["resource"]), (&json!(5), &json!("openshift.io/cx7")), "{text}");
    assert_eq!(pod["interfaces"][2]["addresses"][0]["plugin"], "dhcp");
    let nodes: Vec<_> =
        pod["nodes"]["nodes"].as_array().unwrap().iter().map(|node| (&node["name"], &node["fits"])).collect();
    let want = [("node-1", true), ("node-2", false), ("node-3", false)].map(|(name, fits)| (json!(name), json!(fits)));
    assert_eq!(nodes, want.each_ref().map(|(name, fits)| (name, fits)), "{text}");
    assert_eq!(pod["nodes"]["needs"][0]["policies"], json!(["cx7"]));

    // What would keep a pod from starting: the same as doctor finds.
    create_pod(&cluster, "broken", "gone, net", "0");
    let (code, report, text) = explain(&cluster, "admin", &["team-a/broken"]);
    let pod = &report["pods"][0];
    assert_eq!((code, &pod["state"]), (1, &json!("broken")), "{text}");
    assert_eq!(
        (&pod["interfaces"][0]["nad"]["state"], &pod["interfaces"][1]["device"]["from"]),
        (&json!("absent"), &json!("too-few")),
        "{text}"
    );
    let mut doctor = nadmit(&["doctor", "pod", "team-a/broken", "--output", "json"]);
    doctor.env("KUBECONFIG", cluster.kubeconfig("admin"));
    let doctor: Value = serde_json::from_slice(&run(doctor).stdout).unwrap();
    assert_eq!((&doctor["state"], &doctor["nads"][0]["state"]), (&json!("broken"), &json!("absent")));
    create_pod(&cluster, "unreadable", "a@b@c", "0");
    let (code, report, text) = explain(&cluster, "admin", &["unreadable", "-n", TEAM]);
    assert_eq!((code, &report["pods"][0]["selection"]), (1, &json!("unreadable")), "{text}");
    let (code, _, text) = explain(&cluster, "admin", &["none", "-n", TEAM]);
    assert!(code == 2 && text.contains("pod team-a/none does not exist"), "{text}");

    // A tenant sees their pod and their NADs, and learns which permissions are missing.
    let (code, _, text) = explain(&cluster, "tenant", &["web", "-n", TEAM]);
    assert!(code == 2 && text.contains("missing permission: get pods in namespace team-a"), "{text}");
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}");
    let rules = json!([
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
        { "apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": ["get"] },
    ]);
    cluster.admin.create(&format!("{rbac}/roles"), &json!({ "metadata": { "name": "reader" }, "rules": rules }));
    let binding = json!({ "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tom" }] });
    cluster.admin.create(&format!("{rbac}/rolebindings"), &binding);
    let (report, text) = wait("the tenant's permissions", || {
        let (code, report, text) = explain(&cluster, "tenant", &["web", "-n", TEAM]);
        (code == 0 && report["pods"][0]["interfaces"][0]["nad"]["state"] == "found").then_some((report, text))
    });
    let pod = &report["pods"][0];
    assert_eq!((&pod["state"], &pod["interfaces"][0]["state"]), (&json!("unknown"), &json!("good")), "{text}");
    assert_eq!(pod["nodes"]["reason"], "missing permission: list nodes", "{text}");
    assert_eq!(pod["nodes"]["needs"][0]["policies"], Value::Null);
    let other = &pod["interfaces"][2]["nad"];
    let words = format!("missing permission: get {} in namespace shared", "network-attachment-definitions");
    assert_eq!((&other["state"], &other["reason"]), (&json!("unknown"), &json!(words)), "{text}");
}
