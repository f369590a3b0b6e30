//! Gathers the facts about one object. Review, check, audit and doctor differ only in where they look things up.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    ClaimFacts, Facts, Lookup, MAX_RENDERERS, NadFact, NamespaceState, NetworkFact, NodePolicyFact, NodePolicyIndex,
    Prefix,
};
use crate::policy::rules::rendering::rendered;
use crate::policy::{NameVisibility, NeighbourFact, NetworkUse, Policy};
use crate::resources::{Nad, Network, NetworkId, Object, ObjectKey, RESOURCE_NAME};

/// How much is known about the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkCoverage {
    /// Nothing.
    #[default]
    Unknown,
    /// Some of them; there may be others.
    Partial,
    /// All of them, as they were a moment ago. They decide who owns a NAD, but never a value that is stored.
    Cached,
    /// All of them.
    Complete,
}

/// Where the facts about other objects come from. Every method returns "unknown" by default.
pub trait FactLookup {
    /// How much the networks returned by `networks_at` can be relied on.
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Unknown
    }

    /// The networks whose NAD has this key and that `renders` accepts.
    fn networks_at(&self, _nad: &ObjectKey, _renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        Vec::new()
    }

    /// A network.
    fn network(&self, _id: &NetworkId) -> Lookup<NetworkFact> {
        Lookup::Unknown
    }

    /// A NAD.
    fn nad(&self, _key: &ObjectKey) -> Lookup<NadFact> {
        Lookup::Unknown
    }

    /// Whether the NAD of a network that moved still exists in its previous namespace.
    fn last_nad(&self, _key: &ObjectKey) -> Lookup<()> {
        Lookup::Unknown
    }

    /// A namespace.
    fn namespace(&self, _name: &str) -> Lookup<NamespaceState> {
        Lookup::Unknown
    }

    /// The resource names that node policies offer.
    fn offered(&self) -> Option<Arc<[String]>> {
        None
    }

    /// The node policies; `None` if they are not known.
    fn node_policies(&self) -> Option<Arc<NodePolicyIndex>> {
        None
    }

    /// The extended resources that DeviceClasses serve.
    fn served_by_classes(&self) -> Arc<[String]> {
        Arc::default()
    }

    /// The claims of the devices of a NAD; `resource_name` is the one it has.
    fn claims(&self, _nad: &ObjectKey, _resource_name: Option<&str>) -> ClaimFacts {
        ClaimFacts::default()
    }

    /// The name of a NAD in the same namespace that is nearly the same.
    fn similar_nad(&self, _nad: &ObjectKey) -> Option<String> {
        None
    }

    /// The NADs that matter to one with this key and summary, a few of each kind.
    fn neighbours(&self, _nad: &ObjectKey, _own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        Vec::new()
    }

    /// Those of them whose manifests are certainly used together with that of the judged object. In a cluster they are read live.
    fn certain_neighbours(&self, _object: &Object<'_>, _found: &[Arc<NeighbourFact>]) -> BTreeSet<ObjectKey> {
        BTreeSet::new()
    }

    /// What could not be read, as text such as `the cache of Namespace objects is not synced`.
    fn unreachable(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Nothing is known.
impl FactLookup for () {}

impl Facts {
    /// Adds the facts about an object to those that hold for every object.
    pub fn gather(mut self, object: &Object<'_>, lookup: &dyn FactLookup, policy: &Policy) -> Self {
        match object {
            Object::Nad(nad) => {
                self.claims = lookup.claims(&nad.meta.key(), nad.meta.annotation(RESOURCE_NAME).as_deref());
                self.served_by_classes = lookup.served_by_classes();
                self.neighbours = self.neighbours_of(nad, lookup, policy);
                self.certain_neighbours = lookup.certain_neighbours(object, &self.neighbours);
                if let Some(owner) = nad.meta.owner() {
                    self.named_owner = lookup.network(owner);
                }
                let coverage = lookup.coverage();
                if coverage == NetworkCoverage::Unknown {
                    return self;
                }
                let networks = self.renderers_at(&nad.meta.key(), lookup, policy);
                match coverage {
                    NetworkCoverage::Cached => self.claimants = Some(networks),
                    _ => self.networks_here = networks,
                }
                self.knows_networks = coverage == NetworkCoverage::Complete;
            }
            Object::Network(network) => {
                // Asked in any case, because a lookup may count how often something was not known.
                let unreachable = lookup.unreachable();
                // The author of a network with a foreign target must learn nothing about that namespace.
                if !policy.has_foreign_target(network, &self) {
                    self.unreachable = unreachable;
                    self.gather_network(network, lookup, policy);
                    self.certain_neighbours = lookup.certain_neighbours(object, &self.neighbours);
                }
            }
            // A claim is judged by itself.
            Object::Claim(_) => {}
            // Policies outside of the operator's namespace have no effect.
            Object::NodePolicy(node_policy) => {
                if policy.is_operator_namespace(&node_policy.meta.namespace, &self) != Some(false)
                    && !node_policy.is_ignored()
                    && let Some(policies) = lookup.node_policies()
                {
                    self.node_policies = policies.neighbours(&NodePolicyFact::of(node_policy));
                }
            }
            Object::Workload(workload) => self.gather_selected(workload, lookup, policy),
        }
        self
    }

    fn gather_network(&mut self, network: &Network<'_>, lookup: &dyn FactLookup, policy: &Policy) {
        let nad = network.nad_key();
        self.target_namespace = lookup.namespace(nad.namespace());
        self.offered = lookup.offered();
        if let Some(policies) = lookup.node_policies() {
            let counts = |namespace: &str| policy.is_operator_namespace(namespace, self) != Some(false);
            self.link_types = policies.link_types(&network.text("resourceName"), &counts);
        }
        self.served_by_classes = lookup.served_by_classes();
        // Before the server generates a name, nothing of that name exists.
        if nad.name().is_empty() {
            return;
        }
        self.nad_here = lookup.nad(&nad);
        self.neighbours = self.neighbours_of_rendered(network, lookup, policy);
        self.networks_here = self.renderers_at(&nad, lookup, policy);
        if let Some(previous) = network.previous_nad_key() {
            self.last_nad = lookup.last_nad(&previous);
        }
    }

    /// The NADs that matter to the one that a network renders.
    fn neighbours_of_rendered(
        &self,
        network: &Network<'_>,
        lookup: &dyn FactLookup,
        policy: &Policy,
    ) -> Vec<Arc<NeighbourFact>> {
        if network.text("ipam").is_empty() {
            return Vec::new();
        }
        let rendered = rendered(network, &policy.scope(&network.meta.namespace), self);
        rendered.nad().map_or_else(Vec::new, |nad| self.neighbours_of(&nad, lookup, policy))
    }

    /// The NADs that matter to one. A network that the operator does not render has none.
    fn neighbours_of(&self, nad: &Nad<'_>, lookup: &dyn FactLookup, policy: &Policy) -> Vec<Arc<NeighbourFact>> {
        let mut found = lookup.neighbours(&nad.meta.key(), &NetworkUse::of(nad));
        found.retain(|other| {
            let namespace = other.key.namespace();
            other.network.as_ref().is_none_or(|id| {
                let of = NetworkFact {
                    id: id.clone(),
                    target_namespace: namespace.to_owned(),
                    resource_name: String::new(),
                };
                policy.may_render(&of, namespace, self)
            })
        });
        found
    }

    /// The networks that the operator renders to a key.
    pub(super) fn renderers_at(&self, nad: &ObjectKey, lookup: &dyn FactLookup, policy: &Policy) -> Vec<NetworkFact> {
        let mut networks =
            lookup.networks_at(nad, &|network: &NetworkFact| policy.may_render(network, nad.namespace(), self));
        networks.truncate(MAX_RENDERERS);
        networks
    }

    /// Adds the network that a NAD names, read for this review, and the prefix of its resources.
    pub(crate) fn with_owner(self, named_owner: Lookup<NetworkFact>, prefix: Option<Prefix>) -> Self {
        Self { named_owner, prefix, ..self }
    }

    /// Adds all networks that render a NAD, read for this review, and the prefix of their resources.
    pub(crate) fn with_networks(self, networks_here: Vec<NetworkFact>, prefix: Option<Prefix>) -> Self {
        Self { networks_here, knows_networks: true, prefix, ..self }
    }

    /// Adds whether the NAD of a network that moved still exists.
    pub(crate) fn with_last_nad(self, last_nad: Lookup<()>) -> Self {
        Self { last_nad, ..self }
    }

    /// Adds the networks that may own a NAD, read for this review.
    pub(crate) fn with_claimants(self, claimants: Vec<NetworkFact>, named_owner: Lookup<NetworkFact>) -> Self {
        Self { claimants: Some(claimants), claimants_read: true, named_owner, ..self }
    }

    /// Replaces what was known of other NADs by what was read for this review; `None`: the NAD is gone. One that is being deleted, or
    /// whose config says something else now, matters no more.
    pub(crate) fn with_neighbours(mut self, read: Vec<(ObjectKey, Option<NetworkUse>)>) -> Self {
        for (key, summary) in read {
            self.neighbours.retain(|other| other.key != key);
            if let Some(summary) = summary.filter(|summary| !summary.is_empty()) {
                self.certain_neighbours.insert(key.clone());
                self.neighbours.push(Arc::new(NeighbourFact { key, network: None, summary }));
            }
        }
        self.neighbours.sort_by(|one, other| one.rank().cmp(&other.rank()));
        self
    }

    /// Adds what may be named to the writer.
    pub(crate) fn with_names(self, names: NameVisibility) -> Self {
        Self { names, ..self }
    }
}

#[cfg(test)]
mod tests;
