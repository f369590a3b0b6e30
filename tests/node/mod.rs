//! nadmit as pods on a real node: containerd, runc, kubelet, kube-proxy, Multus and the real CNI plugins.
//!
//! Each test runs in namespaces of its own, see `enter`: it starts this program again in there, and checks afterwards that nothing was left
//! behind on the machine. They need root, and programs that the other tests do not need: `make node` runs them.

mod container;
mod deployment;
mod files;
mod machine;
mod processes;

mod drain;
mod errors;
#[allow(dead_code, reason = "shared with the tests of the documentation")]
mod errors_page;
mod installs;
mod pods;
mod policies;
mod readme;
mod rollouts;
mod terminating;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub use processes::Node;

use crate::cluster::alone;
use crate::node::machine::Machine;
use crate::times;

/// Set by `enter`.
const CGROUP: &str = "NADMIT_NODE_CGROUP";

/// Runs a test on a node. The closure's type tells which test it is of.
pub fn on_a_node<T: FnOnce(&mut Node)>(test: T) {
    let Some((is_success, text)) = run_on_a_node(test) else { return };
    assert!(is_success && text.contains("1 passed"), "failed on the node");
}

/// The same; `None` on the node, and otherwise whether it succeeded there, and what it printed. Either way nothing is left behind.
fn run_on_a_node<T: FnOnce(&mut Node)>(test: T) -> Option<(bool, String)> {
    if std::env::var_os(CGROUP).is_some() {
        test(&mut Node::start());
        return None;
    }
    let name = std::any::type_name::<T>();
    let name = name.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    // The tests measure times.
    let _alone = alone();
    let before = Machine::now();
    let mut command = enter();
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture", "--test-threads=1"]);
    // Out here its time is written.
    let out = command.env_remove(times::FILE).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    println!("{text}");
    before.assert_nothing_left();
    Some((out.status.success(), text.into_owned()))
}

/// Runs a command on a machine of its own, with the arguments that follow.
fn enter() -> Command {
    // A shell cannot catch a signal that is ignored when it starts, as that of Ctrl-C is in background jobs.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/enter"));
    command
}

/// How long something took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}
