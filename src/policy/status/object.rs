//! The parts of any object that are needed to judge a status write.

use std::borrow::Cow;

use super::PRECONDITION_PREFIX;
use crate::json::{Error, JsonReader};

/// The parts of an object that a status write is judged by; long ones are kept unparsed.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusObject<'a> {
    /// `metadata.resourceVersion`; empty where there is none.
    pub(super) version: Cow<'a, str>,
    /// `metadata.generation`.
    pub(super) generation: Option<i64>,
    /// Whether it is being deleted.
    pub(super) deleting: bool,
    /// The annotations with the prefix [`PRECONDITION_PREFIX`]: key, value.
    pub(super) stated: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The text of `metadata.managedFields`.
    pub(super) managed: Option<&'a str>,
    /// The text of `status`.
    pub(super) status: Option<&'a str>,
}

impl<'a> StatusObject<'a> {
    /// Reads an object. A field of the wrong type counts as absent; the last of duplicate members counts.
    pub(super) fn read(json: &'a str) -> Result<Self, Error> {
        JsonReader::whole(json, |reader| {
            let mut seen = Self::default();
            reader.members(|reader, key, _| match key.as_ref() {
                "metadata" if reader.peek() == Some(b'{') => seen.read_metadata(reader),
                "status" => {
                    seen.status = Some(reader.skip()?).filter(|text| *text != "null");
                    Ok(())
                }
                _ => reader.skip().map(drop),
            })?;
            Ok(seen)
        })
    }

    fn read_metadata(&mut self, reader: &mut JsonReader<'a>) -> Result<(), Error> {
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "resourceVersion" => self.version = reader.text()?.unwrap_or_default(),
                "generation" => self.generation = reader.skip()?.parse().ok(),
                "deletionTimestamp" => self.deleting = reader.skip()? != "null",
                "annotations" if reader.peek() == Some(b'{') => self.read_annotations(reader)?,
                "managedFields" => self.managed = Some(reader.skip()?),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })
    }

    fn read_annotations(&mut self, reader: &mut JsonReader<'a>) -> Result<(), Error> {
        self.stated.clear();
        reader.members(|reader, key, _| {
            if !key.starts_with(PRECONDITION_PREFIX) {
                return reader.skip().map(drop);
            }
            let value = reader.text()?.unwrap_or_default();
            self.stated.push((key, value));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_present_fields() {
        let json = r#"{"kind":"Plan","metadata":{"name":"n","resourceVersion":"7","generation":3,
            "annotations":{"a":"b","if-resource-version.nadmit.io/me":"7"},"managedFields":[]},"status":{"a":1}}"#;
        let seen = StatusObject::read(json).unwrap();
        assert_eq!((seen.version.as_ref(), seen.generation, seen.deleting), ("7", Some(3), false));
        assert_eq!(seen.stated, [("if-resource-version.nadmit.io/me".into(), "7".into())]);
        assert_eq!((seen.managed, seen.status), (Some("[]"), Some(r#"{"a":1}"#)));
    }

    #[test]
    fn other_types_count_as_absent() {
        for json in [
            "{}",
            r#"{"metadata":null,"status":null}"#,
            r#"{"metadata":{"resourceVersion":7,"generation":"x","annotations":[],"managedFields":5}}"#,
            r#"{"metadata":{"deletionTimestamp":null}}"#,
        ] {
            let seen = StatusObject::read(json).unwrap();
            assert!(seen.version.is_empty() && seen.generation.is_none() && !seen.deleting, "{json}");
            assert!(seen.stated.is_empty() && seen.status.is_none(), "{json}");
        }
        for json in ["", "[]", "{", "5"] {
            assert!(StatusObject::read(json).is_err(), "{json}");
        }
    }
}
