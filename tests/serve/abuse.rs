//! Hostile and broken clients, over real sockets. Afterwards the server answers as before, has no additional open file, and has
//! released the memory.

use std::fs;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::client::{Client, Http, block_on};
use super::harness::{TIMEOUT, TestServer};
use super::reviews::example;

/// How long the server may take to release memory and files.
const RECOVERY: Duration = Duration::from_secs(30);
/// How much more memory than before is tolerated.
const SLACK: usize = 8 << 20;

/// The memory and the files that a process holds.
#[derive(Clone, Copy, Debug)]
struct ResourceUsage {
    files: usize,
    memory: usize,
}

impl ResourceUsage {
    fn by(server: &TestServer) -> Self {
        let process = format!("/proc/{}", server.pid());
        let files = fs::read_dir(format!("{process}/fd")).unwrap().count();
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self { files, memory: memory.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10 }
    }
}

/// Reads until the other side closes; true if it closes without a response or with an error, within the time.
async fn is_cut(stream: &mut (impl AsyncReadExt + Unpin), within: Duration) -> bool {
    let mut rest = Vec::new();
    timeout(within, stream.read_to_end(&mut rest)).await.is_ok()
}

async fn still_answers(server: &TestServer) {
    for http in [Http::One, Http::Two] {
        let answer = server.connect(http).await.post("/mutate", example("review")).await.unwrap();
        assert_eq!(answer.status, 200, "{}", server.log_text());
    }
}

#[test]
fn survives_abuse_and_releases_resources() {
    let server = TestServer::start(&[]);
    block_on(async {
        // Warm up with every kind of request, the largest body and the maximum of connections.
        large_bodies(&server).await;
        still_answers(&server).await;
        drop(idle_connections(&server).await);
    });
    let until = Instant::now() + TIMEOUT;
    while server.metric("nadmit_connections") > 1.0 {
        assert!(Instant::now() < until, "{}", server.metrics_text());
    }
    let before = ResourceUsage::by(&server);
    // The connections that stay open the longest are opened first and checked last.
    let (mut slow, mut half) = block_on(async { (slow_heads(&server).await, half_handshakes(&server).await) });
    block_on(async {
        garbage(&server).await;
        plain_http(&server).await;
        pipelined(&server).await;
        for _ in 0..3 {
            large_bodies(&server).await;
        }
    });
    block_on(async {
        for stream in &mut half {
            assert!(is_cut(stream, TIMEOUT).await, "the server keeps a handshake that never ends");
        }
    });
    let idle = block_on(idle_connections(&server));
    // Idle connections are displaced by new ones.
    server.wait_for_metric(r#"nadmit_connections_refused_total{reason="displaced"}"#, 1.0);
    block_on(still_answers(&server));
    drop(idle);
    block_on(async {
        accepts_connections_again(&server).await;
        still_answers(&server).await;
        for stream in &mut slow {
            let _ = stream.write_all(b"x").await;
            assert!(is_cut(stream, TIMEOUT).await, "the server keeps a request that never ends");
        }
        still_answers(&server).await;
    });
    let until = Instant::now() + RECOVERY;
    loop {
        // Probes and scrapes continue: the allocator releases unused memory on later allocations.
        server.metrics_text();
        let after = ResourceUsage::by(&server);
        if after.files <= before.files && after.memory <= before.memory + SLACK {
            break;
        }
        assert!(Instant::now() < until, "before {before:?}, after {after:?}\n{}", server.metrics_text());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(server.metric("nadmit_reviews_in_flight"), 0.0);
    assert!(server.metric(r#"nadmit_connections_refused_total{reason="handshake_timeout"}"#) >= 50.0);
    assert_eq!(server.metric(r#"nadmit_connections_refused_total{reason="too_many"}"#), 0.0);
}

/// A server with a low limit of open files survives when they are used up, and recovers when they are free again.
#[test]
fn survives_file_descriptor_exhaustion() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("sh");
    let script = "ulimit -n 40; exec \"$0\" serve --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --cert-dir \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_nadmit")]).arg(directory.path());
    let server = TestServer::launch(command, directory);
    let held = block_on(async { join_all((0..100).map(|_| TcpStream::connect(server.https))).await });
    server.wait_for_log("about accepting", |line| line["message"] == "failed to accept a connection");
    drop(held);
    block_on(async {
        accepts_connections_again(&server).await;
        still_answers(&server).await;
    });
}

/// Slowloris: a request head that arrives a few bytes at a time.
async fn slow_heads(server: &TestServer) -> Vec<impl AsyncReadExt + AsyncWriteExt + Unpin> {
    let trust = server.trust();
    let mut streams = Vec::new();
    for _ in 0..50 {
        let mut stream = trust.open(server.https, Http::One).await.unwrap();
        stream.write_all(b"POST /mutate HTTP/1.1\r\nhost: x\r\nx-").await.unwrap();
        streams.push(stream);
    }
    streams
}

/// The start of a handshake, and no more.
async fn half_handshakes(server: &TestServer) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for number in 0..60 {
        let mut stream = TcpStream::connect(server.https).await.unwrap();
        if number % 2 == 0 {
            // A record that is shorter than its announced length.
            stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]).await.unwrap();
        }
        streams.push(stream);
    }
    streams
}

