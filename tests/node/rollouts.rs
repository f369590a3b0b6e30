//! Pods of nadmit come and go under constant writes. Where Kubernetes ends them in order, no write fails and none is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use super::deployment::servers;
use super::{Node, on_a_node};
use crate::api::Api;
use crate::objects::{TestNetworkKind, nad, nad_at, nads, network};
use crate::processes::wait;
use crate::writers::Writers;

/// For how long writes may be missed after one of two replicas was killed.
const LONGEST_GAP: Duration = Duration::from_millis(100);
const MOST_TRIES: usize = 3;

/// What happened to the writes during a disturbance.
pub struct Disturbance {
    took: Duration,
    written: usize,
    /// Those that nadmit did not answer, with the time since the disturbance began.
    pub missed: Vec<(Duration, String)>,
}

impl Disturbance {
    fn new(started: Instant, took: Duration, written: usize, missed: Vec<(Instant, String)>) -> Self {
        let since = |at: Instant| at.saturating_duration_since(started);
        Self { took, written, missed: missed.into_iter().map(|(at, problem)| (since(at), problem)).collect() }
    }

    /// Prints a row of the table in docs/operations.md.
    fn show(&self, what: &str) {
        let ((unjudged, failed), window) = (self.counts(), self.window());
        println!("| {what} | {:.1?} | {} | {unjudged} | {failed} | {window:.0?} |", self.took, self.written);
    }

    /// From the first to the last write that nadmit did not answer.
    pub fn window(&self) -> Duration {
        let times = || self.missed.iter().map(|(at, _)| *at);
        times().max().unwrap_or_default().saturating_sub(times().min().unwrap_or_default())
    }

    /// From its beginning to the last write that nadmit did not answer.
    fn until_last(&self) -> Duration {
        self.missed.iter().map(|(at, _)| *at).max().unwrap_or_default()
    }

    /// How many bad writes were accepted, and how many good ones failed.
    fn counts(&self) -> (usize, usize) {
        let unjudged = self.missed.iter().filter(|(_, problem)| problem.contains("was accepted")).count();
        (unjudged, self.missed.len() - unjudged)
    }
}

/// Runs something under constant writes: there are some before and some after it.
pub fn under_writes(node: &Node, what: &str, work: impl FnOnce()) -> Disturbance {
    let writers = Writers::start(&node.cluster.jane);
    let more = |number: usize| {
        let from = writers.written();
        wait("more writes", || (writers.written() >= from + number).then_some(()));
    };
    more(200);
    let started = Instant::now();
    work();
    let took = started.elapsed();
    more(200);
    let (written, missed) = writers.outcome();
    let result = Disturbance::new(started, took, written, missed);
    result.show(what);
    result
}

/// The writes while nothing happens.
fn undisturbed(node: &Node, what: &str) -> Disturbance {
    let writers = Writers::start(&node.cluster.jane);
    let started = Instant::now();
    wait("the writes", || (writers.written() >= 4000).then_some(()));
    let took = started.elapsed();
    let (written, missed) = writers.outcome();
    let result = Disturbance::new(started, took, written, missed);
    result.show(what);
    result
}

/// The same, where nadmit must answer every write.
pub fn without_a_gap(node: &Node, what: &str, work: impl FnOnce()) {
    let result = under_writes(node, what, work);
    assert!(result.missed.is_empty(), "{what}: {:#?}", result.missed);
    assert!(result.written > 1000, "{}", result.written);
}

/// Ends a process of nadmit at once, as nothing but the kernel or the node does.
fn kill(pids: &[u32]) {
    let mut command = std::process::Command::new("kill");
    command.arg("-9").args(pids.iter().map(ToString::to_string));
    assert!(command.status().unwrap().success());
}

/// Writes until it ends what nobody may store: incomplete NADs, whose reviews fail closed, networks that inject into the operator's
/// template, which the backstop denies, and broken NADs, whose reviews fail open.
pub struct BadWriter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl BadWriter {
    /// The names of what it writes have that of the run in them.
    pub fn start(api: &Api, run: &str) -> Self {
        let (stop, api, run) = (Arc::<AtomicBool>::default(), api.clone(), run.to_owned());
        let ends = Arc::clone(&stop);
        let injection = json!({ "resourceName": "cx7\n---\nkind: Pod" });
        let thread = thread::spawn(move || {
            let mut stored = Vec::new();
            for number in 0.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let name = |kind: &str| format!("{kind}-{run}-{number}");
                let nad = |kind: &str, config: &str| (name(kind), nads("default"), nad(&name(kind), config));
                let network = network(TestNetworkKind::Sriov, &name("injection"), "default", &injection);
                for (name, path, object) in [
                    nad("incomplete", r#"{"cniVersion":"1.0.0","type":"sriov"}"#),
                    (name("injection"), TestNetworkKind::Sriov.path(), network),
                    nad("broken", "not JSON"),
                ] {
                    if api.try_create(&path, &object).is_ok() {
                        stored.push(name);
                    }
                }
            }
            stored
        });
        Self { stop, thread }
    }

