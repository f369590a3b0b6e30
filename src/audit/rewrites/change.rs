//! What a write changed, and who wrote it, from two versions of an object.
//!
//! The writer of a new value is its only owner afterwards, so managedFields names the writer of every write that adds or changes
//! something. (Times do not help: they have whole seconds, and a write loop has fifty writes in one.) A write that only removes
//! fields leaves no trace; it is presumably by a manager that lost nothing.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::{ChangeAuthor, MAX_FIELDS};
use crate::json::{escape, unescape};
use crate::visible::at_most;

/// Of objects that are longer, the long parts are kept as digests.
const LONG: usize = 16 << 10;
/// A part that is longer than this.
const LONG_PART: usize = 512;
/// The maximum length of a name or path in a message.
const MAX_SHOWN: usize = 200;
/// Fields set by the API server, or new in a recreated object.
const SERVER_FIELDS: [&str; 5] = [
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/uid",
    "/metadata/creationTimestamp",
];

/// A version of an object, as it is kept.
#[derive(Debug)]
pub(super) struct ObjectVersion(Box<str>);

impl ObjectVersion {
    /// `None` if it is too large or not an object.
    pub(super) fn read(object: &str) -> Option<Self> {
        if object.len() <= LONG {
            return Some(Self(object.into()));
        }
        let shortened = shortened(serde_json::from_str(object).ok()?).to_string();
        (shortened.len() <= LONG).then(|| Self(shortened.into()))
    }

    /// How many bytes are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// What a write changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct VersionDiff {
    pub(super) writer: ChangeAuthor,
    pub(super) fields: Vec<String>,
    pub(super) flipped: Vec<String>,
}

impl VersionDiff {
    /// The change between the last version and this one; the version before shows flips.
    pub(super) fn between(
        before_last: Option<&ObjectVersion>,
        before: Option<&ObjectVersion>,
        object: &ObjectVersion,
    ) -> Self {
        let now = object.value();
        let Some(before) = before.map(ObjectVersion::value) else { return Self::default() };
        let mut all = Differences::default();
        let managers = now.clone();
        let (before, now) = alike(before, now);
        all.compare(Some(&before), Some(&now), &mut String::new());
        let mut flipped = Vec::new();
        if let Some(before_last) = before_last.map(ObjectVersion::value) {
            let (before_last, now) = alike(before_last, now);
            let mut still = Differences::default();
            still.compare(Some(&before_last), Some(&now), &mut String::new());
            flipped.extend(all.fields.iter().map(|(field, _)| field).filter(|field| !still.has(field)).cloned());
        }
        let writer = all.writer(&before, &managers);
        Self { writer, fields: all.fields.into_iter().map(|(field, _)| field).collect(), flipped }
    }
}

/// Both whole, or the long parts of both as digests.
fn alike(one: Value, other: Value) -> (Value, Value) {
    let is_long = |value: &Value| value.pointer("/metadata/managedFields").is_some_and(Value::is_string);
    if is_long(&one) || is_long(&other) { (shortened(one), shortened(other)) } else { (one, other) }
}

/// The long parts, two levels down, as digests.
fn shortened(mut object: Value) -> Value {
    let parts = object.as_object_mut().into_iter().flat_map(Map::values_mut);
    for part in parts.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        let text = part.to_string();
        if text.len() > LONG_PART {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            *part = Value::String(format!("#{:016x}", hasher.finish()));
        }
    }
    object
}

/// Where two versions differ.
#[derive(Debug, Default)]
struct Differences {
    /// The fields, and whether they are there afterwards.
    fields: Vec<(String, bool)>,
    /// Whether a config changed only in whitespace.
    is_reformatted: bool,
}

