//! Fixing the objects in a text: every other byte stays, and what was written is read again before it counts.
//!
//! An edit is only a proposal ([`ObjectEditor`]). It is made if the document, parsed again, equals the old one with the changes made
//! to its value; a document in which that is not so for all edits together gets those for which it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::ptr;

use serde_json::Value;

use super::{Manifest, ManifestDocument, documents};
use crate::json::LineIndex;
use crate::policy::{Fix, ManifestChange, changed};
use crate::yaml::edit::{EditError, ObjectEditor, SourceEdit, apply};
use crate::yaml::{Documents, YamlDocument};

/// How many fixes of a document are tried one by one if they cannot be made together.
const MAX_SINGLE: usize = 64;
/// Where a missing mapping is added: behind the first of these keys.
const BESIDE: [&str; 3] = ["namespace", "name", "kind"];

/// A text after its fixes.
#[derive(Debug, Default)]
pub struct FixedText {
    /// The new text, if it differs.
    pub text: Option<String>,
    /// How many findings were fixed.
    pub fixed: usize,
    /// What could not be fixed.
    pub declined: Vec<DeclinedFix>,
}

/// A finding that cannot be fixed in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclinedFix {
    /// The line its object begins on.
    pub line: usize,
    /// The id of the rule.
    pub rule: &'static str,
    /// Why.
    pub reason: String,
    /// What to do by hand.
    pub by_hand: String,
}

/// The fix of one finding: its changes, where their object is in its document, and the edits for them.
struct Proposal {
    fix: Fix,
    line: usize,
    pointer: String,
    edits: Result<Vec<SourceEdit>, EditError>,
}

/// A document that was fixed: its part of the text, and how it must read now.
struct FixedDocument {
    part: Range<usize>,
    edits: Vec<SourceEdit>,
    value: Value,
}

/// Fixes the objects in a text; `fixes_of` says what is to be changed in one.
pub fn fixed(lines: &LineIndex<'_>, fixes_of: &mut dyn FnMut(&Manifest) -> Vec<Fix>) -> FixedText {
    let text = lines.text();
    let mut result = FixedText::default();
    // By the document they are in, in the order of the text.
    let mut proposals = BTreeMap::<(usize, usize), Vec<Proposal>>::new();
    documents(lines, &mut |document| {
        let ManifestDocument::Manifest(manifest) = document else { return };
        let key = (manifest.part.start, manifest.part.end);
        for fix in fixes_of(&manifest) {
            let edits = edits_of(text, &manifest, &fix.changes);
            let pointer = manifest.pointer.clone();
            proposals.entry(key).or_default().push(Proposal { fix, line: manifest.line, pointer, edits });
        }
    });
    let mut done = Vec::new();
    for ((start, end), proposals) in proposals {
        done.extend(fix_document(text, start..end, &proposals, &mut result));
    }
    let edits: Vec<SourceEdit> = done.iter().flat_map(|document| document.edits.iter().cloned()).collect();
    match apply(text, &edits) {
        Some(new) if new != text && is_as_wanted(text, &new, &done) => result.text = Some(new),
        _ => result.fixed = 0,
    }
    result
}

fn edits_of(text: &str, manifest: &Manifest, changes: &[ManifestChange]) -> Result<Vec<SourceEdit>, EditError> {
    let object = ObjectEditor::new(text, &manifest.node);
    let mut edits = Vec::new();
    for change in changes {
        edits.extend(match change {
            ManifestChange::Annotate { key, value } => object.set(&["metadata", "annotations", key], value, &BESIDE),
            ManifestChange::RemoveAnnotation { .. } => object.remove(&change.pointer()),
            ManifestChange::EditText { pointer, edit } => object.edit_text(pointer, edit.span.range(), &edit.text),
            ManifestChange::RenameKey { pointer, to } => object.rename(pointer, to),
            ManifestChange::SetText { pointer, text } => object.set_text(pointer, text),
        }?);
    }
    Ok(edits)
}

