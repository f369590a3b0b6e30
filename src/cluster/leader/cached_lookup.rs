//! The facts of the continuous audit, from the caches.

use std::sync::Arc;

use crate::cluster::cache::Caches;
use crate::cluster::leader::object_audit::AuditLookup;
use crate::policy::{ClaimFacts, FactLookup, Lookup, NamespaceState, NeighbourFact, NetworkFact, NetworkUse};
use crate::resources::{NetworkId, ObjectKey};

impl AuditLookup for Caches {
    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        Self::network(self, id)
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        Self::namespace(self, name)
    }

    fn nad(&self, key: &ObjectKey) -> Lookup<()> {
        match Self::nad(self, key) {
            Lookup::Found(_) => Lookup::Found(()),
            Lookup::Absent => Lookup::Absent,
            Lookup::Unknown => Lookup::Unknown,
        }
    }

    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        FactLookup::neighbours(self, nad, own)
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> Option<ClaimFacts> {
        Some(FactLookup::claims(self, nad, resource_name))
    }

    fn served_by_classes(&self) -> Option<Arc<[String]>> {
        Some(FactLookup::served_by_classes(self))
    }
}
