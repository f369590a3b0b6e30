//! Finds the NADs that matter to one, without comparing it with all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::interval_index::IntervalIndex;
use super::{NeighbourFact, NetworkUse, OvnNetwork, SliceUse};
use crate::resources::{NetworkId, ObjectKey};

/// How many neighbours of one kind are reported to rules; more make no difference.
pub const MAX_NEIGHBOURS: usize = 4;
/// How many candidates are compared in one lookup. Beyond, a neighbour may be missed; this bounds what a lookup costs whatever others
/// write.
const MAX_COMPARED: usize = 256;

/// All known NADs.
#[derive(Debug, Default)]
pub struct NeighbourIndex {
    /// Those that matter to others; `None`: two manifests of one NAD disagree.
    nads: HashMap<ObjectKey, Option<Ranked>>,
    /// By the name of the network of OVN-Kubernetes, and what is compared of it.
    ovn: Groups<OvnNetwork>,
    /// Those with the primary network of a namespace.
    primary: BTreeMap<Box<str>, BTreeSet<Ranked>>,
    /// By `network_name`. Those with slices come first.
    slices: Groups<(bool, SliceUse)>,
    /// By what the NADs attach pods through.
    pools: HashMap<Box<str>, IntervalIndex<Ranked>>,
}

/// NADs by a name, and by what they say about it.
type Groups<G> = BTreeMap<Box<str>, BTreeMap<G, BTreeSet<Ranked>>>;

