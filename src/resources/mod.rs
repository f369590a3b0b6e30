//! The judged objects: the NetworkAttachmentDefinition, the three networks the SR-IOV operator renders one from, the claims whose
//! parameters name one, the node policies that offer their devices, and the pods that select one. Reading never fails on a wrong
//! type; it records it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod change;
pub mod crd;
mod device_claim;
mod dra_driver;
mod key;
mod meta;
mod network;
mod node_constraints;
mod node_interfaces;
mod node_policy;
pub mod raw;
mod render;
mod selection;
mod taints;
mod variables;
mod workload;

use std::borrow::Cow;
use std::fmt;

pub use change::{LONGEST_OWNER, MAX_OWNERS};
pub use device_claim::{CLAIM_GROUP, ClaimKind, DRA_DRIVER, DeviceClaim, DriverConfig};
pub use dra_driver::{DraMode, DriverObject};
pub use key::ObjectKey;
pub use meta::Meta;
pub use network::{Network, NetworkKind};
pub use node_constraints::NodeConstraints;
pub use node_interfaces::{NODE_STATE_KIND, NodeInterfaces, PhysicalFunction};
pub use node_policy::{
    DEFAULT_NODE_POLICY, NODE_POLICIES, NODE_POLICY_KIND, NamedVfs, NetworkNodePolicy, NicSelector, PfName,
};
pub(crate) use render::offset_of_nonblank;
pub use render::{RenderFault, Rendered, render};
pub use selection::{
    DEFAULT_NETWORK, LONGEST_INTERFACE, NETWORKS, RequestedValues, SelectedNetwork, Selection, SelectionError,
    selected_nads,
};
pub use taints::{Taint, Toleration, UNSCHEDULABLE};
pub use variables::has_variable;
pub use workload::{Workload, WorkloadKind};

use crate::json::JsonReader;
use raw::RawObject;

/// The annotation through which Multus finds a device.
pub const RESOURCE_NAME: &str = "k8s.v1.cni.cncf.io/resourceName";
/// The annotation in which the operator records the network of a NAD.
pub const OWNER_REF: &str = "sriovnetwork.openshift.io/owner-ref";
/// The annotation in which the operator records where it last created a network's NAD.
pub const LAST_NAMESPACE: &str = "operator.sriovnetwork.openshift.io/last-network-namespace";
/// The annotations that rules read. Changes to others are not judged.
pub const READ_ANNOTATIONS: [&str; 3] = [RESOURCE_NAME, OWNER_REF, LAST_NAMESPACE];
/// The API group of the operator's kinds.
pub const NETWORK_GROUP: &str = "sriovnetwork.openshift.io";
/// The API group of the NAD.
pub const NAD_GROUP: &str = "k8s.cni.cncf.io";
/// NADs in an address of the API server.
pub const NADS: &str = "network-attachment-definitions";

