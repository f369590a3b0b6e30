//! Which fields of a status a write changes.
//!
//! Both objects come from the same encoder of the API server, so equal texts are equal values. Equal values are not descended
//! into; changes are followed as far down as any manager owns a part.

use std::borrow::Cow;
use std::collections::HashMap;

use super::fields::{FieldStep, Owned};
use crate::json::JsonReader;
use crate::resources::raw::RawFields;

/// How many key sets are tried to identify the items of one list. A list has one; hostile texts may have thousands.
const MAX_KEY_SETS: usize = 4;
/// How many members may identify an item.
const MAX_KEY_FIELDS: usize = 8;

/// A field whose value is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldChange {
    /// Its place in the tree of what is owned.
    pub(super) node: u32,
    /// Whether it had a value before.
    pub(crate) was_there: bool,
    /// Whether it has one now.
    pub(crate) is_there: bool,
}

/// All of them, in the order of the fields' owners.
pub(crate) type FieldChanges = Vec<FieldChange>;

/// Compares two statuses along all owned fields.
pub(super) fn changes<'a>(owned: &Owned<'a>, old: Option<&'a str>, new: Option<&'a str>) -> FieldChanges {
    let mut changes = Vec::new();
    follow(owned, Owned::STATUS, old, new, &mut changes);
    changes
}

/// The depth is bounded, because the tree was read with a limit.
fn follow<'a>(owned: &Owned<'a>, at: u32, old: Option<&'a str>, new: Option<&'a str>, changes: &mut FieldChanges) {
    let Some(node) = owned.node(at).filter(|_| old != new) else { return };
    let change = FieldChange { node: at, was_there: old.is_some(), is_there: new.is_some() };
    let comes_or_goes = change.was_there != change.is_there;
    if !node.whole.is_empty() || comes_or_goes && !node.itself.is_empty() {
        changes.push(change);
    }
    if node.children.is_empty() {
        return;
    }
    let (mut old, mut new) = (Inside::of(old), Inside::of(new));
    for child in &node.children {
        let Some(step) = owned.node(*child).map(|child| child.step()) else { continue };
        follow(owned, *child, old.get(step), new.get(step), changes);
    }
}

/// What is in a value, one level deep.
enum Inside<'a> {
    Nothing,
    Object(HashMap<Cow<'a, str>, &'a str>),
    List(List<'a>),
}

#[derive(Default)]
struct List<'a> {
    items: Vec<&'a str>,
    /// The items by their keys, for each key set.
    by_keys: Vec<(Vec<String>, HashMap<String, &'a str>)>,
    /// The items by their values.
    by_value: Option<HashMap<String, &'a str>>,
}

impl<'a> Inside<'a> {
    fn of(value: Option<&'a str>) -> Self {
        let value = value.unwrap_or_default();
        match value.as_bytes().first() {
            Some(b'{') => Self::Object(members(value)),
            Some(b'[') => {
                let mut list = List::default();
                // The API server's output can be parsed; anything else counts as absent.
                let _ = JsonReader::whole(value, |reader| {
                    reader.elements(|reader| {
                        list.items.push(reader.skip()?);
                        Ok(())
                    })
                });
                Self::List(list)
            }
            _ => Self::Nothing,
        }
    }

    fn get(&mut self, step: FieldStep<'_>) -> Option<&'a str> {
        match (self, step) {
            (Self::Object(members), FieldStep::Field(name)) => members.get(name).copied(),
            (Self::List(list), FieldStep::Item(keys)) => list.with_keys(keys),
            (Self::List(list), FieldStep::Value(value)) => list.with_value(value),
            (Self::List(list), FieldStep::Index(index)) => list.items.get(index).copied(),
            _ => None,
        }
    }
}

/// The members of an object that are not null, which counts as absent.
fn members(value: &str) -> HashMap<Cow<'_, str>, &str> {
    let mut members = HashMap::new();
    let _ = JsonReader::whole(value, |reader| {
        reader.members(|reader, key, _| {
            let raw = reader.skip()?;
            if raw == "null" {
                members.remove(&key);
            } else {
                members.insert(key, raw);
            }
            Ok(())
        })
    });
    members
}

