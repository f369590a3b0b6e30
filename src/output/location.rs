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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing;
    use crate::policy::Action;

    /// The value is marked, unless it is long or absent: then the key is.
    #[test]
    fn short_values_are_marked_and_keys_of_long_ones() {
        let text = "spec:\n  a: word\n  b: |\n    one\n    two\n  c: {x: 1}\n  d:\n";
        let lines = LineIndex::of(text);
        let object = crate::yaml::Documents::new(text).next().unwrap().node.unwrap();
        for (pointer, is_about_key, want) in [
            ("/spec/a", false, "word"),
            ("/spec/a", true, "a"),
            ("/spec/b", false, "b"),
            ("/spec/c", false, "c"),
            ("/spec/c/x", false, "1"),
            ("/spec/d", false, "d"),
            ("/spec/missing", false, "spec"),
            ("/spec/c/missing", false, "c"),
        ] {
            let mut finding = testing::finding("nad/schema", Action::Deny, "m").at(pointer);
            finding.is_about_key = is_about_key;
            let located = locate(&finding, &object, &lines);
            assert_eq!(text.get(located.span.clone()), Some(want), "{pointer}");
            let width = located.end_column - located.column;
            assert_eq!((located.line, width), (located.end_line, want.len()), "{pointer}");
        }
        // A place in a text is found only where the text is.
        for (pointer, want) in [("/spec/a", "or"), ("/spec/missing", "spec")] {
            let mut finding = testing::finding("nad/schema", Action::Deny, "m").in_config("/x").at(pointer);
            finding.config.as_mut().unwrap().span = 1..3;
            let located = locate(&finding, &object, &lines);
            assert_eq!(text.get(located.span), Some(want), "{pointer}");
        }
    }
}
