//! `nadmit serve` as a process, over real HTTPS.
//!
//! [`harness::TestServer`] starts it and watches it, [`client`] sends requests, [`reviews`] sends the reviews of an API server and reads the
//! responses as strictly, and [`certificates`] is a certificate authority for tests.

mod abuse;
mod arguments;
mod audit_events;
mod certificates;
mod client;
#[allow(dead_code, reason = "shared with the benches")]
mod corpus;
mod entry_points;
mod facts;
mod flood;
pub mod harness;
mod in_process;
mod limits;
mod memory;
mod no_api_server;
mod protocol;
mod reloads;
mod restarts;
mod reviews;
mod shutdown;
mod stalled;
mod supervision;
mod telemetry;
mod tls;
