//! Stop and start: SIGTERM loses no request, the server restarts after a kill, certificates change under load.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::certificates::TestAuthority;
use super::client::{Client, Http, Trust, block_on};
use super::harness::{TestServer, put};
use super::reviews::example;

/// Sends requests on one connection after the other until `stop`, or until the server does not listen any more. A request that was
/// sent and not answered is a failure; a connection that cannot be opened at the end is not.
async fn ask(address: std::net::SocketAddr, trust: Trust, http: Http, stop: &AtomicBool, answered: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(address, &trust, http).await else { return };
        while !stop.load(Ordering::Relaxed) {
            let answer = match client.post("/mutate", example("review")).await {
                Ok(answer) => answer,
                // The server closed the connection before the request was sent.
                Err(error) if error.is_canceled() || error.is_closed() => break,
                // HTTP/2 reports explicitly that a request came after GOAWAY and was not accepted: an API server retries
                // it on another replica. The counts below show that no accepted request is among these.
                Err(error) if http == Http::Two && format!("{error:?}").contains("GoAway") => break,
                Err(error) => panic!("a sent request got no response: {error:?}"),
            };
            assert_eq!(answer.status, 200);
            answered.fetch_add(1, Ordering::Relaxed);
            if answer.header("connection") == "close" {
                break;
            }
        }
    }
}

#[test]
fn sigterm_under_load_loses_no_request() {
    let mut server = TestServer::start(&["--shutdown-grace", "1s"]);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let (address, trust, stop, answered) = (server.https, server.trust(), stop.clone(), answered.clone());
            let http = if number % 4 == 3 { Http::Two } else { Http::One };
            std::thread::spawn(move || block_on(ask(address, trust, http, &stop, &answered)))
        })
        .collect();
    let at_least = |count: usize| {
        while answered.load(Ordering::Relaxed) < count {
            assert!(!clients.iter().any(std::thread::JoinHandle::is_finished), "a client gave up");
            std::thread::yield_now();
        }
    };
    at_least(200);
    server.signal("TERM");
    // It answers while it reports that it is not ready.
    let then = answered.load(Ordering::Relaxed);
    at_least(then + 50);
    let not_ready = server.get("/readyz");
    assert_eq!((not_ready.status.as_u16(), not_ready.text().as_str()), (503, "not ready: shutting down\n"));
    assert_eq!(server.ended().code(), Some(0), "{}", server.log_text());
    for client in clients {
        client.join().expect("a client failed");
    }
    let judged = server.log_text().lines().filter(|line| line.contains("\"decision\"")).count();
    assert_eq!(judged, answered.load(Ordering::Relaxed), "a judged review got no response");
}

#[test]
fn a_killed_server_serves_again_on_the_same_port() {
    let first = TestServer::start(&[]);
    let address = first.https.to_string();
    // Connections of the killed server do not block the port.
    let _held = block_on(first.connect(Http::One));
    first.signal("KILL");
    drop(first);
    let second = TestServer::start_with(|_| vec!["--listen".to_owned(), address.clone()]);
    assert_eq!(second.https.to_string(), address);
    assert_eq!(second.post("/mutate", example("review")).status, 200);
}

/// Whether a new connection gets the certificate of that name.
async fn is_served(trust: &Trust, server: &TestServer, name: &str) -> bool {
    let stream = trust.open(server.https, Http::One).await.unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap().to_vec();
    nadmit::tls::is_named(&chain[0], name)
}

#[test]
fn certificates_swapped_a_hundred_times_under_load() {
    let authority = TestAuthority::new("swapped");
    let server = TestServer::start_with(|directory| {
        let identity = authority.issue("first", &["127.0.0.1"]);
        fs::write(directory.join("tls.crt"), &identity.chain).unwrap();
        fs::write(directory.join("tls.key"), &identity.key).unwrap();
        let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
        vec!["--tls-cert".into(), at("tls.crt"), "--tls-key".into(), at("tls.key")]
    });
    let trust = Trust::in_ca(authority.pem().as_bytes());
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (address, trust, stop, answered) = (server.https, trust.clone(), stop.clone(), answered.clone());
            std::thread::spawn(move || {
                block_on(async {
                    while !stop.load(Ordering::Relaxed) {
                        let mut client =
                            Client::connect(address, &trust, Http::One).await.expect("the handshake failed");
                        let answer = client.post("/mutate", example("review")).await.expect("no response");
                        assert_eq!(answer.status, 200);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            })
        })
        .collect();
    let directory = server.directory.path();
    for number in 1..=100 {
        let identity = authority.issue(&format!("number-{number}"), &["127.0.0.1"]);
        // Two files cannot change in one step: in between they do not match, and the old pair stays in use.
        put(&directory.join("tls.crt"), &identity.chain);
        put(&directory.join("tls.key"), &identity.key);
        server.signal("HUP");
        let until = std::time::Instant::now() + super::harness::TIMEOUT;
        while !block_on(is_served(&trust, &server, &format!("number-{number}"))) {
            assert!(std::time::Instant::now() < until, "certificate {number} is not served\n{}", server.log_text());
            server.signal("HUP");
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("a client failed");
    }
    assert!(answered.load(Ordering::Relaxed) > 100);
    assert!(server.metric(r#"nadmit_certificate_reloads_total{result="taken"}"#) >= 100.0);
}
