//! Writing JSON.
//!
//! Strings are escaped here and not by serde_json where they go into a text that is put together piece by piece, without a copy.

use std::fmt::{self, Write};

use serde::Serialize;

use super::swar::{chunk_at, plain_in_string};

/// Writes a text as the content of a JSON string. Most of it needs no escaping.
pub(crate) fn escape_into(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut rest = text;
    loop {
        let (plain, behind) = rest.split_at_checked(plain_run(rest.as_bytes())).unwrap_or((rest, ""));
        out.write_str(plain)?;
        let mut characters = behind.chars();
        match characters.next() {
            None => return Ok(()),
            Some('"') => out.write_str("\\\"")?,
            Some('\\') => out.write_str("\\\\")?,
            Some('\n') => out.write_str("\\n")?,
            Some('\r') => out.write_str("\\r")?,
            Some('\t') => out.write_str("\\t")?,
            Some(other) => write!(out, "\\u{:04x}", other as u32)?,
        }
        rest = characters.as_str();
    }
}

/// Adds a text as a JSON string, quotes included.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    // Writing into a string does not fail.
    let _ = escape_into(out, text);
    out.push('"');
}

/// A text as a JSON string, quotes included.
pub(crate) fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// A value as JSON on one line. Nothing that is written has keys that are no strings, which is all that could fail.
pub(crate) fn to_json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn plain_run(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(chunk) = chunk_at(bytes, length) {
        let plain = plain_in_string(chunk);
        length += plain;
        if plain < chunk.len() {
            return length;
        }
    }
    // The last bytes are compared together with plain bytes before them, again eight at once.
    match bytes.last_chunk() {
        Some(chunk) => bytes.len() - chunk.len() + plain_in_string(*chunk),
        None => bytes.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).unwrap_or(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_round_trips() {
        let nasty = "plain text of some length \" \\ \n \t \u{1} é 日本 \u{7f} \u{10ffff} and on";
        for start in nasty.char_indices().map(|(at, _)| at) {
            let text = nasty.get(start..).unwrap();
            let mut json = String::new();
            push_quoted(&mut json, text);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
        }
    }
}
