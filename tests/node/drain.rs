//! Two nodes: one is drained, and a replica runs out of memory, under constant writes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::deployment::servers;
use super::rollouts::{BadWriter, all_are_reported, await_others_than, under_writes, without_a_gap};
use super::{Node, on_a_node};
use crate::objects::{nad, nads};

impl Node {
    /// How many pods of nadmit each of the nodes has.
    fn spread(&self) -> [usize; 2] {
        let pods = self.pods();
        ["node-1", "node-2"].map(|node| pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).count())
    }

    fn run_kubectl(&self, arguments: &[&str]) {
        let out = self.cluster.kubectl("admin", arguments, "");
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn no_write_is_missed_while_a_node_is_drained() {
    on_a_node(|node| {
        let _second = node.start_second();
        node.cluster.create_other_crds();
        node.install();
        assert_eq!(node.spread(), [1, 1]);
        without_a_gap(node, "`kubectl drain` of one of two nodes", || {
            node.run_kubectl(&["drain", "node-2", "--ignore-daemonsets", "--delete-emptydir-data"]);
            node.await_rollout();
        });
        assert_eq!(node.spread(), [2, 0]);
        node.run_kubectl(&["uncordon", "node-2"]);
        without_a_gap(node, "rollout restart onto both nodes", || {
            node.restart(1);
            node.await_rollout();
        });
        assert_eq!(node.spread(), [1, 1]);

        let pids = servers();
        let writer = BadWriter::start(&node.cluster.jane, "memory");
        let result = under_writes(node, "one of two is out of memory", || {
            freeze_memory(pids[0]);
            // All replicas read what is stored. It may be this write that is not answered.
            for number in 0..20 {
                let config = format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","note":"{}"}}"#, "x".repeat(1 << 20));
                let _ = node.cluster.admin.try_create(&nads("default"), &nad(&format!("large-{number}"), &config));
                if !servers().contains(&pids[0]) {
                    break;
                }
            }
            await_others_than(&pids[..1]);
            node.await_rollout();
        });
        assert!(node.has_failed_container());
        assert!(result.window() < Duration::from_secs(2), "{:#?}", result.missed);
        all_are_reported(node, &writer.end());
    });
}

/// Limits the memory of a container to what it uses, so that it is killed when it needs more.
fn freeze_memory(pid: u32) {
    let all = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    // number:controllers:path; of cgroup v2 there is one without controllers.
    let cgroup_of =
        |wanted: &str| all.lines().find_map(|line| line.split_once(&format!(":{wanted}:")).map(|(_, path)| path));
    let (directory, usage, limit) = match cgroup_of("memory") {
        Some(path) => (format!("/sys/fs/cgroup/memory{path}"), "memory.usage_in_bytes", "memory.limit_in_bytes"),
        None => (format!("/sys/fs/cgroup{}", cgroup_of("").unwrap()), "memory.current", "memory.max"),
    };
    let directory = Path::new(&directory);
    fs::write(directory.join(limit), fs::read(directory.join(usage)).unwrap()).unwrap();
}
