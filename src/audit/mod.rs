//! A cluster as it is stored, judged. From the outside in; each uses only those below it:
//!
//! | module | content |
//! |---|---|
//! | [`explain`], [`map`] | what each interface of a pod will be; the map of the secondary networks |
//! | [`pod`] | why a pod does not start |
//! | [`chain`] | the chain from a network to a pod's device, and where it breaks |
//! | [`context`] | what is known about the objects beside the one that is judged |
//! | [`nad_writers`] | who writes NADs |
//! | [`stored_object`] | an object, and when it was written |
//! | [`finding_index`], [`rewrites`] | the findings so far; objects that are written again and again |
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
