//! Adding, removing and renaming entries of mappings, in blocks and in braces.

use std::ops::Range;

use super::super::{MapEntry, Style, YamlNode, YamlValue, emit};
use super::{EditError, MAX_STEP, SourceEdit, after_colon, is_json_key, is_own, line_break, line_end, line_start};

/// An entry to be written: its key, the keys of mappings below it, and the string in the innermost one.
pub(super) struct NewEntry<'e> {
    pub(super) path: &'e [&'e str],
    pub(super) text: &'e str,
    /// How far each mapping is indented.
    pub(super) step: usize,
}

impl NewEntry<'_> {
    /// On lines of a block; the first has no indentation.
    fn block(&self, indent: usize, line_break: &str) -> String {
        let mut out = String::new();
        for (depth, key) in self.path.iter().enumerate() {
            if depth > 0 {
                out.push_str(line_break);
                out.push_str(&" ".repeat(indent + depth * self.step));
            }
            emit::write_text(&mut out, key);
            out.push(':');
        }
        out.push(' ');
        emit::write_text(&mut out, self.text);
        out
    }

    /// In braces. With line breaks, `gap` is one and the indentation of the key, and every mapping takes lines of its own.
    fn flow(&self, style: &FlowStyle<'_>) -> String {
        let write = |out: &mut String, text: &str| {
            if style.is_json { emit::write_quoted(out, text) } else { emit::write_text(out, text) }
        };
        let mut out = String::new();
        for (depth, key) in self.path.iter().enumerate() {
            if depth > 0 {
                out.push('{');
                style.push_gap(&mut out, depth);
            }
            write(&mut out, key);
            out.push_str(style.colon);
        }
        write(&mut out, self.text);
        for depth in (1..self.path.len()).rev() {
            style.push_gap(&mut out, depth - 1);
            out.push('}');
        }
        out
    }
}

/// How the entries of a mapping in braces are written.
struct FlowStyle<'s> {
    is_json: bool,
    colon: &'s str,
    /// What stands between a comma and a key.
    gap: &'s str,
    /// What each level adds to the indentation.
    step: &'s str,
}

impl FlowStyle<'_> {
    fn push_gap(&self, out: &mut String, depth: usize) {
        if self.gap.contains('\n') {
            out.push_str(self.gap);
            out.push_str(&self.step.repeat(depth));
        }
    }
}

/// How much deeper a mapping is indented than the one around it.
pub(super) fn step(source: &str, around: &YamlNode, map: &YamlNode) -> Option<usize> {
    let column_of = |map: &YamlNode| own_entries(map).first().and_then(|entry| column(source, entry).ok());
    let step = column_of(map)?.checked_sub(column_of(around)?)?;
    (1..=MAX_STEP).contains(&step).then_some(step)
}

/// The edits that add an entry: after the first of the keys `beside`, else after the last entry, if that is on one line; else in
/// front.
pub(super) fn add(
    source: &str,
    map: &YamlNode,
    entry: &NewEntry<'_>,
    beside: &[&str],
) -> Result<Vec<SourceEdit>, EditError> {
    let own = own_entries(map);
    let named = beside.iter().filter_map(|key| own.iter().find(|entry| entry.key == *key));
    if is_flow(source, map) {
        let last = named.chain(own.last()).find(|entry| super::own(source, map, entry).is_ok());
        return add_flow(source, map, &own, last.copied(), entry);
    }
    let first = own.first().ok_or(EditError::Mapping)?;
    let indent = column(source, first)?;
    let line_break = line_break(source);
    let text = entry.block(indent, line_break);
    let indentation = " ".repeat(indent);
    let edit = match named.chain(own.last()).find(|entry| is_one_line(source, map, entry)) {
        Some(before) => {
            let end = line_end(source, before.node.span.end);
            SourceEdit { range: end..end, text: [line_break, &indentation, &text].concat() }
        }
        None => {
            let start = first.key_span.start;
            SourceEdit { range: start..start, text: [&text, line_break, &indentation].concat() }
        }
    };
    Ok(vec![edit])
}

