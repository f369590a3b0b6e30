//! Untrusted text for people: characters that a terminal or browser would interpret are escaped, and long text is cut.
//!
//! Names, values and file names may contain escape sequences that repaint a terminal, characters that reverse the text direction,
//! or invisible characters. Each is written as `\u{1b}`, as in Rust. Machine formats keep the data.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::borrow::Cow;
use std::fmt::Write;

/// Text of one line, such as a name: line breaks and tabs are escaped too, so that it cannot pretend to be two lines.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, |out, character| match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => unicode(out, other),
    })
}

/// Text of several lines: line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_hidden(character) && !matches!(character, '\n' | '\t'), unicode)
}

/// A line of JSON in which such characters are written as JSON escapes them: the data is the same.
pub(crate) fn json(line: &str) -> Cow<'_, str> {
    escaped(line, is_hidden, |out, character| {
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            // Writing into a string does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// An error of the system in the middle of a sentence: `no such file or directory`, without its number.
pub(crate) fn cause(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let words = text.split_once(" (os error ").map_or(text.as_str(), |(words, _)| words);
    let mut characters = words.chars();
    match (characters.next(), words.chars().nth(1)) {
        // Not an abbreviation, such as that of a protocol.
        (Some(first), Some(second)) if !second.is_uppercase() => first.to_lowercase().chain(characters).collect(),
        _ => words.to_owned(),
    }
}

/// The start of a text, of at most that many bytes.
pub(crate) fn at_most(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// A text of at most that many characters; a longer one is cut and ends in `…`.
pub(crate) fn truncated(text: impl Into<String>, chars: usize) -> String {
    let mut text = text.into();
    if text.len() > chars
        && let Some((cut, _)) = text.char_indices().nth(chars)
    {
        text.truncate(cut);
        text.push('…');
    }
    text
}

fn unicode(out: &mut String, character: char) {
    out.extend(character.escape_unicode());
}

/// Whether a character is obeyed rather than shown, or not seen at all.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // The soft hyphen, the marks that turn the direction of text, and what has no width.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            // Line and paragraph separators, embeddings and overrides of the direction.
            | '\u{2028}'..='\u{202e}'
            // Invisible operators, isolates, and deprecated format characters.
            | '\u{2060}'..='\u{206f}'
            // The byte order mark, annotations, and tags, which spell out text that nobody sees.
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(plain);
    for character in rest.chars() {
        if is_escaped(character) { escape(&mut out, character) } else { out.push(character) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_characters() {
        // (text, as one line, as several)
        let table = [
            ("plain é 日本 🙂", "plain é 日本 🙂", "plain é 日本 🙂"),
            ("a\nb\tc\r", "a\\nb\\tc\\r", "a\nb\tc\\u{d}"),
            ("\u{1b}[31m\u{7f}\u{9b}", "\\u{1b}[31m\\u{7f}\\u{9b}", "\\u{1b}[31m\\u{7f}\\u{9b}"),
            ("x\u{202e}y\u{2066}z\u{61c}", "x\\u{202e}y\\u{2066}z\\u{61c}", "x\\u{202e}y\\u{2066}z\\u{61c}"),
            ("\u{feff}a\u{200b}\u{2028}", "\\u{feff}a\\u{200b}\\u{2028}", "\\u{feff}a\\u{200b}\\u{2028}"),
            ("\u{e0041}", "\\u{e0041}", "\\u{e0041}"),
            ("", "", ""),
        ];
        for (text, one, several) in table {
            assert_eq!((line(text).as_ref(), lines(text).as_ref()), (one, several), "{text:?}");
        }
    }

    #[test]
    fn json_escaping_preserves_the_data() {
        let text = "\u{1b}\u{202e}\u{e0041}\u{7f}é\"\\";
        let plain = serde_json::Value::from(text).to_string();
        let shown = json(&plain);
        assert!(!shown.contains(is_hidden), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
