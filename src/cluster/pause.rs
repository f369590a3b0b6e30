//! How long to wait before the API server is asked again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The pause after the first failure.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause, and how often a kind is looked for that the API server does not have.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Twice as long after each failure, up to the longest pause.
pub(super) fn backoff(failures: u32, random: u64) -> Duration {
    jittered(FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE), random)
}

/// Between half of a pause and all of it, so that not all come back at once.
pub(super) fn jittered(pause: Duration, random: u64) -> Duration {
    pause / 2 + pause.mul_f64((random >> 32) as f64 / f64::from(u32::MAX) / 2.0)
}

pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_a_minute_and_differ() {
        for (failures, longest) in [(0, 200), (1, 400), (3, 1600), (7, 25_600), (8, 30_000), (50, 30_000)] {
            assert_eq!(backoff(failures, u64::MAX).as_millis(), longest, "{failures}");
            assert_eq!(backoff(failures, 0).as_millis(), longest / 2, "{failures}");
        }
        assert_ne!(random(), random());
    }
}
