//! `nadmit doctor` beside the real operator: the tests break each link in turn, wait, and run a canary.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::audit::deny_nads_in;
use crate::cluster::TestCluster;
use crate::harness::{nadmit, run, signal};
use crate::objects::{OPERATOR, TestNetworkKind, annotated, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

/// A report of `nadmit doctor`.
struct DoctorReport {
    code: i32,
    report: Value,
    text: String,
}

impl DoctorReport {
    /// Each link's state.
    fn states(&self) -> BTreeMap<&str, &str> {
        let steps = self.report["steps"].as_array().into_iter().flatten();
        steps.map(|step| (step["step"].as_str().unwrap(), step["state"].as_str().unwrap())).collect()
    }

    fn step(&self, name: &str) -> &Value {
        let steps = self.report["steps"].as_array().unwrap_or_else(|| panic!("{}", self.text));
        steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("{name}: {}", self.text))
    }

    /// The links that are not ok.
    fn others(&self) -> Vec<(&str, &str)> {
        self.states().into_iter().filter(|(_, state)| *state != "good").collect()
    }
}

impl DoctorReport {
    /// The same without the network itself, on which newer operators report what they wait for.
    fn others_than_network(&self) -> Vec<(&str, &str)> {
        self.others().into_iter().filter(|(link, _)| *link != "network").collect()
    }
}

fn command(cluster: &TestCluster, user: &str, arguments: &[&str]) -> Command {
    let mut command = nadmit(&["doctor", "--output", "json"]);
    command.args(arguments).env("KUBECONFIG", cluster.kubeconfig(user));
    command
}

fn doctor(cluster: &TestCluster, user: &str, arguments: &[&str]) -> DoctorReport {
    let out = run(command(cluster, user, arguments));
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    DoctorReport {
        code: out.status.code().unwrap(),
        report: serde_json::from_slice(&out.stdout).unwrap_or_default(),
        text,
    }
}

/// The human output.
fn human(cluster: &TestCluster, name: &str) -> String {
    let mut command = nadmit(&["doctor", name, "--color", "never"]);
    command.env("KUBECONFIG", cluster.kubeconfig("admin"));
    let text = String::from_utf8_lossy(&run(command).stdout).into_owned();
    println!("{text}");
    text
}

/// A node with devices, and the node policy that created them.
fn create_prerequisites(cluster: &TestCluster) {
    cluster.namespace("apps");
    cluster.operator_is_available(1);
    cluster.admin.create("/api/v1/nodes", &json!({ "metadata": { "name": "node-1" } }));
    let devices = json!({ "openshift.io/cx7": "4", "cpu": "2" });
    let status = json!({ "status": { "capacity": devices, "allocatable": devices } });
    cluster.admin.patch("/api/v1/nodes/node-1/status", &status);
    let policy = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy",
        "metadata": { "name": "cx7", "namespace": OPERATOR },
        "spec": { "resourceName": "cx7", "nodeSelector": {}, "nicSelector": {}, "numVfs": 4 },
    });
    let path = format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodepolicies");
    cluster.admin.create(&path, &policy);
}

fn create(cluster: &TestCluster, name: &str, namespace: &str, fields: &Value) {
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, name, namespace, fields));
}

