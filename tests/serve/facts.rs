//! The server with a source of facts that answers, that is unreachable, or that panics. It runs in this
//! process, because the binary has no such source without a cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nadmit::cluster::cache::facts::{FactSource, FactsFuture, FactsQuery, Unavailable};
use nadmit::policy::{Facts, Lookup, Operators, Policy, Subject, Verdict, judge};
use nadmit::resources::Object;
use nadmit::review::Endpoint::{Mutate, Status, Validate};

use super::client::{Client, block_on};
use super::in_process::InProcess;
use super::reviews::{DENIED, GOOD, REPAIRABLE, TestReview, V1BETA1, path};
use crate::case::{self, Case};

/// Knows the case's facts at once, except networks, which need a live read.
#[derive(Clone, Default)]
struct CaseCluster {
    all: Arc<Mutex<Facts>>,
    asked: Arc<AtomicUsize>,
}

fn at_once(all: &Facts) -> Facts {
    Facts {
        named_owner: Lookup::Unknown,
        networks_here: Vec::new(),
        knows_networks: false,
        last_nad: Lookup::Unknown,
        is_cluster: true,
        ..all.clone()
    }
}

impl FactSource for CaseCluster {
    fn known(&self, _: &Object<'_>, _: &Policy) -> Facts {
        Facts { today: self.common().today, ..at_once(&self.all.lock().unwrap()) }
    }

    fn find<'a>(&'a self, facts: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let all = self.all.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(Some(Facts { today: facts.today, is_cluster: true, ..all }))))
    }
}

fn question(case: &Case, object: &str) -> TestReview {
    let question = case.old().map_or_else(|| TestReview::create(object), |old| TestReview::update(&old, object));
    question.by(case.user().unwrap_or("jane"))
}

/// The expected verdict: with the facts known at once, and with live reads only if the judgement needs them.
fn expected(case: &Case, object: &str, all: &Facts, is_final: bool) -> Verdict {
    let today = Some(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date());
    let old = case.old();
    let old = old.as_deref().map(|old| Object::read(old).unwrap().unwrap());
    let subject = Subject {
        object: &Object::read(object).unwrap().unwrap(),
        old: old.as_ref(),
        writer: Some(case.user().unwrap_or("jane")),
        is_final,
    };
    let verdict = judge(&subject, &Facts { today, ..at_once(all) }, &case.policy);
    if is_final || verdict.missing_fact.is_none() {
        return verdict;
    }
    judge(&subject, &Facts { today, is_cluster: true, ..all.clone() }, &case.policy)
}

/// The cases with the facts of their cluster: a NAD gets the resourceName of its network.
#[test]
fn owner_is_read_only_when_a_value_is_stored() {
    let cluster = CaseCluster::default();
    let (mut repaired, mut as_written) = (0, 0);
    block_on(async {
        let mut clients: BTreeMap<Option<String>, Client> = BTreeMap::new();
        for case in case::all().iter().filter(|case| !case.is_stored()) {
            if !clients.contains_key(&case.policy_text) {
                let server = InProcess::start(Arc::new(cluster.clone()), case.policy.clone()).await;
                clients.insert(case.policy_text.clone(), server.connect().await);
            }
            let client = clients.get_mut(&case.policy_text).unwrap();
            let ours = |object: &String| Object::read(object).is_ok_and(|object| object.is_some());
            for (number, object) in case.documents().into_iter().filter(ours).enumerate() {
                let all = case.facts(&Object::read(&object).unwrap().unwrap());
                cluster.all.lock().unwrap().clone_from(&all);
                let verdict = expected(case, &object, &all, false);
                let reply = question(case, &object).ask(client, Mutate).await;
                let patch = (!verdict.patch.is_empty()).then(|| serde_json::to_vec(&verdict.patch).unwrap());
                assert_eq!(reply.patch, patch, "{}", case.name);
                if let Some(wanted) = case.expect.patch.as_ref().filter(|_| number == 0) {
                    let found: serde_json::Value =
                        serde_json::from_slice(reply.patch.as_deref().unwrap_or(b"[]")).unwrap();
                    assert_eq!(found, *wanted, "{}", case.name);
                    as_written += 1;
                }
                repaired += usize::from(reply.patch.is_some());
                let stored = reply.applied_to(&object);
                let asked = cluster.asked.load(Ordering::Relaxed);
                let last = question(case, &stored).ask(client, Validate).await;
                assert_eq!(cluster.asked.load(Ordering::Relaxed), asked, "a final object needs no live read");
                assert_eq!(last.allowed, !expected(case, &stored, &all, true).denies(), "{}", case.name);
                assert!(verdict.denies() || last.allowed, "{}: denied after a repair: {last:?}", case.name);
                assert_eq!(question(case, &stored).ask(client, Mutate).await.patch, None, "{}", case.name);
            }
        }
    });
    assert!(repaired > 20 && as_written > 5, "{repaired} repaired, {as_written} as the case expects");
    assert!(cluster.asked.load(Ordering::Relaxed) > 20);
}

