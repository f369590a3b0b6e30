//! Skipping unneeded values.
//!
//! Most of an AdmissionReview is not needed: managedFields, and the kind several times. It is skipped without validation, because
//! the API server has just written it.

use super::read::JsonReader;
use super::swar::{before_quote, behind_spaces, chunk_at};
use super::{Error, Problem};

impl<'t> JsonReader<'t> {
    /// Skips a value and returns its text, without building anything. It may be nested without limit.
    pub(crate) fn skip(&mut self) -> Result<&'t str, Error> {
        let start = self.at;
        match self.peek() {
            Some(b'{' | b'[' | b'"') => match end(self.rest()) {
                Some(length) => self.at += length,
                None => {
                    self.at = self.text.len();
                    return Err(self.error(Problem::Truncated));
                }
            },
            _ => drop(self.scalar()?),
        }
        Ok(self.text_from(start))
    }
}

/// What a byte outside of strings means to nesting.
#[derive(Clone, Copy)]
enum Nesting {
    None,
    Opens,
    Closes,
    String,
    LineBreak,
}

/// The same for every byte, looked up: comparing takes longer.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
static NESTING: [Nesting; 256] = {
    let mut all = [Nesting::None; 256];
    all[b'{' as usize] = Nesting::Opens;
    all[b'[' as usize] = Nesting::Opens;
    all[b'}' as usize] = Nesting::Closes;
    all[b']' as usize] = Nesting::Closes;
    all[b'"' as usize] = Nesting::String;
    all[b'\n' as usize] = Nesting::LineBreak;
    all
};

/// The end of the object, list or string that starts here.
fn end(text: &[u8]) -> Option<usize> {
    let (mut at, mut open) = (0, 0_usize);
    loop {
        let byte = *text.get(at)?;
        at += 1;
        match NESTING.get(usize::from(byte))? {
            Nesting::None => continue,
            Nesting::String => at = string_end(text, at)?,
            Nesting::Opens => open += 1,
            Nesting::Closes => open -= 1,
            // The indentation of the next line.
            Nesting::LineBreak => {
                at = behind_spaces(text, at);
                continue;
            }
        }
        if open == 0 {
            return Some(at);
        }
    }
}

/// The end of a string, starting after its opening quote.
fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match chunk_at(text, at) {
            Some(chunk) => {
                let plain = before_quote(chunk);
                at += plain;
                if plain == chunk.len() {
                    continue;
                }
            }
            None => at += text.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?,
        }
        if *text.get(at)? == b'"' {
            return Some(at + 1);
        }
        // Whatever is escaped, it is not the end.
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Problem};
    use super::*;

    const TEXTS: &[&str] = &[
        "{}",
        "[ ]",
        r#"{"a":[1,{"b":"\u00e9\"]"},[[]],{}],"c":null}"#,
        r#"{ "a\\" : "{[\\\"" , "long enough for a word or two":"ends in a backslash\\" }"#,
        r#"["1234567\"","12345678\"","123456\\","é\u005d]"]"#,
        "-0.5e+3",
        "null",
        "[true,false]",
        r#""""#,
        r#""a string \" in eights""#,
    ];

    #[test]
    fn skips_the_same_bytes_it_would_parse() {
        for text in TEXTS {
            assert!(Document::parse(text).is_ok(), "{text}");
            for behind in ["", ",", "]", "}", " \"x\"", "\n{}", ",\"a string behind it\":[1]"] {
                let whole = [text, behind].concat();
                let mut reader = JsonReader::new(&whole);
                assert_eq!(reader.skip(), Ok(*text), "{whole}");
                assert_eq!(reader.at(), text.len(), "{whole}");
            }
        }
        // A number that is not decoded may have any size.
        assert_eq!(JsonReader::whole("1e400", JsonReader::skip), Ok("1e400"));
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(JsonReader::whole(&deep, JsonReader::skip), Ok(deep.as_str()));
    }

    #[test]
    fn rejects_unterminated_values() {
        for text in TEXTS.iter().filter(|text| text.starts_with(['{', '[', '"'])) {
            for (end, _) in text.char_indices().skip(1) {
                let cut = text.get(..end).unwrap();
                let error = JsonReader::whole(cut, JsonReader::skip).unwrap_err();
                assert_eq!((error.problem, error.offset), (Problem::Truncated, end), "{cut}");
            }
        }
        for text in ["", "]", "nul", "-"] {
            assert!(JsonReader::whole(text, JsonReader::skip).is_err(), "{text}");
        }
    }
}