/// The document with the fixes that can be made; the others are declined.
fn fix_document(
    text: &str,
    part: Range<usize>,
    proposals: &[Proposal],
    result: &mut FixedText,
) -> Option<FixedDocument> {
    let source = text.get(part.clone())?;
    let document = DocumentProof { source, offset: part.start, before: value_of(source)? };
    let (suggestions, repairs): (Vec<&Proposal>, Vec<&Proposal>) =
        proposals.iter().partition(|proposal| proposal.fix.is_suggestion);
    let mut chosen = Vec::new();
    document.choose(&suggestions, &mut chosen);
    // What was meant comes first: only when it is written is it known what else is missing in the object.
    let waiting: BTreeSet<&str> = chosen.iter().map(|proposal| proposal.pointer.as_str()).collect();
    let now: Vec<&Proposal> =
        repairs.into_iter().filter(|proposal| !waiting.contains(proposal.pointer.as_str())).collect();
    document.choose(&now, &mut chosen);
    result.fixed += chosen.len();
    let made: BTreeSet<*const Proposal> = chosen.iter().map(|proposal| ptr::from_ref(*proposal)).collect();
    let left = suggestions.into_iter().chain(now).filter(|proposal| !made.contains(&ptr::from_ref(*proposal)));
    result.declined.extend(left.map(Proposal::declined));
    let (edits, value) = document.proven(&chosen)?;
    Some(FixedDocument { part, edits, value })
}

impl Proposal {
    fn declined(&self) -> DeclinedFix {
        let reason = match &self.edits {
            Ok(_) => "the document would not read as intended".to_owned(),
            Err(error) => error.to_string(),
        };
        let by_hand: Vec<String> = self.fix.changes.iter().map(ManifestChange::by_hand).collect();
        DeclinedFix { line: self.line, rule: self.fix.rule, reason, by_hand: by_hand.join("; ") }
    }
}

/// A document whose edits are proven.
struct DocumentProof<'t> {
    source: &'t str,
    /// Where it begins in the whole text, which the edits are about.
    offset: usize,
    before: Value,
}

impl DocumentProof<'_> {
    /// Adds to the chosen proposals all of these that can be made beside them.
    fn choose<'p>(&self, next: &[&'p Proposal], chosen: &mut Vec<&'p Proposal>) {
        let possible: Vec<&Proposal> = next.iter().copied().filter(|proposal| proposal.edits.is_ok()).collect();
        let before = chosen.len();
        chosen.extend(&possible);
        if possible.is_empty() || self.proven(chosen).is_some() {
            return;
        }
        chosen.truncate(before);
        for proposal in possible.into_iter().take(MAX_SINGLE) {
            chosen.push(proposal);
            if self.proven(chosen).is_none() {
                chosen.pop();
            }
        }
    }

    /// The edits of these proposals and the value they make, if the edited document reads as that value.
    fn proven(&self, proposals: &[&Proposal]) -> Option<(Vec<SourceEdit>, Value)> {
        let edits: Vec<SourceEdit> =
            proposals.iter().flat_map(|proposal| proposal.edits.iter().flatten()).cloned().collect();
        let inner: Option<Vec<SourceEdit>> = edits
            .iter()
            .map(|edit| {
                let range = edit.range.start.checked_sub(self.offset)?..edit.range.end.checked_sub(self.offset)?;
                Some(SourceEdit { range, text: edit.text.clone() })
            })
            .collect();
        let mut expected = self.before.clone();
        let mut by_object = BTreeMap::<&str, Vec<&ManifestChange>>::new();
        for proposal in proposals {
            // Several findings may ask for the same change.
            let changes = by_object.entry(&proposal.pointer).or_default();
            for change in &proposal.fix.changes {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        for (pointer, changes) in by_object {
            let object = expected.pointer_mut(pointer)?;
            *object = changed(object, changes)?;
        }
        let is_proven = value_of(&apply(self.source, &inner?)?).as_ref() == Some(&expected);
        (is_proven && !edits.is_empty()).then_some((edits, expected))
    }
}

/// The value of a text that is one document.
fn value_of(text: &str) -> Option<Value> {
    let mut documents = Documents::new(text);
    let value = value(&documents.next()?)?;
    documents.next().is_none().then_some(value)
}

fn value(document: &YamlDocument) -> Option<Value> {
    serde_json::from_str(&document.node.as_ref().ok()?.to_json()).ok()
}

/// Whether the new text has the same documents, those that were fixed as they must be, and every other one as it was.
fn is_as_wanted(before: &str, after: &str, fixed: &[FixedDocument]) -> bool {
    let (mut old, mut new) = (Documents::new(before), Documents::new(after));
    let mut fixed = fixed.iter().peekable();
    loop {
        let (was, is) = match (old.next(), new.next()) {
            (Some(was), Some(is)) => (was, is),
            (None, None) => return true,
            _ => return false,
        };
        let is_right = match fixed.next_if(|document| document.part == was.part) {
            Some(document) => value(&is).as_ref() == Some(&document.value),
            None => before.get(was.part) == after.get(is.part),
        };
        if !is_right {
            return false;
        }
    }
}
