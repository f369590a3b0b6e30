use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const WINDOW: Duration = Duration::from_secs(60);
const NAD: &str = "NetworkAttachmentDefinition";

/// Records an object with the resourceVersion that it has, if any.
fn record(watched: &mut RewriteTracker, key: &ObjectKey, object: &str, at: Duration) {
    let version = serde_json::from_str::<Value>(object).ok();
    let version = version.and_then(|object| Some(object.pointer("/metadata/resourceVersion")?.as_str()?.to_owned()));
    if let Some(version) = version {
        watched.record(NAD, key, &version, object, at);
    }
}

fn net() -> ObjectKey {
    named("net")
}

fn named(name: &str) -> ObjectKey {
    ObjectKey::new("apps", name)
}

/// A version of a NAD: its resourceName and config, and the fields of each manager.
fn nad(version: usize, resource: Option<&str>, vlan: u32, managers: &[(&str, &str, Value)]) -> String {
    let mut annotations = json!({"owner": "x"});
    if let Some(resource) = resource {
        annotations["k8s.v1.cni.cncf.io/resourceName"] = json!(resource);
    }
    let entry = |(manager, time, fields): &(&str, &str, Value)| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
    json!({
        "metadata": {
            "name": "net", "namespace": "apps", "resourceVersion": version.to_string(), "generation": version,
            "annotations": annotations, "managedFields": managers.iter().map(entry).collect::<Vec<_>>(),
        },
        "spec": {"config": format!(r#"{{"type":"sriov","vlan":{vlan}}}"#)},
    })
    .to_string()
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number)
}

/// The operator and a repairer write fifty times per second, so that the times in managedFields do not show the order.
fn write_loop(watched: &mut RewriteTracker, writes: usize) {
    let all = json!({"f:metadata": {"f:annotations": {".": {}, "f:owner": {}}}, "f:spec": {".": {}, "f:config": {}}});
    let annotation = json!({"f:metadata": {"f:annotations": {"f:k8s.v1.cni.cncf.io/resourceName": {}}}});
    for number in 0..writes {
        let operators = [("operator", "2026-11-01T08:00:00Z", all.clone())];
        let both = [operators[0].clone(), ("repairer", "2026-11-01T08:00:00Z", annotation.clone())];
        let text = match number % 2 {
            0 => nad(number + 1, None, 5, &operators),
            _ => nad(number + 1, Some("openshift.io/x"), 5, &both),
        };
        record(watched, &net(), &text, seconds(number as f64 / 50.0));
    }
}

#[test]
fn detects_two_writers_and_the_flipping_field() {
    let mut watched = RewriteTracker::new(WINDOW);
    write_loop(&mut watched, 20);
    let rewrites = watched.rewrites(NAD, &net(), seconds(0.4)).unwrap();
    assert_eq!((rewrites.count, rewrites.within), (20, seconds(0.4)));
    // The operator only removes a field, which no managedFields entry shows; the repairer is identified by the field it adds.
    assert_eq!(rewrites.managers, ["operator (presumably)", "repairer"]);
    assert_eq!(rewrites.fields, ["/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName"]);
    let managers: Vec<_> = watched.timeline(NAD, &net()).map(|write| write.writer.manager.as_str()).collect();
    assert_eq!(managers[1..5], ["repairer", "operator", "repairer", "operator"]);
    assert_eq!(watched.hot(10, seconds(0.4)), [(NAD, &net(), rewrites)]);
    assert!(watched.hot(20, seconds(0.4)).is_empty());
    // A minute later the loop is over.
    assert_eq!(watched.rewrites(NAD, &net(), seconds(70.0)), None);
}

#[test]
fn identifies_writers_within_one_second() {
    let (mut watched, time) = (RewriteTracker::new(WINDOW), "2026-11-01T08:00:00Z");
    for number in 0..12 {
        let (vlan, one, other) = if number % 2 == 0 { (5, "a", "b") } else { (6, "b", "a") };
        let mine = json!({"f:spec": {"f:config": {}}});
        let rest = json!({"f:metadata": {"f:annotations": {"f:owner": {}}}});
        record(
            &mut watched,
            &net(),
            &nad(number + 1, None, vlan, &[(one, time, mine), (other, time, rest)]),
            seconds(1.0),
        );
    }
    let rewrites = watched.rewrites(NAD, &net(), seconds(2.0)).unwrap();
    assert_eq!(rewrites.managers, ["a", "b"]);
    assert_eq!(rewrites.fields, ["/spec/config#/vlan"]);
}

#[test]
fn only_so_many_managers_are_named() {
    let mut watched = RewriteTracker::new(WINDOW);
    for number in 0..40 {
        let mine = json!({"f:spec": {"f:config": {}}});
        let manager = format!("m{number}");
        let text = nad(number + 1, None, number as u32, &[(&manager, "2026-11-01T08:00:00Z", mine)]);
        record(&mut watched, &net(), &text, seconds(1.0));
    }
    assert_eq!(watched.rewrites(NAD, &net(), seconds(2.0)).unwrap().managers.len(), MAX_MANAGERS);
}

/// In a loop a field returns to its value every second time, even if the values move on.
#[test]
fn a_field_flips_if_about_half_of_its_changes_go_back() {
    let values = |pattern: &str| pattern.bytes().map(|value| u32::from(value - b'a')).collect::<Vec<_>>();
    for (pattern, is_flipping) in [("ababcdcdefef", true), ("ababababcdefghij", false), ("abacdefghijk", false)] {
        let mut watched = RewriteTracker::new(WINDOW);
        for (number, vlan) in values(pattern).into_iter().enumerate() {
            let mine = json!({"f:spec": {"f:config": {}}});
            // Another field changes once, and stays.
            let resource = (number > 10).then_some("a.io/b");
            let text = nad(number + 1, resource, vlan, &[("operator", "2026-11-01T08:00:00Z", mine)]);
            record(&mut watched, &net(), &text, seconds(1.0));
        }
        let want: &[&str] = if is_flipping { &["/spec/config#/vlan"] } else { &[] };
        assert_eq!(watched.rewrites(NAD, &net(), seconds(2.0)).unwrap().fields, want, "{pattern}");
    }
}

#[test]
fn detects_fields_changed_by_every_write() {
    let mut watched = RewriteTracker::new(WINDOW);
    for number in 0..12 {
        let mine = json!({"f:spec": {"f:config": {}}});
        let text = nad(number + 1, None, number as u32 * 7, &[("operator", "2026-11-01T08:00:00Z", mine)]);
        record(&mut watched, &net(), &text, seconds(1.0));
    }
    let rewrites = watched.rewrites(NAD, &net(), seconds(2.0)).unwrap();
    assert_eq!(
        (rewrites.managers, rewrites.always),
        (vec!["operator".to_owned()], vec!["/spec/config#/vlan".to_owned()])
    );
    assert!(rewrites.fields.is_empty());
    // A single reverted change is not a write loop.
    let mine = json!({"f:spec": {"f:config": {}}});
    record(&mut watched, &net(), &nad(20, None, 70, &[("operator", "2026-11-01T08:00:00Z", mine)]), seconds(1.0));
    let rewrites = watched.rewrites(NAD, &net(), seconds(2.0)).unwrap();
    assert!(watched.timeline(NAD, &net()).any(|write| write.flipped == ["/spec/config#/vlan"]));
    assert_eq!((rewrites.fields, rewrites.always), (Vec::new(), vec!["/spec/config#/vlan".to_owned()]));
}

#[test]
fn reports_reverted_fields_and_ignores_counters() {
    let object = |spec: Value, status: Value| json!({"metadata": {}, "spec": spec, "status": status});
    let ready =
        |state: &str, at: &str| json!({"conditions": [{"type": "Ready", "status": state, "lastTransitionTime": at}]});
    let config = |text: &str| object(json!({"config": text}), json!({}));
    type Fields = &'static [&'static str];
    let table: [(&str, [Value; 3], Fields, Fields); 9] = [
        ("there and back", [5, 6, 5].map(|x| object(json!({"x": x}), json!({}))), &["/spec/x"], &["/spec/x"]),
        ("onwards", [5, 6, 7].map(|x| object(json!({"x": x}), json!({}))), &["/spec/x"], &[]),
        ("only now", [5, 5, 6].map(|x| object(json!({"x": x}), json!({}))), &["/spec/x"], &[]),
        (
            "removed and added again",
            [json!({"a": {"b": 1}}), json!({}), json!({"a": {"b": 1}})].map(|spec| object(spec, json!({}))),
            &["/spec/a/b"],
            &["/spec/a/b"],
        ),
        (
            "conditions, without their times",
            [ready("True", "1"), ready("False", "2"), ready("True", "3")].map(|status| object(json!({}), status)),
            &["/status/conditions/0/status"],
            &["/status/conditions/0/status"],
        ),
        ("times alone", ["1", "2", "1"].map(|at| object(json!({}), ready("True", at))), &[], &[]),
        (
            "in a config",
            [r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, r#"{ "a":{"b":1}}"#].map(config),
            &["/spec/config#/a/b"],
            &["/spec/config#/a/b"],
        ),
        (
            "a config's blanks",
            [r#"{"a":1}"#, r#"{ "a":1}"#, r#"{"a":1}"#].map(config),
            &["/spec/config"],
            &["/spec/config"],
        ),
        ("no config", ["x", "y", "x"].map(config), &["/spec/config"], &["/spec/config"]),
    ];
    for (what, versions, fields, flipped) in table {
        let [before_last, before, now] = versions.map(|version| ObjectVersion::read(&version.to_string()).unwrap());
        let change = VersionDiff::between(Some(&before_last), Some(&before), &now);
        assert_eq!(change.fields, fields, "{what}");
        assert_eq!(change.flipped, flipped, "{what}");
    }
}

#[test]
fn names_the_writer_with_its_operation() {
    let entry = |manager: &str, how: &str, part: &str, time: &str, fields: Value| {
        let mut entry = json!({"manager": manager, "operation": how, "time": time, "fieldsV1": fields});
        if !part.is_empty() {
            entry["subresource"] = json!(part);
        }
        entry
    };
    let object = |x: Value, y: Value, entries: &[Value]| {
        json!({"metadata": {"managedFields": entries}, "spec": x, "status": y}).to_string()
    };
    let spec = || json!({"f:spec": {"f:x": {}}});
    let status = || json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}}});
    let (early, late) = ("2026-11-01T08:00:00Z", "2026-11-01T08:00:09Z");
    let table = [
        ("an update", json!({"x": 2}), json!({}), vec![entry("a", "Update", "", early, spec())], ("a", false)),
        ("an apply", json!({"x": 2}), json!({}), vec![entry("a", "Apply", "", early, spec())], ("a (apply)", false)),
        (
            "a status, though the spec's writer is newer",
            json!({"x": 1}),
            json!({"conditions": [{"status": "True"}]}),
            vec![entry("a", "Update", "", late, spec()), entry("b", "Update", "status", early, status())],
            ("b (status)", false),
        ),
        (
            "a part of what is atomic",
            json!({"x": {"y": 2}}),
            json!({}),
            vec![entry("a", "Update", "", early, spec())],
            ("a", false),
        ),
        ("nothing that counts", json!({"x": 1}), json!({}), vec![entry("a", "Update", "", early, spec())], ("a", true)),
        ("nobody is recorded", json!({"x": 2}), json!({}), vec![], ("", false)),
        (
            "who is newest did not write this",
            json!({"x": 2}),
            json!({}),
            vec![
                entry("a", "Update", "", early, spec()),
                entry("b", "Update", "", late, json!({"f:spec": {"f:z": {}}})),
            ],
            ("a", false),
        ),
    ];
    let before = ObjectVersion::read(&object(json!({"x": 1}), json!({}), &[])).unwrap();
    for (what, x, y, entries, (manager, is_presumed)) in table {
        let now = ObjectVersion::read(&object(x, y, &entries)).unwrap();
        let writer = VersionDiff::between(None, Some(&before), &now).writer;
        assert_eq!(writer, ChangeAuthor { manager: manager.to_owned(), is_presumed }, "{what}");
    }
}

