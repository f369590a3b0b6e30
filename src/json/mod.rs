//! JSON as Go's `encoding/json` accepts it, with the place of every value in the text.
//!
//! `serde_json` has other opinions: it keeps no positions, drops duplicate keys, and refuses lone surrogates. What Multus
//! and the plugins accept must be accepted here, and what they refuse refused, or a rule looks at another document than
//! the one that will run.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod read;
mod skip;
mod strings;
mod words;
pub(crate) mod write;

use std::borrow::Cow;

pub(crate) use read::Reader;

/// The longest text that is read. Offsets are kept as `u32`, and nobody needs a network of this size.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting that is read; each level costs a stack frame.
pub const MAX_DEPTH: usize = 64;

/// A half-open range of bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A value and where it stands.
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
    Number(&'t str),
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

    /// Whether this is `null`, which Go takes for "not there" in every field.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// The integer a Go plugin finds here. Its config went through a map of floats, so `100.0` and `1e2` arrive as
    /// integers; `1.5` does not, and neither does what leaves 64 bits.
    pub fn as_int(&self) -> Option<i64> {
        let Kind::Number(text) = self.kind else { return None };
        if let Ok(exact) = text.parse() {
            return Some(exact);
        }
        let float: f64 = text.parse().ok()?;
        (float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_808.0).then_some(float as i64)
    }

    /// What this is, in a sentence: "a number".
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
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("it is nested deeper than 64 levels")]
    TooDeep,
    #[error("it is blank")]
    Blank,
    #[error("it ends in the middle of a value")]
    Truncated,
    #[error("text follows after the JSON value")]
    Trailing,
    #[error("a comma stands before a closing bracket")]
    TrailingComma,
    #[error("a key in double quotes is expected here")]
    KeyExpected,
    #[error("a colon is expected here")]
    ColonExpected,
    #[error("a comma or a closing bracket is expected here")]
    CommaExpected,
    #[error("an object is expected here")]
    ObjectExpected,
    #[error("a list is expected here")]
    ListExpected,
    #[error("this is not a JSON value")]
    BadValue,
    #[error("this is not a JSON number")]
    BadNumber,
    #[error("this number is too large for a 64-bit float, which every number passes through")]
    HugeNumber,
    #[error("this escape sequence is not JSON")]
    BadEscape,
    #[error("a line break, tab or other control character stands unescaped in a string")]
    ControlCharacter,
}

/// A text and the one JSON value in it.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    /// The text itself.
    pub text: &'t str,
    /// The value.
    pub root: Value<'t>,
}

impl<'t> Document<'t> {
    /// Reads a config: a text within the limits that holds exactly one JSON value.
    pub fn parse(text: &'t str) -> Result<Self, Error> {
        Self::parse_within(text, MAX_BYTES, MAX_DEPTH)
    }

    /// Reads a text that holds exactly one JSON value, within other limits.
    pub fn parse_within(text: &'t str, max_bytes: usize, max_depth: usize) -> Result<Self, Error> {
        // Offsets are kept in 32 bits.
        if text.len() > max_bytes.min(u32::MAX as usize) {
            return Err(Error { offset: 0, problem: Problem::TooLarge });
        }
        let root = Reader::whole(text, |reader| reader.value(max_depth))?;
        Ok(Self { text, root })
    }

    /// The JSON pointer of the value or key at a span of this document. The path is found by looking, so that rules
    /// need not carry it along for the findings they do not make.
    pub fn pointer_to(&self, span: Span) -> String {
        let mut pointer = String::new();
        let mut here = &self.root;
        loop {
            let step = match &here.kind {
                Kind::Array(elements) => elements
                    .iter()
                    .enumerate()
                    .find(|(_, element)| element.span.contains(span))
                    .map(|(index, element)| (Cow::Owned(index.to_string()), element, false)),
                Kind::Object(members) => members.iter().find_map(|member| {
                    let is_key = member.key_span.contains(span);
                    (is_key || member.value.span.contains(span)).then(|| (escape(&member.key), &member.value, is_key))
                }),
                _ => None,
            };
            // A span equal to `here` has been reached when no child holds it.
            let Some((token, child, last)) = step else { return pointer };
            pointer.push('/');
            pointer.push_str(&token);
            if last {
                return pointer;
            }
            here = child;
        }
    }
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
pub struct Lines<'t> {
    text: &'t str,
    /// 32 bits, as no text that is read is longer, and a large file has very many lines.
    starts: Vec<u32>,
}

impl<'t> Lines<'t> {
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
mod tests {
    use super::*;

