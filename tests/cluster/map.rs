//! `nadmit map` of a real API server: with all permissions, and with those of a tenant in one namespace.

use std::process::Output;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const TEAM: &str = "team-a";
const WHEREABOUTS: &str = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system";

fn map(cluster: &TestCluster, user: &str, arguments: &[&str]) -> Output {
    let mut command = nadmit(&["map", "--output", "json"]);
    command.args(arguments).env("KUBECONFIG", cluster.kubeconfig(user));
    run(command)
}

fn json_of(out: &Output) -> Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The names in a list of a map, with their namespaces.
fn names(map: &Value, list: &str) -> Vec<String> {
    let rows = map[list].as_array().unwrap().iter();
    rows.map(|row| match row["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", row["name"].as_str().unwrap()),
        None => row["name"].as_str().or(row["id"].as_str()).unwrap().to_owned(),
    })
    .collect()
}

fn unknown(map: &Value) -> Vec<String> {
    let parts = map["unknown"].as_array().unwrap().iter();
    parts.map(|part| format!("{}: {}", part["what"].as_str().unwrap(), part["why"].as_str().unwrap())).collect()
}

/// The kinds of whereabouts, as far as they are read.
fn create_whereabouts(cluster: &TestCluster) {
    for (kind, plural) in [("IPPool", "ippools"), ("OverlappingRangeIPReservation", "overlappingrangeipreservations")] {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        let crd = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.whereabouts.cni.cncf.io") },
            "spec": { "group": "whereabouts.cni.cncf.io", "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
                "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": schema }] } });
        cluster.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    let pool = json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "IPPool", "metadata": { "name": "10.20.0.0-24" },
        "spec": { "range": "10.20.0.0/24", "allocations": { "1": { "id": "x", "podref": format!("{TEAM}/web-0"), "ifname": "net1" } } } });
    let reservation = json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "OverlappingRangeIPReservation",
        "metadata": { "name": "10.20.0.9" }, "spec": { "podref": "other/web-0" } });
    for (path, object) in [("ippools", pool), ("overlappingrangeipreservations", reservation)] {
        let path = format!("{WHEREABOUTS}/{path}");
        wait("the CRD", || cluster.admin.try_create(&path, &object).ok());
        wait("its list", || cluster.admin.get(&path));
    }
}

fn create_objects(cluster: &TestCluster) {
    for namespace in [TEAM, "other"] {
        cluster.namespace(namespace);
        let config = r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth1","ipam":{"type":"whereabouts","range":"10.20.0.0/24"}}"#;
        cluster.admin.create(&nads(namespace), &nad("lan", config));
        let account = json!({ "metadata": { "name": "default" } });
        let _ = cluster.admin.try_create(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account);
        let pod = json!({ "metadata": { "name": "web-0", "annotations": { "k8s.v1.cni.cncf.io/networks": "lan,rendered" } },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "web", "image": "web",
                "resources": { "requests": { "openshift.io/cx7": "1" }, "limits": { "openshift.io/cx7": "1" } } }] } });
        wait("the pod", || cluster.admin.try_create(&format!("/api/v1/namespaces/{namespace}/pods"), &pod).ok());
    }
    let made = network(TestNetworkKind::Sriov, "rendered", TEAM, &json!({ "vlan": 30 }));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &made);
    cluster.admin.wait(&nad_at(TEAM, "rendered"), |_| true);
    cluster.admin.create("/api/v1/nodes", &json!({ "metadata": { "name": "node-1" } }));
    let devices = json!({ "openshift.io/cx7": "4", "cpu": "2" });
    let status = json!({ "status": { "capacity": devices, "allocatable": devices } });
    cluster.admin.patch("/api/v1/nodes/node-1/status", &status);
    let of_operator = |plural: &str| format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/{plural}");
    let policy = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": "cx7" },
        "spec": { "resourceName": "cx7", "nodeSelector": { "a": "b" }, "nicSelector": { "pfNames": ["ens1#0-3"] }, "numVfs": 4 } });
    cluster.admin.create(&of_operator("sriovnetworknodepolicies"), &policy);
    let state = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": { "name": "node-1" },
        "spec": { "interfaces": [{ "pciAddress": "0000:3b:00.0", "name": "ens1", "numVfs": 4,
            "vfGroups": [{ "resourceName": "cx7", "vfRange": "0-3", "policyName": "cx7" }] }] } });
    cluster.admin.create(&of_operator("sriovnetworknodestates"), &state);
}

