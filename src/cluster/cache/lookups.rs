//! Lookups in the caches.

use std::sync::Arc;

use crate::cluster::cache::Caches;
use crate::cluster::cache::watch::CacheState;
use crate::policy::{
    ClaimFacts, FactLookup, Lookup, MAX_RENDERERS, NadFact, NamespaceState, NeighbourFact, NetworkCoverage,
    NetworkFact, NetworkUse, NodePolicyIndex,
};
use crate::resources::{NetworkId, NetworkKind, ObjectKey};

impl Caches {
    /// The networks that target the key of a NAD, as far as the caches are synced.
    pub(in crate::cluster) fn networks_to(&self, nad: &ObjectKey) -> Vec<NetworkId> {
        self.rendering_to(nad, &|_| true).into_iter().map(|network| network.id).collect()
    }

    /// The networks that target the key of a NAD and for which `renders` is true.
    fn rendering_to(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        let mut found = Vec::new();
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            if let CacheState::Known(networks) = &*cache.state() {
                found.extend(networks.at(kind, nad).filter(renders).take(MAX_RENDERERS));
            }
        }
        found
    }

    /// A network.
    pub(in crate::cluster) fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        let of_kind = NetworkKind::ALL.into_iter().zip(&self.networks).find(|(kind, _)| *kind == id.kind);
        match of_kind.map(|(_, cache)| cache.state()).as_deref() {
            Some(CacheState::Known(networks)) => networks.find(id).map_or(Lookup::Absent, Lookup::Found),
            Some(CacheState::NotInstalled) => Lookup::Absent,
            Some(CacheState::Unknown) | None => Lookup::Unknown,
        }
    }

    /// Whether no network of those kinds has that name there, according to fresh caches.
    pub(in crate::cluster) fn has_no_network(&self, kinds: &[NetworkKind], key: &ObjectKey) -> bool {
        let mut asked = NetworkKind::ALL.into_iter().zip(&self.networks).filter(|(kind, _)| kinds.contains(kind));
        asked.all(|(kind, cache)| match cache.fresh_state().as_deref() {
            None | Some(CacheState::Unknown) => false,
            Some(CacheState::NotInstalled) => true,
            Some(CacheState::Known(networks)) => networks.find(&NetworkId::new(kind, key)).is_none(),
        })
    }

    /// The resource prefix stated by the operator's Deployment in that namespace, if any; `None` if unknown.
    pub(in crate::cluster) fn prefix(&self, namespace: &str) -> Option<Option<String>> {
        match self.deployments.fresh_state().as_deref() {
            Some(CacheState::Known(places)) => Some(places.prefix(namespace).map(str::to_owned)),
            None | Some(CacheState::Unknown | CacheState::NotInstalled) => None,
        }
    }

    /// The keys of the NADs that networks render into a namespace.
    pub(in crate::cluster) fn nad_keys_in(&self, namespace: &str) -> Vec<ObjectKey> {
        let mut nad_keys = Vec::new();
        for cache in &self.networks {
            if let CacheState::Known(networks) = &*cache.state() {
                nad_keys.extend(networks.to(namespace).map(|name| ObjectKey::new(namespace, name)));
            }
        }
        nad_keys
    }

    /// A namespace.
    pub(in crate::cluster) fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        match &*self.namespaces.state() {
            CacheState::Known(namespaces) => namespaces.find(name),
            CacheState::Unknown | CacheState::NotInstalled => Lookup::Unknown,
        }
    }

    /// A NAD.
    pub(in crate::cluster) fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        match &*self.nads.state() {
            CacheState::Known(nads) => nads.find(key),
            CacheState::Unknown | CacheState::NotInstalled => Lookup::Unknown,
        }
    }

    /// The resource names that node policies offer.
    pub(in crate::cluster) fn offered(&self) -> Option<Arc<[String]>> {
        match &*self.policies.state() {
            CacheState::Known(policies) => Some(policies.offered()),
            CacheState::Unknown | CacheState::NotInstalled => None,
        }
    }
}

/// The facts of a review. Values that end up in a stored object are not among them: a NAD's owner is read live.
impl FactLookup for Caches {
    fn coverage(&self) -> NetworkCoverage {
        let is_unknown = self.networks.iter().any(|cache| cache.state().is_unknown());
        if is_unknown { NetworkCoverage::Unknown } else { NetworkCoverage::Cached }
    }

    fn networks_at(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        self.rendering_to(nad, renders)
    }

    fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        Self::nad(self, key)
    }

    fn similar_nad(&self, key: &ObjectKey) -> Option<String> {
        match &*self.nads.state() {
            CacheState::Known(nads) => nads.similar(key),
            CacheState::Unknown | CacheState::NotInstalled => None,
        }
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        Self::namespace(self, name)
    }

    fn offered(&self) -> Option<Arc<[String]>> {
        Self::offered(self)
    }

    fn node_policies(&self) -> Option<Arc<NodePolicyIndex>> {
        match &*self.policies.state() {
            CacheState::Known(policies) => Some(policies.index()),
            CacheState::Unknown | CacheState::NotInstalled => None,
        }
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.claims.served()
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        self.claims.facts(nad, resource_name)
    }

    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        match &*self.nads.state() {
            CacheState::Known(nads) => nads.neighbours(nad, own),
            CacheState::Unknown | CacheState::NotInstalled => Vec::new(),
        }
    }

    fn unreachable(&self) -> Vec<String> {
        let missed = |kind| {
            self.metrics.missed(kind);
            format!("the cache of {kind} objects is not synced")
        };
        self.unknown().into_iter().map(missed).collect()
    }
}
