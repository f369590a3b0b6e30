//! Unfinished work, counted per client address.
//!
//! A client that never finishes must not block others. So nobody is rejected while there is unfinished work: the oldest of the
//! busiest address is displaced instead. A connection on which a valid request was read is proven. Proven connections are displaced only
//! if nothing else is left, and only while they are idle.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// The limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingLimits {
    /// In total, including proven connections.
    pub(super) total: usize,
    /// Unfinished work of one address.
    pub(super) per_address: usize,
}

/// The unfinished work of all addresses.
#[derive(Debug)]
pub(super) struct Pending {
    bounds: PendingLimits,
    table: Mutex<PendingTable>,
}

#[derive(Debug, Default)]
struct PendingTable {
    /// The number of the next entry: an older entry has a smaller number.
    next: u64,
    unproven: BTreeMap<(IpAddr, u64), CancellationToken>,
    proven: BTreeMap<u64, Proven>,
}

#[derive(Debug)]
struct Proven {
    cut: CancellationToken,
    working: Arc<AtomicUsize>,
}

/// An entry, counted until dropped.
#[derive(Debug)]
pub(super) struct PendingEntry {
    pending: Arc<Pending>,
    address: IpAddr,
    number: u64,
    cut: CancellationToken,
    /// Requests in progress on it.
    working: Arc<AtomicUsize>,
    is_proven: Mutex<bool>,
}

/// A request in progress, until dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<AtomicUsize>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pending {
    pub(super) fn new(bounds: PendingLimits) -> Arc<Self> {
        Arc::new(Self { bounds, table: Mutex::default() })
    }

    /// Adds an entry, displacing the oldest if there are too many; `None` if everything is proven and busy.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<PendingEntry> {
        let address = network(address);
        let mut table = self.table();
        if table.of(address).count() >= self.bounds.per_address {
            table.cut_oldest(address);
        } else if table.unproven.len() + table.proven.len() >= self.bounds.total {
            match table.fullest() {
                Some(fullest) => table.cut_oldest(fullest),
                // A client that once sent a valid request must not block others either.
                None => table.cut_idle()?,
            }
        }
        let (number, cut, working) = (table.next, CancellationToken::new(), Arc::default());
        table.next += 1;
        table.unproven.insert((address, number), cut.clone());
        Some(PendingEntry { pending: Arc::clone(self), address, number, cut, working, is_proven: Mutex::new(false) })
    }

    fn table(&self) -> MutexGuard<'_, PendingTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingTable {
    /// The unfinished work of an address, the oldest first.
    fn of(&self, address: IpAddr) -> impl Iterator<Item = u64> {
        self.unproven.range((address, 0)..=(address, u64::MAX)).map(|((_, number), _)| *number)
    }

    /// The address with the most unfinished work.
    fn fullest(&self) -> Option<IpAddr> {
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        for (address, _) in self.unproven.keys() {
            *counts.entry(*address).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address)
    }

    fn cut_oldest(&mut self, address: IpAddr) {
        let oldest = self.of(address).next();
        if let Some(cut) = oldest.and_then(|number| self.remove(address, number)) {
            cut.cancel();
        }
    }

    /// Displaces the oldest idle proven entry; `None` if all are busy.
    fn cut_idle(&mut self) -> Option<()> {
        let is_idle = |one: &Proven| one.working.load(Ordering::Relaxed) == 0;
        let number = self.proven.iter().find_map(|(number, one)| is_idle(one).then_some(*number))?;
        self.proven.remove(&number)?.cut.cancel();
        Some(())
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<CancellationToken> {
        self.unproven.remove(&(address, number))
    }
}

impl PendingEntry {
    /// Completes when this entry is displaced.
    pub(super) fn displaced(&self) -> WaitForCancellationFuture<'_> {
        self.cut.cancelled()
    }

    /// Counts a request in progress.
    pub(super) fn working(&self) -> ActiveRequest {
        self.working.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(&self.working))
    }

    /// Marks the entry as proven, so that others are displaced first.
    pub(super) fn mark_proven(&self) {
        let mut is_proven = self.is_proven.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_proven {
            return;
        }
        let mut table = self.pending.table();
        // An entry that was just displaced is not counted again.
        if let Some(cut) = table.remove(self.address, self.number) {
            table.proven.insert(self.number, Proven { cut, working: Arc::clone(&self.working) });
            *is_proven = true;
        }
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        let is_proven = *self.is_proven.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.pending.table();
        if is_proven {
            table.proven.remove(&self.number);
        } else {
            table.remove(self.address, self.number);
        }
    }
}

/// The address for counting: an IPv6 client usually has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn counts(pending: &Pending) -> (usize, usize) {
        let table = pending.table();
        (table.unproven.len(), table.proven.len())
    }

    #[test]
    fn displaces_the_oldest_of_the_busiest_address() {
        let pending = Pending::new(PendingLimits { total: 5, per_address: 3 });
        let (flood, honest) = (address("10.0.0.1"), address("10.0.0.2"));
        let first = pending.admit(honest).unwrap();
        let mut flooding: Vec<_> = (0..5).map(|_| pending.admit(flood).unwrap()).collect();
        let cut: Vec<_> = flooding.iter().map(|entry| entry.cut.is_cancelled()).collect();
        assert_eq!(cut, [true, true, false, false, false], "one address has at most three requests");
        assert_eq!(counts(&pending), (4, 0));
        let second = pending.admit(honest).unwrap();
        let third = pending.admit(honest).unwrap();
        assert!(
            flooding[2].cut.is_cancelled() && !flooding[3].cut.is_cancelled(),
            "a request of the busiest address is displaced"
        );
        assert!([&first, &second, &third].iter().all(|entry| !entry.cut.is_cancelled()));
        flooding.clear();
        assert_eq!(counts(&pending), (3, 0));
    }

    #[test]
    fn proven_connections_are_kept() {
        let pending = Pending::new(PendingLimits { total: 2, per_address: 2 });
        let (one, two) = (address("10.0.0.1"), address("10.0.0.2"));
        let kept = pending.admit(one).unwrap();
        kept.mark_proven();
        kept.mark_proven();
        assert_eq!(counts(&pending), (0, 1));
        let idle = pending.admit(one).unwrap();
        let new = pending.admit(two).unwrap();
        assert!(idle.cut.is_cancelled() && !kept.cut.is_cancelled());
        // Too late: it was already displaced.
        idle.mark_proven();
        assert_eq!(counts(&pending), (1, 1));
        new.mark_proven();
        let (busy, other) = (kept.working(), new.working());
        assert!(pending.admit(two).is_none(), "no request can be displaced");
        drop(other);
        let last = pending.admit(two).unwrap();
        assert!(new.cut.is_cancelled() && !kept.cut.is_cancelled(), "only the idle connection is displaced");
        assert_eq!(counts(&pending), (1, 1));
        drop((busy, kept, idle, new, last));
        assert_eq!(counts(&pending), (0, 0));
    }

    #[test]
    fn ipv6_prefix_counts_as_one_address() {
        for (one, other, is_same) in [
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("10.0.0.1", "10.0.0.2", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
        ] {
            assert_eq!(network(address(one)) == network(address(other)), is_same, "{one} {other}");
        }
    }
}
