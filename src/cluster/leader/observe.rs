//! Observes a cluster for a while to find write loops (`nadmit audit --observe`).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::cache::Caches;
use crate::cluster::client::Cluster;
use crate::cluster::leader::changes::ChangeTracker;
use crate::output::RewrittenObject;
use crate::policy::Rewrites;
use crate::resources::ObjectKey;
use crate::supervise::Supervisor;
use crate::telemetry::metrics::CacheMetrics;

/// The timeout of the initial lists, before the observation starts.
const FIRST_LISTS: Duration = Duration::from_secs(30);
/// The interval of progress updates.
const STEP: Duration = Duration::from_secs(1);

/// The result of an observation.
pub struct Observation(Arc<ChangeTracker>);

impl Cluster {
    /// Observes for that long; `passed` is called with each elapsed step.
    pub async fn observe(&self, time: Duration, mut passed: impl FnMut(Duration) + Send) -> Observation {
        let caches = Caches::start(self, &CacheMetrics::default(), &Supervisor::default());
        caches.listed(FIRST_LISTS).await;
        let changes = Arc::new(ChangeTracker::within(time));
        caches.set_observer(Some(Arc::clone(&changes) as _));
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP);
            sleep(step).await;
            left -= step;
            passed(step);
        }
        caches.set_observer(None);
        changes.stop();
        Observation(changes)
    }
}

impl Observation {
    /// How often an object was written.
    pub fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        self.0.rewrites(kind, key)
    }

    /// The write times of objects that were written repeatedly.
    pub fn rewritten_objects(&self) -> Vec<RewrittenObject> {
        self.0.rewritten_objects()
    }
}
