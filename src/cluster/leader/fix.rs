//! Completes stored NADs on request (`nadmit audit --fix`).

use std::time::Duration;

use serde_json::Value;

use crate::cluster::cache::live::UncachedCluster;
use crate::cluster::client::{ApiError, ApiPath, Cluster, WriteResult};
use crate::cluster::leader::completion::CompletionContext;
use crate::deploy::webhooks::Phase;
use crate::policy::{Operators, Policy};
use crate::resources::ObjectKey;

/// The interval between two writes: each triggers a reconcile of the operator.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// A NAD that is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteNad {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Whether a network renders it, so that the operator writes it too.
    pub is_rendered: bool,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixResult {
    /// It is complete now.
    Completed,
    /// It was already complete, or was deleted.
    AlreadyComplete,
    /// It is left unchanged, and why.
    Left(&'static str),
    /// It could not be written, and why.
    Failed(String),
}

impl Cluster {
    /// Whether nadmit's webhook is registered, so that the operator's writes stay complete.
    pub async fn is_registered(&self) -> Result<bool, ApiError> {
        let found = self.read(&ApiPath::webhook(Phase::Mutating)).await?;
        // The manifests create it without entries; nadmit fills them in.
        let webhooks = found.as_ref().and_then(|found| found.get("webhooks")).and_then(Value::as_array);
        Ok(webhooks.is_some_and(|webhooks| !webhooks.is_empty()))
    }

    /// Completes a NAD, read live, with the resourceVersion that was read, through admission. On conflict it is read once more,
    /// and then left unchanged.
    pub async fn fix(
        &self,
        nad: &IncompleteNad,
        is_registered: bool,
        operators: &Operators,
        policy: &Policy,
    ) -> FixResult {
        if nad.is_rendered && !is_registered {
            return FixResult::Left("the operator would revert it at once unless nadmit is registered in this cluster");
        }
        let path = match ApiPath::nad(&nad.key) {
            Ok(path) => path,
            Err(failed) => return FixResult::Failed(failed.to_string()),
        };
        let source = UncachedCluster { cluster: self, operators };
        let completing = CompletionContext { source: &source, cluster: self, policy };
        for _ in 0..2 {
            match completing.complete(&path, |stored| !stored.meta().deleting).await {
                Ok(None) => return FixResult::AlreadyComplete,
                Ok(Some(WriteResult::Stored(_))) => {
                    tokio::time::sleep(WRITE_INTERVAL).await;
                    return FixResult::Completed;
                }
                Ok(Some(WriteResult::Changed)) => {}
                Err(error) => return FixResult::Failed(error.to_string()),
            }
        }
        FixResult::Left("conflicting writes")
    }
}
