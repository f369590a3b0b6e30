//! Policy changes at run time: modes, a changed file, and the log level.

use std::fs;
use std::time::Instant;

use nadmit::review::Endpoint::{Mutate, Validate};
use nadmit::tls::POLL_INTERVAL;

use super::client::{Client, Http, block_on, raw};
use super::harness::{TestServer, put};
use super::reviews::{DENIED, REPAIRABLE, Reply, TestReview};

const TAKEN: &str = "nadmit_policy_reloads_total{result=\"taken\"}";
const REFUSED: &str = "nadmit_policy_reloads_total{result=\"refused\"}";
const CURRENT: &str = "nadmit_policy_current";

fn validated(server: &TestServer, object: &str) -> Reply {
    block_on(async { TestReview::create(object).ask(&mut server.connect(Http::One).await, Validate).await })
}

#[test]
fn audit_mode_only_reports() {
    let server = TestServer::with_policy("mode: audit\nnamespaces:\n- names: [strict]\n  mode: enforce\n");
    block_on(async {
        let mut client: Client = server.connect(Http::One).await;
        for (object, would) in [(REPAIRABLE, "patch"), (DENIED, "deny")] {
            for endpoint in [Mutate, Validate] {
                let question = TestReview::create(object);
                let reply = question.ask(&mut client, endpoint).await;
                assert_eq!((reply.mode.as_str(), reply.decision.as_str()), ("audit", "allow"), "{reply:?}");
                if endpoint == Validate {
                    assert_eq!(reply.would, format!("nad/resource-name-missing={would}"));
                    assert_eq!(reply.rules, "nad/resource-name-missing=warn");
                    let first = &reply.warnings[0];
                    assert!(first.starts_with(&format!("would {would}: ")), "{first}");
                    assert_eq!(server.log_of(&question.uid)["would"], reply.would);
                }
            }
        }
        let strict = DENIED.replace("\"apps\"", "\"strict\"");
        let reply = TestReview::create(&strict).ask(&mut client, Validate).await;
        assert_eq!((reply.mode.as_str(), reply.decision.as_str(), reply.would.as_str()), ("enforce", "deny", ""));
        let reply = TestReview::delete(DENIED).ask(&mut client, Validate).await;
        assert_eq!((reply.mode.as_str(), reply.decision.as_str()), ("audit", "allow"));
    });
}

/// The server detects the change itself.
#[test]
fn policy_reload_rejects_a_broken_file() {
    let server = TestServer::with_policy("mode: audit\n");
    assert!(validated(&server, DENIED).allowed);
    assert_eq!((server.metric(CURRENT), server.metric(TAKEN)), (1.0, 0.0));
    put(&server.policy(), "mode: enforce\n");
    server.wait_for_metric(TAKEN, 1.0);
    assert!(!validated(&server, DENIED).allowed);
    assert_eq!(server.metric(CURRENT), 1.0);

    put(&server.policy(), "mode: audit\nrules:\n  nad/no-such-rule: warn\n");
    server.wait_for_metric(REFUSED, 1.0);
    assert_eq!((server.metric(CURRENT), server.metric(TAKEN)), (0.0, 1.0));
    assert!(!validated(&server, DENIED).allowed, "the last valid policy stays in force");
    let line = server.wait_for_log("about the rejected policy", |line| line["level"] == "ERROR");
    let words = line["error"].as_str().unwrap();
    assert!(words.contains("policy.yaml") && words.contains("line 3") && words.contains("no-such-rule"), "{line}");

    put(&server.policy(), "mode: audit\n");
    server.wait_for_metric(TAKEN, 2.0);
    assert!(validated(&server, DENIED).allowed);
    assert_eq!((server.metric(CURRENT), server.metric(REFUSED)), (1.0, 1.0));
}

/// SIGHUP reloads at once: without it, as many changes in a row would take as many intervals.
#[test]
fn sighup_reloads_immediately() {
    let server = TestServer::with_policy("mode: audit\n");
    let started = Instant::now();
    let changes = 8_u8;
    for change in 1..=changes {
        put(&server.policy(), format!("mode: enforce # {change}\n"));
        server.signal("HUP");
        server.wait_for_metric(TAKEN, f64::from(change));
    }
    assert!(started.elapsed() < POLL_INTERVAL * u32::from(changes - 1), "{:?}", started.elapsed());
    assert!(!validated(&server, DENIED).allowed);
}

/// A ConfigMap that is deleted and restored.
#[test]
fn missing_policy_file_is_logged_once() {
    let server = TestServer::with_policy("mode: audit\n");
    fs::remove_file(server.policy()).unwrap();
    server.signal("HUP");
    server.wait_for_metric(REFUSED, 1.0);
    assert_eq!(server.metric(CURRENT), 0.0);
    assert!(validated(&server, DENIED).allowed, "the last valid policy stays in force");
    put(&server.policy(), "mode: audit\n");
    server.signal("HUP");
    server.wait_for_metric(CURRENT, 1.0);
    assert_eq!(server.metric(REFUSED), 1.0);
}

#[test]
fn policy_sets_the_log_level() {
    let server = TestServer::with_policy("logLevel: info\n");
    let asked = |object: &str| {
        let question = TestReview::create(object);
        block_on(async { question.ask(&mut server.connect(Http::One).await, Validate).await });
        question.uid
    };
    put(&server.policy(), "logLevel: error\n");
    server.signal("HUP");
    server.wait_for_metric(TAKEN, 1.0);
    let quiet = asked(DENIED);
    put(&server.policy(), "logLevel: debug\n");
    server.signal("HUP");
    server.wait_for_metric(TAKEN, 2.0);
    let loud = asked(DENIED);
    server.log_of(&loud);
    block_on(raw(server.https, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"));
    server.wait_for_log("about the handshake", |line| {
        line["level"] == "DEBUG" && line["message"] == "TLS handshake failed"
    });
    // Without a level in the policy, the level of the command line applies again.
    put(&server.policy(), "mode: enforce\n");
    server.signal("HUP");
    server.wait_for_metric(TAKEN, 3.0);
    let usual = asked(DENIED);
    server.log_of(&usual);
    assert!(!server.log_text().contains(&quiet), "{}", server.log_text());
}