#[test]
fn doctor_reports_each_broken_link() {
    let mut cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    create_prerequisites(&cluster);
    create(&cluster, "net", "apps", &json!({ "vlan": 5 }));
    cluster.jane.wait(&nad_at("apps", "net"), |_| true);
    let whole = format!("SriovNetwork/{OPERATOR}/net");
    for named in ["net", &whole, &whole.replace("SriovNetwork/", "")] {
        let found = doctor(&cluster, "admin", &[named]);
        assert_eq!((found.code, found.others(), found.states().len()), (0, vec![], 8), "{}", found.text);
        assert!(found.step("pods")["says"].as_str().unwrap().contains("has 4 of `openshift.io/cx7`"), "{}", found.text);
    }

    // The images of DaemonSets show which releases read the NADs.
    let pod = json!({ "initContainers": [{ "name": "sriov-cni", "image": "ghcr.io/k8snetworkplumbingwg/sriov-cni:v2.8.1" }],
        "containers": [{ "name": "daemon", "image": "daemon:v1.6.0" }] });
    let daemon_set = json!({ "metadata": { "name": "config-daemon" }, "spec": {
        "selector": { "matchLabels": { "app": "config-daemon" } },
        "template": { "metadata": { "labels": { "app": "config-daemon" } }, "spec": pod } } });
    cluster.admin.create(&format!("/apis/apps/v1/namespaces/{OPERATOR}/daemonsets"), &daemon_set);
    let found = doctor(&cluster, "admin", &["net"]);
    assert_eq!((found.code, found.others(), found.states().len()), (0, vec![], 9), "{}", found.text);
    assert_eq!(found.step("releases")["says"], "sriov-cni 2.8.1, by images of DaemonSets");
    let help = found.step("releases")["help"].as_str().unwrap();
    assert!(help.ends_with("`versions: {sriov-cni: \"2.8\"}`"), "{help}");

    // A user with fewer permissions gets the missing ones, and the visible links are ok.
    let found = doctor(&cluster, "jane", &["net"]);
    assert_eq!(found.code, 0, "{}", found.text);
    let unread = ["namespace", "operator", "pods", "releases"].map(|link| (link, "unknown"));
    assert_eq!(found.others(), unread, "{}", found.text);
    assert_eq!(found.step("releases")["says"], "unknown: missing permission: list daemonsets");
    assert_eq!(found.step("pods")["says"], "unknown: missing permission: list nodes");
    let found = doctor(&cluster, "putter", &[&whole]);
    assert!(
        found.text.contains(&format!("missing permission: get sriovnetworks in namespace {OPERATOR}"))
            && found.code == 2,
        "{}",
        found.text
    );

    // A missing namespace, with the same message as at admission.
    create(&cluster, "early", "later", &json!({}));
    let found = doctor(&cluster, "admin", &["early"]);
    assert_eq!(found.code, 1);
    assert_eq!(
        found.others_than_network(),
        [("NAD", "waiting"), ("namespace", "broken"), ("resourceName", "waiting")],
        "{}",
        found.text
    );
    assert_eq!(found.step("namespace")["findings"][0]["rule"], "network/namespace-absent");
    assert!(human(&cluster, "early").starts_with(&format!("SriovNetwork {OPERATOR}/early: broken at ")));

    // No policy offers the devices, and so no node has them.
    create(&cluster, "other", "apps", &json!({ "resourceName": "cx8" }));
    cluster.jane.wait(&nad_at("apps", "other"), |_| true);
    let found = doctor(&cluster, "admin", &["other"]);
    assert_eq!(
        (found.code, found.others()),
        (1, vec![("node policy", "broken"), ("pods", "broken")]),
        "{}",
        found.text
    );
    assert_eq!(found.step("node policy")["findings"][0]["rule"], "network/no-policy");

    // The operator does not run: existing NADs stay, a new network waits, and a changed network has a stale NAD.
    cluster.stop_operator();
    create(&cluster, "late", "apps", &json!({}));
    let found = doctor(&cluster, "admin", &["late"]);
    assert_eq!(found.code, 1);
    assert_eq!(
        found.others(),
        [("NAD", "waiting"), ("operator", "broken"), ("resourceName", "waiting")],
        "{}",
        found.text
    );
    cluster.jane.patch(&TestNetworkKind::Sriov.at("net"), &json!({ "spec": { "vlan": 6 } }));
    let found = doctor(&cluster, "admin", &["net"]);
    assert_eq!(found.others(), [("NAD", "waiting"), ("operator", "broken")], "{}", found.text);
    assert_eq!(found.step("NAD")["says"], "stale: NAD apps/net has `/vlan` 5, its network has 6", "{}", found.text);

    // A NAD with that name was written by hand.
    cluster.jane.create(&nads("apps"), &nad("hand", r#"{"cniVersion":"1.0.0","type":"sriov"}"#));
    create(&cluster, "hand", "apps", &json!({}));
    let found = doctor(&cluster, "admin", &["hand"]);
    assert_eq!(found.states()["NAD"], "broken", "{}", found.text);
    // The audit reports the difference of stored objects, and doctor shows the finding of the audit.
    assert_eq!(found.step("NAD")["findings"][0]["rule"], "nad/operator-overwrites");
    assert_eq!(found.step("resourceName")["findings"][0]["rule"], "nad/resource-name-missing");

    // An operator whose template has no resourceName.
    cluster.start_operator(OperatorTemplate::Faulty);
    cluster.operator_is_available(1);
    let found = wait("the incomplete NAD", || {
        let nad = cluster.jane.get(&nad_at("apps", "net")).filter(|nad| annotated(nad).is_none());
        nad.map(|_| doctor(&cluster, "admin", &["net"]))
    });
    assert_eq!(found.code, 1);
    assert_eq!(found.others(), [("pods", "waiting"), ("resourceName", "broken")], "{}", found.text);
    let text = human(&cluster, "net");
    assert!(text.starts_with(&format!("SriovNetwork {OPERATOR}/net: broken at resourceName\n")), "{text}");
    assert!(text.contains("\n  ✗ resourceName  ") && text.contains("patch[nad/resource-name-missing]: "), "{text}");

    // A name that several networks have, and one that no network has.
    cluster.jane.create(&TestNetworkKind::Ovs.path(), &network(TestNetworkKind::Ovs, "net", "apps", &json!({})));
    let found = doctor(&cluster, "admin", &["net"]);
    assert!(found.code == 2 && found.text.contains(&format!("OVSNetwork/{OPERATOR}/net")), "{}", found.text);
    let found = doctor(&cluster, "admin", &["absent"]);
    assert_eq!((found.code, found.others()), (1, vec![("network", "broken")]), "{}", found.text);
}

#[test]
fn doctor_waits_and_the_canary_cleans_up() {
    let mut cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    create_prerequisites(&cluster);
    let waiting = command(&cluster, "admin", &["net", "--wait", "60s"]).stdout(Stdio::piped()).spawn().unwrap();
    create(&cluster, "net", "later", &json!({}));
    wait("a reconcile", || (cluster.reconciles(TestNetworkKind::Sriov, "net") >= 1).then_some(()));
    cluster.namespace("later");
    let out = waiting.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &report["state"]), (Some(0), &json!("good")), "{report:#}");
    let found = doctor(&cluster, "admin", &["absent", "--wait", "1500ms"]);
    assert_eq!(found.code, 3, "{}", found.text);

    let found = doctor(&cluster, "admin", &["--canary"]);
    assert!(found.code == 2 && found.text.contains("--yes"), "{}", found.text);
    let found = doctor(&cluster, "admin", &["--canary", "--yes"]);
    println!("canary: {}", found.report["canary"]);
    assert_eq!((found.code, &found.report["canary"]["left"]), (0, &json!([])), "{}", found.text);
    assert!(found.report["canary"]["complete_after"].as_f64().is_some_and(|seconds| seconds < 30.0), "{}", found.text);
    assert!(found.step("NAD")["says"].as_str().unwrap().starts_with("nadmit-canary-"));
    assert_nothing_left(&cluster);

    cluster.stop_operator();
    let found = doctor(&cluster, "admin", &["--canary", "--yes", "--wait", "2s", "--resource-name", "cx7"]);
    assert_eq!((found.code, &found.report["canary"]["left"]), (3, &json!([])), "{}", found.text);
    assert_eq!(found.states()["operator"], "broken");
    assert_nothing_left(&cluster);

    // The user interrupts it.
    let child =
        command(&cluster, "admin", &["--canary", "--yes", "--wait", "60s"]).stderr(Stdio::piped()).spawn().unwrap();
    wait("the canary", || canaries(&cluster).iter().any(|name| name.contains("sriovnetworks")).then_some(()));
    signal(child.id(), "INT");
    let out = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && stderr.contains("interrupted before the operator responded"), "{stderr}");
    assert_nothing_left(&cluster);

    // A user who may create only one of the two objects leaves none behind.
    let policy = cluster.directory().join("doctor-policy.yaml");
    std::fs::write(&policy, format!("operator: {{namespace: {OPERATOR}}}")).unwrap();
    let policy = policy.to_str().unwrap();
    let found = doctor(&cluster, "jane", &["--canary", "--yes", "--resource-name", "cx7", "--policy", policy]);
    assert!(found.code == 2 && found.text.contains("cannot create"), "{}", found.text);
    assert!(!found.text.contains("could not delete"), "{}", found.text);
    assert_nothing_left(&cluster);
}

