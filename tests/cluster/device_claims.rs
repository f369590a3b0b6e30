//! Devices by claim (DRA): NADs that get their device from a claim of the SR-IOV driver need no resourceName.

use serde_json::{Value, json};

use crate::audit::found;
use crate::cluster::TestCluster;
use crate::objects::{nad, nads};
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
