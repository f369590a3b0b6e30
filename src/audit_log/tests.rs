//! Events as the API server writes them, and their classification.

use serde_json::{Value, json};

use crate::audit_log::event::AuditEvent;
use crate::audit_log::lines::Line;
use crate::audit_log::objects::MAX_OBJECTS;
use crate::audit_log::report::Report;
use crate::audit_log::running::{Batch, BatchError, EventCounter};
use crate::audit_log::tally::{MAX_AGENTS, OTHERS};
use crate::audit_log::write::{ClassifiedWrite, Proof, WriteMethod, WriteOutcome};
use crate::audit_log::{LogScan, LogScope};

/// A status write at level RequestResponse.
fn status(verb: &str, query: &str, code: u16, body: &Value) -> Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "2d0668a5", "stage": "ResponseComplete",
        "requestURI": format!("/apis/sriovnetwork.openshift.io/v1/namespaces/sriov/sriovnetworknodestates/b/status{query}"),
        "verb": verb,
        "user": {"username": "jane", "groups": ["system:masters"]},
        "userAgent": "writer/v1",
        "objectRef": {"resource": "sriovnetworknodestates", "namespace": "sriov", "name": "b", "apiGroup": "sriovnetwork.openshift.io", "apiVersion": "v1", "subresource": "status"},
        "responseStatus": {"metadata": {}, "code": code},
        "requestObject": body,
        "requestReceivedTimestamp": "2026-11-16T20:23:05.064935Z",
        "stageTimestamp": "2026-11-16T20:23:05.083707Z",
    })
}

fn with(mut event: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    event.pointer_mut(parent).unwrap()[key] = value;
    event
}

/// An event at a second, answered a millisecond later, with the stored version.
fn stored(event: Value, second: u32, version: &str) -> Value {
    let at = |ms: u32| json!(format!("2026-11-16T20:{:02}:{:02}.{ms:03}000Z", second / 60, second % 60));
    let event = with(event, "/requestReceivedTimestamp", at(0));
    let event = with(event, "/stageTimestamp", at(1));
    with(
        event,
        "/responseObject",
        json!({"kind": "X", "metadata": {"managedFields": [{"a": "}"}], "resourceVersion": version}}),
    )
}

fn scanned(events: &[Value]) -> LogScan {
    let mut scan = LogScan::new(LogScope::default());
    for event in events {
        scan.line(Line::Whole(event.to_string().as_bytes()));
    }
    scan
}

/// At the levels without bodies the version of a PUT is in the reference to the object.
#[test]
fn stated_version_is_read_from_the_object_reference() {
    let event = status("update", "", 200, &Value::Null);
    for (version, want) in [(json!("7"), Some("7")), (json!(""), None), (Value::Null, None)] {
        let event = with(event.clone(), "/objectRef/resourceVersion", version).to_string();
        let read = AuditEvent::read(&event, &LogScope::default()).unwrap().unwrap();
        assert_eq!(read.stated(), want);
        let proof = if want.is_some() { Proof::Version } else { Proof::Unknown };
        assert_eq!(ClassifiedWrite::of(&read).unwrap().proof, proof);
    }
}

