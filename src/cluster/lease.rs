//! Leadership, for what only one replica may do: a Lease, by the rules of Kubernetes' own components.
//!
//! Nobody's wall clock decides. A holder is gone when its record did not change for the lease's duration by our own clock, and a
//! leader stops before that: its claim ends [`Timing::renew_within`] after the last renewal was *sent*, which is earlier than
//! anybody can have begun to wait. Every write carries the resourceVersion that was read.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Cluster, Failed, Written};

/// The times of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait before they take over. The record has it in whole seconds.
    pub duration: Duration,
    /// How long a leader leads after a renewal; shorter, so that it has stopped when another begins.
    pub renew_within: Duration,
    /// How long to wait between two looks.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let [duration, renew_within, retry] = [15, 10, 2].map(Duration::from_secs);
        Self { duration, renew_within, retry }
    }
}

/// Whether this replica leads. Ask at the moment of use: a claim ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    until: Option<Instant>,
}

impl Claim {
    /// Whether it leads now.
    pub fn is_held(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    /// When it ends, unless it is renewed.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }
}

/// One who would lead.
#[derive(Clone)]
pub struct Candidate {
    /// The cluster that has the Lease.
    pub cluster: Cluster,
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who this is: no other candidate, also none of an earlier start, may have the same.
    pub identity: String,
    /// The times.
    pub timing: Timing,
}

/// What a Lease says.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    holder: String,
    duration: Duration,
    /// All of it, to see whether it changed.
    spec: Value,
}

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Take,
    Renew,
    Wait,
}

/// Decides: what the record says, for how long it has not changed, who asks.
fn next(record: Option<&Record>, unchanged: Duration, identity: &str, timing: &Timing) -> Step {
    match record {
        None => Step::Create,
        Some(record) if record.holder == identity => Step::Renew,
        Some(record) if record.holder.is_empty() => Step::Take,
        // The longer of the two, should they disagree about how long a lease is.
        Some(record) if unchanged >= record.duration.max(timing.duration) => Step::Take,
        Some(_) => Step::Wait,
    }
}

/// What was seen in the Lease, and since when.
struct Seen {
    record: Option<Record>,
    since: Instant,
}

