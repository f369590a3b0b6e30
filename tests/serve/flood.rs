//! A client that starts many requests and finishes none does not block others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nadmit::cluster::cache::facts::{FactSource, FactsFuture, FactsQuery};
use nadmit::policy::{Facts, Policy};
use nadmit::review::Endpoint::Mutate;
use nadmit::server::Limits;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::client::{Client, Http, block_on, plain_get};
use super::harness::{TIMEOUT, TestServer};
use super::in_process::{InProcess, token};
use super::reviews::{DENIED, GOOD, TestReview, example};
use super::stalled::{Stalled, Target};

/// The timeout of a kubelet probe.
const PROBE: Duration = Duration::from_secs(1);

/// The limits of a server that cuts off no slow client during the test.
fn patient() -> Limits {
    Limits { body_grace: TIMEOUT, body_arrives: TIMEOUT, ..Limits::default() }
}

async fn waits_for(server: &InProcess, series: &str) {
    let watch = async { while !server.metrics().await.lines().any(|line| line == series) {} };
    timeout(TIMEOUT, watch).await.unwrap_or_else(|_| panic!("never: {series}"));
}

/// A probe on a connection of its own, as the kubelet makes it.
async fn probe(server: &TestServer) -> Duration {
    let began = Instant::now();
    let mut client = Client::connect(server.https, &server.trust(), Http::One).await.expect("a connection");
    let answer = client.send("GET", "/readyz", &[], "").await.expect("an answer");
    assert_eq!(answer.status, 200);
    began.elapsed()
}

#[test]
fn stalled_requests_hold_no_slot() {
    block_on(async {
        let server = InProcess::within(patient()).await;
        let target = Target {
            address: server.https,
            trust: server.trust.clone(),
            path: "/validate".to_owned(),
            length: example("review").len() as u64,
        };
        let _stalled = Stalled::start(&target, 256, 16);
        waits_for(&server, "nadmit_requests_unfinished 512").await;
        let honest = (0..4).map(|_| async {
            let mut client = server.connect().await;
            for _ in 0..100 {
                let answer = client.post("/mutate?timeout=5s", example("review")).await.unwrap();
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        });
        join_all(honest).await;
        assert!(server.metrics().await.lines().any(|line| line == "nadmit_requests_unfinished 512"), "still stalled");
    });
}

/// The same against the binary, which cuts off slow clients and is probed in the meantime.
#[test]
fn stalled_requests_disturb_neither_reviews_nor_probes() {
    let server = TestServer::start(&[]);
    block_on(async {
        let path = "/validate".to_owned();
        let target = Target { address: server.https, trust: server.trust(), path, length: 4_000 };
        let metric = async |series: &str| {
            let text = plain_get(server.metrics, "/metrics").await.text();
            let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse::<f64>().ok());
            value.unwrap_or_default()
        };
        let stalled = Stalled::start(&target, 256, 16);
        let until = Instant::now() + TIMEOUT;
        while metric("nadmit_requests_unfinished").await < 256.0 {
            assert!(Instant::now() < until, "{} begun", stalled.begun());
        }
        // Until each client was cut off at least once.
        let mut client = server.connect(Http::One).await;
        while metric("nadmit_reviews_unanswered_total{reason=\"slow\"}").await < 512.0 {
            assert!(Instant::now() < until, "{} begun", stalled.begun());
            let answer = client.post("/mutate?timeout=5s", example("review")).await.unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let took = probe(&server).await;
            assert!(took < PROBE, "{took:?}");
        }
        assert_eq!(metric("nadmit_reviews_unanswered_total{reason=\"busy\"}").await, 0.0);
    });
}

/// Blocks every review that needs a live read until the test releases it.
struct BlockingSource {
    reached: AtomicUsize,
    go: Semaphore,
}

impl FactSource for BlockingSource {
    fn find<'a>(&'a self, facts: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        self.reached.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            let _go = self.go.acquire().await.unwrap();
            Ok(Some(facts))
        })
    }
}

