//! Metrics for Prometheus. Every label has a closed set of values: nothing that a client sends becomes a series.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

pub use super::audits::{AuditMetrics, EventMetrics, ReportWrites};
use super::tasks::TaskMetrics;

/// From well below what a judgement takes to the longest timeout a webhook is usually given.
const BUCKETS: [f64; 17] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// A review that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the names are the labels")]
pub struct Answered {
    pub endpoint: &'static str,
    pub kind: &'static str,
    pub operation: &'static str,
    pub decision: &'static str,
    pub dry_run: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Found {
    pub(super) rule: &'static str,
    pub(super) action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusWritten {
    class: &'static str,
    manager: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct At {
    endpoint: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Result {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Certificate {
    certificate: &'static str,
}

/// Whether something new was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// It was.
    Taken,
    /// It is broken; the last good one stays.
    Refused,
}

impl Reload {
    fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
        }
    }
}

/// What became of NADs that were stored incomplete.
#[derive(Clone, Debug, Default)]
pub struct Completions(Family<Result, Counter>);

impl Completions {
    /// One more.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create(&Result { result }).inc();
    }
}

/// Whether nadmit is registered, and what lies beside that. A server that does not register itself shows none of it.
#[derive(Clone, Debug, Default)]
pub struct Registered {
    is_registered: LateGauge,
    configurations: Family<Kind, Gauge>,
    exempt_namespaces: LateGauge,
}

impl Registered {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "registered",
            "1 while both webhook configurations are as they should be, 0 while they are not or nobody can tell",
            self.is_registered.clone(),
        );
        registry.register(
            "webhook_configurations",
            "1 while a webhook configuration is there, 0 after somebody has deleted it",
            self.configurations.clone(),
        );
        registry.register(
            "exempt_namespaces",
            "Namespaces that the label nadmit.io/exempt=true switches nadmit off for",
            self.exempt_namespaces.clone(),
        );
    }

    /// Whether it is now.
    pub fn is(&self, registered: bool) {
        self.is_registered.set(registered.into());
    }

    /// Whether a webhook configuration is there.
    pub fn configuration(&self, kind: &'static str, is_there: bool) {
        self.configurations.get_or_create(&Kind { kind }).set(is_there.into());
    }

    /// How many namespaces are exempt by their label.
    pub fn exempt_namespaces(&self, count: usize) {
        self.exempt_namespaces.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// A gauge that is not shown before it is set.
#[derive(Clone, Debug, Default)]
struct LateGauge(Arc<OnceLock<Gauge>>);

impl LateGauge {
    fn set(&self, value: i64) {
        self.0.get_or_init(Gauge::default).set(value);
    }
}

impl EncodeMetric for LateGauge {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.get().map_or(Ok(()), |gauge| gauge.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}

/// What a cache knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Nothing.
    Unknown,
    /// All objects there are, which is that many.
    Known(usize),
}

/// The metrics of the caches, for those who fill them.
#[derive(Clone, Debug, Default)]
pub struct CacheMetrics {
    ready: Family<Kind, Gauge>,
    objects: Family<Kind, Gauge>,
    skipped: Family<Kind, Counter>,
    missed: Family<Kind, Counter>,
}

impl CacheMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "cache_ready",
            "1 while the objects of a kind are known, 0 while facts about them are unknown",
            self.ready.clone(),
        );
        registry.register("cache_objects", "Objects that are known", self.objects.clone());
        registry.register("cache_skipped", "Objects that could not be read and are left out", self.skipped.clone());
        registry.register(
            "cache_missed",
            "Reviews that were judged without what the cache of a kind should have known",
            self.missed.clone(),
        );
    }

    /// What the cache of a kind knows now.
    pub fn is(&self, kind: &'static str, state: CacheState) {
        let (ready, objects) = match state {
            CacheState::Unknown => (0, 0),
            CacheState::Known(objects) => (1, i64::try_from(objects).unwrap_or(i64::MAX)),
        };
        self.ready.get_or_create(&Kind { kind }).set(ready);
        self.objects.get_or_create(&Kind { kind }).set(objects);
    }

    /// An object of a kind could not be read.
    pub fn skipped(&self, kind: &'static str) {
        self.skipped.get_or_create(&Kind { kind }).inc();
    }

    /// A review was judged without what the cache of a kind should have known.
    pub fn missed(&self, kind: &'static str) {
        self.missed.get_or_create(&Kind { kind }).inc();
    }
}

