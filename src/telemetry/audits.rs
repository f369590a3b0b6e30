//! What audits tell: of the cluster as it is, and of the API server's audit events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::metrics::{Found, Result};

/// What became of the reports of an audit.
#[derive(Clone, Debug, Default)]
pub struct ReportWrites(Family<Result, Counter>);

impl ReportWrites {
    /// One more.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create(&Result { result }).inc();
    }
}

/// What the audit of the cluster finds, for the replica that does it. The others show none of it.
#[derive(Clone, Debug, Default)]
pub struct AuditMetrics {
    findings: Family<Found, Gauge>,
    /// What `findings` has now.
    shown: Arc<Mutex<Vec<Found>>>,
    last_scan: Sometimes,
    duration: Sometimes,
    /// What became of the reports.
    pub reports: ReportWrites,
}

impl AuditMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "audit_findings",
            "Findings in the cluster as it is, by what would be done about them",
            self.findings.clone(),
        );
        registry.register(
            "audit_last_scan_timestamp_seconds",
            "When everything was last looked at, in seconds since 1970",
            self.last_scan.clone(),
        );
        registry.register("audit_scan_duration_seconds", "How long that took", self.duration.clone());
        registry.register("audit_report_writes", "Reports, by what became of them", self.reports.0.clone());
    }

    /// All that is found now, by rule and action: what is not among it is not found any more.
    pub fn found(&self, counts: impl IntoIterator<Item = ((&'static str, &'static str), usize)>) {
        let mut found = Vec::new();
        for ((rule, action), count) in counts {
            let label = Found { rule, action };
            self.findings.get_or_create(&label).set(i64::try_from(count).unwrap_or(i64::MAX));
            found.push(label);
        }
        // What is still found is never missing in between: an alert would begin to wait anew.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in shown.iter().filter(|label| !found.contains(label)) {
            self.findings.remove(gone);
        }
        *shown = found;
    }

    /// Everything was looked at: when that ended, in seconds since 1970, and how long it took.
    pub fn scanned(&self, at: f64, seconds: f64) {
        self.last_scan.is(Some(at));
        self.duration.is(Some(seconds));
    }

    /// This replica leads no more: another one knows.
    pub fn clear(&self) {
        self.found([]);
        self.last_scan.is(None);
        self.duration.is(None);
    }
}

/// A number that is not always there.
#[derive(Clone, Debug, Default)]
struct Sometimes(Arc<Mutex<Option<f64>>>);

impl Sometimes {
    fn is(&self, value: Option<f64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn get(&self) -> Option<f64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for Sometimes {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.get().map_or(Ok(()), |value| ConstGauge::new(value).encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.get().is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CameOf {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SentBy {
    way: &'static str,
}

/// What the API server's audit events tell.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    batches: Family<Result, Counter>,
    writes: Family<CameOf, Counter>,
    blind: Family<SentBy, Counter>,
    loops: Sometimes,
}

impl EventMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("audit_batches", "Batches of audit events, by what became of them", self.batches.clone());
        registry.register("audit_writes", "Writes in the audit events, by what came of them", self.writes.clone());
        registry.register(
            "audit_blind_writes",
            "Status writes in the audit events that were taken without proof of what they overwrote",
            self.blind.clone(),
        );
        registry.register(
            "audit_loops",
            "Objects that are written again and again, by the audit events of the last hour or two",
            self.loops.clone(),
        );
    }

    /// A batch came.
    pub fn batch(&self, result: &'static str) {
        self.batches.get_or_create(&Result { result }).inc();
    }

    /// A write was seen; if it was blind, how it was sent.
    pub fn write(&self, outcome: &'static str, blind: Option<&'static str>) {
        self.writes.get_or_create(&CameOf { outcome }).inc();
        if let Some(way) = blind {
            self.blind.get_or_create(&SentBy { way }).inc();
        }
    }

    /// So many objects are in a loop; `None` where no events came: that there are no loops would be a comfort that nobody can give.
    pub fn loops(&self, objects: Option<usize>) {
        self.loops.is(objects.map(|objects| objects as f64));
    }
}
