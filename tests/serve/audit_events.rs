//! The API server's audit events at `POST /audit-events`: they are counted and shown, and hostile ones are rejected.

use std::fs;
use std::time::Duration;

use nadmit::server::Limits;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::certificates::TestAuthority;
use super::client::{Client, Http, block_on};
use super::harness::{TIMEOUT, TestServer};
use super::in_process::InProcess;
use super::reviews::example;

const PATH: &str = "/audit-events";
const TAKEN: &str = "nadmit_audit_batches_total{result=\"taken\"}";

/// A blind write to the status of a node state, which gets that version.
fn event(agent: &str, node: &str, version: u32) -> Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
        "requestURI": format!("/apis/sriovnetwork.openshift.io/v1/namespaces/o/sriovnetworknodestates/{node}/status"),
        "verb": "patch", "user": {"username": "jane"}, "userAgent": agent,
        "objectRef": {"resource": "sriovnetworknodestates", "namespace": "o", "name": node, "apiGroup": "sriovnetwork.openshift.io", "subresource": "status"},
        "responseStatus": {"code": 200},
        "requestObject": {"status": {"syncStatus": "x"}},
        "responseObject": {"metadata": {"resourceVersion": version.to_string()}},
        "requestReceivedTimestamp": format!("2026-11-16T20:23:{:02}.000000Z", version % 60),
        "stageTimestamp": format!("2026-11-16T20:23:{:02}.001000Z", version % 60),
    })
}

fn batch(events: &[Value]) -> String {
    json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": events}).to_string()
}

#[test]
fn events_are_counted_and_shown() {
    let server = TestServer::start(&["--audit-events"]);
    assert!(!server.metrics_text().contains("nadmit_audit_loops"), "the metric is unknown before the first event");
    let events: Vec<Value> = (1..=12).map(|version| event("reporter/v1", "a", version)).collect();
    assert_eq!(server.post(PATH, batch(&events)).status, 200);
    // The same version again means that nothing changed. Reads, and values that are not events, do not count.
    let mut again = event("reporter/v1", "a", 12);
    again["requestReceivedTimestamp"] = json!("2026-11-16T20:23:13Z");
    let mut read = event("reporter/v1", "a", 13);
    read["verb"] = json!("get");
    assert_eq!(server.post(PATH, batch(&[again, read, json!("nonsense"), json!({"objectRef": 7})])).status, 200);

    let answer = server.get(PATH);
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    let report = answer.json();
    let current = &report["current"];
    assert_eq!(report["previous"], Value::Null);
    assert_eq!(current["totals"]["blind"], 13, "{report:#}");
    assert_eq!(current["totals"]["unchanged"], 1, "{report:#}");
    assert_eq!(current["writers"][0]["agent"], "reporter/v1");
    assert_eq!(current["loops"][0]["object"], "o/a");
    assert_eq!((&current["log"]["lines"], &current["log"]["unreadable"]), (&json!(16), &json!(1)));
    for (series, value) in [
        (TAKEN, 2.0),
        ("nadmit_audit_writes_total{outcome=\"changed\"}", 11.0),
        ("nadmit_audit_writes_total{outcome=\"taken\"}", 1.0),
        ("nadmit_audit_writes_total{outcome=\"unchanged\"}", 1.0),
        ("nadmit_audit_blind_writes_total{way=\"merge_patch\"}", 13.0),
        ("nadmit_audit_loops", 1.0),
    ] {
        assert_eq!(server.metric(series), value, "{series}\n{}", server.metrics_text());
    }
}

/// Without the flag, the path does not exist.
#[test]
fn audit_events_are_off_by_default() {
    let server = TestServer::shared();
    assert_eq!(server.post(PATH, batch(&[])).status, 404);
    assert_eq!(server.get(PATH).status, 404);
}

