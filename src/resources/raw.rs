//! A JSON object read one level deep: its members, unread, where they stand.
//!
//! Admission sees whole objects of which the rules look at a handful of fields, and a mutating webhook sees them *before* the
//! schema is enforced: any field may be of any type. So a field is read when it is asked for, and a wrong type is an answer.

use std::borrow::Cow;

use super::Misshapen;
use super::meta::Metadata;
use crate::json::{Error, Reader};

/// How many members are compared in any order, which takes the square of their number.
const MOST_UNORDERED: usize = 256;

/// The members of an object, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(Vec<Field<'a>>);

/// A member of an object.
#[derive(Clone, Debug)]
struct Field<'a> {
    key: Cow<'a, str>,
    /// Its value, as it is written.
    raw: &'a str,
    /// What it says, if it is a string: that is known when its end is found.
    text: Option<Cow<'a, str>>,
}

/// What a field holds, compared with what was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Found<T> {
    /// Not there, or null.
    #[default]
    Absent,
    /// There, and of the right type.
    Value(T),
    /// There, and of another type: "a number".
    Wrong(&'static str),
}

impl<T> Found<T> {
    /// The value, if it is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Wrong(_) => None,
        }
    }

    /// What there is besides what was asked for.
    fn other(raw: &str) -> Self {
        if raw == "null" { Self::Absent } else { Self::Wrong(describe(raw)) }
    }

    /// What `read` makes of the object that comes next.
    fn object<'a>(
        reader: &mut Reader<'a>,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        match reader.peek() {
            Some(b'{') => read(reader).map(Self::Value),
            _ => reader.skip().map(Self::other),
        }
    }

    /// The value; one of another type is noted and then treated as absent.
    pub(super) fn or_noted(self, pointer: &str, wanted: &'static str, misshapen: &mut Vec<Misshapen>) -> Option<T> {
        if let Self::Wrong(found) = self {
            misshapen.push(Misshapen { pointer: pointer.to_owned(), wanted, found });
        }
        self.value()
    }
}

impl<'a> Found<Cow<'a, str>> {
    /// The string that comes next.
    pub(super) fn text(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let start = reader.at();
        Ok(reader.text()?.map_or_else(|| Self::other(reader.text_from(start)), Self::Value))
    }
}

impl<'a> Found<Fields<'a>> {
    /// The object that comes next.
    pub(super) fn fields(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::object(reader, Fields::read)
    }
}

