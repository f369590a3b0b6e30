//! Nodes as a whole: from JSON, merged, as keys, and their size.

use std::collections::HashSet;

use super::super::{MapEntry, Style, YamlNode, YamlValue};
use crate::json;

/// A JSON value as a node. Of equal keys the last one counts.
pub(super) fn from_json(value: json::Value<'_>, offset: usize) -> YamlNode {
    let place = |span: json::Span| offset + span.start as usize..offset + span.end as usize;
    let span = place(value.span);
    let (style, value) = match value.kind {
        json::Kind::Null => (Style::Plain, YamlValue::Null),
        json::Kind::Bool(flag) => (Style::Plain, YamlValue::Bool(flag)),
        json::Kind::Number(text) => match text.parse() {
            Ok(number) => (Style::Plain, YamlValue::Number(number)),
            Err(_) => (Style::Plain, YamlValue::String(text.into_owned())),
        },
        json::Kind::String(text) => (Style::DoubleQuoted, YamlValue::String(text.into_owned())),
        json::Kind::Array(elements) => {
            (Style::Plain, YamlValue::List(elements.into_iter().map(|element| from_json(element, offset)).collect()))
        }
        json::Kind::Object(members) => {
            let mut seen = HashSet::new();
            let last = members.into_iter().rev().filter(|member| seen.insert(member.key.clone()));
            let mut entries: Vec<_> = last
                .map(|member| MapEntry {
                    key: member.key.into_owned(),
                    key_span: place(member.key_span),
                    node: from_json(member.value, offset),
                })
                .collect();
            entries.reverse();
            (Style::Plain, YamlValue::Map(entries))
        }
    };
    YamlNode { span, style, value }
}

/// Merges `<<`: adds missing keys, earlier sources first. False if it is not a mapping.
pub(super) fn merge(entries: &mut Vec<MapEntry>, seen: &mut HashSet<String>, node: YamlNode) -> bool {
    match node.value {
        YamlValue::Map(more) => {
            entries.extend(more.into_iter().filter(|entry| seen.insert(entry.key.clone())));
            true
        }
        YamlValue::List(nodes) => nodes.into_iter().all(|node| merge(entries, seen, node)),
        _ => false,
    }
}

pub(super) fn key_text(value: YamlValue) -> Option<String> {
    match value {
        YamlValue::String(text) => Some(text),
        YamlValue::Bool(flag) => Some(flag.to_string()),
        YamlValue::Number(number) => Some(number.to_string()),
        YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}

/// About how many bytes a node takes.
pub(super) fn size(node: &YamlNode) -> usize {
    size_of::<YamlNode>()
        + match &node.value {
            YamlValue::List(nodes) => nodes.iter().map(size).sum(),
            YamlValue::Map(entries) => entries.iter().map(|entry| entry.key.len() + size(&entry.node)).sum(),
            YamlValue::String(text) => text.len(),
            _ => 0,
        }
}