#[test]
fn classifies_what_a_write_proves() {
    let merge = |metadata: Value| json!({"metadata": metadata, "status": {"syncStatus": "x"}});
    let named = |version: Value| json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "b", "resourceVersion": version}, "status": {}});
    let operations = |first: Value| json!([first, {"op": "replace", "path": "/status/syncStatus", "value": "x"}]);
    let on_version =
        |op: &str, value: &str| operations(json!({"op": op, "path": "/metadata/resourceVersion", "value": value}));
    let copied = |path: &str| operations(json!({"op": "copy", "path": path, "from": "/status/seen"}));
    let apply = "?fieldManager=m";
    let force = "?fieldManager=m&force=true";
    use Proof::*;
    use WriteMethod::*;
    use WriteOutcome::*;
    // (verb, query, code, body, the class)
    let table = [
        ("update", "", 200, named(json!("7")), (Put, Version, Taken)),
        ("update", "", 409, named(json!("7")), (Put, Version, Stale)),
        ("update", "", 200, named(Value::Null), (Put, Nothing, Taken)),
        ("update", "", 200, Value::Null, (Put, Unknown, Taken)),
        ("update", "", 422, named(Value::Null), (Put, Nothing, Refused)),
        ("patch", "", 200, json!({"status": {}}), (MergePatch, Nothing, Taken)),
        ("patch", "", 200, merge(json!({"uid": "u"})), (MergePatch, Nothing, Taken)),
        ("patch", "", 200, merge(json!({"resourceVersion": "7"})), (MergePatch, Version, Taken)),
        ("patch", "", 409, merge(json!({"resourceVersion": "7"})), (MergePatch, Version, Stale)),
        ("patch", "", 422, merge(json!({"resourceVersion": ""})), (MergePatch, Nothing, Refused)),
        ("patch", apply, 200, json!({"status": {}}), (MergePatch, Nothing, Taken)),
        (
            "patch",
            "",
            200,
            operations(json!({"op": "add", "path": "/status/a", "value": 1})),
            (JsonPatch, Nothing, Taken),
        ),
        ("patch", "", 200, on_version("test", "7"), (JsonPatch, Version, Taken)),
        ("patch", "", 200, on_version("replace", "7"), (JsonPatch, Version, Taken)),
        ("patch", "", 409, on_version("add", "7"), (JsonPatch, Version, Stale)),
        // The version may be tested by any operation of the patch.
        ("patch", "", 422, on_version("test", "7"), (JsonPatch, Version, Refused)),
        ("patch", "", 422, on_version("remove", ""), (JsonPatch, Nothing, Refused)),
        (
            "patch",
            "",
            200,
            operations(json!({"op": "test", "path": "/status/a", "value": 1})),
            (JsonPatch, Values, Taken),
        ),
        // What a copied version was compared with is unknown.
        ("patch", "", 200, copied("/metadata/resourceVersion"), (JsonPatch, Values, Taken)),
        ("patch", "", 200, copied("/status/a"), (JsonPatch, Nothing, Taken)),
        (
            "patch",
            "",
            409,
            operations(json!({"op": "add", "path": "/metadata", "value": {"name": "b", "resourceVersion": "7"}})),
            (JsonPatch, Version, Stale),
        ),
        ("patch", apply, 200, named(Value::Null), (Apply, Nothing, Taken)),
        ("patch", "?force=false&fieldManager=m", 200, named(Value::Null), (Apply, Nothing, Taken)),
        ("patch", force, 200, named(Value::Null), (ForcedApply, Nothing, Taken)),
        ("patch", force, 200, named(json!("7")), (ForcedApply, Version, Taken)),
        ("patch", force, 409, named(json!("7")), (ForcedApply, Version, Stale)),
        ("patch", apply, 409, named(Value::Null), (Apply, Nothing, Conflict)),
        ("patch", "", 200, Value::Null, (Patch, Unknown, Taken)),
        ("create", "", 201, named(Value::Null), (Create, NotNeeded, Taken)),
    ];
    for (verb, query, code, body, (way, proof, outcome)) in table {
        let line = status(verb, query, code, &body).to_string();
        let event = AuditEvent::read(&line, &LogScope::default()).unwrap().unwrap();
        let write = ClassifiedWrite::of(&event).unwrap();
        assert_eq!(write, ClassifiedWrite { way, proof, outcome, is_status: true }, "{verb}{query} {code} {body}");
    }
}

#[test]
fn denier_is_derived_from_the_response_message() {
    let versioned = json!({"metadata": {"resourceVersion": "7"}});
    for (code, message, want) in [
        (409, "admission webhook \"validate.nadmit.io\" denied the request: stale", WriteOutcome::Denied),
        (403, "admission webhook \"x\" denied the request", WriteOutcome::Denied),
        (409, "Apply failed with 1 conflict: conflict with \"m\"", WriteOutcome::Conflict),
        (409, "Operation cannot be fulfilled on x \"b\": the object has been modified", WriteOutcome::Stale),
        (403, "jane cannot patch", WriteOutcome::Refused),
    ] {
        let event = with(status("patch", "", code, &versioned), "/responseStatus/message", json!(message));
        let line = event.to_string();
        let event = AuditEvent::read(&line, &LogScope::default()).unwrap().unwrap();
        assert_eq!(ClassifiedWrite::of(&event).unwrap().outcome, want, "{message}");
    }
}

