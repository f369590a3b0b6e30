//! An object that makes nadmit panic, and a task that ends: neither stops anything else.
//!
//! No such object is known, so most of these tests panic themselves, in code that nadmit calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nadmit::cluster::cache::facts::{FactSource, FactsFuture, FactsQuery};
use nadmit::cluster::identity::lease::{Candidate, Claim, Timing};
use nadmit::cluster::leader::audit::Auditor;
use nadmit::cluster::leader::completion::{Completer, CompletionRound, IncompleteObjects};
use nadmit::cluster::leader::dry_run::DryRunDenials;
use nadmit::cluster::leader::full_scan::FullScan;
use nadmit::cluster::leader::object_audit::{ScanSink, Scanned};
use nadmit::cluster::leader::scan_scope::ScanScope;
use nadmit::cluster::{ApiObject, CachedCluster, Caches, WatchObserver};
use nadmit::policy::{Facts, NameVisibility, Policy, Rewrites};
use nadmit::resources::{Object, ObjectKey};
use nadmit::supervise::{Panicked, Pauses, Supervisor};
use nadmit::telemetry::Metrics;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Http, Trust, block_on};
use crate::cluster::TestCluster;
use crate::harness::TestServer;
use crate::objects::{TestNetworkKind, annotated, nad, nad_at, nads, network};
use crate::processes::wait;

const POISON: &str = "poison";
const INCOMPLETE: &str = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#;

fn as_nadmit(cluster: &TestCluster) -> nadmit::cluster::Cluster {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    block_on(nadmit::cluster::client::Cluster::by_kubeconfig(&cluster.kubeconfig("nadmit"))).unwrap()
}

/// Metrics and a supervisor for tasks in the test itself.
fn supervised() -> (Metrics, Supervisor) {
    let metrics = Metrics::default();
    let [first, longest, steady] = [10, 100, 200].map(Duration::from_millis);
    let supervisor = Supervisor::new(&metrics.tasks, Pauses { first, longest, steady });
    (metrics, supervisor)
}

fn wait_for_series(metrics: &Metrics, series: &str) {
    wait(series, || metrics.text().lines().any(|line| line == series).then_some(()));
}

/// Panics on one object, as a judgement might.
#[derive(Default)]
struct PanickingSink {
    scanned: Vec<String>,
    skipped: Vec<String>,
}

impl ScanSink for PanickingSink {
    fn expect(&mut self, _: usize) {}

    fn rewrites(&self, _: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        assert_ne!(key.name(), POISON, "it is poison");
        None
    }

    async fn scanned(&mut self, scanned: Scanned<'_>) {
        self.scanned.push(format!("{} {}", scanned.object.kind(), scanned.object.meta().name));
    }

    fn skipped(&mut self, object: &str, panicked: &Panicked) {
        assert!(panicked.to_string().contains("it is poison"), "{panicked}");
        self.skipped.push(object.to_owned());
    }
}

#[test]
fn audit_skips_objects_that_panic() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    for name in ["a", POISON, "z"] {
        cluster.admin.create(&nads("apps"), &nad(name, INCOMPLETE));
        cluster
            .admin
            .create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, name, "apps", &json!({})));
    }
    let (policy, mut sink) = (Policy::default(), PanickingSink::default());
    let api = as_nadmit(&cluster);
    let scope = ScanScope::default();
    let full_scan = FullScan { cluster: &api, policy: &policy, names: NameVisibility::All, scope, caches: None };
    block_on(full_scan.run(jiff::Timestamp::now(), &mut DryRunDenials::default(), &mut sink)).unwrap();
    sink.scanned.sort();
    let kind = "NetworkAttachmentDefinition";
    assert_eq!(
        sink.scanned,
        [format!("{kind} a"), format!("{kind} z"), "SriovNetwork a".into(), "SriovNetwork z".into()]
    );
    sink.skipped.sort();
    let home = crate::objects::OPERATOR;
    assert_eq!(sink.skipped, [format!("{kind} apps/{POISON}"), format!("SriovNetwork {home}/{POISON}")]);
}

/// Records every write, and panics on one object.
#[derive(Default)]
struct ObservedNames(Mutex<Vec<String>>);

impl WatchObserver for ObservedNames {
    fn on_applied(&self, _: &'static str, object: &ApiObject<'_>) {
        assert_ne!(object.key.name(), POISON, "it is poison");
        self.0.lock().unwrap().push(object.key.name().to_owned());
    }

    fn on_deleted(&self, _: &'static str, object: &ApiObject<'_>) {
        assert_ne!(object.key.name(), POISON, "it is poison");
    }
}

