//! A cluster is watched for a while, to see what is written in it again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::changes::Changes;
use super::{Caches, Cluster};
use crate::output::Rewritten;
use crate::policy::Rewrites;
use crate::supervise::Supervisor;
use crate::telemetry::metrics::CacheMetrics;

/// How long the first lists may take before the time begins to count.
const FIRST_LISTS: Duration = Duration::from_secs(30);
/// How often somebody who waits is told that time passes.
const STEP: Duration = Duration::from_secs(1);

/// What was seen.
pub struct Observed(Arc<Changes>);

impl Cluster {
    /// Watches for that long. `passed` is told of each second, or less at the end.
    pub async fn observe(&self, time: Duration, mut passed: impl FnMut(Duration) + Send) -> Observed {
        let caches = Caches::start(self, &CacheMetrics::default(), &Supervisor::default());
        caches.listed(FIRST_LISTS).await;
        let changes = Arc::new(Changes::within(time));
        caches.let_see(Some(Arc::clone(&changes) as _));
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP);
            sleep(step).await;
            left -= step;
            passed(step);
        }
        caches.let_see(None);
        changes.stop();
        Observed(changes)
    }
}

impl Observed {
    /// How often an object was written.
    pub fn rewrites(&self, kind: &str, namespace: &str, name: &str) -> Option<Rewrites> {
        self.0.rewrites(kind, namespace, name)
    }

    /// When each object was written, of those that were written a few times.
    pub fn rewritten(&self) -> Vec<Rewritten> {
        self.0.rewritten()
    }
}
