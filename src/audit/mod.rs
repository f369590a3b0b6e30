//! A cluster as it is stored: what is known around an object ([`context`]), the object and when it was written ([`stored_object`]), who writes
//! NADs ([`nad_writers`]), the chain from a network to a pod's device ([`chain`]), why a pod does not start ([`pod`]), what each of its interfaces will be
//! ([`explain`]), objects that are written again and again ([`rewrites`]), and the findings so far ([`finding_index`]).
//!
//! Nothing here talks to a cluster: [`crate::cluster`] gathers, and [`crate::policy`] has the rules.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod chain;
pub mod context;
pub mod explain;
pub mod finding_index;
pub mod map;
pub mod nad_writers;
pub mod pod;
pub mod rewrites;
pub mod stored_object;