fn add_flow(
    source: &str,
    map: &YamlNode,
    own: &[&MapEntry],
    last: Option<&MapEntry>,
    entry: &NewEntry<'_>,
) -> Result<Vec<SourceEdit>, EditError> {
    let Some(last) = last else {
        if !own.is_empty() {
            return Err(EditError::Shared);
        }
        // An empty mapping is written as its key is.
        let before = source.get(..map.span.start).unwrap_or_default().trim_end();
        let is_json = before.strip_suffix(':').is_some_and(|key| key.trim_end().ends_with('"'));
        let style = FlowStyle { is_json, colon: ": ", gap: "", step: "" };
        return Ok(vec![SourceEdit { range: map.span.clone(), text: format!("{{{}}}", entry.flow(&style)) }]);
    };
    let style = flow_style(source, map, own, last);
    let end = last.node.span.end;
    Ok(vec![SourceEdit { range: end..end, text: format!(",{}{}", style.gap, entry.flow(&style)) }])
}

/// The style of the entries beside one of them.
fn flow_style<'s>(source: &'s str, map: &YamlNode, own: &[&MapEntry], beside: &MapEntry) -> FlowStyle<'s> {
    let blank = |range: Range<usize>| source.get(range).filter(|gap| gap.trim().is_empty());
    let index = own.iter().position(|entry| entry.key_span == beside.key_span).unwrap_or_default();
    let after_comma = |before: &MapEntry, next: &MapEntry| {
        let gap = source.get(before.node.span.end..next.key_span.start)?;
        let (blank, gap) = gap.split_once(',')?;
        (blank.trim().is_empty() && gap.trim().is_empty()).then_some(gap)
    };
    let gap = match (own.get(index + 1), index.checked_sub(1).and_then(|index| own.get(index))) {
        (Some(next), _) => after_comma(beside, next),
        (None, Some(previous)) => after_comma(previous, beside),
        (None, None) => blank(map.span.start + 1..beside.key_span.start),
    };
    let colon = source.get(beside.key_span.end..beside.node.span.start);
    let colon = colon.filter(|colon| colon.trim() == ":" && !colon.contains('\n'));
    // Alone in its brackets, an entry does not show what follows a comma; compact JSON has nothing there.
    let is_compact = colon == Some(":");
    let gap = gap.filter(|gap| !gap.is_empty() || is_compact).unwrap_or(" ");
    FlowStyle {
        is_json: is_json_key(source, beside),
        colon: colon.unwrap_or(": "),
        gap,
        step: flow_step(source, map, gap),
    }
}

/// How much deeper the entries are than the bracket that closes their mapping, which shows the depth of the next level.
fn flow_step<'s>(source: &'s str, map: &YamlNode, gap: &'s str) -> &'s str {
    let line = |text: &'s str| text.rsplit_once('\n').map(|(_, line)| line);
    let inside = source.get(map.span.start..map.span.end.saturating_sub(1)).unwrap_or_default();
    let closing = line(inside).filter(|line| line.trim().is_empty());
    let step = line(gap).and_then(|entry| entry.strip_prefix(closing.unwrap_or_default()));
    step.filter(|step| (1..=MAX_STEP).contains(&step.len())).unwrap_or("  ")
}

/// The edits that give an entry without a value a mapping.
pub(super) fn fill(
    source: &str,
    map: &YamlNode,
    entry: &MapEntry,
    value: &NewEntry<'_>,
) -> Result<Vec<SourceEdit>, EditError> {
    let colon = after_colon(source, entry).ok_or(EditError::Mapping)?;
    let written = entry.node.span.clone();
    if is_flow(source, map) {
        let is_close = colon == written.start;
        let is_json = is_json_key(source, entry);
        let style = FlowStyle { is_json, colon: if is_json && is_close { ":" } else { ": " }, gap: "", step: "" };
        let space = if written.is_empty() && is_close { " " } else { "" };
        return Ok(vec![SourceEdit { range: written, text: format!("{space}{{{}}}", value.flow(&style)) }]);
    }
    if !is_one_line(source, map, entry) {
        return Err(EditError::Mapping);
    }
    let indent = column(source, entry)? + value.step;
    let line_break = line_break(source);
    let end = line_end(source, written.end);
    let text = [line_break, &" ".repeat(indent), &value.block(indent, line_break)].concat();
    // The word for nothing goes, a comment behind it stays.
    let nothing = SourceEdit { range: colon..written.end.max(colon), text: String::new() };
    let below = SourceEdit { range: end..end, text };
    Ok([Some(nothing).filter(|edit| !edit.range.is_empty()), Some(below)].into_iter().flatten().collect())
}

