//! Status writes: whether a write proves that it was computed from the object it overwrites.
//!
//! ```text
//!  object, oldObject ─► parsed parts ─► changed fields and their owners ─► class ─► findings
//! ```
//!
//! Any kind of object may be guarded, so this module knows no schema. `managedFields`, which the API server has updated before
//! admission, tells which fields exist and which lists are maps.

mod changed;
mod fields;
mod generation;
mod guarded;
mod judge;
mod managers;
mod object;
mod version;
mod writer;

pub use guarded::{Guarded, GuardedStatus, Owner};
pub use judge::{Class, StatusVerdict, StatusWrite, judge_status};
pub use writer::{StatusWriter, WriterKind};

pub(super) use generation::GenerationIssue;
pub(super) use judge::Evidence;
pub(crate) use judge::is_fixed_by_retry;

/// The prefix of the annotation in which a writer states the resourceVersion it read, followed by the name of its field manager.
pub const PRECONDITION_PREFIX: &str = "if-resource-version.nadmit.io/";