impl<'a> Fields<'a> {
    /// The members of an object's text.
    pub fn parse(json: &'a str) -> Result<Self, Error> {
        Reader::whole(json, Self::read)
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut fields = Vec::new();
        reader.members(|reader, key, _| {
            fields.push(Field::read(key, reader)?);
            Ok(())
        })?;
        Ok(Self(fields))
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.key.as_ref())
    }

    /// The members that are no strings, and what they are.
    pub(super) fn no_texts(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let others = self.0.iter().filter(|field| field.text.is_none() && field.raw != "null");
        others.map(|field| (field.key.as_ref(), describe(field.raw)))
    }

    /// The same members but one.
    pub fn without(&self, key: &str) -> Self {
        Self(self.0.iter().filter(|field| field.key != key).cloned().collect())
    }

    /// Whether both say the same. The API server writes members in one order; where somebody else does not, long objects count as different.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let says = |one: &Field<'_>, other: &Field<'_>| match (&one.text, &other.text) {
            (Some(one), Some(other)) => one == other,
            _ => one.raw == other.raw,
        };
        let in_order = || self.0.iter().zip(&other.0).all(|(one, other)| one.key == other.key && says(one, other));
        let has = |fields: &Self, other: &Self| {
            fields.keys().all(|key| match (fields.get(key), other.get(key)) {
                (Some(one), Some(other)) => says(one, other),
                (one, other) => one.is_none() && other.is_none(),
            })
        };
        let is_short = self.0.len().max(other.0.len()) <= MOST_UNORDERED;
        (self.0.len() == other.0.len() && in_order()) || (is_short && has(self, other) && has(other, self))
    }

    /// The last field of that name; null counts as absent, as it does for the API server.
    fn get(&self, key: &str) -> Option<&Field<'a>> {
        self.0.iter().rfind(|field| field.key == key).filter(|field| field.raw != "null")
    }

    /// The text of a field, as it is written.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        self.get(key).map(|field| field.raw)
    }

    /// A string.
    pub fn text(&self, key: &str) -> Found<Cow<'a, str>> {
        match self.get(key) {
            None => Found::Absent,
            Some(field) => field.text.clone().map_or(Found::Wrong(describe(field.raw)), Found::Value),
        }
    }

    /// The same where nobody asks for it again: a config is long, and need not be copied.
    pub(super) fn take_text(&mut self, key: &str) -> Found<Cow<'a, str>> {
        match self.0.iter_mut().rfind(|field| field.key == key) {
            None => Found::Absent,
            Some(field) => field.text.take().map_or_else(|| Found::other(field.raw), Found::Value),
        }
    }

    /// An integer; `5.0` is one, as it is for the API server.
    pub fn integer(&self, key: &str) -> Found<i64> {
        let Some(raw) = self.raw(key) else { return Found::Absent };
        let exact = raw.parse().ok();
        let float =
            || raw.parse().ok().filter(|float: &f64| float.fract() == 0.0 && float.abs() < 9e18).map(|f| f as i64);
        exact.or_else(float).map_or(Found::Wrong(describe(raw)), Found::Value)
    }

    /// A list of objects.
    pub fn objects(&self, key: &str) -> Found<Vec<Self>> {
        self.raw(key).map_or(Found::Absent, Self::list)
    }

    /// The objects in the text of a list.
    pub(super) fn list(raw: &'a str) -> Found<Vec<Self>> {
        let mut objects = Vec::new();
        let read = Reader::whole(raw, |reader| {
            reader.elements(|reader| {
                objects.push(Self::read(reader)?);
                Ok(())
            })
        });
        read.map_or(Found::Wrong(describe(raw)), |()| Found::Value(objects))
    }
}

impl<'a> Field<'a> {
    fn read(key: Cow<'a, str>, reader: &mut Reader<'a>) -> Result<Self, Error> {
        let start = reader.at();
        let text = reader.text()?;
        Ok(Self { key, raw: reader.text_from(start), text })
    }
}

/// The four fields of an object that we look at, read in one go: whole objects are long, and most of them is not ours.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) metadata: Found<Metadata<'a>>,
    pub(super) spec: Found<Fields<'a>>,
}

impl<'a> Head<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut head = Self::default();
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "apiVersion" => head.api_version = reader.text()?.unwrap_or_default(),
                "kind" => head.kind = reader.text()?.unwrap_or_default(),
                "metadata" => head.metadata = Found::object(reader, Metadata::read)?,
                "spec" => head.spec = Found::fields(reader)?,
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(head)
    }
}

fn describe(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_asked_for() {
        let fields =
            Fields::parse(r#"{"s":"a\nb","i":7,"f":5.0,"o":{"k":"v"},"n":null,"l":[{"a":1}],"x":1.5}"#).unwrap();
        assert_eq!(fields.text("s"), Found::Value("a\nb".into()));
        assert_eq!(fields.text("i"), Found::Wrong("a number"));
        assert_eq!(fields.text("n"), Found::Absent);
        assert_eq!(fields.text("none"), Found::Absent);
        assert_eq!(fields.integer("i"), Found::Value(7));
        assert_eq!(fields.integer("f"), Found::Value(5));
        assert_eq!(fields.integer("x"), Found::Wrong("a number"));
        assert_eq!(fields.integer("s"), Found::Wrong("a string"));
        assert_eq!(fields.objects("l").value().unwrap().len(), 1);
        assert!(matches!(fields.objects("o"), Found::Wrong("an object")));
    }
}
