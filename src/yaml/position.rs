//! Maps a position in the text of a scalar to its position in the source.
//!
//! YAML reflows a scalar: indentation is removed, lines are folded, quotes are doubled, escapes are decoded. All styles keep the
//! order of non-blank characters, so a position is found by counting those.

use std::ops::Range;

use super::{Style, YamlNode};

/// The bytes of the source that became the bytes `part` of the decoded `text`.
pub(super) fn find(source: &str, node: &YamlNode, text: &str, part: Range<usize>) -> Range<usize> {
    let raw = source.get(node.span.clone()).unwrap_or_default();
    let body = body_start(raw, node.style);
    let ink_before = |offset: usize| text.get(..offset).unwrap_or(text).chars().filter(|c| !c.is_whitespace()).count();
    let (from, to) = (ink_before(part.start), ink_before(part.end));
    let mut start = None;
    let mut seen = 0;
    let strokes = SourceChars { raw, at: body, style: node.style };
    for (range, is_ink) in strokes {
        if !is_ink {
            continue;
        }
        if seen == from {
            start = Some(range.start);
        }
        seen += 1;
        if seen >= to.max(from + 1) {
            let start = start.unwrap_or(range.start);
            return node.span.start + start..node.span.start + range.end;
        }
    }
    // After the last non-blank character: the end of the scalar, one byte wide so that it can be underlined.
    let end = node.span.start + raw.trim_end().len();
    start.map_or(end.saturating_sub(1).max(node.span.start)..end, |start| node.span.start + start..end)
}

/// Where the content begins: after the opening quote, or at the end of the header line of a block, which leaves no ink.
fn body_start(raw: &str, style: Style) -> usize {
    match style {
        Style::Plain => 0,
        Style::SingleQuoted | Style::DoubleQuoted => 1,
        Style::Block => raw.find('\n').unwrap_or(raw.len()),
    }
}

/// The characters of a scalar as they are written, each with whether it leaves ink.
struct SourceChars<'t> {
    raw: &'t str,
    at: usize,
    style: Style,
}

impl Iterator for SourceChars<'_> {
    type Item = (Range<usize>, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let rest = self.raw.get(start..)?;
        let first = rest.chars().next()?;
        let (length, is_ink) = match (self.style, first) {
            (Style::SingleQuoted, '\'') if rest.starts_with("''") => (2, true),
            (Style::SingleQuoted, '\'') | (Style::DoubleQuoted, '"') => return None,
            (Style::DoubleQuoted, '\\') => escape(rest),
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        self.at = start + length;
        Some((start..self.at, is_ink))
    }
}

/// The length of the escape sequence at the start of `rest`, and whether it leaves ink.
fn escape(rest: &str) -> (usize, bool) {
    let letter = rest.chars().nth(1).unwrap_or('\\');
    let digits = match letter {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if digits == 0 {
        // Line breaks, tabs, the blanks with a letter of their own, and a line that goes on.
        let blank = matches!(letter, 'n' | 't' | 'r' | 'f' | 'v' | ' ' | '_' | 'N' | 'L' | 'P' | '\t' | '\n' | '\r');
        return (1 + letter.len_utf8(), !blank);
    }
    let code = rest.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default();
    let first_half_of_pair = (0xd800..0xdc00).contains(&code);
    let blank = char::from_u32(code).is_some_and(char::is_whitespace);
    (2 + digits, !blank && !first_half_of_pair)
}

#[cfg(test)]
mod tests {
    use crate::yaml::Documents;

    /// The marked word of the config, found in the source.
    fn found(source: &str, word: &str) -> String {
        let document = Documents::new(source).next().unwrap().node.unwrap();
        let node = document.get("config").unwrap();
        let text = node.as_str().unwrap();
        let start = text.find(word).unwrap();
        let range = node.part_span(source, start..start + word.len());
        source.get(range).unwrap().to_owned()
    }

    #[test]
    fn finds_words_in_every_style() {
        for (source, word, want) in [
            ("config: '{\n    \"a b\": 1,\n  \"vlan\": 5}'\n", "\"vlan\"", "\"vlan\""),
            ("config: 'it''s \"vlan\"'", "\"vlan\"", "\"vlan\""),
            ("config: |\n  {\n    \"vlan\": 5\n  }\n", "\"vlan\"", "\"vlan\""),
            ("config: |-  # note\n  {\n    \"vlan\": 5\n  }\nother: 1\n", "5", "5"),
            ("config: >\n  {\n\n    \"vlan\":\n  5 }\n", "5", "5"),
            ("config: \"{\\\"x\\\":\\t1,\\n\\\"vlan\\\": 5}\"", "\"vlan\"", "\\\"vlan\\\""),
            ("config: \"{\\\n   \\\"vlan\\\": \\u0035}\"", "5", "\\u0035"),
            ("{\"config\": \"\\ud83d\\ude00 \\\"vlan\\\"\"}", "\"vlan\"", "\\\"vlan\\\""),
            ("config: plain vlan here", "vlan", "vlan"),
            ("config: &c '{\"vlan\": 5}'", "\"vlan\"", "\"vlan\""),
            ("config: !!str &c |\n  {\n    \"vlan\": 5\n  }\n", "\"vlan\"", "\"vlan\""),
            ("config: &c !!str\n  \"{\\\"vlan\\\": 5}\"", "5", "5"),
        ] {
            assert_eq!(found(source, word), want, "{source}");
        }
    }

    #[test]
    fn the_end_of_the_text_is_the_end_of_the_scalar() {
        let source = "config: '{\"vlan\": '\n";
        let document = Documents::new(source).next().unwrap().node.unwrap();
        let node = document.get("config").unwrap();
        let end = node.as_str().unwrap().len();
        assert_eq!(source.get(node.part_span(source, end..end)), Some("'"));
    }

    #[test]
    fn escapes_have_their_length_and_may_be_blank() {
        for (escaped, want) in [
            (r"\x41b", (4, true)),
            (r"\x20b", (4, false)),
            (r"\u0041b", (6, true)),
            (r"\u00a0b", (6, false)),
            (r"\ud83d", (6, false)),
            (r"\ude00", (6, true)),
            (r"\U0001F600", (10, true)),
            (r"\n", (2, false)),
            (r"\t", (2, false)),
            (r"\_", (2, false)),
            (r#"\""#, (2, true)),
            (r"\/", (2, true)),
            (r"\", (2, true)),
            (r"\é", (3, true)),
        ] {
            assert_eq!(super::escape(escaped), want, "{escaped}");
        }
    }

    #[test]
    fn a_part_without_ink_is_found_at_the_next_character() {
        let source = "config: 'a  b c'\n";
        let document = Documents::new(source).next().unwrap().node.unwrap();
        let node = document.get("config").unwrap();
        for (part, want) in
            [(0..1, "a"), (0..4, "a  b"), (3..6, "b c"), (1..1, "b"), (5..6, "c"), (6..6, "'"), (5..9, "c")]
        {
            assert_eq!(source.get(node.part_span(source, part.clone())), Some(want), "{part:?}");
        }
    }

    /// Half of a pair is one character in the text, and none in the source: the place is wrong, but not elsewhere.
    #[test]
    fn every_place_is_in_its_scalar() {
        let source = r#"{"config": "\ud83d vlan"}"#;
        assert_eq!(found(source, "vlan"), "lan\"");
    }
}
