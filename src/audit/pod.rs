//! Why a pod does not start, or is stuck in Terminating: its Events, the NADs it asks for, and the findings that explain them.

use std::sync::Arc;

use jiff::Timestamp;

use super::chain::{LinkHealth, Read};
use super::context::AuditContext;
use crate::policy::pod_errors::{PodError, without_preamble};
use crate::policy::{ClaimFacts, ClaimIndex, FactLookup, Finding, Operators, Policy, Rule, Verdict};
use crate::resources::{Object, ObjectKey};

/// The reasons of the Events that networks cause: when a pod starts, and when it terminates.
const NOT_STARTED: &str = "FailedCreatePodSandBox";
const NOT_TERMINATED: &str = "FailedKillPod";

/// Everything read from the cluster for one pod.
#[derive(Clone, Debug)]
pub struct PodSnapshot {
    /// Which pod.
    pub key: ObjectKey,
    /// Whether its condition Ready is true.
    pub is_ready: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its warnings.
    pub events: Read<Vec<PodEvent>>,
    /// The annotation that lists its networks.
    pub selection: NetworkSelection,
    /// The NADs it asks for, as JSON.
    pub nads: Vec<(ObjectKey, Read<Option<String>>)>,
    /// The operators.
    pub operators: Operators,
    /// The claims of devices (DRA).
    pub device_claims: Arc<ClaimIndex>,
}

/// How the annotation of a pod was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkSelection {
    /// Multus cannot read it.
    Unreadable,
    /// It lists the NADs.
    Read {
        /// How many more it lists than were read.
        left_out: usize,
    },
}

/// A warning about a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEvent {
    /// The reason, such as `FailedCreatePodSandBox`.
    pub reason: String,
    /// The message.
    pub message: String,
    /// How often it was recorded.
    pub count: u64,
}

/// Why a pod is not ready, or still there.
#[derive(Debug)]
pub struct PodReport {
    /// Which pod.
    pub key: ObjectKey,
    /// Its health.
    pub state: LinkHealth,
    /// The same as the end of a sentence.
    pub summary: &'static str,
    /// The annotation that lists its networks.
    pub selection: NetworkSelection,
    /// Its warnings, each error once.
    pub errors: Read<Vec<ExplainedError>>,
    /// The NADs it asks for.
    pub nads: Vec<PodNad>,
}

/// An error of a pod, and the rules about it.
#[derive(Debug)]
pub struct ExplainedError {
    /// The reason of the Event.
    pub reason: String,
    /// The message, without what differs from pod to pod.
    pub message: String,
    /// How often it was recorded.
    pub count: u64,
    /// The rules that find its cause.
    pub rules: Vec<&'static Rule>,
}

/// A NAD that a pod asks for.
#[derive(Debug)]
pub struct PodNad {
    /// Which NAD.
    pub key: ObjectKey,
    /// The NAD as JSON.
    pub text: Read<Option<String>>,
    /// What admission would find now; `None` where there is no NAD to judge.
    pub verdict: Option<Verdict>,
}

impl PodNad {
    /// Judges a NAD as admission would.
    pub(super) fn judged(
        key: ObjectKey,
        text: Read<Option<String>>,
        context: &AuditContext,
        lookup: &dyn FactLookup,
        policy: &Policy,
    ) -> Self {
        let object = text.as_ref().ok().and_then(Option::as_deref).and_then(|text| Object::read(text).ok()?);
        let verdict = object.map(|object| context.at_admission(&object, lookup, policy));
        Self { key, text, verdict }
    }

    /// What admission would find now.
    pub fn findings(&self) -> &[Finding] {
        self.verdict.as_ref().map_or(&[], |verdict| &verdict.findings)
    }
}

/// The explanation of a pod that stays in Terminating.
pub const STUCK: &str = "is stuck in Terminating";

impl PodReport {
    /// Explains the errors of a pod.
    pub fn of(snapshot: PodSnapshot, policy: &Policy, now: Timestamp) -> Self {
        let context = AuditContext { now, operators: snapshot.operators, ..AuditContext::default() };
        let lookup = OnlyClaims(&snapshot.device_claims);
        let nads = snapshot.nads.into_iter().map(|(key, text)| PodNad::judged(key, text, &context, &lookup, policy));
        let nads: Vec<PodNad> = nads.collect();
        let errors = snapshot.events.map(explained);
        let has = |reason: &str| errors.iter().flatten().any(|error: &ExplainedError| error.reason == reason);
        let (state, summary) = match (snapshot.is_deleting, snapshot.is_ready) {
            (true, _) if has(NOT_TERMINATED) => (LinkHealth::Broken, STUCK),
            (true, _) => (LinkHealth::Waiting, "is being deleted"),
            (false, true) => (LinkHealth::Good, "is ready"),
            (false, false) if has(NOT_STARTED) => (LinkHealth::Broken, "does not start"),
            (false, false) => (LinkHealth::Waiting, "is not ready"),
        };
        let missing = nads.iter().any(|nad| matches!(nad.text, Ok(None)));
        let is_unusable = missing || snapshot.selection == NetworkSelection::Unreadable;
        let state = if is_unusable && state == LinkHealth::Waiting { LinkHealth::Broken } else { state };
        Self { key: snapshot.key, state, summary, selection: snapshot.selection, errors, nads }
    }

