//! Reports the denials of the last hour: one report per replica, in nadmit's namespace.
//!
//! Each replica writes its own report, at most once a minute, so no two replicas write the same object. A report is deleted when
//! nothing was denied for an hour; the leader deletes those of replicas that no longer exist.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, meta_text};
use crate::cluster::identity::lease::Claim;
use crate::cluster::leader::reports::{ReportWrite, store_report};
use crate::denials::{RETENTION_SECONDS, RecentDenials, denial_report, latest_denial};
use crate::output::report::{ABOUT, OURS, ReportKind, digest};
use crate::policy::{Policy, Reports};
use crate::telemetry::metrics::ReportWrites;

/// The delay after a denial, because others often follow.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// The minimum interval between two writes.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// How often the leader deletes stale reports.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);

/// Writes the denial report of this replica.
pub struct DenialReporter {
    cluster: Cluster,
    namespace: String,
    name: String,
    denials: Arc<RecentDenials>,
    writes: ReportWrites,
    /// The kind and digest of the last written report.
    written: Option<(ReportKind, String)>,
}

impl DenialReporter {
    /// For the replica with that identity, in that namespace.
    pub fn new(
        cluster: Cluster,
        namespace: String,
        identity: &str,
        denials: Arc<RecentDenials>,
        writes: ReportWrites,
    ) -> Self {
        Self { cluster, namespace, name: name(identity), denials, writes, written: None }
    }

    /// Writes the report continuously; as leader it also deletes stale reports.
    pub async fn run(mut self, policy: Arc<ArcSwap<Policy>>, claims: watch::Receiver<Claim>) {
        let mut sweep = Instant::now();
        loop {
            let reports = policy.load().audit.reports;
            if let Err(error) = self.write(reports, Timestamp::now().as_second()).await {
                self.writes.count("failed");
                warn!(%error, "failed to write the denial report");
            }
            let leads = claims.borrow().is_held();
            if leads && sweep <= Instant::now() {
                sweep = Instant::now() + SWEEP_INTERVAL;
                if let Err(error) = self.sweep(Timestamp::now().as_second()).await {
                    warn!(%error, "failed to delete denial reports of replicas that no longer exist");
                }
            }
            // Writes are at least a minute apart; after a minute without one, the next denial is written at once.
            if self.written.is_some() {
                sleep(MIN_WRITE_INTERVAL).await;
            }
            tokio::select! {
                () = self.denials.changed() => sleep(DEBOUNCE).await,
                () = sleep(MIN_WRITE_INTERVAL) => {}
            }
        }
    }

    /// Writes the denials of the hour before that time, if the report changed.
    pub async fn write(&mut self, reports: Reports, now: i64) -> Result<(), ApiError> {
        let (denied, is_partial) = self.denials.of_last_hour(now);
        let kind = ReportKind::of(reports);
        let wanted = denial_report(reports, &self.namespace, &self.name, &denied, is_partial);
        if let Some((before, _)) = &self.written
            && (wanted.is_none() || kind != Some(*before))
        {
            self.cluster.delete(&self.collection(*before)?.child(&self.name)?).await?;
            self.writes.count("deleted");
            self.written = None;
        }
        let (Some(kind), Some(wanted)) = (kind, wanted) else { return Ok(()) };
        let digest = digest(&wanted);
        if self.written.as_ref().is_some_and(|(_, before)| *before == digest) {
            return Ok(());
        }
        // A report of an earlier process of this name may be there.
        match store_report(&self.cluster, (kind, &self.namespace, &self.name), &wanted, true).await? {
            Some((result, _)) => {
                result.count(&self.writes);
                if result != ReportWrite::Contended {
                    self.written = Some((kind, digest));
                }
            }
            None => debug!(kind = kind.plural, "report kind is not installed; keeping denials in memory only"),
        }
        Ok(())
    }

    /// Deletes reports without a denial in the last hour; returns how many.
    pub async fn sweep(&self, now: i64) -> Result<usize, ApiError> {
        let mut gone = 0;
        for kind in ReportKind::ALL {
            let collection = self.collection(kind)?;
            let of_denials = collection.clone().labelled(&[OURS, (ABOUT, "denials")]);
            let Some(list) = self.cluster.read(&of_denials).await? else { continue };
            let stored = list.get("items").and_then(serde_json::Value::as_array).into_iter().flatten();
            for stored in stored.filter(|stored| latest_denial(stored).is_none_or(|at| now - at >= RETENTION_SECONDS)) {
                let Ok(path) = collection.clone().child(meta_text(stored, "name")) else { continue };
                // Its replica may still exist and have written something new.
                let version = meta_text(stored, "resourceVersion");
                if self.cluster.delete_unchanged(&path, version).await? {
                    self.writes.count("deleted");
                    gone += 1;
                }
            }
        }
        Ok(gone)
    }

    fn collection(&self, kind: ReportKind) -> Result<ApiPath, ApiError> {
        ApiPath::in_namespace(ApiResource::report(kind), &self.namespace)
    }
}

/// The name of a replica's report.
fn name(identity: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let identity: String = identity.chars().take(200).map(plain).collect();
    format!("nadmit-denials-{}", identity.trim_matches('-')).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_name_is_derived_from_the_replica() {
        for (identity, want) in [
            ("nadmit-7f9-abc_1", "nadmit-denials-nadmit-7f9-abc-1"),
            ("Host.example_17", "nadmit-denials-host-example-17"),
            ("_", "nadmit-denials"),
        ] {
            assert_eq!(name(identity), want);
        }
        assert!(name(&"a".repeat(500)).len() <= 253);
    }
}
