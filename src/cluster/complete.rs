//! What slipped by. A NAD that was stored while nadmit was away looks settled to the operator, and would stay incomplete for ever;
//! a network that the operator is stuck on gets no further write by itself. Both are written once more, as admission would have
//! stored them, with the resourceVersion that was read.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::cache::Informed;
use super::collection::Page;
use super::facts::{Source, judged};
use super::lease::Claim;
use super::owner::segment;
use super::pages::Pages;
use super::{Cluster, Failed, Written, address, meta_text, object};
use crate::deploy::{EXEMPT, SPARED_NAMESPACE};
use crate::policy::{Policy, Subject};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, NetworkId, NetworkKind, Object};
use crate::supervise::{Panicked, Supervisor, contained_async};
use crate::telemetry::metrics::Completions;

/// The time between two writes: nobody waits for them, and the operator looks at each.
const PACE: Duration = Duration::from_millis(100);
/// How long after a look comes the next.
const RESCAN: Duration = Duration::from_secs(600);
/// How long the operator gets, once a namespace is there, to do by itself what it has been waiting for.
const OPERATORS_TURN: Duration = Duration::from_secs(1);
/// The same where the API server could not be asked.
const RETRY: Duration = Duration::from_secs(10);
/// How long the network that owns a NAD may take to answer.
const WITHIN: Duration = Duration::from_secs(5);

/// The one who completes.
#[derive(Clone)]
pub struct Completer {
    /// The cluster whose NADs are looked at, and what is known of it.
    pub informed: Arc<Informed>,
    /// Who knows the network that owns a NAD.
    pub source: Arc<dyn Source>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Where it is counted what became of them.
    pub completions: Completions,
    /// Where it is counted which objects are skipped.
    pub supervisor: Supervisor,
}

/// What a look at all NADs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// How many there are.
    pub seen: usize,
    /// How many were written.
    pub completed: usize,
    /// How many could not be completed; the log says why.
    pub failed: usize,
}

impl Completer {
    /// Completes what slipped by whenever this replica leads: once it is registered, so that nobody takes it back, and then from
    /// time to time.
    pub async fn run(self, mut claims: watch::Receiver<Claim>, mut registered: watch::Receiver<Option<String>>) {
        loop {
            if claims.wait_for(Claim::is_held).await.is_err() || registered.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let mut namespaces = self.informed.caches.namespaces();
            let pause = match self.scan_guarded(|| claims.borrow().is_held()).await {
                Ok(Scan { seen, completed, failed }) => {
                    info!(seen, completed, failed, "looked for what was stored without nadmit");
                    RESCAN
                }
                Err(error) => {
                    warn!(error, "could not look for what was stored without nadmit");
                    RETRY
                }
            };
            let next = Instant::now() + pause;
            tokio::select! {
                () = self.free(&mut namespaces, next) => {}
                // A new claim is a reason to look at once: nobody knows what happened in between.
                _ = claims.wait_for(|claim| !claim.is_held()) => {}
            }
        }
    }

    /// Looks, until then, at the networks that have been waiting for a namespace as soon as it is there: where one moved before
    /// its namespace came, the operator fails for ever on what it left behind, and nobody writes the network again.
    async fn free(&self, namespaces: &mut Receiver<Box<str>>, until: Instant) {
        loop {
            let namespace = match timeout_at(until, namespaces.recv()).await {
                Ok(Ok(namespace)) => namespace,
                // Too many came at once, so that some were missed, or it is time anyway: all is looked at.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) | Err(_) => return,
            };
            if self.informed.caches.moving_to(&namespace).is_empty() {
                continue;
            }
            sleep(OPERATORS_TURN).await;
            for network in self.informed.caches.moving_to(&namespace) {
                self.look_again(&network).await;
            }
        }
    }

