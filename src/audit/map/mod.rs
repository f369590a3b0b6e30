//! A map of the secondary networks: which networks and NADs there are, where their addresses and devices come from, and who uses them.
//!
//! [`MapBuilder`] takes objects one by one, of manifests or of a cluster, and keeps a small row of each. [`MapBuilder::finish`] connects
//! them. Conflicts between two objects are not computed here: they come from findings.

mod builder;
mod devices;
mod finding_rows;
mod groups;
mod leases;
mod nads;
mod policies;
mod ranges;
mod resources;
mod rows;
#[cfg(test)]
mod tests;
mod users;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use builder::WHEREABOUTS_GROUP;
pub use builder::{MapBuilder, MapKind};
pub(crate) use finding_rows::of_verdict as findings_of;
pub use rows::{
    LeaseSource, MapFinding, MapLease, MapNad, MapNamespace, MapNetwork, MapNodePolicy, MapOvnNetwork, MapPf, MapRange,
    MapResource, MapSelection, MapUser, ResourceOfNode, UnknownPart, VfPartition,
};

use crate::resources::name_of;

/// The version of the JSON.
pub const MAP_VERSION: u32 = 1;

/// How many rows a list of a map has. Further ones are left out, and counted.
pub const MAX_ROWS: usize = 50_000;
/// How many leases a map lists. All of them are counted.
const MAX_LEASES: usize = 100_000;
/// How many parts of an object are listed: its plugins, ranges, selections.
const MAX_PARTS: usize = 32;

/// A map.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkMap {
    /// [`MAP_VERSION`]
    pub version: u32,
    /// What it was made from.
    pub source: MapSource,
    /// What is not known, and why.
    pub unknown: Vec<UnknownPart>,
    /// How many rows of each list were left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<&'static str, usize>,
    /// The namespaces of all these objects.
    pub namespaces: Vec<MapNamespace>,
    /// The networks of the SR-IOV operator.
    pub networks: Vec<MapNetwork>,
    /// The NADs.
    pub nads: Vec<MapNad>,
    /// The ranges of addresses.
    pub ranges: Vec<MapRange>,
    /// The addresses of these ranges that pods have.
    pub leases: Vec<MapLease>,
    /// The node policies.
    pub policies: Vec<MapNodePolicy>,
    /// The PFs.
    pub pfs: Vec<MapPf>,
    /// The resources of devices.
    pub resources: Vec<MapResource>,
    /// The networks of OVN-Kubernetes.
    pub ovn_networks: Vec<MapOvnNetwork>,
    /// The pods, and the objects that make pods.
    pub users: Vec<MapUser>,
    /// The findings about all these.
    pub findings: Vec<MapFinding>,
}

/// What a map was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapSource {
    /// Manifests.
    #[default]
    Manifests,
    /// A cluster.
    Cluster {
        /// The context and the server.
        name: String,
        /// The only namespace that was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
}

impl NetworkMap {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        // Rows hold texts and numbers, which cannot fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether there is nothing on it.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.nads.is_empty() && self.policies.is_empty() && self.users.is_empty()
    }
}

/// As much of a text as a row has of it.
fn short(text: &str) -> String {
    name_of(text).to_owned()
}

/// `namespace/name`.
fn key(namespace: &str, name: &str) -> String {
    [name_of(namespace), "/", name_of(name)].concat()
}

/// `Kind namespace/name`, as findings and rows name objects. A cluster-scoped object has no namespace, and a manifest may leave it out.
fn object_name(kind: &str, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{kind} {}", name_of(name)),
        _ => format!("{kind} {}", key(namespace, name)),
    }
}
