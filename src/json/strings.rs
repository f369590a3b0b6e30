//! Parsing of strings.

use std::borrow::Cow;

use super::read::JsonReader;
use super::swar::{chunk_at, plain_in_string};
use super::{Error, Problem};

impl<'t> JsonReader<'t> {
    /// The next value if it is a string; other values are skipped.
    pub(crate) fn text(&mut self) -> Result<Option<Cow<'t, str>>, Error> {
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            _ => self.skip().map(|_| None),
        }
    }

    /// Parses a string, starting at its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, Error> {
        match self.plain_string() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.other_string(),
        }
    }

    /// A string without escapes, which nearly every one is. Otherwise nothing is read.
    #[inline(always)]
    pub(super) fn plain_string(&mut self) -> Option<&'t str> {
        let start = self.at + 1;
        let end = self.run_end(start);
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        self.text.get(start..end)
    }

    #[inline(never)] // Few strings need it, and the others would pay for it.
    fn other_string(&mut self) -> Result<Cow<'t, str>, Error> {
        let start = self.at + 1;
        self.at = self.run_end(start);
        match self.peek() {
            Some(b'\\') => self.escaped_string(self.text_from(start)).map(Cow::Owned),
            Some(_) => Err(self.error(Problem::ControlCharacter)),
            None => Err(self.error(Problem::Truncated)),
        }
    }

    /// The end of the unescaped part of a string: its end, an escape, or an invalid character.
    #[inline(always)]
    fn run_end(&self, mut at: usize) -> usize {
        let text = self.text.as_bytes();
        while let Some(chunk) = chunk_at(text, at) {
            let plain = plain_in_string(chunk);
            at += plain;
            if plain < chunk.len() {
                return at;
            }
        }
        let rest = text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| ends_run(*byte)).unwrap_or(rest.len())
    }

    /// The rest of a string with escapes; `run` is the part before the first. A config inside an object has many.
    fn escaped_string(&mut self, run: &str) -> Result<String, Error> {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.reserve(1024);
        bytes.extend_from_slice(run.as_bytes());
        let mut rest = self.rest();
        loop {
            rest = match rest {
                // These two are nearly all the escapes of JSON within JSON.
                [b'\\', b'"', behind @ ..] => {
                    bytes.push(b'"');
                    behind
                }
                [b'\\', b'n', behind @ ..] => {
                    bytes.push(b'\n');
                    behind
                }
                _ => {
                    self.at = self.text.len() - rest.len();
                    match self.peek() {
                        Some(b'"') => break,
                        Some(b'\\') => {
                            let character = self.escape()?;
                            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        Some(_) => return Err(self.error(Problem::ControlCharacter)),
                        None => return Err(self.error(Problem::Truncated)),
                    }
                    self.rest()
                }
            };
            rest = copy_run(rest, &mut bytes);
        }
        self.at += 1;
        // Whole characters went in, in pieces.
        let text = std::str::from_utf8(&bytes).map_err(|_| self.error(Problem::BadEscape))?.to_owned();
        self.scratch = bytes;
        Ok(text)
    }

    /// One escape sequence.
    fn escape(&mut self) -> Result<char, Error> {
        let character = match self.text.as_bytes().get(self.at + 1) {
            Some(letter @ (b'"' | b'\\' | b'/')) => *letter as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error(Problem::BadEscape)),
        };
        self.at += 2;
        Ok(character)
    }

    /// A character by its number; a surrogate without its other half becomes U+FFFD, as in Go.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let bad = self.error(Problem::BadEscape);
        self.at += 2;
        let unit = self.hex().ok_or(bad)?;
        if let Some(character) = char::from_u32(unit) {
            return Ok(character);
        }
        let resume = self.at;
        if unit < 0xdc00 && self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            self.at += 2;
            let low = self.hex().ok_or(bad)?;
            if (0xdc00..0xe000).contains(&low) {
                let scalar = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = resume;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Copies unescaped bytes and returns the rest.
fn copy_run<'t>(mut rest: &'t [u8], bytes: &mut Vec<u8>) -> &'t [u8] {
    // Eight bytes are copied in one move, and what was too much is cut off again: most runs are shorter than that.
    while let Some(chunk) = rest.first_chunk() {
        bytes.extend_from_slice(chunk);
        let run = plain_in_string(*chunk);
        rest = rest.get(run..).unwrap_or_default();
        if run < chunk.len() {
            bytes.truncate(bytes.len() - chunk.len() + run);
            return rest;
        }
    }
    let run = rest.iter().position(|byte| ends_run(*byte)).unwrap_or(rest.len());
    let (run, behind) = rest.split_at_checked(run).unwrap_or((rest, &[]));
    bytes.extend_from_slice(run);
    behind
}

/// Whether a byte ends an unescaped run.
fn ends_run(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}