    /// The same as [`Self::scan`], as long as the mutating webhook is there: without it the operator would revert each completion.
    async fn scan_guarded(&self, may_write: impl Fn() -> bool) -> Result<Scan, String> {
        match self.informed.cluster.is_guarded().await {
            Ok(true) => self.scan(may_write).await,
            Ok(false) => Err("the mutating webhook configuration is not there or empty".to_owned()),
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// Looks at every NAD and every network once. It ends early once it may not write any more.
    pub async fn scan(&self, may_write: impl Fn() -> bool) -> Result<Scan, String> {
        let mut scan = Scan::default();
        let networks = NetworkKind::ALL.map(|kind| (NETWORK_GROUP, kind.plural()));
        for (group, plural) in [(NAD_GROUP, NADS)].into_iter().chain(networks) {
            self.scan_kind(group, plural, &may_write, &mut scan).await.map_err(|failed| failed.to_string())?;
        }
        Ok(scan)
    }

    async fn scan_kind(
        &self,
        group: &str,
        plural: &str,
        may_write: &impl Fn() -> bool,
        scan: &mut Scan,
    ) -> Result<(), Failed> {
        let collection = format!("/apis/{group}/v1/{plural}");
        let mut pages = Pages::of(&collection, "");
        // Without the kind there are no objects of it.
        while let Some(text) = pages.next(&self.informed.cluster).await? {
            let page = Page::read(&text)?;
            pages.after(&page);
            for item in page.objects.iter().filter_map(|item| object(item).ok()) {
                if self.policy.load().leave_incomplete || !may_write() {
                    return Ok(());
                }
                scan.seen += 1;
                let (namespace, name) = (meta_text(&item, "namespace"), meta_text(&item, "name"));
                self.look_at(&item, &address(group, plural, namespace, name), scan).await;
            }
        }
        Ok(())
    }

    /// Looks at one network, as it is now.
    async fn look_again(&self, network: &NetworkId) {
        let path = address(NETWORK_GROUP, network.kind.plural(), &network.namespace, &network.name);
        match self.informed.cluster.read(&path).await {
            Ok(Some(stored)) if !self.policy.load().leave_incomplete => {
                self.look_at(&stored, &path, &mut Scan::default()).await;
            }
            Ok(_) => {}
            Err(error) => warn!(%network, %error, "could not look at a network whose namespace has come"),
        }
    }

    async fn look_at(&self, stored: &Value, path: &str, scan: &mut Scan) {
        let policy = self.policy.load_full();
        let completing = Completing { source: &*self.source, cluster: &self.informed.cluster, policy: &policy };
        let completed = contained_async(completing.complete(stored, path)).await;
        match completed.unwrap_or_else(|panicked| {
            self.supervisor.skipped("completion");
            Err(panicked.into())
        }) {
            Ok(None) => {}
            Ok(Some(Written::Stored(_))) => {
                scan.completed += 1;
                self.completions.count("completed");
                info!(path, "what was stored without nadmit is completed");
                sleep(PACE).await;
            }
            // Whoever wrote it went through admission.
            Ok(Some(Written::Changed)) => self.completions.count("changed"),
            Err(error) => {
                scan.failed += 1;
                self.completions.count("failed");
                warn!(path, %error, "what was stored without nadmit stays incomplete");
            }
        }
    }
}

/// What is needed to complete one object.
pub struct Completing<'a> {
    /// Who knows the network that owns a NAD.
    pub source: &'a dyn Source,
    /// Where it is stored.
    pub cluster: &'a Cluster,
    /// The policy.
    pub policy: &'a Policy,
}

impl Completing<'_> {
    /// Writes an object as admission would have stored it; `None` where that is how it is stored.
    pub(crate) async fn complete(&self, stored: &Value, path: &str) -> Result<Option<Written>, CompletionError> {
        let json = stored.to_string();
        // What cannot be read is not ours to mend.
        let Ok(Some(object)) = Object::read(&json) else { return Ok(None) };
        let subject = Subject { object: &object, old: None, writer: None, is_final: false };
        let verdict = judged(self.source, &subject, None, self.policy, WITHIN).await;
        let verdict = verdict.map_err(|unavailable| CompletionError::Unknown(unavailable.to_string()))?;
        if verdict.patch.is_empty() || self.is_spared(&object.meta().namespace).await? {
            return Ok(None);
        }
        let mut completed = stored.clone();
        json_patch::patch(&mut completed, &verdict.patch)?;
        Ok(Some(self.cluster.replace(path, &completed).await?))
    }

    /// Whether admission is not asked about a namespace, so that what is in it is nobody's business here either.
    async fn is_spared(&self, namespace: &str) -> Result<bool, Failed> {
        if namespace == SPARED_NAMESPACE {
            return Ok(true);
        }
        let Some(namespace) = segment(namespace) else { return Ok(true) };
        let found = self.cluster.read(&format!("/api/v1/namespaces/{namespace}")).await?;
        let labels = found.as_ref().and_then(|found| found.pointer("/metadata/labels"));
        Ok(labels.and_then(|labels| labels.get(EXEMPT)).and_then(Value::as_str) == Some("true"))
    }
}

/// Why a NAD stays incomplete.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// The network that owns it cannot be asked.
    #[error("{0}")]
    Unknown(String),
    /// The API server did not do what it was asked.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The object is not what it was.
    #[error("the repair does not fit: {0}")]
    Patch(#[from] json_patch::PatchError),
    /// The object cannot be judged.
    #[error("judging it {0}")]
    Panicked(#[from] Panicked),
}