impl<'a> List<'a> {
    fn with_keys(&mut self, keys: &str) -> Option<&'a str> {
        let keys = RawFields::parse(keys).ok()?;
        let mut names: Vec<String> = keys.keys().map(str::to_owned).collect();
        if names.is_empty() || names.len() > MAX_KEY_FIELDS {
            return None;
        }
        names.sort();
        let wanted = identity(&keys, &names)?;
        if let Some((_, items)) = self.by_keys.iter().find(|(known, _)| *known == names) {
            return items.get(&wanted).copied();
        }
        if self.by_keys.len() >= MAX_KEY_SETS {
            return None;
        }
        let items =
            self.items.iter().filter_map(|item| Some((identity(&RawFields::parse(item).ok()?, &names)?, *item)));
        let items: HashMap<_, _> = items.collect();
        let found = items.get(&wanted).copied();
        self.by_keys.push((names, items));
        found
    }

    fn with_value(&mut self, value: &str) -> Option<&'a str> {
        let items = &self.items;
        let by_value = self.by_value.get_or_insert_with(|| items.iter().map(|item| (plain(item), *item)).collect());
        by_value.get(&plain(value)).copied()
    }
}

/// The identity of an item: the values of these members.
fn identity(fields: &RawFields<'_>, names: &[String]) -> Option<String> {
    let mut identity = String::new();
    for name in names {
        identity += &plain(fields.raw(name)?);
        identity.push('\0');
    }
    Some(identity)
}

