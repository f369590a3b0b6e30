//! Events on networks, for their authors: `kubectl describe` shows what to fix.
//!
//! No Event is recorded twice. Its name is derived from the object, the rule and the message, and Events are only created: if it
//! exists already, the API server says so and nothing is written, also after a restart or a change of leader. The API server
//! deletes Events after an hour by default, so each is offered again after an hour while the finding lasts. Only the permission
//! to create Events is needed. This is not kube-runtime's `Recorder`, which counts repetitions in the Event, so that it must patch, and
//! what it stores depends on the clock.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult};
use crate::output::fingerprint;
use crate::output::report::ObjectReference;
use crate::policy::{Action, Finding, Verdict};
use crate::resources::NetworkKind;
use crate::visible;

/// After how long an Event is recorded again.
const REPEAT_AFTER: Duration = Duration::from_secs(3600);
/// The most Events on one object, the first of the verdict.
const MAX_PER_OBJECT: usize = 10;
/// The maximum message length in bytes: events.k8s.io allows no more.
const MAX_MESSAGE_BYTES: usize = 1000;
/// Token bucket: burst size and refill interval. Events beyond it are recorded at the next full scan.
const BURST: u32 = 25;
const REFILL_INTERVAL: Duration = Duration::from_secs(1);

/// Records Events.
pub struct EventRecorder {
    cluster: Cluster,
    /// Who this replica is.
    identity: String,
    /// Events recorded or found in the last hour, with their times.
    recorded: HashMap<String, Instant>,
    bucket: TokenBucket,
}

impl EventRecorder {
    /// Starts without recorded Events.
    pub fn new(cluster: Cluster, identity: String) -> Self {
        Self { cluster, identity, recorded: HashMap::new(), bucket: TokenBucket::full(Instant::now()) }
    }

    /// Records Events for the findings on a network; returns how many were written. NADs get none: the operator writes them, or
    /// `kubectl apply` has shown the warnings.
    pub async fn record(&mut self, about: &ObjectReference<'_>, verdict: &Verdict) -> Result<usize, ApiError> {
        if NetworkKind::from_kind(about.kind).is_none() {
            return Ok(0);
        }
        let now = Instant::now();
        self.recorded.retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        let path = ApiPath::in_namespace(ApiResource::EVENTS, about.namespace)?;
        let mut written = 0;
        for finding in verdict.findings.iter().filter(|finding| concerns_author(finding)).take(MAX_PER_OBJECT) {
            let name = name(about, finding);
            if self.recorded.contains_key(&name) {
                continue;
            }
            if !self.bucket.try_acquire(now) {
                debug!(about.name, "rate limit for Events reached; recording the rest later");
                break;
            }
            let event = event(about, finding, &name, &self.identity, Timestamp::now());
            match self.cluster.create(&path, &event).await? {
                WriteResult::Stored(_) => written += 1,
                // It already exists, or its namespace does not.
                WriteResult::Changed => {}
            }
            self.recorded.insert(name, now);
        }
        Ok(written)
    }
}

/// Whether the author must act: repaired and recorded-only findings are excluded.
fn concerns_author(finding: &Finding) -> bool {
    matches!(finding.action, Action::Deny | Action::Warn)
}

/// The name of an Event: the same for the same message about the same object.
fn name(about: &ObjectReference<'_>, finding: &Finding) -> String {
    let recorded = fingerprint([finding.rule.id, &finding.pointer, &finding.sentence()]);
    format!("nadmit-{}-{recorded}", about.uid)
}

