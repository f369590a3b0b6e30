//! Gathers the facts about one object. Review, check, audit and doctor differ only in where they look things up.

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

    /// Adds what may be named to the writer.
    pub(crate) fn with_names(self, names: NameVisibility) -> Self {
        Self { names, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{OperatorFact, Operators};
    use crate::resources::NetworkKind;

    /// Knows everything, and has a given number of networks.
    struct Everything(NetworkCoverage, usize);

    fn network_fact(namespace: &str) -> NetworkFact {
        let id = NetworkId { kind: NetworkKind::Sriov, namespace: namespace.to_owned(), name: "net".to_owned() };
        NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "cx7".to_owned() }
    }

    impl FactLookup for Everything {
        fn coverage(&self) -> NetworkCoverage {
            self.0
        }

        fn networks_at(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
            assert_eq!(*nad, ObjectKey::new("apps", "net"));
            // Networks of other namespaces come first.
            let strangers = (0..self.1).map(|number| network_fact(&format!("tenant-{number}")));
            strangers.chain([network_fact("op")]).filter(|network| renders(network)).collect()
        }

        fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
            Lookup::Found(network_fact(&id.namespace))
        }

        fn nad(&self, _: &ObjectKey) -> Lookup<NadFact> {
            Lookup::Absent
        }

        fn last_nad(&self, key: &ObjectKey) -> Lookup<()> {
            assert_eq!(*key, ObjectKey::new("before", "net"));
            Lookup::Found(())
        }

        fn namespace(&self, _: &str) -> Lookup<NamespaceState> {
            Lookup::Found(NamespaceState::Active)
        }

        fn offered(&self) -> Option<Arc<[String]>> {
            Some(["cx7".to_owned()].into())
        }

        fn unreachable(&self) -> Vec<String> {
            vec!["pods".to_owned()]
        }
    }

    fn gather(json: &str, lookup: &dyn FactLookup) -> Facts {
        let operator = OperatorFact { namespace: "op".to_owned(), ..OperatorFact::default() };
        let operators = Operators::Known([operator].into());
        let base = Facts { operators, names: NameVisibility::Own(Vec::new()), ..Facts::default() };
        base.gather(&Object::read(json).unwrap().unwrap(), lookup, &Policy::default())
    }

    fn nad(owner: &str) -> String {
        format!(
            r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{{"name":"net","namespace":"apps",
            "annotations":{{"sriovnetwork.openshift.io/owner-ref":"{owner}"}}}}}}"#
        )
    }

    fn network(namespace: &str, name: &str, last: &str) -> String {
        format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"{name}","namespace":"{namespace}",
            "annotations":{{"operator.sriovnetwork.openshift.io/last-network-namespace":"{last}"}}}},
            "spec":{{"resourceName":"cx7","networkNamespace":"apps"}}}}"#
        )
    }

    #[test]
    fn networks_of_a_nad_are_used_as_far_as_they_are_known() {
        for (coverage, here, claimants, knows) in [
            (NetworkCoverage::Unknown, 0, None, false),
            (NetworkCoverage::Partial, 1, None, false),
            (NetworkCoverage::Cached, 0, Some(1), false),
            (NetworkCoverage::Complete, 1, None, true),
        ] {
            let facts = gather(&nad(""), &Everything(coverage, 0));
            let found = (facts.networks_here.len(), facts.claimants.as_ref().map(Vec::len), facts.knows_networks);
            assert_eq!(found, (here, claimants, knows), "{coverage:?}");
            assert_eq!(facts.named_owner, Lookup::Unknown, "it names no owner");
        }
        let named =
            gather(&nad("SriovNetwork.sriovnetwork.openshift.io/op/net"), &Everything(NetworkCoverage::Unknown, 0));
        assert_eq!(named.named_owner, Lookup::Found(network_fact("op")));
    }

    /// Every user may create networks that target another namespace; they must not crowd out the operator's.
    #[test]
    fn networks_that_are_not_rendered_do_not_count() {
        for coverage in [NetworkCoverage::Cached, NetworkCoverage::Complete] {
            let facts = gather(&nad(""), &Everything(coverage, 100));
            let known =
                if coverage == NetworkCoverage::Cached { facts.claimants.unwrap() } else { facts.networks_here };
            assert_eq!(known, [network_fact("op")]);
        }
        assert_eq!(gather(&network("op", "net", ""), &Everything(NetworkCoverage::Cached, 100)).networks_here.len(), 1);
    }

    #[test]
    fn a_network_gets_the_facts_about_its_target() {
        let lookup = Everything(NetworkCoverage::Cached, 0);
        let facts = gather(&network("op", "net", "before"), &lookup);
        assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Found(NamespaceState::Active), Lookup::Absent));
        assert_eq!((facts.networks_here, facts.last_nad), (vec![network_fact("op")], Lookup::Found(())));
        assert_eq!(
            (facts.offered.as_deref(), facts.unreachable),
            (Some(["cx7".to_owned()].as_slice()), vec!["pods".to_owned()])
        );

        let stayed = gather(&network("op", "net", "apps"), &lookup);
        assert_eq!(stayed.last_nad, Lookup::Unknown);

        let unnamed = gather(&network("op", "", ""), &lookup);
        assert_eq!((unnamed.nad_here, unnamed.networks_here), (Lookup::Unknown, Vec::new()));
        assert_eq!(unnamed.target_namespace, Lookup::Found(NamespaceState::Active));

        let foreign = gather(&network("tenant", "net", "before"), &lookup);
        assert_eq!((foreign.target_namespace, foreign.nad_here), (Lookup::Unknown, Lookup::Unknown));
        assert!(foreign.networks_here.is_empty() && foreign.offered.is_none() && foreign.unreachable.is_empty());
        assert_eq!(foreign.last_nad, Lookup::Unknown);
    }

    #[test]
    fn facts_read_for_a_review_are_added() {
        let prefix = Prefix { value: "a.io".to_owned(), assumed: true };
        let found = || Lookup::Found(network_fact("op"));
        let owned = Facts::default().with_owner(found(), Some(prefix.clone()));
        assert_eq!((&owned.named_owner, &owned.prefix, owned.knows_networks), (&found(), &Some(prefix), false));
        let all = owned.clone().with_networks(vec![network_fact("op")], None);
        assert_eq!((all.networks_here.len(), all.knows_networks, all.prefix.is_none()), (1, true, true));
        assert_eq!(owned.clone().with_last_nad(Lookup::Absent).last_nad, Lookup::Absent);
        let claimed = owned.clone().with_claimants(vec![network_fact("op")], Lookup::Absent);
        assert_eq!((claimed.claimants.map(|all| all.len()), claimed.claimants_read), (Some(1), true));
        assert_eq!(claimed.named_owner, Lookup::Absent);
        let names = NameVisibility::Own(Vec::new());
        assert_eq!(owned.with_names(names.clone()).names, names);
    }

    #[test]
    fn without_a_source_nothing_is_known() {
        let facts = gather(&network("op", "net", "before"), &());
        assert_eq!((facts.target_namespace, facts.nad_here, facts.last_nad), Default::default());
        assert_eq!((facts.offered, facts.unreachable.len(), facts.networks_here.len()), (None, 0, 0));
        let facts = gather(&nad("SriovNetwork.sriovnetwork.openshift.io/op/net"), &());
        assert_eq!((facts.named_owner, facts.claimants, facts.knows_networks), (Lookup::Unknown, None, false));
    }
}
