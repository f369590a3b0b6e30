//! How much is taken from whom, and for how long. Everything that comes from a socket has a bound.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest review: two objects of 3 MiB, which is the most the API server takes, and what is around them.
pub(super) const MAX_BODY: usize = 8 << 20;
/// Open connections. An API server keeps a few; this is room for many of them.
pub(super) const MAX_CONNECTIONS: usize = 1024;
/// Reviews being read or answered. Judging takes microseconds, so that many at once means that something else is slow.
pub(super) const MAX_IN_FLIGHT: usize = 256;
/// Bytes of review bodies held at once, in KiB: bodies, not reviews, are what takes memory.
const MAX_BODIES_KIB: usize = 64 << 10;
/// Reviews at once on one HTTP/2 connection.
pub(super) const MAX_STREAMS: u32 = 128;

/// For the TLS handshake.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// For the next request's head to arrive, and so the longest that a connection may be idle.
pub(super) const HEAD: Duration = Duration::from_secs(30);
/// For a body to arrive.
pub(super) const BODY: Duration = Duration::from_secs(10);
/// How old a connection gets. API servers keep theirs for ever, so that a new replica would never see a request.
pub(super) const MAX_AGE: Duration = Duration::from_secs(300);
/// How long a connection that is to be closed may wait for the request that is perhaps on its way.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How long the last requests may take at the end.
pub(super) const DRAIN: Duration = Duration::from_secs(15);
/// The deadline where the API server names none: its own default.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// What there is room for.
#[derive(Debug)]
pub(super) struct Room {
    reviews: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self { reviews: Arc::new(Semaphore::new(MAX_IN_FLIGHT)), bodies: Arc::new(Semaphore::new(MAX_BODIES_KIB)) }
    }
}

impl Room {
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
        let room = Room::default();
        let held: Vec<_> = (0..MAX_IN_FLIGHT).map(|_| room.review().unwrap()).collect();
        assert!(room.review().is_none());
        drop(held);
        assert!(room.review().is_some());
        let held: Vec<_> = (0..8).map(|_| room.body(MAX_BODY).unwrap()).collect();
        assert!(room.body(1).is_none());
        drop(held);
        assert!(room.body(1).is_some());
    }
}
