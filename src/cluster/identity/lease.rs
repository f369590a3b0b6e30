//! Leader election with a Lease, by the rules of client-go.
//!
//! Wall clocks do not decide. A holder has lost the Lease if its record did not change for the lease duration on our own
//! monotonic clock, and a leader stops earlier: its claim ends [`Timing::renew_within`] after the last renewal was *sent*, before
//! anyone else can take over. Every write carries the resourceVersion that was read.
//!
//! The published crates were not taken: kube-lease-manager compares the holder's clock with its own and renews without a
//! resourceVersion, and kube-leader-election is for an older kube.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult};

/// The times of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The lease duration, after which others take over. The record has it in whole seconds.
    pub duration: Duration,
    /// How long a leader leads after a renewal; shorter, so that it stops before another starts.
    pub renew_within: Duration,
    /// The interval between two attempts.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let [duration, renew_within, retry] = [15, 10, 2].map(Duration::from_secs);
        Self { duration, renew_within, retry }
    }
}

/// Whether this replica is the leader. Check at the moment of use: a claim expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    until: Option<Instant>,
}

impl Claim {
    /// Whether it is held now.
    pub fn is_held(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    /// When it expires, unless renewed.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }
}

/// A candidate for leadership.
#[derive(Clone)]
pub struct Candidate {
    /// The cluster of the Lease.
    pub cluster: Cluster,
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// The unique identity, also across restarts.
    pub identity: String,
    /// The timing.
    pub timing: Timing,
}

/// The record in a Lease.
#[derive(Clone, Debug, PartialEq)]
struct LeaseRecord {
    holder: String,
    duration: Duration,
    /// The whole spec, to detect changes.
    spec: Value,
}

/// What to do with the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseAction {
    Create,
    Take,
    Renew,
    Wait,
}

/// Decides from the record, how long it is unchanged, and the own identity.
fn next(record: Option<&LeaseRecord>, unchanged: Duration, identity: &str, timing: &Timing) -> LeaseAction {
    match record {
        None => LeaseAction::Create,
        Some(record) if record.holder == identity => LeaseAction::Renew,
        Some(record) if record.holder.is_empty() => LeaseAction::Take,
        // Uses the longer of the two durations if they differ.
        Some(record) if unchanged >= record.duration.max(timing.duration) => LeaseAction::Take,
        Some(_) => LeaseAction::Wait,
    }
}

/// The last observed record, and since when.
struct LeaseObservation {
    record: Option<LeaseRecord>,
    since: Instant,
}

