//! A JSON object parsed one level deep, with unparsed members.
//!
//! Admission sees whole objects of which the rules need few fields, and a mutating webhook sees them *before* schema validation:
//! any field may be of any type. So a field is parsed on access, and a wrong type is a valid result.

use std::borrow::Cow;

use super::Misshapen;
use super::meta::RawMetadata;
use crate::json::{Error, JsonReader};

/// How many members are compared in any order, which is quadratic.
const MAX_UNORDERED: usize = 256;

/// The members of an object, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct RawFields<'a>(Vec<RawField<'a>>);

/// A member of an object.
#[derive(Clone, Debug)]
struct RawField<'a> {
    key: Cow<'a, str>,
    /// Its value, as it is written.
    raw: &'a str,
    /// What it says, if it is a string: that is known when its end is found.
    text: Option<Cow<'a, str>>,
}

/// The value of a field, compared with the requested type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FieldValue<T> {
    /// Not there, or null.
    #[default]
    Absent,
    /// There, and of the right type.
    Value(T),
    /// There, and of another type: "a number".
    Wrong(&'static str),
}

impl<T> FieldValue<T> {
    /// The value, if it is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Wrong(_) => None,
        }
    }

    /// The result for a value of another type.
    fn other(raw: &str) -> Self {
        if raw == "null" { Self::Absent } else { Self::Wrong(describe(raw)) }
    }

    /// What `read` makes of the object that comes next.
    fn object<'a>(
        reader: &mut JsonReader<'a>,
        read: impl FnOnce(&mut JsonReader<'a>) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        match reader.peek() {
            Some(b'{') => read(reader).map(Self::Value),
            _ => reader.skip().map(Self::other),
        }
    }

    /// The value; one of another type is recorded and treated as absent.
    pub(super) fn or_record(self, pointer: &str, expected: &'static str, misshapen: &mut Vec<Misshapen>) -> Option<T> {
        if let Self::Wrong(found) = self {
            misshapen.push(Misshapen { pointer: pointer.to_owned(), expected, found });
        }
        self.value()
    }
}

impl<'a> FieldValue<Cow<'a, str>> {
    /// The string that comes next.
    pub(super) fn text(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let start = reader.at();
        Ok(reader.text()?.map_or_else(|| Self::other(reader.text_from(start)), Self::Value))
    }
}

impl<'a> FieldValue<RawFields<'a>> {
    /// The object that comes next.
    pub(super) fn fields(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        Self::object(reader, RawFields::read)
    }
}

impl<'a> RawFields<'a> {
    /// The members of an object's text.
    pub fn parse(json: &'a str) -> Result<Self, Error> {
        JsonReader::whole(json, Self::read)
    }

    /// Members with those keys and values; each value is the text of JSON.
    pub(super) fn of<const N: usize>(members: [(&'a str, &'a str); N]) -> Result<Self, Error> {
        let read = |(key, raw)| JsonReader::whole(raw, |reader| RawField::read(Cow::Borrowed(key), reader));
        members.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The members of the object that comes next; `None` if it is something else.
    pub(crate) fn read_object(reader: &mut JsonReader<'a>) -> Result<Option<Self>, Error> {
        FieldValue::fields(reader).map(FieldValue::value)
    }

    fn read(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut fields = Vec::new();
        reader.members(|reader, key, _| {
            fields.push(RawField::read(key, reader)?);
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

    /// Whether both are equal. The API server writes members in a fixed order; long objects in another order count as different.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let says = |one: &RawField<'_>, other: &RawField<'_>| match (&one.text, &other.text) {
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
        let is_short = self.0.len().max(other.0.len()) <= MAX_UNORDERED;
        (self.0.len() == other.0.len() && in_order()) || (is_short && has(self, other) && has(other, self))
    }

    /// The last field of that name; null counts as absent, as it does for the API server.
    fn get(&self, key: &str) -> Option<&RawField<'a>> {
        self.0.iter().rfind(|field| field.key == key).filter(|field| field.raw != "null")
    }

    /// The text of a field, as it is written.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        self.get(key).map(|field| field.raw)
    }

    /// A string.
    pub fn text(&self, key: &str) -> FieldValue<Cow<'a, str>> {
        match self.get(key) {
            None => FieldValue::Absent,
            Some(field) => field.text.clone().map_or(FieldValue::Wrong(describe(field.raw)), FieldValue::Value),
        }
    }

