//! What NADs mean to each other: which of them hand out the same addresses, share node slices, or define one network of
//! OVN-Kubernetes.
//!
//! Of each NAD a short summary is kept ([`NetworkUse`]), in an index that finds the few others that matter ([`NeighbourIndex`]).
//! Summaries are bounded: a NAD that says more is not compared. What they leave out gives no finding.

mod groups;
mod index;
mod interval_index;
mod l2;
mod ovn_acceptance;
mod ovn_network;
mod pool;
pub(in crate::policy) mod ranges;
mod slices;

use jiff::Timestamp;

use super::rules::ipam::pools::handed_out;
use crate::cni::Config;
use crate::json::Document;
use crate::resources::{Nad, NetworkId, ObjectKey};

pub use index::{MAX_NEIGHBOURS, NeighbourIndex};
pub(super) use l2::{is_for_some_nodes, uplink};
pub use ovn_acceptance::OvnAcceptance;
pub use ovn_network::OvnNetwork;
pub use pool::AddressPool;
pub(super) use pool::PoolConflictKind;
pub use slices::SliceUse;
pub(super) use slices::has_name;

/// The longest config that is compared with others, in bytes. Each NAD is read once more for that, and a hostile one must not cost the
/// memory of two.
const LONGEST_COMPARED: usize = 64 << 10;

/// What matters of a NAD to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUse {
    /// When it was created; unknown in a manifest.
    pub created: Option<Timestamp>,
    /// The addresses that it hands out.
    pub pool: Option<AddressPool>,
    /// What it says about node slices.
    pub slices: Option<SliceUse>,
    /// The network of OVN-Kubernetes.
    pub ovn: Option<OvnNetwork>,
    /// Whether OVN-Kubernetes accepted that.
    pub acceptance: OvnAcceptance,
}

impl NetworkUse {
    /// Summarizes a NAD. One that is being deleted, or whose config cannot be read, matters to none.
    pub fn of(nad: &Nad<'_>) -> Self {
        let text = nad.config.as_deref().unwrap_or_default();
        if nad.meta.deleting || text.is_empty() || text.len() > LONGEST_COMPARED {
            return Self::default();
        }
        let Ok(document) = Document::parse(text) else { return Self::default() };
        Config::of(&document).map_or_else(Self::default, |config| Self::of_config(nad, &config))
    }

    /// The same for a config that was read already.
    pub(super) fn of_config(nad: &Nad<'_>, config: &Config<'_>) -> Self {
        let ovn = OvnNetwork::of(nad, config);
        let acceptance = ovn.as_ref().map(|network| OvnAcceptance::of(nad, config, network));
        Self {
            created: nad.meta.created(),
            pool: handed_out(config).and_then(|found| AddressPool::of(nad, config, &found)),
            slices: SliceUse::of(config),
            ovn,
            acceptance: acceptance.unwrap_or_default(),
        }
    }

    /// Whether it can matter to another NAD.
    pub fn is_empty(&self) -> bool {
        self.pool.is_none() && self.slices.is_none() && self.ovn.is_none()
    }

    /// Sorted by this, any number of NADs is added to an index in little time.
    pub fn first_range(&self) -> impl Ord + use<> {
        self.pool.as_ref().and_then(|pool| pool.ranges.first().copied())
    }

    /// What decides which of two NADs is the older one.
    fn rank<'s>(&'s self, key: &'s ObjectKey) -> (Option<Timestamp>, &'s ObjectKey) {
        (self.created, key)
    }
}

/// Another NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourFact {
    /// Which one.
    pub key: ObjectKey,
    /// The network that renders it, where only the network is known.
    pub network: Option<NetworkId>,
    /// What it says.
    pub summary: NetworkUse,
}

impl NeighbourFact {
    /// What decides the order of NADs: the oldest is first.
    pub(in crate::policy) fn rank(&self) -> impl Ord + '_ {
        self.summary.rank(&self.key)
    }

    /// Whether it was there before another one: by the time, or by the name where manifests are judged.
    pub(super) fn is_before(&self, key: &ObjectKey, summary: &NetworkUse) -> bool {
        self.summary.rank(&self.key) < summary.rank(key)
    }
}