impl Differences {
    /// Whether the field is one of them, or in one of them, or one of them is in it.
    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(other, _)| match (field.strip_prefix(other.as_str()), other.strip_prefix(field)) {
            (Some(below), _) if below.starts_with('#') => !self.is_reformatted,
            (Some(rest), _) => rest.is_empty() || rest.starts_with('/'),
            (None, Some(below)) => below.starts_with(['/', '#']),
            (None, None) => false,
        })
    }

    fn compare(&mut self, before: Option<&Value>, now: Option<&Value>, at: &mut String) {
        if before == now || self.fields.len() >= MAX_FIELDS || SERVER_FIELDS.contains(&at.as_str()) || is_timestamp(at)
        {
            return;
        }
        let empty = Map::new();
        match (before, now) {
            (Some(Value::Object(before)), Some(Value::Object(now))) => self.members(before, now, at),
            (None, Some(Value::Object(now))) if !now.is_empty() => self.members(&empty, now, at),
            (Some(Value::Object(before)), None) if !before.is_empty() => self.members(before, &empty, at),
            (Some(Value::Array(before)), Some(Value::Array(now))) if before.len() == now.len() => {
                for (number, (before, now)) in before.iter().zip(now).enumerate() {
                    self.step(Some(before), Some(now), at, &number.to_string());
                }
            }
            (Some(Value::String(before)), Some(Value::String(now))) if at == "/spec/config" => {
                match (serde_json::from_str(before), serde_json::from_str(now)) {
                    (Ok(before @ Value::Object(_)), Ok(now @ Value::Object(_))) if before != now => {
                        at.push('#');
                        self.compare(Some(&before), Some(&now), at);
                        at.pop();
                    }
                    (Ok(before), Ok(now)) if before == now => {
                        self.is_reformatted = true;
                        self.note(at, true);
                    }
                    _ => self.note(at, true),
                }
            }
            (_, now) => self.note(at, now.is_some()),
        }
    }

    fn members(&mut self, before: &Map<String, Value>, now: &Map<String, Value>, at: &mut String) {
        for (key, value) in before {
            self.step(Some(value), now.get(key), at, key);
        }
        for (key, value) in now.iter().filter(|(key, _)| !before.contains_key(*key)) {
            self.step(None, Some(value), at, key);
        }
    }

    fn step(&mut self, before: Option<&Value>, now: Option<&Value>, at: &mut String, key: &str) {
        let length = at.len();
        at.push('/');
        at.push_str(&escape(key));
        self.compare(before, now, at);
        at.truncate(length);
    }

    fn note(&mut self, at: &str, is_there: bool) {
        let shown = at_most(at, MAX_SHOWN).to_owned();
        self.fields.push((shown, is_there));
    }

    /// Who made them.
    fn writer(&self, before: &Value, now: &Value) -> ChangeAuthor {
        let owns = |entry: &Value, is_there: bool| {
            self.fields.iter().any(|(field, there)| *there == is_there && is_owner(entry, field))
        };
        let known = latest(now, |entry| owns(entry, true));
        if let Some(entry) = known {
            return ChangeAuthor { manager: name(entry), is_presumed: false };
        }
        let is_status = |entry: &Value| entry.get("subresource").is_some_and(|part| part == "status");
        let of_status = !self.fields.is_empty() && self.fields.iter().all(|(field, _)| field.starts_with("/status"));
        let lost = |entry: &Value| entries(before).any(|old| name(old) == name(entry) && owns(old, false));
        let mine = |entry: &Value| self.fields.is_empty() || is_status(entry) == of_status;
        let presumed = newest(now, |entry| mine(entry) && !lost(entry));
        if presumed.manager.is_empty() { newest(now, mine) } else { presumed }
    }
}

/// Whether a field is only the timestamp of a condition.
fn is_timestamp(at: &str) -> bool {
    let key = at.rsplit('/').next().unwrap_or_default();
    at.contains("/conditions/") && key.starts_with("last") && key.ends_with("Time")
}

/// The entries of managedFields.
fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

/// The last of those entries that wrote.
fn latest(object: &Value, which: impl Fn(&Value) -> bool) -> Option<&Value> {
    let time = |entry: &&Value| entry.get("time").and_then(Value::as_str).unwrap_or_default().to_owned();
    entries(object).filter(|entry| which(entry)).max_by_key(time)
}

fn newest(object: &Value, which: impl Fn(&Value) -> bool) -> ChangeAuthor {
    let manager = latest(object, which).map(name).unwrap_or_default();
    ChangeAuthor { is_presumed: !manager.is_empty(), manager }
}