#[test]
fn skips_events_out_of_scope() {
    let blind = status("patch", "", 200, &json!({"status": {}}));
    let table = [
        (blind.clone(), 1),
        (status("patch", "?dryRun=All", 200, &json!({"status": {}})), 0),
        (status("delete", "", 200, &Value::Null), 0),
        (status("get", "", 200, &Value::Null), 0),
        (with(blind.clone(), "/stage", json!("ResponseStarted")), 0),
        (with(blind.clone(), "/stage", json!("Panic")), 1),
        (with(blind.clone(), "/objectRef/apiGroup", json!("apps")), 0),
        (json!({}), 0),
        (json!({"kind": "Event"}), 0),
    ];
    for (event, writes) in table {
        let scan = scanned(std::slice::from_ref(&event));
        assert_eq!(Report::of(&scan, Vec::new(), 10).totals.writes, writes, "{event}");
        assert_eq!((scan.lines, scan.unreadable), (1, 0), "{event}");
    }
    let mut everything = LogScan::new(LogScope::of_groups(vec!["*".to_owned()]));
    everything.line(Line::Whole(with(blind, "/objectRef/apiGroup", json!("apps")).to_string().as_bytes()));
    assert_eq!(Report::of(&everything, Vec::new(), 10).totals.blind, 1);
}

/// A version in nadmit's annotation proves something if nadmit compared it and would have denied the write.
#[test]
fn write_compared_by_nadmit_is_not_blind() {
    for (class, mode, blind) in
        [("guarded", "enforce", 0), ("guarded", "audit", 1), ("unproven", "enforce", 1), ("owned_apply", "enforce", 1)]
    {
        let annotations = json!({"authorization.k8s.io/decision": "allow", "status.nadmit.io/class": class, "status.nadmit.io/mode": mode});
        let event = with(status("patch", "", 200, &json!({"status": {}})), "/annotations", annotations);
        let totals = Report::of(&scanned(&[event]), Vec::new(), 10).totals;
        assert_eq!(totals.blind, blind, "{class} {mode}");
    }
}

#[test]
fn damaged_lines_are_counted() {
    let line = status("patch", "", 200, &json!({"status": {}})).to_string();
    let mut scan = LogScan::new(LogScope::default());
    for bytes in [b"nonsense".as_slice(), b"\xff\xfe", b"[1]", format!("{line}{line}").as_bytes()] {
        scan.line(Line::Whole(bytes));
    }
    scan.line(Line::Whole(b"  "));
    scan.line(Line::TooLong);
    scan.line(Line::Unfinished(line.get(..line.len() - 5).unwrap().as_bytes()));
    scan.line(Line::Unfinished(line.as_bytes()));
    assert_eq!((scan.lines, scan.unreadable, scan.too_long, scan.torn), (7, 4, 1, 1));
    assert_eq!(Report::of(&scan, Vec::new(), 10).totals.blind, 1);
    // However an event is truncated, the scan does not panic, and counts nothing.
    for end in line.char_indices().map(|(at, _)| at) {
        let mut scan = LogScan::new(LogScope::default());
        scan.line(Line::Unfinished(line.get(..end).unwrap().as_bytes()));
        assert_eq!(Report::of(&scan, Vec::new(), 10).totals.writes, 0, "{end}");
    }
}

#[test]
fn writes_that_changed_nothing() {
    let blind = || status("patch", "", 200, &json!({"status": {}}));
    let guarded = |version: &str| status("patch", "", 200, &json!({"metadata": {"resourceVersion": version}}));
    // (events, certainly unchanged, unknown)
    let table: Vec<(&str, Vec<Value>, u64, u64)> = vec![
        ("it says what it read", vec![stored(guarded("5"), 1, "5"), stored(guarded("5"), 2, "6")], 1, 0),
        ("the first one is unknown", vec![stored(blind(), 1, "5")], 0, 1),
        ("the version stays", vec![stored(guarded("4"), 1, "5"), stored(blind(), 2, "5")], 1, 0),
        ("the version moves", vec![stored(guarded("4"), 1, "5"), stored(blind(), 2, "6")], 0, 0),
        ("two at once", vec![stored(guarded("4"), 1, "5"), stored(blind(), 1, "5")], 0, 1),
        ("an older version", vec![stored(guarded("5"), 2, "6"), stored(blind(), 3, "5")], 0, 1),
        ("no answer in the log", vec![stored(guarded("4"), 1, "5"), blind()], 0, 1),
        (
            "logged in another order",
            vec![stored(guarded("5"), 2, "6"), stored(guarded("4"), 1, "5"), stored(blind(), 3, "6")],
            1,
            0,
        ),
    ];
    for (what, events, nothing, unknown) in table {
        let totals = Report::of(&scanned(&events), Vec::new(), 10).totals;
        assert_eq!((totals.unchanged, totals.unchanged_unknown), (nothing, unknown), "{what}");
    }
}

