//! How much is taken from whom, and for how long. Everything that comes from a socket has a bound.

use std::time::Duration;

/// The bounds. The defaults are what `nadmit serve` has; tests choose others so that they need not wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest review: two objects of 3 MiB, which is the most the API server takes, and what is around them.
    pub body: usize,
    /// Bytes of all bodies held at once.
    pub bodies: usize,
    /// The part of `bodies` that only small bodies use, so that large ones do not hold up the usual review.
    pub small_bodies: usize,
    /// The largest body that counts as small.
    pub small_body: usize,
    /// Bytes of memory that all judging takes at once, by an estimate.
    pub judging: usize,
    /// The part of `judging` that only small reviews use: a large one takes a while, and the usual one must not wait for it.
    pub small_judging: usize,
    /// The most that a small review takes.
    pub small_review: usize,
    /// Reviews being answered: their body is complete. Judging takes microseconds, so that many at once means that something else is
    /// slow.
    pub in_flight: usize,
    /// Batches of audit events being read or counted, within the above: reviews come first.
    pub audit_batches: usize,
    /// How long audit events are counted together.
    pub audit_period: Duration,
    /// Open connections. An API server has one for each review at a time; this is enough for several API servers.
    pub connections: usize,
    /// Open connections to the listener for metrics.
    pub scrapes: usize,
    /// Connections of one address that have not carried an expected request yet, those still in their handshake included. API servers
    /// that share an address open hundreds at once in a burst of writes.
    pub unproven_connections: usize,
    /// Requests with a body that has not arrived completely.
    pub unfinished: usize,
    /// The same, of one address.
    pub unfinished_per_address: usize,
    /// Reviews at once on one HTTP/2 connection. An answer that its client does not take is kept, so that connections times streams is what
    /// a client can make nadmit hold; an API server with more writes than this at once opens another connection.
    pub streams: u32,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time for the next request's head to arrive, and so the longest that a connection may be idle.
    pub head: Duration,
    /// Time for a body to arrive.
    pub body_arrives: Duration,
    /// How long a body may be slower than `body_rate`.
    pub body_grace: Duration,
    /// The same while others wait for the memory that it holds.
    pub body_grace_contended: Duration,
    /// The slowest that a body may arrive, in bytes a second.
    pub body_rate: usize,
    /// How old a connection gets. API servers keep theirs open, so that a new replica would never see a request.
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
