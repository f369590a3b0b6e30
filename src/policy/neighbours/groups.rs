//! NADs by a name, and by what they say about it: in the whole cluster, and in each namespace, so that those of others hide none of the
//! same namespace.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{MAX_COMPARED, MAX_NEIGHBOURS, Ranked};
use crate::resources::ObjectKey;

/// NADs by what they say.
pub(super) type Groups<G> = BTreeMap<G, BTreeSet<Ranked>>;

/// NADs by a name, and by what they say about it.
#[derive(Debug)]
pub(super) struct Named<G> {
    all: BTreeMap<Box<str>, Groups<G>>,
    /// By the namespace and the name.
    of_namespaces: BTreeMap<ObjectKey, Groups<G>>,
}

impl<G> Default for Named<G> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), of_namespaces: BTreeMap::new() }
    }
}

impl<G: Clone + Ord> Named<G> {
    pub(super) fn insert(&mut self, name: &str, group: G, nad: &Ranked) {
        let here = ObjectKey::new(nad.0.key.namespace(), name);
        self.all.entry(name.into()).or_default().entry(group.clone()).or_default().insert(nad.clone());
        self.of_namespaces.entry(here).or_default().entry(group).or_default().insert(nad.clone());
    }

    pub(super) fn remove(&mut self, name: &str, group: &G, nad: &Ranked) {
        let here = ObjectKey::new(nad.0.key.namespace(), name);
        remove_from(&mut self.all, name, group, nad);
        remove_from(&mut self.of_namespaces, &here, group, nad);
    }

    /// Those of a name in that namespace, and all of them.
    pub(super) fn find(&self, name: &str, namespace: &str) -> impl Iterator<Item = &Groups<G>> {
        let here = self.of_namespaces.get(&ObjectKey::new(namespace, name));
        here.into_iter().chain(self.all.get(name))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.of_namespaces.is_empty()
    }
}

fn remove_from<K, Q, G>(named: &mut BTreeMap<K, Groups<G>>, name: &Q, group: &G, nad: &Ranked)
where
    K: Ord + std::borrow::Borrow<Q>,
    Q: Ord + ?Sized,
    G: Ord,
{
    let Some(groups) = named.get_mut(name) else { return };
    if let Some(nads) = groups.get_mut(group) {
        nads.remove(nad);
        if nads.is_empty() {
            groups.remove(group);
        }
    }
    if groups.is_empty() {
        named.remove(name);
    }
}

/// Adds the oldest of some NADs.
pub(super) fn oldest<'n>(nads: impl Iterator<Item = &'n Ranked>, key: &ObjectKey, found: &mut BTreeSet<Ranked>) {
    let mut here: Vec<&Ranked> = nads.filter(|nad| nad.0.key != *key).take(MAX_COMPARED).collect();
    here.sort_unstable();
    found.extend(here.into_iter().take(MAX_NEIGHBOURS).cloned());
}
