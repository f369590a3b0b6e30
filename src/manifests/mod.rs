//! Manifest files: finding, reading, indexing, fixing and rewriting them; the policy file and the configuration of a repository.
//!
//! Files are read twice and never kept: once for the [`Index`], once to be judged. So memory is bounded by the largest file and a
//! couple of hundred bytes per network and NAD.

mod config_file;
mod files;
mod fix;
mod glob;
mod helm;
mod ignore;
mod index;
mod input_documents;
mod kustomize;
mod manifest_nads;
mod object_places;
mod objects;
mod policy_file;
mod rewrite;
mod walk;

pub use config_file::{CONFIG_FILE, ConfigFile, ConfigFileError};
pub use files::{Input, InputError};
pub use fix::{DeclinedFix, FixedText, fixed};
pub use glob::MalformedPattern;
pub use ignore::IgnoreList;
pub use index::{Assumptions, Index};
pub use input_documents::InputDocument;
pub use kustomize::{ChangedFiles, ChangedKinds};
pub use objects::{Manifest, ManifestDocument, documents};
pub use policy_file::{LoadedPolicy, PolicyFile, PolicyFileError};
pub use rewrite::{RewriteError, Writable};
pub use walk::{FoundInputs, inputs};
