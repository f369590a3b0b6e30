//! The CNI document in `spec.config`, read as the Go programs read it and edited without touching any other byte.
//!
//! There are two kinds of readers, which decode differently (measured with the real programs, see `make readers`):
//! - **Multus** decodes the *text* into a struct: keys match in any case, and each member is decoded into its field in the
//!   order of the text. (Where the config has no name, its helper library first passes it through a map, and the second kind
//!   of reading applies.)
//! - **The plugin** gets a copy that went through a Go map: of equal keys the last is left, and the keys come out sorted, so
//!   that of those that differ only in case the lower-case one is decoded last.
//!
//! [`mod@fold`] describes what happens to a key that is decoded twice.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod arguments;
mod attachment;
mod config;
pub mod edit;
pub mod fold;
pub mod mac;
pub mod readers;
pub mod releases;
pub mod schema;

use std::collections::BTreeMap;

pub use attachment::{Attachment, OVN_PLUGIN};
pub use config::{Config, Plugin, parse_version};
use schema::Reading;

use crate::json::{KeyShape, Kind, Member, Value};

/// A JSON object, with the ways in which Go programs look a key up in it.
#[derive(Clone, Copy, Debug)]
pub struct CniObject<'d> {
    /// The value itself, for its place.
    pub value: &'d Value<'d>,
    /// Its members.
    pub members: &'d [Member<'d>],
    /// The bits of all keys' shapes: most fields that somebody asks for are not there.
    shapes: u64,
}

impl<'d> CniObject<'d> {
    /// The object in a value, if it is one.
    pub fn of(value: &'d Value<'d>) -> Option<Self> {
        let members = value.members()?;
        let bit = |member: &Member<'_>| if member.shape.is_known() { member.shape.bit() } else { u64::MAX };
        let shapes = members.iter().fold(0, |bits, member| bits | bit(member));
        Some(Self { value, members, shapes })
    }

    /// The member of that name, in whatever case. Of several the last in byte order is taken; a plugin's own view of its
    /// config has no two.
    // Of all that is done with a config this is done most often. Most fields are constants, whose shapes the compiler computes.
    #[inline(always)]
    pub fn get(&self, field: &str) -> Option<&'d Member<'d>> {
        let shape = KeyShape::of_ascii(field);
        if self.shapes & shape.bit() == 0 { None } else { self.get_present(field, shape) }
    }

    /// The same for a field that is probably there.
    fn get_present(&self, field: &str, shape: KeyShape) -> Option<&'d Member<'d>> {
        let mut last: Option<&'d Member<'d>> = None;
        for member in self.members {
            if !member.shape.may_equal(shape) || !same_key(&member.key, field) {
                continue;
            }
            // The last of equals is kept, as Go keeps the last of exact duplicates.
            if last.is_none_or(|last| member.key >= last.key) {
                last = Some(member);
            }
        }
        last
    }

    /// The member that a string field of a struct ends up with: the last that is decoded into it and is not null.
    pub fn get_string(&self, field: &str, reading: Reading) -> Option<&'d Member<'d>> {
        let given = |member: &&'d Member<'d>| !member.value.is_null();
        let mut named = self.named(field);
        let first = named.next()?;
        let Some(second) = named.next() else { return Some(first).filter(given) };
        if reading == Reading::Text {
            return [first, second].into_iter().chain(named).filter(given).last();
        }
        let sorted: BTreeMap<&str, &'d Member<'d>> =
            self.named(field).map(|member| (member.key.as_ref(), member)).collect();
        sorted.into_values().rfind(given)
    }

    /// The member a map lookup finds: exact spelling only.
    pub fn get_exact(&self, key: &str) -> Option<&'d Member<'d>> {
        self.members.iter().rfind(|member| member.key == key)
    }

    /// Every member whose key a struct field of this name would accept.
    pub fn named<'f>(&self, field: &'f str) -> impl Iterator<Item = &'d Member<'d>> + use<'d, 'f> {
        let shape = KeyShape::of_ascii(field);
        self.members.iter().filter(move |member| member.shape.may_equal(shape) && same_key(&member.key, field))
    }

    /// The value a plugin reads, null counting as not there.
    pub fn value_of(&self, field: &str) -> Option<&'d Value<'d>> {
        self.get(field).map(|member| &member.value).filter(|value| !value.is_null())
    }

    /// The string a plugin reads; `None` also where the value is no string.
    pub fn str_of(&self, field: &str) -> Option<&'d str> {
        self.value_of(field).and_then(Value::as_str)
    }

    /// The same, unless it is empty: most plugins treat an empty string like an absent one.
    pub fn text_of(&self, field: &str) -> Option<&'d str> {
        self.str_of(field).filter(|text| !text.is_empty())
    }

    /// The integer a plugin reads; `None` also where the value is no integer.
    pub fn int_of(&self, field: &str) -> Option<i64> {
        self.value_of(field).and_then(Value::as_int)
    }

    /// The boolean a plugin reads; false where it is absent or none.
    pub fn is_true(&self, field: &str) -> bool {
        self.value_of(field).is_some_and(|value| value.kind == Kind::Bool(true))
    }

    /// The object a plugin reads.
    pub fn object_of(&self, field: &str) -> Option<Self> {
        self.value_of(field).and_then(Self::of)
    }

    /// The list a plugin reads; empty where it is absent or none.
    pub fn list_of(&self, field: &str) -> &'d [Value<'d>] {
        self.value_of(field).and_then(Value::elements).unwrap_or_default()
    }
}

/// Whether Go's JSON decoder matches `key` to the struct field `field`: equal except for case, where the Kelvin sign is a `k` and
/// the long s an `s`.
#[inline]
pub fn same_key(key: &str, field: &str) -> bool {
    // Those two make a key longer than its field. Nearly every pair differs in length or first letter.
    key.len() >= field.len() && begins_alike(key, field) && (key == field || is_same_folded(key, field))
}

#[inline]
fn begins_alike(key: &str, field: &str) -> bool {
    match (key.as_bytes().first(), field.as_bytes().first()) {
        // The two cases of a letter differ in one bit.
        (Some(a), Some(b)) => (a ^ b) & !0x20 == 0 || !a.is_ascii(),
        (_, b) => b.is_none(),
    }
}

#[cold]
fn is_same_folded(key: &str, field: &str) -> bool {
    if key.len() == field.len() {
        return key.eq_ignore_ascii_case(field);
    }
    !key.is_ascii() && key.chars().map(fold).eq(field.chars().map(fold))
}

fn fold(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn keys_match_in_any_case() {
        for (text, want) in [
            (r#"{"vlan":5,"VLAN":9999}"#, Some(5)),
            (r#"{"VLAN":9999,"vlan":5}"#, Some(5)),
            (r#"{"vlan":5,"vlan":6}"#, Some(6)),
            (r#"{"Vlan":1,"VLAN":2}"#, Some(1)),
            (r#"{"vLAN":7}"#, Some(7)),
            (r#"{"vlan":null}"#, None),
            (r#"{"vlan":100.0}"#, Some(100)),
            (r#"{"v-lan":1}"#, None),
            (r#"{"vlané":1}"#, None),
            (r#"{"vlans":1}"#, None),
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(CniObject::of(&document.root).unwrap().int_of("vlan"), want, "{text}");
        }
        let document = Document::parse("{\"\u{17f}poofch\u{212a}\":\"on\"}").unwrap();
        assert_eq!(CniObject::of(&document.root).unwrap().str_of("spoofchk"), Some("on"));
    }
}
