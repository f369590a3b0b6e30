//! Objects that a scan of the whole cluster needs again after it has seen them.
//!
//! Their authors decide how large they are, and a hundred of the largest would take more memory than the pod has. So only so much is held,
//! and what does not fit is read again when its turn comes.

use std::borrow::Cow;

use crate::audit::stored_object::StoredObject;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, Cluster};
use crate::resources::NetworkId;

/// How much text is held, in bytes.
const MOST_HELD: usize = 16 << 20;
/// A text up to this length is always held: reading it again would take longer than it is worth, and nearly all networks are shorter.
const SMALL: usize = 2 << 10;

/// How much is held so far.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Memory(usize);

impl Memory {
    /// Whether a text may be held.
    fn takes(&mut self, length: usize) -> bool {
        let takes = length <= SMALL || self.0.saturating_add(length) <= MOST_HELD;
        if takes {
            self.0 = self.0.saturating_add(length);
        }
        takes
    }
}

/// An object that is needed later.
#[derive(Debug)]
pub(in crate::cluster) struct Later {
    /// Where to read it again.
    pub(in crate::cluster) path: Option<ApiPath>,
    /// Which network it is, if it is one.
    pub(in crate::cluster) id: Option<NetworkId>,
    held: Option<StoredObject>,
}

impl Later {
    /// A network.
    pub(in crate::cluster) fn network(id: NetworkId, object: StoredObject, memory: &mut Memory) -> Self {
        let path = ApiPath::network(&id).ok();
        let held = memory.takes(object.text.len()).then_some(object);
        Self { path, id: Some(id), held }
    }

    /// A NAD; `None` if it has no name.
    pub(in crate::cluster) fn nad(object: &StoredObject, memory: &mut Memory) -> Option<Self> {
        let key = ApiObject::read(&object.text)?.key;
        let path = ApiPath::nad(&key).ok();
        let held = memory.takes(object.text.len()).then(|| object.clone());
        Some(Self { path, id: None, held })
    }

    /// An object that is held in any case.
    pub(in crate::cluster) fn held(object: StoredObject) -> Self {
        Self { path: None, id: None, held: Some(object) }
    }

    /// The object; `None` if it was deleted in the meantime.
    pub(in crate::cluster) async fn whole(&self, cluster: &Cluster) -> Result<Option<Cow<'_, StoredObject>>, ApiError> {
        match &self.held {
            Some(held) => Ok(Some(Cow::Borrowed(held))),
            None => Ok(self.read_again(cluster).await?.map(Cow::Owned)),
        }
    }

    /// The same without a copy.
    pub(in crate::cluster) async fn into_whole(self, cluster: &Cluster) -> Result<Option<StoredObject>, ApiError> {
        match self.held {
            Some(held) => Ok(Some(held)),
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
    fn a_bounded_amount_of_text_is_held() {
        let mut memory = Memory::default();
        let large = 1 << 20;
        let held = (0..100).filter(|_| memory.takes(large)).count();
        assert_eq!(held, MOST_HELD / large);
        assert!(memory.takes(SMALL) && !memory.takes(SMALL + 1));
    }
}
