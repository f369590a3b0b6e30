//! Leader election among processes that end cleanly, are killed, or are suspended.
//!
//! A candidate is this test binary, started again: it records every few milliseconds whether it leads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nadmit::cluster::identity::lease::{Candidate, Timing};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cluster::{TestCluster, alone};
use crate::harness;
use crate::processes::{Process, wait};

const DURATION: Duration = Duration::from_secs(3);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/nadmit/leases/nadmit";
const NAME: &str = "LEASE_CANDIDATE";
const KUBECONFIG: &str = "LEASE_KUBECONFIG";

/// The process of a candidate.
#[test]
#[ignore = "the other tests start it"]
fn candidate() {
    let identity = std::env::var(NAME).expect("only the other tests start a candidate");
    let kubeconfig = PathBuf::from(std::env::var_os(KUBECONFIG).unwrap());
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    crate::client::block_on(async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        let timing =
            Timing { duration: DURATION, renew_within: Duration::from_secs(2), retry: Duration::from_millis(300) };
        let cluster = nadmit::cluster::client::Cluster::by_kubeconfig(&kubeconfig).await.unwrap();
        let (namespace, name) = ("nadmit".to_owned(), "nadmit".to_owned());
        let stop = CancellationToken::new();
        let (claims, claim) = tokio::sync::watch::channel(nadmit::cluster::identity::lease::Claim::default());
        let candidate = Candidate { cluster, namespace, name, identity, timing };
        let task = tokio::spawn(candidate.run(claims, stop.clone()));
        let mut out = std::io::stdout();
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            let is_held = claim.borrow().is_held();
            writeln!(out, "\nat {} {is_held}", now()).unwrap();
        }
        stop.cancel();
        task.await.unwrap();
    });
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

struct LeaseProcess {
    process: Process,
    log: PathBuf,
    directory: PathBuf,
}

impl LeaseProcess {
    fn start(cluster: &TestCluster, name: &str) -> Self {
        let directory = cluster.directory().to_owned();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["lease::candidate", "--exact", "--ignored", "--nocapture"]);
        command.env(NAME, name).env(KUBECONFIG, cluster.kubeconfig("nadmit"));
        let process = Process::start(name, &directory, &mut command);
        Self { process, log: directory.join(format!("{name}.log")), directory }
    }

    fn leads(&mut self) -> bool {
        self.process.check();
        samples(&self.log).last().is_some_and(|(_, leads)| *leads)
    }

    fn wait_leads(&mut self, what: &str) {
        wait(what, || self.leads().then_some(()));
    }
}

/// When it recorded that it leads, or not.
fn samples(log: &Path) -> Vec<(u128, bool)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let sample = |line: &str| {
        let (at, leads) = line.strip_prefix("at ")?.split_once(' ')?;
        Some((at.parse().ok()?, leads.parse().ok()?))
    };
    text.lines().filter_map(sample).collect()
}

/// The periods in which it led without interruption.
fn leadership_periods(log: &Path) -> Vec<(u128, u128)> {
    let mut leadership_periods: Vec<(u128, u128)> = Vec::new();
    let mut is_on = false;
    for (at, leads) in samples(log) {
        match leadership_periods.last_mut() {
            Some(reign) if leads && is_on => reign.1 = at,
            _ if leads => leadership_periods.push((at, at)),
            _ => {}
        }
        is_on = leads;
    }
    leadership_periods
}

fn assert_never_two(directory: &Path, names: &[&str]) {
    let all: Vec<_> = names
        .iter()
        .flat_map(|name| {
            leadership_periods(&directory.join(format!("{name}.log"))).into_iter().map(move |reign| (reign, *name))
        })
        .collect();
    for (index, (one, of_one)) in all.iter().enumerate() {
        for (other, of_other) in all.iter().skip(index + 1) {
            assert!(
                of_one == of_other || one.1 < other.0 || other.1 < one.0,
                "{of_one} {one:?} and {of_other} {other:?}"
            );
        }
    }
    assert!(all.len() >= 2, "{all:?}");
}

#[test]
fn leadership_is_handed_over_without_overlap() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let mut one = LeaseProcess::start(&cluster, "one");
    one.wait_leads("the first candidate to lead");
    let mut two = LeaseProcess::start(&cluster, "two");
    let directory = two.directory.clone();
    wait("the second candidate", || (samples(&two.log).len() > 100).then_some(()));
    assert!(one.leads() && !two.leads());

    // Killed: the next leader waits for the lease duration, and not much longer.
    let killed = now();
    drop(one);
    two.wait_leads("the second candidate to lead");
    let followed = Duration::from_millis(u64::try_from(leadership_periods(&two.log)[0].0 - killed).unwrap());
    println!("killed: followed after {followed:?}");
    assert!(
        followed > DURATION - Duration::from_secs(1) && followed < DURATION + Duration::from_secs(3),
        "{followed:?}"
    );

    // Ended: it releases the Lease at once.
    let mut three = LeaseProcess::start(&cluster, "three");
    wait("the third candidate", || (samples(&three.log).len() > 50).then_some(()));
    let terminated = now();
    harness::signal(two.process.id(), "TERM");
    three.wait_leads("the third candidate to lead");
    let followed = Duration::from_millis(u64::try_from(leadership_periods(&three.log)[0].0 - terminated).unwrap());
    println!("ended: followed after {followed:?}");
    assert!(followed < DURATION - Duration::from_secs(1), "{followed:?}");
    assert_eq!(cluster.admin.get(LEASE).unwrap()["spec"]["holderIdentity"], "three");
    assert_eq!(cluster.admin.get(LEASE).unwrap()["spec"]["leaseTransitions"], 2);

    // Suspended for longer than its lease: when it resumes it does not lead, although it could not be notified.
    let mut four = LeaseProcess::start(&cluster, "four");
    harness::signal(three.process.id(), "STOP");
    four.wait_leads("the fourth candidate to lead");
    let before = samples(&three.log).len();
    harness::signal(three.process.id(), "CONT");
    wait("the third candidate to resume", || (samples(&three.log).len() > before + 100).then_some(()));
    assert!(!three.leads() && four.leads());
    assert_never_two(&directory, &["one", "two", "three", "four"]);
}

#[test]
fn one_of_many_candidates_leads() {
    let _alone = alone();
    let cluster = TestCluster::start();
    let names = ["one", "two", "three", "four"];
    let mut candidates: Vec<_> = names.iter().map(|name| LeaseProcess::start(&cluster, name)).collect();
    let mut ended = Vec::new();
    // Each candidate leads once, and ends.
    while !candidates.is_empty() {
        let index = wait("a leader", || candidates.iter_mut().position(LeaseProcess::leads));
        let leader = candidates.remove(index);
        harness::signal(leader.process.id(), "TERM");
        ended.push(leader);
    }
    assert_never_two(cluster.directory(), &names);
}
