//! Metrics of the policy: which one is in force, and whether the last change was rejected.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::metrics::{Reload, ResultLabels};

/// The hash of the policy in force: one series, and none before there is a policy.
#[derive(Clone, Debug, Default)]
struct PolicyHash(Arc<RwLock<Option<String>>>);

impl PolicyHash {
    fn now(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EncodeMetric for PolicyHash {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.now().map_or(Ok(()), |hash| encoder.encode_info(&[("hash", hash.as_str())]))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Info
    }

    fn is_empty(&self) -> bool {
        self.now().is_none()
    }
}

/// The metrics of the policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyMetrics {
    reloads: Family<ResultLabels, Counter>,
    /// 1 while the policy in force is the configured one.
    current: Gauge,
    hash: PolicyHash,
    applied: Gauge<f64, AtomicU64>,
}

impl PolicyMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("policy_reloads", "Policy reloads, by result", self.reloads.clone());
        registry.register(
            "policy_current",
            "1 while the policy in force is the configured one, 0 while that is missing or rejected",
            self.current.clone(),
        );
        registry.register("policy", "The policy in force, by the hash of its text", self.hash.clone());
        registry.register(
            "policy_applied_timestamp_seconds",
            "Unix time at which the policy in force was applied",
            self.applied.clone(),
        );
    }

    /// A policy is in force, the first one or a changed one.
    pub fn applied(&self, hash: &str) {
        *self.hash.0.write().unwrap_or_else(PoisonError::into_inner) = Some(hash.to_owned());
        self.current.set(1);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.applied.set(since.as_secs_f64());
    }

    /// The configured policy changed.
    pub fn reloaded(&self, reload: Reload) {
        self.reloads.get_or_create(&ResultLabels { result: reload.name() }).inc();
        if reload == Reload::Refused {
            self.current.set(0);
        }
    }

    /// The hash of the policy in force; `None` before there is one.
    pub fn hash(&self) -> Option<String> {
        self.hash.now()
    }

    /// Whether the policy in force is the configured one.
    pub fn is_current(&self) -> bool {
        self.current.get() == 1
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::Metrics;
    use crate::telemetry::metrics::Reload;

    #[test]
    fn one_hash_is_shown() {
        let metrics = Metrics::default();
        let shown = || {
            let text = metrics.text();
            let lines = text.lines().filter(|line| line.starts_with("nadmit_policy_"));
            let lines = lines.filter(|line| !line.contains("timestamp") && !line.contains("reloads"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(shown(), ["nadmit_policy_current 0"]);
        metrics.policy.applied("aaa");
        assert_eq!(shown(), ["nadmit_policy_current 1", "nadmit_policy_info{hash=\"aaa\"} 1"]);
        metrics.policy.reloaded(Reload::Refused);
        assert_eq!(shown(), ["nadmit_policy_current 0", "nadmit_policy_info{hash=\"aaa\"} 1"]);
        metrics.policy.reloaded(Reload::Taken);
        metrics.policy.applied("bbb");
        assert_eq!(shown(), ["nadmit_policy_current 1", "nadmit_policy_info{hash=\"bbb\"} 1"]);
    }
}
