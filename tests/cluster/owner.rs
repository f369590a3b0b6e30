//! A NAD always has the current resourceName of its network, and never an older one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Event;
use crate::cluster::{TestCluster, alone};
use crate::convergence::wait_until_idle;
use crate::objects::{RESOURCE_NAME, TestNetworkKind, annotated, configured, nad, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const CHANGES: usize = 100;

#[test]
fn resource_name_changes_are_applied_and_never_reverted() {
    for template in [OperatorTemplate::Faulty, OperatorTemplate::Upstream] {
        let cluster = TestCluster::with_nadmit(template);
        cluster.namespace("apps");
        let watch = cluster.jane.watch(&nads("apps"));
        cluster.jane.create(
            &TestNetworkKind::Sriov.path(),
            &network(TestNetworkKind::Sriov, "net", "apps", &json!({ "resourceName": "r0" })),
        );
        watch.wait("net", |event| event.exists);
        wait_until_idle(&cluster, TestNetworkKind::Sriov, "made");
        let writes = watch.of("net").len();
        let follow = |change: usize| {
            cluster
                .jane
                .patch(&TestNetworkKind::Sriov.at("net"), &json!({ "spec": { "resourceName": format!("r{change}") } }));
        };
        let has = |event: &Event, change: usize| annotated(&event.object) == Some(&format!("openshift.io/r{change}"));
        // One change after the other. A write of a network causes one reconcile, and only a changed NAD causes another: if each
        // change is one write of the NAD, it came from that one reconcile.
        for change in 1..=CHANGES {
            follow(change);
            watch.wait("net", |event| has(event, change));
        }
        wait_until_idle(&cluster, TestNetworkKind::Sriov, "followed");
        let events = watch.of("net").split_off(writes);
        assert_eq!(events.len(), CHANGES, "{template:?}: {events:#?}");
        for (change, event) in (1..).zip(&events) {
            assert!(has(event, change), "{template:?}: {change}: {event:#?}");
        }
        // And faster than the operator can reconcile.
        for change in CHANGES + 1..=2 * CHANGES {
            follow(change);
        }
        watch.wait("net", |event| has(event, 2 * CHANGES));
        let mut newest = 0;
        for event in watch.of("net") {
            let name = annotated(&event.object).expect("the NAD has no resourceName");
            assert_eq!(configured(&event.object).as_deref(), Some(name), "annotation and config differ");
            let number: usize = name.strip_prefix("openshift.io/r").unwrap().parse().unwrap();
            assert!(number >= newest, "{template:?}: {number} after {newest}");
            newest = number;
        }
        assert_eq!(newest, 2 * CHANGES);
    }
}

/// Prints the cost of reading the owner, next to the cost of the same read by any client of the API server:
/// `cargo test --test cluster cost_of_live_reads -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn cost_of_live_reads() {
    const TIMES: usize = 1000;
    let _alone = alone();
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("apps");
    let operator = cluster.user("operator");
    let at = TestNetworkKind::Sriov.at("net");
    operator.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));
    let dry_run = format!("{}?dryRun=All", nads("apps"));
    let bare = nad("net", r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","vlan":0}"#);
    let mut complete = nad("net", r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","resourceName":"a.io/b"}"#);
    complete["metadata"]["annotations"] = json!({ RESOURCE_NAME: "a.io/b" });
    let timed = |what: &dyn Fn()| {
        let began = Instant::now();
        what();
        began.elapsed()
    };
    let each = |what: &dyn Fn()| (0..TIMES).map(|_| timed(what)).collect::<Vec<_>>();
    let seen = |decision: &str| {
        let micros = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let is_one = line["endpoint"] == "mutate" && line["name"] == "net" && line["decision"] == decision;
            is_one.then(|| line["micros"].as_u64().map(Duration::from_micros))?
        };
        let all = || cluster.nadmit().log_text().lines().filter_map(micros).collect::<Vec<_>>();
        wait(decision, || Some(all()).filter(|all| all.len() == TIMES))
    };
    let rows = [
        ("GET of the network, by any client", each(&|| drop(operator.get(&at).unwrap()))),
        ("create of a complete NAD", each(&|| drop(operator.try_create(&dry_run, &complete).unwrap()))),
        ("create of a NAD whose owner is read", each(&|| drop(operator.try_create(&dry_run, &bare).unwrap()))),
    ];
    let reviews =
        [("review without a live read", seen("allow")), ("review with a live read of the owner", seen("patch"))];
    for (what, mut times) in rows.into_iter().chain(reviews) {
        times.sort_unstable();
        println!("| {what} | {:.2?} | {:.2?} |", times[TIMES / 2], times[TIMES * 99 / 100]);
    }
}
