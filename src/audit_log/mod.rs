//! Analysis of writes in the API server's audit log: blind, stale, ineffective and looping ones.
//!
//! Admission cannot tell a blind patch from a guarded PUT; the audit log has the request as it was sent. What it shows was
//! measured on kube-apiserver 1.34, and a test on a real one repeats the writes of this table:
//!
//! | the client sends | verb | where its resourceVersion is | answer |
//! |---|---|---|---|
//! | PUT | `update` | `objectRef.resourceVersion` (at every level) and `requestObject` | 200; 409 if stale; 422 if absent, for custom resources |
//! | merge patch | `patch` | `requestObject.metadata.resourceVersion` | 200 without one: **blind**; 409 if stale; 422 if empty or null |
//! | JSON patch | `patch` | `requestObject` is a list; `test`, `add` or `replace` of `/metadata/resourceVersion`, or of `/metadata` | 200 without one: **blind**; a failed `test` 422, a stale `add` 409 |
//! | server-side apply | `patch` | as a merge patch | 200 without one: **blind**; 409 if stale, or if another manager owns the field |
//!
//! - There is no content type in an event. Only an apply may have `force` in its URI, and every apply has `fieldManager` there
//!   and its kind in the body; a merge patch with both looks the same, and is as blind.
//! - At level Metadata there is no body: whether a patch was blind is then *unknown*, never assumed.
//! - At level RequestResponse the resourceVersion of the response shows a write that changed nothing: it is the one that the
//!   client stated, or that of the object's previous write.
//! - A dry run (`dryRun=All` in the URI) looks like any other write and stores nothing.
//! - **YAML bodies:** from level Request on, the log backend cannot encode them and drops the event. Such an apply is not in the
//!   log (the server's own log has an error of the audit plugin). kubectl sends JSON.
//!
//! Logs of several servers are merged ([`merge`](mod@merge)). A line becomes an [`event`], which borrows from it, then a
//! [`write`](mod@write) that is counted by client ([`tally`]) and by object ([`objects`]); [`report`] has the results. Memory
//! does not grow with the log.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod event;
pub mod lines;
pub mod merge;
pub mod objects;
pub mod report;
pub mod running;
mod scan;
pub mod tally;
pub mod write;

pub use scan::{LogScan, LogScope};

/// Writes per minute from which an object counts as in a loop, if nothing else is asked for.
pub const DEFAULT_LOOP_RATE: u32 = 10;

#[cfg(test)]
mod tests;
