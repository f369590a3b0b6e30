//! Who this replica is: its certificate, its registration with the API server, the token of its paths, and the Lease.

mod ca_bundle;
pub mod certificates;
pub mod lease;
mod probe;
pub mod registration;
mod secret;
pub mod token;
pub mod uninstall;
mod webhook_paths;

use tokio::sync::watch;

/// Sends a value if it is another one than before; returns whether it is.
fn publish<T: PartialEq>(channel: &watch::Sender<T>, value: T) -> bool {
    channel.send_if_modified(|known| {
        let is_new = *known != value;
        *known = value;
        is_new
    })
}
