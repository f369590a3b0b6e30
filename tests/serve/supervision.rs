//! The reaction of a server when one of its background tasks ends.

use std::time::{Duration, Instant};

use super::client::block_on;
use super::harness::TIMEOUT;
use super::in_process::InProcess;

/// The readiness probe fails; requests that still arrive are answered.
#[test]
fn dead_task_makes_the_replica_unready() {
    block_on(async {
        let (server, supervisor, _) = InProcess::supervised(Duration::from_secs(600)).await;
        let ready = async || server.connect().await.send("GET", "/readyz", &[], Vec::new()).await.unwrap().status;
        assert_eq!(ready().await, 200);
        let metrics = server.metrics().await;
        for task in ["https", "metrics", "files"] {
            assert!(metrics.contains(&format!("nadmit_task_up{{task=\"{task}\"}} 1\n")), "{metrics}");
        }
        supervisor.serving("certificates", async { panic!("killed") });
        let until = Instant::now() + TIMEOUT;
        while ready().await != 503 {
            assert!(Instant::now() < until, "the server stays ready");
        }
        let metrics = server.metrics().await;
        assert!(metrics.contains("nadmit_task_up{task=\"certificates\"} 0\n"), "{metrics}");
        let review = include_bytes!("../../examples/review-good.json").to_vec();
        let answer = server.connect().await.post("/validate", review).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
}

#[test]
fn serving_task_failure_ends_the_server() {
    block_on(async {
        let (_, supervisor, ended) = InProcess::supervised(Duration::ZERO).await;
        supervisor.restarted("audit", || async { panic!("poison") });
        assert!(!ended.is_finished(), "a restarted task does not end the server");
        supervisor.serving("registration", async { panic!("killed") });
        tokio::time::timeout(TIMEOUT, ended).await.expect("the server does not end").unwrap();
        let failure = supervisor.failure().expect("no failure was reported").to_string();
        assert_eq!(failure, "background task `registration` ended unexpectedly: it panicked: killed");
    });
}