/// The edits that remove an entry of the mapping that `around` holds.
pub(super) fn remove(
    source: &str,
    map: &YamlNode,
    entry: &MapEntry,
    around: &MapEntry,
) -> Result<Vec<SourceEdit>, EditError> {
    let own = own_entries(map);
    let index = own.iter().position(|other| other.key_span == entry.key_span).ok_or(EditError::Shared)?;
    let next = own.get(index + 1);
    let previous = index.checked_sub(1).and_then(|index| own.get(index));
    let key = entry.key_span.start;
    let remove = |range: Range<usize>| SourceEdit { range, text: String::new() };
    if is_flow(source, map) {
        return Ok(vec![match (next, previous) {
            (Some(next), _) => remove(key..next.key_span.start),
            (None, Some(previous)) => remove(previous.node.span.end..entry.node.span.end),
            (None, None) => remove(key..entry.node.span.end),
        }]);
    }
    let line = line_start(source, key);
    let is_alone = source.get(line..key).is_some_and(|before| before.chars().all(|c| c == ' '));
    if !is_alone || !is_one_line(source, map, entry) {
        return Err(EditError::Mapping);
    }
    let end = line_end(source, entry.node.span.end);
    let behind = source.get(entry.node.span.end..end).unwrap_or_default();
    let mut edits = vec![match behind.find('#') {
        // A comment stays where it is.
        Some(comment) => remove(key..entry.node.span.end + comment),
        None => remove(whole_line(source, line, end)),
    }];
    if next.is_none() && previous.is_none() {
        if own.len() != entries(map).len() {
            return Err(EditError::Shared);
        }
        // A key without a value would hold null.
        let colon = after_colon(source, around).ok_or(EditError::Mapping)?;
        edits.push(SourceEdit { range: colon..colon, text: " {}".to_owned() });
    }
    Ok(edits)
}

/// A line with the line break behind it, or before it at the end of the text.
fn whole_line(source: &str, start: usize, end: usize) -> Range<usize> {
    let behind = source.get(end..).unwrap_or_default();
    match behind.find('\n') {
        Some(newline) => start..end + newline + 1,
        None => {
            let before = source.get(..start).unwrap_or_default();
            let before = before.strip_suffix('\n').unwrap_or(before);
            before.strip_suffix('\r').unwrap_or(before).len()..end
        }
    }
}

/// The edit that renames a key.
pub(super) fn rename(source: &str, map: &YamlNode, entry: &MapEntry, to: &str) -> Result<Vec<SourceEdit>, EditError> {
    if map.entry(to).is_some() {
        return Err(EditError::KeyExists);
    }
    let mut text = String::new();
    match source.as_bytes().get(entry.key_span.start) {
        Some(b'"') => emit::write_quoted(&mut text, to),
        Some(b'\'') => text.extend(["'", &to.replace('\'', "''"), "'"]),
        _ => emit::write_text(&mut text, to),
    }
    Ok(vec![SourceEdit { range: entry.key_span.clone(), text }])
}

fn entries(map: &YamlNode) -> &[MapEntry] {
    match &map.value {
        YamlValue::Map(entries) => entries,
        _ => &[],
    }
}

fn own_entries(map: &YamlNode) -> Vec<&MapEntry> {
    entries(map).iter().filter(|entry| is_own(map, entry)).collect()
}

fn is_flow(source: &str, map: &YamlNode) -> bool {
    source.as_bytes().get(map.span.start) == Some(&b'{')
}

/// The column of a key in a block, from 0. Before it there may be the dashes of lists.
fn column(source: &str, entry: &MapEntry) -> Result<usize, EditError> {
    let key = entry.key_span.start;
    let before = source.get(line_start(source, key)..key).ok_or(EditError::Mapping)?;
    if before.chars().all(|c| matches!(c, ' ' | '-')) { Ok(before.len()) } else { Err(EditError::Mapping) }
}

/// Whether an entry is a key and a scalar on one line of a block, with at most a comment behind it.
fn is_one_line(source: &str, map: &YamlNode, entry: &MapEntry) -> bool {
    let node = &entry.node;
    let is_scalar = !matches!(node.value, YamlValue::Map(_) | YamlValue::List(_)) && node.style != Style::Block;
    let is_line = || source.get(entry.key_span.start..node.span.end).is_some_and(|text| !text.contains('\n'));
    let behind = || source.get(node.span.end..line_end(source, node.span.end)).unwrap_or_default();
    let is_comment =
        |text: &str| text.trim_start().is_empty() || (text.trim_start().starts_with('#') && is_spaced(text));
    is_scalar && super::own(source, map, entry).is_ok() && is_line() && is_comment(behind())
}

fn is_spaced(text: &str) -> bool {
    text.starts_with([' ', '\t'])
}
