//! From text to values, one token after the other.

use std::borrow::Cow;

use super::{Error, Kind, Member, Problem, Span, Value};

/// A text, and how far it is read.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) max_depth: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn error(&self, problem: Problem) -> Error {
        Error { offset: self.at, problem }
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn span_from(&self, start: usize) -> Span {
        // The text is short enough for both to fit.
        Span { start: start as u32, end: self.at as u32 }
    }

    pub(super) fn value(&mut self, depth: usize) -> Result<Value<'t>, Error> {
        let start = self.at;
        let kind = match self.peek() {
            None => return Err(self.error(Problem::Truncated)),
            Some(b'{' | b'[') if depth == self.max_depth => return Err(self.error(Problem::TooDeep)),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true", Kind::Bool(true))?,
            Some(b'f') => self.literal("false", Kind::Bool(false))?,
            Some(b'n') => self.literal("null", Kind::Null)?,
            Some(_) => return Err(self.error(Problem::BadValue)),
        };
        Ok(Value { span: self.span_from(start), kind })
    }

    fn literal(&mut self, word: &str, kind: Kind<'t>) -> Result<Kind<'t>, Error> {
        match self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            true => {
                self.at += word.len();
                Ok(kind)
            }
            false => Err(self.error(Problem::BadValue)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'t>, Error> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(members));
        }
        loop {
            self.skip_blanks();
            let key_start = self.at;
            match self.peek() {
                Some(b'"') => {}
                Some(b'}') => return Err(self.error(Problem::TrailingComma)),
                None => return Err(self.error(Problem::Truncated)),
                Some(_) => return Err(self.error(Problem::KeyExpected)),
            }
            let key = self.string()?;
            let key_span = self.span_from(key_start);
            self.skip_blanks();
            match self.peek() {
                Some(b':') => self.at += 1,
                None => return Err(self.error(Problem::Truncated)),
                Some(_) => return Err(self.error(Problem::ColonExpected)),
            }
            self.skip_blanks();
            let value = self.value(depth + 1)?;
            members.push(Member { key, key_span, value });
            if self.closes(b'}')? {
                return Ok(Kind::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Kind<'t>, Error> {
        self.at += 1;
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::Array(elements));
        }
        loop {
            self.skip_blanks();
            if self.peek() == Some(b']') {
                return Err(self.error(Problem::TrailingComma));
            }
            elements.push(self.value(depth + 1)?);
            if self.closes(b']')? {
                return Ok(Kind::Array(elements));
            }
        }
    }

    /// After an element: true at the closing bracket, false at a comma.
    fn closes(&mut self, bracket: u8) -> Result<bool, Error> {
        self.skip_blanks();
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            None => Err(self.error(Problem::Truncated)),
            Some(_) => Err(self.error(Problem::CommaExpected)),
        }
    }

    fn number(&mut self) -> Result<Kind<'t>, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if (has_exponent || text.len() > 300) && text.parse().is_ok_and(f64::is_infinite) {
            self.at = start;
            return Err(self.error(Problem::HugeNumber));
        }
        Ok(Kind::Number(text))
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error(Problem::BadNumber)) } else { Ok(()) }
    }

    /// A string; the reader stands on its opening quote.
    pub(super) fn string(&mut self) -> Result<Cow<'t, str>, Error> {
        self.at += 1;
        let from = self.at;
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
        let run = self.text.get(from..self.at).unwrap_or_default();
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(Cow::Borrowed(run))
            }
            Some(b'\\') => self.escaped_string(run).map(Cow::Owned),
            Some(_) => Err(self.error(Problem::ControlCharacter)),
            None => Err(self.error(Problem::Truncated)),
        }
    }

    /// The rest of a string that has escapes; `run` stands before the first. A config inside an object is full of them.
    fn escaped_string(&mut self, run: &str) -> Result<String, Error> {
        let mut bytes = Vec::with_capacity(run.len() + 64);
        bytes.extend_from_slice(run.as_bytes());
        loop {
            match self.peek() {
                None => return Err(self.error(Problem::Truncated)),
                Some(b'"') => {
                    self.at += 1;
                    // Whole characters went in, byte by byte.
                    return String::from_utf8(bytes).map_err(|_| self.error(Problem::BadEscape));
                }
                Some(b'\\') => {
                    let character = self.escape()?;
                    match u8::try_from(character).ok().filter(u8::is_ascii) {
                        Some(byte) => bytes.push(byte),
                        None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                Some(0..=0x1f) => return Err(self.error(Problem::ControlCharacter)),
                Some(byte) => {
                    self.at += 1;
                    bytes.push(byte);
                }
            }
        }
    }

    /// One escape sequence; a surrogate without its other half becomes U+FFFD, as in Go.
    fn escape(&mut self) -> Result<char, Error> {
        let bad = self.error(Problem::BadEscape);
        let letter = self.text.as_bytes().get(self.at + 1).copied().ok_or(bad)?;
        self.at += 2;
        Ok(match letter {
            b'"' | b'\\' | b'/' => letter as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
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
                char::REPLACEMENT_CHARACTER
            }
            _ => return Err(bad),
        })
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
