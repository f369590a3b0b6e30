//! What is kept of a collection, and what is known of it.

use std::collections::HashSet;

use super::collection::Id;

/// How many objects that cannot be read are remembered as logged.
const MOST_LOGGED: usize = 1000;

/// What is kept of a collection.
pub(super) trait Keep: Default + Send + Sync + 'static {
    /// What is kept of one object.
    type Fact;

    /// The fact in an object's text; `None` where nothing can be made of it.
    fn read(object: &str) -> Option<Self::Fact>;

    /// Keeps a fact, in place of an earlier one about the same object.
    fn put(&mut self, id: &Id<'_>, fact: Self::Fact);

    /// Forgets an object.
    fn remove(&mut self, id: &Id<'_>);

    /// How many objects are known.
    fn count(&self) -> usize;
}

/// What is known of a collection.
#[derive(Debug, Default)]
pub(super) enum Held<K> {
    /// Nothing: it could not be listed yet, or not any more.
    #[default]
    Unknown,
    /// The API server does not have the kind.
    NotInstalled,
    /// All of it.
    Known(K),
}

impl<K> Held<K> {
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// Which objects were already logged as unreadable.
#[derive(Debug, Default)]
pub(super) struct Logged(pub(super) HashSet<Box<str>>);

impl Logged {
    /// Whether it was not logged yet.
    pub(super) fn is_new(&mut self, name: &str) -> bool {
        self.0.len() < MOST_LOGGED && self.0.insert(name.into())
    }
}
