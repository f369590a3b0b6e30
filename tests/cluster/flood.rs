//! A pod that starts requests and never finishes them, while users write: nothing is stored unjudged, and no write is lost.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::net::TcpStream;

use crate::client::{Client, Http, Trust, block_on};
use crate::cluster::{TestCluster, alone};
use crate::processes::wait;
use crate::stalled::{Stalled, Target};
use crate::token::{bundle, registered_path};
use crate::writers::Writers;

/// The timeout of a kubelet probe.
const PROBE: Duration = Duration::from_secs(1);

#[test]
fn writes_and_probes_succeed_under_a_flood() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let server = cluster.nadmit();
    let trust = Trust::in_ca(bundle(&cluster.admin).as_bytes()).named("nadmit.nadmit.svc");
    // Without the token, and with it: then nadmit reads the bodies.
    for path in ["/validate".to_owned(), registered_path(&cluster.admin, "validating")] {
        let target = Target { address: server.https, trust: trust.clone(), path: path.clone(), length: 4_000 };
        let writers = Writers::start(&cluster.jane);
        let begun = Instant::now();
        block_on(async {
            let stalled = Stalled::start(&target, 256, 16);
            let mut idle = Vec::new();
            // Long enough that all of them are cut off and reconnect several times.
            while begun.elapsed() < Duration::from_secs(8) || stalled.begun() < 512 {
                idle.extend(join_all((0..100).map(|_| TcpStream::connect(server.https))).await);
                let asked = Instant::now();
                let mut client = Client::connect(server.https, &trust, Http::One).await.expect("a connection");
                assert_eq!(client.send("GET", "/readyz", &[], "").await.expect("an answer").status, 200);
                assert!(asked.elapsed() < PROBE, "{:?}", asked.elapsed());
                assert!(begun.elapsed() < Duration::from_secs(60), "only {} requests", stalled.begun());
                if idle.len() > 2_000 {
                    idle.clear();
                }
            }
            println!("{} requests begun in {:.1?}", stalled.begun(), begun.elapsed());
        });
        let written = writers.end();
        assert!(written > 20, "only {written} writes");
        println!("{written} admissions, none failed");
    }
    assert_eq!(server.metric("nadmit_reviews_unanswered_total{reason=\"busy\"}"), 0.0, "{}", server.metrics_text());
    assert!(server.metric("nadmit_reviews_unanswered_total{reason=\"unknown_token\"}") >= 256.0);
    assert!(server.metric("nadmit_reviews_unanswered_total{reason=\"slow\"}") >= 256.0);
}

/// A call of the webhook's path without the token is not a denial: it is not in the report of denials.
#[test]
fn forged_calls_change_nothing() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let server = cluster.nadmit();
    let trust = Trust::in_ca(bundle(&cluster.admin).as_bytes()).named("nadmit.nadmit.svc");
    let review = serde_json::json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "forged", "operation": "CREATE", "name": "x", "namespace": "victim", "userInfo": { "username": "victim" },
        "kind": { "group": "k8s.cni.cncf.io", "version": "v1", "kind": "NetworkAttachmentDefinition" },
        "resource": { "group": "k8s.cni.cncf.io", "version": "v1", "resource": "network-attachment-definitions" },
        "object": crate::objects::nad("x", "not JSON"),
    } });
    let post = |path: &str| {
        block_on(async {
            let mut client = Client::connect(server.https, &trust, Http::One).await.unwrap();
            client.post(path, review.to_string()).await.unwrap()
        })
    };
    for path in ["/validate", "/validate/0", "/mutate", "/status"] {
        assert_eq!(post(path).status, 503, "{path}");
    }
    let answer = post(&registered_path(&cluster.admin, "validating"));
    assert_eq!(answer.json()["response"]["allowed"], false, "with the token it is judged");
    let line = wait("the log line of the judged review", || {
        let text = server.log_text();
        (text.matches("\"forged\"").count() > 0).then_some(text)
    });
    assert_eq!(line.matches("\"forged\"").count(), 1, "{line}");
    assert!(!line.contains(&registered_path(&cluster.admin, "validating")), "the token is never logged");
}
