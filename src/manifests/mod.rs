//! Manifest files: finding, reading and indexing them; the policy file.
//!
//! Files are read twice and never kept: once for the [`Index`], once to be judged. So memory is bounded by the largest file and a
//! few dozen bytes per network and NAD.

mod files;
mod index;
mod objects;
mod policy_file;

pub use files::{Input, InputError, inputs};
pub use index::{Assumptions, Index};
pub use objects::{Manifest, ManifestDocument, documents};
pub use policy_file::{LoadedPolicy, PolicyFile, PolicyFileError};