    /// Whether a rule explains one of the errors.
    pub fn is_explained_by(&self, rule: &Rule) -> bool {
        self.errors.iter().flatten().any(|error| error.rules.contains(&rule))
    }

    /// The errors of the pod's network whose cause no NAD has now: no rule knows it, or the NAD was changed since.
    pub fn unexplained(&self) -> impl Iterator<Item = &ExplainedError> {
        let is_found =
            |rule: &&'static Rule| self.nads.iter().any(|nad| nad.findings().iter().any(|found| found.rule == *rule));
        let is_about_networks =
            |error: &&ExplainedError| [NOT_STARTED, NOT_TERMINATED].contains(&error.reason.as_str());
        let errors = self.errors.iter().flatten().filter(is_about_networks);
        errors.filter(move |error| !error.rules.iter().any(is_found))
    }
}

/// Each error once, those that a rule explains first, then the most frequent ones: the kubelet records it again and again, with another sandbox each time.
fn explained(events: Vec<PodEvent>) -> Vec<ExplainedError> {
    let mut errors: Vec<ExplainedError> = Vec::new();
    for event in events {
        let message = without_preamble(&event.message).to_owned();
        match errors.iter_mut().find(|error| error.reason == event.reason && error.message == message) {
            Some(error) => error.count = error.count.saturating_add(event.count),
            None => {
                let rules = PodError::explain(&message).collect();
                errors.push(ExplainedError { reason: event.reason, message, count: event.count, rules });
            }
        }
    }
    errors.sort_by_key(|error| (error.rules.is_empty(), std::cmp::Reverse(error.count)));
    errors
}

/// Of other objects, only the claims of devices are known.
pub(super) struct OnlyClaims<'s>(pub(super) &'s ClaimIndex);

