//! Completes NADs that were stored while nadmit was unavailable. The operator sees no difference in such a NAD and would leave it
//! incomplete indefinitely; a network that the operator is stuck on gets no further write by itself. Both are written once more,
//! as admission would have stored them, with the resourceVersion that was read.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use crate::cluster::cache::CachedCluster;
use crate::cluster::cache::facts::{FactSource, judge_with_facts};
use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult, object};
use crate::cluster::identity::lease::Claim;
use crate::deploy::{EXCLUDED_NAMESPACE, EXEMPT};
use crate::policy::{Policy, Subject};
use crate::resources::{NetworkId, NetworkKind, Object};
use crate::supervise::{Panicked, Supervisor, contained_async};
use crate::telemetry::metrics::Completions;

/// The interval between two writes: they are not urgent, and each triggers a reconcile of the operator.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// The interval between two scans.
const RESCAN_INTERVAL: Duration = Duration::from_secs(600);
/// How long the operator has to act by itself after a namespace is created.
const OPERATOR_GRACE: Duration = Duration::from_secs(1);
/// The retry interval after an API error.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout for reading the owning network.
const OWNER_TIMEOUT: Duration = Duration::from_secs(5);

/// Completes stored objects.
#[derive(Clone)]
pub struct Completer {
    /// The cluster and its caches.
    pub cached: Arc<CachedCluster>,
    /// The source of facts about the owning network.
    pub source: Arc<dyn FactSource>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Counts the results.
    pub completions: Completions,
    /// Counts skipped objects.
    pub supervisor: Supervisor,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionScan {
    /// How many there are.
    pub seen: usize,
    /// How many were written.
    pub completed: usize,
    /// How many could not be completed; the log says why.
    pub failed: usize,
}

impl Completer {
    /// Completes stored objects while this replica is the leader: after registration, so that the operator does not revert it,
    /// and then at intervals.
    pub async fn run(self, mut claims: watch::Receiver<Claim>, mut registered: watch::Receiver<Option<String>>) {
        loop {
            if claims.wait_for(Claim::is_held).await.is_err() || registered.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let mut namespaces = self.cached.caches.namespaces();
            let pause = match self.scan_guarded(|| claims.borrow().is_held()).await {
                Ok(CompletionScan { seen, completed, failed }) => {
                    info!(seen, completed, failed, "scanned for objects stored without nadmit");
                    RESCAN_INTERVAL
                }
                Err(error) => {
                    warn!(error, "failed to scan for objects stored without nadmit");
                    RETRY_INTERVAL
                }
            };
            let next = Instant::now() + pause;
            tokio::select! {
                () = self.release_waiting(&mut namespaces, next) => {}
                // CompletionScan at once after gaining leadership: nobody knows what happened in between.
                _ = claims.wait_for(|claim| !claim.is_held()) => {}
            }
        }
    }

    /// Until then, checks networks as soon as the namespace they wait for is created: if a network moved before its namespace
    /// existed, the operator keeps failing on the old NAD, and nothing else writes the network.
    async fn release_waiting(&self, namespaces: &mut Receiver<Box<str>>, until: Instant) {
        loop {
            let namespace = match timeout_at(until, namespaces.recv()).await {
                Ok(Ok(namespace)) => namespace,
                // Events were missed, or it is time anyway: run a full scan.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) | Err(_) => return,
            };
            if self.cached.caches.moving_to(&namespace).is_empty() {
                continue;
            }
            sleep(OPERATOR_GRACE).await;
            for network in self.cached.caches.moving_to(&namespace) {
                self.recheck_network(&network).await;
            }
        }
    }

