//! The audit webhook backend of a real API server, with the kubeconfig of the documentation: nadmit counts the same writes as the log.

use std::fs;

use serde_json::{Value, json};

use crate::audit_log::{MERGE, POLICY, logged, merge, report, states};
use crate::certificates::TestAuthority;
use crate::client::{Client, Http, Trust, block_on};
use crate::cluster::TestCluster;
use crate::harness::TestServer;
use crate::objects::version;
use crate::processes::wait;

/// The kubeconfig in docs/audit-log.md.
fn documented() -> &'static str {
    let blocks = include_str!("../../docs/audit-log.md").split("```yaml\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).find(|block| block.contains("kind: Config")).unwrap()
}

#[test]
fn audit_webhook_events_match_the_audit_log() {
    let (ours, theirs) = (TestAuthority::new("nadmit"), TestAuthority::new("callers"));
    let server = TestServer::start_with(|directory| {
        let own = ours.issue("nadmit", &["127.0.0.1", "nadmit.nadmit.svc"]);
        let caller = theirs.issue("kube-apiserver", &[]);
        for (name, content) in [
            ("ca.crt", ours.pem()),
            ("tls.crt", own.chain),
            ("tls.key", own.key),
            ("callers.crt", theirs.pem()),
            ("client.crt", caller.chain),
            ("client.key", caller.key),
        ] {
            fs::write(directory.join(name), content).unwrap();
        }
        let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
        let mut arguments = vec!["--audit-events".to_owned()];
        for (flag, name) in [("--tls-cert", "tls.crt"), ("--tls-key", "tls.key"), ("--client-ca", "callers.crt")] {
            arguments.extend([flag.to_owned(), file(name)]);
        }
        arguments
    });
    let kubeconfig = documented()
        .replace("10.96.0.50:443", &server.https.to_string())
        .replace("/etc/kubernetes/nadmit", server.directory.path().to_str().unwrap());
    let cluster = TestCluster::with_audit_webhook(POLICY, &kubeconfig);
    let admin = &cluster.admin;
    admin.create(&states(), &json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": {"name": "node"}, "spec": {} }));
    let node = format!("{}/node", states());
    let status = format!("{node}/status");
    for number in 0..30 {
        let now = admin.get(&node).unwrap();
        let text = format!("text-{}", number / 2);
        // Two blind writes of which the second changes nothing, and one that states the version.
        let stated = (number % 3 == 2).then(|| version(&now).to_owned());
        let agent = if stated.is_some() { "guarded" } else { "blind" };
        admin.send_as(agent, MERGE.0, &status, MERGE.1, Some(&merge(stated.as_deref(), &text))).unwrap();
    }
    admin.send_as("the-last", MERGE.0, &node, MERGE.1, Some(&json!({"spec": {"interfaces": []}}))).unwrap();
    logged(&cluster, "the-last");

    let trust = Trust::in_ca(ours.pem().as_bytes()).showing(&theirs.issue("client", &[]));
    let shown = || -> Value {
        block_on(async {
            let mut client = Client::connect(server.https, &trust, Http::One).await.unwrap();
            client.send("GET", "/audit-events", &[], Vec::new()).await.unwrap().json()
        })
    };
    let found = wait("the last event", || {
        let report = shown()["current"].clone();
        report["writers"].as_array().unwrap().iter().any(|row| row["agent"] == "the-last").then_some(report)
    });
    let (want, _) = report(&cluster, &[]);
    assert_eq!(want["totals"]["blind"], 20);
    assert!(
        want["totals"]["unchanged"].as_u64().unwrap() > 5 && want["loops"].as_array().unwrap().len() == 1,
        "{want:#}"
    );
    for part in ["totals", "writers", "loops", "findings"] {
        assert_eq!(found[part], want[part], "{part}");
    }
    assert_eq!(found["log"]["unreadable"], 0);
    assert_eq!(server.metric("nadmit_audit_blind_writes_total{way=\"merge_patch\"}"), 20.0);
    assert_eq!(server.metric("nadmit_audit_loops"), 1.0);
    let results = server.metrics_text().lines().filter(|line| line.starts_with("nadmit_audit_batches_total")).count();
    assert_eq!(results, 1, "every batch was accepted");
}