/// Gives the tenant the permission to list NADs and pods in their namespace.
fn allow(cluster: &TestCluster) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}");
    let rules = json!([
        { "apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": ["list"] },
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] },
    ]);
    cluster.admin.create(&format!("{rbac}/roles"), &json!({ "metadata": { "name": "reader" }, "rules": rules }));
    let binding = json!({ "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tom" }] });
    cluster.admin.create(&format!("{rbac}/rolebindings"), &binding);
    let may = ["auth", "can-i", "list", "pods", "--namespace", TEAM];
    wait("the tenant's permissions", || cluster.kubectl("tenant", &may, "").status.success().then_some(()));
}

#[test]
fn a_map_shows_what_its_reader_may_read() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    create_whereabouts(&cluster);
    create_objects(&cluster);

    let out = map(&cluster, "admin", &[]);
    let all = json_of(&out);
    assert_eq!(unknown(&all), [] as [&str; 0]);
    assert_eq!(names(&all, "nads"), ["other/lan", "team-a/lan", "team-a/rendered"]);
    assert_eq!(names(&all, "networks"), [format!("{OPERATOR}/rendered")]);
    assert_eq!(names(&all, "users"), ["other/web-0", "team-a/web-0"]);
    let rendered = &all["nads"][2];
    assert_eq!((&rendered["is_stored"], &rendered["vlan"]), (&json!(true), &json!(30)), "{rendered:#}");
    let range = &all["ranges"][0];
    let shown = ["leases", "used", "reserved_elsewhere", "pools"].map(|field| range[field].clone());
    assert_eq!(shown, [json!("ip-pool"), json!(1), json!(1), json!(["kube-system/10.20.0.0-24"])], "{range:#}");
    let resource = &all["resources"][0];
    assert_eq!((&resource["allocatable"], &resource["requested"]), (&json!(4), &json!(2)), "{resource:#}");
    assert_eq!(all["pfs"][0]["partitions"][0]["policy"], "cx7");
    assert_eq!(map(&cluster, "admin", &["-A"]).stdout, out.stdout, "equal input gives equal bytes");
    // It is the page, too.
    let mut page = nadmit(&["map"]);
    page.env("KUBECONFIG", cluster.kubeconfig("admin"));
    assert!(String::from_utf8_lossy(&run(page).stdout).starts_with("<!doctype html>"));

    // One namespace has the network that renders into it.
    let one = json_of(&map(&cluster, "admin", &["-n", TEAM]));
    assert_eq!(names(&one, "nads"), ["team-a/lan", "team-a/rendered"]);
    assert_eq!(names(&one, "networks"), [format!("{OPERATOR}/rendered")]);
    assert_eq!(names(&one, "users"), ["team-a/web-0"]);

    // A tenant without permissions reads nothing, and with those of one namespace only that.
    let out = map(&cluster, "tenant", &["-n", TEAM]);
    assert_eq!(out.status.code(), Some(2));
    allow(&cluster);
    let out = map(&cluster, "tenant", &[]);
    let error = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), error.contains("pass --namespace NAME")), (Some(2), true), "{error}");
    let out = map(&cluster, "tenant", &["-n", TEAM]);
    let own = json_of(&out);
    assert_eq!(names(&own, "nads"), ["team-a/lan", "team-a/rendered"]);
    assert_eq!(names(&own, "users"), ["team-a/web-0"]);
    for list in ["networks", "policies", "pfs", "leases"] {
        assert_eq!(own[list], json!([]), "{list}");
    }
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(!text.contains("other/") && !text.contains("node-policies\":[{"), "{text}");
    let parts = unknown(&own);
    for want in [
        "SriovNetworks: missing permission: list sriovnetworks in namespace team-a",
        "SriovNetworks of other namespaces: missing permission: list sriovnetworks in all namespaces",
        "SriovNetworkNodePolicies: missing permission: list sriovnetworknodepolicies in all namespaces",
        "SriovNetworkNodeStates: missing permission: list sriovnetworknodestates in all namespaces",
        "nodes: missing permission: list nodes",
        "IPPools: missing permission: list ippools in all namespaces",
        "OverlappingRangeIPReservations: missing permission: list overlappingrangeipreservations in all namespaces",
    ] {
        assert!(parts.iter().any(|part| part == want), "{want}: {parts:#?}");
    }
    assert_eq!(own["ranges"][0]["leases"], "unknown");
    assert_eq!(own["resources"][0].get("allocatable"), None);
}
