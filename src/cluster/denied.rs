//! The denials of the last hour, kept in the cluster: one report in nadmit's namespace for each replica.
//!
//! Each replica writes its own, so that no two of them write the same object, and not more often than once a minute. It goes when
//! nothing was refused for an hour; that of a replica that is gone is deleted by the leader then.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::lease::Claim;
use super::owner::segment;
use super::reports::{collection, is_ours, merged, of_ours};
use super::{Cluster, Failed, Written, meta_text};
use crate::output::denied::{denials, youngest};
use crate::output::report::{ABOUT, ReportKind, digest};
use crate::policy::{Policy, Reports};
use crate::telemetry::denials::{Denials, REMEMBERED};
use crate::telemetry::metrics::ReportWrites;

/// How long is waited after a denial, as others often follow.
const TOGETHER: Duration = Duration::from_secs(1);
/// The time between two writes.
const APART: Duration = Duration::from_secs(60);
/// How often the leader looks for what others left behind.
const SWEEP: Duration = Duration::from_secs(600);
/// How often a report is read again that somebody else writes at the same time.
const ATTEMPTS: usize = 3;

/// The one who keeps the report of this replica.
pub struct DenialKeeper {
    cluster: Cluster,
    namespace: String,
    name: String,
    denials: Arc<Denials>,
    writes: ReportWrites,
    /// What was written last: as which kind, and its digest.
    written: Option<(ReportKind, String)>,
}

impl DenialKeeper {
    /// For the replica with that identity, in that namespace.
    pub fn new(
        cluster: Cluster,
        namespace: String,
        identity: &str,
        denials: Arc<Denials>,
        writes: ReportWrites,
    ) -> Self {
        Self { cluster, namespace, name: name(identity), denials, writes, written: None }
    }

    /// Writes what was refused, for ever; while this replica leads, it also deletes what others left.
    pub async fn run(mut self, policy: Arc<ArcSwap<Policy>>, claims: watch::Receiver<Claim>) {
        let mut sweep = Instant::now();
        loop {
            let reports = policy.load().audit.reports;
            if let Err(error) = self.write(reports, Timestamp::now().as_second()).await {
                self.writes.count("failed");
                warn!(%error, "the report of what was refused cannot be written");
            }
            let leads = claims.borrow().is_held();
            if leads && sweep <= Instant::now() {
                sweep = Instant::now() + SWEEP;
                if let Err(error) = self.sweep(Timestamp::now().as_second()).await {
                    warn!(%error, "reports of what replicas refused that are gone cannot be deleted");
                }
            }
            // A write is never followed by another within a minute; after a minute without one the next denial is written at once.
            if self.written.is_some() {
                sleep(APART).await;
            }
            tokio::select! {
                () = self.denials.changed() => sleep(TOGETHER).await,
                () = sleep(APART) => {}
            }
        }
    }

    /// Writes what was refused in the hour before that time, if it differs from what was written last.
    pub async fn write(&mut self, reports: Reports, now: i64) -> Result<(), Failed> {
        let (denied, is_partial) = self.denials.of_last_hour(now);
        let kind = ReportKind::of(reports);
        let wanted = denials(reports, &self.namespace, &self.name, &denied, is_partial);
        if let Some((before, _)) = &self.written
            && (wanted.is_none() || kind != Some(*before))
        {
            self.cluster.delete(&self.address(*before)).await?;
            self.writes.count("deleted");
            self.written = None;
        }
        let (Some(kind), Some(wanted)) = (kind, wanted) else { return Ok(()) };
        let digest = digest(&wanted);
        if self.written.as_ref().is_some_and(|(_, before)| *before == digest) {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let path = self.address(kind);
            let (written, result) = match self.cluster.read(&path).await? {
                None => (self.cluster.create(&collection(kind, &self.namespace), &wanted).await?, "created"),
                Some(found) if !is_ours(&found) => {
                    self.writes.count("contended");
                    warn!(path, "somebody else keeps a report by this name");
                    return Ok(());
                }
                Some(found) => (self.cluster.replace(&path, &merged(found, &wanted)).await?, "replaced"),
            };
            if matches!(written, Written::Stored(_)) {
                self.writes.count(result);
                self.written = Some((kind, digest));
                return Ok(());
            }
        }
        debug!(kind = kind.plural, "what was refused is kept in memory only: the cluster does not have this kind");
        Ok(())
    }

    /// Deletes the reports in which nothing is younger than an hour. How many.
    pub async fn sweep(&self, now: i64) -> Result<usize, Failed> {
        let mut gone = 0;
        for kind in [Reports::Openreports, Reports::Wgpolicyk8s].into_iter().filter_map(ReportKind::of) {
            let selector = format!("labelSelector={}%2C{ABOUT}%3Ddenials", of_ours());
            let collection = collection(kind, &self.namespace);
            let Some(list) = self.cluster.read(&format!("{collection}?{selector}")).await? else { continue };
            let stored = list.get("items").and_then(serde_json::Value::as_array).into_iter().flatten();
            for stored in stored.filter(|stored| youngest(stored).is_none_or(|at| now - at >= REMEMBERED)) {
                let Some(name) = segment(meta_text(stored, "name")) else { continue };
                // Its replica may be there after all, and have written something new.
                let version = meta_text(stored, "resourceVersion");
                if self.cluster.delete_unchanged(&format!("{collection}/{name}"), version).await? {
                    self.writes.count("deleted");
                    gone += 1;
                }
            }
        }
        Ok(gone)
    }

    fn address(&self, kind: ReportKind) -> String {
        format!("{}/{}", collection(kind, &self.namespace), self.name)
    }
}

/// What the report of a replica is called.
fn name(identity: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let identity: String = identity.chars().take(200).map(plain).collect();
    format!("nadmit-denials-{}", identity.trim_matches('-')).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_has_a_name() {
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
