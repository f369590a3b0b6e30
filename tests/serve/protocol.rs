//! The wire, line by line.

use nadmit::review::Endpoint;

use super::certificates::Authority;
use super::client::{Client, Http, Trust, block_on};
use super::harness::Server;
use super::reviews::{GOOD, Question, REFUSED, REPAIRABLE};

#[test]
fn a_review_is_answered_over_either_protocol() {
    let server = Server::shared();
    block_on(async {
        for http in [Http::One, Http::Two] {
            let mut client = server.connect(http).await;
            for _ in 0..3 {
                assert!(Question::create(GOOD).ask(&mut client, Endpoint::Validate).await.allowed);
                assert!(!Question::create(REFUSED).ask(&mut client, Endpoint::Validate).await.allowed);
                assert!(Question::create(REPAIRABLE).ask(&mut client, Endpoint::Mutate).await.patch.is_some());
            }
        }
    });
}

#[test]
fn a_chain_is_served_whole() {
    let root = Authority::new("root");
    let served = root.intermediate("between").issue("nadmit", &["127.0.0.1"]);
    let server = Server::start_with(|directory| {
        let file = |name: &str, content: &str| {
            std::fs::write(directory.join(name), content).unwrap();
            directory.join(name).to_str().unwrap().to_owned()
        };
        vec!["--tls-cert".into(), file("tls.crt", &served.chain), "--tls-key".into(), file("tls.key", &served.key)]
    });
    let trust = Trust::in_ca(root.pem().as_bytes());
    let answer = block_on(async {
        let mut client = Client::connect(server.https, &trust, Http::One).await.unwrap();
        client.send("GET", "/healthz", &[], Vec::new()).await.unwrap()
    });
    assert_eq!(answer.text(), "ok\n");
}