    /// [`Self::scan`], only while the mutating webhook is registered: without it the operator would revert each completion.
    async fn scan_guarded(&self, may_write: impl Fn() -> bool) -> Result<CompletionScan, String> {
        match self.cached.cluster.is_registered().await {
            Ok(true) => self.scan(may_write).await,
            Ok(false) => Err("the mutating webhook configuration is missing or empty".to_owned()),
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// Scans every NAD and every network once. Ends early when it may no longer write.
    pub async fn scan(&self, may_write: impl Fn() -> bool) -> Result<CompletionScan, String> {
        let mut scan = CompletionScan::default();
        let networks = NetworkKind::ALL.map(ApiResource::network);
        for resource in [ApiResource::NADS].into_iter().chain(networks) {
            self.scan_kind(resource, &may_write, &mut scan).await.map_err(|failed| failed.to_string())?;
        }
        Ok(scan)
    }

    async fn scan_kind(
        &self,
        resource: ApiResource,
        may_write: &impl Fn() -> bool,
        scan: &mut CompletionScan,
    ) -> Result<(), ApiError> {
        let path = ApiPath::all(resource);
        let mut pages = ListPager::of(&path);
        // If the kind is not installed, there are no objects.
        while let Some(text) = pages.next(&self.cached.cluster).await? {
            let page = ListPage::read(&text)?;
            pages.after(&page);
            for (key, item) in
                page.objects.iter().filter_map(|item| Some((ApiObject::read(item)?.key, object(item).ok()?)))
            {
                if self.policy.load().leave_incomplete || !may_write() {
                    return Ok(());
                }
                scan.seen += 1;
                self.complete_one(&item, &ApiPath::object(resource, &key)?, scan).await;
            }
        }
        Ok(())
    }

    /// Checks one network, read live.
    async fn recheck_network(&self, network: &NetworkId) {
        let Ok(path) = ApiPath::network(network) else { return };
        match self.cached.cluster.read(&path).await {
            Ok(Some(stored)) if !self.policy.load().leave_incomplete => {
                self.complete_one(&stored, &path, &mut CompletionScan::default()).await;
            }
            Ok(_) => {}
            Err(error) => warn!(%network, %error, "failed to check a network whose namespace was created"),
        }
    }

    async fn complete_one(&self, stored: &Value, path: &ApiPath, scan: &mut CompletionScan) {
        let policy = self.policy.load_full();
        let completing = CompletionContext { source: &*self.source, cluster: &self.cached.cluster, policy: &policy };
        let completed = contained_async(completing.complete(stored, path)).await;
        match completed.unwrap_or_else(|panicked| {
            self.supervisor.skipped("completion");
            Err(panicked.into())
        }) {
            Ok(None) => {}
            Ok(Some(WriteResult::Stored(_))) => {
                scan.completed += 1;
                self.completions.count("completed");
                info!(%path, "completed an object stored without nadmit");
                sleep(WRITE_INTERVAL).await;
            }
            // A conflicting write went through admission.
            Ok(Some(WriteResult::Changed)) => self.completions.count("changed"),
            Err(error) => {
                scan.failed += 1;
                self.completions.count("failed");
                warn!(%path, %error, "failed to complete an object stored without nadmit");
            }
        }
    }
}

/// The context for completing one object.
pub struct CompletionContext<'a> {
    /// The source of facts about the owning network.
    pub source: &'a dyn FactSource,
    /// Where it is stored.
    pub cluster: &'a Cluster,
    /// The policy.
    pub policy: &'a Policy,
}

impl CompletionContext<'_> {
    /// Writes an object as admission would have stored it; `None` if nothing changes.
    pub(in crate::cluster) async fn complete(
        &self,
        stored: &Value,
        path: &ApiPath,
    ) -> Result<Option<WriteResult>, CompletionError> {
        let json = stored.to_string();
        // Objects that cannot be parsed are left unchanged.
        let Ok(Some(object)) = Object::read(&json) else { return Ok(None) };
        let subject = Subject { object: &object, old: None, writer: None, is_final: false };
        let verdict = judge_with_facts(self.source, &subject, None, self.policy, OWNER_TIMEOUT).await;
        let verdict = verdict.map_err(|unavailable| CompletionError::Unknown(unavailable.to_string()))?;
        if verdict.patch.is_empty() || self.is_excluded(&object.meta().namespace).await? {
            return Ok(None);
        }
        let mut completed = stored.clone();
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

/// Why a NAD stays incomplete.
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