/// A NAD, ordered by age.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranked(Arc<NeighbourFact>);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.summary.rank(&self.0.key).cmp(&other.0.summary.rank(&other.0.key))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl NeighbourIndex {
    /// Adds a NAD, or replaces what is known of it.
    pub fn put(&mut self, key: &ObjectKey, summary: NetworkUse) {
        self.insert(key, None, summary);
    }

    fn insert(&mut self, key: &ObjectKey, network: Option<NetworkId>, summary: NetworkUse) {
        self.remove(key);
        if !summary.is_empty() {
            let nad = Ranked(Arc::new(NeighbourFact { key: key.clone(), network, summary }));
            self.link(&nad);
            self.nads.insert(key.clone(), Some(nad));
        }
    }

    /// Adds a manifest. Where two of one NAD disagree, nothing is known of it.
    pub fn add(&mut self, key: &ObjectKey, summary: NetworkUse) {
        match self.nads.get(key) {
            None if summary.is_empty() => drop(self.nads.insert(key.clone(), None)),
            None => self.put(key, summary),
            Some(Some(known)) if known.0.summary == summary => {}
            Some(_) => {
                self.remove(key);
                self.nads.insert(key.clone(), None);
            }
        }
    }

    /// Adds the NAD that a network renders, unless the NAD itself is known.
    pub fn add_rendered(&mut self, key: &ObjectKey, network: NetworkId, summary: NetworkUse) {
        match self.nads.get(key) {
            None => self.insert(key, Some(network), summary),
            // Which of two networks gets the NAD is not known.
            Some(Some(known)) if known.0.network.as_ref().is_some_and(|other| *other != network) => {
                self.remove(key);
                self.nads.insert(key.clone(), None);
            }
            Some(_) => {}
        }
    }

    /// Removes a NAD.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(Some(nad)) = self.nads.remove(key) {
            self.unlink(&nad);
        }
    }

    fn link(&mut self, nad: &Ranked) {
        let NeighbourFact { key, summary, .. } = &*nad.0;
        if let Some(ovn) = &summary.ovn {
            self.ovn.entry(ovn.name.clone()).or_default().entry(ovn.clone()).or_default().insert(nad.clone());
            if ovn.is_primary() && ovn.is_accepted {
                self.primary.entry(key.namespace().into()).or_default().insert(nad.clone());
            }
        }
        if let Some(slices) = &summary.slices {
            let group = (!slices.has_slices(), slices.clone());
            let of_name = self.slices.entry(slices.network_name.clone()).or_default();
            of_name.entry(group).or_default().insert(nad.clone());
        }
        if let Some(pool) = &summary.pool {
            let pools = self.pools.entry(pool.l2.base().into()).or_default();
            pool.ranges.iter().for_each(|range| pools.insert(*range, nad.clone()));
        }
    }

    fn unlink(&mut self, nad: &Ranked) {
        let NeighbourFact { key, summary, .. } = &*nad.0;
        if let Some(ovn) = &summary.ovn {
            remove_from_group(&mut self.ovn, &ovn.name, ovn, nad);
            if let Some(primary) = self.primary.get_mut(key.namespace()) {
                primary.remove(nad);
                if primary.is_empty() {
                    self.primary.remove(key.namespace());
                }
            }
        }
        if let Some(slices) = &summary.slices {
            remove_from_group(&mut self.slices, &slices.network_name, &(!slices.has_slices(), slices.clone()), nad);
        }
        if let Some(pool) = &summary.pool
            && let Some(pools) = self.pools.get_mut(pool.l2.base())
        {
            pool.ranges.iter().for_each(|range| pools.remove(*range, nad));
            if pools.is_empty() {
                self.pools.remove(pool.l2.base());
            }
        }
    }

    /// The NADs that matter to one with this key and summary: up to [`MAX_NEIGHBOURS`] of each kind, the oldest first.
    pub fn neighbours(&self, key: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        let mut found = BTreeSet::new();
        self.add_ovn(key, own, &mut found);
        self.add_slices(key, own, &mut found);
        self.add_pools(key, own, &mut found);
        found.into_iter().map(|nad| nad.0).collect()
    }

    /// The same for a known NAD, and only their keys.
    pub fn neighbour_keys(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let Some(Some(known)) = self.nads.get(key) else { return Vec::new() };
        self.neighbours(key, &known.0.summary).into_iter().map(|nad| nad.key.clone()).collect()
    }

    fn add_ovn(&self, key: &ObjectKey, own: &NetworkUse, found: &mut BTreeSet<Ranked>) {
        let Some(ovn) = &own.ovn else { return };
        let groups = self.ovn.get(ovn.name()).into_iter().flatten().take(MAX_COMPARED);
        let different = groups.filter(|(other, _)| ovn.conflicts(other)).flat_map(|(_, nads)| nads.iter().take(2));
        oldest(different, key, found);
        if ovn.is_primary() {
            oldest(self.primary.get(key.namespace()).into_iter().flatten(), key, found);
        }
    }

    fn add_slices(&self, key: &ObjectKey, own: &NetworkUse, found: &mut BTreeSet<Ranked>) {
        let Some(slices) = &own.slices else { return };
        let groups = self.slices.get(slices.network_name()).into_iter().flatten();
        let groups = groups.take_while(|((without, _), _)| slices.has_slices() || !without).take(MAX_COMPARED);
        let different = groups.filter(|((_, other), _)| slices.disagrees(other));
        oldest(different.flat_map(|(_, nads)| nads.iter().take(2)), key, found);
    }

    fn add_pools(&self, key: &ObjectKey, own: &NetworkUse, found: &mut BTreeSet<Ranked>) {
        let Some(pool) = &own.pool else { return };
        let Some(pools) = self.pools.get(pool.l2.base()) else { return };
        let (mut here, mut compared): (Vec<&Ranked>, usize) = (Vec::new(), 0);
        for range in &pool.ranges {
            pools.for_each_overlapping(*range, &mut |nad| {
                compared += 1;
                let conflicts = || nad.0.summary.pool.as_ref().is_some_and(|other| pool.conflict(other).is_some());
                if nad.0.key != *key && conflicts() {
                    here.push(nad);
                }
                compared < MAX_COMPARED
            });
        }
        here.sort_unstable();
        here.dedup_by_key(|nad| &nad.0.key);
        found.extend(here.into_iter().take(MAX_NEIGHBOURS).cloned());
    }

    /// How many NADs matter to others.
    pub fn count(&self) -> usize {
        self.nads.len()
    }
}

/// Adds the oldest of some NADs.
fn oldest<'n>(nads: impl Iterator<Item = &'n Ranked>, key: &ObjectKey, found: &mut BTreeSet<Ranked>) {
    let mut here: Vec<&Ranked> = nads.filter(|nad| nad.0.key != *key).take(MAX_COMPARED).collect();
    here.sort_unstable();
    found.extend(here.into_iter().take(MAX_NEIGHBOURS).cloned());
}

fn remove_from_group<G: Ord>(groups: &mut Groups<G>, name: &str, group: &G, nad: &Ranked) {
    let Some(of_name) = groups.get_mut(name) else { return };
    if let Some(nads) = of_name.get_mut(group) {
        nads.remove(nad);
        if nads.is_empty() {
            of_name.remove(group);
        }
    }
    if of_name.is_empty() {
        groups.remove(name);
    }
}

#[cfg(test)]
mod tests;
