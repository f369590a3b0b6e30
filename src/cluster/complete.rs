//! What slipped by. A NAD that was stored while nadmit was away looks settled to the operator, and would stay incomplete for ever.
//! It is written once more, as admission would have stored it, with the resourceVersion that was read.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};

use super::facts::{Source, judged};
use super::owner::segment;
use super::{Cluster, Failed, Written};
use crate::policy::{Policy, Subject};
use crate::resources::{NAD_GROUP, Object};
use crate::telemetry::metrics::Completions;

/// How many NADs are read at once.
const PAGE: usize = 500;
/// The time between two writes: nobody waits for them, and the operator looks at each.
const PACE: Duration = Duration::from_millis(100);
/// How long the network that owns a NAD may take to answer.
const WITHIN: Duration = Duration::from_secs(5);
/// The namespace that admission is not asked about.
pub(crate) const SPARED_NAMESPACE: &str = "kube-system";
/// The label of other namespaces that it is not asked about.
pub(crate) const EXEMPT: &str = "nadmit.io/exempt";

/// The one who completes.
pub struct Completer {
    /// The cluster whose NADs are looked at.
    pub cluster: Cluster,
    /// Where facts come from.
    pub facts: Arc<dyn Source>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Where it is counted what became of them.
    pub completions: Completions,
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
    /// Looks at every NAD once. It ends early once it may not write any more.
    pub async fn scan(&self, may_write: impl Fn() -> bool) -> Result<Scan, String> {
        let mut scan = Scan::default();
        let mut rest = String::new();
        loop {
            let path = format!("/apis/{NAD_GROUP}/v1/network-attachment-definitions?limit={PAGE}{rest}");
            let page = self.cluster.read(&path).await.map_err(|failed| failed.to_string())?;
            // Without the kind there are no NADs.
            let Some(mut page) = page else { return Ok(scan) };
            let items = page.get_mut("items").map(Value::take).unwrap_or_default();
            for nad in items.as_array().into_iter().flatten() {
                if self.policy.load().leave_incomplete || !may_write() {
                    return Ok(scan);
                }
                scan.seen += 1;
                self.look_at(nad, &mut scan).await;
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => rest = format!("&continue={token}"),
                _ => return Ok(scan),
            }
        }
    }

    async fn look_at(&self, nad: &Value, scan: &mut Scan) {
        let (namespace, name) = (text(nad, "namespace"), text(nad, "name"));
        match self.complete(nad).await {
            Ok(None) => {}
            Ok(Some(Written::Stored(_))) => {
                scan.completed += 1;
                self.completions.count("completed");
                info!(namespace, name, "a NAD that was stored incomplete is completed");
                sleep(PACE).await;
            }
            // Whoever wrote it went through admission.
            Ok(Some(Written::Changed)) => self.completions.count("changed"),
            Err(error) => {
                scan.failed += 1;
                self.completions.count("failed");
                warn!(namespace, name, %error, "a NAD that was stored incomplete stays so");
            }
        }
    }

    /// Writes a NAD as admission would have stored it; `None` where that is how it is stored.
    async fn complete(&self, nad: &Value) -> Result<Option<Written>, CompletionError> {
        let json = nad.to_string();
        // What cannot be read is not ours to mend.
        let Ok(Some(object)) = Object::read(&json) else { return Ok(None) };
        let subject = Subject { object: &object, old: None, writer: None, is_final: false };
        let policy = self.policy.load_full();
        let verdict = judged(&*self.facts, &subject, &policy, WITHIN).await;
        let verdict = verdict.map_err(|unavailable| CompletionError::Unknown(unavailable.to_string()))?;
        if verdict.patch.is_empty() || self.is_spared(&object.meta().namespace).await? {
            return Ok(None);
        }
        let mut completed = nad.clone();
        json_patch::patch(&mut completed, &verdict.patch)?;
        let meta = object.meta();
        let (Some(namespace), Some(name)) = (segment(&meta.namespace), segment(&meta.name)) else { return Ok(None) };
        let path = format!("/apis/{NAD_GROUP}/v1/namespaces/{namespace}/network-attachment-definitions/{name}");
        Ok(Some(self.cluster.replace(&path, &completed).await?))
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
enum CompletionError {
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Failed(#[from] Failed),
    #[error("the repair does not fit: {0}")]
    Patch(#[from] json_patch::PatchError),
}

fn text<'v>(nad: &'v Value, key: &str) -> &'v str {
    nad.get("metadata").and_then(|meta| meta.get(key)).and_then(Value::as_str).unwrap_or_default()
}