#[test]
fn a_failed_test_is_stale_if_a_newer_version_is_known() {
    let tests = |version: &str| {
        status("patch", "", 422, &json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version}]))
    };
    let before = stored(status("update", "", 200, &json!({"metadata": {"resourceVersion": "4"}})), 1, "5");
    for (version, stale) in [("4", 1), ("5", 0), ("6", 0), ("x", 0)] {
        let totals = Report::of(&scanned(&[before.clone(), tests(version)]), Vec::new(), 10).totals;
        assert_eq!((totals.stale, totals.refused), (stale, 1 - stale), "{version}");
    }
}

#[test]
fn loops_are_those_written_often_within_a_minute() {
    let blind = |agent: &str| with(status("patch", "", 200, &json!({"status": {}})), "/userAgent", json!(agent));
    let every = |seconds: u32, count: u32| -> Vec<Value> {
        let agent = |number| if number % 2 == 0 { "a" } else { "b" };
        (0..count).map(|number| stored(blind(agent(number)), number * seconds, &number.to_string())).collect()
    };
    // (seconds between writes, number of writes, the most within a minute)
    for (seconds, count, per_minute) in
        [(1, 30, 30), (1, 100, 60), (2, 100, 30), (20, 100, 3), (61, 50, 1), (0, 12, 12)]
    {
        let report = Report::of(&scanned(&every(seconds, count)), Vec::new(), 1);
        let found = &report.loops[0];
        assert_eq!((found.per_minute, found.writes), (per_minute, u64::from(count)), "every {seconds} s");
        assert_eq!(found.turns, u64::from(count) - 1);
        assert_eq!(found.writers.iter().map(|writer| writer.writes).sum::<u64>(), u64::from(count));
    }
    assert!(Report::of(&scanned(&every(20, 100)), Vec::new(), 10).loops.is_empty());
}

#[test]
fn memory_is_bounded_for_any_log_size() {
    let mut scan = LogScan::new(LogScope::default());
    let event = status("patch", "", 200, &json!({"status": {}}));
    let hot = event.to_string();
    for number in 0..2 * MAX_OBJECTS {
        let agent = format!("agent-{number}");
        let other =
            with(with(event.clone(), "/userAgent", json!(agent)), "/objectRef/name", json!(format!("o-{number}")));
        scan.line(Line::Whole(other.to_string().as_bytes()));
        scan.line(Line::Whole(hot.as_bytes()));
    }
    let report = Report::of(&scan, Vec::new(), 10);
    assert_eq!(report.totals.blind, 4 * MAX_OBJECTS as u64, "the sum is complete");
    assert_eq!(report.writers.len(), MAX_AGENTS + 1);
    assert!(report.log.has_others && report.writers.iter().any(|writer| writer.agent == OTHERS));
    // No short-lived object counts as a loop, and the real loop is found.
    assert_eq!(report.loops.len(), 1);
    assert!(report.loops[0].writes + report.log.objects_missed >= 2 * MAX_OBJECTS as u64);
    assert!(report.log.objects_missed > 0);
}

