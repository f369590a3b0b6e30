//! Who this replica is: its certificate, its registration with the API server, the token of its paths, and the Lease.

mod ca_bundle;
pub mod certificates;
pub mod lease;
mod probe;
pub mod registration;
pub mod token;
pub mod uninstall;
mod webhook_paths;
