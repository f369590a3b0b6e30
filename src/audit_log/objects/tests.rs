use super::*;
use crate::audit_log::lines::Line;
use crate::audit_log::{LogScan, LogScope};

/// A blind write of the object of that name; it stores a version.
fn write(scan: &mut LogScan, name: &str, agent: &str, second: u32, version: &str) {
    let at = |ms: u32| format!("2026-11-16T20:{:02}:{:02}.{ms:03}000Z", second / 60, second % 60);
    let event = serde_json::json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
        "requestURI": "/apis/sriovnetwork.openshift.io/v1/x", "verb": "patch", "user": {"username": "u"}, "userAgent": agent,
        "objectRef": {"resource": "sriovnetworks", "name": name, "apiGroup": "sriovnetwork.openshift.io", "apiVersion": "v1"},
        "responseStatus": {"code": 200}, "requestObject": {"status": {}},
        "responseObject": {"metadata": {"resourceVersion": version}},
        "requestReceivedTimestamp": at(0), "stageTimestamp": at(1),
    });
    scan.line(Line::Whole(event.to_string().as_bytes()));
}

fn limited(limit: usize) -> LogScan {
    let mut scan = LogScan::new(LogScope::default());
    scan.objects = Objects::limited(limit);
    scan
}

fn counts(scan: &LogScan) -> Vec<(&str, u64)> {
    let mut counts: Vec<_> = scan.objects.known.iter().map(|(name, object)| (name.as_ref(), object.writes)).collect();
    counts.sort_unstable();
    counts.into_iter().map(|(name, writes)| (name.rsplit(' ').next().unwrap(), writes)).collect()
}

#[test]
fn objects_that_are_written_often_stay() {
    let mut scan = limited(2);
    for name in ["a", "a", "a", "b"] {
        write(&mut scan, name, "w", 0, "1");
    }
    // Another object costs each one a count; the one without any is dropped.
    write(&mut scan, "c", "w", 0, "1");
    assert_eq!((counts(&scan), scan.objects.missed), (vec![("a", 3), ("c", 1)], 1));
    write(&mut scan, "d", "w", 0, "1");
    assert_eq!((counts(&scan), scan.objects.missed), (vec![("a", 3), ("d", 1)], 2));
    for name in ["d", "d", "e"] {
        write(&mut scan, name, "w", 0, "1");
    }
    // By now the first one has no count left.
    assert_eq!((counts(&scan), scan.objects.missed), (vec![("d", 3), ("e", 1)], 3));
}

#[test]
fn an_object_that_does_not_fit_is_not_counted() {
    let mut scan = limited(1);
    for name in ["a", "a", "b"] {
        write(&mut scan, name, "w", 0, "1");
    }
    assert_eq!((counts(&scan), scan.objects.missed), (vec![("a", 2)], 1));
}

#[test]
fn a_reset_keeps_versions_below_the_limit() {
    for (limit, want) in [(4, vec![("a", 0), ("b", 0)]), (3, vec![("b", 0)])] {
        let mut scan = limited(limit);
        write(&mut scan, "a", "w", 0, "1");
        scan.objects.reset_counts();
        assert_eq!(counts(&scan), [("a", 0)]);
        write(&mut scan, "b", "w", 0, "1");
        scan.objects.missed = 5;
        scan.objects.reset_counts();
        assert_eq!((counts(&scan), scan.objects.missed), (want, 0), "limit {limit}");
        let object = scan.objects.known.values().next().unwrap();
        assert_eq!(object.version.as_deref(), Some("1"));
    }
}

/// Objects that were not written since the reset go first, and nothing is missed.
#[test]
fn idle_objects_are_evicted() {
    let mut scan = limited(4);
    for name in ["a", "b"] {
        write(&mut scan, name, "w", 0, "1");
    }
    scan.objects.reset_counts();
    for name in ["b", "c", "d", "e"] {
        write(&mut scan, name, "w", 0, "1");
    }
    assert_eq!(counts(&scan), [("b", 1), ("c", 1), ("d", 1), ("e", 1)]);
    assert_eq!(scan.objects.missed, 0);
}

#[test]
fn writers_and_last_writes_are_limited() {
    let mut scan = limited(4);
    for (second, agent) in (0..30).zip(["a", "b", "b", "c", "d", "e"].into_iter().cycle()) {
        write(&mut scan, "x", agent, second, &second.to_string());
    }
    let object = scan.objects.known.values().next().unwrap();
    let writes: Vec<u64> = object.writers.iter().map(|(_, writes)| *writes).collect();
    assert_eq!(writes, [5, 10, 5, 5], "of the first four writers");
    assert_eq!((object.writes, object.turns, object.unchanged), (30, 24, 0));
    let recent = object.recent();
    assert_eq!(recent.len(), MAX_RECENT);
    assert_eq!((recent[0].0, recent[MAX_RECENT - 1].0 - recent[0].0), (object.time.0 + 6_000_000, 23_000_000));
    assert_eq!(object.time.1 - object.time.0, 29_000_000);
}

#[test]
fn a_minute_has_six_steps() {
    for (steps, want) in [
        (vec![0, 0, 0], 3),
        (vec![0, 5], 2),
        (vec![0, 6], 1),
        (vec![5, 0], 2),
        (vec![6, 0, 0], 2),
        (vec![0, 1, 2, 3, 4, 5, 6], 6),
        (vec![3, 1, 2], 3),
        (vec![0, 100, 101], 2),
    ] {
        let mut window = Window::default();
        steps.iter().for_each(|step| window.add(1000 + step));
        assert_eq!(window.peak, want, "{steps:?}");
    }
}

/// A version that is answered again was the latest until then, so a write that began before that may have made it.
#[test]
fn the_last_answer_with_a_version_counts() {
    for second in ["7", "6"] {
        let mut scan = limited(4);
        for (at, version) in [(0, "7"), (5, second), (3, "7")] {
            write(&mut scan, "a", "w", at, version);
        }
        let object = scan.objects.known.values().next().unwrap();
        assert_eq!(object.unchanged, 1, "{second}");
    }
}

#[test]
fn a_reset_keeps_when_the_version_was_answered() {
    let mut scan = limited(4);
    write(&mut scan, "a", "w", 5, "7");
    scan.objects.reset_counts();
    // It began before that answer, so it may have made the version.
    write(&mut scan, "a", "w", 3, "7");
    let object = scan.objects.known.values().next().unwrap();
    assert_eq!((object.writes, object.unchanged), (1, 0));
}