    /// The names of those that were stored.
    pub fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Waits until two replicas run, and none of the killed ones.
pub fn await_others_than(killed: &[u32]) {
    let is_new = |servers: &Vec<u32>| servers.len() == 2 && !servers.iter().any(|pid| killed.contains(pid));
    wait("the killed replicas to come back", || Some(servers()).filter(is_new));
}

#[test]
fn no_write_is_missed_while_pods_are_replaced_in_order() {
    on_a_node(|node| {
        let without = undisturbed(node, "nothing, without nadmit");
        assert_eq!(without.missed.len(), without.written, "nobody denies, nobody repairs");
        node.install();
        assert!(undisturbed(node, "nothing, with nadmit").missed.is_empty());
        without_a_gap(node, "rollout restart", || {
            node.restart(1);
            node.await_rollout();
        });
        // The same program: no earlier release has an image that could be rolled from.
        without_a_gap(node, "rollout of the same image under another name", || {
            super::container::tag("docker.io/library/nadmit:next");
            node.change(&json!({ "spec": { "template": { "spec": { "containers": [{ "name": "nadmit", "image": "nadmit:next" }] } } } }));
            node.await_rollout();
        });
        without_a_gap(node, "eviction of both, one after the other", || {
            for pod in node.ready_pods() {
                // The second one is not evicted before the first one is replaced.
                wait("the PodDisruptionBudget", || node.evict(&pod).then_some(()));
            }
            node.await_rollout();
        });
        without_a_gap(node, "to one replica and back", || {
            for replicas in [1, 2] {
                node.change(&json!({ "spec": { "replicas": replicas } }));
                node.await_rollout();
            }
        });
        // New pods that cannot start do not replace the old ones.
        without_a_gap(node, "rollout with a memory limit that is too low", || {
            node.limit_memory("4Mi");
            wait("a pod that is killed", || node.has_failed_container().then_some(()));
            node.limit_memory("128Mi");
            node.await_rollout();
        });
    });
}

#[test]
fn killed_replicas_are_missed_for_a_moment_only() {
    on_a_node(|node| {
        node.cluster.create_other_crds();
        node.install();
        // While no replica answers, the API server rejects NADs with a device plugin; the audit reports the others. The machine of the
        // tests may be busy: one of three times must be as fast as on a quiet one.
        let is_soon = (1..=MOST_TRIES).any(|number| {
            let pids = servers();
            assert_eq!(pids.len(), 2, "{pids:?}");
            let writer = BadWriter::start(&node.cluster.jane, &format!("one-{number}"));
            let result = under_writes(node, "kill -9 of one of two", || {
                kill(&pids[..1]);
                await_others_than(&pids[..1]);
                node.await_rollout();
            });
            println!("the last write that was missed came {:.0?} after the kill", result.until_last());
            all_are_reported(node, &writer.end());
            result.until_last() <= LONGEST_GAP
        });
        assert!(is_soon, "writes were missed for more than {LONGEST_GAP:?} after each of {MOST_TRIES} kills");

        let writer = BadWriter::start(&node.cluster.jane, "both");
        under_writes(node, "kill -9 of both", || {
            let pids = servers();
            kill(&pids);
            await_others_than(&pids);
            node.await_rollout();
        });
        let stored = writer.end();
        assert!(!stored.is_empty(), "the API server denied all of them");
        all_are_reported(node, &stored);
    });
}

/// Of what was stored, nothing is what must fail closed or the backstop denies, and soon a report names each of the others.
pub fn all_are_reported(node: &Node, stored: &[String]) {
    let back = Instant::now();
    assert!(stored.iter().all(|name| name.starts_with("broken-")), "{stored:?}");
    for name in stored {
        let uid = node.cluster.admin.get(&nad_at("default", name)).unwrap()["metadata"]["uid"].clone();
        wait("a report", || {
            let reports = node.cluster.admin.get("/apis/openreports.io/v1alpha1/namespaces/default/reports")?;
            let mut reports = reports["items"].as_array()?.iter();
            reports.any(|report| report["metadata"]["ownerReferences"][0]["uid"] == uid).then_some(())
        });
    }
    println!(
        "{} bad NADs were stored meanwhile, and reported {:.1?} after nadmit was back",
        stored.len(),
        back.elapsed()
    );
    assert!(back.elapsed() < Duration::from_secs(30), "{:?}", back.elapsed());
}
