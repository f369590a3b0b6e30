//! When an object was written, and whether it waits to go away: what its metadata tells besides what rules look at.

use jiff::Timestamp;

use crate::resources::raw::Fields;

/// An object as the API server returned it, without the part that is long and says only who wrote what.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The object, as JSON.
    pub text: Box<str>,
    /// What its metadata tells.
    pub moments: Moments,
}

/// What an object's metadata tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Which object it is, for ever.
    pub uid: Box<str>,
    /// When it was last written, statuses aside.
    pub written: Option<Timestamp>,
    /// The field managers that wrote it, and when each did so last.
    pub writers: Vec<(Box<str>, Timestamp)>,
    /// When it was deleted; it stays while somebody holds it.
    pub deleted: Option<Timestamp>,
    /// Who holds it.
    pub finalizers: Vec<String>,
    /// What its conditions say is wrong.
    pub condition: Option<String>,
}

impl Kept {
    /// `None` for what is no object.
    pub fn of(text: &str) -> Option<Self> {
        let object = Fields::parse(text).ok()?;
        let meta = Fields::parse(object.raw("metadata")?).ok()?;
        let mut moments = Moments::of(&meta);
        moments.condition = object.raw("status").and_then(|status| condition(&Fields::parse(status).ok()?));
        Some(Self { text: without(text, meta.raw("managedFields")), moments })
    }
}

impl Moments {
    fn of(meta: &Fields<'_>) -> Self {
        let moment = |fields: &Fields<'_>, key: &str| fields.text(key).value().and_then(|text| text.parse().ok());
        let mut moments = Self {
            uid: meta.text("uid").value().unwrap_or_default().as_ref().into(),
            written: moment(meta, "creationTimestamp"),
            writers: Vec::new(),
            deleted: moment(meta, "deletionTimestamp"),
            finalizers: meta.raw("finalizers").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default(),
            condition: None,
        };
        for entry in meta.objects("managedFields").value().unwrap_or_default() {
            let time: Option<Timestamp> = moment(&entry, "time");
            if entry.text("subresource").value().is_some_and(|part| !part.is_empty()) {
                continue;
            }
            moments.written = moments.written.max(time);
            let manager = entry.text("manager").value().unwrap_or_default();
            moments.writers.extend(time.map(|time| (manager.as_ref().into(), time)));
        }
        moments
    }
}

/// A text without what one of its own parts says.
fn without(text: &str, part: Option<&str>) -> Box<str> {
    let start = part.map(|part| (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize));
    let cut = start.zip(part).and_then(|(start, part)| Some((text.get(..start)?, text.get(start + part.len()..)?)));
    cut.map_or_else(|| text.into(), |(before, after)| [before, "[]", after].concat().into())
}

/// What the conditions of a status say is wrong: the first that is not as it should be.
fn condition(status: &Fields<'_>) -> Option<String> {
    let conditions = status.objects("conditions").value()?;
    let is_wrong = |condition: &&Fields<'_>| {
        let text = |key| condition.text(key).value().unwrap_or_default();
        matches!((text("type").as_ref(), text("status").as_ref()), ("Ready", "False") | ("Degraded", "True"))
    };
    let wrong = conditions.iter().find(is_wrong)?;
    let words = ["message", "reason"].into_iter().filter_map(|key| wrong.text(key).value());
    let mut words = words.filter(|words| !words.is_empty());
    Some(words.next().map_or_else(|| "it is not ready".to_owned(), |words| words.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(meta: &str, rest: &str) -> Kept {
        Kept::of(&format!(r#"{{"kind":"X","metadata":{{{meta}}}{rest}}}"#)).unwrap()
    }

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_last_write_counts_and_a_status_is_none() {
        let entry = |manager: &str, time: &str, rest: &str| {
            format!(r#"{{"manager":"{manager}","time":"2026-11-0{time}T00:00:00Z"{rest}}}"#)
        };
        let fields = [
            entry("kubectl-edit", "3", ""),
            entry("sriov-network-operator", "2", ""),
            entry("sriov-network-operator", "9", r#","subresource":"status""#),
            entry("nadmit", "4", ""),
        ];
        let kept = kept(
            &format!(
                r#""uid":"u","creationTimestamp":"2026-11-01T00:00:00Z","managedFields":[{}],"name":"n""#,
                fields.join(",")
            ),
            "",
        );
        assert_eq!(kept.moments.written, at("2026-11-04T00:00:00Z"));
        let writers: Vec<_> = kept.moments.writers.iter().map(|(manager, _)| &**manager).collect();
        assert_eq!(writers, ["kubectl-edit", "sriov-network-operator", "nadmit"]);
        assert_eq!(
            &*kept.text,
            r#"{"kind":"X","metadata":{"uid":"u","creationTimestamp":"2026-11-01T00:00:00Z","managedFields":[],"name":"n"}}"#
        );
    }

    #[test]
    fn who_holds_what_is_deleted_is_known() {
        let moments = kept(r#""deletionTimestamp":"2026-11-01T00:00:00Z","finalizers":["a","b"]"#, "").moments;
        assert_eq!((moments.deleted, moments.finalizers.len()), (at("2026-11-01T00:00:00Z"), 2));
        let odd = kept(r#""deletionTimestamp":5,"finalizers":"a","managedFields":[5,{}]"#, "").moments;
        assert_eq!(odd, Moments::default());
        for none in ["", "5", "{}", r#"{"metadata":[]}"#] {
            assert!(Kept::of(none).is_none(), "{none}");
        }
    }

    #[test]
    fn what_a_condition_says_is_known() {
        let table = [
            (r#"{"type":"Ready","status":"True","message":"all well"}"#, None),
            (r#"{"type":"Ready","status":"False","message":"no such bridge"}"#, Some("no such bridge")),
            (r#"{"type":"Ready","status":"False","message":"","reason":"Odd"}"#, Some("Odd")),
            (r#"{"type":"Degraded","status":"True"}"#, Some("it is not ready")),
            (r#"{"type":"Other","status":"False","message":"x"}"#, None),
        ];
        for (condition, want) in table {
            let moments = kept("", &format!(r#","status":{{"conditions":[{condition}]}}"#)).moments;
            assert_eq!(moments.condition.as_deref(), want, "{condition}");
        }
    }
}
