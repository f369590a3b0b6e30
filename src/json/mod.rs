//! JSON as Go's `encoding/json` accepts it, with the place of every value in the text.
//!
//! `serde_json` keeps no positions, drops duplicate keys, and rejects lone surrogates. This parser must accept exactly what
//! Multus and the plugins accept, otherwise rules judge another document than the one that will run.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod path;
mod read;
mod shape;
mod skip;
mod strings;
mod swar;
pub(crate) mod write;

use std::borrow::Cow;
use std::sync::OnceLock;

pub(crate) use path::PathStep;
pub(crate) use read::JsonReader;
pub use shape::KeyShape;

/// The maximum text length. Offsets are `u32`, and no network needs this size.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting that is read; each level costs a stack frame.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values of a config, counting each key with its value once. A value costs some 40 bytes of memory and may
/// take two bytes of text, so the size limit alone is no bound.
pub const MAX_VALUES: usize = 1 << 16;
/// How many sets of derived values a document keeps.
const MAX_VIEWS: usize = 2;

/// A half-open range of bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range as the standard library wants it.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A value and its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'t> {
    /// The bytes of the value, quotes and brackets included.
    pub span: Span,
    /// What it is.
    pub kind: Kind<'t>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'t> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it is written.
    Number(Cow<'t, str>),
    /// A string, decoded.
    String(Cow<'t, str>),
    /// `[…]`
    Array(Vec<Value<'t>>),
    /// `{…}` with every member in the order of the text, duplicates included.
    Object(Vec<Member<'t>>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'t> {
    /// The key, decoded.
    pub key: Cow<'t, str>,
    /// The bytes of the key, quotes included.
    pub key_span: Span,
    /// What of the key is compared first.
    pub shape: KeyShape,
    /// The value.
    pub value: Value<'t>,
}

impl<'t> Value<'t> {
    /// The members, if this is an object.
    pub fn members(&self) -> Option<&[Member<'t>]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn elements(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is `null`, which Go treats as absent in every field.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// The integer a Go plugin finds here. Its config went through a map of floats, so `100.0` and `1e2` arrive as
    /// integers and what has more than 53 bits is rounded; `1.5` does not arrive, and neither does what leaves 64 bits.
    pub fn as_int(&self) -> Option<i64> {
        let Kind::Number(text) = &self.kind else { return None };
        if let Some(exact) = text.parse::<i64>().ok().filter(|exact| exact.unsigned_abs() <= 1 << 53) {
            return Some(exact);
        }
        integer_of_float(text.parse().ok()?)?.try_into().ok()
    }

    /// A copy that borrows nothing.
    pub fn to_static(&self) -> Value<'static> {
        let kind = match &self.kind {
            Kind::Null => Kind::Null,
            Kind::Bool(value) => Kind::Bool(*value),
            Kind::Number(text) => Kind::Number(Cow::Owned(text.clone().into_owned())),
            Kind::String(text) => Kind::String(Cow::Owned(text.clone().into_owned())),
            Kind::Array(elements) => Kind::Array(elements.iter().map(Self::to_static).collect()),
            Kind::Object(members) => Kind::Object(members.iter().map(Member::to_static).collect()),
        };
        Value { span: self.span, kind }
    }

    /// A scalar as it is, a list or an object as its type: "100", `true`, "a list".
    pub fn shown(&self) -> Cow<'_, str> {
        match &self.kind {
            Kind::Bool(true) => "true".into(),
            Kind::Bool(false) => "false".into(),
            Kind::Number(text) => text.as_ref().into(),
            Kind::String(text) => format!("{text:?}").into(),
            Kind::Null | Kind::Array(_) | Kind::Object(_) => self.describe().into(),
        }
    }

    /// The type of the value as text: "a number".
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::Array(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

impl<'t> Member<'t> {
    /// A key, where it stands, and its value.
    pub fn new(key: Cow<'t, str>, key_span: Span, value: Value<'t>) -> Self {
        Self { shape: KeyShape::of(&key), key, key_span, value }
    }

    /// A copy that borrows nothing.
    pub fn to_static(&self) -> Member<'static> {
        Member::new(Cow::Owned(self.key.clone().into_owned()), self.key_span, self.value.to_static())
    }
}

/// Why a text is not the one JSON value it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Error {
    /// Where reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message is the documentation")]
pub enum Problem {
    #[error("larger than 1 MiB")]
    TooLarge,
    #[error("nested deeper than 64 levels")]
    TooDeep,
    #[error("more than 65,536 JSON values")]
    TooMany,
    #[error("the text is blank")]
    Blank,
    #[error("unexpected end of text")]
    Truncated,
    #[error("unexpected text after the JSON value")]
    Trailing,
    #[error("trailing comma before a closing bracket")]
    TrailingComma,
    #[error("expected a key in double quotes")]
    KeyExpected,
    #[error("expected a colon")]
    ColonExpected,
    #[error("expected a comma or a closing bracket")]
    CommaExpected,
    #[error("expected an object")]
    ObjectExpected,
    #[error("expected a list")]
    ListExpected,
    #[error("not a JSON value")]
    BadValue,
    #[error("not a JSON number")]
    BadNumber,
    #[error("number is too large for a 64-bit float")]
    HugeNumber,
    #[error("invalid escape sequence")]
    BadEscape,
    #[error("unescaped control character in a string")]
    ControlCharacter,
}

impl Problem {
    /// Whether the text may be good JSON, but more of it than is read.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::TooLarge | Self::TooDeep | Self::TooMany)
    }
}

/// A text and the one JSON value in it.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    /// The text itself.
    pub text: &'t str,
    /// The value.
    pub root: Value<'t>,
    /// Values that a reader derived from the root, kept here so that they live as long as the document. They borrow
    /// nothing, so that the document can still be lent out for any shorter time.
    views: [OnceLock<Vec<Value<'static>>>; MAX_VIEWS],
}

impl<'t> Document<'t> {
    /// Parses a config: a text within the limits with exactly one JSON value.
    pub fn parse(text: &'t str) -> Result<Self, Error> {
        Self::read(text, MAX_BYTES, MAX_DEPTH, MAX_VALUES)
    }

    /// Parses a text with exactly one JSON value, of any size and limited depth.
    pub fn parse_unbounded(text: &'t str, max_depth: usize) -> Result<Self, Error> {
        Self::read(text, usize::MAX, max_depth, usize::MAX)
    }

    fn read(text: &'t str, max_bytes: usize, max_depth: usize, max_values: usize) -> Result<Self, Error> {
        // Offsets are kept in 32 bits.
        if text.len() > max_bytes.min(u32::MAX as usize) {
            return Err(Error { offset: 0, problem: Problem::TooLarge });
        }
        let root = JsonReader::whole(text, |reader| {
            reader.values_left = max_values;
            reader.is_ascii = text.is_ascii();
            reader.value(max_depth)
        })?;
        Ok(Self { text, root, views: Default::default() })
    }

    /// The derived values with that index, computed on first use. `None` beyond the last index.
    pub(crate) fn views(&self, number: usize, make: impl FnOnce() -> Vec<Value<'static>>) -> Option<&[Value<'static>]> {
        self.views.get(number).map(|views| views.get_or_init(make).as_slice())
    }
}

/// The integer that Go writes for a float: the shortest digits that mean this float, filled up with zeros. From 10^21 on it
/// writes an exponent, which no integer field takes.
pub fn integer_of_float(float: f64) -> Option<i128> {
    if float.fract() != 0.0 || float.abs() >= 1e21 {
        return None;
    }
    // Up to here an integer has one spelling only.
    if float.abs() <= 9_007_199_254_740_992.0 { Some(float as i128) } else { float.to_string().parse().ok() }
}

/// Escapes one reference token of a JSON pointer.
pub fn escape(token: &str) -> Cow<'_, str> {
    let is_special = |byte| matches!(byte, b'~' | b'/');
    if !token.bytes().any(is_special) {
        return Cow::Borrowed(token);
    }
    let mut escaped = String::with_capacity(token.len() + 8);
    let mut rest = token;
    while let Some((before, behind)) = rest.bytes().position(is_special).and_then(|at| rest.split_at_checked(at)) {
        escaped.push_str(before);
        escaped.push_str(if behind.starts_with('~') { "~0" } else { "~1" });
        rest = behind.get(1..).unwrap_or_default();
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// A reference token of a JSON pointer, without its escapes.
pub fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Line and column (both from 1, the column in characters) of a byte of a text.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before.get(line_start..).map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

/// A text and where its lines begin, so that a place in it is found without counting from the start each time.
#[derive(Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// 32 bits, as no text that is read is longer, and a large file has very many lines.
    starts: Vec<u32>,
}

impl<'t> LineIndex<'t> {
    /// The lines of a text.
    pub fn of(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        // Counted first: in a large file, growing would take more than the lines do.
        let mut starts = Vec::with_capacity(breaks.clone().count() + 1);
        starts.extend(std::iter::once(0).chain(breaks));
        Self { text, starts }
    }

    /// The text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub fn at(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start as usize <= offset);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or_default();
        (line, self.text.get(start as usize..offset).unwrap_or_default().chars().count() + 1)
    }
}

#[cfg(test)]
mod tests;
