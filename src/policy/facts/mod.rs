//! Facts about the rest of the cluster while an object is judged. The entry points (serve, check, audit) gather them; "unknown"
//! is a value, never a guess.

mod claim_index;
mod gather;
mod node_policies;
mod node_policy_index;
mod selected;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{DraMode, NameVisibility, NeighbourFact, Operators, Policy, Reference, StoredState};
use crate::resources::{Network, NetworkId, NetworkKind, ObjectKey, name_of};

pub use claim_index::{ClaimIndex, one_mode, published_names, served_resource};
pub use gather::{FactLookup, NetworkCoverage};
pub use node_policies::{
    LinkType, NodePolicyFact, NodePolicyNeighbours, OfferedLinkTypes, OfferingPolicies, SharedPf, VfRange,
};
pub use node_policy_index::{NodePolicyIndex, NodeStates};
pub use selected::{NadSummary, NadUsers, SelectedNad};

/// What is known about devices that come by claim (DRA).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Whether the SR-IOV driver is installed; `None` if unknown.
    pub has_driver: Option<bool>,
    /// How it is configured.
    pub mode: Option<DraMode>,
    /// For a NAD: whether the parameters of a DeviceClass name it. Such a class is for the whole cluster, and only administrators
    /// create it.
    pub is_named_by_class: bool,
    /// For a NAD: whether the parameters of a claim or claim template in its namespace name it.
    pub is_named_by_claim: bool,
    /// For a NAD: whether the driver publishes devices under its resourceName; `None` if unknown.
    pub is_published: Option<bool>,
    /// For a NAD: some of the names under which the driver publishes devices. If the NAD has another resourceName, only those with the
    /// same part after the slash.
    pub published: Arc<[String]>,
}

/// The result of a lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lookup<T> {
    /// Not looked up, or the lookup failed.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists.
    Found(T),
}

/// What rules need to know about a network other than the judged one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFact {
    /// Which network.
    pub id: NetworkId,
    /// The namespace its NAD goes to.
    pub target_namespace: String,
    /// Its `spec.resourceName`.
    pub resource_name: String,
}

impl NetworkFact {
    /// Summarizes a network that was read.
    pub fn of(network: &Network<'_>) -> Self {
        Self {
            id: network.id(),
            target_namespace: name_of(&network.target_namespace()).to_owned(),
            resource_name: name_of(&network.text("resourceName")).to_owned(),
        }
    }

    /// Whether its NAD has that namespace and name.
    pub(crate) fn renders(&self, namespace: &str, name: &str) -> bool {
        self.target_namespace == namespace && self.id.name == name
    }
}

/// The state of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// It accepts new objects.
    Active,
    /// It is being deleted.
    Terminating,
}

/// The existing NAD at the place a network renders to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NadFact {
    /// The owning network, if set.
    pub owner: Option<NetworkId>,
    /// What pods need to know about it.
    pub summary: NadSummary,
}

/// The prefix of resource names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// `openshift.io`
    pub value: String,
    /// Whether it is only the default and not known for this cluster.
    pub assumed: bool,
}

/// A fact that was not known and would have mattered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingFact {
    /// For a NAD: the network that its resourceName comes from.
    Owner {
        /// The network the NAD names; `None`: whichever has the NAD's name and renders to its namespace.
        named: Option<NetworkId>,
        /// The kinds of network that can have rendered the NAD.
        kinds: Vec<NetworkKind>,
        /// Whether the NAD cannot be repaired without it.
        is_required: bool,
    },
    /// For a NAD whose owner-ref is set by the writer: live state of the network it names and of those the caches know to render
    /// it.
    Claimants {
        /// The networks that are to be read.
        networks: Vec<NetworkId>,
    },
    /// For a NAD, or a network: whether other NADs, with which it does not fit together, are still there. What the caches know may
    /// be outdated.
    Neighbours {
        /// The NADs that are to be read.
        nads: Vec<ObjectKey>,
    },
    /// Which of these the writer may read, so that a finding may name them.
    NameVisibility(Vec<Reference>),
    /// For a network: whether its NAD still exists in `last-network-namespace`.
    LastNad {
        /// That namespace.
        namespace: String,
    },
}

impl MissingFact {
    /// Whether a repair depends on it.
    pub fn is_required(&self) -> bool {
        matches!(self, Self::Owner { is_required: true, .. })
    }

    /// Whether it is needed only for findings about the final object.
    pub fn is_for_final(&self) -> bool {
        matches!(self, Self::Claimants { .. } | Self::Neighbours { .. } | Self::NameVisibility(_))
    }
}

/// How many renderers of one NAD are reported to rules; more make no difference.
pub const MAX_RENDERERS: usize = 4;

