//! The cost of many objects, printed by tests that run only on request.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::TestCluster;
use crate::facts::{count, knows_all};
use crate::harness::{TestServer, nadmit};
use crate::objects::{OPERATOR, TestNetworkKind, nad, nads, network};
use crate::pods::allow_pods;
use crate::processes::{used, wait};

/// How many objects of each kind.
const EACH: usize = 10_000;

/// Creates ten thousand networks and their NADs, with or without a resource name.
fn fill(cluster: &TestCluster, resource: Option<&str>) {
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"sriov","vlan":100,"spoofchk":"on","trust":"off","vlanQoS":0,"link_state":"auto","ipam":{"type":"whereabouts","range":"10.56.217.0/24"}}"#;
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for number in (writer..EACH).step_by(4) {
                    let name = format!("a-network-of-usual-length-{number}");
                    let fields = json!({ "ipam": r#"{"type":"whereabouts","range":"10.56.217.0/24"}"#, "vlan": 100 });
                    cluster.jane.create(
                        &TestNetworkKind::Sriov.path(),
                        &network(TestNetworkKind::Sriov, &name, "apps", &fields),
                    );
                    let mut nad = nad(&name, config);
                    let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{name}");
                    nad["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
                    if let Some(resource) = resource {
                        nad["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"] = json!(resource);
                        nad["spec"]["config"] =
                            config.replace("\"vlan\"", &format!("\"resourceName\":\"{resource}\",\"vlan\"")).into();
                    }
                    cluster.jane.create(&nads("apps"), &nad);
                }
            });
        }
    });
}

/// A value of the kernel about nadmit's memory, in MiB.
fn rss(pid: u32, name: &str) -> f64 {
    try_rss(pid, name).unwrap()
}

fn try_rss(pid: u32, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes as f64 / 1024.0)
}

/// Prints how much memory nadmit uses with many objects in the cluster: `cargo test --test cluster memory -- --ignored --nocapture`.
#[test]
#[ignore = "it writes twenty thousand objects"]
fn memory_with_many_objects() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    cluster.start_nadmit();
    knows_all(cluster.nadmit());
    println!("empty: {:.1} MiB", rss(cluster.nadmit().pid(), "VmRSS"));
    fill(&cluster, None);
    let has_all = |nadmit: &TestServer| {
        let kinds = ["SriovNetwork", "NetworkAttachmentDefinition"];
        wait("all objects", || kinds.iter().all(|kind| count(nadmit, kind) == EACH).then_some(()));
    };
    has_all(cluster.nadmit());
    println!(
        "watched: {:.1} MiB, at most {:.1}",
        rss(cluster.nadmit().pid(), "VmRSS"),
        rss(cluster.nadmit().pid(), "VmHWM")
    );
    // Listed by a replica that starts now.
    cluster.kill_nadmit();
    let began = Instant::now();
    cluster.start_nadmit();
    knows_all(cluster.nadmit());
    println!(
        "listed after {:.1?}: {:.1} MiB, at most {:.1}",
        began.elapsed(),
        rss(cluster.nadmit().pid(), "VmRSS"),
        rss(cluster.nadmit().pid(), "VmHWM")
    );
    has_all(cluster.nadmit());
    // And listed again while the old facts are still in memory.
    cluster.without_api_server(|cluster| {
        cluster.nadmit().wait_for_line("list or watch failed, retrying");
    });
    cluster.nadmit().wait_for_log("a new list", |line| {
        line["message"] == "cache synced" && line["kind"] == "NetworkAttachmentDefinition" && line["objects"] == EACH
    });
    println!(
        "listed again: {:.1} MiB, at most {:.1}",
        rss(cluster.nadmit().pid(), "VmRSS"),
        rss(cluster.nadmit().pid(), "VmHWM")
    );
    assert!(rss(cluster.nadmit().pid(), "VmHWM") < 96.0);
}

/// Lists a collection page by page, and nothing else.
fn list(cluster: &TestCluster, path: &str) -> usize {
    let (mut seen, mut next) = (0, String::new());
    loop {
        let page = cluster.admin.get(&format!("{path}?limit=500{next}")).unwrap();
        seen += page["items"].as_array().unwrap().len();
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => next = format!("&continue={token}"),
            _ => return seen,
        }
    }
}

/// Prints the cost of an audit of many objects:
/// `cargo test --test cluster an_audit_of_many -- --ignored --nocapture`.
#[test]
#[ignore = "it writes twenty thousand objects"]
fn an_audit_of_many_objects() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    cluster.deploy();
    fill(&cluster, None);
    for round in 1..=3 {
        let began = Instant::now();
        let seen = list(&cluster, &TestNetworkKind::Sriov.path()) + list(&cluster, &nads("apps"));
        assert_eq!(seen, 2 * EACH);
        let listing = began.elapsed();
        let mut command = nadmit(&["audit", "--output=json"]);
        command.arg("--kubeconfig").arg(cluster.kubeconfig("admin")).stdout(Stdio::null());
        let began = Instant::now();
        let mut audit = command.spawn().unwrap();
        let (mut peak, mut cpu) = (0.0, Duration::ZERO);
        while audit.try_wait().unwrap().is_none() {
            peak = try_rss(audit.id(), "VmHWM").unwrap_or(peak);
            cpu = used(audit.id());
            thread::sleep(Duration::from_millis(5));
        }
        println!(
            "round {round}: listing alone {listing:.1?}, audit {:.1?}, of which it computed {cpu:.2?}; at most {peak:.1} MiB",
            began.elapsed()
        );
        assert!(peak < 128.0);
    }
}

