//! Many networks at once, half of them deleted and created again. Each test runs alone, because it measures times.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Watch};
use crate::cluster::{PREFIX, TestCluster, alone};
use crate::objects::{TestNetworkKind, annotated, configured, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const NETWORKS: usize = 200;
const WRITERS: usize = 4;
/// The time limit for a network's NAD after the last write of the network.
const SOON: Duration = Duration::from_secs(5);
/// The same if the machine is busy at that moment: a lost network, or one that waits for the operator's next
/// retry, takes far longer.
const LONGEST: Duration = Duration::from_secs(30);
/// The number of attempts until one storm meets [`SOON`] for every network.
const STORMS: usize = 3;
/// How often nadmit stops and starts in a storm.
const RESTARTS: usize = 3;

/// Records the requests for the objects of a storm, and their users.
const AUDIT: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: k8s.cni.cncf.io}, {group: sriovnetwork.openshift.io}, {group: apps}]
";

fn name(number: usize) -> String {
    format!("net-{number}")
}

fn is_recreated(number: usize) -> bool {
    (number / WRITERS).is_multiple_of(2)
}

/// The name of its resource, another one each time that a network is created.
fn resource(number: usize, round: usize) -> String {
    format!("r{number}-{round}")
}

/// The last write of a network.
#[derive(Clone, Copy)]
struct Written {
    at: Instant,
    round: usize,
}

/// Threads that write networks until the storm may end.
struct Storm {
    may_end: Arc<AtomicBool>,
    writer: JoinHandle<Vec<Written>>,
    nads: Watch,
}

impl Storm {
    /// Starts; half of the networks are deleted and created again, at least once, and repeatedly until the storm may end.
    fn begin(cluster: &TestCluster) -> Self {
        cluster.namespace("apps");
        let nads = cluster.admin.watch(&nads("apps"));
        let may_end = Arc::new(AtomicBool::new(false));
        let (jane, until) = (cluster.jane.clone(), Arc::clone(&may_end));
        Self { may_end, writer: thread::spawn(move || write(&jane, &until)), nads }
    }

    /// Ends it, and waits until every network has the correct NAD; returns the longest time that a network was without, since its last write
    /// or since `since`, whichever is later.
    fn end(self, since: Option<Instant>, is_as_it_should_be: fn(&Value, &str) -> bool) -> (Duration, Watch) {
        self.may_end.store(true, Ordering::Relaxed);
        let (written, watch) = (self.writer.join().unwrap(), self.nads);
        let is_complete = |number: usize, nad: &Value| {
            is_as_it_should_be(nad, &format!("{PREFIX}/{}", resource(number, written[number].round)))
        };
        wait("every NAD", || {
            // Polling too often would take processor time from the operator and nadmit.
            thread::sleep(Duration::from_millis(100));
            let now = watch.now();
            let now: HashMap<_, _> = now.iter().map(|nad| (nad["metadata"]["name"].as_str().unwrap(), nad)).collect();
            let exists = |number: usize| now.get(&*name(number)).is_some_and(|nad| is_complete(number, nad));
            (now.len() == NETWORKS && (0..NETWORKS).all(exists)).then_some(())
        });
        let took = |(number, written): (usize, &Written)| {
            let complete = watch.of(&name(number)).into_iter().rev();
            let complete = complete.take_while(|event| event.exists && is_complete(number, &event.object));
            let from = since.map_or(written.at, |since| since.max(written.at));
            complete.last().unwrap().at.saturating_duration_since(from)
        };
        (written.iter().enumerate().map(took).max().unwrap(), watch)
    }
}

/// Writes all networks; returns when each was last written.
fn write(api: &Api, may_end: &AtomicBool) -> Vec<Written> {
    let written = Mutex::new(vec![Written { at: Instant::now(), round: 0 }; NETWORKS]);
    let networks = &api.watch(&TestNetworkKind::Sriov.path());
    let make = |number: usize, round: usize| {
        let fields = json!({ "resourceName": resource(number, round) });
        api.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, &name(number), "apps", &fields));
        written.lock().unwrap()[number] = Written { at: Instant::now(), round };
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mine = || (writer..NETWORKS).step_by(WRITERS);
                mine().for_each(|number| make(number, 0));
                for round in 1.. {
                    for number in mine().filter(|number| is_recreated(*number)) {
                        api.delete(&TestNetworkKind::Sriov.at(&name(number)));
                        // Its name is in use until the operator has removed its finalizer.
                        networks.wait_deleted(&name(number));
                        make(number, round);
                    }
                    if may_end.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
    });
    written.into_inner().unwrap()
}

/// Ends the storm; returns the longest time that a network was without its NAD.
fn end(cluster: &TestCluster, storm: Storm, since: Option<Instant>) -> Duration {
    let (longest, nads) = storm.end(since, has_both);
    println!("each complete within {longest:.1?} of its last write; processor time {:.1?}", cluster.used());
    assert!(longest < LONGEST, "a network was without its NAD for {longest:.1?}");
    assert_never_incomplete(&nads);
    longest
}

