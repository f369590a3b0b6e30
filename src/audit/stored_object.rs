//! Stored objects with the metadata that audits need.

use std::time::Duration;

use jiff::Timestamp;

use crate::resources::raw::RawFields;

/// An object as returned by the API server, without managedFields.
#[derive(Clone, Debug, Default)]
pub struct StoredObject {
    /// The object, as JSON.
    pub text: Box<str>,
    /// Its metadata.
    pub object_meta: ObjectMeta,
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectMeta {
    /// The UID.
    pub uid: Box<str>,
    /// When it was last written, except for its status.
    pub written: Option<Timestamp>,
    /// The field managers that wrote it, with their last write.
    pub writers: Vec<(Box<str>, Timestamp)>,
    /// The deletionTimestamp.
    pub deleted: Option<Timestamp>,
    /// The finalizers.
    pub finalizers: Vec<String>,
    /// The error in its conditions.
    pub condition: Option<String>,
}

impl StoredObject {
    /// `None` if the text is not an object.
    pub fn of(text: &str) -> Option<Self> {
        let object = RawFields::parse(text).ok()?;
        let meta = RawFields::parse(object.raw("metadata")?).ok()?;
        let mut object_meta = ObjectMeta::of(&meta);
        object_meta.condition = object.raw("status").and_then(|status| condition(&RawFields::parse(status).ok()?));
        Some(Self { text: without(text, meta.raw("managedFields")), object_meta })
    }
}

/// How long ago something happened; zero if that is unknown or in the future (clock skew).
pub fn age(now: Timestamp, then: Option<Timestamp>) -> Duration {
    then.and_then(|then| now.duration_since(then).try_into().ok()).unwrap_or_default()
}

impl ObjectMeta {
    /// How long until the grace period of controllers ends, after which the object must be audited again.
    pub fn recheck_in(&self, now: Timestamp, grace: Duration) -> Option<Duration> {
        let begun = self.deleted.or(self.written)?;
        grace.checked_sub(age(now, Some(begun))).filter(|rest| !rest.is_zero())
    }