/// How many pods.
const PODS: usize = 20_000;

/// Creates pods that select networks, two of each NAD.
fn fill_pods(cluster: &TestCluster) {
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for number in (writer..PODS).step_by(4) {
                    let networks = format!("a-network-of-usual-length-{}", number % EACH);
                    let pod = json!({
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": { "name": format!("a-pod-of-usual-length-{number}"), "namespace": "apps",
                            "annotations": { "k8s.v1.cni.cncf.io/networks": networks } },
                        "spec": { "containers": [{ "name": "c", "image": "i",
                            "resources": { "limits": { "openshift.io/cx7": "1" } } }] },
                    });
                    cluster.admin.create("/api/v1/namespaces/apps/pods", &pod);
                }
            });
        }
    });
}

/// Prints what pods add to an audit, and to the memory of the leader:
/// `cargo test --test cluster pods_of_many_objects -- --ignored --nocapture`.
#[test]
#[ignore = "it writes forty thousand objects"]
fn pods_of_many_objects() {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.namespace("apps");
    fill(&cluster, Some("openshift.io/cx7"));
    fill_pods(&cluster);
    let audit = |policy: &str| {
        let file = cluster.directory().join("audited.yaml");
        fs::write(&file, policy).unwrap();
        let mut command = nadmit(&["audit", "--output=json", "--policy"]);
        command.arg(file).arg("--kubeconfig").arg(cluster.kubeconfig("admin")).stdout(Stdio::null());
        let began = Instant::now();
        let mut audit = command.spawn().unwrap();
        let (mut peak, mut cpu) = (0.0, Duration::ZERO);
        while audit.try_wait().unwrap().is_none() {
            peak = try_rss(audit.id(), "VmHWM").unwrap_or(peak);
            cpu = used(audit.id());
            thread::sleep(Duration::from_millis(5));
        }
        println!("{policy}: {:.1?}, of which it computed {cpu:.2?}; at most {peak:.1} MiB", began.elapsed());
    };
    for _ in 1..=3 {
        audit("pods: \"off\"");
        audit("pods: warn");
    }
    for policy in ["pods: \"off\"", "pods: warn"] {
        cluster.deploy_with(policy);
        if policy.ends_with("warn") {
            allow_pods(&cluster);
        }
        let until = Instant::now() + Duration::from_secs(900);
        while !cluster.nadmit().log_text().contains("audited the cluster") {
            assert!(Instant::now() < until, "no full scan:\n{}", cluster.nadmit().log_text());
            thread::sleep(Duration::from_secs(1));
        }
        let pid = cluster.nadmit().pid();
        println!(
            "leader with {policy}: {:.1} MiB, at most {:.1}; computed {:.2?}",
            rss(pid, "VmRSS"),
            rss(pid, "VmHWM"),
            used(pid)
        );
        cluster.kill_nadmit();
    }
}

/// Prints the cost of a leader's audit while nothing changes:
/// `cargo test --test cluster idle_leader_writes_nothing -- --ignored --nocapture`.
#[test]
#[ignore = "it writes twenty thousand objects, and a report of each"]
fn idle_leader_writes_nothing() {
    const QUIET: Duration = Duration::from_secs(60);
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.namespace("apps");
    // The leader has nothing to complete, because that would be work.
    fill(&cluster, Some("openshift.io/cx7"));
    let began = Instant::now();
    cluster.deploy();
    let audited = |cluster: &TestCluster| cluster.nadmit().log_text().matches("audited the cluster").count();
    let until = Instant::now() + Duration::from_secs(900);
    while audited(&cluster) == 0 {
        assert!(Instant::now() < until, "no full scan:\n{}", cluster.nadmit().log_text());
        thread::sleep(Duration::from_secs(1));
    }
    let pid = cluster.nadmit().pid();
    println!("first full scan, with all reports written, after {:.1?}; computed {:.2?}", began.elapsed(), used(pid));
    let writes = |cluster: &TestCluster| {
        let metrics = cluster.nadmit().metrics_text();
        metrics
            .lines()
            .filter(|line| line.starts_with("nadmit_audit_report_writes_total{"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    // First wait for the work that the first scan started: objects that changed in the meantime, or were in their grace period,
    // are scanned again.
    let mut written = String::new();
    while writes(&cluster) != written {
        assert!(Instant::now() < until, "no end of writes: {written}");
        written = writes(&cluster);
        thread::sleep(QUIET);
    }
    let before = used(pid);
    thread::sleep(QUIET);
    println!("quiet: computed {:.2?} in {QUIET:.0?}; writes {written}", used(pid) - before);
    assert_eq!(writes(&cluster), written);
    // Another full scan, by a new leader.
    cluster.kill_nadmit();
    cluster.start_nadmit();
    let pid = cluster.nadmit().pid();
    wait("a full scan", || (audited(&cluster) > 0).then_some(()));
    let log = cluster.nadmit().log_text();
    println!("a full scan, and the start of nadmit: computed {:.2?}; {}", used(pid), writes(&cluster));
    println!("{}", log.lines().find(|line| line.contains("audited the cluster")).unwrap());
    println!("{:.1} MiB, at most {:.1}", rss(pid, "VmRSS"), rss(pid, "VmHWM"));
    assert_eq!(writes(&cluster), "");
}
