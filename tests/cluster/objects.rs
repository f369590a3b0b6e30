//! Test objects, and their paths.

use serde_json::{Value, json};

/// The namespace of the operator, and of all its networks.
pub const OPERATOR: &str = "openshift-sriov-network-operator";
pub const RESOURCE_NAME: &str = "k8s.v1.cni.cncf.io/resourceName";
pub const LAST_NAMESPACE: &str = "operator.sriovnetwork.openshift.io/last-network-namespace";

/// The kinds of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestNetworkKind {
    Sriov,
    Ib,
    Ovs,
}

impl TestNetworkKind {
    pub const ALL: [Self; 3] = [Self::Sriov, Self::Ib, Self::Ovs];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sriov => "SriovNetwork",
            Self::Ib => "SriovIBNetwork",
            Self::Ovs => "OVSNetwork",
        }
    }

    /// The path of all networks of this kind.
    pub fn path(self) -> String {
        let plural = self.name().to_lowercase();
        format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/{plural}s")
    }

    /// The path of one network.
    pub fn at(self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }
}

/// A network with that target namespace, and these additional fields.
pub fn network(kind: TestNetworkKind, name: &str, namespace: &str, fields: &Value) -> Value {
    let mut spec = json!({ "networkNamespace": namespace, "resourceName": "cx7" });
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": kind.name(),
        "metadata": { "name": name, "namespace": OPERATOR },
        "spec": spec,
    })
}

/// A NAD.
pub fn nad(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": name },
        "spec": { "config": config },
    })
}

/// The path of all NADs of a namespace.
pub fn nads(namespace: &str) -> String {
    format!("/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions")
}

/// The path of a NAD.
pub fn nad_at(namespace: &str, name: &str) -> String {
    format!("{}/{name}", nads(namespace))
}

/// The resourceName in the annotation.
pub fn annotated(nad: &Value) -> Option<&str> {
    nad["metadata"]["annotations"][RESOURCE_NAME].as_str()
}

/// The resourceName in the config of the first plugin.
pub fn configured(nad: &Value) -> Option<String> {
    let config: Value = serde_json::from_str(nad["spec"]["config"].as_str()?).unwrap();
    let plugin = config["plugins"].get(0).unwrap_or(&config);
    Some(plugin["resourceName"].as_str()?.to_owned())
}

pub fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}
