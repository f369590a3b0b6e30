//! The fields of one Go struct, and the search for the one that takes a key.

use std::ops::Deref;

use super::super::same_key;
use super::Field;
use crate::json::{KeyShape, Member};

/// The fields of a struct.
#[derive(Debug)]
pub struct FieldTable {
    fields: &'static [Field],
    /// For each place that a shape can have, the first field whose shape has it. Nearly always that is the one that is searched.
    first: [u8; KeyShape::PLACES],
}

/// No field has a shape of that place.
const ABSENT: u8 = u8::MAX;

/// A table of these fields.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it, and would reject a place outside of the array")]
pub const fn table(fields: &'static [Field]) -> FieldTable {
    assert!(fields.len() < ABSENT as usize, "a place in the table must fit into a byte");
    let mut first = [ABSENT; KeyShape::PLACES];
    let mut at = fields.len();
    while at > 0 {
        at -= 1;
        assert!(fields[at].shape.is_known(), "keys are ASCII");
        first[fields[at].shape.place()] = at as u8;
    }
    FieldTable { fields, first }
}

impl Deref for FieldTable {
    type Target = [Field];

    fn deref(&self) -> &Self::Target {
        self.fields
    }
}

/// The field that matches a key.
#[derive(Debug)]
pub struct FieldMatch<'f> {
    /// The field.
    pub field: &'f Field,
    /// The table it is in, counted from 0.
    pub table: usize,
    /// Its place among the fields of all tables.
    pub index: usize,
    /// Whether the key is spelled as documented, not only equal except for case.
    pub is_exact: bool,
}

/// The field that takes a member: the one of exactly this name, else the first that differs in case only.
pub fn find<'f>(tables: &[&'f FieldTable], member: &Member<'_>) -> Option<FieldMatch<'f>> {
    // Nearly every key has a shape, and is that of the first field with it, or no table has such a field.
    let mut before = 0;
    for (number, table) in tables.iter().enumerate().filter(|_| member.shape.is_known()) {
        let index = usize::from(table.first.get(member.shape.place()).copied().unwrap_or_default());
        match table.fields.get(index) {
            Some(field) if field.key == member.key => {
                return Some(FieldMatch { field, table: number, index: before + index, is_exact: true });
            }
            Some(_) => return find_any(tables, member),
            None => before += table.len(),
        }
    }
    if member.shape.is_known() { None } else { find_any(tables, member) }
}

/// The same by comparing with every field.
fn find_any<'f>(tables: &[&'f FieldTable], member: &Member<'_>) -> Option<FieldMatch<'f>> {
    let all = tables.iter().enumerate().flat_map(|(number, table)| table.iter().map(move |field| (number, field)));
    let mut close = None;
    for (index, (table, field)) in all.enumerate().filter(|(_, (_, field))| member.shape.may_equal(field.shape)) {
        let is_exact = field.key == member.key;
        let found = FieldMatch { field, table, index, is_exact };
        if is_exact {
            return Some(found);
        }
        if close.is_none() && same_key(&member.key, field.key) {
            close = Some(found);
        }
    }
    close
}

#[cfg(test)]
mod tests {
    use super::super::{Type, field};
    use super::*;
    use crate::json::Document;

    static OWN: FieldTable = table(&[field("mtu", Type::Any), field("MTU", Type::Any), field("vlan", Type::Any)]);
    static COMMON: FieldTable = table(&[field("name", Type::Any), field("mtu", Type::Any), field("VLAN", Type::Any)]);

    /// The exact name wins, in whatever table; else the first that differs in case only.
    #[test]
    fn finds_the_field_that_go_decodes_into() {
        for (key, want) in [
            ("mtu", Some((0, 0, true))),
            ("MTU", Some((0, 1, true))),
            ("Mtu", Some((0, 0, false))),
            ("vlan", Some((0, 2, true))),
            ("VLAN", Some((1, 5, true))),
            ("Vlan", Some((0, 2, false))),
            ("name", Some((1, 3, true))),
            ("NAME", Some((1, 3, false))),
            ("nam", None),
            ("", None),
            // The long s and the Kelvin sign are letters of the alphabet to Go.
            ("\u{17f}", None),
        ] {
            let text = format!("{{\"{key}\":1}}");
            let document = Document::parse(&text).unwrap();
            let found = find(&[&OWN, &COMMON], &document.root.members().unwrap()[0]);
            assert_eq!(found.map(|found| (found.table, found.index, found.is_exact)), want, "{key}");
        }
    }

    /// Where to begin is right for every key of every reader.
    #[test]
    fn finds_every_field_by_its_name() {
        let tables = crate::cni::readers::KNOWN.iter().map(|(_, table)| *table);
        for table in tables.chain([crate::cni::readers::COMMON, crate::cni::readers::LIST]) {
            for (index, field) in table.iter().enumerate() {
                let text = format!("{{\"{}\":1}}", field.key);
                let document = Document::parse(&text).unwrap();
                let found = find(&[table], &document.root.members().unwrap()[0]).unwrap();
                assert_eq!((found.index, found.is_exact), (index, true), "{}", field.key);
            }
        }
    }
}