/// Three API servers behind one address: twice as many writes at once as there are slots, and none is rejected.
#[test]
fn complete_requests_wait_instead_of_failing() {
    block_on(async {
        let held = Arc::new(BlockingSource { reached: AtomicUsize::new(0), go: Semaphore::new(0) });
        let server = InProcess::start(Arc::clone(&held) as _, Policy::default()).await;
        let writes = (0..512).map(|_| async {
            let mut client = server.connect().await;
            client.post("/mutate?timeout=30s", TestReview::create(DENIED).body()).await.unwrap()
        });
        let all = async {
            while held.reached.load(Ordering::Relaxed) < Limits::default().in_flight {
                tokio::task::yield_now().await;
            }
            waits_for(&server, "nadmit_reviews_in_flight 512").await;
            held.go.add_permits(Semaphore::MAX_PERMITS);
        };
        let (answers, ()) = tokio::join!(join_all(writes), all);
        assert!(answers.iter().all(|answer| answer.status == 200), "{:?}", answers.iter().find(|it| it.status != 200));
        assert_eq!(held.reached.load(Ordering::Relaxed), 512);
    });
}

/// A review that waits too long gets 429, early enough for a retry.
#[test]
fn review_gets_429_after_half_its_timeout() {
    block_on(async {
        let held = Arc::new(BlockingSource { reached: AtomicUsize::new(0), go: Semaphore::new(0) });
        let limits = Limits { in_flight: 1, ..Limits::default() };
        let server = InProcess::build(Arc::clone(&held) as _, Policy::default(), limits, None).await;
        let mut first = server.connect().await;
        let first =
            tokio::spawn(async move { first.post("/mutate", TestReview::create(DENIED).body()).await.unwrap() });
        waits_for(&server, "nadmit_reviews_in_flight 1").await;
        let busy = server.connect().await.post("/mutate?timeout=200ms", example("review")).await.unwrap();
        assert_eq!((busy.status.as_u16(), busy.header("retry-after")), (429, "1"));
        // Health checks do not wait.
        assert_eq!(server.connect().await.send("GET", "/healthz", &[], "").await.unwrap().status, 200);
        held.go.add_permits(1);
        assert_eq!(first.await.unwrap().status, 200);
        waits_for(&server, r#"nadmit_reviews_unanswered_total{reason="busy"} 1"#).await;
    });
}

/// If idle clients hold all connections, the oldest of them is closed, and never one of an API server.
#[test]
fn idle_connections_are_displaced() {
    block_on(async {
        let server = InProcess::within(Limits { connections: 32, unproven_connections: 24, ..patient() }).await;
        let mut honest = server.connect().await;
        assert_eq!(honest.post("/mutate", example("review")).await.unwrap().status, 200);
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.extend(join_all((0..10).map(|_| TcpStream::connect(server.https))).await);
            let answer =
                honest.post("/mutate", example("review")).await.expect("the connection of the API server was closed");
            assert_eq!(answer.status, 200);
            let began = Instant::now();
            assert_eq!(server.connect().await.send("GET", "/healthz", &[], "").await.unwrap().status, 200);
            assert!(began.elapsed() < PROBE, "{:?}", began.elapsed());
        }
        let displaced = server.metrics().await;
        let displaced = displaced.lines().find_map(|line| {
            line.strip_prefix(r#"nadmit_connections_refused_total{reason="displaced"} "#)?.parse::<usize>().ok()
        });
        assert!(displaced.is_some_and(|displaced| displaced >= 150), "{displaced:?}");
    });
}

/// A request to an unregistered path is answered from its head alone: nadmit reads no body, judges nothing and records nothing.
#[test]
fn requests_without_token_are_rejected_early() {
    block_on(async {
        let server = InProcess::expecting(token('a')).await;
        let registered = format!("/validate/{}?timeout=5s", token('a').current.text());
        let denied = TestReview::create(DENIED);
        let forged = ["/validate".to_owned(), format!("/validate/{}", "b".repeat(64)), "/validate/x".to_owned()];
        for path in &forged {
            for http in [Http::One, Http::Two] {
                let mut client = Client::connect(server.https, &server.trust, http).await.unwrap();
                let answer = client.post(path, denied.body()).await.unwrap();
                assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"), "{path}");
                assert!(!answer.text().contains(token('a').current.text()));
            }
        }
        assert_eq!(server.denied(), 0, "forged calls are in no report");
        let metrics = server.metrics().await;
        assert!(metrics.contains("nadmit_reviews_unanswered_total{reason=\"unknown_token\"} 6\n"), "{metrics}");
        assert!(!metrics.contains("nadmit_reviews_total{"), "{metrics}");
        let mut client = server.connect().await;
        assert_eq!(client.post(&registered, denied.body()).await.unwrap().json()["response"]["allowed"], false);
        assert_eq!(server.denied(), 1);

        // Stalled requests are answered at once: nadmit never waits for their bodies.
        let path = "/validate".to_owned();
        let target = Target { address: server.https, trust: server.trust.clone(), path, length: 8 << 20 };
        let stalled = Stalled::start(&target, 64, 4);
        let watch = async {
            while stalled.begun() < 2_000 {
                assert_eq!(client.post(&registered, TestReview::create(GOOD).body()).await.unwrap().status, 200);
                let metrics = server.metrics().await;
                assert!(metrics.lines().any(|line| line == "nadmit_requests_unfinished 0"), "{metrics}");
            }
        };
        timeout(TIMEOUT, watch).await.expect("not enough forged requests were sent");
    });
}

/// Audit events have their own token: it does not authorize reviews, and the token of reviews does not authorize audit events.
#[test]
fn audit_events_have_a_token_of_their_own() {
    block_on(async {
        let tokens = token('a');
        let server = InProcess::expecting(tokens.clone()).await;
        let mut client = server.connect().await;
        let batch = r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[]}"#;
        for (path, status) in [
            ("/audit-events".to_owned(), 503),
            (format!("/audit-events/{}", tokens.current.text()), 503),
            (format!("/audit-events/{}", tokens.audit.text()), 200),
            (format!("/mutate/{}", tokens.audit.text()), 503),
        ] {
            let body = if path.starts_with("/mutate") { TestReview::create(GOOD).body() } else { batch.to_owned() };
            assert_eq!(client.post(&path, body).await.unwrap().status, status, "{path}");
            if path.starts_with("/audit") {
                assert_eq!(client.send("GET", &path, &[], "").await.unwrap().status, status, "{path}");
            }
        }
        let metrics = server.metrics().await;
        assert!(metrics.contains("nadmit_audit_batches_total{result=\"unknown_token\"} 4\n"), "{metrics}");
    });
}

/// A replica asks the other replicas whether they know a token before it registers the token.
#[test]
fn token_probe_reports_known_tokens() {
    block_on(async {
        let tokens = token('a');
        let server = InProcess::expecting(tokens.clone()).await;
        let mut client = server.connect().await;
        for (path, status) in [
            (format!("/healthz/{}", tokens.current.text()), 200),
            (format!("/healthz/{}", tokens.audit.text()), 404),
            ("/healthz/x".to_owned(), 404),
            ("/healthz".to_owned(), 200),
        ] {
            assert_eq!(client.send("GET", &path, &[], "").await.unwrap().status, status, "{path}");
        }
        let plain = InProcess::within(Limits::default()).await;
        assert_eq!(plain.connect().await.send("GET", "/healthz/x", &[], "").await.unwrap().status, 404);
        let answer = plain.connect().await.post("/mutate/x", TestReview::create(GOOD).body()).await.unwrap();
        assert_eq!(answer.status, 404, "without --register paths have no token");
        assert!(TestReview::create(GOOD).ask(&mut plain.connect().await, Mutate).await.allowed);
    });
}