#[test]
fn ignores_known_and_missing_versions() {
    let mut watched = RewriteTracker::new(WINDOW);
    for number in 0..20 {
        record(&mut watched, &net(), &nad(7, None, 5, &[]), seconds(f64::from(number)));
    }
    assert_eq!(watched.rewrites(NAD, &net(), seconds(20.0)).unwrap().count, 1);
    let other = named("other");
    for text in ["", "{", "5", "{}", r#"{"metadata":5}"#, r#"{"metadata":{}}"#] {
        record(&mut watched, &other, text, seconds(1.0));
    }
    assert_eq!(watched.rewrites(NAD, &other, seconds(1.0)), None);
}

#[test]
fn rate_uses_a_sliding_window() {
    let mut watched = RewriteTracker::new(WINDOW);
    let mut counts = Vec::new();
    for number in 0..30 {
        let at = seconds(f64::from(number) * 10.0);
        record(&mut watched, &net(), &nad(number as usize, None, 5, &[]), at);
        counts.push(watched.rewrites(NAD, &net(), at).unwrap().count);
    }
    assert_eq!(counts[..7], [1, 2, 3, 4, 5, 6, 6]);
    assert_eq!(watched.rewrites(NAD, &net(), seconds(290.0)).unwrap().within, WINDOW);
    // A clock that stops or goes back does no harm.
    record(&mut watched, &net(), &nad(99, None, 5, &[]), seconds(1.0));
    assert_eq!(watched.rewrites(NAD, &net(), seconds(290.0)).unwrap().count, 7);
}