/// One more, until this is dropped: whatever ends a request or a connection, it is counted down.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    /// Counts up.
    pub fn one(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// All metrics of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<Answered, Counter>,
    findings: Family<Found, Counter>,
    status_writes: Family<StatusWritten, Counter>,
    duration: Family<At, Histogram, fn() -> Histogram>,
    /// Reviews that are being answered.
    pub in_flight: Gauge,
    /// Requests whose body has not arrived completely.
    pub unfinished: Gauge,
    panics: Family<At, Counter>,
    /// Open connections, those still shaking hands included.
    pub connections: Gauge,
    unanswered: Family<Reason, Counter>,
    refused: Family<Reason, Counter>,
    expiry: Family<Certificate, Gauge<f64, AtomicU64>>,
    certificate_reloads: Family<Result, Counter>,
    policy_reloads: Family<Result, Counter>,
    /// 1 while the policy in force is the one in the file.
    policy_current: Gauge,
    /// NADs that were stored incomplete.
    pub completions: Completions,
    /// Whether nadmit is registered.
    pub registered: Registered,
    /// Which background tasks run.
    pub tasks: TaskMetrics,
    /// What is known of the cluster.
    pub caches: CacheMetrics,
    /// What is found in it.
    pub audit: AuditMetrics,
    /// What the API server's audit events tell.
    pub audit_events: EventMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("nadmit");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Which nadmit this is", build);
        let mut metrics = Self {
            registry,
            reviews: Family::default(),
            findings: Family::default(),
            status_writes: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            in_flight: Gauge::default(),
            unfinished: Gauge::default(),
            panics: Family::default(),
            connections: Gauge::default(),
            unanswered: Family::default(),
            refused: Family::default(),
            expiry: Family::default(),
            certificate_reloads: Family::default(),
            policy_reloads: Family::default(),
            policy_current: Gauge::default(),
            completions: Completions::default(),
            registered: Registered::default(),
            tasks: TaskMetrics::default(),
            caches: CacheMetrics::default(),
            audit: AuditMetrics::default(),
            audit_events: EventMetrics::default(),
        };
        metrics.policy_current.set(1);
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("reviews", "Reviews that were answered", self.reviews.clone());
        registry.register("findings", "Findings, by what is done about them", self.findings.clone());
        registry.register(
            "status_writes",
            "Writes to guarded statuses, by what they show and what kind of field manager makes them",
            self.status_writes.clone(),
        );
        registry.register_with_unit(
            "review_duration",
            "From the last byte of a review to its answer",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register("reviews_in_flight", "Reviews that are being answered", self.in_flight.clone());
        registry.register(
            "requests_unfinished",
            "Requests whose body has not arrived completely",
            self.unfinished.clone(),
        );
        registry.register(
            "review_panics",
            "Reviews that made nadmit panic, which denies what it could not judge",
            self.panics.clone(),
        );
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "reviews_unanswered",
            "Reviews that got an HTTP error instead of an answer, so that failurePolicy decides",
            self.unanswered.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections that ended before they could ask anything",
            self.refused.clone(),
        );
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "When a certificate expires, in seconds since 1970",
            self.expiry.clone(),
        );
        registry.register(
            "certificate_reloads",
            "Changes of the certificate, and whether the new one is used",
            self.certificate_reloads.clone(),
        );
        registry.register(
            "policy_reloads",
            "Changes of the policy file, and whether the new policy is in force",
            self.policy_reloads.clone(),
        );
        registry.register(
            "policy_current",
            "1 while the policy in force is the one in the file, 0 while the file is refused",
            self.policy_current.clone(),
        );
        registry.register(
            "completions",
            "NADs that were stored incomplete, by what became of them",
            self.completions.0.clone(),
        );
        self.registered.register(registry);
        self.tasks.register(registry);
        self.caches.register(registry);
        self.audit.register(registry);
        self.audit_events.register(registry);
    }

    /// A review was answered, after so many seconds.
    pub fn answered(&self, review: &Answered, seconds: f64) {
        self.duration.get_or_create(&At { endpoint: review.endpoint }).observe(seconds);
        self.reviews.get_or_create(review).inc();
    }

    /// A rule found something.
    pub fn found(&self, rule: &'static str, action: &'static str) {
        self.findings.get_or_create(&Found { rule, action }).inc();
    }

    /// A write to a status was judged.
    pub fn status_written(&self, class: &'static str, manager: &'static str) {
        self.status_writes.get_or_create(&StatusWritten { class, manager }).inc();
    }

    /// A review got an HTTP error.
    pub fn unanswered(&self, reason: &'static str) {
        self.unanswered.get_or_create(&Reason { reason }).inc();
    }

    /// Judging a review panicked.
    pub fn panicked(&self, endpoint: &'static str) {
        self.panics.get_or_create(&At { endpoint }).inc();
    }

    /// A connection ended before it could ask.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Reason { reason }).inc();
    }

    /// When a certificate expires.
    pub fn expires(&self, certificate: &'static str, timestamp: i64) {
        self.expiry.get_or_create(&Certificate { certificate }).set(timestamp as f64);
    }

    /// The certificate files changed.
    pub fn certificate_reloaded(&self, reload: Reload) {
        self.certificate_reloads.get_or_create(&Result { result: reload.name() }).inc();
    }

    /// The policy file changed.
    pub fn policy_reloaded(&self, reload: Reload) {
        self.policy_reloads.get_or_create(&Result { result: reload.name() }).inc();
        self.policy_current.set(i64::from(reload == Reload::Taken));
    }

    /// All of them, as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_who_audits_shows_what_is_found() {
        let metrics = Metrics::default();
        let shown = || {
            let text = metrics.text();
            let lines = text.lines().filter(|line| line.starts_with("nadmit_audit_"));
            lines.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        assert!(shown().is_empty(), "{:?}", shown());
        metrics.audit.found([(("a", "warn"), 2), (("b", "deny"), 1)]);
        metrics.audit.scanned(1_700_000_000.0, 0.5);
        metrics.audit.found([(("a", "warn"), 3)]);
        let want = [
            "nadmit_audit_findings{rule=\"a\",action=\"warn\"} 3",
            "nadmit_audit_last_scan_timestamp_seconds 1700000000.0",
            "nadmit_audit_scan_duration_seconds 0.5",
        ];
        assert_eq!(shown(), want.map(str::to_owned).into());
        metrics.audit.clear();
        assert!(shown().is_empty(), "{:?}", shown());
    }
}
