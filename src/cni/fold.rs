//! What a Go struct holds after a config was decoded into it, where a key stands in it more than once.
//!
//! `encoding/json` decodes the members of an object one after the other, each into the field whose name it matches in any
//! case. A second value for a field is decoded *into the first one*, and what comes of it depends on the kind of the field:
//!
//! | kind | null | another value |
//! |---|---|---|
//! | string, number, boolean | changes nothing | replaces it |
//! | struct | changes nothing | is merged into it, field by field |
//! | pointer | sets it to nil | is decoded into what it points at |
//! | slice | sets it to nil | takes its length; each element is decoded into the one that was there |
//! | map | sets it to nil | adds its keys; the value of a key is replaced |
//! | `interface{}` | sets it to nil | replaces it |
//!
//! Nearly every config has each key once. Then all of this comes to "what is written", and nothing is built.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::readers::is_ipam_key;
use super::schema::{Field, FieldTable, Reading, Type, decoded, find};
use super::{fold as fold_char, same_key};
use crate::json::{Kind, Member, Span, Value};

/// An object as its reader decodes it: each field once, under its documented key. Unread members are left out, so that a large
/// config is not copied unnecessarily.
pub fn object(tables: &[&'static FieldTable], value: &Value<'_>, reading: Reading) -> Value<'static> {
    let Kind::Object(members) = &value.kind else { return value.to_static() };
    let mut slot = Slot::Zero;
    slot.decode_struct(tables, members, value.span, reading);
    slot.into_value().unwrap_or_else(|| empty(value.span))
}

/// The final value of one field; `None` if absent.
pub fn field(key: &str, holds: &'static Type, members: &[Member<'_>], reading: Reading) -> Option<Value<'static>> {
    let mut slot = Slot::Zero;
    for member in decoded(members, reading).into_iter().filter(|member| same_key(&member.key, key)) {
        slot.decode(holds, &member.value, reading);
    }
    slot.into_value()
}

/// An object without members.
pub fn empty(span: Span) -> Value<'static> {
    Value { span, kind: Kind::Object(Vec::new()) }
}

/// Whether any object in this value repeats a key, in any case.
pub fn repeats(value: &Value<'_>) -> bool {
    match &value.kind {
        Kind::Array(elements) => elements.iter().any(repeats),
        Kind::Object(members) => {
            may_repeat(members) && does_repeat(members) || members.iter().any(|member| repeats(&member.value))
        }
        _ => false,
    }
}

