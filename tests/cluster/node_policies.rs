//! Node policies on a real API server: warnings when they are written, findings when they are stored, and nothing is ever denied.

use serde_json::{Value, json};

use crate::audit::give_reader_its_rights;
use crate::cluster::TestCluster;
use crate::continuous_audit::{wait_clean, wait_for_message};
use crate::facts::{knows_all, warnings};
use crate::harness::nadmit;
use crate::objects::OPERATOR;
use crate::processes::wait;

fn path() -> String {
    format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodepolicies")
}

fn at(name: &str) -> String {
    format!("{}/{name}", path())
}

/// A policy on that selection of PFs.
fn policy(name: &str, resource: &str, nics: &Value) -> Value {
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": { "name": name, "namespace": OPERATOR },
        "spec": { "resourceName": resource, "numVfs": 8, "nodeSelector": { "pool": "a" }, "nicSelector": nics },
    })
}

/// The state of a node with one PF.
fn create_node_state(cluster: &TestCluster, node: &str) {
    let states = format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodestates");
    let state = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodeState",
        "metadata": { "name": node },
    });
    cluster.admin.create(&states, &state);
    let pf = json!({ "name": "ens1", "pciAddress": "0000:3b:00.0", "vendor": "15b3", "deviceID": "101d" });
    let status = json!({ "status": { "interfaces": [pf] } });
    cluster.admin.patch(&format!("{states}/{node}/status"), &status);
}

/// The warnings that a person gets who applies a policy in a dry run.
fn warned(cluster: &TestCluster, policy: &Value) -> String {
    let out = cluster.kubectl("admin", &["apply", "--dry-run=server", "-f", "-"], &policy.to_string());
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{text}");
    text
}

#[test]
fn policies_are_warned_about_when_written() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    knows_all(cluster.nadmit());
    let low = policy("low", "cx7", &json!({ "pfNames": ["ens1#0-3"] }));
    let high = policy("high", "cx7", &json!({ "pfNames": ["ens1#4-7"] }));
    assert!(!warned(&cluster, &high).contains("node-policy/"));
    cluster.admin.create(&path(), &low);
    wait("the warning", || warned(&cluster, &high).contains("node-policy/same-name-one-pf").then_some(()));
    assert!(warned(&cluster, &high).contains("policy `low` has resourceName `cx7` on the same PF"));
    // Once stored, the policy itself is not another one, and what is wrong with it alone is a warning, too.
    cluster.admin.create(&path(), &high);
    wait("both policies", || warned(&cluster, &low).contains("policy `high`").then_some(()));
    assert!(!warned(&cluster, &high).contains("policy `high`"));
    let reversed = policy("reversed", "cx8", &json!({ "pfNames": ["ens2#3-0"] }));
    assert!(warned(&cluster, &reversed).contains("node-policy/vf-range"));
    cluster.admin.create(&path(), &reversed);
    // Another resource, and the same warning is gone.
    let renamed = policy("high", "cx7_high", &json!({ "pfNames": ["ens1#4-7"] }));
    assert!(!warned(&cluster, &renamed).contains("same-name-one-pf"));
    // A network on InfiniBand devices.
    let mut infiniband = policy("ib", "cx6", &json!({ "pfNames": ["ib0"] }));
    infiniband["spec"]["linkType"] = json!("IB");
    cluster.admin.create(&path(), &infiniband);
    let network = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": { "name": "net", "namespace": OPERATOR },
        "spec": { "resourceName": "cx6", "networkNamespace": "default" },
    });
    wait("the link type", || warnings(&cluster, &network).contains("network/link-type").then_some(()));
}

#[test]
fn stored_policies_are_audited_until_they_are_fixed() {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    create_node_state(&cluster, "w1");
    // The names of one PF that only the state of a node compares.
    cluster.admin.create(&path(), &policy("address", "cx7_all", &json!({ "rootDevices": ["0000:3b:00.0"] })));
    cluster.admin.create(&path(), &policy("name", "cx7_high", &json!({ "pfNames": ["ens1#4-7"] })));
    cluster.deploy();
    give_reader_its_rights(&cluster);
    let audit = |cluster: &TestCluster, user: &str| {
        let out = nadmit(&["audit", "--output=json", "--kubeconfig"]).arg(cluster.kubeconfig(user)).output().unwrap();
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let rules = |report: &Value| -> Vec<String> {
        let documents = report["documents"].as_array().unwrap();
        let findings = documents.iter().flat_map(|document| document["findings"].as_array().unwrap());
        let line = |finding: &Value| format!("{} {}", finding["rule"], finding["action"]).replace('"', "");
        findings.map(line).filter(|line| line.starts_with("node-policy/")).collect()
    };
    assert_eq!(rules(&audit(&cluster, "auditor")), ["node-policy/overlap warn"; 2]);
    let overlap = wait_for_message(&cluster, OPERATOR, &at("address"), "node-policy/overlap");
    assert!(overlap.contains("`ens1` of node `w1`") && overlap.contains("policy `name`"), "{overlap}");
    wait_for_message(&cluster, OPERATOR, &at("name"), "node-policy/overlap");
    let fix = json!({ "spec": { "nicSelector": { "rootDevices": null, "pfNames": ["ens1#0-3"] } } });
    cluster.admin.patch(&at("address"), &fix);
    for name in ["address", "name"] {
        wait_clean(&cluster, OPERATOR, &at(name));
    }
    assert_eq!(rules(&audit(&cluster, "auditor")), [] as [&str; 0]);
    // A deletion is not reviewed.
    for name in ["address", "name"] {
        cluster.admin.delete(&at(name));
    }
}
