//! A cluster whose API server does not respond.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use nadmit::review::Endpoint;
use serde_json::json;

use super::client::{Http, block_on};
use super::harness::{TestServer, nadmit, run};
use super::reviews::{DENIED, TestReview};

const NETWORK: &str = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork",
    "metadata":{"name":"net","namespace":"openshift-sriov-network-operator"},
    "spec":{"resourceName":"cx7","networkNamespace":"nowhere"}}"#;

/// A server that reaches an API server there.
fn start(api_server: &TcpListener, more: &[&str]) -> TestServer {
    TestServer::start_with(|directory| {
        let address = api_server.local_addr().unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": format!("http://{address}") } }],
            "users": [{ "name": "it", "user": {} }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let path = directory.join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        let arguments = [&["--cluster", "require", "--kubeconfig", path.to_str().unwrap()], more].concat();
        arguments.into_iter().map(str::to_owned).collect()
    })
}

/// Reviews fail until the policy is known, and failurePolicy decides: the default policy is not the configured one.
#[test]
fn no_review_is_judged_without_the_policy() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start(&silent, &["--policy-configmap", "nadmit-policy"]);
    for path in ["/mutate", "/validate", "/status"] {
        let reply = block_on(async {
            let mut client = server.connect(Http::One).await;
            client.post(path, TestReview::create(NETWORK).body()).await.unwrap()
        });
        assert_eq!(reply.status, 503, "{path}");
        assert!(reply.text().contains("the policy has not been read yet"), "{}", reply.text());
    }
    let ready = server.get("/readyz");
    assert_eq!((ready.status.as_u16(), ready.text().contains("the policy")), (503, true), "{}", ready.text());
    assert_eq!(server.metric("nadmit_policy_current"), 0.0);
    assert!(!server.metrics_text().contains("nadmit_policy_info{"));
}

/// Reviews are answered at once without facts; nadmit reports that it is not ready, and becomes ready after half a minute.
#[test]
fn unreachable_api_server_does_not_delay_reviews() {
    // Connections are accepted and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start(&silent, &[]);
    let started = Instant::now();
    let not_ready = server.get("/readyz");
    assert_eq!((not_ready.status.as_u16(), not_ready.text().as_str()), (503, "not ready: the caches\n"));
    let verbose = server.get("/readyz?verbose");
    let lines = "[-]the caches failed: waiting\n[+]policy ok: default\nnot ready: the caches\n";
    assert_eq!((verbose.status.as_u16(), verbose.text().as_str()), (503, lines));
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let reply =
            block_on(async { TestReview::create(NETWORK).ask(&mut server.connect(Http::One).await, endpoint).await });
        assert!(reply.allowed);
    }
    // If the judgement needs a fact from the API server, failurePolicy decides, before the deadline.
    let vital = block_on(async {
        let mut client = server.connect(Http::One).await;
        client.post("/mutate?timeout=1s", TestReview::create(DENIED).body()).await.unwrap()
    });
    assert_eq!(vital.status, 503);
    assert!(vital.text().contains("the API server did not respond within"), "{}", vital.text());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    for kind in ["Namespace", "SriovNetwork", "NetworkAttachmentDefinition", "SriovNetworkNodePolicy"] {
        assert_eq!(server.metric(&format!("nadmit_cache_missed_total{{kind=\"{kind}\"}}")), 2.0, "{kind}");
        assert!(server.metrics_text().contains(&format!("nadmit_cache_ready{{kind=\"{kind}\"}} 0\n")), "{kind}");
    }
    server.wait_for_log("that it is ready", |line| {
        let is_it = line["message"].as_str().is_some_and(|words| words.starts_with("caches not synced in time"));
        is_it && line["unknown"].as_str().unwrap().contains("Namespace")
    });
    let until = Instant::now() + Duration::from_secs(10);
    while server.get("/readyz").status != 200 {
        assert!(Instant::now() < until, "{}", server.get("/readyz").text());
    }
}

#[test]
fn cluster_flag_controls_the_connection() {
    let serve = |when: &str| {
        let mut command = nadmit(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
        command.args(["--cluster", when]);
        command
    };
    // No pod, no kubeconfig.
    let output = run(serve("require"));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--cluster require") && error.contains("--kubeconfig"), "{error}");
    // A pod without a service account, with the cluster connection disabled.
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve("off");
    command.arg("--cert-dir").arg(directory.path());
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("NADMIT_KUBECONFIG", "nowhere.yaml");
    let server = TestServer::launch(command, directory);
    assert_eq!(server.get("/readyz").status, 200);
    assert!(!server.metrics_text().contains("nadmit_cache_ready{"), "nothing is watched");
}
