//! Events on networks, for those who wrote them: `kubectl describe` shows what to mend where they look anyway.
//!
//! Nobody is told twice. The name of an Event is made of the object, the rule and the words, and it is only ever created: where it
//! is there already, the API server says so and nothing is written, also after a restart and when another replica leads. The API
//! server forgets Events, after an hour unless it is told otherwise, so each is offered again an hour later, as long as
//! the finding lasts. Nothing but the right to create Events is needed.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;

use super::owner::segment;
use super::{Cluster, Failed, Written};
use crate::output::fingerprint;
use crate::output::report::About;
use crate::policy::{Action, Finding, Verdict};
use crate::resources::NetworkKind;
use crate::visible;

/// After what time an Event is offered again.
const AGAIN: Duration = Duration::from_secs(3600);
/// The most Events on one object, the first of the verdict.
const MOST_PER_OBJECT: usize = 10;
/// The longest words of an Event, in bytes: the newer of the two kinds of Events takes no more.
const MOST_WORDS: usize = 1000;
/// How many Events may be written at once, and how long it takes until one more may. What there is no room for comes with the
/// next look at everything.
const BURST: u32 = 25;
const PACE: Duration = Duration::from_secs(1);

/// The one who tells.
pub struct Events {
    cluster: Cluster,
    /// Who this replica is.
    identity: String,
    /// The Events that were written or found, and when: those of the last hour.
    told: HashMap<String, Instant>,
    bucket: Bucket,
}

impl Events {
    /// Nobody was told anything yet.
    pub fn new(cluster: Cluster, identity: String) -> Self {
        Self { cluster, identity, told: HashMap::new(), bucket: Bucket::full(Instant::now()) }
    }

    /// Tells the author of a network what to mend; how many Events were written. NADs are nobody's business here: the operator
    /// writes them, or `kubectl apply` has told their author.
    pub async fn tell(&mut self, about: &About<'_>, verdict: &Verdict) -> Result<usize, Failed> {
        let Some(namespace) = segment(about.namespace).filter(|_| NetworkKind::from_kind(about.kind).is_some()) else {
            return Ok(0);
        };
        let now = Instant::now();
        self.told.retain(|_, at| now.duration_since(*at) < AGAIN);
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let mut written = 0;
        for finding in verdict.findings.iter().filter(|finding| is_authors(finding)).take(MOST_PER_OBJECT) {
            let name = name(about, finding);
            if self.told.contains_key(&name) {
                continue;
            }
            if !self.bucket.take(now) {
                debug!(about.name, "too many Events at once; the rest comes later");
                break;
            }
            let event = event(about, finding, &name, &self.identity, Timestamp::now());
            match self.cluster.create(&path, &event).await? {
                Written::Stored(_) => written += 1,
                // It is there, or its namespace is not.
                Written::Changed => {}
            }
            self.told.insert(name, now);
        }
        Ok(written)
    }
}

/// Whether a network's author must do something: what nadmit mends by itself, or only records, is not theirs.
fn is_authors(finding: &Finding) -> bool {
    matches!(finding.action, Action::Deny | Action::Warn)
}

/// What an Event is called: the same for the same words about the same object.
fn name(about: &About<'_>, finding: &Finding) -> String {
    let told = fingerprint([finding.rule.id, &finding.pointer, &finding.message]);
    format!("nadmit-{}-{told}", about.uid)
}

fn event(about: &About<'_>, finding: &Finding, name: &str, identity: &str, now: Timestamp) -> Value {
    let About { api_version, kind, namespace, name: of_name, uid } = *about;
    let help = if finding.help.is_empty() { String::new() } else { format!(". To mend it: {}", finding.help) };
    // `kubectl describe` writes it to the terminal as it is.
    let message = format!("{} ({}){help}", finding.message, finding.rule.id);
    let message = visible::line(&message);
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": { "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": of_name, "uid": uid },
        "type": "Warning",
        "reason": reason(finding.rule.id),
        "message": message.get(..message.floor_char_boundary(MOST_WORDS)).unwrap_or_default(),
        "source": { "component": "nadmit" },
        "reportingComponent": "nadmit",
        "reportingInstance": identity,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

/// A rule's id as Events spell reasons: `NetworkNamespaceAbsent`.
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

/// How much may be written: so much at once, and one more from time to time.
#[derive(Debug)]
struct Bucket {
    left: u32,
    /// When the last one was added.
    filled: Instant,
}

impl Bucket {
    fn full(now: Instant) -> Self {
        Self { left: BURST, filled: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        while self.left < BURST && now.saturating_duration_since(self.filled) >= PACE {
            self.left += 1;
            self.filled += PACE;
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
    fn an_event_is_about_a_finding() {
        let found = finding("network/namespace-absent", Action::Warn, "`apps` is not there");
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
          "message": "`apps` is not there (network/namespace-absent). To mend it: mend it",
          "metadata": {
            "name": "nadmit-f6b1-17a10e98a9b2e643",
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
    fn the_same_words_about_the_same_object_are_one_event() {
        let found = || finding("nad/schema", Action::Warn, "m");
        let other = About { uid: "0", ..NET };
        let again = About { name: "renamed", ..NET };
        assert_eq!(name(&NET, &found()), name(&again, &found()));
        let mut more = found();
        more.help = "other help".to_owned();
        assert_eq!(name(&NET, &found()), name(&NET, &more));
        for different in [
            name(&other, &found()),
            name(&NET, &finding("nad/schema", Action::Warn, "n")),
            name(&NET, &finding("nad/field-type", Action::Warn, "m")),
            name(&NET, &found().at("/spec/ipam")),
        ] {
            assert_ne!(name(&NET, &found()), different);
        }
    }

    #[test]
    fn authors_hear_what_is_theirs() {
        for (action, want) in [
            (Action::Deny, true),
            (Action::Warn, true),
            (Action::Patch, false),
            (Action::Audit, false),
            (Action::Off, false),
        ] {
            assert_eq!(is_authors(&finding("nad/schema", action, "m")), want, "{action:?}");
        }
    }

    #[test]
    fn words_end_somewhere() {
        let found = finding("nad/schema", Action::Warn, &"ä".repeat(2000));
        let event = event(&NET, &found, "name", "me", Timestamp::UNIX_EPOCH);
        let words = event["message"].as_str().unwrap();
        assert!(words.len() <= MOST_WORDS && words.len() > MOST_WORDS - 4, "{}", words.len());
    }

    #[test]
    fn a_bucket_runs_dry_and_fills_again() {
        let begin = Instant::now();
        let mut bucket = Bucket::full(begin);
        let mut taken = |after: f64| {
            let now = begin + Duration::from_secs_f64(after);
            std::iter::repeat_with(|| bucket.take(now)).take_while(|may| *may).count()
        };
        for (after, want) in [(0.0, 25), (0.5, 0), (1.2, 1), (4.5, 3), (10_000.0, 25), (10_000.9, 0)] {
            assert_eq!(taken(after), want, "after {after} s");
        }
    }
}