/// The known facts.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// For a NAD: the network its owner reference names.
    pub named_owner: Lookup<NetworkFact>,
    /// The networks known to render a NAD at this place: the NAD's own, or the one the judged network renders to.
    pub networks_here: Vec<NetworkFact>,
    /// Whether the list is complete.
    pub knows_networks: bool,
    /// For a NAD: the networks that the caches know to render it; `None` without caches. They may be stale, so they decide who
    /// owns the NAD but never a value that is stored.
    pub claimants: Option<Vec<NetworkFact>>,
    /// Whether those were read live for this review.
    pub claimants_read: bool,
    /// For a NAD: the writer has the operator's permission, and the NAD is what a live network renders.
    pub written_by_unknown_operator: bool,
    /// For a network: the existing NAD at its target.
    pub nad_here: Lookup<NadFact>,
    /// For a network that moved: its NAD in `last-network-namespace`.
    pub last_nad: Lookup<()>,
    /// For a network: its target namespace.
    pub target_namespace: Lookup<NamespaceState>,
    /// The resource names that node policies offer; `None` where no policy is known.
    pub offered: Option<Arc<[String]>>,
    /// For a network: the link types of the policies that offer its resource.
    pub link_types: OfferedLinkTypes,
    /// For a node policy: the others that it meets.
    pub node_policies: NodePolicyNeighbours,
    /// The extended resources that DeviceClasses serve, with their domains.
    pub served_by_classes: Arc<[String]>,
    /// For a NAD: the claims of its devices.
    pub claims: ClaimFacts,
    /// For a pod, or an object that makes pods: the NADs that it selects.
    pub selected: BTreeMap<ObjectKey, SelectedNad>,
    /// For a NAD that is deleted now: the pods that use it. Nothing else is judged then.
    pub users_at_deletion: Option<NadUsers>,
    /// The NADs that hand out the same addresses, share node slices or define the same network of OVN-Kubernetes as this one, or as the
    /// one that the judged network renders.
    pub neighbours: Vec<Arc<NeighbourFact>>,
    /// Those of them that are certainly there beside the judged one: in a cluster they were read live for this review, and the
    /// manifests of both are in one directory.
    pub certain_neighbours: BTreeSet<ObjectKey>,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
    /// The operator's namespace as given on the command line; the policy takes precedence.
    pub operator_namespace: Option<String>,
    /// The operators of the cluster.
    pub operators: Operators,
    /// What may be named to readers of the findings.
    pub names: NameVisibility,
    /// Facts that could not be read from the cluster, as text such as `the namespaces are not known`.
    pub unreachable: Vec<String>,
    /// State of an object that is already stored; `None` during admission.
    pub stored: Option<Box<StoredState>>,
    /// Whether the facts come from a cluster, where objects arrive in any order: what only another object makes wrong is at most a
    /// warning there ([`Rule::warns_in_cluster`](super::Rule)).
    pub is_cluster: bool,
    /// The date, for exceptions that end.
    pub today: Option<Date>,
}

impl Facts {
    /// The date on which exceptions are checked.
    pub fn date(now: Timestamp) -> Date {
        now.to_zoned(TimeZone::UTC).date()
    }

    /// The networks that render a NAD in that namespace, to decide who owns it.
    pub(crate) fn renderers<'f>(&'f self, policy: &Policy, namespace: &str) -> Vec<&'f NetworkFact> {
        let known = match &self.claimants {
            Some(claimants) if !self.knows_networks => claimants,
            _ => &self.networks_here,
        };
        known.iter().filter(|network| policy.may_render(network, namespace, self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::NetworkKind;

    fn network(name: &str) -> NetworkFact {
        let id = NetworkId { kind: NetworkKind::Sriov, namespace: "apps".to_owned(), name: name.to_owned() };
        NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "cx7".to_owned() }
    }

    /// Live networks decide; those of a cache do only where nothing better is known.
    #[test]
    fn cached_networks_count_until_all_are_known() {
        let (live, cached) = (vec![network("live")], Some(vec![network("cached")]));
        for (claimants, knows_networks, want) in
            [(cached.clone(), false, "cached"), (cached, true, "live"), (None, false, "live"), (None, true, "live")]
        {
            let facts = Facts { networks_here: live.clone(), claimants, knows_networks, ..Facts::default() };
            let names: Vec<_> =
                facts.renderers(&Policy::default(), "apps").iter().map(|one| one.id.name.clone()).collect();
            assert_eq!(names, [want], "{knows_networks}");
        }
    }

    #[test]
    fn only_a_required_owner_blocks_a_repair() {
        let owner = |is_required| MissingFact::Owner { named: None, kinds: Vec::new(), is_required };
        assert!(owner(true).is_required() && !owner(false).is_required());
        let visibility = MissingFact::NameVisibility(Vec::new());
        assert!(!visibility.is_required() && visibility.is_for_final() && !owner(true).is_for_final());
    }
}