fn name(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut name = at_most(text("manager"), MAX_SHOWN).to_owned();
    let apply = if text("operation") == "Apply" { "apply" } else { "" };
    let ways: Vec<&str> = [text("subresource"), apply].into_iter().filter(|way| !way.is_empty()).collect();
    if !ways.is_empty() {
        name += &format!(" ({})", ways.join(", "));
    }
    name
}

/// Whether an entry of managedFields has a field, or something that it is in.
fn is_owner(entry: &Value, field: &str) -> bool {
    let Some(mut owned) = entry.get("fieldsV1") else { return false };
    let field = field.split('#').next().unwrap_or_default();
    for key in field.split('/').skip(1) {
        let Some(members) = owned.as_object() else { return false };
        if members.is_empty() {
            return true;
        }
        let key = unescape(key);
        match members.get(&format!("f:{key}")) {
            Some(deeper) => owned = deeper,
            // List items have keys there: an owner of any part of the list counts as owner of the item.
            None => return members.keys().any(|key| key.starts_with("k:") || key.starts_with("v:")),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(before: &Value, now: &Value) -> VersionDiff {
        let [before, now] = [before, now].map(|object| ObjectVersion::read(&object.to_string()).unwrap());
        VersionDiff::between(None, Some(&before), &now)
    }

    #[test]
    fn changed_fields_are_as_deep_as_both_versions_are_alike() {
        for (before, now, want) in [
            (json!({"spec": {}}), json!({"spec": {"a": {}}}), "/spec/a"),
            (json!({"spec": {"a": {}}}), json!({"spec": {}}), "/spec/a"),
            (json!({"spec": {}}), json!({"spec": {"a": {"b": 1}}}), "/spec/a/b"),
            (json!({"spec": {"a": {"b": 1}}}), json!({"spec": {}}), "/spec/a/b"),
            (json!({"spec": {"a": "{\"b\":1}"}}), json!({"spec": {"a": "{\"b\":2}"}}), "/spec/a"),
            (json!({"spec": {"a": [1, 2]}}), json!({"spec": {"a": [1, 3]}}), "/spec/a/1"),
            (json!({"spec": {"a": [1, 2]}}), json!({"spec": {"a": [1]}}), "/spec/a"),
            (json!({"status": {"lastSyncTime": 1}}), json!({"status": {"lastSyncTime": 2}}), "/status/lastSyncTime"),
            (
                json!({"status": {"conditions": [{"lastError": 1, "aTime": 1, "lastTime": 1}]}}),
                json!({"status": {"conditions": [{"lastError": 2, "aTime": 2, "lastTime": 2}]}}),
                "/status/conditions/0/aTime /status/conditions/0/lastError",
            ),
            (
                json!({"metadata": {"generation": 1, "uid": "a"}}),
                json!({"metadata": {"generation": 2, "uid": "b"}}),
                "",
            ),
        ] {
            assert_eq!(changed(&before, &now).fields.join(" "), want, "{before} {now}");
        }
    }

    /// Nobody owns a removed field: a manager that lost it is presumed only if there is no other one of that part of the object.
    #[test]
    fn removals_are_presumably_by_a_manager_that_lost_nothing() {
        let entry = |manager: &str, time: u32, part: Option<&str>, fields: Value| {
            let mut entry =
                json!({"manager": manager, "time": format!("2026-11-01T08:00:0{time}Z"), "fieldsV1": fields});
            if let Some(part) = part {
                entry["subresource"] = part.into();
            }
            entry
        };
        let object = |spec: Value, status: Value, entries: &[&Value]| json!({"metadata": {"managedFields": entries}, "spec": spec, "status": status});
        let (x, z) = (json!({"f:spec": {"f:x": {}}}), json!({"f:spec": {"f:z": {}}}));
        let (owner, other) = (entry("owner", 9, None, x), entry("other", 1, None, z));
        let former = entry("owner", 9, None, json!({}));
        let status = entry("reporter", 5, Some("status"), json!({}));
        let before = object(json!({"x": 1}), json!({"y": 1}), &[&owner]);
        for (now, want) in [
            (object(json!({}), json!({"y": 1}), &[&former, &other, &status]), "other"),
            (object(json!({}), json!({"y": 1}), &[&former, &status]), "owner"),
            (object(json!({"x": 1}), json!({}), &[&owner, &other, &status]), "reporter (status)"),
            (object(json!({"x": 1}), json!({}), &[&owner]), ""),
        ] {
            let writer = changed(&before, &now).writer;
            assert_eq!((writer.manager.as_str(), writer.is_presumed), (want, !want.is_empty()), "{now}");
        }
    }

    #[test]
    fn long_parts_of_long_objects_are_digests() {
        let object =
            |part: usize, rest: usize| json!({"spec": {"a": "x".repeat(part - 2), "b": "y".repeat(rest)}}).to_string();
        let kept = |text: &str| ObjectVersion::read(text).unwrap().value();
        let whole = object(LONG_PART + 1, LONG - LONG_PART - 23);
        assert_eq!(whole.len(), LONG);
        assert_eq!(kept(&whole).to_string(), whole);
        let long = kept(&object(LONG_PART, LONG));
        assert_eq!(long["spec"]["a"].as_str().unwrap().len(), LONG_PART - 2);
        assert!(long["spec"]["b"].as_str().is_some_and(|digest| digest.len() == 17 && digest.starts_with('#')));
        let longer = kept(&object(LONG_PART + 1, LONG));
        assert!(longer["spec"]["a"].as_str().is_some_and(|digest| digest.len() == 17 && digest.starts_with('#')));
        let wide: Map<String, Value> = (0..LONG).map(|number| (number.to_string(), json!(1))).collect();
        assert!(ObjectVersion::read(&Value::Object(wide).to_string()).is_none());
        assert!(ObjectVersion::read(&"x".repeat(LONG + 1)).is_none());
    }

    /// The long parts of a long version are digests, so those of the other version become digests too.
    #[test]
    fn long_and_short_versions_are_compared_alike() {
        let object = |b: usize| {
            let managers = json!([{"manager": "m", "fieldsV1": {"f:spec": {}}, "x": "z".repeat(LONG_PART)}]);
            json!({"metadata": {"managedFields": managers}, "spec": {"a": "x".repeat(LONG_PART), "b": "y".repeat(b)}})
        };
        let (short, long) = (object(1), object(LONG));
        assert_eq!(changed(&short, &long).fields, ["/spec/b"]);
        assert_eq!(changed(&long, &short).fields, ["/spec/b"]);
    }

    #[test]
    fn a_field_differs_with_what_is_in_it_and_around_it() {
        for (other, is_reformatted, field, want) in [
            ("/spec/a", false, "/spec/a", true),
            ("/spec/a", true, "/spec/a", true),
            ("/spec/a", false, "/spec/ab", false),
            ("/spec/ab", false, "/spec/a", false),
            ("/spec/a", false, "/spec/a/b", true),
            ("/spec/a", true, "/spec/a/b", true),
            ("/spec/a/b", false, "/spec/a", true),
            ("/spec/a", false, "/spec/b", false),
            ("/spec/config", false, "/spec/config#/vlan", true),
            ("/spec/config", true, "/spec/config#/vlan", false),
            ("/spec/config#/vlan", false, "/spec/config", true),
        ] {
            let differences = Differences { fields: vec![(other.to_owned(), true)], is_reformatted };
            assert_eq!(differences.has(field), want, "{other} {is_reformatted} {field}");
        }
    }

    #[test]
    fn a_config_is_reformatted_if_only_its_blanks_differ() {
        for (before, now, want) in [
            ("{\"a\":1}", "{ \"a\": 1 }", true),
            ("{\"a\":1}", "{\"a\":2}", false),
            ("[1]", "[2]", false),
            ("[1]", "[ 1 ]", true),
            ("{", "{ ", false),
        ] {
            let object = |config: &str| json!({"spec": {"config": config}});
            let mut differences = Differences::default();
            differences.compare(Some(&object(before)), Some(&object(now)), &mut String::new());
            assert_eq!((differences.is_reformatted, differences.fields.len()), (want, 1), "{before} {now}");
        }
    }
}
