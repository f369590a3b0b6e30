//! Metrics for Prometheus. Every label has a closed set of values: nothing that a client sends becomes a series.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

pub use super::audits::{AuditMetrics, EventMetrics, ReportWrites};
use super::policy::PolicyMetrics;
use super::registration::Registered;
use super::tasks::TaskMetrics;

/// From well below the time of a review to the usual webhook timeout.
const BUCKETS: [f64; 17] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// A review that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the names are the labels")]
pub struct ReviewLabels {
    pub endpoint: &'static str,
    pub kind: &'static str,
    pub operation: &'static str,
    pub decision: &'static str,
    pub dry_run: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FindingLabels {
    pub(super) rule: &'static str,
    pub(super) action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusWriteLabels {
    class: &'static str,
    manager: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    certificate: &'static str,
}

/// The result of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// It was.
    Taken,
    /// Rejected; the last good one stays.
    Refused,
}

impl Reload {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
        }
    }
}

/// Completions by result.
#[derive(Clone, Debug, Default)]
pub struct Completions(Family<ResultLabels, Counter>);

impl Completions {
    /// One more.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create(&ResultLabels { result }).inc();
    }
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSize {
    /// Nothing.
    Unknown,
    /// The number of objects.
    Known(usize),
}

/// The metrics of the caches, for those who fill them.
#[derive(Clone, Debug, Default)]
pub struct CacheMetrics {
    ready: Family<KindLabels, Gauge>,
    objects: Family<KindLabels, Gauge>,
    skipped: Family<KindLabels, Counter>,
    missed: Family<KindLabels, Counter>,
}

impl CacheMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "cache_ready",
            "1 while the cache of a kind is synced, 0 while it is unknown",
            self.ready.clone(),
        );
        registry.register("cache_objects", "Objects in the cache", self.objects.clone());
        registry.register("cache_skipped", "Objects that could not be read and were skipped", self.skipped.clone());
        registry.register("cache_missed", "Reviews judged without the cache of a kind", self.missed.clone());
    }

    /// Sets the size of a cache.
    pub fn set_size(&self, kind: &'static str, state: CacheSize) {
        let (ready, objects) = match state {
            CacheSize::Unknown => (0, 0),
            CacheSize::Known(objects) => (1, i64::try_from(objects).unwrap_or(i64::MAX)),
        };
        self.ready.get_or_create(&KindLabels { kind }).set(ready);
        self.objects.get_or_create(&KindLabels { kind }).set(objects);
    }

    /// A kind is not watched any more.
    pub fn remove(&self, kind: &'static str) {
        self.ready.remove(&KindLabels { kind });
        self.objects.remove(&KindLabels { kind });
    }

    /// An object of a kind could not be read.
    pub fn skipped(&self, kind: &'static str) {
        self.skipped.get_or_create(&KindLabels { kind }).inc();
    }

    /// A review was judged without what the cache of a kind should have known.
    pub fn missed(&self, kind: &'static str) {
        self.missed.get_or_create(&KindLabels { kind }).inc();
    }
}

/// All metrics of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<ReviewLabels, Counter>,
    findings: Family<FindingLabels, Counter>,
    status_writes: Family<StatusWriteLabels, Counter>,
    duration: Family<EndpointLabels, Histogram, fn() -> Histogram>,
    /// Reviews that are being answered.
    pub in_flight: Gauge,
    /// Requests whose body has not arrived completely.
    pub unfinished: Gauge,
    panics: Family<EndpointLabels, Counter>,
    /// Open connections, including handshakes.
    pub connections: Gauge,
    unanswered: Family<ReasonLabels, Counter>,
    refused: Family<ReasonLabels, Counter>,
    expiry: Family<CertificateLabels, Gauge<f64, AtomicU64>>,
    certificate_reloads: Family<ResultLabels, Counter>,
    /// Which policy is in force.
    pub policy: PolicyMetrics,
    /// NADs that were stored incomplete.
    pub completions: Completions,
    /// Whether nadmit is registered.
    pub registered: Registered,
    /// Which background tasks run.
    pub tasks: TaskMetrics,
    /// Metrics of the caches.
    pub caches: CacheMetrics,
    /// Metrics of the audit.
    pub audit: AuditMetrics,
    /// Metrics of audit events.
    pub audit_events: EventMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("nadmit");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Build information", build);
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
            policy: PolicyMetrics::default(),
            completions: Completions::default(),
            registered: Registered::default(),
            tasks: TaskMetrics::default(),
            caches: CacheMetrics::default(),
            audit: AuditMetrics::default(),
            audit_events: EventMetrics::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("reviews", "Answered reviews", self.reviews.clone());
        registry.register("findings", "Findings, by rule and action", self.findings.clone());
        registry.register(
            "status_writes",
            "Writes to guarded statuses, by class and kind of field manager",
            self.status_writes.clone(),
        );
        registry.register_with_unit(
            "review_duration",
            "Time from the last byte of a review to its response",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register("reviews_in_flight", "Reviews in progress", self.in_flight.clone());
        registry.register("requests_unfinished", "Requests with an incomplete body", self.unfinished.clone());
        registry.register("review_panics", "Reviews whose judging panicked", self.panics.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "reviews_unanswered",
            "Failed reviews (HTTP error), for which failurePolicy decides",
            self.unanswered.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections that were rejected or ended before a request",
            self.refused.clone(),
        );
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "Unix time at which a certificate expires",
            self.expiry.clone(),
        );
        registry.register("certificate_reloads", "Certificate reloads, by result", self.certificate_reloads.clone());
        self.policy.register(registry);
        registry.register("completions", "Completions of stored objects, by result", self.completions.0.clone());
        self.registered.register(registry);
        self.tasks.register(registry);
        self.caches.register(registry);
        self.audit.register(registry);
        self.audit_events.register(registry);
    }

    /// A review was answered, after so many seconds.
    pub fn answered(&self, review: &ReviewLabels, seconds: f64) {
        self.duration.get_or_create(&EndpointLabels { endpoint: review.endpoint }).observe(seconds);
        self.reviews.get_or_create(review).inc();
    }

    /// A rule found something.
    pub fn found(&self, rule: &'static str, action: &'static str) {
        self.findings.get_or_create(&FindingLabels { rule, action }).inc();
    }

    /// A write to a status was judged.
    pub fn status_written(&self, class: &'static str, manager: &'static str) {
        self.status_writes.get_or_create(&StatusWriteLabels { class, manager }).inc();
    }

    /// A review got an HTTP error.
    pub fn unanswered(&self, reason: &'static str) {
        self.unanswered.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Judging a review panicked.
    pub fn panicked(&self, endpoint: &'static str) {
        self.panics.get_or_create(&EndpointLabels { endpoint }).inc();
    }

    /// A connection ended before it could ask.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// When a certificate expires.
    pub fn expires(&self, certificate: &'static str, timestamp: i64) {
        self.expiry.get_or_create(&CertificateLabels { certificate }).set(timestamp as f64);
    }

    /// The certificate files changed.
    pub fn certificate_reloaded(&self, reload: Reload) {
        self.certificate_reloads.get_or_create(&ResultLabels { result: reload.name() }).inc();
    }

    /// All metrics in Prometheus text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests;
