//! The NADs of a full scan that matter to each other. They must be known before the first one is judged: the leader has them in its
//! caches, and `nadmit audit` lists the NADs once more, because keeping all their texts until then takes memory that the cluster's
//! users decide about.

use std::sync::Arc;

use crate::cluster::cache::Caches;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiResource, Cluster};
use crate::cluster::leader::scan_scope::ReadableKinds;
use crate::policy::{FactLookup, NeighbourFact, NeighbourIndex, NetworkUse};
use crate::resources::{Object, ObjectKey};
use crate::supervise::contained;

/// Where a full scan finds them.
pub(in crate::cluster) enum ScanNeighbours {
    /// In the caches, which have them anyway.
    Cached(Arc<Caches>),
    /// In a list that was read for the scan.
    Listed(Box<NeighbourIndex>),
}

impl Default for ScanNeighbours {
    fn default() -> Self {
        Self::Listed(Box::default())
    }
}

impl ScanNeighbours {
    /// The NADs that matter to one.
    pub(in crate::cluster) fn find(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        match self {
            Self::Cached(caches) => FactLookup::neighbours(&**caches, nad, own),
            Self::Listed(index) => index.neighbours(nad, own),
        }
    }
}

impl Cluster {
    /// Lists the NADs that may be read. One that cannot be read is reported when it is judged.
    pub(in crate::cluster) async fn list_neighbours(
        &self,
        readable: &ReadableKinds,
    ) -> Result<ScanNeighbours, ApiError> {
        let mut index = NeighbourIndex::default();
        let Some(path) = readable.collection(ApiResource::NADS)? else {
            return Ok(ScanNeighbours::Listed(Box::new(index)));
        };
        let add = |text: &str| {
            let read = || {
                let object = ApiObject::read(text)?;
                match object.typed() {
                    Some(Object::Nad(nad)) => Some((object.key.clone(), NetworkUse::of(nad))),
                    _ => None,
                }
            };
            if let Ok(Some((key, summary))) = contained(read) {
                index.put(&key, summary);
            }
        };
        let listed = self.for_each_object(&path, add).await;
        listed.map_err(|failed| failed.naming(&format!("list {} in all namespaces", ApiResource::NADS.plural())))?;
        Ok(ScanNeighbours::Listed(Box::new(index)))
    }
}