/// A normalized value: two encoders may escape different characters of a string.
fn plain(raw: &str) -> String {
    match JsonReader::whole(raw, JsonReader::text) {
        Ok(Some(text)) => format!("\"{text}"),
        _ => raw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::Side;
    use super::*;

    fn described_changes(fields: &str, old: Option<&str>, new: Option<&str>) -> Vec<String> {
        let fields = format!(r#"{{"f:status":{fields}}}"#);
        let mut owned = Owned::default();
        owned.add(&fields, 0, Side::New).unwrap();
        let word = |change: &FieldChange| {
            let sign = match (change.was_there, change.is_there) {
                (true, true) => '~',
                (true, false) => '-',
                (false, _) => '+',
            };
            format!("{sign}{}", owned.words(change.node))
        };
        changes(&owned, old, new).iter().map(word).collect()
    }

    #[test]
    fn finds_changes_along_owned_fields() {
        let conditions = r#"{"f:conditions":{"k:{\"type\":\"A\"}":{".":{},"f:type":{},"f:status":{}},"k:{\"type\":\"B\"}":{".":{},"f:type":{},"f:status":{}}}}"#;
        let list = |items: &str| format!(r#"{{"conditions":[{items}]}}"#);
        let (a, b) = (r#"{"type":"A","status":"x"}"#, r#"{"type":"B","status":"x"}"#);
        let changed = r#"{"type":"B","status":"y"}"#;
        let both = list(&format!("{a},{b}"));
        let swapped = list(&format!("{b},{a}"));
        let other = list(&format!("{changed},{a}"));
        for (fields, old, new, want) in [
            (r#"{"f:a":{}}"#, r#"{"a":1}"#, r#"{"a":1}"#, &[] as &[&str]),
            (r#"{"f:a":{}}"#, r#"{"a":1}"#, r#"{"a":2}"#, &["~status.a"]),
            (r#"{"f:a":{}}"#, r#"{"a":1}"#, "{}", &["-status.a"]),
            (r#"{"f:a":{}}"#, r#"{"a":null}"#, r#"{"a":2}"#, &["+status.a"]),
            (r#"{"f:a":{"f:b":{}}}"#, r#"{"a":{"b":1,"c":1}}"#, r#"{"a":{"b":1,"c":2}}"#, &[]),
            (r#"{"f:a":{"f:b":{},"f:c":{}}}"#, r#"{"a":{"b":1,"c":1}}"#, r#"{"a":{"b":1,"c":2}}"#, &["~status.a.c"]),
            (r#"{"f:a":{}}"#, r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, &["~status.a"]),
            (r#"{"f:a":{".":{},"f:b":{}}}"#, "{}", r#"{"a":{"b":1}}"#, &["+status.a", "+status.a.b"]),
            (r#"{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}"#, r#"{"a":["x"]}"#, r#"{"a":["y","x"]}"#, &["+status.a[\"y\"]"]),
            (r#"{"f:a":{"v:\"\\u003c\"":{}}}"#, r#"{"a":["<"]}"#, r#"{"a":["<",">"]}"#, &[]),
            (r#"{"f:a":{"i:1":{}}}"#, r#"{"a":[1,2]}"#, r#"{"a":[1,3]}"#, &["~status.a[1]"]),
            // Keys that name no member, or too many, find no item.
            (r#"{"f:a":{"k:{}":{".":{}}}}"#, r#"{"a":[]}"#, r#"{"a":[{"x":1}]}"#, &[]),
            (conditions, &both, &swapped, &[]),
            (conditions, &both, &other, &["~status.conditions[type=B].status"]),
            (
                conditions,
                &both,
                &list(a),
                &["-status.conditions[type=B]", "-status.conditions[type=B].type", "-status.conditions[type=B].status"],
            ),
        ] {
            assert_eq!(described_changes(fields, Some(old), Some(new)), want, "{fields} {old} {new}");
        }
        assert_eq!(described_changes(r#"{".":{},"f:a":{}}"#, None, Some(r#"{"a":1}"#)), ["+status", "+status.a"]);
    }

    #[test]
    fn items_are_found_by_a_limited_number_of_keys() {
        for (count, want) in [(1, 1), (MAX_KEY_FIELDS, 1), (MAX_KEY_FIELDS + 1, 0)] {
            let keys = (0..count).map(|number| format!(r#""k{number}":1"#)).collect::<Vec<_>>().join(",");
            let fields = format!(r#"{{"f:a":{{"k:{{{}}}":{{".":{{}}}}}}}}"#, keys.replace('"', "\\\""));
            let new = format!(r#"{{"a":[{{{keys}}}]}}"#);
            assert_eq!(described_changes(&fields, Some(r#"{"a":[]}"#), Some(&new)).len(), want, "{fields} {new}");
        }
    }

    /// Unrelated texts must be compared in bounded time.
    #[test]
    fn hostile_lists_are_compared_in_bounded_time() {
        let each = |make: &dyn Fn(usize) -> String| (0..10_000).map(make).collect::<Vec<_>>().join(",");
        let items = each(&|n| format!(r#"{{"k{n}":{n},"type":"{n}"}}"#));
        let (old, new) = (format!(r#"{{"a":[{items}]}}"#), format!(r#"{{"a":[{items},{{"type":"x"}}]}}"#));
        for member in [
            (&|n| format!(r#""k:{{\"k{n}\":{n}}}":{{".":{{}}}}"#)) as &dyn Fn(usize) -> String,
            &|n| format!(r#""k:{{\"type\":\"{n}\"}}":{{".":{{}},"f:type":{{}}}}"#),
            &|n| format!(r#""v:{n}":{{}}"#),
            &|n| format!(r#""i:{n}":{{}}"#),
            &|n| format!(r#""f:{n}":{{}}"#),
        ] {
            let fields = format!(r#"{{"f:a":{{{}}}}}"#, each(member));
            assert!(described_changes(&fields, Some(&old), Some(&new)).is_empty());
        }
    }
}
