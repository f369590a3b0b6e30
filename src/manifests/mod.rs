//! Manifests on disk: finding the files, reading them, and knowing what they say about each other.
//!
//! Files are read twice and never kept: once for the [`Index`] of what is in them, once to be judged. So memory is bounded by
//! the largest file and a few dozen bytes for each network and NAD.

mod files;
mod index;
mod objects;

pub use files::{Input, InputError, inputs};
pub use index::{Assumptions, Index};
pub use objects::{Document, Manifest, documents};
