//! A small log with every kind of write, in every format.

use serde_json::json;

use super::*;
use crate::audit_log::LogScope;
use crate::audit_log::lines::Line;
use crate::policy::Action;

/// Seconds, user agent, verb and query, code, body, stored version.
type LoggedWrite<'a> = (u32, &'a str, (&'a str, &'a str), u16, serde_json::Value, &'a str);

fn event((second, agent, (verb, query), code, body, version): &LoggedWrite<'_>) -> String {
    let at = |millisecond: u32| format!("2026-11-16T20:{:02}:{:02}.{millisecond:03}000Z", second / 60, second % 60);
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
        "requestURI": format!("/apis/sriovnetwork.openshift.io/v1/namespaces/sriov/sriovnetworknodestates/b/status{query}"),
        "verb": verb, "user": {"username": format!("user-of-{agent}")}, "userAgent": agent,
        "objectRef": {"resource": "sriovnetworknodestates", "namespace": "sriov", "name": "b",
            "apiGroup": "sriovnetwork.openshift.io", "apiVersion": "v1", "subresource": "status"},
        "responseStatus": {"code": code}, "requestObject": body,
        "responseObject": {"metadata": {"resourceVersion": version}},
        "requestReceivedTimestamp": at(0), "stageTimestamp": at(1),
    })
    .to_string()
}

fn report() -> Report {
    let read = |version: &str| json!({"metadata": {"resourceVersion": version}, "status": {"a": 1}});
    let blind = json!({"status": {"a": 2}});
    let apply = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "b"}, "status": {}});
    let tests_value = json!([{"op": "test", "path": "/status/a", "value": 1}]);
    let put = ("update", "");
    let patch = ("patch", "");
    let mut writes: Vec<LoggedWrite<'_>> = vec![
        (0, "daemon", put, 200, read("1"), "2"),
        (1, "script \u{1b}[2J", patch, 200, blind.clone(), "3"),
        (2, "daemon", put, 409, read("2"), ""),
        (3, "daemon", put, 200, read("3"), "3"),
        (4, "applier", ("patch", "?fieldManager=a"), 200, apply.clone(), "4"),
        (5, "applier", ("patch", "?fieldManager=a&force=true"), 200, apply.clone(), "5"),
        (6, "applier", ("patch", "?fieldManager=a"), 409, apply, ""),
        (7, "script \u{1b}[2J", patch, 200, tests_value, "6"),
        (8, "blind", put, 200, serde_json::Value::Null, "7"),
        (9, "nobody", patch, 403, blind.clone(), ""),
        (10, "daemon", ("patch", "?dryRun=All"), 200, blind, "7"),
    ];
    let after = read("7");
    let names = ["daemon", "script \u{1b}[2J"];
    for number in 0..8_usize {
        writes.push((11 + u32::try_from(number).unwrap(), names[number % 2], put, 200, after.clone(), "8"));
    }
    let mut scan = LogScan::new(LogScope::default());
    for write in &writes {
        scan.line(Line::Whole(event(write).as_bytes()));
    }
    scan.line(Line::Whole(b"not an event"));
    scan.line(Line::TooLong);
    scan.line(Line::Unfinished(b"{\"kind\":"));
    Report::of(&scan, vec!["logs/audit <1>.log".to_owned()], 10)
}

#[test]
fn tables() {
    insta::assert_snapshot!(report().table());
}

#[test]
fn json_has_every_count() {
    let value: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn sarif_points_to_the_log() {
    let text = report().sarif();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value.pointer("/runs/0/results")).unwrap());
    assert_eq!(value.pointer("/runs/0/invocations/0/executionSuccessful"), Some(&json!(false)));
    let empty = Report::of(&LogScan::new(LogScope::default()), Vec::new(), 10).sarif();
    let value: serde_json::Value = serde_json::from_str(&empty).unwrap();
    assert_eq!(value.pointer("/runs/0/invocations/0/executionSuccessful"), Some(&json!(true)));
}

/// The page without its style and script, which other tests look at.
#[test]
fn page_has_every_table() {
    let page = report().html();
    let body = page.split_once("<body").unwrap().1.split("<script").next().unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn empty_log_has_no_tables() {
    let report = Report::of(&LogScan::new(LogScope::default()), Vec::new(), 10);
    assert_eq!(report.table(), "no writes\n\n0 of 0 lines are counted writes\n");
}

#[test]
fn only_so_many_loops_are_shown() {
    let mut report = report();
    let found = report.loops[0].clone();
    for (loops, want) in [(50, None), (51, Some("… and 1 more")), (60, Some("… and 10 more"))] {
        report.loops = vec![found.clone(); loops];
        assert_eq!(report.table().lines().find(|line| line.starts_with('…')), want, "{loops}");
    }
}

/// A log of which some lines were not read is not judged in full, for either reason.
#[test]
fn sarif_tells_whether_every_line_was_read() {
    for (line, want) in [
        (Line::Whole(b"not an event"), false),
        (Line::TooLong, false),
        (Line::Unfinished(b"{\"kind\":"), true),
        (Line::Whole(b"{}"), true),
    ] {
        let mut scan = LogScan::new(LogScope::default());
        scan.line(line);
        let text = Report::of(&scan, Vec::new(), 10).sarif();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let found = value.pointer("/runs/0/invocations/0/executionSuccessful");
        assert_eq!(found, Some(&json!(want)), "{} {} {}", scan.unreadable, scan.too_long, scan.torn);
    }
}

/// Without force, an apply overwrites only values of its own manager.
#[test]
fn an_apply_without_force_is_only_recorded() {
    let apply = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "b"}, "status": {}});
    for (query, want) in [("?fieldManager=a", Action::Audit), ("?fieldManager=a&force=true", Action::Warn)] {
        let mut scan = LogScan::new(LogScope::default());
        let write: LoggedWrite<'_> = (0, "applier", ("patch", query), 200, apply.clone(), "2");
        scan.line(Line::Whole(event(&write).as_bytes()));
        let report = Report::of(&scan, Vec::new(), 10);
        let actions: Vec<_> = report.findings.iter().map(|found| found.finding.action).collect();
        assert_eq!(actions, [want], "{query}");
    }
}
