//! What is true of a cluster as it is stored: what stands around an object ([`around`]), when it was written ([`moments`]) and whether by the
//! operator ([`operator`]), the chain from a network to a pod's device ([`chain`]), objects that are written again and again ([`rewrites`]),
//! and what was found so far ([`standing`]); and what the API server's audit log tells of writes ([`log`]).
//!
//! Nothing here asks anybody: [`crate::cluster`] gathers, and [`crate::policy`] has the rules.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod around;
pub mod chain;
pub mod log;
pub mod moments;
pub mod operator;
pub mod rewrites;
pub mod standing;
