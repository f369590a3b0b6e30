//! What is looked up in the caches: around one place, at once.

use std::sync::Arc;

use super::cache::Caches;
use super::changes::Spot;
use super::collection::key;
use super::watch::Held;
use crate::policy::{Lookup, NamespaceState, NetworkFact};
use crate::resources::{LAST_NAMESPACE, Network, NetworkId, NetworkKind};

impl Caches {
    /// The networks that render a NAD there.
    pub(super) fn networks_at(&self, namespace: &str, name: &str) -> Vec<NetworkId> {
        let mut found = Vec::new();
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            if let Held::Known(networks) = &*cache.held() {
                found.extend(networks.at(kind, namespace, name).map(|network| network.id));
            }
        }
        found
    }

    /// A network.
    pub(super) fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        let of_kind = NetworkKind::ALL.into_iter().zip(&self.networks).find(|(kind, _)| *kind == id.kind);
        match of_kind.map(|(_, cache)| cache.held()).as_deref() {
            Some(Held::Known(networks)) => networks.find(id).map_or(Lookup::Absent, Lookup::Found),
            Some(Held::NotInstalled) => Lookup::Absent,
            Some(Held::Unknown) | None => Lookup::Unknown,
        }
    }

    /// Whether no network of those kinds has that name there, as far as the watches have seen.
    pub(super) fn has_none_at(&self, kinds: &[NetworkKind], namespace: &str, name: &str) -> bool {
        let mut asked = NetworkKind::ALL.into_iter().zip(&self.networks).filter(|(kind, _)| kinds.contains(kind));
        asked.all(|(kind, cache)| match cache.fresh().as_deref() {
            None | Some(Held::Unknown) => false,
            Some(Held::NotInstalled) => true,
            Some(Held::Known(networks)) => {
                networks.find(&NetworkId { kind, namespace: namespace.to_owned(), name: name.to_owned() }).is_none()
            }
        })
    }

    /// The prefix of resource names that the operator's Deployment there states, if any; `None` where that is unknown.
    pub(super) fn prefix(&self, namespace: &str) -> Option<Option<String>> {
        match self.deployments.fresh().as_deref() {
            Some(Held::Known(places)) => Some(places.prefix(namespace).map(str::to_owned)),
            None | Some(Held::Unknown | Held::NotInstalled) => None,
        }
    }

    /// Where the networks that render to a namespace have their NADs.
    pub(super) fn spots_in(&self, namespace: &str) -> Vec<Spot> {
        let mut spots = Vec::new();
        for cache in &self.networks {
            if let Held::Known(networks) = &*cache.held() {
                spots.extend(networks.to(namespace).map(|name| (namespace.into(), name.into())));
            }
        }
        spots
    }

    /// A namespace, if namespaces are known.
    pub(super) fn namespace(&self, name: &str) -> Option<Option<NamespaceState>> {
        match &*self.namespaces.held() {
            Held::Known(namespaces) => match namespaces.find(name) {
                Lookup::Found(state) => Some(Some(state)),
                Lookup::Absent | Lookup::Unknown => Some(None),
            },
            Held::Unknown | Held::NotInstalled => None,
        }
    }

    /// The resource names that node policies offer.
    pub(super) fn offered(&self) -> Option<Arc<[String]>> {
        match &*self.policies.held() {
            Held::Known(policies) => Some(policies.offered()),
            Held::Unknown | Held::NotInstalled => None,
        }
    }

    /// Whether a network's NAD is still where it went last; `None` where it goes there still, or nobody knows.
    pub(super) fn last_nad(&self, network: &Network<'_>) -> Option<bool> {
        let last = network.meta.annotation(LAST_NAMESPACE).filter(|last| *last != network.target_namespace())?;
        match &*self.nads.held() {
            Held::Known(nads) => Some(nads.find(&key(&last, &network.meta.name)) != Lookup::Absent),
            Held::Unknown | Held::NotInstalled => None,
        }
    }
}
