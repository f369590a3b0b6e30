//! Metrics of the background tasks.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// Which background tasks run, and how often one panicked.
#[derive(Clone, Debug, Default)]
pub struct TaskMetrics {
    up: Family<TaskLabels, Gauge>,
    panics: Family<TaskLabels, Counter>,
}

impl TaskMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "task_up",
            "1 while a background task runs, 0 from its unexpected end until it has run steadily again",
            self.up.clone(),
        );
        registry.register(
            "task_panics",
            "Panics in background tasks; an object that causes one is skipped",
            self.panics.clone(),
        );
    }

    /// Whether a task runs now.
    pub fn set_up(&self, task: &'static str, is_up: bool) {
        self.up.get_or_create(&TaskLabels { task }).set(is_up.into());
        // The series must exist before the first panic: `increase()` needs two samples.
        drop(self.panics.get_or_create(&TaskLabels { task }));
    }

    /// A task panicked, as a whole or because of one object.
    pub fn panicked(&self, task: &'static str) {
        self.panics.get_or_create(&TaskLabels { task }).inc();
    }
}