async fn garbage(server: &TestServer) {
    for seed in 0..50_u8 {
        let mut stream = TcpStream::connect(server.https).await.unwrap();
        let bytes: Vec<u8> = (0..2000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed).collect();
        // The server may close the connection before it has received everything.
        let _ = stream.write_all(&bytes).await;
        assert!(is_cut(&mut stream, TIMEOUT).await, "the server keeps a connection with garbage");
    }
}

async fn plain_http(server: &TestServer) {
    let mut stream = TcpStream::connect(server.https).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(is_cut(&mut stream, TIMEOUT).await, "the server keeps a plain HTTP connection");
}

/// Ten requests before the first response: all are answered, in order.
async fn pipelined(server: &TestServer) {
    let mut stream = server.trust().open(server.https, Http::One).await.unwrap();
    let mut requests = Vec::new();
    for number in 0..10 {
        let mut body: serde_json::Value = serde_json::from_slice(&example("review")).unwrap();
        body["request"]["uid"] = format!("pipelined-{number}").into();
        let body = body.to_string();
        let last = if number == 9 { "connection: close\r\n" } else { "" };
        let head = format!("POST /mutate HTTP/1.1\r\nhost: x\r\n{last}content-length: {}\r\n\r\n", body.len());
        requests.extend(head.into_bytes());
        requests.extend(body.into_bytes());
    }
    stream.write_all(&requests).await.unwrap();
    let mut answers = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut answers)).await.unwrap().unwrap();
    let places: Vec<_> = (0..10).map(|number| answers.find(&format!("pipelined-{number}")).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// 3 MB is judged, 9 MB is rejected, over both versions of HTTP.
async fn large_bodies(server: &TestServer) {
    for http in [Http::One, Http::Two] {
        for (megabytes, want) in [(3, Some(200)), (9, Some(413))] {
            let mut review: serde_json::Value = serde_json::from_slice(&example("review")).unwrap();
            review["request"]["object"]["metadata"]["annotations"]["filler"] = "x".repeat(megabytes * 1_000_000).into();
            let mut client = server.connect(http).await;
            match client.post("/mutate", review.to_string()).await {
                Ok(answer) => assert_eq!(Some(answer.status.as_u16()), want, "{http:?} {megabytes} MB"),
                // A client that is still sending when it is rejected may miss the response.
                Err(error) => assert!(megabytes == 9, "{http:?} {megabytes} MB: {error}"),
            }
        }
    }
}

/// Twice as many connections as the server holds.
async fn idle_connections(server: &TestServer) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..40 {
        let opened = join_all((0..50).map(|_| TcpStream::connect(server.https))).await;
        held.extend(opened.into_iter().flatten());
    }
    assert!(held.len() > 1500, "only {} connections", held.len());
    held
}

async fn accepts_connections_again(server: &TestServer) {
    let until = Instant::now() + TIMEOUT;
    while Client::connect(server.https, &server.trust(), Http::One).await.is_err() {
        assert!(Instant::now() < until, "the server accepts no connections any more");
    }
}
