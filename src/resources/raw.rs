//! A JSON object read one level deep: its members, unread, where they stand.
//!
//! Admission sees whole objects of which the rules look at a handful of fields, and a mutating webhook sees them *before* the
//! schema is enforced: any field may be of any type. So a field is read when it is asked for, and a wrong type is an answer.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Misshapen;
use crate::json::decode_string;

/// The members of an object, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

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

    /// The value; one of another type is noted and then treated as absent.
    pub(super) fn or_noted(self, pointer: &str, wanted: &'static str, misshapen: &mut Vec<Misshapen>) -> Option<T> {
        if let Self::Wrong(found) = self {
            misshapen.push(Misshapen { pointer: pointer.to_owned(), wanted, found });
        }
        self.value()
    }
}

impl<'a> Fields<'a> {
    /// The members of an object's text.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The keys and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// The members that are no strings, and what they are.
    pub(super) fn no_texts(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let others =
            self.iter().map(|(key, raw)| (key, raw.get())).filter(|(_, raw)| !raw.starts_with('"') && *raw != "null");
        others.map(|(key, raw)| (key, describe(raw)))
    }

    /// The same members but one.
    pub fn without(&self, key: &str) -> Self {
        Self(self.0.iter().filter(|(known, _)| known != key).cloned().collect())
    }

    /// The text of a field; null counts as absent, as it does for the API server.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        let found = self.0.iter().rfind(|(known, _)| known == key);
        found.map(|(_, value)| value.get()).filter(|text| *text != "null")
    }

    /// A string.
    pub fn text(&self, key: &str) -> Found<Cow<'a, str>> {
        match self.raw(key) {
            None => Found::Absent,
            Some(raw) => decode_string(raw).map_or(Found::Wrong(describe(raw)), Found::Value),
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

    /// An object.
    pub fn fields(&self, key: &str) -> Found<Self> {
        match self.raw(key) {
            None => Found::Absent,
            Some(raw) if raw.starts_with('{') => Self::parse(raw).map_or(Found::Wrong("broken"), Found::Value),
            Some(raw) => Found::Wrong(describe(raw)),
        }
    }

    /// A list of objects.
    pub fn objects(&self, key: &str) -> Found<Vec<Self>> {
        match self.raw(key) {
            None => Found::Absent,
            Some(raw) => serde_json::from_str(raw).map_or(Found::Wrong(describe(raw)), Found::Value),
        }
    }
}

/// The four fields of an object that we look at, read in one go: whole objects are long, and most of them is not ours.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) metadata: Found<Fields<'a>>,
    pub(super) spec: Found<Fields<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Head<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Head<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut head = Head::default();
                while let Some(Key(key)) = map.next_key()? {
                    match key.as_ref() {
                        "apiVersion" => {
                            head.api_version = decode_string(map.next_value::<&RawValue>()?.get()).unwrap_or_default();
                        }
                        "kind" => head.kind = decode_string(map.next_value::<&RawValue>()?.get()).unwrap_or_default(),
                        "metadata" => head.metadata = map.next_value()?,
                        "spec" => head.spec = map.next_value()?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Found<Fields<'a>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Found<Fields<'de>>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Members.visit_map(map).map(|members| Found::Value(Fields(members)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Found::Wrong("a list"))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Found::Absent)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Found::Wrong("a boolean"))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Found::Wrong("a number"))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Found::Wrong("a number"))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Found::Wrong("a number"))
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Found::Wrong("a string"))
            }
        }
        deserializer.deserialize_any(Anything)
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

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members).map(Self)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
        while let Some((Key(key), value)) = map.next_entry()? {
            members.push((key, value));
        }
        Ok(members)
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(Self)
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
        assert_eq!(fields.fields("o").value().unwrap().text("k"), Found::Value("v".into()));
        assert!(matches!(fields.fields("l"), Found::Wrong("a list")));
        assert_eq!(fields.objects("l").value().unwrap().len(), 1);
        assert!(matches!(fields.objects("o"), Found::Wrong("an object")));
    }
}
