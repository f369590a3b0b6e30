//! `metadata.managedFields`: who set which field, and how.

use std::borrow::Cow;

use super::fields::{Owned, Side};
use crate::json::{Error, JsonReader};

/// One entry of `managedFields`. The `Update` and the `Apply` entry of one manager are one owner, known by its name.
#[derive(Clone, Debug, Default)]
pub(super) struct ManagedFieldsEntry<'a> {
    /// The field manager's name.
    pub(super) manager: Cow<'a, str>,
    /// Whether its fields were set by server-side apply.
    pub(super) is_apply: bool,
    fields: Option<&'a str>,
}

/// Who owns what of a status, before the write and after it.
#[derive(Debug, Default)]
pub(super) struct Managers<'a> {
    entries: Vec<ManagedFieldsEntry<'a>>,
    /// All owned fields.
    pub(super) owned: Owned<'a>,
}

impl<'a> Managers<'a> {
    /// Reads the lists of both objects, each once from its beginning to its end.
    pub(super) fn read(old: Option<&'a str>, new: Option<&'a str>) -> Result<Self, Error> {
        let mut managers = Self::default();
        for (side, list) in [(Side::Old, old), (Side::New, new)] {
            let Some(list) = list.filter(|list| list.starts_with('[')) else { continue };
            JsonReader::whole(list, |reader| {
                reader.elements(|reader| {
                    let entry = ManagedFieldsEntry::read(reader)?;
                    let number = managers.entries.len() as u32;
                    if let Some(fields) = entry.fields {
                        managers.owned.add(fields, number, side)?;
                    }
                    managers.entries.push(entry);
                    Ok(())
                })
            })?;
        }
        Ok(managers)
    }

    /// The entry of that number.
    pub(super) fn entry(&self, number: u32) -> Option<&ManagedFieldsEntry<'a>> {
        self.entries.get(number as usize)
    }
}

impl<'a> ManagedFieldsEntry<'a> {
    fn read(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut entry = Self::default();
        if reader.peek() != Some(b'{') {
            return reader.skip().map(|_| entry);
        }
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "manager" => entry.manager = reader.text()?.unwrap_or_default(),
                "operation" => entry.is_apply = reader.text()?.is_some_and(|operation| operation == "Apply"),
                "fieldsV1" => entry.fields = Some(reader.skip()?),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(entry)
    }
}