#[test]
fn watch_continues_after_a_panicking_object() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    let (metrics, supervisor) = supervised();
    let api = as_nadmit(&cluster);
    let caches = block_on(async { Caches::start(&api, &metrics.caches, &supervisor) });
    assert!(block_on(caches.listed(Duration::from_secs(60))).is_empty());
    let seen = Arc::new(ObservedNames::default());
    caches.set_observer(Some(Arc::clone(&seen) as _));
    for name in [POISON, "after"] {
        cluster.admin.create(&nads("apps"), &nad(name, INCOMPLETE));
    }
    cluster.admin.delete(&nad_at("apps", POISON));
    cluster.admin.create(&nads("apps"), &nad("last", INCOMPLETE));
    wait("the events after the panic", || seen.0.lock().unwrap().contains(&"last".to_owned()).then_some(()));
    assert!(seen.0.lock().unwrap().contains(&"after".to_owned()));
    assert_eq!(supervisor.failure(), None);
    // The cache has this object, too: only the observer did not see it.
    wait_for_series(&metrics, "nadmit_cache_objects{kind=\"NetworkAttachmentDefinition\"} 2");
    wait_for_series(&metrics, "nadmit_cache_skipped_total{kind=\"NetworkAttachmentDefinition\"} 2");
    wait_for_series(&metrics, "nadmit_task_up{task=\"caches\"} 1");
}

/// Knows no facts, and panics on one object.
struct NoFacts;

impl FactSource for NoFacts {
    fn known(&self, object: &Object<'_>, _: &Policy) -> Facts {
        assert_ne!(object.meta().name, POISON, "it is poison");
        Facts::default()
    }

    fn find<'a>(&'a self, _: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        Box::pin(async { Ok(None) })
    }
}

#[test]
fn completion_continues_after_a_panicking_object() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    let incomplete = Arc::<IncompleteObjects>::default();
    for name in ["a", POISON, "z"] {
        let stored = cluster.admin.create(&nads("apps"), &nad(name, INCOMPLETE)).to_string();
        incomplete.set(&Object::read(&stored).unwrap().unwrap(), true);
    }
    let (metrics, supervisor) = supervised();
    let api = as_nadmit(&cluster);
    let caches = block_on(async { Caches::start(&api, &metrics.caches, &supervisor) });
    let completer = Completer {
        cached: Arc::new(CachedCluster { cluster: api, caches }),
        incomplete,
        source: Arc::new(NoFacts),
        policy: Arc::default(),
        completions: metrics.completions.clone(),
        supervisor,
    };
    let round = block_on(completer.complete_all(|| true));
    assert_eq!(round, CompletionRound { checked: 3, completed: 2, failed: 1 });
    assert_eq!(block_on(completer.complete_all(|| true)), CompletionRound::default(), "none is left");
    for (name, want) in [("a", Some("a.io/b")), (POISON, None), ("z", Some("a.io/b"))] {
        assert_eq!(annotated(&cluster.admin.get(&nad_at("apps", name)).unwrap()), want, "{name}");
    }
    let text = metrics.text();
    assert!(text.contains("nadmit_completions_total{result=\"failed\"} 1\n"), "{text}");
    assert!(text.contains("nadmit_task_panics_total{task=\"completion\"} 1\n"), "{text}");
}

/// The replica keeps the lease, and the restarted task does its work.
#[test]
fn leader_task_is_restarted() {
    let cluster = TestCluster::start();
    let (metrics, supervisor) = supervised();
    let api = as_nadmit(&cluster);
    let caches = block_on(async { Caches::start(&api, &metrics.caches, &supervisor) });
    let cached = Arc::new(CachedCluster { cluster: api.clone(), caches });
    let candidate = Candidate {
        cluster: api,
        namespace: "nadmit".to_owned(),
        name: "nadmit".to_owned(),
        identity: "test".to_owned(),
        timing: Timing::default(),
    };
    let (claim, claims) = watch::channel(Claim::default());
    let auditor = Auditor {
        cached,
        policy: Arc::default(),
        metrics: metrics.audit.clone(),
        identity: "test".to_owned(),
        supervisor: supervisor.clone(),
        incomplete: Arc::default(),
    };
    let starts = Arc::new(AtomicUsize::new(0));
    let (kills, killed) = watch::channel(0);
    block_on(async {
        let counted = Arc::clone(&starts);
        let stop = CancellationToken::new();
        supervisor.restarted("lease", move || candidate.clone().run(claim.clone(), stop.clone()));
        supervisor.restarted("audit", move || {
            let (number, mut killed) = (counted.fetch_add(1, Ordering::SeqCst), killed.clone());
            let audit = auditor.clone().run(claims.clone());
            async move {
                tokio::select! {
                    () = audit => {}
                    Ok(_) = killed.wait_for(|kills| *kills > number) => panic!("killed"),
                }
            }
        });
    });
    let scanned = || metrics.text().contains("nadmit_audit_last_scan_timestamp_seconds");
    wait("a scan", || scanned().then_some(()));
    kills.send_replace(1);
    wait_for_series(&metrics, "nadmit_task_up{task=\"audit\"} 0");
    wait_for_series(&metrics, "nadmit_task_up{task=\"audit\"} 1");
    wait("another scan", || scanned().then_some(()));
    wait_for_series(&metrics, "nadmit_task_panics_total{task=\"audit\"} 1");
    assert_eq!(starts.load(Ordering::SeqCst), 2);
    let lease = cluster.admin.get("/apis/coordination.k8s.io/v1/namespaces/nadmit/leases/nadmit").unwrap();
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]), (&"test".into(), &0.into()));
    assert_eq!(supervisor.failure(), None);
}