/// Most writes need no live read: networks, NADs without a device, and complete NADs of the operator.
#[test]
fn most_reviews_need_no_live_read() {
    let cluster = CaseCluster::default();
    let example =
        |name: &str| std::fs::read_to_string(format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    block_on(async {
        let server = InProcess::start(Arc::new(cluster.clone()), Policy::default()).await;
        let mut client = server.connect().await;
        let good = TestReview::create(GOOD).body();
        for body in [example("review-good.json"), example("review-broken-ipam.json"), good] {
            for endpoint in [Mutate, Validate] {
                assert_eq!(client.post(path(endpoint), body.clone()).await.unwrap().status, 200);
            }
        }
    });
    assert_eq!(cluster.asked.load(Ordering::Relaxed), 0);
}

/// A source that never finds a fact.
#[derive(Clone, Default)]
struct SilentCluster {
    within: Arc<Mutex<Vec<Duration>>>,
}

impl FactSource for SilentCluster {
    fn find<'a>(&'a self, _: Facts, _: FactsQuery<'a>, within: Duration) -> FactsFuture<'a> {
        self.within.lock().unwrap().push(within);
        Box::pin(std::future::ready(Err(Unavailable("the API server did not answer".to_owned()))))
    }
}

/// If a repair cannot get its facts in time, the response is an HTTP error, so that failurePolicy decides; other reviews are answered.
#[test]
fn missing_fact_is_left_to_failure_policy() {
    let silence = SilentCluster::default();
    block_on(async {
        let server = InProcess::start(Arc::new(silence.clone()), Policy::default()).await;
        let mut client = server.connect().await;
        let question = TestReview::create(DENIED);
        let answer = client.post("/mutate?timeout=2s", question.body()).await.unwrap();
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains("the API server did not answer"), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), "", "a retry would only use up the remaining time");
        let within: Vec<u128> =
            silence.within.lock().unwrap().iter().map(|within| within.as_micros().div_ceil(1000)).collect();
        assert_eq!(within, [1800], "the timeout of the API server, less a reserve for the response");
        assert!(server.metrics().await.contains("nadmit_reviews_unanswered_total{reason=\"unavailable\"} 1\n"));
        assert!(!question.ask(&mut client, Validate).await.allowed, "the final object is judged as it is");
        assert!(
            TestReview::create(REPAIRABLE).ask(&mut client, Mutate).await.patch.is_some(),
            "this NAD has its own resourceName"
        );
        assert!(TestReview::delete(DENIED).ask(&mut client, Mutate).await.allowed);
        let being_deleted =
            DENIED.replace(r#""metadata":{"#, r#""metadata":{"deletionTimestamp":"2026-11-01T08:00:00Z","#);
        assert!(TestReview::update(&being_deleted, &being_deleted).ask(&mut client, Mutate).await.allowed);
        let created = client.post("/mutate?timeout=2s", TestReview::create(&being_deleted).body()).await.unwrap();
        assert_eq!(created.status, 503, "a deletionTimestamp in the sent object proves nothing");
    });
}

