//! Limits on size, time and concurrency. Everything from a socket is bounded.

use std::time::Duration;

/// The limits. The defaults are those of `nadmit serve`; tests use shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum review size: two objects of 3 MiB, the API server's maximum, plus overhead.
    pub body: usize,
    /// Bytes of all bodies held at once.
    pub bodies: usize,
    /// The part of `bodies` reserved for small bodies, so that large ones do not block normal reviews.
    pub small_bodies: usize,
    /// The largest body that counts as small.
    pub small_body: usize,
    /// Estimated memory for all judging at once, in bytes.
    pub judging: usize,
    /// The part of `judging` reserved for small reviews: large ones take a while, and normal ones must not wait for them.
    pub small_judging: usize,
    /// The most that a small review takes.
    pub small_review: usize,
    /// Reviews in progress with a complete body. Judging takes microseconds, so many at once means that something else is slow.
    pub in_flight: usize,
    /// Batches of audit events in progress, within the limits above.
    pub audit_batches: usize,
    /// How long audit events are counted together.
    pub audit_period: Duration,
    /// Open connections. An API server uses one per concurrent review; this is enough for several API servers.
    pub connections: usize,
    /// Open connections to the listener for metrics.
    pub scrapes: usize,
    /// Connections of one address without a valid request yet, including handshakes. API servers behind one address open hundreds
    /// at once in a burst of writes.
    pub unproven_connections: usize,
    /// Requests with a body that has not arrived completely.
    pub unfinished: usize,
    /// The same, of one address.
    pub unfinished_per_address: usize,
    /// Concurrent streams per HTTP/2 connection. Unread responses are buffered, so connections times streams bounds the memory a
    /// client can use; an API server with more writes opens another connection.
    pub streams: u32,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Timeout for the next request head, and thus the maximum idle time.
    pub head: Duration,
    /// Time for a body to arrive.
    pub body_arrives: Duration,
    /// Grace period for bodies slower than `body_rate`.
    pub body_grace: Duration,
    /// The same while other requests wait for memory.
    pub body_grace_contended: Duration,
    /// The slowest that a body may arrive, in bytes a second.
    pub body_rate: usize,
    /// The maximum connection age. API servers keep connections open, so a new replica would otherwise get no requests.
    pub age: Duration,
    /// How long a closing connection waits for a request in flight.
    pub linger: Duration,
    /// The drain timeout at shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            body: 8 << 20,
            bodies: 15 << 20,
            small_bodies: 6 << 20,
            small_body: 64 << 10,
            judging: 26 << 20,
            small_judging: 6 << 20,
            small_review: 256 << 10,
            in_flight: 256,
            audit_batches: 1,
            audit_period: seconds(3600),
            connections: 1024,
            scrapes: 64,
            unproven_connections: 768,
            unfinished: 2048,
            unfinished_per_address: 1024,
            streams: 16,
            handshake: seconds(5),
            head: seconds(30),
            body_arrives: seconds(10),
            body_grace: seconds(1),
            body_grace_contended: Duration::from_millis(250),
            body_rate: 64 << 10,
            age: seconds(300),
            linger: seconds(2),
            drain: seconds(15),
        }
    }
}
