//! How much is taken from whom, and for how long. Everything that comes from a socket has a bound.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bounds. The defaults are what `nadmit serve` has; tests choose others so that they need not wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest review: two objects of 3 MiB, which is the most the API server takes, and what is around them.
    pub body: usize,
    /// Bytes of bodies held at once: they, not reviews, are what takes memory.
    pub bodies: usize,
    /// Reviews being read or answered. Judging takes microseconds, so that many at once means that something else is slow.
    pub in_flight: usize,
    /// Batches of audit events being read or counted, within the above: reviews come first.
    pub audit_batches: usize,
    /// How long audit events are counted together.
    pub audit_period: Duration,
    /// Open connections. An API server keeps a few; this is room for many of them.
    pub connections: usize,
    /// Reviews at once on one HTTP/2 connection.
    pub streams: u32,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time for the next request's head to arrive, and so the longest that a connection may be idle.
    pub head: Duration,
    /// Time for a body to arrive.
    pub body_arrives: Duration,
    /// How old a connection gets. API servers keep theirs for ever, so that a new replica would never see a request.
    pub age: Duration,
    /// How long a connection that is to be closed waits for the request that is perhaps on its way.
    pub linger: Duration,
    /// How long the last requests may take at the end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            body: 8 << 20,
            bodies: 64 << 20,
            in_flight: 256,
            audit_batches: 4,
            audit_period: seconds(3600),
            connections: 1024,
            streams: 128,
            handshake: seconds(5),
            head: seconds(30),
            body_arrives: seconds(10),
            age: seconds(300),
            linger: seconds(2),
            drain: seconds(15),
        }
    }
}

/// What there is room for.
#[derive(Debug)]
pub(super) struct Room {
    reviews: Arc<Semaphore>,
    /// In KiB, as a semaphore counts no further than 32 bits at a time.
    bodies: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            reviews: Arc::new(Semaphore::new(limits.in_flight)),
            bodies: Arc::new(Semaphore::new(limits.bodies.div_ceil(1024))),
        }
    }

    /// Room for one review, if there is any.
    pub(super) fn review(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.reviews).try_acquire_owned().ok()
    }

    /// Room for that many bytes of a body, if there is any.
    pub(super) fn body(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        Arc::clone(&self.bodies).try_acquire_many_owned(kib).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends_and_comes_back() {
        let limits = Limits::default();
        let room = Room::new(&limits);
        let held: Vec<_> = (0..limits.in_flight).map(|_| room.review().unwrap()).collect();
        assert!(room.review().is_none());
        drop(held);
        assert!(room.review().is_some());
        let held: Vec<_> = (0..8).map(|_| room.body(limits.body).unwrap()).collect();
        assert!(room.body(1).is_none());
        drop(held);
        assert!(room.body(1).is_some());
    }
}
