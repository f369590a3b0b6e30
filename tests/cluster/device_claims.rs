//! Devices by claim (DRA): NADs that get their device from a claim of the SR-IOV driver need no resourceName.

use serde_json::{Value, json};

use crate::audit::found;
use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::objects::{TestNetworkKind, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const DRIVER: &str = "sriovnetwork.k8snetworkplumbingwg.io";
const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const WITHOUT_NAME: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5}"#;

/// How admission decides about a NAD without a resourceName.
#[derive(Debug, PartialEq, Eq)]
enum AdmissionDecision {
    Accepted,
    Warned,
    Denied,
}

impl TestCluster {
    fn decision(&self, namespace: &str, name: &str) -> AdmissionDecision {
        let create = ["create", "--dry-run=server", "--namespace", namespace, "-f", "-"];
        let out = self.kubectl("jane", &create, &nad(name, WITHOUT_NAME).to_string());
        let message = String::from_utf8(out.stderr).unwrap();
        match (out.status.success(), message.contains("nad/resource-name-missing")) {
            (true, false) => AdmissionDecision::Accepted,
            (true, true) => AdmissionDecision::Warned,
            (false, true) => AdmissionDecision::Denied,
            (false, false) => panic!("{message}"),
        }
    }

    fn wait_for_decision(&self, namespace: &str, name: &str, want: &AdmissionDecision) {
        wait(&format!("{want:?} for {namespace}/{name}"), || (self.decision(namespace, name) == *want).then_some(()));
    }
}

fn parameters(nad: &str) -> Value {
    json!({ "opaque": { "driver": DRIVER, "parameters": {
        "apiVersion": format!("{DRIVER}/v1alpha1"), "kind": "VfConfig", "netAttachDefName": nad } } })
}

fn class(name: &str, nad: Option<&str>) -> Value {
    json!({ "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": name }, "spec": {
        "selectors": [{ "cel": { "expression": format!("device.driver == '{DRIVER}'") } }],
        "config": nad.map(|nad| vec![parameters(nad)]).unwrap_or_default() } })
}

fn templates(namespace: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates")
}

fn claims(namespace: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims")
}

fn claim_spec(nad: &str) -> Value {
    let mut config = parameters(nad);
    config["requests"] = json!(["vf"]);
    json!({ "devices": {
        "requests": [{ "name": "vf", "exactly": { "deviceClassName": DRIVER } }], "config": [config] } })
}

fn template(nad: &str) -> Value {
    json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": { "name": nad },
        "spec": { "spec": claim_spec(nad) } })
}

#[test]
fn claims_of_the_installed_driver_replace_the_resource_name() {
    let mut cluster = TestCluster::start();
    if !cluster.has_device_claims() {
        return;
    }
    for namespace in ["apps", "other"] {
        cluster.namespace(namespace);
    }
    cluster.deploy_with("leaveIncomplete: true");
    cluster.wait_for_decision("apps", "by-template", &AdmissionDecision::Denied);

    // Anybody may write a claim. Without the driver it proves nothing.
    cluster.admin.create(&templates("apps"), &template("by-template"));
    assert_eq!(cluster.decision("apps", "by-template"), AdmissionDecision::Denied);

    cluster.admin.create(CLASSES, &class(DRIVER, None));
    cluster.wait_for_decision("apps", "by-template", &AdmissionDecision::Accepted);
    assert_eq!(cluster.decision("apps", "another"), AdmissionDecision::Warned);
    assert_eq!(
        cluster.decision("other", "by-template"),
        AdmissionDecision::Warned,
        "the claim is in another namespace"
    );

    let claim = json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "one" },
        "spec": claim_spec("by-claim") });
    cluster.admin.create(&claims("apps"), &claim);
    cluster.wait_for_decision("apps", "by-claim", &AdmissionDecision::Accepted);
    cluster.admin.create(CLASSES, &class("vfs", Some("by-class")));
    for namespace in ["apps", "other"] {
        cluster.wait_for_decision(namespace, "by-class", &AdmissionDecision::Accepted);
    }

    // The audit of the stored objects says the same.
    for name in ["by-template", "another"] {
        cluster.jane.create(&nads("apps"), &nad(name, WITHOUT_NAME));
    }
    let found: Vec<String> = found(&cluster, "admin").into_iter().map(|(finding, _)| finding).collect();
    let missing = "nad/resource-name-missing NetworkAttachmentDefinition/apps/another";
    assert_eq!(found, [missing]);

    cluster.admin.delete(&format!("{}/one", claims("apps")));
    cluster.wait_for_decision("apps", "by-claim", &AdmissionDecision::Warned);
    cluster.admin.delete(&format!("{CLASSES}/vfs"));
    cluster.admin.delete(&format!("{CLASSES}/{DRIVER}"));
    cluster.wait_for_decision("apps", "by-template", &AdmissionDecision::Denied);
}

/// The custom resource by which the driver is told what to publish.
fn create_device_attributes(cluster: &TestCluster, namespace: &str, name: &str) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let crd = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("deviceattributes.{DRIVER}") },
        "spec": { "group": DRIVER, "scope": "Namespaced",
            "names": { "kind": "DeviceAttributes", "plural": "deviceattributes", "singular": "deviceattributes" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": schema }] } });
    cluster.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    let attributes = json!({ "apiVersion": format!("{DRIVER}/v1alpha1"), "kind": "DeviceAttributes",
        "metadata": { "name": "nic" }, "spec": { "attributes": { "k8s.cni.cncf.io/resourceName": { "string": name } } } });
    let path = format!("/apis/{DRIVER}/v1alpha1/namespaces/{namespace}/deviceattributes");
    wait("the CRD", || cluster.admin.try_create(&path, &attributes).ok());
}

/// The DaemonSet of the driver, as its chart labels it. Nothing runs its pods.
fn daemon_set(variable: &Value) -> Value {
    let labels = json!({ "app.kubernetes.io/component": "kubeletplugin" });
    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "driver", "labels": labels }, "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{
            "name": "plugin", "image": "registry.example/dra-driver-sriov:v1", "env": [variable] }] } } } })
}

