//! Finds the NADs that matter to one, without comparing it with all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::groups::{Named, oldest};
use super::interval_index::IntervalIndex;
use super::l2::{L2, Tag};
use super::ranges::AddressRange;
use super::{NeighbourFact, NetworkUse, OvnNetwork, SliceUse};
use crate::resources::{NetworkId, ObjectKey};

/// How many neighbours of one kind are reported to rules; more make no difference.
pub const MAX_NEIGHBOURS: usize = 4;
/// How many NADs that do not fit to one are compared by age in one lookup. Beyond, an older one may be missed, but never all of them:
/// only those that do not fit are counted. This bounds what a lookup costs whatever others write.
pub(super) const MAX_COMPARED: usize = 256;

/// All known NADs.
#[derive(Debug, Default)]
pub struct NeighbourIndex {
    /// Those that matter to others; `None`: two manifests of one NAD disagree.
    nads: HashMap<ObjectKey, Option<Ranked>>,
    /// By the name of the network of OVN-Kubernetes, and what is compared of it.
    ovn: Named<(OvnNetwork, Option<i64>)>,
    /// Those with the primary network of a namespace.
    primary: BTreeMap<Box<str>, BTreeSet<Ranked>>,
    /// By `network_name`. Those with slices come first.
    slices: Named<(bool, SliceUse)>,
    /// By the layer 2 network, in groups of those that know of each other's addresses.
    pools: HashMap<L2, IntervalIndex<Option<Arc<str>>, Ranked>>,
    /// Those that share their addresses with other networks, by what these have in common, in groups of one network.
    shared: HashMap<Box<str>, IntervalIndex<Tag, Ranked>>,
}

/// A NAD, ordered by age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranked(pub(super) Arc<NeighbourFact>);

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
        // One that OVN-Kubernetes rejects matters to no other.
        if let Some(ovn) = summary.ovn.as_ref().filter(|ovn| ovn.is_accepted) {
            self.ovn.insert(ovn.name(), ovn.without_mtu(), nad);
            if ovn.is_primary() {
                self.primary.entry(key.namespace().into()).or_default().insert(nad.clone());
            }
        }
        if let Some(slices) = &summary.slices {
            self.slices.insert(slices.network_name(), (!slices.has_slices(), slices.clone()), nad);
        }
        if let Some(pool) = &summary.pool {
            let (pools, allocator) = (self.pools.entry(pool.l2.clone()).or_default(), pool.allocator());
            pool.ranges.iter().for_each(|range| pools.insert(*range, allocator.clone(), nad.clone()));
            if let Some((networks, tag)) = pool.blocked_by() {
                let pools = self.shared.entry(networks).or_default();
                pool.ranges.iter().for_each(|range| pools.insert(*range, tag, nad.clone()));
            }
        }
    }

    fn unlink(&mut self, nad: &Ranked) {
        let NeighbourFact { key, summary, .. } = &*nad.0;
        if let Some(ovn) = &summary.ovn {
            self.ovn.remove(ovn.name(), &ovn.without_mtu(), nad);
            if let Some(primary) = self.primary.get_mut(key.namespace()) {
                primary.remove(nad);
                if primary.is_empty() {
                    self.primary.remove(key.namespace());
                }
            }
        }
        if let Some(slices) = &summary.slices {
            self.slices.remove(slices.network_name(), &(!slices.has_slices(), slices.clone()), nad);
        }
        let Some(pool) = &summary.pool else { return };
        if let Some(pools) = self.pools.get_mut(&pool.l2) {
            pool.ranges.iter().for_each(|range| pools.remove(*range, nad));
            if pools.is_empty() {
                self.pools.remove(&pool.l2);
            }
        }
        if let Some((networks, _)) = pool.blocked_by()
            && let Some(pools) = self.shared.get_mut(&networks)
        {
            pool.ranges.iter().for_each(|range| pools.remove(*range, nad));
            if pools.is_empty() {
                self.shared.remove(&networks);
            }
        }
    }

    /// The NADs that matter to one with this key and summary: up to [`MAX_NEIGHBOURS`] of each kind, the oldest first. Those of its own
    /// namespace are counted for themselves. Of a NAD whose manifests disagree nothing is known, so nothing matters to it.
    pub fn neighbours(&self, key: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        let mut found = BTreeSet::new();
        if matches!(self.nads.get(key), Some(None)) {
            return Vec::new();
        }
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
        for groups in self.ovn.find(ovn.name(), key.namespace()) {
            oldest(conflicting(groups, ovn), key, found);
        }
        if ovn.is_primary() {
            oldest(self.primary.get(key.namespace()).into_iter().flatten(), key, found);
        }
    }

    fn add_slices(&self, key: &ObjectKey, own: &NetworkUse, found: &mut BTreeSet<Ranked>) {
        let Some(slices) = &own.slices else { return };
        for groups in self.slices.find(slices.network_name(), key.namespace()) {
            let groups = groups.iter().take_while(|((without, _), _)| slices.has_slices() || !without);
            let different = groups.filter(|((_, other), _)| slices.disagrees(other));
            oldest(different.flat_map(|(_, nads)| nads.iter().take(2)), key, found);
        }
    }

    fn add_pools(&self, key: &ObjectKey, own: &NetworkUse, found: &mut BTreeSet<Ranked>) {
        let Some(pool) = &own.pool else { return };
        let mut here: Vec<&Ranked> = Vec::new();
        if let Some(pools) = self.pools.get(&pool.l2) {
            let allocator = pool.allocator();
            add_overlapping(pools, &pool.ranges, allocator.is_some().then_some(&allocator), key, &mut here);
        }
        if let Some((networks, tag)) = pool.blocked_by()
            && let Some(pools) = self.shared.get(&networks)
        {
            add_overlapping(pools, &pool.ranges, Some(&tag), key, &mut here);
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

/// The two oldest NADs of each config that differs. Those that differ in nothing but the mtu are side by side, and are left out where no
/// mtu is compared: all others differ.
fn conflicting<'g>(
    groups: &'g BTreeMap<(OvnNetwork, Option<i64>), BTreeSet<Ranked>>,
    own: &OvnNetwork,
) -> impl Iterator<Item = &'g Ranked> {
    let (others, mtu) = own.without_mtu();
    let (first, last) = ((others.clone(), None), (others, Some(i64::MAX)));
    let of_mtu = mtu.map(|mtu| {
        let alike = groups.range(first.clone()..=last.clone());
        alike.filter(move |((_, other), _)| other.is_some_and(|other| other != mtu))
    });
    let different = groups.range(..first).chain(groups.range((Bound::Excluded(last), Bound::Unbounded)));
    different.chain(of_mtu.into_iter().flatten()).flat_map(|(_, nads)| nads.iter().take(2))
}

/// Adds the NADs of other groups with some of these addresses.
fn add_overlapping<'i, G: Clone + PartialEq>(
    pools: &'i IntervalIndex<G, Ranked>,
    ranges: &[AddressRange],
    except: Option<&G>,
    key: &ObjectKey,
    here: &mut Vec<&'i Ranked>,
) {
    let end = here.len() + MAX_COMPARED;
    for range in ranges {
        pools.for_each_overlapping(*range, except, &mut |nad| {
            if nad.0.key != *key {
                here.push(nad);
            }
            here.len() < end
        });
    }
}

#[cfg(test)]
mod tests;
