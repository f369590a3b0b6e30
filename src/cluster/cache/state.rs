//! The state of a cached collection.

use std::collections::HashSet;

use crate::cluster::client::collection::ApiObject;
use crate::resources::ObjectKey;

/// How many unreadable objects are recorded as logged.
const MAX_LOGGED: usize = 1000;

/// A store of summaries of the objects in a collection.
pub(in crate::cluster) trait Summarize: Default + Send + Sync + 'static {
    /// The summary of one object.
    type Summarized;

    /// Summarizes an object; `None` if it cannot be read.
    fn read(object: &ApiObject<'_>) -> Option<Self::Summarized>;

    /// Inserts or replaces the summary of an object.
    fn put(&mut self, key: &ObjectKey, fact: Self::Summarized);

    /// Removes an object.
    fn remove(&mut self, key: &ObjectKey);

    /// How many objects are known.
    fn count(&self) -> usize;
}

/// Whether a collection is known.
#[derive(Debug, Default)]
pub(in crate::cluster) enum CacheState<K> {
    /// Unknown: not listed yet, or stale.
    #[default]
    Unknown,
    /// The kind is not installed.
    NotInstalled,
    /// The complete collection.
    Known(K),
}

impl<K> CacheState<K> {
    pub(in crate::cluster) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// Which objects were already logged as unreadable.
#[derive(Debug, Default)]
pub(in crate::cluster) struct LoggedObjects(pub(in crate::cluster) HashSet<Option<ObjectKey>>);

impl LoggedObjects {
    /// Whether it was not logged yet. Those without a name count as one.
    pub(in crate::cluster) fn is_new(&mut self, key: Option<&ObjectKey>) -> bool {
        self.0.len() < MAX_LOGGED && self.0.insert(key.cloned())
    }
}
