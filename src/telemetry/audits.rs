//! Metrics of the cluster audit and of the API server's audit events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::metrics::{FindingLabels, ResultLabels};

/// Report writes by result.
#[derive(Clone, Debug, Default)]
pub struct ReportWrites(Family<ResultLabels, Counter>);

impl ReportWrites {
    /// One more.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create(&ResultLabels { result }).inc();
    }
}

/// Metrics of the cluster audit, exposed only by the leader.
#[derive(Clone, Debug, Default)]
pub struct AuditMetrics {
    findings: Family<FindingLabels, Gauge>,
    /// What `findings` has now.
    shown: Arc<Mutex<Vec<FindingLabels>>>,
    last_scan: OptionalGauge,
    duration: OptionalGauge,
    /// Report writes.
    pub reports: ReportWrites,
}

impl AuditMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("audit_findings", "Findings on stored objects, by rule and action", self.findings.clone());
        registry.register(
            "audit_last_scan_timestamp_seconds",
            "Unix time of the last full scan",
            self.last_scan.clone(),
        );
        registry.register("audit_scan_duration_seconds", "Duration of the last full scan", self.duration.clone());
        registry.register("audit_report_writes", "Report writes, by result", self.reports.0.clone());
    }

    /// Sets the current findings by rule and action; others are removed.
    pub fn found(&self, counts: impl IntoIterator<Item = ((&'static str, &'static str), usize)>) {
        let mut found = Vec::new();
        for ((rule, action), count) in counts {
            let label = FindingLabels { rule, action };
            self.findings.get_or_create(&label).set(i64::try_from(count).unwrap_or(i64::MAX));
            found.push(label);
        }
        // Existing series are never removed in between: an alert would restart its pending period.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in shown.iter().filter(|label| !found.contains(label)) {
            self.findings.remove(gone);
        }
        *shown = found;
    }

    /// Records a full scan: its Unix time and duration.
    pub fn scanned(&self, at: f64, seconds: f64) {
        self.last_scan.set(Some(at));
        self.duration.set(Some(seconds));
    }

    /// Clears the metrics after losing leadership.
    pub fn clear(&self) {
        self.found([]);
        self.last_scan.set(None);
        self.duration.set(None);
    }
}

/// A gauge that may be absent.
#[derive(Clone, Debug, Default)]
struct OptionalGauge(Arc<Mutex<Option<f64>>>);

impl OptionalGauge {
    fn set(&self, value: Option<f64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn get(&self) -> Option<f64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for OptionalGauge {
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
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    way: &'static str,
}

/// Metrics of the API server's audit events.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    batches: Family<ResultLabels, Counter>,
    writes: Family<OutcomeLabels, Counter>,
    blind: Family<MethodLabels, Counter>,
    loops: OptionalGauge,
}

impl EventMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("audit_batches", "Batches of audit events, by result", self.batches.clone());
        registry.register("audit_writes", "Writes in audit events, by outcome", self.writes.clone());
        registry.register("audit_blind_writes", "Blind status writes in audit events, by method", self.blind.clone());
        registry.register(
            "audit_loops",
            "Objects in a write loop, from the audit events of the last hour or two",
            self.loops.clone(),
        );
    }

    /// Counts a batch.
    pub fn batch(&self, result: &'static str) {
        self.batches.get_or_create(&ResultLabels { result }).inc();
    }

    /// A write was seen; if it was blind, how it was sent.
    pub fn write(&self, outcome: &'static str, blind: Option<&'static str>) {
        self.writes.get_or_create(&OutcomeLabels { outcome }).inc();
        if let Some(way) = blind {
            self.blind.get_or_create(&MethodLabels { way }).inc();
        }
    }

    /// Sets the number of objects in a loop; `None` if no events were received, which would otherwise look like no loops.
    pub fn loops(&self, objects: Option<usize>) {
        self.loops.set(objects.map(|objects| objects as f64));
    }
}