/// An object that nadmit judges.
#[derive(Clone, Debug)]
pub enum Object<'a> {
    /// A NetworkAttachmentDefinition.
    Nad(Nad<'a>),
    /// A SriovNetwork, SriovIBNetwork or OVSNetwork.
    Network(Network<'a>),
    /// A ResourceClaim, ResourceClaimTemplate or DeviceClass.
    Claim(DeviceClaim<'a>),
    /// A SriovNetworkNodePolicy.
    NodePolicy(NetworkNodePolicy<'a>),
    /// A pod, or an object that makes pods, which select networks.
    Workload(Workload<'a>),
}

/// A value of another type than the schema has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misshapen {
    /// Where.
    pub pointer: String,
    /// The expected type.
    pub expected: &'static str,
    /// What is there.
    pub found: &'static str,
}

impl Misshapen {
    /// How to fix it. YAML reads more as a number or boolean than one might expect: `n`, `on`, `1e3`.
    pub fn help(&self) -> String {
        let in_quotes = if matches!(self.found, "a boolean" | "a number") { ", in quotes" } else { "" };
        format!("write {}{in_quotes}", self.expected)
    }
}

/// A NetworkAttachmentDefinition.
#[derive(Clone, Debug, Default)]
pub struct Nad<'a> {
    /// Its metadata.
    pub meta: Meta<'a>,
    /// `spec.config`; `None` where it is absent, which means "a file on the node".
    pub config: Option<Cow<'a, str>>,
    /// Fields of `spec` that the schema does not have: the API server drops them.
    pub unknown: Vec<Cow<'a, str>>,
    /// Fields of a wrong type.
    pub misshapen: Vec<Misshapen>,
}

/// Which network: enough to find it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkId {
    /// Its kind.
    pub kind: NetworkKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The longest text of an object that is kept as a name, in bytes. No name of an object, of a namespace or of a resource is that
/// long, but the API server accepts a text of 1 MiB in its place, and what caches hold must not be chosen by whoever writes objects.
pub const LONGEST_NAME: usize = 512;

/// The start of a text, as much of it as is kept as a name.
pub fn name_of(text: &str) -> &str {
    crate::visible::at_most(text, LONGEST_NAME)
}

impl NetworkId {
    /// Reads the operator's annotation: `<Kind>.<group>/<namespace>/<name>`. A text that is too long to name an object names none.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST_NAME {
            return None;
        }
        let mut parts = text.split('/');
        let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = kind.strip_suffix(NETWORK_GROUP)?.strip_suffix('.')?;
        let id = Self { kind: NetworkKind::from_kind(kind)?, namespace: namespace.to_owned(), name: name.to_owned() };
        parts.next().is_none().then_some(id)
    }

    /// The network of that kind with that key.
    pub fn new(kind: NetworkKind, key: &ObjectKey) -> Self {
        Self { kind, namespace: key.namespace().to_owned(), name: key.name().to_owned() }
    }

    /// Its namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }

    /// The annotation the operator writes for this network.
    pub fn owner_ref(&self) -> String {
        format!("{}.{NETWORK_GROUP}/{}/{}", self.kind.name(), self.namespace, self.name)
    }
}

impl fmt::Display for NetworkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(formatter, "{} {}", self.kind.name(), self.name),
            namespace => write!(formatter, "{} {namespace}/{}", self.kind.name(), self.name),
        }
    }
}

/// Why a text is not an object.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not a JSON object.
    #[error("not a JSON object")]
    NotAnObject(#[from] crate::json::Error),
}

impl<'a> Object<'a> {
    /// Reads an object of a kind that nadmit judges; `None` for all others.
    pub fn read(json: &'a str) -> Result<Option<Self>, ReadError> {
        Ok(JsonReader::whole(json, Self::read_next)?)
    }

    /// Reads the objects of a list, as far as they are of kinds that nadmit judges.
    pub fn read_list(json: &'a str) -> Result<Vec<Self>, ReadError> {
        let mut objects = Vec::new();
        JsonReader::whole(json, |reader| {
            reader.members(|reader, key, _| match key.as_ref() {
                "items" => reader.elements(|reader| {
                    objects.extend(Self::read_next(reader)?);
                    Ok(())
                }),
                _ => reader.skip().map(drop),
            })
        })?;
        Ok(objects)
    }

    /// The same for the object that comes next in a longer text.
    pub(crate) fn read_next(reader: &mut JsonReader<'a>) -> Result<Option<Self>, crate::json::Error> {
        let head = RawObject::read(reader)?;
        let is_of = |group: &str| head.api_version.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'));
        Ok(if is_of(NAD_GROUP) && head.kind == "NetworkAttachmentDefinition" {
            Some(Self::Nad(Nad::from_head(head)))
        } else if is_of(NETWORK_GROUP) && head.kind == NODE_POLICY_KIND {
            Some(Self::NodePolicy(NetworkNodePolicy::read(head)))
        } else if is_of(NETWORK_GROUP) {
            NetworkKind::from_kind(&head.kind).map(|kind| Self::Network(Network::read(kind, head)))
        } else if is_of(CLAIM_GROUP) {
            ClaimKind::from_kind(&head.kind).map(|kind| Self::Claim(DeviceClaim::read(kind, head)))
        } else {
            let kind = WorkloadKind::of(&head.api_version, &head.kind);
            kind.and_then(|kind| Workload::read(kind, head)).map(Self::Workload)
        })
    }

