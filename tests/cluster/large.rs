//! Objects as large as the API server accepts: their authors do not decide how much memory nadmit uses.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nads, network};

/// How many objects of each sort; a hundred would exceed the pod's limit.
const EACH: usize = 40;
/// The most memory that the replica may use, in MiB. The pod's limit is 128.
const PEAK: usize = 80;

/// The objects; the API server accepts at most 1.5 MiB each.
fn largest(number: usize) -> [(String, Value); 3] {
    let large = "x".repeat(1_200_000);
    let named = network(TestNetworkKind::Sriov, &format!("named-{number}"), "apps", &json!({ "resourceName": large }));
    let ipam = format!(r#"{{"type":"static","x":"{large}"}}"#);
    let filled = network(TestNetworkKind::Sriov, &format!("filled-{number}"), "apps", &json!({ "ipam": ipam }));
    let config = format!(r#"{{"cniVersion":"1.0.0","type":"sriov","x":"{}"}}"#, "x".repeat(900_000));
    let mut owned = nad(&format!("owned-{number}"), &config);
    let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{}", "n".repeat(200_000));
    owned["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
    [(TestNetworkKind::Sriov.path(), named), (TestNetworkKind::Sriov.path(), filled), (nads("apps"), owned)]
}

#[test]
fn the_largest_objects_do_not_fill_memory() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    for number in 0..EACH {
        for (path, object) in largest(number) {
            cluster.admin.create(&path, &object);
        }
    }
    cluster.deploy();
    cluster.nadmit().wait_for_line("audited the cluster");
    let peak = |what: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", cluster.nadmit().pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let mebibytes = line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10;
        println!("{what}: {mebibytes} MiB");
        assert!(mebibytes < PEAK, "{what}: {mebibytes} MiB");
    };
    peak("listed, watched and audited");

    // The operator writes the NADs of all networks at once, and nadmit reads the network of each.
    let operator = cluster.user("operator");
    let path = format!("{}?dryRun=All", nads("apps"));
    let writes = |number: usize| {
        let name = format!("filled-{}", number % EACH);
        let mut made = nad(&name, r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#);
        let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{name}");
        made["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
        let stored = operator.create(&path, &made);
        assert!(stored["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"].is_string(), "{stored:#}");
    };
    thread::scope(|scope| (0..2 * EACH).for_each(|number| drop(scope.spawn(move || writes(number)))));
    peak("owners read");
}
