//! The certificate that replicas create, share and renew through a Secret.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nadmit::cluster::ServiceRef;
use nadmit::cluster::identity::certificates::{CertificateKeeper, Settings};
use nadmit::tls::Lifetimes;
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::{Client, Http, Trust, block_on};
use crate::clock::Clock;
use crate::cluster::{TestCluster, alone};
use crate::harness::{TestServer, nadmit};
use crate::objects::version;
use crate::processes::wait;
use crate::replicas::await_effect;
use crate::writers::Writers;

const SECRETS: &str = "/api/v1/namespaces/nadmit/secrets";
const SECRET: &str = "/api/v1/namespaces/nadmit/secrets/nadmit-tls";
const NAME: &str = "nadmit-tls";

fn start(cluster: &TestCluster, arguments: &[&str]) -> TestServer {
    start_prepared(cluster, arguments, |_| ())
}

/// The same, with a changed command.
fn start_prepared(cluster: &TestCluster, arguments: &[&str], prepare: impl Fn(&mut Command)) -> TestServer {
    let kubeconfig = cluster.kubeconfig("nadmit");
    let mut command = nadmit(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    command.args(["--tls-secret", NAME, "--kubeconfig", kubeconfig.to_str().unwrap()]).args(arguments);
    prepare(&mut command);
    TestServer::launch(command, tempfile::tempdir().unwrap())
}

/// Starts as many at the same moment; also returns how far apart they started.
fn start_at_once<const COUNT: usize>(start: impl Fn(usize) -> TestServer + Sync) -> (Vec<TestServer>, Duration) {
    let barrier = Barrier::new(COUNT);
    thread::scope(|scope| {
        let (barrier, start) = (&barrier, &start);
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                (Instant::now(), start(number))
            })
        };
        let started: Vec<_> = (0..COUNT).map(start).collect();
        let (at, servers): (Vec<_>, Vec<_>) = started.into_iter().map(|thread| thread.join().unwrap()).unzip();
        (servers, *at.iter().max().unwrap() - *at.iter().min().unwrap())
    })
}