fn event(about: &ObjectReference<'_>, finding: &Finding, name: &str, identity: &str, now: Timestamp) -> Value {
    let ObjectReference { api_version, kind, namespace, name: of_name, uid } = *about;
    // `kubectl describe` prints it unescaped.
    let message = finding.sentence_with_help("Help");
    let message = visible::line(&message);
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": { "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": of_name, "uid": uid },
        "type": "Warning",
        "reason": reason(finding.rule.id),
        "message": visible::at_most(&message, MAX_MESSAGE_BYTES),
        "source": { "component": "nadmit" },
        "reportingComponent": "nadmit",
        "reportingInstance": identity,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

/// A rule id as an Event reason: `NetworkNamespaceAbsent`.
fn reason(rule: &str) -> String {
    let words = rule.split(['/', '-']);
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

/// A token bucket.
#[derive(Debug)]
struct TokenBucket {
    left: u32,
    /// When the last one was added.
    filled: Instant,
}

impl TokenBucket {
    fn full(now: Instant) -> Self {
        Self { left: BURST, filled: now }
    }

    fn try_acquire(&mut self, now: Instant) -> bool {
        while self.left < BURST && now.saturating_duration_since(self.filled) >= REFILL_INTERVAL {
            self.left += 1;
            self.filled += REFILL_INTERVAL;
        }
        if self.left == BURST {
            self.filled = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{NET, finding};

    #[test]
    fn event_describes_a_finding() {
        let found = finding("network/namespace-absent", Action::Warn, "namespace `apps` does not exist")
            .with_note("the operator creates no NAD");
        let event = event(&NET, &found, &name(&NET, &found), "me_1", "2026-02-03T04:05:06.7Z".parse().unwrap());
        insta::assert_snapshot!(format!("{event:#}"), @r##"
        {
          "apiVersion": "v1",
          "count": 1,
          "firstTimestamp": "2026-02-03T04:05:06Z",
          "involvedObject": {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetwork",
            "name": "net",
            "namespace": "operator",
            "uid": "f6b1"
          },
          "kind": "Event",
          "lastTimestamp": "2026-02-03T04:05:06Z",
          "message": "namespace `apps` does not exist: the operator creates no NAD (network/namespace-absent). Help: fix it",
          "metadata": {
            "name": "nadmit-f6b1-a587a177813fad3c",
            "namespace": "operator"
          },
          "reason": "NetworkNamespaceAbsent",
          "reportingComponent": "nadmit",
          "reportingInstance": "me_1",
          "source": {
            "component": "nadmit"
          },
          "type": "Warning"
        }
        "##);
    }

    #[test]
    fn same_message_on_same_object_is_one_event() {
        let found = || finding("nad/schema", Action::Warn, "m");
        let other = ObjectReference { uid: "0", ..NET };
        let again = ObjectReference { name: "renamed", ..NET };
        assert_eq!(name(&NET, &found()), name(&again, &found()));
        let mut more = found();
        more.help = "other help".to_owned();
        assert_eq!(name(&NET, &found()), name(&NET, &more));
        for different in [
            name(&other, &found()),
            name(&NET, &finding("nad/schema", Action::Warn, "n")),
            name(&NET, &finding("nad/field-type", Action::Warn, "m")),
            name(&NET, &found().with_note("n")),
            name(&NET, &found().at("/spec/ipam")),
        ] {
            assert_ne!(name(&NET, &found()), different);
        }
    }

    #[test]
    fn events_only_for_findings_the_author_can_fix() {
        for (action, want) in [
            (Action::Deny, true),
            (Action::Warn, true),
            (Action::Patch, false),
            (Action::Audit, false),
            (Action::Off, false),
        ] {
            assert_eq!(concerns_author(&finding("nad/schema", action, "m")), want, "{action:?}");
        }
    }

    #[test]
    fn event_message_is_bounded() {
        let found = finding("nad/schema", Action::Warn, &"ä".repeat(2000));
        let event = event(&NET, &found, "name", "me", Timestamp::UNIX_EPOCH);
        let words = event["message"].as_str().unwrap();
        assert!(words.len() <= MAX_MESSAGE_BYTES && words.len() > MAX_MESSAGE_BYTES - 4, "{}", words.len());
    }

    #[test]
    fn token_bucket_empties_and_refills() {
        let begin = Instant::now();
        let mut bucket = TokenBucket::full(begin);
        let mut taken = |after: f64| {
            let now = begin + Duration::from_secs_f64(after);
            std::iter::repeat_with(|| bucket.try_acquire(now)).take_while(|may| *may).count()
        };
        for (after, want) in [(0.0, 25), (0.5, 0), (1.2, 1), (4.5, 3), (10_000.0, 25), (10_000.9, 0)] {
            assert_eq!(taken(after), want, "after {after} s");
        }
    }
}