impl Candidate {
    /// Runs until cancelled, and then releases the Lease: cancel when the work has ended. The claim is published to the channel.
    pub async fn run(self, claims: watch::Sender<Claim>, stop: CancellationToken) {
        let mut seen = LeaseObservation { record: None, since: Instant::now() };
        while !stop.is_cancelled() {
            // A request that is cancelled here may still be executed. That extends the record, not the claim.
            match timeout(self.timing.renew_within, self.try_acquire_or_renew(&mut seen)).await {
                Ok(Ok(Some(claim))) => self.publish(&claims, claim),
                // Conflict. Nobody else can hold a claim until this one expires.
                Ok(Ok(None)) => {}
                Ok(Err(error)) => warn!(%error, lease = self.name, "failed to read or write the Lease"),
                Err(_) => warn!(lease = self.name, "timed out reading or writing the Lease"),
            }
            let claim = *claims.borrow();
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(self.timing.retry) => {}
                () = expired(claim) => self.publish(&claims, Claim::default()),
            }
        }
        let was_held = claims.borrow().until.is_some();
        self.publish(&claims, Claim::default());
        if was_held && !matches!(timeout(self.timing.renew_within, self.release()).await, Ok(Ok(()))) {
            warn!(lease = self.name, "failed to release the Lease; others wait until it expires");
        }
    }

    fn publish(&self, claims: &watch::Sender<Claim>, claim: Claim) {
        let before = claims.send_replace(claim);
        match (before.until, claim.until) {
            (None, Some(_)) => info!(lease = self.name, identity = self.identity, "became leader"),
            (Some(_), None) => warn!(lease = self.name, identity = self.identity, "lost leadership"),
            _ => {}
        }
    }

    /// Acquires or renews the Lease if possible, and returns the claim; `None` if it is held by another.
    async fn try_acquire_or_renew(&self, seen: &mut LeaseObservation) -> Result<Option<Claim>, ApiError> {
        let found = self.cluster.read(&self.lease()?).await?;
        let record = found.as_ref().map(record);
        if record != seen.record {
            *seen = LeaseObservation { record, since: Instant::now() };
        }
        let step = next(seen.record.as_ref(), seen.since.elapsed(), &self.identity, &self.timing);
        let sent = Instant::now();
        let written = match (step, found) {
            (LeaseAction::Wait, _) => return Ok(Some(Claim::default())),
            (_, None) => {
                let new = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": { "name": self.name, "namespace": self.namespace },
                });
                self.cluster.create(&self.leases()?, &self.with_holder(new, step)).await?
            }
            (_, Some(found)) => self.cluster.replace(&self.lease()?, &self.with_holder(found, step)).await?,
        };
        Ok(match written {
            WriteResult::Stored(_) => Some(Claim { until: Some(sent + self.timing.renew_within) }),
            WriteResult::Changed => None,
        })
    }

    /// The Lease with this replica as holder.
    fn with_holder(&self, mut lease: Value, step: LeaseAction) -> Value {
        let now = now();
        let mut spec = lease.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        if step != LeaseAction::Renew {
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

    /// Releases the Lease, if this replica holds it.
    async fn release(&self) -> Result<(), ApiError> {
        let Some(mut lease) = self.cluster.read(&self.lease()?).await? else { return Ok(()) };
        if record(&lease).holder != self.identity {
            return Ok(());
        }
        if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("holderIdentity".to_owned(), "".into());
            // A duration is required; client-go writes one second.
            spec.insert("leaseDurationSeconds".to_owned(), 1.into());
            spec.insert("renewTime".to_owned(), now().into());
        }
        self.cluster.replace(&self.lease()?, &lease).await.map(drop)
    }

    fn leases(&self) -> Result<ApiPath, ApiError> {
        ApiPath::in_namespace(ApiResource::LEASES, &self.namespace)
    }

    fn lease(&self) -> Result<ApiPath, ApiError> {
        self.leases()?.child(&self.name)
    }
}

/// Completes when the claim expires; never for one that is not held.
async fn expired(claim: Claim) {
    match claim.until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn record(lease: &Value) -> LeaseRecord {
    let spec = lease.get("spec").cloned().unwrap_or_default();
    let holder = spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
    let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or_default();
    LeaseRecord { holder, duration: Duration::from_secs(seconds), spec }
}

/// The time in Lease format, for people.
fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(holder: &str, seconds: u64) -> Option<LeaseRecord> {
        Some(record(&json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": seconds } })))
    }

    #[test]
    fn lease_is_taken_only_when_free_or_expired() {
        let timing = Timing::default();
        for (record, unchanged, want) in [
            (None, 0, LeaseAction::Create),
            (of("me", 15), 0, LeaseAction::Renew),
            (of("me", 15), 99, LeaseAction::Renew),
            (of("", 1), 0, LeaseAction::Take),
            (of("", 15), 0, LeaseAction::Take),
            (of("other", 15), 0, LeaseAction::Wait),
            (of("other", 15), 14, LeaseAction::Wait),
            (of("other", 15), 15, LeaseAction::Take),
            // If durations differ, the longer one counts.
            (of("other", 30), 29, LeaseAction::Wait),
            (of("other", 30), 30, LeaseAction::Take),
            (of("other", 1), 14, LeaseAction::Wait),
            (of("other", 0), 15, LeaseAction::Take),
            (Some(record(&json!({ "spec": {} }))), 0, LeaseAction::Take),
            (Some(record(&json!({}))), 0, LeaseAction::Take),
        ] {
            let found = next(record.as_ref(), Duration::from_secs(unchanged), "me", &timing);
            assert_eq!(found, want, "{record:?} after {unchanged} s");
        }
    }

    #[test]
    fn claim_expires() {
        assert!(!Claim::default().is_held());
        let now = Instant::now();
        assert!(Claim { until: Some(now + Duration::from_secs(60)) }.is_held());
        assert!(!Claim { until: Some(now) }.is_held());
        let timing = Timing::default();
        assert!(timing.retry < timing.renew_within && timing.renew_within < timing.duration);
    }
}