impl FactLookup for OnlyClaims<'_> {
    fn served_by_classes(&self) -> Arc<[String]> {
        self.0.served()
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        self.0.facts(nad, resource_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Action;

    fn snapshot(config: &str, messages: &[&str]) -> PodSnapshot {
        let nad = serde_json::json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps" }, "spec": { "config": config } });
        let event = |message: &&str| PodEvent {
            reason: "FailedCreatePodSandBox".to_owned(),
            message: format!(
                "x name=\"multus-cni-network\" failed (add): [apps/p/1:net]: error adding container to network \"net\": {message}"
            ),
            count: 2,
        };
        PodSnapshot {
            key: ObjectKey::new("apps", "p"),
            is_ready: false,
            is_deleting: false,
            selection: NetworkSelection::Read { left_out: 0 },
            events: Ok(messages.iter().map(event).collect()),
            nads: vec![(ObjectKey::new("apps", "net"), Ok(Some(nad.to_string())))],
            operators: Operators::Unknown,
            device_claims: Arc::default(),
        }
    }

    fn report(snapshot: PodSnapshot) -> PodReport {
        PodReport::of(snapshot, &Policy::default(), Timestamp::UNIX_EPOCH)
    }

    const OUTSIDE: &str = r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0","ipam":{"type":"host-local","subnet":"10.53.0.0/24","rangeStart":"10.54.0.10"}}"#;
    const GOOD: &str = r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0"}"#;
    const MESSAGE: &str = "invalid range set 0: RangeStart 10.54.0.10 not in network 10.53.0.0/24";

    #[test]
    fn an_error_leads_to_the_finding_in_the_nad() {
        let report = report(snapshot(OUTSIDE, &[MESSAGE, MESSAGE]));
        assert_eq!((report.state, report.summary), (LinkHealth::Broken, "does not start"));
        let errors = report.errors.as_ref().unwrap();
        assert_eq!((errors.len(), errors[0].count, errors[0].message.as_str()), (1, 4, MESSAGE));
        let found = report.nads[0].findings();
        assert!(found.iter().any(|finding| report.is_explained_by(finding.rule)), "{found:?}");
        assert_eq!(report.unexplained().count(), 0);
    }

    #[test]
    fn an_error_of_a_nad_that_was_fixed_since_is_marked() {
        let report = report(snapshot(GOOD, &[MESSAGE]));
        let left: Vec<_> = report.unexplained().map(|error| error.rules[0].id).collect();
        assert_eq!(left, ["ipam/host-local-range"]);
    }

    #[test]
    fn the_state_of_a_pod() {
        use LinkHealth::{Broken, Good, Waiting};
        for (is_ready, is_deleting, reason, want) in [
            (true, false, "", (Good, "is ready")),
            (true, false, NOT_STARTED, (Good, "is ready")),
            (false, false, "", (Waiting, "is not ready")),
            (false, false, "Unhealthy", (Waiting, "is not ready")),
            (false, false, NOT_STARTED, (Broken, "does not start")),
            (false, true, "", (Waiting, "is being deleted")),
            (false, true, "Unhealthy", (Waiting, "is being deleted")),
            (false, true, NOT_STARTED, (Waiting, "is being deleted")),
            (false, true, NOT_TERMINATED, (Broken, STUCK)),
        ] {
            let event = PodEvent { reason: reason.to_owned(), message: "x".to_owned(), count: 1 };
            let events = Ok(Some(event).filter(|event| !event.reason.is_empty()).into_iter().collect());
            let report = report(PodSnapshot { is_ready, is_deleting, events, ..snapshot(GOOD, &[]) });
            assert_eq!((report.state, report.summary), want, "{is_ready} {is_deleting} {reason}");
        }
        let unreadable = PodSnapshot { selection: NetworkSelection::Unreadable, ..snapshot(GOOD, &[]) };
        assert_eq!(report(unreadable).state, Broken);
        let missing = PodSnapshot { nads: vec![(ObjectKey::new("apps", "net"), Ok(None))], ..snapshot(GOOD, &[]) };
        assert_eq!(report(missing).state, Broken);
    }

    #[test]
    fn the_same_words_for_another_reason_are_another_error() {
        let event = |reason: &str, message: &str, count| PodEvent {
            reason: reason.to_owned(),
            message: message.to_owned(),
            count,
        };
        let events = vec![event("A", "x", 1), event("B", "x", 5), event("A", "y", 3), event("A", "x", 7)];
        let errors = explained(events);
        let found: Vec<_> =
            errors.iter().map(|error| (error.reason.as_str(), error.message.as_str(), error.count)).collect();
        assert_eq!(found, [("A", "x", 8), ("B", "x", 5), ("A", "y", 3)]);
    }

    #[test]
    fn an_error_is_explained_by_its_rule_alone() {
        let report = report(snapshot(GOOD, &[MESSAGE]));
        for (rule, want) in [("ipam/host-local-range", true), ("nad/no-plugin", false)] {
            assert_eq!(report.is_explained_by(crate::policy::rules::find(rule).unwrap()), want, "{rule}");
        }
    }

    /// A NAD is judged as admission would judge it on that day, with the claims of its devices.
    #[test]
    fn a_nad_is_judged_with_the_day_and_the_claims() {
        let rules = |report: &PodReport| -> Vec<(&str, Action)> {
            report.nads[0].findings().iter().map(|finding| (finding.rule.id, finding.action)).collect()
        };
        let policy =
            "exceptions: [{rule: ipam/host-local-range, namespace: apps, name: net, reason: lab, expires: 2026-11-01}]";
        let policy = Policy::parse(policy).unwrap();
        for (now, want) in [("2026-11-01T23:00:00Z", Action::Audit), ("2026-11-02T00:00:00Z", Action::Deny)] {
            let report = PodReport::of(snapshot(OUTSIDE, &[]), &policy, now.parse().unwrap());
            assert_eq!(rules(&report), [("ipam/host-local-range", want)], "{now}");
        }
        let claim = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"c","namespace":"apps"},
            "spec":{"spec":{"devices":{"config":[{"requests":["vf"],"opaque":{"driver":"sriovnetwork.k8snetworkplumbingwg.io",
            "parameters":{"apiVersion":"sriovnetwork.k8snetworkplumbingwg.io/v1alpha1","kind":"VfConfig","netAttachDefName":"net"}}}]}}}}"#;
        let Ok(Some(Object::Claim(claim))) = Object::read(claim) else { panic!("{claim}") };
        let mut claims = ClaimIndex::default();
        claims.add(&claim);
        for (device_claims, want) in [(Arc::default(), Action::Deny), (Arc::new(claims.finish()), Action::Warn)] {
            let sriov = snapshot(r#"{"cniVersion":"1.0.0","type":"sriov"}"#, &[]);
            let found = report(PodSnapshot { device_claims, ..sriov });
            assert_eq!(rules(&found), [("nad/resource-name-missing", want)]);
        }
    }
}
