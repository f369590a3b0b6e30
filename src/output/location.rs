//! Where in a file a finding is.

use std::ops::Range;

use super::LocatedFinding;
use crate::json::LineIndex;
use crate::policy::Finding;
use crate::yaml::{YamlNode, YamlValue};

/// Finds a finding's place in the text that an object was read from.
pub fn locate<'f>(finding: &'f Finding, object: &YamlNode, lines: &LineIndex<'_>) -> LocatedFinding<'f> {
    let span = first_line(lines.text(), span(finding, object, lines.text()));
    let (line, column) = lines.at(span.start);
    let (end_line, end_column) = lines.at(span.end);
    LocatedFinding { finding, span, line, column, end_line, end_column }
}

fn span(finding: &Finding, object: &YamlNode, text: &str) -> Range<usize> {
    let (node, entry, reached) = object.follow(&finding.pointer);
    match (&finding.config, entry) {
        (Some(place), _) if reached => node.part_span(text, place.span.clone()),
        // Underline the value, unless it is long: then its key.
        (_, Some(entry)) if !reached || finding.is_about_key || is_long(&entry.node, text) => entry.key_span.clone(),
        _ => node.span.clone(),
    }
}

fn is_long(node: &YamlNode, text: &str) -> bool {
    let is_structure = matches!(node.value, YamlValue::Map(_) | YamlValue::List(_) | YamlValue::Null);
    is_structure || text.get(node.span.clone()).is_some_and(|slice| slice.trim_end().contains('\n'))
}

/// The first line of a range, without trailing spaces.
fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let slice = text.get(span.clone()).unwrap_or_default();
    let line = slice.lines().next().unwrap_or_default().trim_end();
    span.start..span.start + line.len()
}
