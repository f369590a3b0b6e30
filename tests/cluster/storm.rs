//! Many networks at once, half of them deleted and made again.
//!
//! The operator needs many hundreds of requests for this, and its client library's default lets it send twenty a second: half a
//! minute without nadmit. With the faulty template it took longer, presumably because each write is repeated to find that nothing
//! changes; how long is printed and not yet asserted.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Watch};
use crate::cluster::{Cluster, Template};
use crate::objects::{Kind, annotated, configured, nads, network};
use crate::processes::wait;

const NETWORKS: usize = 200;
const WRITERS: usize = 4;

fn name(number: usize) -> String {
    format!("net-{number}")
}

fn is_made_again(number: usize) -> bool {
    (number / WRITERS).is_multiple_of(2)
}

/// The name of its resource; that of a network which was made again is another.
fn resource(number: usize, is_second: bool) -> String {
    format!("r{number}{}", if is_second { "b" } else { "" })
}

fn make(api: &Api, number: usize, is_second: bool) {
    let fields = json!({ "resourceName": resource(number, is_second) });
    let network = network(Kind::Sriov, &name(number), "apps", &fields);
    // One that is still going has its name until the operator has let go of it.
    wait("room for a network", || {
        api.try_create(&Kind::Sriov.path(), &network)
            .map_err(|refused| assert_eq!(refused.code, 409, "{}", refused.message))
            .ok()
    });
}

/// Writes them all; when the last write was.
fn write(api: &Api) -> Instant {
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mine = || (writer..NETWORKS).step_by(WRITERS);
                mine().for_each(|number| make(api, number, false));
                for number in mine().filter(|number| is_made_again(*number)) {
                    api.delete(&Kind::Sriov.at(&name(number)));
                    make(api, number, true);
                }
            });
        }
    });
    Instant::now()
}

/// How long after the last write every network has its NAD, and each NAD all that it needs.
fn settled(watch: &Watch, last: Instant) -> Duration {
    let want = |number: usize| format!("openshift.io/{}", resource(number, is_made_again(number)));
    wait("every NAD", || {
        let now = watch.now();
        let is_there =
            |number| now.iter().any(|nad| nad["metadata"]["name"] == *name(number) && has_both(nad, &want(number)));
        (now.len() == NETWORKS && (0..NETWORKS).all(is_there)).then_some(())
    });
    last.elapsed()
}

fn has_both(nad: &Value, want: &str) -> bool {
    annotated(nad) == Some(want) && configured(nad).as_deref() == Some(want)
}

/// The operator's errors that nadmit is the cause of.
fn errors(cluster: &Cluster) -> Vec<Value> {
    let is_ours = |line: &Value| line["level"] == "error" && line.to_string().contains("nadmit");
    cluster.operator_log().into_iter().filter(is_ours).collect()
}

#[test]
fn two_nadmits_are_replaced_one_after_the_other() {
    let mut cluster = Cluster::with_nadmit(Template::Faulty);
    cluster.start_nadmit();
    cluster.namespace("apps");
    let (jane, watch) = (cluster.jane.clone(), cluster.admin.watch(&nads("apps")));
    let writer = thread::spawn(move || write(&jane));
    let mut rollouts = 0;
    while !writer.is_finished() {
        cluster.start_nadmit();
        cluster.end_oldest_nadmit();
        rollouts += 1;
    }
    let took = settled(&watch, writer.join().unwrap());
    println!("{rollouts} rollouts, all complete {took:.1?} after the last write");
    assert!(rollouts > 0);
    for number in 0..NETWORKS {
        for event in watch.of(&name(number)) {
            assert!(annotated(&event.object).is_some(), "it was incomplete for a moment: {:#}", event.object);
        }
    }
    // Nobody noticed.
    assert_eq!(errors(&cluster), Vec::<Value>::new());
}

#[test]
fn while_nadmit_dies_and_comes_back() {
    let mut cluster = Cluster::with_nadmit(Template::Faulty);
    cluster.namespace("apps");
    let (jane, watch) = (cluster.jane.clone(), cluster.admin.watch(&nads("apps")));
    let writer = thread::spawn(move || write(&jane));
    let mut deaths = 0;
    while !writer.is_finished() {
        cluster.kill_nadmit();
        let seen = cluster.operator_size();
        wait("an attempt without nadmit", || {
            (writer.is_finished() || cluster.operator_size() > seen + 20_000).then_some(())
        });
        cluster.start_nadmit();
        deaths += 1;
        let done =
            |cluster: &Cluster| cluster.nadmit().metric("nadmit_review_duration_seconds_count{endpoint=\"mutate\"}");
        wait("work", || (writer.is_finished() || done(&cluster) > 20.0).then_some(()));
    }
    let took = settled(&watch, writer.join().unwrap());
    println!("{deaths} deaths, all complete {took:.1?} after the last write");
}