fn daemon_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/daemonsets")
}

/// In its mode MULTUS, the driver uses no names of NADs: what it publishes must be the NAD's resourceName.
#[test]
fn multus_mode_of_the_daemon_set_needs_the_published_name() {
    let mut cluster = TestCluster::start();
    if !cluster.has_device_claims() {
        return;
    }
    for namespace in ["apps", "dra"] {
        cluster.namespace(namespace);
    }
    create_device_attributes(&cluster, "dra", "sriov_nic_1");
    cluster.admin.create(&daemon_sets("dra"), &daemon_set(&json!({ "name": "CONFIGURATION_MODE", "value": "MULTUS" })));
    cluster.admin.create(CLASSES, &class(DRIVER, None));
    cluster.deploy_with("leaveIncomplete: true");
    // Whether it was accepted, and with which warnings.
    let written = |user: &str, name: Option<&str>| {
        let mut nad = nad("net", WITHOUT_NAME);
        if let Some(name) = name {
            nad["metadata"]["annotations"] = json!({ "k8s.v1.cni.cncf.io/resourceName": name });
        }
        let create = ["create", "--dry-run=server", "--namespace", "apps", "-f", "-"];
        let out = cluster.kubectl(user, &create, &nad.to_string());
        // kubectl breaks a long warning into lines, and begins each of them alike.
        let said = String::from_utf8(out.stderr).unwrap().replace("Warning: ", "");
        (out.status.success(), said.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let wait_for = |name: Option<&str>, text: &str| {
        wait(&format!("{text:?} of {name:?}"), || {
            let (is_accepted, message) = written("admin", name);
            (is_accepted && message.contains(text)).then_some(message)
        })
    };
    wait_for(Some("intel.com/sriov_nic_1"), "which the DRA driver does not publish");
    let missing = wait_for(None, "exactly sriov_nic_1, which the SR-IOV DRA driver publishes");
    assert!(missing.contains("nad/resource-name-missing") && !missing.contains("netAttachDefName"), "{missing}");
    let is_silent = |name| {
        let (is_accepted, message) = written("admin", name);
        is_accepted && !message.contains("nad/resource-name")
    };
    for name in ["sriov_nic_1", "intel.com/other"] {
        assert!(is_silent(Some(name)), "{name}");
    }
    // Who may not list DeviceAttributes gets the warning without the names in them.
    let (is_accepted, message) = written("jane", Some("intel.com/sriov_nic_1"));
    assert!(is_accepted && message.contains("does not publish") && !message.contains("write sriov_nic_1"), "{message}");
    // A claim that names the NAD changes nothing in this mode.
    cluster.admin.create(&templates("apps"), &template("net"));
    wait_for(None, "nad/resource-name-missing");

    // A mode that another object decides is unknown; the claim may be the one that the driver uses.
    let from = json!({ "configMapKeyRef": { "name": "driver", "key": "mode" } });
    let unknown = daemon_set(&json!({ "name": "CONFIGURATION_MODE", "valueFrom": from }));
    cluster.admin.delete(&format!("{}/driver", daemon_sets("dra")));
    cluster.admin.wait_deleted(&format!("{}/driver", daemon_sets("dra")));
    cluster.admin.create(&daemon_sets("dra"), &unknown);
    wait("no warning", || is_silent(None).then_some(()));
}

/// A DeviceClass serves the resource of a network without a node policy, and doctor says so.
#[test]
fn doctor_counts_a_device_class_and_the_mode() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    if !cluster.has_device_claims() {
        return;
    }
    for namespace in ["apps", "dra"] {
        cluster.namespace(namespace);
    }
    cluster.operator_is_available(1);
    let mut serving = class("cx7-vfs", None);
    serving["spec"]["extendedResourceName"] = json!("openshift.io/cx7");
    if cluster.admin.create(CLASSES, &serving)["spec"]["extendedResourceName"].is_null() {
        println!("this API server does not serve extended resources by DeviceClasses");
        return;
    }
    create_device_attributes(&cluster, "dra", "cx7");
    cluster.admin.create(&daemon_sets("dra"), &daemon_set(&json!({ "name": "CONFIGURATION_MODE", "value": "MULTUS" })));
    let net = network(TestNetworkKind::Sriov, "net", "apps", &json!({ "vlan": 5 }));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &net);
    cluster.jane.wait(&nad_at("apps", "net"), |_| true);
    let mut command = nadmit(&["doctor", "net", "--output", "json"]);
    command.env("KUBECONFIG", cluster.kubeconfig("admin"));
    let out = run(command);
    let text = String::from_utf8_lossy(&out.stdout);
    let report: Value = serde_json::from_str(&text).unwrap();
    let steps = report["steps"].as_array().unwrap();
    let policy = steps.iter().find(|step| step["step"] == "node policy").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(policy["says"], "a DeviceClass serves `openshift.io/cx7` (DRA)", "{text}");
    assert!(text.contains("openshift.io/cx7, which the DRA driver does not publish"), "{text}");
}