/// In a storm every network has its NAD soon. The time is that of the operator, which reconciles one network after the other, and depends
/// on the load of the machine: if it took longer, the operator alone does the same work, with a template that needs no repair, and
/// two and a half times its time is accepted.
fn assert_soon(storm: impl Fn() -> Duration) {
    let _alone = alone();
    let mut took = Vec::new();
    while took.len() < STORMS {
        let longest = storm();
        if longest < SOON || longest < without_nadmit() * 5 / 2 {
            return;
        }
        took.push(longest);
    }
    panic!("none of {STORMS} storms met the time limit: {took:.1?}");
}

/// The time of the operator alone.
fn without_nadmit() -> Duration {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    let (took, _) = Storm::begin(&cluster).end(None, is_annotated);
    println!("without nadmit: each within {took:.1?}; processor time {:.1?}", cluster.used());
    took
}

fn is_annotated(nad: &Value, want: &str) -> bool {
    annotated(nad) == Some(want)
}

fn has_both(nad: &Value, want: &str) -> bool {
    is_annotated(nad, want) && configured(nad).as_deref() == Some(want)
}

/// The operator's errors that nadmit causes.
fn errors(cluster: &TestCluster) -> Vec<String> {
    cluster.operator_errors("nadmit")
}

/// Every NAD was complete from its creation on.
fn assert_never_incomplete(watch: &Watch) {
    for number in 0..NETWORKS {
        let of_this = format!("{PREFIX}/r{number}-");
        for event in watch.of(&name(number)) {
            let named = annotated(&event.object).filter(|name| name.starts_with(&of_this));
            let is_complete = named.is_some() && configured(&event.object).as_deref() == named;
            assert!(is_complete, "the NAD was incomplete: {:#}", event.object);
        }
    }
}

/// nadmit causes little load: it sends less than half as many requests as others write, and is called for at most seven of ten
/// writes. (Two requests for each network and its NAD, which the audit reads after they have converged, do not count.)
fn assert_unobtrusive(cluster: &TestCluster) {
    let log = fs::read_to_string(cluster.audit_log()).unwrap();
    // The audit log is still being written.
    let (log, _) = log.rsplit_once('\n').unwrap();
    let (mut requests, mut writes) = (0, 0);
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let is_ours = event["user"]["username"] == "system:serviceaccount:nadmit:nadmit";
        let is_write = ["create", "update", "patch", "delete"].contains(&event["verb"].as_str().unwrap());
        requests += usize::from(is_ours);
        writes += usize::from(is_write && !is_ours);
    }
    let metric = |endpoint: &str| format!("nadmit_review_duration_seconds_count{{endpoint=\"{endpoint}\"}}");
    let reviews: f64 = ["mutate", "validate"].iter().map(|endpoint| cluster.nadmit().metric(&metric(endpoint))).sum();
    println!("{writes} writes, {reviews} reviews by nadmit, {requests} requests of nadmit");
    assert!(reviews < 0.7 * writes as f64);
    assert!(requests < writes / 2 + 2 * NETWORKS);
}

#[test]
fn storm_with_stable_replicas() {
    assert_soon(|| {
        let mut cluster = TestCluster::with_audit_log(AUDIT);
        cluster.deploy();
        cluster.start_operator(OperatorTemplate::Faulty);
        let longest = end(&cluster, Storm::begin(&cluster), None);
        assert_unobtrusive(&cluster);
        assert_eq!(errors(&cluster), [""; 0]);
        longest
    });
}

/// The upstream operator. Its NADs work without nadmit, which adds the name to the config.
#[test]
fn with_the_upstream_template() {
    assert_soon(|| {
        let cluster = TestCluster::with_nadmit(OperatorTemplate::Upstream);
        let longest = end(&cluster, Storm::begin(&cluster), None);
        assert_eq!(errors(&cluster), [""; 0]);
        longest
    });
}

#[test]
fn storm_during_rolling_restart() {
    assert_soon(|| {
        let mut cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
        cluster.start_nadmit();
        let storm = Storm::begin(&cluster);
        for _ in 0..RESTARTS {
            cluster.start_nadmit();
            cluster.end_oldest_nadmit();
        }
        // The start of a nadmit takes processor time, which does not count.
        let longest = end(&cluster, storm, Some(Instant::now()));
        // No write failed.
        assert_eq!(errors(&cluster), [""; 0]);
        longest
    });
}

#[test]
fn storm_while_nadmit_restarts() {
    assert_soon(|| {
        let mut cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
        let storm = Storm::begin(&cluster);
        for _ in 0..RESTARTS {
            let reviewed = |cluster: &TestCluster| {
                cluster.nadmit().metric("nadmit_review_duration_seconds_count{endpoint=\"mutate\"}")
            };
            wait("twenty reviews", || (reviewed(&cluster) > 20.0).then_some(()));
            let before = errors(&cluster).len();
            cluster.kill_nadmit();
            let away = Instant::now();
            wait("an attempt without nadmit", || (errors(&cluster).len() > before).then_some(()));
            cluster.start_nadmit();
            println!("away for {:.1?}", away.elapsed());
        }
        // While nadmit was down nothing could be written: that time does not count, and the operator's only errors are about it.
        let longest = end(&cluster, storm, Some(Instant::now()));
        for error in errors(&cluster) {
            assert!(error.contains("failed calling webhook"), "{error}");
        }
        longest
    });
}