    fn of(meta: &RawFields<'_>) -> Self {
        let timestamp = |fields: &RawFields<'_>, key: &str| fields.text(key).value().and_then(|text| text.parse().ok());
        let mut object_meta = Self {
            uid: meta.text("uid").value().unwrap_or_default().as_ref().into(),
            written: timestamp(meta, "creationTimestamp"),
            writers: Vec::new(),
            deleted: timestamp(meta, "deletionTimestamp"),
            finalizers: meta.raw("finalizers").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default(),
            condition: None,
        };
        for entry in meta.objects("managedFields").value().unwrap_or_default() {
            let time: Option<Timestamp> = timestamp(&entry, "time");
            if entry.text("subresource").value().is_some_and(|part| !part.is_empty()) {
                continue;
            }
            object_meta.written = object_meta.written.max(time);
            let manager = entry.text("manager").value().unwrap_or_default();
            object_meta.writers.extend(time.map(|time| (manager.as_ref().into(), time)));
        }
        object_meta
    }
}

/// The text without one of its parts.
fn without(text: &str, part: Option<&str>) -> Box<str> {
    let start = part.map(|part| (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize));
    let cut = start.zip(part).and_then(|(start, part)| Some((text.get(..start)?, text.get(start + part.len()..)?)));
    cut.map_or_else(|| text.into(), |(before, after)| [before, "[]", after].concat().into())
}

/// The error in the conditions of a status: the first failing one.
fn condition(status: &RawFields<'_>) -> Option<String> {
    let conditions = status.objects("conditions").value()?;
    let is_wrong = |condition: &&RawFields<'_>| {
        let text = |key| condition.text(key).value().unwrap_or_default();
        matches!((text("type").as_ref(), text("status").as_ref()), ("Ready", "False") | ("Degraded", "True"))
    };
    let wrong = conditions.iter().find(is_wrong)?;
    let words = ["message", "reason"].into_iter().filter_map(|key| wrong.text(key).value());
    let mut words = words.filter(|words| !words.is_empty());
    Some(words.next().map_or_else(|| "not ready".to_owned(), |words| words.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(meta: &str, rest: &str) -> StoredObject {
        StoredObject::of(&format!(r#"{{"kind":"X","metadata":{{{meta}}}{rest}}}"#)).unwrap()
    }

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn objects_are_rechecked_at_the_end_of_the_grace_period() {
        let (now, grace) = ("2026-11-01T08:01:00Z".parse().unwrap(), Duration::from_secs(60));
        for (written, deleted, want) in [
            ("2026-11-01T08:00:50Z", None, Some(50)),
            ("2026-11-01T08:00:00Z", None, None),
            ("2026-11-01T07:00:00Z", None, None),
            ("2026-11-01T07:00:00Z", Some("2026-11-01T08:00:30Z"), Some(30)),
        ] {
            let meta = ObjectMeta { written: at(written), deleted: deleted.and_then(at), ..ObjectMeta::default() };
            assert_eq!(meta.recheck_in(now, grace), want.map(Duration::from_secs), "{written} {deleted:?}");
        }
        assert_eq!(ObjectMeta::default().recheck_in(now, grace), None);
    }

    #[test]
    fn last_write_ignores_status_writes() {
        let entry = |manager: &str, time: &str, rest: &str| {
            format!(r#"{{"manager":"{manager}","time":"2026-11-0{time}T00:00:00Z"{rest}}}"#)
        };
        let fields = [
            entry("kubectl-edit", "3", ""),
            entry("sriov-network-operator", "2", ""),
            entry("sriov-network-operator", "9", r#","subresource":"status""#),
            entry("nadmit", "4", ""),
        ];
        let stored_object = stored(
            &format!(
                r#""uid":"u","creationTimestamp":"2026-11-01T00:00:00Z","managedFields":[{}],"name":"n""#,
                fields.join(",")
            ),
            "",
        );
        assert_eq!(stored_object.object_meta.written, at("2026-11-04T00:00:00Z"));
        let writers: Vec<_> = stored_object.object_meta.writers.iter().map(|(manager, _)| &**manager).collect();
        assert_eq!(writers, ["kubectl-edit", "sriov-network-operator", "nadmit"]);
        assert_eq!(
            &*stored_object.text,
            r#"{"kind":"X","metadata":{"uid":"u","creationTimestamp":"2026-11-01T00:00:00Z","managedFields":[],"name":"n"}}"#
        );
    }

    #[test]
    fn reads_finalizers_of_deleted_objects() {
        let object_meta =
            stored(r#""deletionTimestamp":"2026-11-01T00:00:00Z","finalizers":["a","b"]"#, "").object_meta;
        assert_eq!((object_meta.deleted, object_meta.finalizers.len()), (at("2026-11-01T00:00:00Z"), 2));
        let odd = stored(r#""deletionTimestamp":5,"finalizers":"a","managedFields":[5,{}]"#, "").object_meta;
        assert_eq!(odd, ObjectMeta::default());
        for none in ["", "5", "{}", r#"{"metadata":[]}"#] {
            assert!(StoredObject::of(none).is_none(), "{none}");
        }
    }

    #[test]
    fn reads_the_failing_condition() {
        let table = [
            (r#"{"type":"Ready","status":"True","message":"all well"}"#, None),
            (r#"{"type":"Ready","status":"False","message":"no such bridge"}"#, Some("no such bridge")),
            (r#"{"type":"Ready","status":"False","message":"","reason":"Odd"}"#, Some("Odd")),
            (r#"{"type":"Degraded","status":"True"}"#, Some("not ready")),
            (r#"{"type":"Other","status":"False","message":"x"}"#, None),
        ];
        for (condition, want) in table {
            let object_meta = stored("", &format!(r#","status":{{"conditions":[{condition}]}}"#)).object_meta;
            assert_eq!(object_meta.condition.as_deref(), want, "{condition}");
        }
    }
}
