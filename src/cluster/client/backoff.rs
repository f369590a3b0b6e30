//! Backoff for requests to the API server. Two formulas: no crate in the tree has them without a retry loop of its own.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The backoff after the first failure.
pub(in crate::cluster) const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// The maximum backoff, and how often a missing kind is checked again.
pub(in crate::cluster) const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Doubles after each failure, up to the maximum.
pub(in crate::cluster) fn backoff(failures: u32, random: u64) -> Duration {
    jittered(MIN_BACKOFF.saturating_mul(1 << failures.min(10)).min(MAX_BACKOFF), random)
}

/// Jitter: between half and all of a pause.
pub(in crate::cluster) fn jittered(pause: Duration, random: u64) -> Duration {
    pause / 2 + pause.mul_f64((random >> 32) as f64 / f64::from(u32::MAX) / 2.0)
}

pub(in crate::cluster) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_thirty_seconds_with_jitter() {
        for (failures, longest) in [(0, 200), (1, 400), (3, 1600), (7, 25_600), (8, 30_000), (50, 30_000)] {
            assert_eq!(backoff(failures, u64::MAX).as_millis(), longest, "{failures}");
            assert_eq!(backoff(failures, 0).as_millis(), longest / 2, "{failures}");
        }
        assert_ne!(random(), random());
    }
}