/// A source that panics on one object.
struct Fragile;

impl FactSource for Fragile {
    fn known(&self, object: &Object<'_>, _: &Policy) -> Facts {
        assert_ne!(object.meta().name, "fragile", "this is the panic that the test is about");
        Facts::default()
    }

    fn find<'a>(&'a self, _: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// If nadmit itself panics, nothing is stored unjudged, and other requests are not affected.
#[test]
fn a_panic_while_judging_denies() {
    let fragile = GOOD.replace(r#""name":"net""#, r#""name":"fragile""#);
    let operator = "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator";
    block_on(async {
        let policy = "{exempt: {users: [root]}, namespaces: [{names: [quiet], mode: audit}]}";
        let server = InProcess::start(Arc::new(Fragile), Policy::parse(policy).unwrap()).await;
        let mut client = server.connect().await;
        let denied = TestReview::create(&fragile);
        for (question, endpoint, allowed) in [
            (denied.clone(), Validate, false),
            (TestReview { version: V1BETA1, ..denied.clone() }, Validate, false),
            (TestReview::update(GOOD, &fragile), Validate, false),
            // The mutating webhook also gets writes that change nothing; it allows them, and validation decides.
            (denied.clone(), Mutate, true),
            (denied.clone().by(operator), Validate, true),
            (denied.clone().by("root"), Validate, true),
            (TestReview::create(&fragile.replace("\"apps\"", "\"quiet\"")), Validate, true),
            (TestReview { dry_run: true, ..denied }, Validate, false),
        ] {
            let reply = question.ask(&mut client, endpoint).await;
            let shown = format!("{question:?} {endpoint:?}: {reply:?}");
            assert_eq!((reply.allowed, reply.patch.is_none()), (allowed, true), "{shown}");
            assert_eq!(reply.warnings.len(), usize::from(allowed), "{shown}");
            let action = if allowed { "warn" } else { "deny" };
            assert_eq!(reply.rules, format!("nadmit/internal={action}"), "{shown}");
            let message = format!("{}{:?}", reply.status, reply.warnings);
            assert!(message.contains("nadmit failed while judging"), "{shown}");
            assert!(!message.contains("the test is about"), "the panic message is only in the log: {shown}");
            assert!(TestReview::create(GOOD).ask(&mut client, Validate).await.allowed, "the connection still works");
        }
        let metrics = server.metrics().await;
        assert!(metrics.contains("nadmit_review_panics_total{endpoint=\"validate\"} 7\n"), "{metrics}");
        assert!(metrics.contains("nadmit_review_panics_total{endpoint=\"mutate\"} 1\n"), "{metrics}");
        assert!(!metrics.contains("nadmit_reviews_unanswered_total{"), "{metrics}");
        assert!(metrics.contains("nadmit_reviews_in_flight 0\n"), "{metrics}");
        assert_eq!(server.denied(), 2, "creations and updates are counted, dry runs are not");
    });
}

/// A source that panics on every status write.
struct FragileStatus;

impl FactSource for FragileStatus {
    fn operators(&self) -> Operators {
        panic!("this is the panic that the test is about")
    }

    fn find<'a>(&'a self, _: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[test]
fn a_panic_while_judging_a_status_denies() {
    let state = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodeState","metadata":{"name":"n","namespace":"o","resourceVersion":"1"},"status":{"syncStatus":"x"}}"#;
    block_on(async {
        let server = InProcess::start(Arc::new(FragileStatus), Policy::default()).await;
        let write = TestReview { sub_resource: "status".to_owned(), ..TestReview::update(state, state) };
        let reply = write.ask(&mut server.connect().await, Status).await;
        assert_eq!((reply.allowed, reply.rules.as_str()), (false, "nadmit/internal=deny"), "{reply:?}");
        assert!(server.metrics().await.contains("nadmit_review_panics_total{endpoint=\"status\"} 1\n"));
    });
}
