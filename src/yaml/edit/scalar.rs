//! Changing a scalar, or a part of the text in it, in the style it is written in.

use std::ops::Range;

use super::super::{MapEntry, Style, YamlNode, YamlValue, emit};
use super::{EditError, SourceEdit, after_colon, is_json_key, line_break, line_start};

/// The edit that gives an entry a string, quoted as its value was.
pub(super) fn set(source: &str, entry: &MapEntry, text: &str) -> Result<Vec<SourceEdit>, EditError> {
    let node = &entry.node;
    if matches!(node.value, YamlValue::Map(_) | YamlValue::List(_)) {
        return Err(EditError::Scalar);
    }
    let mut written = String::new();
    match node.style {
        Style::Block => return Err(EditError::Scalar),
        Style::SingleQuoted => written.extend(["'", &single_quoted(text), "'"]),
        Style::DoubleQuoted => emit::write_quoted(&mut written, text),
        Style::Plain => {
            if node.span.is_empty() && after_colon(source, entry) == Some(node.span.start) {
                written.push(' ');
            }
            if is_json_key(source, entry) {
                emit::write_quoted(&mut written, text);
            } else {
                emit::write_text(&mut written, text);
            }
        }
    }
    Ok(vec![SourceEdit { range: node.span.clone(), text: written }])
}

/// The edit that replaces the bytes `part` of the decoded text. The part must begin and end with a character that is not a blank, or
/// be empty behind such a character: only then is its place in the source certain.
pub(super) fn edit(
    source: &str,
    node: &YamlNode,
    part: Range<usize>,
    replacement: &str,
) -> Result<SourceEdit, EditError> {
    let text = node.as_str().ok_or(EditError::Scalar)?;
    let range = if part.is_empty() {
        let before = text.get(..part.start).and_then(|before| before.char_indices().next_back());
        let (start, _) = before.filter(|(_, last)| !last.is_whitespace()).ok_or(EditError::Scalar)?;
        let end = node.part_span(source, start..part.start).end;
        end..end
    } else {
        let replaced = text.get(part.clone()).ok_or(EditError::Scalar)?;
        if replaced.trim() != replaced {
            return Err(EditError::Scalar);
        }
        node.part_span(source, part)
    };
    let text = written(source, node, text, range.start, replacement)?;
    Ok(SourceEdit { range, text })
}

/// A text as it is written in a scalar of that style.
fn written(source: &str, node: &YamlNode, decoded: &str, at: usize, text: &str) -> Result<String, EditError> {
    let raw = source.get(node.span.clone()).unwrap_or_default();
    match node.style {
        Style::DoubleQuoted => {
            let mut quoted = String::new();
            emit::write_quoted(&mut quoted, text);
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
            // A line break that is folded is a blank in the text.
            Ok(on_own_line(source, node, at, inner, "\\\""))
        }
        Style::SingleQuoted if text.contains('\n') => Err(EditError::Scalar),
        Style::SingleQuoted => Ok(on_own_line(source, node, at, &single_quoted(text), "\"")),
        Style::Plain => Ok(text.to_owned()),
        Style::Block => {
            let indentation = block_indentation(raw, decoded).ok_or(EditError::Scalar)?;
            // A blank line has no indentation.
            let line = |line: &str| if line.is_empty() { String::new() } else { [indentation, line].concat() };
            let mut lines = text.split('\n');
            let first = lines.next().unwrap_or_default().to_owned();
            let text = [first].into_iter().chain(lines.map(line)).collect::<Vec<_>>().join(line_break(raw));
            Ok(if raw.starts_with('>') { on_own_line(source, node, at, &text, "\"") } else { text })
        }
    }
}

fn single_quoted(text: &str) -> String {
    text.replace('\'', "''")
}

/// For a scalar whose line breaks are read as blanks: a new member gets a line of its own if the member before it has one.
fn on_own_line(source: &str, node: &YamlNode, at: usize, text: &str, quote: &str) -> String {
    let start = line_start(source, at);
    let Some(member) = text.strip_prefix(", ") else { return text.to_owned() };
    let line = source.get(start..at).unwrap_or_default();
    let ink = line.trim_start_matches([' ', '\t']);
    if start <= node.span.start || !ink.starts_with(quote) {
        return text.to_owned();
    }
    let indentation = line.strip_suffix(ink).unwrap_or_default();
    [",", line_break(source), indentation, member].concat()
}

/// The indentation of a block, which is no part of its text.
fn block_indentation<'s>(raw: &'s str, decoded: &str) -> Option<&'s str> {
    let blanks = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut lines = raw.split('\n').skip(1);
    let first = lines.find(|line| !line.trim().is_empty())?;
    let inner = decoded.split('\n').find(|line| !line.trim().is_empty()).map(blanks)?;
    first.get(..blanks(first).checked_sub(inner)?)
}
