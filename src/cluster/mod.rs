//! Everything that talks to an API server, by subject:
//!
//! | module | what is in it | may use |
//! |---|---|---|
//! | [`client`] | requests, paging, paths | |
//! | [`cache`] | list and watch, what is kept of each kind, building `Facts` | `client` |
//! | [`identity`] | certificates, registration, the Lease | `client`, `cache` |
//! | [`leader`] | completion, audit, reports, Events | all of the above |
//! | [`doctor`] | one network's chain, one pod, the canary, the policy of each replica | `client`, `cache` |
//! | [`map`] | everything on a map of the secondary networks | `client`, `leader` |
//!
//! A value that comes from the owning network is stored for good, so the network is read at the moment it is needed: a cache may
//! lag behind the very write that is being judged. What only a warning needs is known at once, from [`Caches`].

pub mod cache;
pub mod client;
pub mod doctor;
pub mod identity;
pub mod leader;
pub mod map;

pub use cache::observer::WatchObserver;
pub use cache::{CachedCluster, Caches};
pub use client::collection::ApiObject;
pub use client::{ApiError, Cluster, ClusterError, ServiceRef};
pub use doctor::NetworkChanges;
pub use doctor::canary::Canary;
pub use identity::uninstall::UninstallError;
