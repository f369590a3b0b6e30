//! Denied writes: recorded by reviews, kept in memory for an hour, reported later.
//!
//! Admission only records them in bounded memory and writes nothing to the cluster, so the webhooks have `sideEffects: None` and
//! dry runs are reviewed too, but not recorded. A separate task writes a report later, independent of the review.

mod report;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub use report::{denial_report, latest_denial};

use crate::review::AdmissionRequest;
use crate::visible::at_most;

/// How many different denials are kept.
const MAX_DENIALS: usize = 200;
/// How long they are kept, in seconds.
pub const RETENTION_SECONDS: i64 = 3600;
/// How much is kept of each text that a client sent; names are shorter.
const MAX_TEXT_BYTES: usize = 300;

/// A denied write, possibly repeated. It does not contain the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who wrote.
    pub user: String,
    /// The kind of the object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty for a generated one.
    pub name: String,
    /// `create` or `update`.
    pub operation: &'static str,
    /// The rules that denied it.
    pub rules: Vec<&'static str>,
    /// How often.
    pub count: u64,
    /// Unix time of the last denial.
    pub last: i64,
}

impl Denial {
    /// The denial of a request by these rules, at that Unix time.
    pub fn of(request: &AdmissionRequest<'_>, rules: Vec<&'static str>, now: i64) -> Self {
        let owned = |text: &str| at_most(text, MAX_TEXT_BYTES).to_owned();
        Self {
            user: owned(&request.user),
            kind: owned(&request.kind),
            namespace: owned(&request.namespace),
            name: owned(&request.name),
            operation: request.operation.name(),
            rules,
            count: 1,
            last: now,
        }
    }
}

/// The denials of the last hour, within the limit.
#[derive(Debug, Default)]
pub struct RecentDenials {
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    /// Those that happened last are at the end.
    denied: VecDeque<Denial>,
    /// When a denial was last dropped early.
    forgotten: Option<i64>,
}

impl RecentDenials {
    /// Records a denial. Repetitions by the same user for the same reasons are counted.
    pub fn add(&self, mut new: Denial) {
        let mut ring = self.lock();
        let is_same = |old: &Denial| {
            (&old.user, &old.kind, &old.namespace, &old.name, old.operation, &old.rules)
                == (&new.user, &new.kind, &new.namespace, &new.name, new.operation, &new.rules)
        };
        let known = ring.denied.iter().position(is_same);
        if let Some(old) = known.and_then(|at| ring.denied.remove(at)) {
            new.count = new.count.saturating_add(old.count);
        } else if ring.denied.len() >= MAX_DENIALS
            && let Some(oldest) = ring.denied.pop_front()
            && new.last - oldest.last < RETENTION_SECONDS
        {
            ring.forgotten = Some(new.last);
        }
        ring.denied.push_back(new);
        drop(ring);
        self.changed.notify_one();
    }

    /// Those of the hour before that time, and whether there were more.
    pub fn of_last_hour(&self, now: i64) -> (Vec<Denial>, bool) {
        let mut ring = self.lock();
        ring.denied.retain(|denied| now - denied.last < RETENTION_SECONDS);
        ring.forgotten = ring.forgotten.filter(|at| now - at < RETENTION_SECONDS);
        (ring.denied.iter().cloned().collect(), ring.forgotten.is_some())
    }

    /// Waits for a new denial. For a single waiter.
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

    fn denied(user: &str, name: &str, rule: &'static str, last: i64) -> Denial {
        Denial {
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
    fn equal_denials_are_counted() {
        let denials = RecentDenials::default();
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
    fn denials_expire_after_an_hour() {
        let denials = RecentDenials::default();
        denials.add(denied("jane", "a", "sriov/vlan", 100));
        denials.add(denied("jane", "b", "sriov/vlan", 200));
        for (now, want) in [(200, 2), (3699, 2), (3700, 1), (3799, 1), (3800, 0)] {
            assert_eq!(denials.of_last_hour(now).0.len(), want, "{now}");
        }
    }

    #[test]
    fn number_of_denials_is_bounded() {
        let denials = RecentDenials::default();
        for number in 0..5000 {
            denials.add(denied("jane", &number.to_string(), "sriov/vlan", 100));
        }
        let (found, is_partial) = denials.of_last_hour(100);
        assert_eq!((found.len(), is_partial), (MAX_DENIALS, true));
        assert_eq!(found[0].name, (5000 - MAX_DENIALS).to_string());
        assert_eq!(denials.of_last_hour(100 + RETENTION_SECONDS).0.len(), 0);
        assert!(!denials.of_last_hour(100 + RETENTION_SECONDS).1);
    }
}