    #[test]
    fn accepts_and_refuses_what_go_does() {
        use Problem::*;
        // (text, None where Go accepts it, else what is wrong)
        let table: &[(&str, Option<Problem>)] = &[
            (r#"{"a":[1,-0.5e+3,true,false,null,"x"]}"#, None),
            ("\r\n\t {} \n", None),
            ("null", None),
            ("", Some(Blank)),
            (" \n", Some(Blank)),
            ("\u{feff}{}", Some(BadValue)),
            ("{} {}", Some(Trailing)),
            ("{}x", Some(Trailing)),
            (r#"{"a":1,}"#, Some(TrailingComma)),
            ("[1,]", Some(TrailingComma)),
            ("[1 2]", Some(CommaExpected)),
            ("{a:1}", Some(KeyExpected)),
            (r#"{"a" 1}"#, Some(ColonExpected)),
            (r#"{"a":"#, Some(Truncated)),
            (r#"{"a"#, Some(Truncated)),
            ("[01]", Some(CommaExpected)),
            ("[+1]", Some(BadValue)),
            ("[1.]", Some(BadNumber)),
            ("[.5]", Some(BadValue)),
            ("[1e]", Some(BadNumber)),
            ("[1e308]", None),
            ("[1e400]", Some(HugeNumber)),
            ("[NaN]", Some(BadValue)),
            ("[True]", Some(BadValue)),
            ("[nul]", Some(BadValue)),
            ("['a']", Some(BadValue)),
            ("[\"a\tb\"]", Some(ControlCharacter)),
            ("[\"a\nb\"]", Some(ControlCharacter)),
            (r#"["\x41"]"#, Some(BadEscape)),
            (r#"["\u12"]"#, Some(BadEscape)),
            (r#"["\u+123"]"#, Some(BadEscape)),
            (r#"["\"#, Some(BadEscape)),
            ("[\"\u{7f}\u{fffd}é\"]", None),
            ("// c\n{}", Some(BadValue)),
        ];
        for (text, want) in table {
            assert_eq!(Document::parse(text).err().map(|error| error.problem), *want, "{text:?}");
        }
    }

    #[test]
    fn decodes_strings_as_go_does() {
        for (text, want) in [
            (r#""plain""#, "plain"),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u0041\u00e9\uD83D\uDE00""#, "Aé😀"),
            (r#""\ud800""#, "\u{fffd}"),
            (r#""\udc00x""#, "\u{fffd}x"),
            (r#""\ud800\ud800""#, "\u{fffd}\u{fffd}"),
            (r#""\ud800A""#, "\u{fffd}A"),
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(document.root.as_str(), Some(want), "{text}");
        }
    }

    #[test]
    fn numbers_are_integers_when_a_go_map_would_make_them_so() {
        for (text, want) in [
            ("100", Some(100)),
            ("100.0", Some(100)),
            ("1e2", Some(100)),
            ("-0", Some(0)),
            ("1.5", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("1e30", None),
            ("\"100\"", None),
        ] {
            assert_eq!(Document::parse(text).unwrap().root.as_int(), want, "{text}");
        }
    }

    #[test]
    fn limits_hold() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Document::parse(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(Document::parse(&deep(MAX_DEPTH + 1)).unwrap_err().problem, Problem::TooDeep);
        assert_eq!(Document::parse(&"[".repeat(100_000)).unwrap_err().problem, Problem::TooDeep);
        assert_eq!(Document::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().problem, Problem::TooLarge);
    }

    #[test]
    fn pointers_lead_to_keys_and_values() {
        let text = r#"{"a":1,"plugins":[{"type":"x"},{"a/b":{"~":[7]}}]}"#;
        let document = Document::parse(text).unwrap();
        for (needle, want) in [("\"type\"", "/plugins/0/type"), ("7", "/plugins/1/a~1b/~0/0"), ("1", "/a")] {
            let start = text.find(needle).unwrap() as u32;
            let span = Span { start, end: start + needle.len() as u32 };
            assert_eq!(document.pointer_to(span), want);
        }
        assert_eq!(document.pointer_to(document.root.span), "");
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(line_column("ab\ncd", 0), (1, 1));
        assert_eq!(line_column("ab\ncd", 4), (2, 2));
        assert_eq!(line_column("é\néx", 5), (2, 2));
        let text = "a\né b\r\n\n日本\nx";
        let lines = Lines::of(text);
        for (offset, _) in text.char_indices() {
            assert_eq!(lines.at(offset), line_column(text, offset), "{offset}");
        }
    }
}
