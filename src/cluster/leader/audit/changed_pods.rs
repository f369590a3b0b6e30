//! Pods that changed, and pods whose NAD changed, between two full scans. NADs and networks come first: pods come and go all the time.

use std::sync::Arc;

use tracing::warn;

use super::LeaderAudit;
use crate::cluster::client::{ApiError, ApiPath, ApiResource};
use crate::cluster::leader::pods::{PodAudit, pod_place};
use crate::resources::ObjectKey;

/// How many pods wait for their audit at most.
const MAX_DUE: usize = 500;
/// How many of them are audited one after the other.
const AT_ONCE: usize = 10;

impl LeaderAudit<'_> {
    /// Schedules the audit of the pods that use a NAD.
    pub(super) fn schedule_users_of(&mut self, nad: &ObjectKey) {
        self.schedule_pods(self.auditor.cached.caches.pods_using(nad, MAX_DUE));
    }

    /// Schedules the audit of pods, as far as the queue has capacity: the others wait for the next full scan.
    pub(super) fn schedule_pods(&mut self, pods: impl IntoIterator<Item = ObjectKey>) {
        if self.policy.pods.is_on() {
            for pod in pods {
                if self.due_pods.len() >= MAX_DUE {
                    return;
                }
                self.due_pods.insert(pod);
            }
        }
    }

    /// Audits some of the scheduled pods.
    pub(super) async fn audit_pods(&mut self) {
        for pod in (0..AT_ONCE).map_while(|_| self.due_pods.pop_first()).collect::<Vec<_>>() {
            if let Err(failed) = self.audit_pod(&pod).await {
                warn!(namespace = pod.namespace(), name = pod.name(), error = %failed, "failed to audit pod");
            }
            self.show();
        }
    }

    /// Audits one pod, read live.
    async fn audit_pod(&mut self, key: &ObjectKey) -> Result<(), ApiError> {
        let caches = Arc::clone(&self.auditor.cached.caches);
        let path = ApiPath::object(ApiResource::PODS, key)?;
        let pod = self.auditor.cached.cluster.get(&path).await?;
        let (context, policy) = (Arc::clone(&self.context), Arc::clone(&self.policy));
        let place = pod_place(key);
        self.index.leave(&place);
        if let Some(text) = pod {
            PodAudit { context: &context, policy: &policy, lookup: &*caches }.one(&text, self).await;
        }
        for uid in self.index.left(&place) {
            self.reporter.forget(&uid);
        }
        Ok(())
    }
}
