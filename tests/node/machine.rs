//! What a node could leave behind on the machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::processes::is_ready;
use super::{CGROUP, enter, run_on_a_node};
use crate::harness::signal;
use crate::objects::{nad, nads};
use crate::processes::wait;

/// Everything that processes in other namespaces could have changed out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    mounts: BTreeSet<String>,
    cgroups: Vec<String>,
    interfaces: BTreeSet<String>,
    firewall: Vec<String>,
    namespaces: BTreeSet<String>,
    processes: Vec<String>,
}

/// The kinds of namespaces that a node makes, as they are called in /proc.
const NAMESPACES: [&str; 5] = ["net", "mnt", "pid", "uts", "ipc"];

impl Machine {
    pub fn now() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let interfaces = fs::read_dir("/sys/class/net").unwrap();
        Self {
            mounts: mounts.lines().map(str::to_owned).collect(),
            cgroups: cgroups(),
            interfaces: interfaces.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect(),
            firewall: firewall(),
            namespaces: namespaces(),
            processes: processes(),
        }
    }

    /// Waits until everything is as it was. What was there before, of a run that was killed or of other programs, may have ended.
    pub fn assert_nothing_left(&self) {
        let changed = || {
            let (mut before, now) = (self.clone(), Self::now());
            before.cgroups.retain(|cgroup| Path::new(cgroup).exists());
            before.namespaces.retain(|namespace| now.namespaces.contains(namespace));
            (before != now).then_some((before, now))
        };
        // What was killed may still be ending.
        let until = Instant::now() + Duration::from_secs(10);
        while changed().is_some() && Instant::now() < until {
            thread::sleep(Duration::from_millis(200));
        }
        if let Some((before, now)) = changed() {
            assert_eq!(now, before, "something was left behind");
        }
    }
}

/// The rules of all firewalls out here.
fn firewall() -> Vec<String> {
    let mut rules = Vec::new();
    for (program, arguments) in
        [("iptables-save", &[] as &[&str]), ("ip6tables-save", &[]), ("nft", &["--stateless", "list", "ruleset"])]
    {
        let mut command = Command::new(program);
        let out = match command.args(arguments).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output() {
            Ok(out) => out,
            // Nothing here needs it; what kube-proxy writes is seen by the other two.
            Err(error) if program == "nft" && error.kind() == ErrorKind::NotFound => continue,
            Err(error) => panic!("{program}: {error}"),
        };
        assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
        // Comments have the time, and counters of chains are of others.
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let is_rule = |line: &&str| program == "nft" || line.starts_with('-');
        rules.extend(text.lines().filter(is_rule).map(str::to_owned));
    }
    rules
}

/// The namespaces of the processes of nodes, and those of networks that have a name. Other programs may make some meanwhile.
fn namespaces() -> BTreeSet<String> {
    let links = |process: &Path| NAMESPACES.map(|kind| fs::read_link(process.join("ns").join(kind)));
    let outer: BTreeSet<PathBuf> = links(Path::new("/proc/self")).into_iter().flatten().collect();
    let inner = ours().into_iter().flat_map(|process| links(&process)).flatten().filter(|link| !outer.contains(link));
    let named = fs::read_dir("/run/netns").into_iter().flatten().map(|entry| entry.unwrap().path());
    inner.chain(named).map(|path| path.display().to_string()).collect()
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

/// The processes that were started on a node: they inherit its environment, or are in its cgroup as those of containers. A process may
/// end meanwhile.
fn ours() -> Vec<PathBuf> {
    let wanted = format!("{CGROUP}=");
    let has_variable =
        |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|line| line.starts_with(wanted.as_bytes()));
    let is_ours = |process: &PathBuf| {
        fs::read(process.join("environ")).is_ok_and(has_variable)
            || fs::read_to_string(process.join("cgroup")).is_ok_and(|cgroups| cgroups.contains("/nadmit-node-"))
    };
    fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(is_ours).collect()
}

/// Their command lines.
fn processes() -> Vec<String> {
    let command_line = |process: PathBuf| fs::read_to_string(process.join("cmdline")).unwrap_or_default();
    ours().into_iter().map(|process| command_line(process).replace('\0', " ")).collect()
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
        println!("{name}");
        before.assert_nothing_left();
    }
}

/// A test that fails leaves nothing behind either: pods with interfaces are running at that moment.
#[test]
fn failed_tests_leave_nothing_behind() {
    let ended = run_on_a_node(|node| {
        node.cluster
            .admin
            .create(&nads("default"), &nad("good", r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0"}"#));
        node.attach("p", "good");
        node.cluster.admin.wait("/api/v1/namespaces/default/pods/p", is_ready);
        panic!("as intended");
    });
    let Some((is_success, text)) = ended else { return };
    assert!(
        !is_success && text.contains("as intended") && text.contains("1 failed"),
        "the test did not fail as intended"
    );
}
