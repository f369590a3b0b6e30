//! What each reader of a config decodes: its keys and their types.
//!
//! The tables mirror the plugins' Go structs. A key in no table is ignored by the reader, so a near miss deserves a warning; a
//! value of another type fails the pod.

mod table;

use std::collections::BTreeMap;

pub use table::{FieldMatch, FieldTable, find, table};

use super::CniObject;
use super::releases::{ReleaseNumbers, UNRELEASED};
use crate::json::{KeyShape, Kind, Member, Span, Value, integer_of_float};

/// A key that a reader decodes, and its type.
#[derive(Debug)]
pub struct Field {
    /// The key, as documented.
    pub key: &'static str,
    /// What of the key is compared first.
    pub shape: KeyShape,
    /// What its value must be, unless it is null.
    pub holds: Type,
    /// Whether `nad/field-type` says nothing about a value of another type, because another rule reports it.
    pub is_quiet: bool,
    /// The first release of the reader that decodes it, if it was not decoded from the start.
    pub since: Option<ReleaseNumbers>,
}

/// What a Go field can hold. The kinds differ in what null does to them, and in whether a second value is merged into the
/// first one: see [`fold`](mod@super::fold).
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Any value: not decoded, or decoded into an `interface{}`.
    Any,
    /// A string.
    Str,
    /// `true` or `false`, nothing else.
    Bool,
    /// An integer between the two, both included.
    Int(i128, i128),
    /// An object of these fields (and others, ignored): a struct.
    Object(&'static FieldTable),
    /// A list of these: a slice.
    List(&'static Self),
    /// An object with any keys and these values: a map.
    Map(&'static Self),
    /// A pointer to one of these: null sets it back to nil.
    Pointer(&'static Self),
    /// A string that its type reads by `UnmarshalText`, as `net.IP` does: null sets it back to nil.
    Text,
    /// A string that its type reads by `UnmarshalJSON`, as `types.IPNet` does: null is read too, as an empty string.
    Network,
    /// One of these, which its type decodes into a new variable by `UnmarshalJSON`: nothing of an earlier value is left.
    Fresh(&'static Self),
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
    Field { key, shape: KeyShape::of(key), holds, is_quiet: false, since: None }
}

impl Field {
    /// The same, where `nad/field-type` says nothing about a value of another type.
    pub const fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// The same, decoded from that release of the reader on.
    pub const fn since(self, major: u16, minor: u16, patch: u16) -> Self {
        Self { since: Some([major, minor, patch]), ..self }
    }

    /// The same, decoded by no release yet.
    pub const fn unreleased(self) -> Self {
        Self { since: Some(UNRELEASED), ..self }
    }
}

/// The order in which a reader decodes the members of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// In text order, including duplicates: Multus.
    Text,
    /// From a copy that went through a Go map, which keeps the last of equal keys and sorts: the plugin.
    Copy,
}

/// Which fields within a value are checked.
#[derive(Clone, Copy, Debug)]
enum Checked {
    /// Those that every release decodes, except for quiet ones.
    Certain,
    /// All except for quiet ones.
    Reported,
    /// All.
    All,
}

/// A value that its reader cannot decode, and what it would have to be.
#[derive(Debug)]
pub struct Misfit<'d> {
    /// The value.
    pub value: &'d Value<'d>,
    /// The expected type: "an integer".
    pub expected: String,
}

impl Type {
    /// Whether it is certain at a glance that a value fits, as nearly every one does.
    pub fn takes(&self, value: &Value<'_>) -> bool {
        let holds = if let Self::Pointer(to) = self { to } else { self };
        match (holds, &value.kind) {
            (Self::Any, _) | (Self::Str, Kind::String(_)) | (Self::Bool, Kind::Bool(_)) | (_, Kind::Null) => true,
            // Digits and nothing else mean the same integer to every reader.
            (Self::Int(min, max), Kind::Number(text)) => {
                text.parse::<u32>().is_ok_and(|number| (*min..=*max).contains(&number.into()))
            }
            _ => false,
        }
    }

    /// The first value in here that does not fit, if any, in the fields that are not quiet. One that every release rejects comes
    /// before those that only some reject, which must not hide it.
    pub fn misfit<'d>(&self, value: &'d Value<'d>, reading: Reading) -> Option<Misfit<'d>> {
        let first = self.check(value, reading, Checked::Reported)?;
        Some(self.check(value, reading, Checked::Certain).unwrap_or(first))
    }

    /// The first release that reads the part of a value around a place, if a field there was added later.
    pub fn since_at(&self, value: &Value<'_>, place: Span) -> Option<ReleaseNumbers> {
        let is_around = |value: &Value<'_>| value.span.start <= place.start && place.end <= value.span.end;
        match (self, &value.kind) {
            (Self::Pointer(to) | Self::Fresh(to), _) => to.since_at(value, place),
            (Self::Object(fields), Kind::Object(members)) => {
                let member = members.iter().find(|member| is_around(&member.value))?;
                let field = find(&[fields], member)?.field;
                field.since.or_else(|| field.holds.since_at(&member.value, place))
            }
            (Self::List(of), Kind::Array(elements)) => {
                of.since_at(elements.iter().find(|element| is_around(element))?, place)
            }
            _ => None,
        }
    }

    fn check<'d>(&self, value: &'d Value<'d>, reading: Reading, which: Checked) -> Option<Misfit<'d>> {
        let fits = match (self, &value.kind) {
            (Self::Any, _) | (_, Kind::Null) => true,
            (Self::Pointer(to) | Self::Fresh(to), _) => return to.check(value, reading, which),
            (Self::Str | Self::Text | Self::Network, Kind::String(_)) | (Self::Bool, Kind::Bool(_)) => true,
            (Self::Int(min, max), Kind::Number(text)) => {
                integer(text, *min, reading).is_some_and(|n| (*min..=*max).contains(&n))
            }
            (Self::Object(fields), Kind::Object(members)) => return check_members(&[fields], members, reading, which),
            (Self::List(element), Kind::Array(elements)) => {
                return elements.iter().find_map(|e| element.check(e, reading, which));
            }
            (Self::Map(element), Kind::Object(members)) => {
                return first_decoded(members, reading, |member| element.check(&member.value, reading, which));
            }
            _ => false,
        };
        (!fits).then(|| Misfit { value, expected: self.describe() })
    }

    fn describe(&self) -> String {
        match self {
            Self::Any => "a value".to_owned(),
            Self::Str | Self::Text | Self::Network => "a string".to_owned(),
            Self::Bool => "true or false, without quotes".to_owned(),
            Self::Int(0, max) if *max == u64::MAX as i128 => "a whole number, not negative, without quotes".to_owned(),
            Self::Int(min, _) if *min == i64::MIN as i128 => "a whole number, without quotes".to_owned(),
            Self::Int(min, max) => format!("a whole number from {min} to {max}, without quotes"),
            Self::Object(_) => "an object".to_owned(),
            Self::List(element) => format!("a list, each element {}", element.describe()),
            Self::Map(Self::Any) => "an object".to_owned(),
            Self::Map(element) => format!("an object, each value {}", element.describe()),
            Self::Pointer(to) | Self::Fresh(to) => to.describe(),
        }
    }
}

/// The first value that does not fit its field, ignoring quiet fields.
pub fn first_misfit<'d>(tables: &[&FieldTable], members: &'d [Member<'d>], reading: Reading) -> Option<Misfit<'d>> {
    check_members(tables, members, reading, Checked::Reported)
}

/// The first value that its reader cannot decode, including quiet fields.
pub fn first_error<'d>(tables: &[&FieldTable], members: &'d [Member<'d>], reading: Reading) -> Option<Misfit<'d>> {
    check_members(tables, members, reading, Checked::All)
}

fn check_members<'d>(
    tables: &[&FieldTable],
    members: &'d [Member<'d>],
    reading: Reading,
    which: Checked,
) -> Option<Misfit<'d>> {
    first_decoded(members, reading, |member| {
        let field = find(tables, member)?.field;
        let is_checked = match which {
            Checked::Certain => !field.is_quiet && field.since.is_none(),
            Checked::Reported => !field.is_quiet,
            Checked::All => true,
        };
        if is_checked { field.holds.check(&member.value, reading, which) } else { None }
    })
}

/// The first that `visit` finds in the members that are decoded.
fn first_decoded<'d, T>(
    members: &'d [Member<'d>],
    reading: Reading,
    mut visit: impl FnMut(&'d Member<'d>) -> Option<T>,
) -> Option<T> {
    // Nearly always nothing is found, and then it does not matter which of equal keys is left.
    let found = members.iter().find_map(&mut visit)?;
    if reading == Reading::Text { Some(found) } else { decoded(members, reading).into_iter().find_map(visit) }
}

