//! What is judged in the benches.

use nadmit::policy::{Facts, Lookup, NetworkFact, Policy, Prefix, Subject, Verdict, judge};
use nadmit::resources::{NetworkId, NetworkKind, Object};

/// What is measured runs as it ships, with the allocator of `main.rs`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The operator's user: its writes are the ones that count.
const OPERATOR: &str = "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator";

/// A NAD as the operator's faulty template renders it, so that it must be repaired.
pub fn operator_nad() -> String {
    let config = "{\n    \"cniVersion\": \"1.0.0\",\n    \"name\": \"telco-mgmt\",\n    \"type\": \"sriov\",\n    \"vlan\": 100,\n    \"spoofchk\": \"off\",\n    \
                  \"trust\": \"on\",\n    \"vlanQoS\": 0,\n    \"capabilities\": {\n        \"ips\": true,\n        \"mac\": true\n    },\n    \"link_state\": \"auto\",\n    \
                  \"logLevel\": \"info\",\n    \"ipam\": {\n        \"type\": \"whereabouts\",\n        \"range\": \"10.20.0.0/24\",\n        \"exclude\": [\n            \
                  \"10.20.0.0/30\"\n        ]\n    }\n}";
    nad(config)
}

fn nad(config: &str) -> String {
    serde_json::json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": "telco-mgmt",
            "namespace": "apps",
            "annotations": {"sriovnetwork.openshift.io/owner-ref": "SriovNetwork.sriovnetwork.openshift.io/openshift-sriov-network-operator/telco-mgmt"},
            "managedFields": [{"apiVersion": "k8s.cni.cncf.io/v1", "fieldsType": "FieldsV1", "manager": "sriov-network-operator", "operation": "Update",
                "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:sriovnetwork.openshift.io/owner-ref": {}}}, "f:spec": {".": {}, "f:config": {}}}}],
        },
        "spec": {"config": config},
    })
    .to_string()
}

/// A NAD whose config is about so many bytes of keys and values.
pub fn large_nad(bytes: u64) -> String {
    let mut config = "{\"cniVersion\":\"1.0.0\",\"type\":\"sriov\"".to_owned();
    let mut number = 0;
    while (config.len() as u64) < bytes - 60 {
        config += &format!(",\"key{number}\":{{\"list\":[1,2.5,\"text\",null,true]}}");
        number += 1;
    }
    nad(&(config + "}"))
}

/// A network with everything in it.
pub fn network() -> String {
    serde_json::json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": {"name": "telco-mgmt", "namespace": "openshift-sriov-network-operator"},
        "spec": {
            "resourceName": "cx7anl244", "networkNamespace": "apps", "vlan": 100, "spoofChk": "off", "trust": "on",
            "capabilities": "{\"ips\": true, \"mac\": true}",
            "ipam": "{\"type\": \"whereabouts\", \"range\": \"10.20.0.0/24\", \"exclude\": [\"10.20.0.0/30\"]}",
            "metaPlugins": "{\"type\": \"tuning\", \"sysctl\": {\"net.core.somaxconn\": \"512\"}}",
        },
    })
    .to_string()
}

/// The owner is known, as it is in a cluster.
pub fn facts() -> Facts {
    let id = NetworkId {
        kind: NetworkKind::Sriov,
        namespace: "openshift-sriov-network-operator".to_owned(),
        name: "telco-mgmt".to_owned(),
    };
    let owner = NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "cx7anl244".to_owned() };
    Facts {
        named_owner: Lookup::Found(owner.clone()),
        networks_here: vec![owner],
        prefix: Some(Prefix { value: "openshift.io".to_owned(), assumed: false }),
        ..Facts::default()
    }
}

/// Reads the object and judges it, repair included.
pub fn judge_once(json: &str, facts: &Facts) -> Verdict {
    judge_object(&read(json), facts)
}

/// The object, read and ready to be judged.
pub fn read(json: &str) -> Object<'_> {
    Object::read(json).ok().flatten().expect("an object of ours")
}

/// Judges an object that was read.
pub fn judge_object(object: &Object<'_>, facts: &Facts) -> Verdict {
    judge(&Subject { object, old: None, writer: Some(OPERATOR), is_final: false }, facts, &Policy::default())
}
