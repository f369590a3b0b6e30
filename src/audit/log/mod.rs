//! What the API server's audit log tells about writes: who wrote without looking, too late, for nothing, or for ever.
//!
//! Admission cannot tell a blind patch from a guarded PUT; the audit log has the request as it was sent. What it shows was measured
//! on kube-apiserver 1.34, and a test on a real one repeats the writes of this table:
//!
//! | the client sends | verb | where its resourceVersion is | answer |
//! |---|---|---|---|
//! | PUT | `update` | `objectRef.resourceVersion` (at every level) and `requestObject` | 200; 409 if stale; 422 if absent, for custom resources |
//! | merge patch | `patch` | `requestObject.metadata.resourceVersion` | 200 without one: **blind**; 409 if stale; 422 if empty or null |
//! | JSON patch | `patch` | `requestObject` is a list; `test`, `add` or `replace` of `/metadata/resourceVersion`, or of `/metadata` | 200 without one: **blind**; a failed `test` 422, a stale `add` 409 |
//! | server-side apply | `patch` | as a merge patch | 200 without one: **blind**; 409 if stale, or if another manager owns the field |
//!
//! - There is no content type in an event. Only an apply may have `force` in its address, and every apply has `fieldManager` there and
//!   names its kind in the body; a merge patch that does both looks the same, and is as blind.
//! - At level Metadata there is no body: whether a patch was blind is then *unknown*, never assumed.
//! - At level RequestResponse the answer's resourceVersion tells a write that changed nothing: it is the one that the client stated, or that
//!   of the object's previous write.
//! - A dry run (`dryRun=All` in the address) looks like any other write and stores nothing.
//! - **What a body in YAML does:** from level Request on, the log backend cannot encode it and drops the event. Such an apply is
//!   nowhere in the log (the server's own log has an error of the audit plugin). kubectl sends JSON.
//!
//! Logs of several servers are read side by side ([`merge`](mod@merge)). A line goes from [`lines`] to an [`event`], which borrows from
//! it, to a [`write`](mod@write) that is counted by who sent it ([`tally`]) and by what it was about ([`objects`]); [`report`] says what
//! came of it. None of these grows with the log.

pub mod event;
#[expect(clippy::disallowed_methods, reason = "it finds files")]
pub mod files;
pub mod lines;
pub mod merge;
pub mod objects;
pub mod report;
pub mod running;
mod scan;
pub mod tally;
pub mod write;

pub use scan::{Scan, Scope};

#[cfg(test)]
mod tests;
