//! The rows of a map. Their fields are those of its JSON, which docs/map.md describes: a field is added, never changed.

use std::collections::BTreeMap;

use serde::Serialize;

/// A namespace, and how much it has on the map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MapNamespace {
    /// The name; empty where manifests leave it out.
    pub name: String,
    /// How many NADs.
    pub nads: usize,
    /// How many networks render a NAD into it.
    pub networks: usize,
    /// How many users.
    pub users: usize,
    /// How many findings.
    pub findings: usize,
}

/// A SriovNetwork, SriovIBNetwork or OVSNetwork.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapNetwork {
    /// The kind.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The NAD that the operator renders from it, as `namespace/name`; empty where it ignores the network.
    pub nad: String,
    /// `spec.resourceName`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Why the operator renders no NAD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The file and the line; absent in a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// A NAD, or one that a network would render.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapNad {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Whether it is there; a network renders the others.
    pub is_stored: bool,
    /// The networks that render it, as `Kind namespace/name`. None for a hand-written NAD.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<String>,
    /// The network that its annotation or owner reference names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The types of its plugins.
    pub plugins: Vec<String>,
    /// The resource that its devices come from, with its domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<i64>,
    /// What its pods are attached to: `master ens1`, `bridge br1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The type of its IPAM plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipam: Option<String>,
    /// Its ranges, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<String>,
    /// Its fixed addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The name of its network in OVN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ovn: Option<String>,
    /// Why its config cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The file and the line; absent in a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// A range of addresses that an IPAM plugin hands out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapRange {
    /// What NADs name it by.
    pub id: String,
    /// The IPAM plugin.
    pub ipam: String,
    /// The `network_name` of whereabouts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network_name: String,
    /// The range as a network.
    pub cidr: String,
    /// The first address that is handed out.
    pub first: String,
    /// The last one.
    pub last: String,
    /// What is not handed out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// How many addresses it has; absent for more than 2^53.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where its leases are.
    pub leases: LeaseSource,
    /// How many addresses are taken, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// How many more are reserved by other ranges with the same addresses (OverlappingRangeIPReservations).
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved_elsewhere: u64,
    /// The IPPools, as `namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// The NADs that have it. None: an IPPool was left behind.
    pub nads: Vec<String>,
}

/// Where the leases of a range are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseSource {
    /// In an IPPool of whereabouts, which was read.
    IpPool,
    /// An IPPool would have them, but there is none: nothing is taken.
    NoIpPool,
    /// IPPools could not be read, or no cluster was.
    #[default]
    Unknown,
    /// In files on the nodes (host-local).
    OnNodes,
}

/// An address that a pod has of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MapLease {
    /// The id of the range.
    pub range: String,
    /// The address.
    pub address: String,
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// The interface in the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
}

/// A SriovNetworkNodePolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapNodePolicy {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// `spec.resourceName`.
    pub resource: String,
    /// How many VFs it requests for each PF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_vfs: Option<i64>,
    /// Which PFs it selects, in words: `ens1#0-3`, `vendor 15b3`.
    pub selects: Vec<String>,
    /// The labels of the nodes it selects: `rack=1`.
    pub nodes: Vec<String>,
    /// `deviceType`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device_type: String,
    /// `linkType`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub link_type: String,
    /// The file and the line; absent in a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// A PF of a node; or, where no node state is known, one that policies name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapPf {
    /// The node; empty where only policies name the PF.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The name.
    pub name: String,
    /// The PCI address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pci_address: String,
    /// Vendor and model, such as `15b3:101d`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// The link type.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub link_type: String,
    /// The speed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub speed: String,
    /// How many VFs it can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_vfs: Option<i64>,
    /// How many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_vfs: Option<i64>,
    /// What they are partitioned into.
    pub partitions: Vec<VfPartition>,
}

/// A part of the VFs of a PF.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct VfPartition {
    /// The first VF.
    pub from: i64,
    /// The last VF.
    pub to: i64,
    /// The resource, without a domain.
    pub resource: String,
    /// The policy, without its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// `deviceType`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device_type: String,
}

/// A resource of devices: who offers it, and who requests it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapResource {
    /// The resource with its domain: `openshift.io/cx7`.
    pub name: String,
    /// The policies that offer it, as `namespace/name`.
    pub policies: Vec<String>,
    /// The networks that name it.
    pub networks: Vec<String>,
    /// The NADs that name it.
    pub nads: Vec<String>,
    /// How many devices the nodes have (`status.allocatable`); absent where nodes are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<u64>,
    /// How many the pods request.
    pub requested: u64,
    /// How many more the pods of DaemonSets request on each of their nodes, where only the DaemonSets are known.
    #[serde(skip_serializing_if = "is_zero")]
    pub requested_on_each_node: u64,
    /// The nodes that have it.
    pub nodes: Vec<ResourceOfNode>,
}

/// How much of a resource a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ResourceOfNode {
    /// The node.
    pub node: String,
    /// How many devices.
    pub allocatable: u64,
    /// How many its pods request.
    pub requested: u64,
}

/// A network of OVN-Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapOvnNetwork {
    /// The name, which NADs share.
    pub name: String,
    /// `topology`, of each NAD once.
    pub topologies: Vec<String>,
    /// `subnets`, of each NAD once.
    pub subnets: Vec<String>,
    /// The NADs.
    pub nads: Vec<String>,
}

/// A pod, or an object that makes pods, which selects NADs or requests devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MapUser {
    /// The kind.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The node that the pod is on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The NADs that it selects.
    pub networks: Vec<MapSelection>,
    /// The devices that each pod requests.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, u64>,
    /// How many pods it is, or makes; absent for a DaemonSet, which makes one on each of its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u64>,
    /// Why its networks are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The file and the line; absent in a cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// A NAD that a pod selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MapSelection {
    /// The NAD, as `namespace/name`.
    pub nad: String,
    /// The interface in the pod; empty where Multus chooses it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
}

/// A finding about an object of the map.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MapFinding {
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// The action: deny, patch, warn or audit.
    pub action: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Whether two objects do not fit together.
    pub is_conflict: bool,
    /// The headline.
    pub message: String,
    /// The consequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// The other objects that it is about, as `Kind namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<String>,
}

/// What is not known, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnknownPart {
    /// What: `pods`.
    pub what: String,
    /// Why: `missing permission: list pods in all namespaces`.
    pub why: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