#[test]
fn evicts_idle_objects_first() {
    let mut watched = RewriteTracker::new(WINDOW);
    write_loop(&mut watched, 20);
    let big = format!(r#","status":{{"interfaces":"{}"}}}}"#, "x".repeat(100_000));
    for number in 0..20_000 {
        let (name, at) = (format!("n{number}"), seconds(1.0 + f64::from(number) / 1000.0));
        let text = nad(1, None, 5, &[]);
        record(&mut watched, &named(&name), &text, at);
        // An object that is still written stays tracked, and the text of a large one is shortened.
        if number % 100 == 0 {
            let text = nad(1000 + number as usize, None, number, &[]);
            record(&mut watched, &net(), &format!("{}{big}", text.strip_suffix('}').unwrap()), at);
        }
    }
    assert_eq!(watched.seen.len(), MAX_OBJECTS);
    assert!(watched.rewrites(NAD, &net(), seconds(21.0)).unwrap().count > 100);
    assert!(bytes(&watched) < 1 << 20, "{}", bytes(&watched));
    assert_eq!(watched.timeline(NAD, &net()).last().unwrap().fields, ["/spec/config#/vlan"]);
}

/// The length of the tracked texts.
fn bytes(watched: &RewriteTracker) -> usize {
    let followed = watched.seen.values().filter_map(|seen| seen.followed.as_ref());
    followed
        .map(|followed| followed.before.iter().chain(&followed.before_last).map(ObjectVersion::len).sum::<usize>())
        .sum()
}

#[test]
fn memory_is_bounded_in_a_write_storm() {
    let mut watched = RewriteTracker::new(WINDOW);
    let filler = "y".repeat(12_000);
    for round in 1..6_usize {
        for number in 0..MAX_OBJECTS {
            let name = format!("n{number}");
            let text =
                format!(r#"{{"metadata":{{"resourceVersion":"{round}"}},"spec":{{"a":{round},"b":"{filler}"}}}}"#);
            record(&mut watched, &named(&name), &text, seconds(round as f64));
        }
    }
    assert_eq!(watched.hot(4, seconds(6.0)).len(), MAX_OBJECTS, "all objects are counted");
    let followed = watched.seen.values().filter(|seen| seen.followed.is_some()).count();
    assert_eq!(followed, MAX_TRACKED);
    assert!(bytes(&watched) <= MAX_TRACKED * 2 * (16 << 10));
    // When these are idle, other objects are tracked.
    let last = named("n4095");
    for round in 100..110_u32 {
        let text = format!(r#"{{"metadata":{{"resourceVersion":"{round}"}},"spec":{{"a":{}}}}}"#, round % 2);
        record(&mut watched, &last, &text, seconds(f64::from(round)));
    }
    assert_eq!(watched.rewrites(NAD, &last, seconds(110.0)).unwrap().fields, ["/spec/a"]);
}

/// Objects that differ a little.
fn objects() -> impl Strategy<Value = Vec<(u8, String)>> {
    let scalar =
        prop_oneof![Just(json!(null)), any::<i8>().prop_map(|n| json!(n)), "[a-c~/#]{0,3}".prop_map(|s| json!(s))];
    let value = scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("f:[a-c]|[a-c~/]{0,2}|config|conditions", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let version = (0..4_u8, value.clone(), value.clone(), value).prop_map(|(version, spec, status, fields)| {
        json!({
            "metadata": {"resourceVersion": version.to_string(), "managedFields": [{"manager": "m", "fieldsV1": fields}, 5]},
            "spec": spec, "status": status,
        })
        .to_string()
    });
    prop::collection::vec((any::<u8>(), prop_oneof![9 => version, 1 => ".{0,40}"]), 0..40)
}

proptest! {
    #[test]
    fn any_event_sequence_is_counted_and_bounded(events in objects()) {
        let mut watched = RewriteTracker::new(WINDOW);
        for (at, object) in &events {
            record(&mut watched, &net(), object, Duration::from_secs((*at).into()));
        }
        for now in [0, 60, 255, 400] {
            if let Some(rewrites) = watched.rewrites(NAD, &net(), Duration::from_secs(now)) {
                prop_assert!(rewrites.count <= events.len());
                prop_assert!(rewrites.within <= WINDOW && rewrites.fields.len() <= MAX_FIELDS);
            }
        }
        prop_assert!(watched.timeline(NAD, &net()).count() <= MAX_WRITES);
        for write in watched.timeline(NAD, &net()) {
            prop_assert!(write.flipped.iter().all(|field| write.fields.contains(field)));
        }
    }
}

/// A field counts as flipping if it returned to its last but one value in about half of its changes.
#[test]
fn a_field_flips_if_about_half_of_its_changes_return() {
    let mut seen = [false; 2];
    for onwards in 0..8 {
        let values = [1, 2, 1, 2, 1, 2].into_iter().chain(3..3 + onwards);
        let mut watched = RewriteTracker::new(WINDOW);
        for (number, vlan) in values.enumerate() {
            let mine = json!({"f:spec": {"f:config": {}}});
            let text = nad(number + 1, None, vlan, &[("operator", "2026-11-01T08:00:00Z", mine)]);
            record(&mut watched, &net(), &text, seconds(1.0));
        }
        let rewrites = watched.rewrites(NAD, &net(), seconds(2.0)).unwrap();
        let times = watched.timeline(NAD, &net()).filter(|write| !write.fields.is_empty()).count();
        let back = watched.timeline(NAD, &net()).filter(|write| !write.flipped.is_empty()).count();
        // Of an odd number of changes, the smaller half is enough.
        let is_half = back >= times / 2;
        assert_eq!(!rewrites.fields.is_empty(), is_half, "{back} of {times} changes: {rewrites:?}");
        seen[usize::from(is_half)] = true;
    }
    assert_eq!(seen, [true, true]);
}
