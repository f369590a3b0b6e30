//! Writes to a status: whether a write shows that it was computed from the object it overwrites.
//!
//! ```text
//!  object, oldObject ─► what they say of themselves ─► what changed, and whose it was ─► class ─► findings
//! ```
//!
//! Any kind of object may be guarded, so nothing here knows a schema. What the fields are, and which list is a map, is told by
//! `managedFields`, which the API server has brought up to date by the time it asks.

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
pub use writer::{Writer, WriterKind};

pub(super) use generation::Regress;
pub(super) use judge::Evidence;
pub(crate) use judge::is_cured_by_retry;

/// The annotation in which a writer states which version it read: this, and behind it the name of its field manager.
pub const STATED: &str = "if-resource-version.nadmit.io/";