/// False where it is certain that no key repeats, as in nearly every object.
fn may_repeat(members: &[Member<'_>]) -> bool {
    // Up to this many keys are compared pairwise where their shapes are equal.
    const FEW: usize = 64;
    let mut seen = 0_u64;
    let is_like = |one: &Member<'_>, other: &Member<'_>| one.shape == other.shape && same_key(&one.key, &other.key);
    members.len() > FEW
        || members.iter().enumerate().any(|(index, member)| {
            let is_new = seen & member.shape.bit() == 0;
            seen |= member.shape.bit();
            !member.shape.is_known() || (!is_new && members.iter().take(index).any(|other| is_like(member, other)))
        })
}

fn does_repeat(members: &[Member<'_>]) -> bool {
    let mut keys: Vec<String> = members.iter().map(|member| member.key.chars().map(fold_char).collect()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

/// A Go variable.
enum Slot<'v> {
    /// Nothing was decoded into it, or null has set it back.
    Zero,
    /// What replaces whatever was there.
    Value(&'v Value<'v>),
    Struct {
        fields: Vec<Filled<'v>>,
        rest: BTreeMap<&'v str, &'v Member<'v>>,
        span: Span,
    },
    /// A shorter list leaves its tail in memory, where a longer one finds it again.
    List {
        elements: Vec<(Self, Span)>,
        length: usize,
        span: Span,
    },
    Map {
        entries: BTreeMap<&'v str, (&'v Member<'v>, Self)>,
        span: Span,
    },
}

/// A field of a struct, and the last member that was decoded into it.
struct Filled<'v> {
    field: &'static Field,
    member: &'v Member<'v>,
    slot: Slot<'v>,
}

impl<'v> Slot<'v> {
    fn decode(&mut self, holds: &'static Type, value: &'v Value<'v>, reading: Reading) {
        match (holds, &value.kind) {
            // Null is a value like any other to a type that decodes itself.
            (Type::Network, _) => *self = Self::Value(value),
            (Type::Str | Type::Bool | Type::Int(..) | Type::Object(_), Kind::Null) => {}
            (_, Kind::Null) => *self = Self::Zero,
            (Type::Pointer(to), _) => self.decode(to, value, reading),
            (Type::Fresh(of), _) => {
                *self = Self::Zero;
                self.decode(of, value, reading);
            }
            (Type::Object(fields), Kind::Object(members)) => {
                self.decode_struct(&[fields], members, value.span, reading);
            }
            (Type::List(of), Kind::Array(elements)) => self.decode_list(of, elements, value.span, reading),
            (Type::Map(of), Kind::Object(members)) => self.decode_map(of, members, value.span, reading),
            _ => *self = Self::Value(value),
        }
    }

    fn decode_struct(&mut self, tables: &[&'static FieldTable], members: &'v [Member<'v>], at: Span, reading: Reading) {
        if !matches!(self, Self::Struct { .. }) {
            *self = Self::Struct { fields: Vec::new(), rest: BTreeMap::new(), span: at };
        }
        let Self::Struct { fields, rest, span } = self else { return };
        *span = at;
        for member in decoded(members, reading) {
            let Some(found) = find(tables, member) else {
                if is_ipam_key(&member.key) {
                    rest.insert(&member.key, member);
                }
                continue;
            };
            let index = fields.iter().position(|filled| std::ptr::eq(filled.field, found.field));
            let filled = match index.and_then(|index| fields.get_mut(index)) {
                Some(filled) => filled,
                None => fields.push_mut(Filled { field: found.field, member, slot: Slot::Zero }),
            };
            if !member.value.is_null() {
                filled.member = member;
            }
            filled.slot.decode(&found.field.holds, &member.value, reading);
        }
    }

    fn decode_list(&mut self, of: &'static Type, values: &'v [Value<'v>], at: Span, reading: Reading) {
        // An empty list is a new one.
        if !matches!(self, Self::List { .. }) || values.is_empty() {
            *self = Self::List { elements: Vec::new(), length: 0, span: at };
        }
        let Self::List { elements, length, span } = self else { return };
        (*length, *span) = (values.len(), at);
        for (index, value) in values.iter().enumerate() {
            let (slot, place) = match elements.get_mut(index) {
                Some(element) => element,
                None => elements.push_mut((Slot::Zero, value.span)),
            };
            *place = value.span;
            slot.decode(of, value, reading);
        }
    }

    fn decode_map(&mut self, of: &'static Type, members: &'v [Member<'v>], at: Span, reading: Reading) {
        if !matches!(self, Self::Map { .. }) {
            *self = Self::Map { entries: BTreeMap::new(), span: at };
        }
        let Self::Map { entries, span } = self else { return };
        *span = at;
        for member in members {
            let mut slot = Slot::Zero;
            slot.decode(of, &member.value, reading);
            entries.insert(&member.key, (member, slot));
        }
    }

    /// The value as JSON, with the span of the last write; `None` if it is the zero value.
    fn into_value(self) -> Option<Value<'static>> {
        let null = |span| Value { span, kind: Kind::Null };
        Some(match self {
            Self::Zero => return None,
            Self::Value(value) => value.to_static(),
            Self::Struct { fields, rest, span } => {
                let known = fields.into_iter().filter_map(|filled| {
                    let Filled { field, member, slot } = filled;
                    let value = slot.into_value()?;
                    Some(Member::new(Cow::Borrowed(field.key), member.key_span, value))
                });
                let kind = Kind::Object(known.chain(rest.into_values().map(Member::to_static)).collect());
                Value { span, kind }
            }
            Self::List { mut elements, length, span } => {
                elements.truncate(length);
                let values = elements.into_iter().map(|(slot, at)| slot.into_value().unwrap_or_else(|| null(at)));
                Value { span, kind: Kind::Array(values.collect()) }
            }
            Self::Map { entries, span } => {
                let members = entries.into_values().map(|(member, slot)| {
                    let value = slot.into_value().unwrap_or_else(|| null(member.value.span));
                    Member::new(Cow::Owned(member.key.clone().into_owned()), member.key_span, value)
                });
                Value { span, kind: Kind::Object(members.collect()) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::readers::{LIST, plugin};
    use super::*;
    use crate::json::Document;

    /// The value of a key as a plugin of that type decodes it, in the spelling of its source.
    fn holds(kind: &str, text: &str, pointer: &str) -> Option<String> {
        let document = Document::parse(text).unwrap();
        let folded = object(&[plugin(kind).unwrap(), LIST], &document.root, Reading::Copy);
        let found = pointer.split('/').try_fold(&folded, |value, token| match &value.kind {
            Kind::Object(members) => members.iter().find(|member| member.key == token).map(|member| &member.value),
            Kind::Array(elements) => elements.get(token.parse::<usize>().ok()?),
            _ => None,
        });
        found.map(|value| text.get(value.span.range()).unwrap().to_owned())
    }

    /// `make readers` compares many thousands of these with Go.
    #[test]
    fn a_second_value_is_decoded_into_the_first() {
        for (kind, text, pointer, want) in [
            // A string keeps its value, a pointer does not.
            ("sriov", r#"{"SPOOFCHK":"true","spoofchk":null}"#, "spoofchk", Some("\"true\"")),
            ("sriov", r#"{"VLAN":5,"vlan":null}"#, "vlan", None),
            ("sriov", r#"{"vlan":null,"VLAN":5}"#, "vlan", None),
            ("sriov", r#"{"vlan":5,"Vlan":null}"#, "vlan", Some("5")),
            // The last of exact duplicates counts, null or not.
            ("sriov", r#"{"trust":"on","trust":null}"#, "trust", None),
            // Structs are merged, lists element by element; maps get more keys.
            ("sriov", r#"{"RuntimeConfig":{"mac":"a"},"runtimeConfig":{}}"#, "runtimeConfig/mac", Some("\"a\"")),
            ("ovs", r#"{"Trunk":[{"id":1},{"id":2}],"trunk":[{"minID":3}]}"#, "trunk/0/id", Some("1")),
            ("ovs", r#"{"Trunk":[{"id":1},{"id":2}],"trunk":[{"minID":3}]}"#, "trunk/1", None),
            ("ovs", r#"{"TRUNK":[{},{"id":2}],"Trunk":[{}],"trunk":[{},{}]}"#, "trunk/1/id", Some("2")),
            ("ovs", r#"{"TRUNK":[{},{"id":2}],"Trunk":[],"trunk":[{},{}]}"#, "trunk/1/id", None),
            ("ovs", r#"{"TRUNK":[{"id":2}],"trunk":null}"#, "trunk", None),
            ("tuning", r#"{"Sysctl":{"a":"1","b":"2"},"sysctl":{"b":"3"}}"#, "sysctl/a", Some("\"1\"")),
            ("tuning", r#"{"Sysctl":{"a":"1","b":"2"},"sysctl":{"b":"3"}}"#, "sysctl/b", Some("\"3\"")),
        ] {
            assert_eq!(holds(kind, text, pointer).as_deref(), want, "{kind} {text} {pointer}");
        }
    }

    /// A network address decodes itself, so that null replaces it; an address is set back by null.
    #[test]
    fn null_is_decoded_by_types_that_decode_themselves() {
        for (text, want) in [
            (r#"{"ipam":{"type":"host-local","SUBNET":"10.0.0.0/24","subnet":null}}"#, Some("null")),
            (r#"{"ipam":{"type":"host-local","SUBNET":null,"subnet":"10.0.0.0/24"}}"#, Some("\"10.0.0.0/24\"")),
            (r#"{"ipam":{"type":"host-local","GATEWAY":"10.0.0.1","gateway":null}}"#, None),
        ] {
            let document = Document::parse(text).unwrap();
            let members = document.root.members().unwrap();
            let folded = field("ipam", super::super::readers::ipam_type("host-local"), members, Reading::Copy).unwrap();
            let found = folded.members().unwrap().iter().find(|member| member.key != "type");
            assert_eq!(found.map(|member| text.get(member.value.span.range()).unwrap()), want, "{text}");
        }
    }

    /// Whereabouts drops the values of another spelling of its section; routes are never merged. Each key is the documented one.
    #[test]
    fn some_objects_are_decoded_afresh() {
        let section = |text: &str, kind: &str| {
            let document = Document::parse(text).unwrap();
            let holds = super::super::readers::ipam_type(kind);
            let folded = field("ipam", holds, document.root.members().unwrap(), Reading::Copy).unwrap();
            folded.members().unwrap().iter().map(|member| member.key.to_string()).collect::<Vec<_>>()
        };
        let both = r#"{"IPAM":{"RANGE":"a","type":"x"},"ipam":{"GATEWAY":"b","RANGE_START":"c"}}"#;
        assert_eq!(section(both, "whereabouts"), ["gateway", "range_start"]);
        let both = r#"{"IPAM":{"SUBNET":"a","type":"x"},"ipam":{"GATEWAY":"b"}}"#;
        let mut merged = section(both, "host-local");
        merged.sort();
        assert_eq!(merged, ["gateway", "subnet", "type"]);
    }

    #[test]
    fn repeated_keys_are_found_in_any_spelling() {
        for (text, want) in [
            (r#"{"a":1,"b":{"a":1},"":2}"#, false),
            (r#"{"vlan":1,"mtu":1,"mac":1,"trust":1,"name":1,"type":1,"ipam":{},"dns":{}}"#, false),
            (r#"{"a":1,"A":2}"#, true),
            (r#"{"a":1,"a":2}"#, true),
            (r#"{"x":[{"\u0041":1,"a":2}]}"#, true),
            ("{\"trust\":1,\"tru\u{17f}t\":1}", true),
            (r#"{"é":1,"É":2}"#, false),
        ] {
            assert_eq!(repeats(&Document::parse(text).unwrap().root), want, "{text}");
        }
    }

    /// The work must be proportional to the text, even if it is hostile.
    #[test]
    fn folds_many_spellings_in_linear_time() {
        let key = "enable_overlapping_ranges";
        let spelled = |number: usize| -> String {
            let letter = |(index, letter): (usize, char)| {
                if number >> (index % 16) & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
            };
            key.chars().enumerate().map(letter).collect()
        };
        let members =
            |value: &str| (0..15_000).map(|n| format!("\"{}\":{value}", spelled(n))).collect::<Vec<_>>().join(",");
        let section = format!(r#"{{"type":"whereabouts",{},{}}}"#, members("5"), members("true"));
        let text = format!(r#"{{"type":"sriov","IPAM":{section},"ipam":{{}}}}"#);
        let document = Document::parse(&text).unwrap();
        let config = Config::of(&document).unwrap();
        assert_eq!(config.plugins.len(), 1);
    }
}
