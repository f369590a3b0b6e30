//! Many networks at once, half of them deleted and made again. Each test has the machine to itself: how long it takes is printed.

use std::sync::{Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Watch};
use crate::cluster::{Cluster, Template, alone};
use crate::objects::{Kind, annotated, configured, nads, network};
use crate::processes::wait;

const NETWORKS: usize = 200;
const WRITERS: usize = 4;
/// How long after its last write a network may be without its NAD. It takes three to five seconds on a quiet machine, beside two for the
/// operator alone, and both swing by four times with whatever else the machine does; a network that was lost, or waits for the operator's
/// next attempt, takes far longer. What it took is printed.
const LONGEST: Duration = Duration::from_secs(30);
/// How often nadmit goes and comes back in a storm.
const RESTARTS: usize = 3;

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
    api.create(&Kind::Sriov.path(), &network(Kind::Sriov, &name(number), "apps", &fields));
}

/// Writes them all; when each was written last.
fn write(api: &Api) -> Vec<Instant> {
    let written = Mutex::new(vec![Instant::now(); NETWORKS]);
    let networks = &api.watch(&Kind::Sriov.path());
    let make = |number: usize, is_second: bool| {
        make(api, number, is_second);
        written.lock().unwrap()[number] = Instant::now();
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mine = || (writer..NETWORKS).step_by(WRITERS);
                mine().for_each(|number| make(number, false));
                for number in mine().filter(|number| is_made_again(*number)) {
                    api.delete(&Kind::Sriov.at(&name(number)));
                    // It has its name until the operator has let go of it.
                    networks.wait_gone(&name(number));
                    make(number, true);
                }
            });
        }
    });
    written.into_inner().unwrap()
}

/// Waits until every network has its NAD as it should be; the longest that one was without after its last write.
fn settled(watch: &Watch, written: &[Instant], is_as_it_should_be: fn(&Value, &str) -> bool) -> Duration {
    let is_complete = |number: usize, nad: &Value| {
        is_as_it_should_be(nad, &format!("openshift.io/{}", resource(number, is_made_again(number))))
    };
    wait("every NAD", || {
        let now = watch.now();
        let is_there =
            |number| now.iter().any(|nad| nad["metadata"]["name"] == *name(number) && is_complete(number, nad));
        (now.len() == NETWORKS && (0..NETWORKS).all(is_there)).then_some(())
    });
    let took = |(number, written): (usize, &Instant)| {
        let since = watch.of(&name(number)).into_iter().rev();
        let since = since.take_while(|event| event.is_there && is_complete(number, &event.object));
        since.last().unwrap().at.saturating_duration_since(*written)
    };
    written.iter().enumerate().map(took).max().unwrap()
}

/// Fails where it took too long until all was complete.
fn assert_soon(watch: &Watch, written: &[Instant]) {
    assert_in_time(settled(watch, written, has_both));
}

fn assert_in_time(longest: Duration) {
    let alone = without_nadmit();
    println!(
        "each complete within {longest:.1?} of its last write; without nadmit, and with a template that works, {alone:.1?}"
    );
    assert!(longest < LONGEST, "a network was without its NAD for {longest:.1?}, without nadmit for {alone:.1?}");
}

/// How long the operator alone takes, with a template that needs no repair.
fn without_nadmit() -> Duration {
    static TOOK: OnceLock<Duration> = OnceLock::new();
    *TOOK.get_or_init(|| {
        let cluster = Cluster::without_nadmit(Template::Upstream);
        let (writer, watch) = storm(&cluster);
        settled(&watch, &writer.join().unwrap(), |nad, want| annotated(nad) == Some(want))
    })
}

fn has_both(nad: &Value, want: &str) -> bool {
    annotated(nad) == Some(want) && configured(nad).as_deref() == Some(want)
}

/// The operator's errors that nadmit is the cause of.
fn errors(cluster: &Cluster) -> Vec<String> {
    let is_ours = |line: &Value| line["level"] == "error" && line.to_string().contains("nadmit");
    cluster.operator_log().iter().filter(|line| is_ours(line)).map(Value::to_string).collect()
}

