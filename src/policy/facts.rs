//! What is known of the rest of the cluster while an object is judged. The doors gather it; "unknown" is a value, never a guess.

use std::sync::Arc;

use jiff::civil::Date;

use super::{Names, Operators, Policy, Reference, Stored};
use crate::resources::{Network, NetworkId, NetworkKind, name_of};

/// What a look-up gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lookup<T> {
    /// Nobody looked, or nobody answered.
    #[default]
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Found(T),
}

/// What rules need to know of a network that is not the one being judged.
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
    /// The fact about a network that was read.
    pub fn of(network: &Network<'_>) -> Self {
        Self {
            id: network.id(),
            target_namespace: name_of(&network.target_namespace()).to_owned(),
            resource_name: name_of(&network.text("resourceName")).to_owned(),
        }
    }
}

/// The state of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// It takes new objects.
    Active,
    /// It is being deleted.
    Terminating,
}

/// A NAD that stands where a network renders one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NadFact {
    /// The network it belongs to, if it says so.
    pub owner: Option<NetworkId>,
}

/// The domain in front of resource names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// `openshift.io`
    pub value: String,
    /// Whether it is only the usual one, and nobody said that it is the one here.
    pub assumed: bool,
}

/// What was not known and would have had a say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// For a NAD: the network that its resourceName comes from.
    Owner {
        /// The network the NAD names; `None`: whichever has the NAD's name and renders to its namespace.
        named: Option<NetworkId>,
        /// The kinds of network that can have rendered the NAD.
        kinds: Vec<NetworkKind>,
        /// Whether the NAD has no usable resourceName without it, so that it cannot be repaired.
        is_vital: bool,
    },
    /// For a NAD whose owner-ref somebody sets: the network it names and those that the caches know to render it, as they are now.
    Claimants {
        /// The networks that are to be read.
        networks: Vec<NetworkId>,
    },
    /// Which of these the writer may read, so that a finding may name them.
    Names(Vec<Reference>),
    /// For a network: whether its NAD is still in the namespace it went to last.
    LastNad {
        /// That namespace.
        namespace: String,
    },
}

impl Wanted {
    /// Whether there is no repair without it.
    pub fn is_vital(&self) -> bool {
        matches!(self, Self::Owner { is_vital: true, .. })
    }

    /// Whether it matters only for what is said about the object as it is stored.
    pub fn is_for_final(&self) -> bool {
        matches!(self, Self::Claimants { .. } | Self::Names(_))
    }
}

/// All that is known.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// For a NAD: the network its owner reference names.
    pub named_owner: Lookup<NetworkFact>,
    /// The networks known to render a NAD at this place: the NAD's own, or the one the judged network renders to.
    pub networks_here: Vec<NetworkFact>,
    /// Whether those are all there are.
    pub knows_networks: bool,
    /// For a NAD: the networks that caches know to render it; `None` where there are no caches. They may lag, so they decide whose
    /// the NAD is, and never a value that is stored.
    pub claimants: Option<Vec<NetworkFact>>,
    /// Whether those were read from the API server for this very review.
    pub claimants_read: bool,
    /// For a NAD: the writer may create NADs in all namespaces, and the NAD is what a live network renders to.
    pub vouched: bool,
    /// For a network: the NAD that stands where it renders to.
    pub nad_here: Lookup<NadFact>,
    /// For a network: its NAD in the namespace that it went to last, where it goes elsewhere now.
    pub last_nad: Lookup<()>,
    /// For a network: the namespace its NAD goes to.
    pub target_namespace: Lookup<NamespaceState>,
    /// The resource names that node policies offer; `None` where no policy is known.
    pub offered: Option<Arc<[String]>>,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
    /// The operator's namespace, as somebody states it where there is no cluster to ask; the policy's word goes first.
    pub operator_namespace: Option<String>,
    /// The operators of the cluster.
    pub operators: Operators,
    /// What may be named to whoever reads the findings.
    pub names: Names,
    /// What should be known and is not, since the cluster did not say: in words, such as `the namespaces are not known`.
    pub unreachable: Vec<String>,
    /// That the object stands in the cluster, and how; `None` while it is on its way there.
    pub stored: Option<Box<Stored>>,
    /// The date, for exceptions that end.
    pub today: Option<Date>,
}

impl Facts {
    /// The networks that render a NAD in that namespace, for the question whose it is.
    pub(crate) fn renderers<'f>(&'f self, policy: &Policy, namespace: &str) -> Vec<&'f NetworkFact> {
        let known = match &self.claimants {
            Some(claimants) if !self.knows_networks => claimants,
            _ => &self.networks_here,
        };
        known.iter().filter(|network| policy.may_render(network, namespace, self)).collect()
    }

    /// What is left for a network that names a place where the operator does not render it: nothing about that place.
    pub(crate) fn without_place(self) -> Self {
        Self {
            names: self.names,
            operators: self.operators,
            today: self.today,
            prefix: self.prefix,
            stored: self.stored,
            ..Self::default()
        }
    }
}
