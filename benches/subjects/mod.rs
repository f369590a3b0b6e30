//! What is judged in the benches.

use std::sync::LazyLock;

use nadmit::policy::{Facts, Lookup, NetworkFact, Policy, Prefix, Subject, Verdict, judge};
use nadmit::resources::{NetworkId, NetworkKind, Object};
use nadmit::review::{Endpoint, Review, ReviewOutcome, answer};

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

/// A NAD whose config is about so many bytes of keys and values, but has no more values than a config of 1 MiB may have.
pub fn large_nad(bytes: u64) -> String {
    let text = "x".repeat(120);
    let mut config = "{\"cniVersion\":\"1.0.0\",\"type\":\"sriov\"".to_owned();
    let mut number = 0;
    while (config.len() as u64) < bytes - 180 {
        config += &format!(",\"key{number}\":{{\"list\":[1,2.5,\"{text}\",null,true]}}");
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
    static POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);
    judge(&Subject { object, old: None, writer: Some(OPERATOR), is_final: false }, facts, &POLICY)
}

/// A review of what the operator's daemon writes about a node with 8 NICs of 64 VFs each, one of which changed.
pub fn node_state_review() -> Vec<u8> {
    let object = |changed: bool| {
        let vf = |nic: usize, vf: usize| {
            serde_json::json!({
                "vfID": vf, "name": format!("ens{nic}f0v{vf}"), "mac": format!("02:00:00:00:{nic:02x}:{vf:02x}"), "mtu": 1500,
                "pciAddress": format!("0000:{nic:02x}:{:02x}.{}", vf / 8, vf % 8), "vendor": "15b3", "deviceID": "101e",
                "driver": if changed && nic == 7 && vf == 63 { "vfio-pci" } else { "mlx5_core" },
                "vlan": 0, "guid": "0000:0000:0000:0000", "vdpaType": "", "representorName": "",
            })
        };
        let nic = |nic: usize| {
            let vfs: Vec<_> = (0..64).map(|number| vf(nic, number)).collect();
            serde_json::json!({
                "name": format!("ens{nic}f0"), "pciAddress": format!("0000:{nic:02x}:00.0"), "vendor": "15b3", "deviceID": "101d",
                "driver": "mlx5_core", "linkType": "ETH", "linkSpeed": "100000 Mb/s", "mtu": 9000, "numVfs": 64, "totalvfs": 64,
                "eSwitchMode": "legacy", "mac": "b8:3f:d2:00:00:01", "Vfs": vfs,
            })
        };
        let fields = serde_json::json!({ "f:status": { ".": {}, "f:interfaces": {}, "f:syncStatus": {}, "f:lastSyncError": {} } });
        serde_json::json!({
            "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState",
            "metadata": {
                "name": "worker-0", "namespace": "openshift-sriov-network-operator", "resourceVersion": "123456", "generation": 7,
                "managedFields": [{ "manager": "sriov-network-config-daemon", "operation": "Update", "subresource": "status",
                    "apiVersion": "sriovnetwork.openshift.io/v1", "fieldsType": "FieldsV1", "fieldsV1": fields }],
            },
            "spec": { "interfaces": [] },
            "status": { "interfaces": (0..8).map(nic).collect::<Vec<_>>(), "syncStatus": "Succeeded", "lastSyncError": "" },
        })
    };
    let review = serde_json::json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "UPDATE", "subResource": "status", "name": "worker-0", "namespace": "openshift-sriov-network-operator",
            "kind": { "group": "sriovnetwork.openshift.io", "version": "v1", "kind": "SriovNetworkNodeState" },
            "resource": { "group": "sriovnetwork.openshift.io", "version": "v1", "resource": "sriovnetworknodestates" },
            "userInfo": { "username": "system:serviceaccount:openshift-sriov-network-operator:sriov-network-config-daemon" },
            "object": object(true), "oldObject": object(false), "options": { "fieldManager": "" },
        },
    });
    serde_json::to_vec(&review).expect("JSON")
}

/// Reads a review of a status write, judges it and answers it.
pub fn answer_status(body: &[u8], policy: &Policy) -> Vec<u8> {
    let review = Review::read(body).expect("a review");
    let write = review.request.status_write().expect("a write to a status");
    let judged = nadmit::policy::judge_status(&write, &Facts::default(), policy).expect("a guarded resource");
    answer(&review, Endpoint::Status, &ReviewOutcome::Status(judged)).body
}