/// Every NAD was complete from its first moment on.
fn assert_never_incomplete(watch: &Watch) {
    for number in 0..NETWORKS {
        for event in watch.of(&name(number)) {
            assert!(annotated(&event.object).is_some(), "it was incomplete for a moment: {:#}", event.object);
        }
    }
}

/// Nobody's write to a status was refused.
fn assert_no_status_refused(cluster: &Cluster) {
    let metrics = cluster.nadmit().metrics_text();
    let refused = |line: &&str| line.contains("endpoint=\"status\"") && line.contains("decision=\"deny\"");
    let refused: Vec<_> = metrics.lines().filter(refused).filter(|line| !line.ends_with(" 0")).collect();
    assert_eq!(refused, [""; 0]);
}

fn storm(cluster: &Cluster) -> (JoinHandle<Vec<Instant>>, Watch) {
    cluster.namespace("apps");
    let (jane, watch) = (cluster.jane.clone(), cluster.admin.watch(&nads("apps")));
    (thread::spawn(move || write(&jane)), watch)
}

/// When each was written last, but not before the machine was left to the storm: a nadmit that starts takes its share of it.
fn since(calm: Instant, writer: JoinHandle<Vec<Instant>>) -> Vec<Instant> {
    writer.join().unwrap().into_iter().map(|written| written.max(calm)).collect()
}

#[test]
fn undisturbed() {
    let _alone = alone();
    let cluster = Cluster::with_nadmit(Template::Faulty);
    let (writer, watch) = storm(&cluster);
    assert_soon(&watch, &writer.join().unwrap());
    assert_never_incomplete(&watch);
    assert_eq!(errors(&cluster), [""; 0]);
    assert_no_status_refused(&cluster);
}

/// The operator as it comes: it needs no repair, and is not hindered.
#[test]
fn with_the_upstream_template() {
    let _alone = alone();
    let cluster = Cluster::with_nadmit(Template::Upstream);
    let (writer, watch) = storm(&cluster);
    let longest = settled(&watch, &writer.join().unwrap(), |nad, want| annotated(nad) == Some(want));
    assert_in_time(longest);
    assert_never_incomplete(&watch);
    assert_eq!(errors(&cluster), [""; 0]);
    assert_no_status_refused(&cluster);
}

#[test]
fn two_nadmits_are_replaced_one_after_the_other() {
    let _alone = alone();
    let mut cluster = Cluster::with_nadmit(Template::Faulty);
    cluster.start_nadmit();
    let (writer, watch) = storm(&cluster);
    for _ in 0..RESTARTS {
        cluster.start_nadmit();
        cluster.end_oldest_nadmit();
    }
    assert!(!writer.is_finished(), "the storm was over before nadmit was replaced");
    assert_soon(&watch, &since(Instant::now(), writer));
    assert_never_incomplete(&watch);
    // Nobody noticed.
    assert_eq!(errors(&cluster), [""; 0]);
}

#[test]
fn while_nadmit_dies_and_comes_back() {
    let _alone = alone();
    let mut cluster = Cluster::with_nadmit(Template::Faulty);
    let (writer, watch) = storm(&cluster);
    for _ in 0..RESTARTS {
        let reviewed =
            |cluster: &Cluster| cluster.nadmit().metric("nadmit_review_duration_seconds_count{endpoint=\"mutate\"}");
        wait("work", || (reviewed(&cluster) > 20.0).then_some(()));
        let before = errors(&cluster).len();
        cluster.kill_nadmit();
        wait("an attempt without nadmit", || (errors(&cluster).len() > before).then_some(()));
        cluster.start_nadmit();
    }
    assert!(!writer.is_finished(), "the storm was over before nadmit came back");
    // While it was away nothing could be written: that time does not count.
    assert_soon(&watch, &since(Instant::now(), writer));
    assert_never_incomplete(&watch);
    // While it was away nothing could be written, which is all that the operator says of it.
    for error in errors(&cluster) {
        assert!(error.contains("failed calling webhook"), "{error}");
    }
}
