//! What this replica refused in the last hour.
//!
//! Admission remembers it in memory, within bounds, and does nothing else: it waits for nobody and writes nothing to the cluster, so
//! that webhooks say `sideEffects: None` and the API server asks them also about dry runs, which are not even remembered. A task of
//! its own keeps a report of it, later and whatever becomes of the review.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::output::denied::Denied;

/// How many different ones are remembered.
const MOST: usize = 200;
/// How long, in seconds.
pub const REMEMBERED: i64 = 3600;

/// The denials of the last hour, as far as there is room for them.
#[derive(Debug, Default)]
pub struct Denials {
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    /// Those that happened last are at the end.
    denied: VecDeque<Denied>,
    /// When the last one was forgotten before its hour was over.
    forgotten: Option<i64>,
}

impl Denials {
    /// Remembers one. The same again, by the same user and for the same reasons, is counted.
    pub fn add(&self, mut new: Denied) {
        let mut ring = self.lock();
        let is_same = |old: &Denied| {
            (&old.user, &old.kind, &old.namespace, &old.name, old.operation, &old.rules)
                == (&new.user, &new.kind, &new.namespace, &new.name, new.operation, &new.rules)
        };
        let known = ring.denied.iter().position(is_same);
        if let Some(old) = known.and_then(|at| ring.denied.remove(at)) {
            new.count = new.count.saturating_add(old.count);
        } else if ring.denied.len() >= MOST
            && let Some(oldest) = ring.denied.pop_front()
            && new.last - oldest.last < REMEMBERED
        {
            ring.forgotten = Some(new.last);
        }
        ring.denied.push_back(new);
        drop(ring);
        self.changed.notify_one();
    }

    /// Those of the hour before that time, and whether there were more.
    pub fn of_last_hour(&self, now: i64) -> (Vec<Denied>, bool) {
        let mut ring = self.lock();
        ring.denied.retain(|denied| now - denied.last < REMEMBERED);
        ring.forgotten = ring.forgotten.filter(|at| now - at < REMEMBERED);
        (ring.denied.iter().cloned().collect(), ring.forgotten.is_some())
    }

    /// Waits until there is one more than at the last call. For one who waits.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(user: &str, name: &str, rule: &'static str, last: i64) -> Denied {
        Denied {
            user: user.to_owned(),
            kind: "SriovNetwork".to_owned(),
            namespace: "operator".to_owned(),
            name: name.to_owned(),
            operation: "create",
            rules: vec![rule],
            count: 1,
            last,
        }
    }

    #[test]
    fn equal_ones_are_counted() {
        let denials = Denials::default();
        for (user, name, rule, at) in [
            ("jane", "a", "sriov/vlan", 1),
            ("jane", "b", "sriov/vlan", 2),
            ("jane", "a", "sriov/vlan", 3),
            ("joe", "a", "sriov/vlan", 4),
            ("jane", "a", "sriov/mac", 5),
            ("jane", "a", "sriov/vlan", 6),
        ] {
            denials.add(denied(user, name, rule, at));
        }
        let (found, is_partial) = denials.of_last_hour(6);
        let found: Vec<_> =
            found.iter().map(|denied| (&*denied.user, &*denied.name, denied.count, denied.last)).collect();
        assert_eq!(found, [("jane", "b", 1, 2), ("joe", "a", 1, 4), ("jane", "a", 1, 5), ("jane", "a", 3, 6)]);
        assert!(!is_partial);
    }

    #[test]
    fn an_hour_later_it_is_forgotten() {
        let denials = Denials::default();
        denials.add(denied("jane", "a", "sriov/vlan", 100));
        denials.add(denied("jane", "b", "sriov/vlan", 200));
        for (now, want) in [(200, 2), (3699, 2), (3700, 1), (3799, 1), (3800, 0)] {
            assert_eq!(denials.of_last_hour(now).0.len(), want, "{now}");
        }
    }

    #[test]
    fn there_is_room_for_some() {
        let denials = Denials::default();
        for number in 0..5000 {
            denials.add(denied("jane", &number.to_string(), "sriov/vlan", 100));
        }
        let (found, is_partial) = denials.of_last_hour(100);
        assert_eq!((found.len(), is_partial), (MOST, true));
        assert_eq!(found[0].name, (5000 - MOST).to_string());
        assert_eq!(denials.of_last_hour(100 + REMEMBERED).0.len(), 0);
        assert!(!denials.of_last_hour(100 + REMEMBERED).1);
    }
}