impl Candidate {
    /// Stands until it is cancelled, which gives the Lease back: cancel when the work has ended. The claim goes to the channel.
    pub async fn stand(self, claims: watch::Sender<Claim>, stop: CancellationToken) {
        let mut seen = Seen { record: None, since: Instant::now() };
        while !stop.is_cancelled() {
            // A request that is cut off here may still be carried out. That lengthens the record's life, not the claim's.
            match timeout(self.timing.renew_within, self.look(&mut seen)).await {
                Ok(Ok(Some(claim))) => self.publish(&claims, claim),
                // Somebody wrote in between. Until the claim ends nobody else can have one.
                Ok(Ok(None)) => {}
                Ok(Err(error)) => warn!(%error, lease = self.name, "the Lease cannot be read or written"),
                Err(_) => warn!(lease = self.name, "the API server did not answer in time about the Lease"),
            }
            let claim = *claims.borrow();
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(self.timing.retry) => {}
                () = lapse(claim) => self.publish(&claims, Claim::default()),
            }
        }
        let was_held = claims.borrow().until.is_some();
        self.publish(&claims, Claim::default());
        if was_held && !matches!(timeout(self.timing.renew_within, self.release()).await, Ok(Ok(()))) {
            warn!(lease = self.name, "the Lease could not be given back; others wait until it ends");
        }
    }

    fn publish(&self, claims: &watch::Sender<Claim>, claim: Claim) {
        let before = claims.send_replace(claim);
        match (before.until, claim.until) {
            (None, Some(_)) => info!(lease = self.name, identity = self.identity, "this replica leads"),
            (Some(_), None) => warn!(lease = self.name, identity = self.identity, "this replica leads no more"),
            _ => {}
        }
    }

    /// Reads the Lease, takes or renews it if it may be, and tells the claim that this gives; `None` if nothing came of it.
    async fn look(&self, seen: &mut Seen) -> Result<Option<Claim>, Failed> {
        let found = self.cluster.read(&self.address()).await?;
        let record = found.as_ref().map(record);
        if record != seen.record {
            *seen = Seen { record, since: Instant::now() };
        }
        let step = next(seen.record.as_ref(), seen.since.elapsed(), &self.identity, &self.timing);
        let sent = Instant::now();
        let written = match (step, found) {
            (Step::Wait, _) => return Ok(Some(Claim::default())),
            (_, None) => {
                let new = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": { "name": self.name, "namespace": self.namespace },
                });
                self.cluster.create(&self.collection(), &self.signed(new, step)).await?
            }
            (_, Some(found)) => self.cluster.replace(&self.address(), &self.signed(found, step)).await?,
        };
        Ok(match written {
            Written::Stored(_) => Some(Claim { until: Some(sent + self.timing.renew_within) }),
            Written::Changed => None,
        })
    }

    /// The Lease with our name on it.
    fn signed(&self, mut lease: Value, step: Step) -> Value {
        let now = now();
        let mut spec = lease.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        if step != Step::Renew {
            let before = spec.get("leaseTransitions").and_then(Value::as_i64);
            spec.insert("leaseTransitions".to_owned(), before.map_or(0, |before| before.saturating_add(1)).into());
            spec.insert("acquireTime".to_owned(), now.clone().into());
        }
        spec.insert("holderIdentity".to_owned(), self.identity.clone().into());
        spec.insert("leaseDurationSeconds".to_owned(), self.timing.duration.as_secs().max(1).into());
        spec.insert("renewTime".to_owned(), now.into());
        if let Some(lease) = lease.as_object_mut() {
            lease.insert("spec".to_owned(), spec.into());
        }
        lease
    }

    /// Gives the Lease back, if it is ours.
    async fn release(&self) -> Result<(), Failed> {
        let Some(mut lease) = self.cluster.read(&self.address()).await? else { return Ok(()) };
        if record(&lease).holder != self.identity {
            return Ok(());
        }
        if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("holderIdentity".to_owned(), "".into());
            // A duration must be there; one second is what Kubernetes' own components write.
            spec.insert("leaseDurationSeconds".to_owned(), 1.into());
            spec.insert("renewTime".to_owned(), now().into());
        }
        self.cluster.replace(&self.address(), &lease).await.map(drop)
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn address(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

/// Ends when the claim does; never for one that is not held.
async fn lapse(claim: Claim) {
    match claim.until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn record(lease: &Value) -> Record {
    let spec = lease.get("spec").cloned().unwrap_or_default();
    let holder = spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
    let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or_default();
    Record { holder, duration: Duration::from_secs(seconds), spec }
}

/// The time as a Lease has it, for people to read.
fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(holder: &str, seconds: u64) -> Option<Record> {
        Some(record(&json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": seconds } })))
    }

    #[test]
    fn a_lease_is_taken_only_from_nobody_or_from_one_who_was_silent_for_its_duration() {
        let timing = Timing::default();
        for (record, unchanged, want) in [
            (None, 0, Step::Create),
            (of("me", 15), 0, Step::Renew),
            (of("me", 15), 99, Step::Renew),
            (of("", 1), 0, Step::Take),
            (of("", 15), 0, Step::Take),
            (of("other", 15), 0, Step::Wait),
            (of("other", 15), 14, Step::Wait),
            (of("other", 15), 15, Step::Take),
            // Who disagrees about the duration gets the longer one.
            (of("other", 30), 29, Step::Wait),
            (of("other", 30), 30, Step::Take),
            (of("other", 1), 14, Step::Wait),
            (of("other", 0), 15, Step::Take),
            (Some(record(&json!({ "spec": {} }))), 0, Step::Take),
            (Some(record(&json!({}))), 0, Step::Take),
        ] {
            let found = next(record.as_ref(), Duration::from_secs(unchanged), "me", &timing);
            assert_eq!(found, want, "{record:?} after {unchanged} s");
        }
    }

    #[test]
    fn a_claim_ends_by_itself() {
        assert!(!Claim::default().is_held());
        let now = Instant::now();
        assert!(Claim { until: Some(now + Duration::from_secs(60)) }.is_held());
        assert!(!Claim { until: Some(now) }.is_held());
        let timing = Timing::default();
        assert!(timing.retry < timing.renew_within && timing.renew_within < timing.duration);
    }
}
