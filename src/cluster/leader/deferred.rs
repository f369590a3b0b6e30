//! Objects that a full scan lists first and audits later.
//!
//! The authors of objects decide how large they are, and a hundred of the largest need more memory than the pod has. So the scan keeps
//! a limited amount of text, and reads the other objects again when it audits them.

use std::borrow::Cow;

use crate::audit::stored_object::StoredObject;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::resources::{NetworkId, ObjectKey};

/// The limit of all texts in memory, in bytes.
const MAX_TOTAL_LENGTH: usize = 16 << 20;
/// A text up to this length always stays in memory: another request costs more, and the texts of nearly all networks are shorter.
const ALWAYS_KEPT_LENGTH: usize = 2 << 10;

/// Limits how much text stays in memory; holds the length in bytes so far.
#[derive(Debug, Default)]
pub(in crate::cluster) struct TextBudget(usize);

impl TextBudget {
    /// Counts a text if it may stay in memory; returns whether it may.
    fn reserve(&mut self, length: usize) -> bool {
        let fits = length <= ALWAYS_KEPT_LENGTH || self.0.saturating_add(length) <= MAX_TOTAL_LENGTH;
        if fits {
            self.0 = self.0.saturating_add(length);
        }
        fits
    }
}

/// An object that the scan audits later.
#[derive(Debug)]
pub(in crate::cluster) struct DeferredObject {
    /// Its path in the API, to read it again.
    pub(in crate::cluster) path: Option<ApiPath>,
    /// The id of a network; `None` for other kinds.
    pub(in crate::cluster) id: Option<NetworkId>,
    /// The object, unless it exceeded the budget.
    in_memory: Option<StoredObject>,
}

impl DeferredObject {
    /// A network.
    pub(in crate::cluster) fn network(id: NetworkId, object: StoredObject, budget: &mut TextBudget) -> Self {
        let path = ApiPath::network(&id).ok();
        let in_memory = budget.reserve(object.text.len()).then_some(object);
        Self { path, id: Some(id), in_memory }
    }

    /// A NAD; `None` if it has no name.
    pub(in crate::cluster) fn nad(object: &StoredObject, budget: &mut TextBudget) -> Option<Self> {
        let key = ApiObject::read(&object.text)?.key;
        let path = ApiPath::nad(&key).ok();
        let in_memory = budget.reserve(object.text.len()).then(|| object.clone());
        Some(Self { path, id: None, in_memory })
    }

    /// A node policy.
    pub(in crate::cluster) fn node_policy(key: &ObjectKey, object: StoredObject, budget: &mut TextBudget) -> Self {
        let path = ApiPath::object(ApiResource::NODE_POLICIES, key).ok();
        let in_memory = budget.reserve(object.text.len()).then_some(object);
        Self { path, id: None, in_memory }
    }

    /// An object that stays in memory whatever its size.
    pub(in crate::cluster) fn in_memory(object: StoredObject) -> Self {
        Self { path: None, id: None, in_memory: Some(object) }
    }

    /// The object, from memory or read again; `None` if it was deleted in the meantime.
    pub(in crate::cluster) async fn load(&self, cluster: &Cluster) -> Result<Option<Cow<'_, StoredObject>>, ApiError> {
        match &self.in_memory {
            Some(object) => Ok(Some(Cow::Borrowed(object))),
            None => Ok(self.read_again(cluster).await?.map(Cow::Owned)),
        }
    }

    /// [`load`](Self::load) without a copy.
    pub(in crate::cluster) async fn into_loaded(self, cluster: &Cluster) -> Result<Option<StoredObject>, ApiError> {
        match self.in_memory {
            Some(object) => Ok(Some(object)),
            None => self.read_again(cluster).await,
        }
    }

    async fn read_again(&self, cluster: &Cluster) -> Result<Option<StoredObject>, ApiError> {
        match &self.path {
            Some(path) => cluster.stored_object(path).await,
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_memory_is_bounded() {
        let mut budget = TextBudget::default();
        let large = 1 << 20;
        let reserved = (0..100).filter(|_| budget.reserve(large)).count();
        assert_eq!(reserved, MAX_TOTAL_LENGTH / large);
        assert!(budget.reserve(ALWAYS_KEPT_LENGTH) && !budget.reserve(ALWAYS_KEPT_LENGTH + 1));
    }
}