#[test]
fn batch_is_rejected_as_a_whole() {
    let event = status("patch", "", 200, &json!({"status": {}}));
    let list = |items: &Value| {
        json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": items}).to_string()
    };
    // (body, lines and blind writes, if it is a batch)
    let table = [
        (list(&json!([event, event])), Some((2, 2))),
        (format!(" {}\n", list(&json!([event]))), Some((1, 1))),
        (list(&json!([{}, 7, event])), Some((3, 1))),
        (list(&json!([])), Some((0, 0))),
        (list(&Value::Null), Some((0, 0))),
        (list(&json!([event])).replace("EventList", "Event"), None),
        (event.to_string(), None),
        (String::new(), None),
        ("[]".to_owned(), None),
        (r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{},]}"#.to_owned(), None),
        (r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{}}"#.to_owned(), None),
    ];
    for (body, want) in table {
        let mut running = EventCounter::new(LogScope::default(), 10);
        let found = Batch::read(body.as_bytes()).ok().map(|batch| {
            running.count(batch, |_, _| ());
            let report = running.report().current;
            (report.log.lines, report.totals.blind)
        });
        assert_eq!(found, want, "{body}");
    }
    assert_eq!(Batch::read(b"\xff"), Err(BatchError::NotText));
    let whole = list(&json!([event]));
    assert!((0..whole.len()).all(|end| Batch::read(&whole.as_bytes()[..end]).is_err()));
}

/// Weeks of events: each hour other agents and other objects, and one object that is always written.
#[test]
fn running_report_covers_the_last_two_periods() {
    let mut running = EventCounter::new(LogScope::default(), 10);
    let event = |agent: &str, name: &str, second, version: u32| {
        let event = with(status("patch", "", 200, &json!({"status": {}})), "/userAgent", json!(agent));
        stored(with(event, "/objectRef/name", json!(name)), second, &version.to_string())
    };
    for period in 0..20_u32 {
        if period > 0 {
            running.rotate();
        }
        let mut items: Vec<_> = (0..1000)
            .map(|number| event(&format!("a-{period}-{number}"), &format!("o-{period}-{number}"), number, 1))
            .collect();
        // Written once per period, and never changed.
        items.push(event("steady", "always", period, 7));
        let body = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": items}).to_string();
        let (mut unchanged, mut writes) = (0, 0);
        running.count(Batch::read(body.as_bytes()).unwrap(), |write, change| {
            writes += 1;
            unchanged += usize::from(write.outcome_name(change) == "unchanged");
        });
        assert_eq!((writes, unchanged), (1001, usize::from(period > 0)), "period {period}");
    }
    let report = running.report();
    let previous = report.previous.unwrap();
    for (period, report) in [(19, &report.current), (18, &previous)] {
        assert_eq!(report.totals.writes, 1001);
        assert_eq!(report.log.objects_missed, 0, "older objects are evicted");
        assert!(report.writers.iter().any(|writer| writer.agent == format!("a-{period}-0")));
        assert_eq!(report.writers.len(), MAX_AGENTS + 1);
    }
}

/// Only what an apply must state makes a patch with a field manager an apply.
#[test]
fn an_apply_names_kind_and_version() {
    let way = |query: &str, body: &Value| {
        let line = status("patch", query, 200, body).to_string();
        let event = AuditEvent::read(&line, &LogScope::default()).unwrap().unwrap();
        ClassifiedWrite::of(&event).unwrap().way
    };
    let whole = json!({"apiVersion": "v1", "kind": "K", "status": {}});
    assert_eq!(way("?fieldManager=m", &whole), WriteMethod::Apply);
    assert_eq!(way("", &whole), WriteMethod::MergePatch);
    for half in [json!({"kind": "K", "status": {}}), json!({"apiVersion": "v1", "status": {}})] {
        assert_eq!(way("?fieldManager=m", &half), WriteMethod::MergePatch, "{half}");
    }
}

#[test]
fn only_so_many_users_of_a_writer_are_named() {
    use crate::audit_log::tally::MAX_USERS;
    for (count, has_more) in [(MAX_USERS, false), (MAX_USERS + 1, true)] {
        let write = |number: usize| {
            let event = status("patch", "", 200, &json!({"status": {}}));
            with(event, "/user/username", json!(format!("user-{number}")))
        };
        // The first one writes twice.
        let events: Vec<_> = (0..count).chain([0]).map(write).collect();
        let report = Report::of(&scanned(&events), Vec::new(), 1000);
        let writer = &report.writers[0];
        assert_eq!((writer.users.len(), writer.has_more_users), (MAX_USERS, has_more), "{count}");
    }
}
