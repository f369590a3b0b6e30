//! The JSON parser.

use std::borrow::Cow;

use super::swar::behind_spaces;
use super::{Error, KeyShape, Kind, Member, Problem, Span, Value};

/// A text, and how far it is read.
pub(crate) struct JsonReader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// Buffer for strings with escapes.
    pub(super) scratch: Vec<u8>,
    /// The members and elements of the objects and lists that are not at their end yet, so that each gets exactly the memory it needs: a
    /// vector that grows takes four times that for an object with one member, and a config may have tens of thousands of those.
    open_members: Vec<Member<'t>>,
    open_elements: Vec<Value<'t>>,
    /// How many more values may be built.
    pub(super) values_left: usize,
    /// Whether the text is known to be ASCII, as nearly every config is.
    pub(super) is_ascii: bool,
}

impl<'t> JsonReader<'t> {
    /// Stands on the first byte of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let (open_members, open_elements) = (Vec::new(), Vec::new());
        Self { text, at: 0, scratch: Vec::new(), open_members, open_elements, values_left: usize::MAX, is_ascii: false }
    }

    /// Parses a whole text with `read`; only whitespace may remain.
    pub(crate) fn whole<T>(text: &'t str, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mut reader = Self::new(text);
        reader.skip_blanks();
        if reader.peek().is_none() {
            return Err(reader.error(Problem::Blank));
        }
        let value = read(&mut reader)?;
        reader.skip_blanks();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.error(Problem::Trailing)),
        }
    }

    /// The next byte, which determines the type of the value.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    pub(super) fn error(&self, problem: Problem) -> Error {
        Error { offset: self.at, problem }
    }

    fn skip_blanks(&mut self) {
        self.token();
    }

    /// Skips blanks; the first byte behind them.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        // An API server writes no blanks.
        match self.peek() {
            Some(byte) if byte <= b' ' => self.token_behind_blanks(),
            other => other,
        }
    }

    fn token_behind_blanks(&mut self) -> Option<u8> {
        let text = self.text.as_bytes();
        // Nearly all blanks are a line break and the indentation of the next line.
        let mut at = behind_spaces(text, self.at + usize::from(self.peek() == Some(b'\n')));
        let byte = loop {
            match text.get(at) {
                Some(byte) if *byte > b' ' => break Some(*byte),
                Some(b' ') => at = behind_spaces(text, at + 1),
                Some(b'\n' | b'\r' | b'\t') => at += 1,
                other => break other.copied(),
            }
        };
        self.at = at;
        byte
    }

    /// The current offset.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What was read since then.
    pub(crate) fn text_from(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn span_from(&self, start: usize) -> Span {
        // The text is short enough for both to fit.
        Span { start: start as u32, end: self.at as u32 }
    }

    /// A value with all that is in it, at most so many levels deep.
    pub(super) fn value(&mut self, levels: usize) -> Result<Value<'t>, Error> {
        let start = self.at;
        self.values_left = self.values_left.checked_sub(1).ok_or(self.error(Problem::TooMany))?;
        let kind = match self.peek() {
            Some(b'{' | b'[') if levels == 0 => return Err(self.error(Problem::TooDeep)),
            Some(b'{') => {
                let first = self.open_members.len();
                // The config itself has a dozen members; what is in it has few.
                if first == 0 {
                    self.open_members.reserve(16);
                }
                self.members(|reader, key, key_span| {
                    let value = reader.value(levels - 1)?;
                    // A key with escapes may be anything.
                    let is_ascii = reader.is_ascii && matches!(key, Cow::Borrowed(_));
                    let shape = if is_ascii { KeyShape::of_ascii(&key) } else { KeyShape::of(&key) };
                    reader.open_members.push(Member { key, key_span, shape, value });
                    Ok(())
                })?;
                Kind::Object(self.open_members.split_off(first))
            }
            Some(b'[') => {
                let first = self.open_elements.len();
                self.elements(|reader| {
                    let value = reader.value(levels - 1)?;
                    reader.open_elements.push(value);
                    Ok(())
                })?;
                Kind::Array(self.open_elements.split_off(first))
            }
            Some(b'"') => Kind::String(self.string()?),
            _ => self.scalar()?,
        };
        if let Kind::Number(text) = &kind
            && is_huge(text)
        {
            return Err(Error { offset: start, problem: Problem::HugeNumber });
        }
        Ok(Value { span: self.span_from(start), kind })
    }

    /// An object: `each` is given every key, and reads its value.
    pub(crate) fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, Cow<'t, str>, Span) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.peek() != Some(b'{') {
            return Err(self.error(Problem::ObjectExpected));
        }
        let mut more = self.opens(b'}');
        while more {
            let (key, span) = self.key()?;
            each(self, key, span)?;
            more = self.has_next(b'}')?;
        }
        Ok(())
    }

    /// An object, until `each` stops; false if it stopped early.
    pub(crate) fn members_while(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        if self.peek() != Some(b'{') {
            return Err(self.error(Problem::ObjectExpected));
        }
        let mut more = self.opens(b'}');
        while more {
            let (key, _) = self.key()?;
            if !each(self, &key)? {
                return Ok(false);
            }
            more = self.has_next(b'}')?;
        }
        Ok(true)
    }

    /// A list: `each` reads an element.
    pub(crate) fn elements(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.peek() != Some(b'[') {
            return Err(self.error(Problem::ListExpected));
        }
        let mut more = self.opens(b']');
        while more {
            each(self)?;
            more = self.has_next(b']')?;
        }
        Ok(())
    }

    /// Steps over an opening bracket; false if the closing one follows at once, and over that too.
    #[inline]
    fn opens(&mut self, bracket: u8) -> bool {
        self.at += 1;
        let is_empty = self.token() == Some(bracket);
        self.at += usize::from(is_empty);
        !is_empty
    }

    /// After an element: true where another one follows, false at the closing bracket, which is stepped over.
    #[inline]
    fn has_next(&mut self, bracket: u8) -> Result<bool, Error> {
        match self.token() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') => self.at += 1,
            None => return Err(self.error(Problem::Truncated)),
            Some(_) => return Err(self.error(Problem::CommaExpected)),
        }
        if self.token() == Some(bracket) { Err(self.error(Problem::TrailingComma)) } else { Ok(true) }
    }

    /// A key, up to its value.
    #[inline(always)] // There is one for each value, and a call costs as much as reading a short key.
    fn key(&mut self) -> Result<(Cow<'t, str>, Span), Error> {
        let start = self.at;
        let key = match self.peek() {
            Some(b'"') => self.string()?,
            None => return Err(self.error(Problem::Truncated)),
            Some(_) => return Err(self.error(Problem::KeyExpected)),
        };
        let span = self.span_from(start);
        match self.token() {
            Some(b':') => self.at += 1,
            None => return Err(self.error(Problem::Truncated)),
            Some(_) => return Err(self.error(Problem::ColonExpected)),
        }
        // People write one space here.
        self.at += usize::from(self.peek() == Some(b' '));
        self.skip_blanks();
        Ok((key, span))
    }

    pub(super) fn scalar(&mut self) -> Result<Kind<'t>, Error> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number().map(|text| Kind::Number(Cow::Borrowed(text))),
            Some(b't') => self.literal("true", Kind::Bool(true)),
            Some(b'f') => self.literal("false", Kind::Bool(false)),
            Some(b'n') => self.literal("null", Kind::Null),
            None => Err(self.error(Problem::Truncated)),
            Some(_) => Err(self.error(Problem::BadValue)),
        }
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

    fn number(&mut self) -> Result<&'t str, Error> {
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
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.text_from(start))
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error(Problem::BadNumber)) } else { Ok(()) }
    }
}

/// Whether a number leaves the floats, which every number of a config passes through.
fn is_huge(number: &str) -> bool {
    let may_be = number.len() > 300 || number.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    may_be && number.parse().is_ok_and(f64::is_infinite)
}
