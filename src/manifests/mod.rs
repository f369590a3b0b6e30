//! Manifest files: finding, reading and indexing them.
//!
//! Files are read twice and never kept: once for the [`Index`], once to be judged. So memory is bounded by the largest file and a
//! few dozen bytes per network and NAD.

mod files;
mod index;
mod objects;

pub use files::{Input, InputError, inputs};
pub use index::{Assumptions, Index};
pub use objects::{Manifest, ManifestDocument, documents};