/// Texts that crash the YAML parser, or fill its memory, in fields that the operator inserts into a template.
fn hostile() -> Vec<Value> {
    let nested = format!("'\nx: {}", "[".repeat(5000));
    let wide = format!("'\nx: &a [{}]\ny: [{}]\nz: '", "0,".repeat(5000), "*a,".repeat(5000));
    let mut bomb = "'\na: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f"), ("h", "g")] {
        bomb += &format!("{name}: &{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]\n");
    }
    let texts = ["'\nx: [!,", "'\nx: [!a,]\ny: '", "'\nx: ''|\n 0", "\u{1b}[2J\u{202e}", &nested, &wide, &bomb];
    texts.into_iter().map(|text| json!({ "ipam": text })).collect()
}

/// The status of a replica's readiness probe.
fn ready(cluster: &TestCluster, server: &TestServer) -> u16 {
    let secret = cluster.admin.get("/api/v1/namespaces/nadmit/secrets/nadmit-tls").unwrap();
    let ca = BASE64_STANDARD.decode(secret["data"]["ca.crt"].as_str().unwrap()).unwrap();
    let trust = Trust::in_ca(&ca).named("nadmit.nadmit.svc");
    block_on(async {
        let mut client = Client::connect(server.https, &trust, Http::One).await.unwrap();
        client.send("GET", "/readyz", &[], Vec::new()).await.unwrap().status.as_u16()
    })
}

#[test]
fn hostile_objects_do_not_stop_the_replicas() {
    let mut cluster = TestCluster::start();
    cluster.namespace("apps");
    for (number, fields) in hostile().iter().enumerate() {
        let stored = network(TestNetworkKind::Sriov, &format!("hostile-{number}"), "apps", fields);
        cluster.admin.create(&TestNetworkKind::Sriov.path(), &stored);
    }
    cluster.deploy();
    cluster.start_nadmit();
    let leads = |server: &&TestServer| server.metrics_text().contains("nadmit_audit_last_scan_timestamp_seconds");
    wait("a scan", || cluster.nadmits.iter().find(leads).map(|_| ()));
    for server in &cluster.nadmits {
        wait("the registration", || (server.metric("nadmit_registered") == 1.0).then_some(()));
        assert_eq!(ready(&cluster, server), 200);
        let metrics = server.metrics_text();
        let tasks: Vec<_> = metrics.lines().filter(|line| line.starts_with("nadmit_task_up{")).collect();
        assert_eq!(tasks.len(), 15, "{tasks:?}");
        assert!(tasks.iter().all(|line| line.ends_with(" 1")), "{tasks:?}");
        let panics = metrics.lines().filter(|line| line.starts_with("nadmit_task_panics_total{"));
        assert!(panics.clone().count() == tasks.len() && panics.clone().all(|line| line.ends_with(" 0")));
    }
    // The next one is denied, not stored unjudged, and the message has no characters that a terminal interprets.
    for (number, fields) in hostile().iter().enumerate() {
        let sent = network(TestNetworkKind::Sriov, &format!("more-{number}"), "apps", fields);
        let error = cluster.jane.try_create(&TestNetworkKind::Sriov.path(), &sent).expect_err("it is denied");
        // The backstop denies some of them before nadmit is called.
        let is_denied = ["denied the request", "denied request"].iter().any(|words| error.message.contains(words));
        assert!(is_denied, "{error:?}");
        assert!(!error.message.contains(['\u{1b}', '\u{202e}']), "{error:?}");
    }
}
