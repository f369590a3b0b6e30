//! Other objects that a finding is about.

use std::sync::Arc;

use crate::resources::ObjectKey;

/// Another object that a finding is about: it and the judged one do not fit together. Rules add it only where they may name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedObject {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// What it has to do with the finding: `has the same range`.
    pub relation: String,
    /// Where its manifest is; `None` in a cluster.
    pub place: Option<SourcePlace>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The file as it was named, or `-`.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl RelatedObject {
    /// An object whose manifest is not known.
    pub fn new(kind: &'static str, key: ObjectKey, relation: impl Into<String>) -> Self {
        Self { kind, key, relation: relation.into(), place: None }
    }

    /// Its kind, namespace and name, as people read them.
    pub fn object(&self) -> String {
        match self.key.namespace() {
            "" => format!("{} {}", self.kind, self.key.name()),
            _ => format!("{} {}", self.kind, self.key),
        }
    }
}
