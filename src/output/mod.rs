//! Verdicts as people and programs want to read them. Pure: from values to text.
//!
//! A format renders each judged document independently, so that they can be rendered in parallel and none must be kept; the entry
//! point writes them in order.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod diff;
mod excerpt;
mod github;
mod html;
mod human;
mod json;
mod junit;
mod location;
pub mod reference;
pub mod release_table;
pub mod report;
mod sarif;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod text;

use std::ops::Range;

pub(crate) use diff::of_files as diff_of_files;
pub use github::Github;
pub use html::Html;
pub(crate) use html::{Entry, EntryPart, Facet, Figure, HtmlList, HtmlPage, HtmlRow, MapPage, ShownFinding};
pub use human::Human;
pub use json::Json;
pub use junit::Junit;
pub use location::locate;
pub use sarif::Sarif;
pub(crate) use sarif::{SarifRun, hash as fingerprint, uri};
pub(crate) use table::aligned;
pub(crate) use text::severity;

use serde::Serialize;

use crate::policy::{Action, Finding, Verdict};
use crate::resources::ObjectKey;

/// A judged document and its source.
#[derive(Debug)]
pub struct JudgedDocument<'a> {
    /// The file as it was named, or `-`.
    pub source: &'a str,
    /// The whole text of the file.
    pub text: &'a str,
    /// The Helm template that the document was rendered from, if that is known.
    pub template: Option<&'a str>,
    /// The line the document begins on.
    pub line: usize,
    /// `apiVersion`
    pub api_version: &'a str,
    /// `kind`
    pub kind: &'a str,
    /// `metadata.namespace`; empty where the manifest has none.
    pub namespace: &'a str,
    /// `metadata.name`
    pub name: &'a str,
    /// The object, as JSON.
    pub json: &'a str,
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The verdict's findings and where they are in the file, in the order of the file.
    pub findings: Vec<LocatedFinding<'a>>,
    /// The object as it was given and as it would be stored, as JSON, where a patch changes it.
    pub change: Option<(String, String)>,
}

/// A finding and its place in the file.
#[derive(Debug)]
pub struct LocatedFinding<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// The bytes of the file it is about.
    pub span: Range<usize>,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte, from 1, in characters.
    pub column: usize,
    /// Line of the last byte.
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
}

/// The totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Documents judged.
    pub documents: usize,
    /// What is not judged.
    pub skipped: SkippedCounts,
    /// Inputs that could not be read.
    pub unreadable: usize,
    /// Denials.
    pub deny: usize,
    /// Findings that are repaired.
    pub patch: usize,
    /// Findings that warn.
    pub warn: usize,
    /// Findings that can be fixed in the files they are in.
    pub fixable: usize,
}

/// What is not judged, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkippedCounts {
    /// Documents of other kinds.
    pub other_kinds: usize,
    /// Documents without a kind, in directories.
    pub no_kind: usize,
    /// Files that are Helm templates, in directories.
    pub helm_templates: usize,
    /// Files that are patches of kustomizations, in directories.
    pub kustomize_patches: usize,
    /// Files and directories that are ignored.
    pub ignored: usize,
    /// Symbolic links in directories that are not followed.
    pub links: usize,
}

impl SkippedCounts {
    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.other_kinds += other.other_kinds;
        self.no_kind += other.no_kind;
        self.helm_templates += other.helm_templates;
        self.kustomize_patches += other.kustomize_patches;
        self.ignored += other.ignored;
        self.links += other.links;
    }
}

impl Summary {
    /// Counts a document.
    pub fn count(&mut self, verdict: &Verdict) {
        self.documents += 1;
        for finding in &verdict.findings {
            match finding.action {
                Action::Deny => self.deny += 1,
                Action::Patch => self.patch += 1,
                Action::Warn => self.warn += 1,
                Action::Audit | Action::Off => {}
            }
        }
    }
}

impl Summary {
    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.skipped.add(&other.skipped);
        self.unreadable += other.unreadable;
        self.deny += other.deny;
        self.patch += other.patch;
        self.warn += other.warn;
        self.fixable += other.fixable;
    }
}

/// An object in a write loop.
#[derive(Clone, Debug, PartialEq)]
pub struct RewrittenObject {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Who wrote it.
    pub managers: Vec<String>,
    /// The flipping fields, or else those changed by every write.
    pub fields: Vec<String>,
    /// The writes, between the start (0) and end (1) of the observation, with a label.
    pub writes: Vec<(f64, String)>,
}

/// A way to show verdicts.
pub trait Format: Sync {
    /// The text before the first document.
    fn begin(&self) -> String {
        String::new()
    }

    /// One document; empty where there is nothing to show of it.
    fn document(&self, judged: &JudgedDocument<'_>) -> String;

    /// The text between two non-empty chunks.
    fn between(&self) -> &'static str {
        ""
    }

    /// Adds write loops found by an observation.
    fn rewritten(&self, _: Vec<RewrittenObject>) {}

    /// Adds a note for readers.
    fn note(&self, _: String) {}

    /// The text after the last document.
    fn end(&self, summary: &Summary) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_added_up() {
        let summary = |n: usize| Summary {
            documents: n,
            skipped: SkippedCounts {
                other_kinds: 2 * n,
                no_kind: 3 * n,
                helm_templates: 4 * n,
                kustomize_patches: 5 * n,
                ignored: 6 * n,
                links: 7 * n,
            },
            unreadable: 8 * n,
            deny: 9 * n,
            patch: 10 * n,
            warn: 11 * n,
            fixable: 12 * n,
        };
        let mut sum = summary(1);
        sum.add(&summary(10));
        assert_eq!(sum, summary(11));
    }
}
