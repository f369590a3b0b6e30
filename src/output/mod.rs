//! Verdicts as people and programs want to read them. Pure: from values to text.
//!
//! A format turns each judged document into a chunk of text on its own, so that many can be made at once and none must be
//! kept; the door writes them in order.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod denied;
mod diff;
mod github;
mod html;
mod human;
mod json;
mod junit;
mod page;
mod place;
pub mod reference;
pub mod report;
mod sarif;
#[cfg(test)]
pub(crate) mod testing;
mod words;

use std::ops::Range;

pub use github::Github;
pub(crate) use html::{Block, Cell, Page, Row, Table};
pub use human::Human;
pub use json::Json;
pub(crate) use json::to_json;
pub use junit::Junit;
pub use page::Html;
pub use place::place;
pub use sarif::Sarif;
pub(crate) use sarif::{SCHEMA as SARIF_SCHEMA, hash as fingerprint, uri};

use crate::policy::{Action, Finding, Verdict};

/// A document that was judged, and where it came from.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The file as it was named, or `-`.
    pub source: &'a str,
    /// The whole text of the file.
    pub text: &'a str,
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
    /// What came of it.
    pub verdict: &'a Verdict,
    /// The verdict's findings and where they are in the file, in the order of the file.
    pub findings: Vec<Placed<'a>>,
    /// The object as it was given and as it would be stored, as JSON, where a patch changes it.
    pub change: Option<(String, String)>,
}

/// A finding and its place in the file.
#[derive(Debug)]
pub struct Placed<'a> {
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

/// What there was in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Documents judged.
    pub documents: usize,
    /// Documents of kinds that are not ours.
    pub skipped: usize,
    /// Inputs that could not be read.
    pub unreadable: usize,
    /// Findings that refuse.
    pub deny: usize,
    /// Findings that are repaired.
    pub patch: usize,
    /// Findings that warn.
    pub warn: usize,
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
        self.skipped += other.skipped;
        self.unreadable += other.unreadable;
        self.deny += other.deny;
        self.patch += other.patch;
        self.warn += other.warn;
    }
}

/// An object that was rewritten again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewritten {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who wrote it.
    pub managers: Vec<String>,
    /// The fields that go back and forth, or else those that each write changes.
    pub fields: Vec<String>,
    /// When, between the begin (0) and the end (1) of the time that somebody watched, and what there is to say of it.
    pub writes: Vec<(f64, String)>,
}

/// A way to show verdicts.
pub trait Format: Sync {
    /// What stands before the first document.
    fn begin(&self) -> String {
        String::new()
    }

    /// One document; empty where there is nothing to show of it.
    fn document(&self, judged: &Judged<'_>) -> String;

    /// What stands between two chunks that are not empty.
    fn between(&self) -> &'static str {
        ""
    }

    /// Objects that were rewritten while somebody watched.
    fn rewritten(&self, _: Vec<Rewritten>) {}

    /// Something that a reader of the report must know.
    fn note(&self, _: String) {}

    /// What stands after the last document.
    fn end(&self, summary: &Summary) -> String;
}
