//! Shared capacity: slots for reviews, and memory for bodies and for judging.
//!
//! A request without capacity waits, because a slow write is better than a failed one. After half of its timeout it gets a 429,
//! which an API server retries within the webhook's timeout.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::limits::Limits;
use crate::server::unfinished::{Pending, PendingEntry, PendingLimits};

/// Bytes per JSON value while judging: measured with lists of numbers, the densest values, in an update with both objects.
const VALUE: usize = 144;

/// All capacity.
#[derive(Debug)]
pub(super) struct Capacity {
    reviews: Arc<Semaphore>,
    small: Pool,
    large: Pool,
    small_body: usize,
    small_judging: Pool,
    large_judging: Pool,
    small_review: usize,
    unfinished: Arc<Pending>,
}

/// Memory in KiB: a semaphore acquires at most 32 bits at once.
#[derive(Debug)]
pub(super) struct Pool {
    free: Arc<Semaphore>,
    size: usize,
    waiting: AtomicUsize,
}

/// A permit, released on drop.
pub(super) type Share = OwnedSemaphorePermit;

impl Capacity {
    pub(super) fn new(limits: &Limits) -> Self {
        let Limits { bodies, small_bodies, small_body, judging, small_judging, small_review, .. } = *limits;
        let Limits { unfinished: total, unfinished_per_address: per_address, .. } = *limits;
        Self {
            reviews: Arc::new(Semaphore::new(limits.in_flight)),
            small: Pool::new(small_bodies),
            large: Pool::new(bodies.saturating_sub(small_bodies)),
            small_body,
            small_judging: Pool::new(small_judging),
            large_judging: Pool::new(judging.saturating_sub(small_judging)),
            small_review,
            unfinished: Pending::new(PendingLimits { total, per_address }),
        }
    }

    /// A slot for a review whose body is complete, or for a batch.
    pub(super) async fn review(&self, until: Instant) -> Option<Share> {
        // One that is free needs no timer.
        if let Ok(share) = Arc::clone(&self.reviews).try_acquire_owned() {
            return Some(share);
        }
        before_deadline(until, Arc::clone(&self.reviews).acquire_owned()).await
    }

    /// The memory that bodies of that length share.
    pub(super) fn bodies(&self, length: usize) -> &Pool {
        if length <= self.small_body { &self.small } else { &self.large }
    }

    /// Memory for judging a body. Acquired before the slot, so that large reviews that wait for memory do not hold slots.
    pub(super) async fn judging(&self, body: &[u8], until: Instant) -> Option<Share> {
        let bytes = judging_takes(body);
        let pool = if bytes <= self.small_review { &self.small_judging } else { &self.large_judging };
        pool.acquire(bytes, until).await
    }

    /// Counts a request with an incomplete body.
    pub(super) fn unfinished(&self, address: IpAddr) -> Option<PendingEntry> {
        self.unfinished.admit(address)
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let size = bytes.div_ceil(1024);
        Self { free: Arc::new(Semaphore::new(size)), size, waiting: AtomicUsize::new(0) }
    }

    /// Acquires an amount, at most the whole pool.
    pub(super) async fn acquire(&self, bytes: usize, until: Instant) -> Option<Share> {
        let kib = bytes.div_ceil(1024).clamp(1, self.size.max(1));
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        if let Ok(share) = Arc::clone(&self.free).try_acquire_many_owned(kib) {
            return Some(share);
        }
        let _waiting = WaitGuard::one(&self.waiting);
        before_deadline(until, Arc::clone(&self.free).acquire_many_owned(kib)).await
    }

    /// Whether a request waits for it.
    pub(super) fn is_contended(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

async fn before_deadline(until: Instant, share: impl Future<Output = Result<Share, AcquireError>>) -> Option<Share> {
    timeout_at(until, share).await.ok()?.ok()
}

/// Counts a waiting request until dropped.
struct WaitGuard<'a>(&'a AtomicUsize);

impl<'a> WaitGuard<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Estimated memory for judging a body: its text and its JSON values. Each value but the first follows one of these characters,
/// also inside of a config, which is JSON in a JSON string.
fn judging_takes(body: &[u8]) -> usize {
    // Counted in bytes, in chunks that do not overflow one, as the processor does that with many at once.
    const CHUNK: usize = 240;
    let count = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(matches!(byte, b',' | b':' | b'['))).sum::<u8>();
    let values: usize = body.chunks(CHUNK).map(|chunk| usize::from(count(chunk))).sum();
    body.len().saturating_add(values.saturating_mul(VALUE))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn waits_for_capacity_until_the_deadline() {
        let limits = Limits { in_flight: 1, ..Limits::default() };
        let capacity = Arc::new(Capacity::new(&limits));
        let acquired = capacity.review(soon()).await.unwrap();
        assert!(capacity.review(soon()).await.is_none());
        let waiting = Arc::clone(&capacity);
        let waiting = tokio::spawn(async move { waiting.review(Instant::now() + Duration::from_secs(60)).await });
        drop(acquired);
        assert!(waiting.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn large_bodies_do_not_block_small_ones() {
        let limits = Limits::default();
        let capacity = Capacity::new(&limits);
        let large = capacity.bodies(limits.body);
        let rest = limits.bodies - limits.small_bodies - limits.body;
        let acquired = [large.acquire(limits.body, soon()).await.unwrap(), large.acquire(rest, soon()).await.unwrap()];
        assert!(large.acquire(limits.small_body + 1, soon()).await.is_none());
        assert!(!large.is_contended(), "no request waits any more");
        assert!(capacity.bodies(limits.small_body).acquire(limits.small_body, soon()).await.is_some());
        drop(acquired);
        assert!(large.acquire(limits.small_body + 1, soon()).await.is_some());
    }

    #[tokio::test]
    async fn dense_bodies_do_not_block_normal_reviews() {
        let capacity = Capacity::new(&Limits::default());
        let dense = "0,".repeat(1 << 19).into_bytes();
        let usual = br#"{"request":{"object":{"spec":{"config":"{\"type\":\"sriov\"}"}}}}"#;
        let acquired = capacity.judging(&dense, soon()).await.unwrap();
        assert!(capacity.judging(&dense, soon()).await.is_none());
        let mut small = Vec::new();
        for _ in 0..1024 {
            small.push(capacity.judging(usual, soon()).await.unwrap());
        }
        drop(acquired);
        assert!(capacity.judging(&dense, soon()).await.is_some());
    }

    #[test]
    fn estimate_weighs_values_over_text() {
        assert_eq!(judging_takes(b"[0,0,0]"), 7 + 3 * VALUE);
        assert_eq!(judging_takes(br#"{"a":"bc"}"#), 10 + VALUE);
        assert_eq!(judging_takes(&[b'x'; 1000]), 1000);
    }
}
