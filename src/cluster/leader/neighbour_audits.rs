//! Which NADs must be audited again because another one changed: those whose findings may be about it.

use std::collections::{BTreeSet, HashMap};

use crate::cluster::cache::Caches;
use crate::cluster::cache::watch::CacheState;
use crate::resources::ObjectKey;

/// The NADs that each NAD was compared with when it was audited. Those with none are not included.
#[derive(Debug, Default)]
pub(in crate::cluster) struct NeighbourAudits {
    compared: HashMap<ObjectKey, Vec<ObjectKey>>,
    /// The same the other way round.
    concerned: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl NeighbourAudits {
    /// Records what a NAD was compared with.
    pub(in crate::cluster) fn record(&mut self, nad: &ObjectKey, compared: Vec<ObjectKey>) {
        for other in self.compared.remove(nad).unwrap_or_default() {
            if let Some(concerned) = self.concerned.get_mut(&other) {
                concerned.remove(nad);
                if concerned.is_empty() {
                    self.concerned.remove(&other);
                }
            }
        }
        if compared.is_empty() {
            return;
        }
        for other in &compared {
            self.concerned.entry(other.clone()).or_default().insert(nad.clone());
        }
        self.compared.insert(nad.clone(), compared);
    }

    /// The NADs that were compared with one when they were audited.
    pub(in crate::cluster) fn concerned(&self, nad: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.concerned.get(nad).into_iter().flatten()
    }
}

impl Caches {
    /// The keys of the NADs that matter to one, as it is stored.
    pub(in crate::cluster) fn neighbour_keys(&self, nad: &ObjectKey) -> Vec<ObjectKey> {
        match &*self.nads.state() {
            CacheState::Known(nads) => nads.neighbour_keys(nad),
            CacheState::Unknown | CacheState::NotInstalled => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_compared_are_concerned() {
        let key = |name: &str| ObjectKey::new("apps", name);
        let mut audits = NeighbourAudits::default();
        audits.record(&key("a"), vec![key("b"), key("c")]);
        audits.record(&key("b"), vec![key("c")]);
        let concerned = |audits: &NeighbourAudits, name: &str| {
            audits.concerned(&key(name)).map(|other| other.name().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((concerned(&audits, "b"), concerned(&audits, "c")), ("a".to_owned(), "a b".to_owned()));
        audits.record(&key("a"), Vec::new());
        assert_eq!((concerned(&audits, "b"), concerned(&audits, "c")), (String::new(), "b".to_owned()));
        audits.record(&key("b"), Vec::new());
        assert!(audits.compared.is_empty() && audits.concerned.is_empty());
    }
}
