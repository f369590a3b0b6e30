//! A changed policy in the pods of nadmit, and the command that shows which policy each of them has.

use std::process::Output;
use std::time::{Duration, Instant};

use super::on_a_node;
use crate::harness::{nadmit, run};
use crate::processes::wait;

#[test]
fn every_pod_applies_a_changed_policy_at_once() {
    on_a_node(|node| {
        node.install();
        let show = || -> Output {
            let mut command = nadmit(&["policy"]);
            command.env("KUBECONFIG", node.cluster.kubeconfig("admin"));
            run(command)
        };
        let text =
            |out: &Output| String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        let out = show();
        assert_eq!((out.status.code(), text(&out).matches("in force since").count()), (Some(0), 2), "{}", text(&out));
        let mut slowest = Duration::ZERO;
        for number in 0..5 {
            node.cluster.set_policy(&format!("# Change {number}.\nmode: audit\n"));
            let changed = Instant::now();
            wait("the policy in all pods", || show().status.success().then_some(()));
            slowest = slowest.max(changed.elapsed());
        }
        println!("5 changes, in force in both pods within {slowest:.0?}, including the command that shows it");
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
        node.cluster.set_policy("rulez: {}\n");
        let shown = wait("the rejected policy", || {
            Some(text(&show())).filter(|text| text.matches("was rejected").count() == 2)
        });
        assert!(shown.contains("rulez"), "{shown}");
    });
}
