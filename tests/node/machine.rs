//! What a node could leave behind on the machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use super::{CGROUP, enter};
use crate::harness::signal;
use crate::processes::wait;

/// Everything that processes in other namespaces could have changed out here.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    mounts: BTreeSet<String>,
    pub cgroups: Vec<String>,
    interfaces: BTreeSet<String>,
    firewall: String,
    processes: Vec<String>,
}

impl Machine {
    pub fn now() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let interfaces = fs::read_dir("/sys/class/net").unwrap();
        let rules = Command::new("iptables-save").env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output();
        let firewall = rules.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
        Self {
            mounts: mounts.lines().map(str::to_owned).collect(),
            cgroups: cgroups(),
            interfaces: interfaces.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect(),
            // Comments have the time, and counters are of others.
            firewall: firewall.lines().filter(|line| line.starts_with('-')).collect::<Vec<_>>().join("\n"),
            processes: processes(),
        }
    }
}

/// The cgroups of nodes, in all trees.
fn cgroups() -> Vec<String> {
    let trees = fs::read_dir("/sys/fs/cgroup").unwrap().map(|entry| entry.unwrap().path());
    let inner = trees.filter(|tree| tree.is_dir()).flat_map(|tree| {
        let inside = fs::read_dir(&tree).into_iter().flatten().map(|entry| entry.unwrap().path());
        std::iter::once(tree).chain(inside)
    });
    let paths = inner.map(|path| path.display().to_string());
    paths.filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("nadmit-node-"))).collect()
}

/// The processes that were started on a node: they inherit its environment. A process may end meanwhile.
fn processes() -> Vec<String> {
    let wanted = format!("{CGROUP}=");
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_ours =
        |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|line| line.starts_with(wanted.as_bytes()));
    all.filter(|path| fs::read(path.join("environ")).is_ok_and(is_ours))
        .map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " "))
        .collect()
}

/// Whatever ends a run, its processes end too, and what is left of them goes with the next run at the latest.
#[test]
fn killed_runs_leave_nothing_behind() {
    for (name, is_removed_at_once) in [("TERM", true), ("INT", true), ("KILL", false)] {
        let before = Machine::now();
        let mut run = enter().args(["sleep", "600"]).stdin(Stdio::null()).spawn().unwrap();
        let is_inside = |process: &String| process.starts_with("sleep 600");
        wait("the process inside", || processes().iter().any(is_inside).then_some(()));
        assert_ne!(Machine::now(), before);
        signal(run.id(), name);
        assert!(!run.wait().unwrap().success());
        wait("the end of all processes", || processes().is_empty().then_some(()));
        if !is_removed_at_once {
            assert_ne!(cgroups(), before.cgroups);
            assert!(enter().arg("true").status().unwrap().success());
        }
        assert_eq!(Machine::now(), before, "{name}");
    }
}
