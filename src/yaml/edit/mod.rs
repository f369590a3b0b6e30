//! Changes one value of a YAML or JSON text and leaves every other byte as it is.
//!
//! These functions only propose edits: whoever makes them reads the new text again and compares. So a form that is not known here
//! is at worst an edit that is not made. The YAML crates in the tree only read and write whole documents.

mod mapping;
mod scalar;

use std::ops::Range;

use super::{MapEntry, YamlNode, YamlValue};
use crate::json::unescape;

/// How far a nested mapping is indented where nothing shows it.
const DEFAULT_STEP: usize = 2;
/// The deepest indentation that is taken over from the text.
const MAX_STEP: usize = 8;

/// A replacement of bytes of the source; an empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEdit {
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes in their place.
    pub text: String,
}

/// Why a change cannot be written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The place belongs to several values.
    #[error("the value comes from an alias or a merge key")]
    Shared,
    /// There is nothing at the place.
    #[error("the value is not in the text")]
    Absent,
    /// A key would be there twice.
    #[error("the key exists already")]
    KeyExists,
    /// The mapping is written in a way that is not known here.
    #[error("the mapping is written in a form that nadmit does not edit")]
    Mapping,
    /// The scalar is written in a way that is not known here.
    #[error("the value is written in a form that nadmit does not edit")]
    Scalar,
}

/// The text with the edits made, whose order does not matter; the same one may come twice. `None` if two of them overlap.
pub fn apply(source: &str, edits: &[SourceEdit]) -> Option<String> {
    let mut sorted: Vec<&SourceEdit> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.range.start);
    sorted.dedup();
    let mut result = String::with_capacity(source.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut from = 0;
    for edit in sorted {
        result.push_str(source.get(from..edit.range.start)?);
        result.push_str(&edit.text);
        from = edit.range.end.max(edit.range.start);
    }
    result.push_str(source.get(from..)?);
    Some(result)
}

/// Edits of one object in a text.
#[derive(Clone, Copy, Debug)]
pub struct ObjectEditor<'s> {
    /// The whole text.
    source: &'s str,
    /// The object.
    root: &'s YamlNode,
}

impl<'s> ObjectEditor<'s> {
    /// An object and the text it was read from.
    pub fn new(source: &'s str, root: &'s YamlNode) -> Self {
        Self { source, root }
    }

    /// Sets the string below these keys. Mappings that are missing on the way are added, after the first of the keys `beside` that
    /// stands on a line of its own.
    pub fn set(&self, path: &[&str], text: &str, beside: &[&str]) -> Result<Vec<SourceEdit>, EditError> {
        let (mut map, mut step, mut rest) = (self.root, DEFAULT_STEP, path);
        while let Some((key, below)) = rest.split_first() {
            let Some(entry) = map.entry(key) else {
                let entry = mapping::NewEntry { path: rest, text, step };
                return mapping::add(self.source, map, &entry, beside);
            };
            own(self.source, map, entry)?;
            match &entry.node.value {
                _ if below.is_empty() => return scalar::set(self.source, entry, text),
                YamlValue::Null => {
                    let value = mapping::NewEntry { path: below, text, step };
                    return mapping::fill(self.source, map, entry, &value);
                }
                YamlValue::Map(_) => {
                    step = mapping::step(self.source, map, &entry.node).unwrap_or(step);
                    (map, rest) = (&entry.node, below);
                }
                _ => return Err(EditError::Mapping),
            }
        }
        Err(EditError::Absent)
    }

    /// Removes the entry at a JSON pointer, with its line.
    pub fn remove(&self, pointer: &str) -> Result<Vec<SourceEdit>, EditError> {
        let mut path = self.path(pointer)?;
        let (map, entry) = path.pop().ok_or(EditError::Absent)?;
        let (_, around) = path.pop().ok_or(EditError::Absent)?;
        mapping::remove(self.source, map, entry, around)
    }

    /// Renames the key at a JSON pointer.
    pub fn rename(&self, pointer: &str, to: &str) -> Result<Vec<SourceEdit>, EditError> {
        let (map, entry) = self.path(pointer)?.pop().ok_or(EditError::Absent)?;
        mapping::rename(self.source, map, entry, to)
    }

    /// Replaces the scalar at a JSON pointer by a string.
    pub fn set_text(&self, pointer: &str, text: &str) -> Result<Vec<SourceEdit>, EditError> {
        let (_, entry) = self.path(pointer)?.pop().ok_or(EditError::Absent)?;
        scalar::set(self.source, entry, text)
    }

    /// Replaces a part of the decoded text at a JSON pointer.
    pub fn edit_text(&self, pointer: &str, part: Range<usize>, text: &str) -> Result<Vec<SourceEdit>, EditError> {
        let (_, entry) = self.path(pointer)?.pop().ok_or(EditError::Absent)?;
        scalar::edit(self.source, &entry.node, part, text).map(|edit| vec![edit])
    }

    /// The entries on the way to the value at a JSON pointer, each with the mapping it is in.
    fn path(&self, pointer: &str) -> Result<Vec<(&'s YamlNode, &'s MapEntry)>, EditError> {
        let (mut here, mut path) = (self.root, Vec::new());
        for token in pointer.split('/').skip(1) {
            let token = unescape(token);
            here = match &here.value {
                YamlValue::Map(_) => {
                    let entry = here.entry(&token).ok_or(EditError::Absent)?;
                    own(self.source, here, entry)?;
                    path.push((here, entry));
                    &entry.node
                }
                YamlValue::List(nodes) => {
                    let node = token.parse().ok().and_then(|index: usize| nodes.get(index)).ok_or(EditError::Absent)?;
                    if node.span.start < here.span.start {
                        return Err(EditError::Shared);
                    }
                    node
                }
                _ => return Err(EditError::Absent),
            };
        }
        Ok(path)
    }
}

/// Rejects an entry or value that is written elsewhere, because an alias or a merge key brings it here.
fn own(source: &str, map: &YamlNode, entry: &MapEntry) -> Result<(), EditError> {
    let is_here = is_own(map, entry) && after_colon(source, entry).is_some_and(|end| end <= entry.node.span.start);
    if is_here { Ok(()) } else { Err(EditError::Shared) }
}

/// Whether the key of an entry is written in its mapping.
fn is_own(map: &YamlNode, entry: &MapEntry) -> bool {
    map.span.start <= entry.key_span.start
}

/// The byte after the colon of an entry.
fn after_colon(source: &str, entry: &MapEntry) -> Option<usize> {
    let rest = source.get(entry.key_span.end..)?;
    let blank = rest.len() - rest.trim_start().len();
    rest.get(blank..)?.starts_with(':').then_some(entry.key_span.end + blank + 1)
}

/// Whether a key is written as in JSON, so that values beside it are too.
fn is_json_key(source: &str, entry: &MapEntry) -> bool {
    source.as_bytes().get(entry.key_span.start) == Some(&b'"')
}

/// The end of the line that a byte is on, without its line break.
fn line_end(source: &str, at: usize) -> usize {
    let rest = source.get(at..).unwrap_or_default();
    let line = rest.find('\n').map_or(rest, |end| rest.get(..end).unwrap_or_default());
    at + line.strip_suffix('\r').unwrap_or(line).len()
}

/// The start of the line that a byte is on.
fn line_start(source: &str, at: usize) -> usize {
    source.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// The line break that the text uses.
fn line_break(source: &str) -> &'static str {
    let first = source.find('\n').and_then(|newline| source.get(..newline));
    if first.is_some_and(|line| line.ends_with('\r')) { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests;
