//! Unfinished work, counted by the address it comes from.
//!
//! A client that never finishes what it began must not keep others out. So nobody is turned away while there is unfinished work: the
//! oldest of it is cut instead, taken from the address that has the most. What has proven itself is cut only where nothing else is left, and
//! only while it does nothing.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// In all, what has proven itself included.
    pub(super) total: usize,
    /// Unfinished work of one address.
    pub(super) per_address: usize,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Pending {
    bounds: Bounds,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// The number of the next entry: an older entry has a smaller number.
    next: u64,
    unproven: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
    unproven_count: usize,
    proven: BTreeMap<u64, Proven>,
}

#[derive(Debug)]
struct Proven {
    cut: CancellationToken,
    working: Arc<AtomicUsize>,
}

/// One piece of work; it is no longer counted when this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    pending: Arc<Pending>,
    address: IpAddr,
    number: u64,
    cut: CancellationToken,
    /// How many requests it is answering.
    working: Arc<AtomicUsize>,
    is_proven: Mutex<bool>,
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pending {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, table: Mutex::default() })
    }

    /// Counts one more, and cuts the oldest where there are too many; `None` where everything there is has proven itself and is at work.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Entry> {
        let address = network(address);
        let mut table = self.table();
        let of_address = table.unproven.get(&address).map_or(0, BTreeMap::len);
        if of_address >= self.bounds.per_address {
            table.cut_oldest(address);
        } else if table.unproven_count + table.proven.len() >= self.bounds.total {
            match table.fullest() {
                Some(fullest) => table.cut_oldest(fullest),
                // Somebody who once sent an expected request must not be able to keep everybody else out either.
                None => table.cut_idle()?,
            }
        }
        let (number, cut, working) = (table.next, CancellationToken::new(), Arc::default());
        table.next += 1;
        table.unproven_count += 1;
        table.unproven.entry(address).or_default().insert(number, cut.clone());
        Some(Entry { pending: Arc::clone(self), address, number, cut, working, is_proven: Mutex::new(false) })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The address with the most unfinished work.
    fn fullest(&self) -> Option<IpAddr> {
        self.unproven.iter().max_by_key(|(_, entries)| entries.len()).map(|(address, _)| *address)
    }

    fn cut_oldest(&mut self, address: IpAddr) {
        let oldest = self.unproven.get(&address).and_then(|entries| entries.keys().next().copied());
        if let Some(cut) = oldest.and_then(|number| self.remove(address, number)) {
            cut.cancel();
        }
    }

    /// Cuts the oldest that has proven itself and does nothing now; `None` where all are at work.
    fn cut_idle(&mut self) -> Option<()> {
        let is_idle = |one: &Proven| one.working.load(Ordering::Relaxed) == 0;
        let number = self.proven.iter().find_map(|(number, one)| is_idle(one).then_some(*number))?;
        self.proven.remove(&number)?.cut.cancel();
        Some(())
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<CancellationToken> {
        let entries = self.unproven.get_mut(&address)?;
        let removed = entries.remove(&number)?;
        if entries.is_empty() {
            self.unproven.remove(&address);
        }
        self.unproven_count -= 1;
        Some(removed)
    }
}

impl Entry {
    /// Ends when this is to give way to others.
    pub(super) fn is_cut(&self) -> WaitForCancellationFuture<'_> {
        self.cut.cancelled()
    }

    /// Notes that a request is being answered.
    pub(super) fn working(&self) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(&self.working))
    }

    /// From now on others are cut before this.
    pub(super) fn prove(&self) {
        let mut is_proven = self.is_proven.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_proven {
            return;
        }
        let mut table = self.pending.table();
        // One that was cut a moment ago is on its way out and is not counted again.
        if let Some(cut) = table.remove(self.address, self.number) {
            table.proven.insert(self.number, Proven { cut, working: Arc::clone(&self.working) });
            *is_proven = true;
        }
    }
}

impl Drop for Entry {
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

/// The address as it is counted: whoever has one IPv6 address usually has the whole /64.
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

    fn counts(pending: &Pending) -> (usize, usize, usize) {
        let table = pending.table();
        (table.unproven_count, table.proven.len(), table.unproven.len())
    }

    #[test]
    fn the_oldest_of_the_fullest_address_gives_way() {
        let pending = Pending::new(Bounds { total: 5, per_address: 3 });
        let (flood, honest) = (address("10.0.0.1"), address("10.0.0.2"));
        let first = pending.admit(honest).unwrap();
        let mut flooding: Vec<_> = (0..5).map(|_| pending.admit(flood).unwrap()).collect();
        let cut: Vec<_> = flooding.iter().map(|entry| entry.cut.is_cancelled()).collect();
        assert_eq!(cut, [true, true, false, false, false], "three of one address");
        assert_eq!(counts(&pending), (4, 0, 2));
        let second = pending.admit(honest).unwrap();
        let third = pending.admit(honest).unwrap();
        assert!(flooding[2].cut.is_cancelled() && !flooding[3].cut.is_cancelled(), "the fullest address gives way");
        assert!([&first, &second, &third].iter().all(|entry| !entry.cut.is_cancelled()));
        flooding.clear();
        assert_eq!(counts(&pending), (3, 0, 1));
    }

    #[test]
    fn what_has_proven_itself_stays() {
        let pending = Pending::new(Bounds { total: 2, per_address: 2 });
        let (one, two) = (address("10.0.0.1"), address("10.0.0.2"));
        let kept = pending.admit(one).unwrap();
        kept.prove();
        kept.prove();
        assert_eq!(counts(&pending), (0, 1, 0));
        let idle = pending.admit(one).unwrap();
        let new = pending.admit(two).unwrap();
        assert!(idle.cut.is_cancelled() && !kept.cut.is_cancelled());
        // Too late: it has given way already.
        idle.prove();
        assert_eq!(counts(&pending), (1, 1, 1));
        new.prove();
        let (busy, other) = (kept.working(), new.working());
        assert!(pending.admit(two).is_none(), "nobody is left who could give way");
        drop(other);
        let last = pending.admit(two).unwrap();
        assert!(new.cut.is_cancelled() && !kept.cut.is_cancelled(), "only who does nothing gives way");
        assert_eq!(counts(&pending), (1, 1, 1));
        drop((busy, kept, idle, new, last));
        assert_eq!(counts(&pending), (0, 0, 0));
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
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