/// The members in the order in which they are decoded.
pub fn decoded<'v, 't>(members: &'v [Member<'t>], reading: Reading) -> Vec<&'v Member<'t>> {
    match reading {
        Reading::Text => members.iter().collect(),
        Reading::Copy => {
            let last: BTreeMap<&str, &Member<'t>> =
                members.iter().map(|member| (member.key.as_ref(), member)).collect();
            last.into_values().collect()
        }
    }
}

/// How a decoder assigns the members of an object to fields.
#[derive(Debug)]
pub struct Decoding<'f, 'd> {
    /// A place for each field, in the order of the tables.
    slots: Vec<Option<DecodedField<'f, 'd>>>,
    /// The members without a field.
    pub unknown: Vec<&'d Member<'d>>,
}

/// A field and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct DecodedField<'f, 'd> {
    /// The field.
    pub field: &'f Field,
    /// The table it is in, counted from 0.
    pub table: usize,
    /// The first member it takes.
    pub first: &'d Member<'d>,
    /// Whether that one is spelled as documented.
    pub is_exact: bool,
    /// Another one, if there are several.
    pub second: Option<&'d Member<'d>>,
}

impl<'f, 'd> Decoding<'f, 'd> {
    /// Gives each member to the field that takes its key.
    pub fn of(object: CniObject<'d>, tables: &[&'f FieldTable]) -> Self {
        let mut slots: Vec<Option<DecodedField<'f, 'd>>> = vec![None; tables.iter().map(|table| table.len()).sum()];
        let mut unknown = Vec::new();
        for member in object.members {
            let found = find(tables, member);
            match found.and_then(|found| slots.get_mut(found.index).map(|slot| (slot, found))) {
                Some((Some(taken), _)) => taken.second = Some(member),
                Some((slot, FieldMatch { field, table, is_exact, .. })) => {
                    *slot = Some(DecodedField { field, table, first: member, is_exact, second: None });
                }
                None => unknown.push(member),
            }
        }
        Self { slots, unknown }
    }

    /// The fields that get a value, in the order of the tables.
    pub fn decoded_fields(&self) -> impl Iterator<Item = &DecodedField<'f, 'd>> {
        self.slots.iter().flatten()
    }
}

