//! What each reader of a config decodes: its keys, and the types that make its decoder give up.
//!
//! The tables name what the plugins' Go structs hold. A key that is in no table is ignored by the reader, which is why a
//! near miss deserves a word; a value of another type stops the pod.

use std::collections::BTreeMap;

use super::{Object, same_key};
use crate::json::{Kind, Member, Value};

/// A key that a reader knows, and what it must hold.
#[derive(Debug)]
pub struct Field {
    /// The key, as documented.
    pub key: &'static str,
    /// What its value must be, unless it is null.
    pub holds: Type,
}

/// What a Go field can hold.
#[derive(Debug)]
pub enum Type {
    /// Whatever it is: nobody decodes it, or another rule looks at it.
    Any,
    /// A string.
    Str,
    /// `true` or `false`, nothing else.
    Bool,
    /// An integer between the two, both included.
    Int(i128, i128),
    /// An object of these fields (and others, ignored).
    Object(&'static [Field]),
    /// A list of these.
    List(&'static Self),
    /// An object with any keys and these values.
    Map(&'static Self),
}

/// A Go `int` on the nodes we know.
pub const INT: Type = Type::Int(i64::MIN as i128, i64::MAX as i128);
/// A Go `uint` or `uint64`.
pub const UINT: Type = Type::Int(0, u64::MAX as i128);
/// A Go `uint32`.
pub const UINT32: Type = Type::Int(0, u32::MAX as i128);
/// A list of strings.
pub const STRINGS: Type = Type::List(&Type::Str);

/// Shorthand for the tables.
pub const fn field(key: &'static str, holds: Type) -> Field {
    Field { key, holds }
}

/// A value that its reader cannot decode, and what it would have to be.
#[derive(Debug)]
pub struct Misfit<'d> {
    /// The value.
    pub value: &'d Value<'d>,
    /// What the reader wants: "an integer".
    pub wanted: String,
}

impl Type {
    /// The first value in here that does not fit, if any.
    pub fn misfit<'d>(&self, value: &'d Value<'d>) -> Option<Misfit<'d>> {
        let fits = match (self, &value.kind) {
            (Self::Any, _) | (_, Kind::Null) => true,
            (Self::Str, Kind::String(_)) | (Self::Bool, Kind::Bool(_)) => true,
            (Self::Int(min, max), Kind::Number(text)) => integer(text).is_some_and(|n| (*min..=*max).contains(&n)),
            (Self::Object(fields), Kind::Object(_)) => {
                return Object::of(value).and_then(|object| first_misfit(fields, object));
            }
            (Self::List(element), Kind::Array(elements)) => return elements.iter().find_map(|e| element.misfit(e)),
            (Self::Map(element), Kind::Object(members)) => {
                return members.iter().find_map(|m| element.misfit(&m.value));
            }
            _ => false,
        };
        (!fits).then(|| Misfit { value, wanted: self.describe() })
    }

    fn describe(&self) -> String {
        match self {
            Self::Any => "a value".to_owned(),
            Self::Str => "a string".to_owned(),
            Self::Bool => "true or false, without quotes".to_owned(),
            Self::Int(0, max) if *max == u64::MAX as i128 => "a whole number, not negative, without quotes".to_owned(),
            Self::Int(min, _) if *min == i64::MIN as i128 => "a whole number, without quotes".to_owned(),
            Self::Int(min, max) => format!("a whole number from {min} to {max}, without quotes"),
            Self::Object(_) => "an object".to_owned(),
            Self::List(element) => format!("a list, each element {}", element.describe()),
            Self::Map(element) => format!("an object, each value {}", element.describe()),
        }
    }
}

/// The first field of the object that does not fit its type.
pub fn first_misfit<'d>(fields: &[Field], object: Object<'d>) -> Option<Misfit<'d>> {
    fields.iter().find_map(|field| field.holds.misfit(&object.get(field.key)?.value))
}

/// An object as a decoder goes through it: which field takes which member.
#[derive(Debug)]
pub struct Decoding<'f, 'd> {
    /// A place for each field, in the order of the tables.
    slots: Vec<Option<Taken<'f, 'd>>>,
    /// The members that no field takes.
    pub unknown: Vec<&'d Member<'d>>,
}

/// A field and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'f, 'd> {
    /// The field.
    pub field: &'f Field,
    /// The table it is in, counted from 0.
    pub table: usize,
    /// The first member it takes.
    pub first: &'d Member<'d>,
    /// Another one, if there are several.
    pub second: Option<&'d Member<'d>>,
}

impl<'f, 'd> Decoding<'f, 'd> {
    /// Gives each member to the first field, table by table, that takes its key.
    pub fn of(object: Object<'d>, tables: &[&'f [Field]]) -> Self {
        let mut slots: Vec<Option<Taken<'f, 'd>>> = vec![None; tables.iter().map(|table| table.len()).sum()];
        let mut unknown = Vec::new();
        for member in object.members {
            let mut slots = slots.as_mut_slice();
            let found = tables.iter().enumerate().find_map(|(table, fields)| {
                let (here, behind) = std::mem::take(&mut slots).split_at_mut_checked(fields.len())?;
                slots = behind;
                let mut known = fields.iter().zip(here);
                known.find(|(field, _)| same_key(&member.key, field.key)).map(|(field, slot)| (slot, table, field))
            });
            match found {
                Some((Some(taken), ..)) => taken.second = Some(member),
                Some((slot, table, field)) => *slot = Some(Taken { field, table, first: member, second: None }),
                None => unknown.push(member),
            }
        }
        Self { slots, unknown }
    }

    /// The fields that get a value, in the order of the tables.
    pub fn taken(&self) -> impl Iterator<Item = &Taken<'f, 'd>> {
        self.slots.iter().flatten()
    }
}

impl<'d> Taken<'_, 'd> {
    /// The values that do not fit the field. A key in another case is decoded too, even where a later one wins; of exact
    /// duplicates only the last is left when the plugin reads.
    pub fn misfits(&self, object: Object<'d>) -> Vec<Misfit<'d>> {
        if self.second.is_none() {
            return self.field.holds.misfit(&self.first.value).into_iter().collect();
        }
        let spellings = object.named(self.field.key).map(|member| (member.key.as_ref(), &member.value));
        let spellings: BTreeMap<&str, &Value<'d>> = spellings.collect();
        spellings.into_values().filter_map(|value| self.field.holds.misfit(value)).collect()
    }
}

/// The integer in a number, however written. It has passed through a 64-bit float, which rounds what has more than 53 bits.
fn integer(text: &str) -> Option<i128> {
    let float: f64 = text.parse().ok()?;
    (float.fract() == 0.0 && float.abs() < 1e21).then_some(float as i128)
}