fn text(secret: &Value, key: &str) -> String {
    let bytes = BASE64_STANDARD.decode(secret["data"][key].as_str().unwrap_or_default()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn authorities(bundle: &str) -> Vec<&str> {
    bundle.split_inclusive("-----END CERTIFICATE-----\n").collect()
}

/// Sends a health check on a new connection.
fn check_health(server: std::net::SocketAddr, bundle: &str) -> Result<(), String> {
    let trust = Trust::in_ca(bundle.as_bytes()).named("nadmit.nadmit.svc");
    block_on(async {
        let mut client = Client::connect(server, &trust, Http::One).await.map_err(|error| error.to_string())?;
        let answer = client.send("GET", "/healthz", &[], Vec::new()).await.map_err(|error| error.to_string())?;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
}

/// Clients that connect continuously to all replicas, with the bundle of the Secret, at most half a second old.
struct Callers {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    rejected: Arc<Mutex<Vec<String>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Callers {
    fn start(api: &Api, servers: &[TestServer]) -> Self {
        let (stop, asked, rejected) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default(), Arc::default());
        let callers =
            Self { stop: Arc::clone(&stop), asked: Arc::clone(&asked), rejected: Arc::clone(&rejected), thread: None };
        let (api, addresses) = (api.clone(), servers.iter().map(|server| server.https).collect::<Vec<_>>());
        // Read here, before the test changes the Secret.
        let mut bundle = text(&api.get(SECRET).unwrap(), "ca.crt");
        let mut read = Instant::now();
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if read.elapsed() > Duration::from_millis(500) {
                    read = Instant::now();
                    // Webhooks would not use the bundle of a deleted or damaged Secret.
                    let found = api.get(SECRET).map(|secret| text(&secret, "ca.crt"));
                    bundle = found.filter(|found| found.contains("END CERTIFICATE")).unwrap_or(bundle);
                }
                for address in &addresses {
                    asked.fetch_add(1, Ordering::Relaxed);
                    if let Err(problem) = check_health(*address, &bundle) {
                        rejected.lock().unwrap().push(format!("{address}: {problem}"));
                    }
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self { thread: Some(thread), ..callers }
    }

    /// The number of requests; none was rejected.
    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        assert_eq!(*self.rejected.lock().unwrap(), Vec::<String>::new());
        self.asked.load(Ordering::Relaxed)
    }
}

#[test]
fn replicas_that_start_at_once_agree_on_one_ca() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let watch = cluster.admin.watch(SECRETS);
    let quick: &[&str] = &["--propagation-time", "1200ms"];
    let (mut round, mut close) = (0, 0);
    while close < 20 {
        round += 1;
        assert!(round < 100, "only {close} rounds in which all started within 10 ms");
        let before = watch.of(NAME).len();
        let (servers, apart) = start_at_once::<3>(|_| start(&cluster, quick));
        close += usize::from(apart < Duration::from_millis(10));
        let secret = cluster.admin.get(SECRET).unwrap();
        let bundle = text(&secret, "ca.crt");
        assert_eq!(authorities(&bundle).len(), 1, "round {round}");
        for server in &servers {
            check_health(server.https, &bundle).unwrap();
            assert_eq!(
                server.metric("nadmit_certificate_reloads_total{result=\"taken\"}"),
                0.0,
                "the certificate was replaced"
            );
        }
        let makers =
            servers.iter().filter(|server| server.log_text().contains("created a new CA and certificate")).count();
        assert_eq!(makers, 1, "round {round}");
        drop(servers);
        assert_eq!(version(&cluster.admin.get(SECRET).unwrap()), version(&secret), "round {round}: written once");
        cluster.admin.delete(SECRET);
        watch.wait_deleted(NAME);
        assert_eq!(watch.of(NAME).len(), before + 2, "round {round}: one creation, one deletion");
    }
}

#[test]
fn six_rotations_reject_no_caller() {
    let _alone = alone();
    let mut cluster = TestCluster::start();
    let watch = cluster.admin.watch(SECRETS);
    // A CA every ten seconds, and in between another certificate of the same CA.
    for _ in 0..3 {
        cluster.start_replica(&["--ca-lifetime", "15s", "--leaf-lifetime", "12s", "--propagation-time", "1500ms"]);
    }
    await_effect(&cluster.admin);
    let writers = Writers::start(&cluster.jane);
    let callers = Callers::start(&cluster.admin, &cluster.nadmits);
    let until = Instant::now() + Duration::from_secs(150);
    let signers = || {
        let events = watch.of(NAME);
        let alone = events.iter().map(|event| text(&event.object, "ca.crt")).filter(|it| authorities(it).len() == 1);
        alone.collect::<BTreeSet<_>>().len()
    };
    while signers() < 7 {
        assert!(Instant::now() < until, "only {} CAs", signers());
        thread::sleep(Duration::from_millis(100));
    }
    let (asked, written) = (callers.end(), writers.end());
    assert!(asked > 1_000, "only {asked} handshakes");
    let events = watch.of(NAME);
    let leaves: BTreeSet<_> = events.iter().map(|event| text(&event.object, "tls.crt")).collect();
    println!(
        "{} CAs and {} certificates in {} writes; {asked} handshakes, {written} admissions, none failed",
        signers(),
        leaves.len(),
        events.len()
    );
    // The new CA is added, then the certificate changes, then the old CA is removed: never two of these in one write.
    for pair in events.windows(2) {
        let [before, after] =
            [&pair[0], &pair[1]].map(|event| (text(&event.object, "ca.crt"), text(&event.object, "tls.crt")));
        assert!(before.0 == after.0 || before.1 == after.1, "bundle and certificate changed at once");
    }
    for server in &cluster.nadmits {
        let expiry = server.metric("nadmit_certificate_expiry_timestamp_seconds{certificate=\"serving\"}");
        assert!(expiry > jiff::Timestamp::now().as_second() as f64, "{}", server.metrics_text());
        assert!(!server.log_text().contains("PRIVATE KEY") && !server.log_text().contains("\"ERROR\""));
    }
}

#[test]
fn deleted_or_damaged_secret_is_restored_without_rejections() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let quick: &[&str] = &["--propagation-time", "1800ms"];
    let (servers, _) = start_at_once::<2>(|_| start(&cluster, quick));
    let callers = Callers::start(&cluster.admin, &servers);
    let garbage = BASE64_STANDARD.encode("not a certificate");
    let keys = ["tls.crt", "tls.key", "ca.crt", "ca.key"];
    let all = json!({ "tls.crt": garbage, "tls.key": garbage, "ca.crt": garbage, "ca.key": null });
    let one = keys.map(|key| (key, Some(json!({ key: garbage }))));
    for (what, data) in [("deleted", None)].into_iter().chain(one).chain([("all", Some(all))]) {
        let old = cluster.admin.get(SECRET).unwrap();
        let begun = Instant::now();
        match data {
            None => cluster.admin.delete(SECRET),
            Some(data) => drop(cluster.admin.patch(SECRET, &json!({ "data": data }))),
        }
        let is_good = |secret: &Value| {
            let bundle = text(secret, "ca.crt");
            let is_clean = keys.iter().all(|key| text(secret, key).contains("END"));
            version(secret) != version(&old)
                && is_clean
                && servers.iter().all(|server| check_health(server.https, &bundle).is_ok())
        };
        cluster.admin.wait(SECRET, is_good);
        let restored = begun.elapsed();
        // One CA again, and all replicas serve its certificate.
        let replaced = cluster.admin.wait(SECRET, |secret| {
            let bundle = text(secret, "ca.crt");
            is_good(secret) && authorities(&bundle).len() == 1
        });
        println!("{what}: good after {restored:?}, one CA after {:?}", begun.elapsed());
        // Replicas check every 150 ms here, every five seconds by default.
        assert!(restored < Duration::from_secs(5), "{what}: {restored:?}");
        assert_ne!(text(&replaced, "tls.crt"), text(&old, "tls.crt"), "{what}");
        assert_eq!(replaced["type"], "kubernetes.io/tls");
    }
    callers.end();
    for server in &servers {
        assert!(!server.log_text().contains("PRIVATE KEY"));
    }
    assert!(
        servers.iter().any(|server| server.log_text().contains("replaced invalid Secret content")),
        "the replacement is logged"
    );
}

#[test]
fn replicas_with_clock_skew_converge() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let watch = cluster.admin.watch(SECRETS);
    let clock = Clock::compile();
    for wrong in [3600, -3600] {
        let before = watch.of(NAME).len();
        let offsets = [0, wrong, 0];
        let (servers, _) = start_at_once::<3>(|number| {
            let shift = |command: &mut Command| clock.shift(command, offsets[number]);
            start_prepared(&cluster, &["--propagation-time", "1200ms"], shift)
        });
        let shown = servers.iter().map(|server| server.wait_for_log("serving", |line| line["message"] == "serving"));
        for (line, offset) in shown.zip(offsets) {
            let logged: jiff::Timestamp = line["timestamp"].as_str().unwrap().parse().unwrap();
            let ahead = logged.as_second() - jiff::Timestamp::now().as_second();
            assert!((ahead - offset).abs() < 600, "its clock is {ahead} s ahead instead of {offset} s: {line}");
        }
        let callers = Callers::start(&cluster.admin, &servers);
        // Thirty checks of each replica, in which nothing is written.
        let quiet = |writes: usize| {
            thread::sleep(Duration::from_secs(3));
            assert_eq!(watch.of(NAME).len(), before + writes);
        };
        quiet(1);
        cluster.admin.delete(SECRET);
        // The Secret is deleted, the new CA is added to the old one, the certificate changes, and the old CA is removed.
        wait("the rotation", || (watch.of(NAME).len() == before + 5).then_some(()));
        quiet(5);
        callers.end();
        assert!(servers.iter().all(|server| !server.log_text().contains("invalid Secret content")));
        drop(servers);
        cluster.admin.delete(SECRET);
        watch.wait_deleted(NAME);
    }
}

#[test]
fn certificate_switches_after_all_webhooks_have_the_ca() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let propagation = Duration::from_millis(600);
    let settings = Settings {
        home: ServiceRef { namespace: "nadmit".to_owned(), service: "nadmit".to_owned() },
        secret: NAME.to_owned(),
        lifetimes: Lifetimes { propagation, ..Lifetimes::default() },
        client_ca: None,
    };
    let (webhooks, registered) = tokio::sync::watch::channel(None);
    let changes = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&changes);
    let bundle = block_on(async {
        let api = nadmit::cluster::client::Cluster::by_kubeconfig(&cluster.kubeconfig("nadmit")).await.unwrap();
        let (_, certificates) = CertificateKeeper::start(api, settings, registered).await;
        let bundle = certificates.bundle();
        tokio::spawn(certificates.run(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        bundle
    });
    let first = bundle.borrow().clone();
    webhooks.send_replace(Some(first.clone()));
    cluster.admin.delete(SECRET);
    let both = wait("a new CA in the bundle", || Some(bundle.borrow().clone()).filter(|now| *now != first));
    assert_eq!(authorities(&both).len(), 2);
    assert!(both.ends_with(&first), "the new CA is added to the old one");
    // Much longer than the switch takes otherwise.
    thread::sleep(propagation * 4);
    assert_eq!((bundle.borrow().clone(), changes.load(Ordering::Relaxed)), (both.clone(), 0));
    webhooks.send_replace(Some(both.clone()));
    let alone = wait("the old CA to go", || Some(bundle.borrow().clone()).filter(|now| *now != both));
    assert_eq!((authorities(&alone).len(), changes.load(Ordering::Relaxed)), (1, 1));
    assert!(both.starts_with(&alone));
}

#[test]
fn replica_waits_for_the_secret_and_logs_it() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let kubeconfig = cluster.kubeconfig("jane");
    let mut command = nadmit(&["serve", "--listen", "127.0.0.1:0", "--tls-secret", NAME]);
    command.args(["--metrics-listen", "127.0.0.1:0", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let log = tempfile::tempdir().unwrap();
    let mut replica = crate::processes::Process::start("nadmit", log.path(), &mut command);
    wait("the log line about the missing permission", || {
        replica.check();
        let log = replica.log();
        (log.contains("waiting for the certificate Secret") && log.contains("forbidden")).then_some(())
    });
    // As soon as nadmit has the permission, it serves.
    let grant = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "jane" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nadmit" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    cluster.admin.create("/apis/rbac.authorization.k8s.io/v1/namespaces/nadmit/rolebindings", &grant);
    wait("the server", || {
        replica.check();
        replica.log().contains("\"serving\"").then_some(())
    });

    let out = crate::harness::run(nadmit(&["serve", "--tls-secret", NAME]));
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("--tls-secret needs a cluster"), "{out:?}");
}