    /// Its metadata.
    pub fn meta(&self) -> &Meta<'a> {
        match self {
            Self::Nad(nad) => &nad.meta,
            Self::Network(network) => &network.meta,
            Self::Claim(claim) => &claim.meta,
            Self::NodePolicy(policy) => &policy.meta,
            Self::Workload(workload) => &workload.meta,
        }
    }

    /// Its namespace and name.
    pub fn key(&self) -> ObjectKey {
        self.meta().key()
    }

    /// The key of the NAD: its own, or the one of the NAD that a network renders. Other objects render none.
    pub fn nad_key(&self) -> ObjectKey {
        match self {
            Self::Nad(_) | Self::Claim(_) | Self::NodePolicy(_) | Self::Workload(_) => self.key(),
            Self::Network(network) => network.nad_key(),
        }
    }

    /// Its kind, as manifests spell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nad(_) => "NetworkAttachmentDefinition",
            Self::Network(network) => network.kind.name(),
            Self::Claim(claim) => claim.kind.name(),
            Self::NodePolicy(_) => NODE_POLICY_KIND,
            Self::Workload(workload) => workload.kind.name(),
        }
    }
}

impl<'a> Nad<'a> {
    fn from_head(head: RawObject<'a>) -> Self {
        let mut misshapen = Vec::new();
        let meta = Meta::of(head.metadata, &mut misshapen);
        let mut spec = head.spec.or_record("/spec", "an object", &mut misshapen).unwrap_or_default();
        let wanted = "a string that holds the JSON text";
        let config = spec.take_text("config").or_record("/spec/config", wanted, &mut misshapen);
        let unknown = spec.keys().filter(|key| *key != "config").map(|key| Cow::Owned(key.to_owned())).collect();
        Self { meta, config, unknown, misshapen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_nad() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"s",
            "annotations":{"a":"b","sriovnetwork.openshift.io/owner-ref":"SriovNetwork.sriovnetwork.openshift.io/op/n"},
            "managedFields":[{"x":1}]},"spec":{"config":"{\"type\":\"sriov\"}"}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("a NAD") };
        assert_eq!((nad.meta.name.as_ref(), nad.meta.namespace.as_ref()), ("n", "s"));
        assert_eq!(nad.meta.annotation("a").as_deref(), Some("b"));
        assert_eq!(nad.meta.owner().unwrap().to_string(), "SriovNetwork op/n");
        assert_eq!(nad.config.as_deref(), Some("{\"type\":\"sriov\"}"));
        assert!(nad.misshapen.is_empty());
    }

    #[test]
    fn wrong_types_are_noted() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition",
            "metadata":{"name":5,"annotations":{"a":true}},"spec":{"config":{"type":"sriov"},"extra":1}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("a NAD") };
        let pointers: Vec<_> = nad.misshapen.iter().map(|wrong| wrong.pointer.as_str()).collect();
        assert_eq!(pointers, ["/metadata/name", "/metadata/annotations/a", "/spec/config"]);
        assert_eq!(nad.unknown, ["extra"]);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":5,"name":"n",
            "namespace":"s","namespace":null,"annotations":[],"annotations":{"a":1,"a":"b"},"deletionTimestamp":"t","deletionTimestamp":null,
            "ownerReferences":[{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","name":"n"}],"ownerReferences":null},
            "spec":{"config":5,"config":"{}"}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("a NAD") };
        assert_eq!((nad.meta.name.as_ref(), nad.meta.namespace.as_ref(), nad.meta.deleting), ("n", "", false));
        assert_eq!((nad.meta.annotation("a").as_deref(), nad.meta.owner()), (Some("b"), None));
        assert_eq!((nad.config.as_deref(), nad.unknown.len()), (Some("{}"), 0));
        let pointers: Vec<_> = nad.misshapen.iter().map(|wrong| wrong.pointer.as_str()).collect();
        assert_eq!(pointers, ["/metadata/annotations/a"]);
    }

    #[test]
    fn owners_are_found() {
        for (text, want) in [
            ("SriovNetwork.sriovnetwork.openshift.io/op/n", Some("SriovNetwork op/n")),
            ("OVSNetwork.sriovnetwork.openshift.io/op/n", Some("OVSNetwork op/n")),
            ("unknown/op/n", None),
            ("SriovNetwork.sriovnetwork.openshift.io/op", None),
            ("SriovNetwork.sriovnetwork.openshift.io/op/n/x", None),
            ("", None),
            (&["SriovNetwork.sriovnetwork.openshift.io/op/", &"n".repeat(LONGEST_NAME)].concat(), None),
        ] {
            let id = NetworkId::parse(text);
            assert_eq!(id.as_ref().map(ToString::to_string).as_deref(), want, "{text}");
            assert!(id.is_none_or(|id| id.owner_ref() == text));
        }
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"namespace":"s",
            "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"},
            {"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovIBNetwork","name":"n"}]}}"#;
        let object = Object::read(json).unwrap().unwrap();
        assert_eq!(object.meta().owner().unwrap().to_string(), "SriovIBNetwork s/n");
    }

    #[test]
    fn other_kinds_are_left_alone() {
        for json in
            [r#"{"apiVersion":"v1","kind":"Pod"}"#, "{}", r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"X"}"#]
        {
            assert!(Object::read(json).unwrap().is_none());
        }
        assert!(Object::read("[]").is_err());
    }

    #[test]
    fn a_list_has_the_judged_objects() {
        let nad = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"s"}}"#;
        let network = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"OVSNetwork","metadata":{"name":"n","namespace":"op"},"spec":{"networkNamespace":"t"}}"#;
        let claim =
            r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"s"}}"#;
        let pod = r#"{"apiVersion":"v1","kind":"Pod"}"#;
        let list = format!(r#"{{"kind":"List","items":[{nad},{pod},{network},{claim}],"metadata":{{"items":5}}}}"#);
        let objects = Object::read_list(&list).unwrap();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.kind(), object.key().to_string(), object.nad_key().to_string()))
            .collect();
        let want = [
            ("NetworkAttachmentDefinition", "s/n", "s/n"),
            ("OVSNetwork", "op/n", "t/n"),
            ("ResourceClaim", "s/c", "s/c"),
        ];
        assert_eq!(found, want.map(|(kind, key, nad)| (kind, key.to_owned(), nad.to_owned())));
        assert!(Object::read_list("[]").is_err());
    }

    #[test]
    fn an_object_is_known_by_its_group_and_its_kind() {
        for (api_version, kind, is_known) in [
            ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", true),
            ("k8s.cni.cncf.io/v1", "SriovNetwork", false),
            ("k8s.cni.cncf.io", "NetworkAttachmentDefinition", false),
            ("example.com/v1", "NetworkAttachmentDefinition", false),
            ("sriovnetwork.openshift.io/v1", "SriovNetwork", true),
            ("sriovnetwork.openshift.io/v1", "NetworkAttachmentDefinition", false),
            ("resource.k8s.io/v1", "ResourceClaim", true),
            ("resource.k8s.io/v1", "SriovNetwork", false),
        ] {
            let json = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"n"}}}}"#);
            assert_eq!(Object::read(&json).unwrap().is_some(), is_known, "{json}");
        }
    }

    #[test]
    fn the_longest_name_of_a_network_is_read() {
        let text = |length: usize| {
            let start = "SriovNetwork.sriovnetwork.openshift.io/op/";
            format!("{start}{}", "n".repeat(length - start.len()))
        };
        assert!(NetworkId::parse(&text(LONGEST_NAME)).is_some());
        assert!(NetworkId::parse(&text(LONGEST_NAME + 1)).is_none());
    }
}