impl<'d> DecodedField<'_, 'd> {
    /// The values that do not fit the field. Every spelling of a key is decoded, also where a later one replaces it; of exact
    /// duplicates only the last is left in the copy that the plugin reads.
    pub fn misfits(&self, object: CniObject<'d>, reading: Reading) -> Vec<Misfit<'d>> {
        if self.second.is_none() {
            return self.field.holds.misfit(&self.first.value, reading).into_iter().collect();
        }
        let spellings: Vec<&Member<'d>> = match reading {
            Reading::Text => object.named(self.field.key).collect(),
            Reading::Copy => {
                let last = object.named(self.field.key).map(|member| (member.key.as_ref(), member));
                last.collect::<BTreeMap<&str, _>>().into_values().collect()
            }
        };
        spellings.into_iter().filter_map(|member| self.field.holds.misfit(&member.value, reading)).collect()
    }
}

/// The integer in a number, however written, as its reader finds it: digit by digit in the text, through a float in the copy.
fn integer(text: &str, min: i128, reading: Reading) -> Option<i128> {
    if reading == Reading::Text {
        return text.parse().ok().filter(|_| min < 0 || !text.starts_with('-'));
    }
    let float: f64 = text.parse().ok()?;
    // Go writes the float -0 as such, which no unsigned field takes.
    integer_of_float(float).filter(|_| min < 0 || float.is_sign_positive())
}

#[cfg(test)]
mod tests;