#[test]
fn hostile_batches_are_rejected() {
    let server = TestServer::start(&["--audit-events"]);
    assert_eq!(server.post(PATH, batch(&[event("a", "a", 1)])).status, 200);
    let before = server.get(PATH).text();
    let good = batch(&[event("b", "b", 1)]);
    let deep = format!(r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":{}"#, "[".repeat(1 << 20));
    let mut broken = vec![
        (Vec::new(), 400),
        (b"\xff\xfe".to_vec(), 400),
        (b"[]".to_vec(), 400),
        (b"null".to_vec(), 400),
        (b"{}".to_vec(), 400),
        (good.replace("EventList", "PodList").into_bytes(), 400),
        (good.replace("audit.k8s.io/v1", "audit.k8s.io/v2").into_bytes(), 400),
        (format!("{good}{good}").into_bytes(), 400),
        (example("review").to_vec(), 400),
        (deep.into_bytes(), 400),
        (vec![b' '; 9_000_000], 413),
    ];
    // A truncated batch counts nothing.
    broken.extend((0..good.len()).step_by(97).map(|end| (good.as_bytes()[..end].to_vec(), 400)));
    let count = broken.len() as f64;
    for (body, status) in broken {
        let beginning = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        block_on(async {
            let mut client = server.connect(Http::One).await;
            match client.post(PATH, body).await {
                Ok(answer) => assert_eq!(answer.status, status, "{beginning}"),
                // A client that is still sending when it is rejected may miss the response.
                Err(error) => assert_eq!(status, 413, "{beginning}: {error}"),
            }
        });
    }
    // An unusual value inside a batch either is an event or is ignored.
    let odd = json!({"verb": "patch", "stage": "ResponseComplete", "objectRef": {"apiGroup": "sriovnetwork.openshift.io"}, "requestReceivedTimestamp": "never", "responseStatus": {"code": -1}});
    assert_eq!(server.get(PATH).text(), before);
    assert_eq!(server.post(PATH, batch(&[odd, json!(null), json!([])])).status, 200);
    assert_eq!(server.post("/mutate", example("review")).status, 200, "reviews are answered as before");
    let rejected = ["unreadable", "too_large"]
        .map(|result| server.metric(&format!("nadmit_audit_batches_total{{result=\"{result}\"}}")));
    assert_eq!(rejected.iter().sum::<f64>(), count);
    assert!(!server.metrics_text().contains("nadmit_reviews_unanswered_total{"), "no review failed");
}

#[test]
fn callers_must_show_their_certificate() {
    let ours = TestAuthority::new("ours");
    let server = TestServer::start_with(|directory| {
        let ca = directory.join("callers.crt");
        fs::write(&ca, ours.pem()).unwrap();
        ["--audit-events", "--client-ca", ca.to_str().unwrap()].map(str::to_owned).to_vec()
    });
    assert_eq!(server.post(PATH, batch(&[event("a", "a", 1)])).status, 403);
    assert_eq!(server.get(PATH).status, 403);
    let trust = server.trust().showing(&ours.issue("kube-apiserver", &[]));
    block_on(async {
        let mut client = Client::connect(server.https, &trust, Http::Two).await.unwrap();
        assert_eq!(client.post(PATH, batch(&[event("a", "a", 1)])).await.unwrap().status, 200);
        let report = client.send("GET", PATH, &[], Vec::new()).await.unwrap().json();
        assert_eq!(report["current"]["totals"]["blind"], 1, "the rejected batch was not counted");
    });
    assert_eq!(server.metric("nadmit_audit_batches_total{result=\"unknown_caller\"}"), 2.0);
}

/// Batches that never end leave capacity for reviews.
#[test]
fn reviews_come_first() {
    block_on(async {
        let patient = Limits { body_grace: TIMEOUT, body_arrives: TIMEOUT, ..Limits::default() };
        let server = InProcess::within(Limits { audit_batches: 1, ..patient }).await;
        let mut held = server.trust.open(server.https, Http::One).await.unwrap();
        held.write_all(b"POST /audit-events HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").await.unwrap();
        let mut client = server.connect().await;
        let busy = async {
            loop {
                let answer = client.post("/audit-events?timeout=100ms", batch(&[])).await.unwrap();
                if answer.status == 429 {
                    assert_eq!(answer.header("retry-after"), "1");
                    return;
                }
            }
        };
        timeout(TIMEOUT, busy).await.expect("another batch was not rejected");
        assert_eq!(server.connect().await.post("/mutate", example("review")).await.unwrap().status, 200);
        drop(held);
        let free = async { while client.post(PATH, batch(&[])).await.unwrap().status != 200 {} };
        timeout(TIMEOUT, free).await.expect("no batch was accepted again");
    });
}

/// The counts are dropped with their period; the known versions of objects are not.
#[test]
fn audit_event_counts_are_bounded() {
    block_on(async {
        let period = Duration::from_millis(50);
        let server = InProcess::within(Limits { audit_period: period, ..Limits::default() }).await;
        let mut client = server.connect().await;
        assert_eq!(client.post(PATH, batch(&[event("a", "a", 1)])).await.unwrap().status, 200);
        let dropped = async {
            loop {
                let report = client.send("GET", PATH, &[], Vec::new()).await.unwrap().json();
                if [&report["current"], &report["previous"]].iter().all(|period| period["totals"]["blind"] == 0) {
                    return;
                }
            }
        };
        timeout(TIMEOUT, dropped).await.expect("the counts of the period were not dropped");
        let mut again = event("a", "a", 1);
        again["requestReceivedTimestamp"] = json!("2026-11-16T20:24:00Z");
        assert_eq!(client.post(PATH, batch(&[again])).await.unwrap().status, 200);
        assert!(server.metrics().await.contains("nadmit_audit_writes_total{outcome=\"unchanged\"} 1"));
    });
}
