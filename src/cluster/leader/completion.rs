//! Completes NADs that were stored while nadmit was unavailable. The operator sees no difference in such a NAD and would leave it
//! incomplete indefinitely; a network that the operator is stuck on gets no further write by itself. Both are written once more,
//! as admission would have stored them, with the resourceVersion that was read. The audit finds them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::cluster::cache::CachedCluster;
use crate::cluster::cache::facts::{FactSource, judge_with_facts};
use crate::cluster::client::{ApiError, ApiPath, Cluster, WriteResult, object};
use crate::cluster::identity::lease::Claim;
use crate::deploy::{EXCLUDED_NAMESPACE, EXEMPT};
use crate::policy::{MissingFact, Policy, Subject, Verdict};
use crate::resources::Object;
use crate::supervise::{Panicked, Supervisor, contained_async};
use crate::telemetry::metrics::Completions;

/// The interval between two writes: they are not urgent, and each triggers a reconcile of the operator.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// How long incomplete objects are collected before a round: a scan finds many of them.
const COLLECT: Duration = Duration::from_secs(1);
/// How long the operator has to act by itself after a namespace is created.
const OPERATOR_GRACE: Duration = Duration::from_secs(1);
/// The retry interval after an API error.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout for reading the owning network.
const OWNER_TIMEOUT: Duration = Duration::from_secs(5);
/// A NAD with this finding is tried too: the audit may not know the prefix of its name, but a live read of its network may.
const NAME_MISSING: &str = "nad/resource-name-missing";

/// The objects that admission would complete, as the audit found them.
#[derive(Debug, Default)]
pub struct IncompleteObjects {
    paths: Mutex<BTreeSet<ApiPath>>,
    added: Notify,
}

impl IncompleteObjects {
    /// Records what the audit found about an object.
    pub(in crate::cluster) fn record(&self, object: &Object<'_>, verdict: &Verdict) {
        let is_unsure = matches!(verdict.missing_fact, Some(MissingFact::Owner { .. } | MissingFact::LastNad { .. }))
            || verdict.findings.iter().any(|finding| finding.rule.id == NAME_MISSING);
        self.set(object, verdict.is_incomplete || is_unsure);
    }

    /// Adds an object, or removes it.
    pub fn set(&self, object: &Object<'_>, is_incomplete: bool) {
        let path = match object {
            Object::Nad(nad) => ApiPath::nad(&nad.meta.key()),
            Object::Network(network) => ApiPath::network(&network.id()),
            // Nothing in a claim, a node policy or a pod is repaired.
            Object::Claim(_) | Object::NodePolicy(_) | Object::Workload(_) => return,
        };
        let Ok(path) = path else { return };
        if !is_incomplete {
            self.locked().remove(&path);
        } else if self.locked().insert(path) {
            self.added.notify_one();
        }
    }

    /// Forgets all of them.
    pub(in crate::cluster) fn clear(&self) {
        self.locked().clear();
    }

