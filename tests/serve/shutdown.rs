//! Shutdown: the server is not ready, still answers requests, then exits with code 0.

use std::time::Instant;

use nadmit::review::Endpoint::Validate;

use super::client::{Http, block_on};
use super::harness::{TIMEOUT, TestServer};
use super::reviews::{GOOD, Reply, TestReview};

/// The readiness probe fails, so that requests go to other replicas; requests that still arrive are answered.
#[test]
fn shutdown_marks_not_ready_and_keeps_serving() {
    let server = TestServer::start(&["--shutdown-grace", "10m"]);
    assert_eq!(server.get("/readyz").text(), "ok\n");
    server.signal("TERM");
    let until = Instant::now() + TIMEOUT;
    let ready = loop {
        let ready = server.get("/readyz");
        if ready.status != 200 {
            break ready;
        }
        assert!(Instant::now() < until, "the server stays ready: {}", server.log_text());
    };
    assert_eq!((ready.status.as_u16(), ready.text().as_str()), (503, "not ready: shutting down\n"));
    assert_eq!(server.get("/healthz").status, 200, "the liveness probe still succeeds");
    let question = TestReview::create(GOOD);
    let answer = server.post("/validate", question.body());
    assert!(Reply::read(&answer, &question, Validate).allowed);
    assert_eq!(answer.header("connection"), "close", "the client is asked to close the connection");
    block_on(async {
        let mut client = server.connect(Http::Two).await;
        assert!(TestReview::create(GOOD).ask(&mut client, Validate).await.allowed);
    });
}

#[test]
fn shutdown_is_clean() {
    for (signal, grace) in [("TERM", "0s"), ("INT", "10m")] {
        let mut server = TestServer::start(&["--shutdown-grace", grace]);
        assert_eq!(server.get("/readyz").status, 200);
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "{signal}: {}", server.log_text());
        server.wait_for_log("about the end", |line| line["message"] == "server stopped");
    }
}
