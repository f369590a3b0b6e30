//! Gauges with a behaviour of their own.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::Gauge;

/// A gauge that is not shown before it is set.
#[derive(Clone, Debug, Default)]
pub(super) struct LateGauge(Arc<OnceLock<Gauge>>);

impl LateGauge {
    pub(super) fn set(&self, value: i64) {
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

/// Increments a gauge until dropped, however a request or connection ends.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    /// Counts up.
    pub fn one(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
