//! Pods of nadmit come and go under constant writes. Where Kubernetes ends them in order, no write fails and none is missed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::deployment::servers;
use super::{Node, on_a_node};
use crate::harness::signal;
use crate::processes::wait;
use crate::writers::Writers;

/// Runs something under constant writes: there are some before and some after it.
fn under_writes(node: &Node, what: &str, work: impl FnOnce()) -> Vec<(Duration, String)> {
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
    let (written, failed) = writers.outcome();
    println!("{what}: {took:.1?}, {written} writes, {} of them not answered by nadmit", failed.len());
    failed.into_iter().map(|(at, problem)| (at.saturating_duration_since(started), problem)).collect()
}

#[test]
fn no_write_is_missed_while_pods_are_replaced_in_order() {
    on_a_node(|node| {
        node.install();
        for number in 0..2 {
            let failed = under_writes(node, "rollout restart", || {
                node.restart(number);
                node.await_rollout();
            });
            assert_eq!(failed, []);
        }
        let failed = under_writes(node, "eviction of both, one after the other", || {
            for pod in node.ready_pods() {
                node.await_budget(1);
                assert!(node.evict(&pod));
                assert!(node.ready_pods().iter().filter(|name| **name != pod).all(|other| !node.evict(other)));
                node.await_rollout();
            }
        });
        assert_eq!(failed, []);
        let failed = under_writes(node, "from two replicas to one and back", || {
            for replicas in [1, 2] {
                node.change(&json!({ "spec": { "replicas": replicas } }));
                node.await_rollout();
            }
        });
        assert_eq!(failed, []);
    });
}

#[test]
fn killing_one_replica_is_noticed_for_a_moment_only() {
    on_a_node(|node| {
        node.install();
        let pids = servers();
        assert_eq!(pids.len(), 2, "{pids:?}");
        let failed = under_writes(node, "kill -9 of one of two", || {
            signal(pids[0], "KILL");
            wait("the killed replica to come back", || (servers().len() == 2).then_some(()));
            node.await_rollout();
        });
        for (at, problem) in &failed {
            println!("{at:?}: {problem}");
        }
    });
}