    /// The same, moved out: a config is long and need not be copied.
    pub(super) fn take_text(&mut self, key: &str) -> FieldValue<Cow<'a, str>> {
        match self.0.iter_mut().rfind(|field| field.key == key) {
            None => FieldValue::Absent,
            Some(field) => field.text.take().map_or_else(|| FieldValue::other(field.raw), FieldValue::Value),
        }
    }

    /// An integer; `5.0` is one, as it is for the API server.
    pub fn integer(&self, key: &str) -> FieldValue<i64> {
        let Some(raw) = self.raw(key) else { return FieldValue::Absent };
        let exact = raw.parse().ok();
        let float =
            || raw.parse().ok().filter(|float: &f64| float.fract() == 0.0 && float.abs() < 9e18).map(|f| f as i64);
        exact.or_else(float).map_or(FieldValue::Wrong(describe(raw)), FieldValue::Value)
    }

    /// A list of objects.
    pub fn objects(&self, key: &str) -> FieldValue<Vec<Self>> {
        self.raw(key).map_or(FieldValue::Absent, Self::list)
    }

    /// The objects in the text of a list.
    pub(super) fn list(raw: &'a str) -> FieldValue<Vec<Self>> {
        let mut objects = Vec::new();
        let read = JsonReader::whole(raw, |reader| {
            reader.elements(|reader| {
                objects.push(Self::read(reader)?);
                Ok(())
            })
        });
        read.map_or(FieldValue::Wrong(describe(raw)), |()| FieldValue::Value(objects))
    }
}

impl<'a> RawField<'a> {
    fn read(key: Cow<'a, str>, reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let start = reader.at();
        let text = reader.text()?;
        Ok(Self { key, raw: reader.text_from(start), text })
    }
}

/// The four fields of an object that are needed, read in one pass.
#[derive(Debug, Default)]
pub(super) struct RawObject<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) metadata: FieldValue<RawMetadata<'a>>,
    pub(super) spec: FieldValue<RawFields<'a>>,
}

impl<'a> RawObject<'a> {
    pub(super) fn read(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut head = Self::default();
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "apiVersion" => head.api_version = reader.text()?.unwrap_or_default(),
                "kind" => head.kind = reader.text()?.unwrap_or_default(),
                "metadata" => head.metadata = FieldValue::object(reader, RawMetadata::read)?,
                "spec" => head.spec = FieldValue::fields(reader)?,
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
    fn reads_requested_fields() {
        let fields =
            RawFields::parse(r#"{"s":"a\nb","i":7,"f":5.0,"o":{"k":"v"},"n":null,"l":[{"a":1}],"x":1.5}"#).unwrap();
        assert_eq!(fields.text("s"), FieldValue::Value("a\nb".into()));
        assert_eq!(fields.text("i"), FieldValue::Wrong("a number"));
        assert_eq!(fields.text("n"), FieldValue::Absent);
        assert_eq!(fields.text("none"), FieldValue::Absent);
        assert_eq!(fields.integer("i"), FieldValue::Value(7));
        assert_eq!(fields.integer("f"), FieldValue::Value(5));
        assert_eq!(fields.integer("x"), FieldValue::Wrong("a number"));
        assert_eq!(fields.integer("s"), FieldValue::Wrong("a string"));
        assert_eq!(fields.objects("l").value().unwrap().len(), 1);
        assert!(matches!(fields.objects("o"), FieldValue::Wrong("an object")));
    }

    #[test]
    fn integers_have_64_bits() {
        for (text, want) in [
            ("9223372036854775807", Some(i64::MAX)),
            ("8e18", Some(8_000_000_000_000_000_000)),
            ("-8e18", Some(-8_000_000_000_000_000_000)),
            ("9e18", None),
            ("1e300", None),
        ] {
            let json = format!("{{\"a\":{text}}}");
            assert_eq!(RawFields::parse(&json).unwrap().integer("a").value(), want, "{text}");
        }
    }

    #[test]
    fn an_object_may_come_next() {
        let read = |json: &'static str| JsonReader::whole(json, RawFields::read_object).unwrap();
        assert_eq!(read(r#"{"a":"b"}"#).map(|fields| fields.text("a")), Some(FieldValue::Value("b".into())));
        assert!(read("5").is_none() && read("null").is_none());
    }

    #[test]
    fn objects_are_the_same_in_any_order() {
        for (one, other, want) in [
            (r#"{"a":1,"b":"x"}"#, r#"{"a":1,"b":"x"}"#, true),
            (r#"{"a":1,"b":"x"}"#, r#"{"b":"\u0078","a":1}"#, true),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            (r#"{"a":1}"#, r#"{"a":2}"#, false),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":"1"}"#, r#"{"a":1}"#, false),
        ] {
            let [first, second] = [one, other].map(|json| RawFields::parse(json).unwrap());
            assert_eq!(first.is_same(&second), want, "{one} {other}");
        }
    }
}
