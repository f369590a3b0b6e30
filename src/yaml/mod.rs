//! YAML as `kubectl` and the operator read it, with the place of every value in the text.
//!
//! The parser is of the same descent as the Go library behind the Kubernetes tools, and what a plain scalar *means* follows
//! that library too, which is YAML 1.1 at heart (`resolve`). A document that cannot be read is one error, and the next one is
//! read all the same.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod compose;
pub mod edit;
pub mod emit;
mod position;
mod resolve;

use std::ops::Range;

pub use compose::{Documents, YamlDocument};
pub use resolve::{Scalar, resolve};

use crate::json::unescape;
use crate::json::write::push_quoted;

/// The style of a scalar, which decides how positions map to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes, and everything that is no scalar.
    Plain,
    /// `'…'`
    SingleQuoted,
    /// `"…"`
    DoubleQuoted,
    /// `|` or `>`
    Block,
}

/// A value and its span.
#[derive(Clone, Debug)]
pub struct YamlNode {
    /// Its bytes in the source.
    pub span: Range<usize>,
    /// How it is written.
    pub style: Style,
    /// What it is.
    pub value: YamlValue,
}

/// The value of a node, by the rules of the Go library.
#[derive(Clone, Debug)]
pub enum YamlValue {
    /// Nothing, `~` or `null`.
    Null,
    /// `true`, `yes`, `on`, `y` and their opposites.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// Everything else that is a scalar.
    String(String),
    /// A sequence.
    List(Vec<YamlNode>),
    /// A mapping; keys are always strings in the end, and no two are equal.
    Map(Vec<MapEntry>),
}

/// One entry of a mapping.
#[derive(Clone, Debug)]
pub struct MapEntry {
    /// The key as JSON will have it.
    pub key: String,
    /// The span of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub node: YamlNode,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

impl YamlNode {
    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The entry of a key, if this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<&MapEntry> {
        match &self.value {
            YamlValue::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            YamlValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, if this is a sequence.
    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            YamlValue::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Adds a string entry to a mapping if absent; it has no position in the source.
    pub fn set_default(&mut self, key: &str, text: &str) {
        let here = self.span.start..self.span.start;
        if let YamlValue::Map(entries) = &mut self.value
            && !entries.iter().any(|entry| entry.key == key)
        {
            let node = Self { span: here.clone(), style: Style::Plain, value: YamlValue::String(text.to_owned()) };
            entries.push(MapEntry { key: key.to_owned(), key_span: here, node });
        }
    }

    /// Follows a JSON pointer as far as possible: the reached node, its key, and whether the whole pointer was followed.
    pub fn follow(&self, pointer: &str) -> (&Self, Option<&MapEntry>, bool) {
        let (mut here, mut via) = (self, None);
        for token in pointer.split('/').skip(1) {
            let token = unescape(token);
            let next = match &here.value {
                YamlValue::Map(entries) => entries.iter().find(|entry| entry.key == token).map(|e| (&e.node, Some(e))),
                YamlValue::List(nodes) => token.parse().ok().and_then(|i: usize| nodes.get(i)).map(|node| (node, None)),
                _ => None,
            };
            match next {
                Some((node, entry)) => (here, via) = (node, entry.or(via)),
                None => return (here, via, false),
            }
        }
        (here, via, true)
    }

    /// The source span of a part of this scalar's text: the bytes `part` of the decoded string.
    pub fn part_span(&self, source: &str, part: Range<usize>) -> Range<usize> {
        match &self.value {
            YamlValue::String(text) => position::find(source, self, text, part),
            _ => self.span.clone(),
        }
    }

    /// Writes the value as JSON.
    pub fn write_json(&self, out: &mut String) {
        match &self.value {
            YamlValue::Null => out.push_str("null"),
            YamlValue::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            YamlValue::Number(number) => out.push_str(&number.to_string()),
            YamlValue::String(text) => push_quoted(out, text),
            YamlValue::List(nodes) => {
                out.push('[');
                for (index, node) in nodes.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    node.write_json(out);
                }
                out.push(']');
            }
            YamlValue::Map(entries) => {
                out.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    push_quoted(out, &entry.key);
                    out.push(':');
                    entry.node.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// The value as a JSON text.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.span.len());
        self.write_json(&mut out);
        out
    }
}