/// The canary objects that exist.
fn canaries(cluster: &TestCluster) -> Vec<String> {
    let mut all = Vec::new();
    for path in ["/api/v1/namespaces".to_owned(), TestNetworkKind::Sriov.path()] {
        let list = cluster.admin.get(&path).unwrap();
        let names = list["items"].as_array().unwrap().iter().filter_map(|item| item["metadata"]["name"].as_str());
        all.extend(names.filter(|name| name.starts_with("nadmit-canary-")).map(|name| format!("{path}/{name}")));
    }
    all
}

fn assert_nothing_left(cluster: &TestCluster) {
    assert_eq!(canaries(cluster), [""; 0]);
}

/// Newer operators write on the network why they could not create its NAD. This operator does not, so the test writes the condition; the
/// schema of this operator's CRD has no place for it.
#[test]
fn conditions_of_the_operator_are_shown() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    create_prerequisites(&cluster);
    cluster.namespace("full");
    deny_nads_in(&cluster, "full");
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sriovnetworks.sriovnetwork.openshift.io";
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let change = json!([{ "op": "replace", "path": place, "value": any }]);
    cluster.admin.send("PATCH", crd, "application/json-patch+json", Some(&change)).unwrap();
    create(&cluster, "net", "full", &json!({}));
    let words = "admission denied the NAD: the namespace is full";
    let condition = json!({ "type": "Ready", "status": "False", "reason": "CreateFailed", "message": words,
        "lastTransitionTime": "2026-11-01T08:00:00Z" });
    let status = format!("{}/status", TestNetworkKind::Sriov.at("net"));
    // The API server takes the new schema within a moment.
    wait("the condition", || {
        let written = cluster.admin.patch(&status, &json!({ "status": { "conditions": [condition] } }));
        written["status"]["conditions"][0]["message"].as_str().map(drop)
    });
    wait("the end of the grace period", || {
        let found = doctor(&cluster, "admin", &["net"]);
        (found.step("network")["state"] == "broken").then_some(())
    });
    let found = doctor(&cluster, "admin", &["net"]);
    assert_eq!(found.code, 1, "{}", found.text);
    assert!(found.step("network")["says"].as_str().unwrap().contains(words), "{}", found.text);
    let absent = &found.step("NAD")["findings"][0];
    assert_eq!(absent["rule"], "audit/nad-absent", "{}", found.text);
    assert!(absent["note"].as_str().unwrap().contains(words), "the operator's words come first: {}", found.text);
}
