//! The limits on input from a socket, with short times.

use std::time::Duration;

use nadmit::server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::client::{Client, Http, block_on};
use super::harness::TIMEOUT;
use super::in_process::InProcess;
use super::reviews::example;

const SOON: Duration = Duration::from_millis(50);

/// A request of which only the head and the start of the body have been sent.
async fn half_sent(server: &InProcess) -> TlsStream<TcpStream> {
    let mut stream = server.trust.open(server.https, Http::One).await.unwrap();
    let head = format!("POST /mutate HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", example("review").len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"{").await.unwrap();
    stream
}

async fn rest_of(mut stream: TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    // A connection that is cut off has no proper end of the TLS session; the bytes before count.
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut text)).await.expect("the connection stays open");
    String::from_utf8(text).unwrap()
}

async fn waits_for(server: &InProcess, series: &str) {
    let watch = async { while !server.metrics().await.lines().any(|line| line == series) {} };
    timeout(TIMEOUT, watch).await.unwrap_or_else(|_| panic!("never: {series}"));
}

#[test]
fn old_connection_closes_without_losing_requests() {
    block_on(async {
        let server = InProcess::within(Limits { age: SOON, linger: TIMEOUT, ..Limits::default() }).await;
        let mut client = server.connect().await;
        let watch = async {
            loop {
                let answer = client.post("/mutate", example("review")).await.expect("no response");
                assert_eq!(answer.status, 200);
                if answer.header("connection") == "close" {
                    return;
                }
            }
        };
        timeout(TIMEOUT, watch).await.expect("the connection stays open");
        assert_eq!(server.connect().await.post("/mutate", example("review")).await.unwrap().status, 200);
        // An idle connection is closed, too, and HTTP/2 announces it with a frame.
        let server = InProcess::within(Limits { age: SOON, linger: SOON, ..Limits::default() }).await;
        assert_eq!(rest_of(server.trust.open(server.https, Http::One).await.unwrap()).await, "");
        let mut client = Client::connect(server.https, &server.trust, Http::Two).await.unwrap();
        let watch = async { while client.post("/mutate", example("review")).await.is_ok() {} };
        timeout(TIMEOUT, watch).await.expect("the connection stays open");
    });
}

/// A review whose client disconnects is no longer counted.
#[test]
fn disconnected_client_releases_resources() {
    block_on(async {
        let server = InProcess::within(Limits::default()).await;
        let held = half_sent(&server).await;
        waits_for(&server, "nadmit_requests_unfinished 1").await;
        drop(held);
        waits_for(&server, "nadmit_requests_unfinished 0").await;
    });
}

#[test]
fn body_size_and_time_are_limited() {
    block_on(async {
        let (length, whole) = (example("review").len(), Limits::default());
        // There is memory for one of two bodies: the second waits, and then the first is too slow.
        let server = InProcess::within(Limits { small_bodies: length, body_grace: TIMEOUT, ..whole }).await;
        let held = half_sent(&server).await;
        waits_for(&server, "nadmit_requests_unfinished 1").await;
        assert_eq!(server.connect().await.post("/mutate?timeout=5s", example("review")).await.unwrap().status, 200);
        let answer = rest_of(held).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        // A review waits at most half of its timeout.
        let patient = Limits { body_grace_contended: TIMEOUT, body_arrives: TIMEOUT, ..whole };
        let server = InProcess::within(Limits { small_bodies: length, body_grace: TIMEOUT, ..patient }).await;
        let _held = half_sent(&server).await;
        waits_for(&server, "nadmit_requests_unfinished 1").await;
        let busy = server.connect().await.post("/mutate?timeout=200ms", example("review")).await.unwrap();
        assert_eq!((busy.status.as_u16(), busy.header("retry-after")), (429, "1"));
        for limits in [Limits { body_arrives: SOON, ..whole }, Limits { body_grace: SOON, ..whole }] {
            let server = InProcess::within(limits).await;
            let answer = rest_of(half_sent(&server).await).await;
            assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
            assert_eq!(server.connect().await.post("/mutate", example("review")).await.unwrap().status, 200);
        }
    });
}

/// A body that arrives a byte at a time is as slow as one that does not arrive.
#[test]
fn slow_body_is_rejected() {
    block_on(async {
        let server = InProcess::within(Limits { body_grace: SOON, ..Limits::default() }).await;
        let (mut reader, mut writer) = tokio::io::split(half_sent(&server).await);
        let trickle = tokio::spawn(async move {
            while writer.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        let mut answer = [0; 12];
        timeout(TIMEOUT, reader.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408");
        trickle.abort();
    });
}

#[test]
fn heads_and_connections_have_limits() {
    block_on(async {
        let server = InProcess::within(Limits { head: SOON, ..Limits::default() }).await;
        let mut slow = server.trust.open(server.https, Http::One).await.unwrap();
        slow.write_all(b"POST /mutate HTTP/1.1\r\nx-").await.unwrap();
        let response = rest_of(slow).await;
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 408 "), "{response}");
        // If all connections have sent requests, an idle one is displaced.
        let server = InProcess::within(Limits { connections: 1, ..Limits::default() }).await;
        let mut held = server.connect().await;
        assert_eq!(held.post("/mutate", example("review")).await.unwrap().status, 200);
        // The listener of the metrics has a limit of its own.
        let mut other = Client::connect(server.https, &server.trust, Http::One).await.unwrap();
        waits_for(&server, r#"nadmit_connections_refused_total{reason="displaced"} 1"#).await;
        assert!(held.post("/mutate", example("review")).await.is_err());
        assert_eq!(other.post("/mutate", example("review")).await.unwrap().status, 200);
    });
}

/// The server keeps a response that its client does not read, so the number of streams and connections limits its memory.
#[test]
fn a_connection_has_a_bounded_number_of_streams() {
    block_on(async {
        let server = InProcess::within(Limits { streams: 7, ..Limits::default() }).await;
        let mut stream = server.trust.open(server.https, Http::Two).await.unwrap();
        // Send the preface and empty settings; the server responds with its settings.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut head = [0; 9];
        timeout(TIMEOUT, stream.read_exact(&mut head)).await.expect("settings").unwrap();
        assert_eq!(head[3], 4, "not a SETTINGS frame: {head:?}");
        let mut settings = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        stream.read_exact(&mut settings).await.unwrap();
        let streams = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).map(|setting| &setting[2..]);
        assert_eq!(streams, Some(&[0, 0, 0, 7][..]), "{settings:?}");
    });
}

/// A client that can reach only the metrics gets a bounded part of nadmit's memory.
#[test]
fn metrics_have_few_connections_and_no_streams() {
    block_on(async {
        let server = InProcess::within(Limits { scrapes: 4, ..Limits::default() }).await;
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(TcpStream::connect(server.metrics).await.unwrap());
        }
        // The oldest connections are displaced, so that a scrape is always possible.
        for mut closed in idle.drain(..16) {
            let end = timeout(TIMEOUT, closed.read(&mut [0])).await.expect("the connection stays open");
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
        assert!(server.metrics().await.contains("nadmit_connections"));
        let mut stream = TcpStream::connect(server.metrics).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("the connection stays open");
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    });
}
