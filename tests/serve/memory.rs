//! Memory is bounded for the worst input. The pod's limit is 128 MiB.

use std::fs;

use futures_util::future::join_all;

use super::client::{Client, Http, block_on};
use super::corpus::worst;
use super::harness::TestServer;

/// The most memory that the server may use: half of the pod's limit.
const PEAK: usize = 64 << 20;
/// How many reviews are sent at once.
const AT_ONCE: usize = 32;

#[test]
fn the_worst_reviews_at_once_fit_into_memory() {
    let server = TestServer::start(&[]);
    let peak = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    for (name, body) in worst() {
        let answered = block_on(join_all((0..AT_ONCE).map(|_| async {
            let mut client = Client::connect(server.https, &server.trust(), Http::One).await.unwrap();
            let answer = client.post("/validate?timeout=30s", body.clone()).await.unwrap();
            (answer.status.as_u16(), answer.header("retry-after").to_owned())
        })));
        println!("{name}: {:.1} MiB", peak() as f64 / f64::from(1 << 20));
        // They are judged one after the other: on a slow machine some get 429.
        let is_fine = |(status, retry): &(u16, String)| *status == 200 || (*status, retry.as_str()) == (429, "1");
        assert!(answered.iter().all(is_fine), "{name}: {answered:?}");
        assert!(answered.iter().any(|(status, _)| *status == 200), "{name}: {answered:?}");
        assert!(peak() < PEAK, "{name}: {} bytes", peak());
    }
}

/// Each judging thread needs memory, and the pod's limit is the same on a node with many cores.
#[test]
fn four_threads_answer_on_every_node() {
    let server = TestServer::start(&[]);
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")).unwrap_or_default());
    assert_eq!(names.filter(|name| name.trim() == "tokio-rt-worker").count(), 4);
}