    fn take(&self) -> BTreeSet<ApiPath> {
        std::mem::take(&mut self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<ApiPath>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes stored objects.
#[derive(Clone)]
pub struct Completer {
    /// The cluster and its caches.
    pub cached: Arc<CachedCluster>,
    /// What is to be completed.
    pub incomplete: Arc<IncompleteObjects>,
    /// The source of facts about the owning network.
    pub source: Arc<dyn FactSource>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Counts the results.
    pub completions: Completions,
    /// Counts skipped objects.
    pub supervisor: Supervisor,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionRound {
    /// How many were checked.
    pub checked: usize,
    /// How many were written.
    pub completed: usize,
    /// How many could not be completed; the log says why.
    pub failed: usize,
}

impl Completer {
    /// Completes stored objects while this replica is the leader: after registration, so that the operator does not revert it.
    pub async fn run(self, mut claims: watch::Receiver<Claim>, mut registered: watch::Receiver<Option<String>>) {
        let mut namespaces = self.cached.caches.namespaces();
        loop {
            if claims.wait_for(Claim::is_held).await.is_err() || registered.wait_for(Option::is_some).await.is_err() {
                return;
            }
            if !self.incomplete.locked().is_empty() {
                sleep(COLLECT).await;
                self.complete_round(|| claims.borrow().is_held()).await;
                continue;
            }
            let created = tokio::select! {
                () = self.incomplete.added.notified() => None,
                created = namespaces.recv() => Some(created),
                _ = claims.wait_for(|claim| !claim.is_held()) => None,
            };
            match created {
                Some(Ok(namespace)) => self.release_waiting(&namespace).await,
                Some(Err(RecvError::Closed)) => return,
                // If some were missed, the audit finds the networks that wait.
                Some(Err(RecvError::Lagged(_))) | None => {}
            }
        }
    }

    /// Checks networks as soon as the namespace they wait for is created: if a network moved before its namespace existed, the
    /// operator keeps failing on the old NAD, and nothing else writes the network.
    async fn release_waiting(&self, namespace: &str) {
        if self.cached.caches.moving_to(namespace).is_empty() {
            return;
        }
        sleep(OPERATOR_GRACE).await;
        for network in self.cached.caches.moving_to(namespace) {
            if let Ok(path) = ApiPath::network(&network)
                && !self.policy.load().leave_incomplete
            {
                self.complete_one(&path, &mut CompletionRound::default()).await;
            }
        }
    }

    /// Completes what is incomplete, only while the mutating webhook is registered: without it the operator would revert each
    /// completion.
    async fn complete_round(&self, may_write: impl Fn() -> bool) {
        let problem = match self.cached.cluster.is_registered().await {
            Ok(true) => {
                let CompletionRound { checked, completed, failed } = self.complete_all(may_write).await;
                info!(checked, completed, failed, "checked objects stored without nadmit");
                return;
            }
            Ok(false) => "the mutating webhook configuration is missing or empty".to_owned(),
            Err(failed) => failed.to_string(),
        };
        warn!(error = problem, "failed to complete objects stored without nadmit, retrying");
        sleep(RETRY_INTERVAL).await;
    }

    /// Completes all objects that are incomplete. Ends early when it may no longer write.
    pub async fn complete_all(&self, may_write: impl Fn() -> bool) -> CompletionRound {
        let mut round = CompletionRound::default();
        for path in self.incomplete.take() {
            if self.policy.load().leave_incomplete || !may_write() {
                break;
            }
            round.checked += 1;
            self.complete_one(&path, &mut round).await;
        }
        round
    }

    async fn complete_one(&self, path: &ApiPath, round: &mut CompletionRound) {
        let policy = self.policy.load_full();
        let completing = CompletionContext { source: &*self.source, cluster: &self.cached.cluster, policy: &policy };
        let completed = contained_async(completing.complete(path, |_| true)).await;
        match completed.unwrap_or_else(|panicked| {
            self.supervisor.skipped("completion");
            Err(panicked.into())
        }) {
            Ok(None) => {}
            Ok(Some(WriteResult::Stored(_))) => {
                round.completed += 1;
                self.completions.count("completed");
                info!(%path, "completed an object stored without nadmit");
                sleep(WRITE_INTERVAL).await;
            }
            // Somebody else wrote the object, and admission completed that write.
            Ok(Some(WriteResult::Changed)) => self.completions.count("changed"),
            Err(error) => {
                round.failed += 1;
                self.completions.count("failed");
                warn!(%path, %error, "failed to complete an object stored without nadmit");
            }
        }
    }
}

/// The context for completing one object.
pub(in crate::cluster) struct CompletionContext<'a> {
    /// The source of facts about the owning network.
    pub(in crate::cluster) source: &'a dyn FactSource,
    /// Where it is stored.
    pub(in crate::cluster) cluster: &'a Cluster,
    /// The policy.
    pub(in crate::cluster) policy: &'a Policy,
}

impl CompletionContext<'_> {
    /// Reads an object and writes it as admission would have stored it; `None` if nothing changes, or if it is deleted or not
    /// wanted.
    pub(in crate::cluster) async fn complete(
        &self,
        path: &ApiPath,
        is_wanted: impl FnOnce(&Object<'_>) -> bool,
    ) -> Result<Option<WriteResult>, CompletionError> {
        let Some(text) = self.cluster.get(path).await? else { return Ok(None) };
        // Objects that cannot be parsed are left unchanged.
        let Ok(Some(stored)) = Object::read(&text) else { return Ok(None) };
        if !is_wanted(&stored) {
            return Ok(None);
        }
        let subject = Subject { object: &stored, old: None, writer: None, is_final: false };
        let verdict = judge_with_facts(self.source, &subject, None, self.policy, OWNER_TIMEOUT).await;
        let verdict = verdict.map_err(|unavailable| CompletionError::Unknown(unavailable.to_string()))?;
        if verdict.patch.is_empty() || self.is_excluded(&stored.meta().namespace).await? {
            return Ok(None);
        }
        let mut completed = object(&text)?;
        json_patch::patch(&mut completed, &verdict.patch)?;
        Ok(Some(self.cluster.replace(path, &completed).await?))
    }

    /// Whether a namespace is excluded from admission, and therefore from completion.
    async fn is_excluded(&self, namespace: &str) -> Result<bool, ApiError> {
        if namespace == EXCLUDED_NAMESPACE {
            return Ok(true);
        }
        let Ok(path) = ApiPath::namespace(namespace) else { return Ok(true) };
        let found = self.cluster.read(&path).await?;
        let labels = found.as_ref().and_then(|found| found.pointer("/metadata/labels"));
        Ok(labels.and_then(|labels| labels.get(EXEMPT)).and_then(Value::as_str) == Some("true"))
    }
}

/// Why an object stays incomplete.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// The owning network cannot be read.
    #[error("{0}")]
    Unknown(String),
    /// The API request failed.
    #[error(transparent)]
    Failed(#[from] ApiError),
    /// The patch does not apply.
    #[error("the patch does not apply: {0}")]
    Patch(#[from] json_patch::PatchError),
    /// The object cannot be judged.
    #[error("judging it {0}")]
    Panicked(#[from] Panicked),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Facts, StoredState, judge};

    /// The findings of the audit about a NAD.
    fn record(incomplete: &IncompleteObjects, config: &str, policy: &str) {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps" }, "spec": { "config": config },
        })
        .to_string();
        let object = Object::read(&json).unwrap().unwrap();
        let facts = Facts { knows_networks: true, stored: Some(Box::new(StoredState::default())), ..Facts::default() };
        let policy = Policy::parse(policy).unwrap();
        incomplete.record(&object, &judge(&Subject::manifest(&object), &facts, &policy));
    }

    #[test]
    fn nads_with_incomplete_findings_are_completed() {
        let without_annotation = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#;
        let without_name = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;
        for (config, policy, want) in [
            (without_annotation, "{}", true),
            // The configured action makes no difference.
            (without_annotation, "rules: {audit/nad-incomplete: off}", true),
            (without_name, "{}", true),
            (r#"{"cniVersion":"1.0.0","type":"macvlan"}"#, "{}", false),
        ] {
            let incomplete = IncompleteObjects::default();
            record(&incomplete, config, policy);
            let paths: Vec<_> = incomplete.locked().iter().map(ToString::to_string).collect();
            let nad = "/apis/k8s.cni.cncf.io/v1/namespaces/apps/network-attachment-definitions/net".to_owned();
            assert_eq!(paths, if want { vec![nad] } else { Vec::new() }, "{config} {policy}");
            // The next audit may find it complete.
            record(&incomplete, r#"{"cniVersion":"1.0.0","type":"macvlan"}"#, "{}");
            assert!(incomplete.take().is_empty());
        }
    }
}
