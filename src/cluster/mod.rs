//! Everything that talks to an API server, by subject:
//!
//! | module | what is in it | may use |
//! |---|---|---|
//! | [`map`] | everything on a map of the secondary networks | `leader`, `client` |
//! | [`leader`] | completion, audit, reports, Events | `identity`, `cache`, `client` |
//! | [`doctor`] | one network's chain, one pod, the canary, the policy of each replica | `cache`, `client` |
//! | [`identity`] | certificates, registration, the Lease | `cache`, `client` |
//! | [`cache`] | list and watch, what is stored of each kind, building `Facts` | `client` |
//! | [`client`] | requests, paging, paths | |
//!
//! The value of a fix is stored with the object and not corrected later, so the owning network is read from the API server when the
//! value is needed: a cache may lag behind the very write that is being judged. Facts that can only lead to a warning come from
//! [`Caches`], without a request.

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
