//! The policy in its ConfigMap: replicas apply a change at once, and keep the last good policy otherwise.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::TestCluster;
use nadmit::tls::sha256_digits;

use crate::harness::{TestServer, nadmit, run};
use crate::processes::wait;

const POLICY: &str = "/api/v1/namespaces/nadmit/configmaps/nadmit-policy";
/// How soon each replica applies a change, and how much later than the first one the last one may.
const APPLIED: Duration = Duration::from_secs(2);
const APART: Duration = Duration::from_secs(1);

fn hash(server: &TestServer) -> String {
    let text = server.metrics_text();
    let hashes: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("nadmit_policy_info{hash=\"")).collect();
    assert!(hashes.len() <= 1, "{hashes:?}");
    hashes.first().and_then(|line| line.split('"').next()).unwrap_or_default().to_owned()
}

/// The digits that are shown of a text's hash.
fn digits(text: &str) -> String {
    sha256_digits(text, 12)
}

#[test]
fn replicas_apply_a_changed_policy_at_once() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.start_nadmit();
    let (mut slowest, mut furthest) = (Duration::ZERO, Duration::ZERO);
    for number in 0..20 {
        let policy = format!("# Change {number}.\nmode: {}\n", if number % 2 == 0 { "audit" } else { "enforce" });
        let wanted = digits(&policy);
        cluster.set_policy(&policy);
        let changed = Instant::now();
        let mut applied: [Option<Duration>; 2] = [None; 2];
        wait("the policy in both replicas", || {
            for (server, applied) in cluster.nadmits.iter().zip(&mut applied) {
                if applied.is_none() && hash(server) == wanted {
                    *applied = Some(changed.elapsed());
                }
            }
            applied.iter().all(Option::is_some).then_some(())
        });
        let [one, other] = applied.map(Option::unwrap_or_default);
        slowest = slowest.max(one).max(other);
        furthest = furthest.max(one.abs_diff(other));
    }
    println!("20 changes, applied within {slowest:.0?}, at most {furthest:.0?} apart");
    assert!(slowest < APPLIED && furthest < APART, "{slowest:?} {furthest:?}");
}

#[test]
fn invalid_and_deleted_policies_keep_the_last_one() {
    let mut cluster = TestCluster::start();
    let good = "# Good.\n{}\n";
    cluster.deploy_with(good);
    let current = |cluster: &TestCluster| cluster.nadmit().metric("nadmit_policy_current");
    let await_current = |cluster: &TestCluster, wanted: f64| {
        wait("the metric", || (current(cluster) == wanted).then_some(()));
    };
    assert_eq!((hash(cluster.nadmit()), current(&cluster)), (digits(good), 1.0));

    for (change, words) in [
        (json!({ "data": { "policy.yaml": "rulez: {}\n" } }), "nadmit/nadmit-policy: line 1"),
        (json!({ "data": { "policy.yaml": null } }), "has no key `policy.yaml`"),
    ] {
        cluster.admin.patch(POLICY, &change);
        await_current(&cluster, 0.0);
        cluster.nadmit().wait_for_line(words);
        assert_eq!(hash(cluster.nadmit()), digits(good));
        let verbose = cluster.readyz(cluster.nadmit(), "/readyz?verbose");
        assert!(verbose.0 == 200 && verbose.1.contains("[-]policy failed: "), "{verbose:?}");
        cluster.set_policy(good);
        await_current(&cluster, 1.0);
    }
    cluster.admin.delete(POLICY);
    await_current(&cluster, 0.0);
    cluster.nadmit().wait_for_line("the ConfigMap nadmit/nadmit-policy does not exist");
    assert_eq!(hash(cluster.nadmit()), digits(good));

    // A replica that starts now has no policy to keep. It waits for one, and does not lead.
    let started = cluster.replica(&[]);
    started.wait_for_line("not ready until there is a valid one");
    let (status, text) = cluster.readyz(&started, "/readyz?verbose");
    assert!(status == 503 && text.contains("[-]the policy failed: waiting\n"), "{text}");
    assert_eq!((hash(&started).as_str(), started.metric("nadmit_registered")), ("", 0.0));
    let other = "# Restored.\nmode: audit\n";
    let stored = json!({ "metadata": { "name": "nadmit-policy" }, "data": { "policy.yaml": other } });
    cluster.admin.create("/api/v1/namespaces/nadmit/configmaps", &stored);
    wait("a ready replica", || (cluster.readyz(&started, "/readyz").0 == 200).then_some(()));
    assert_eq!(hash(&started), digits(other));
    await_current(&cluster, 1.0);
    assert_eq!(hash(cluster.nadmit()), digits(other));
    let verbose = cluster.readyz(&started, "/readyz?verbose").1;
    assert!(verbose.contains(&format!("[+]policy ok: {}\n", digits(other))), "{verbose}");

    // There are no pods here: the command shows the ConfigMap, and that nobody uses it.
    let shown = |user: &str| {
        let mut command = nadmit(&["policy"]);
        command.arg("--kubeconfig").arg(cluster.kubeconfig(user));
        run(command)
    };
    let out = shown("admin");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!((out.status.code(), text.contains(&digits(other))), (Some(1), true), "{text}");
    assert!(text.contains("no replicas found"), "{text}");
    assert_eq!(shown("tenant").status.code(), Some(2));
}
