//! NADs that are stored incomplete are completed, one by one, because somebody asked for it.

use std::time::Duration;

use serde_json::Value;

use super::complete::Completing;
use super::owner::Unwatched;
use super::{Cluster, Failed, Written, address};
use crate::deploy::NAME;
use crate::policy::{Operators, Policy};
use crate::resources::{NAD_GROUP, NADS};

/// The time between two writes: the operator looks at each.
const PACE: Duration = Duration::from_millis(10);

/// A NAD that is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether a network renders it, so that the operator writes it too.
    pub is_rendered: bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// It is complete now.
    Completed,
    /// It was complete by then, or is gone.
    Settled,
    /// It stays as it is, and why.
    Left(&'static str),
    /// It could not be written, and why.
    Failed(String),
}

impl Cluster {
    /// Whether nadmit's admission is registered, so that what the operator writes stays complete.
    pub async fn is_guarded(&self) -> Result<bool, Failed> {
        let path = format!("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{NAME}");
        let found = self.read(&path).await?;
        // It comes with the manifests, and asks nobody before nadmit fills it.
        let webhooks = found.as_ref().and_then(|found| found.get("webhooks")).and_then(Value::as_array);
        Ok(webhooks.is_some_and(|webhooks| !webhooks.is_empty()))
    }

    /// Completes a NAD: as it is now, with the resourceVersion that was read, through admission. Where somebody else wrote in
    /// between it is read once more, and then left to them.
    pub async fn fix(&self, nad: &Incomplete, is_guarded: bool, operators: &Operators, policy: &Policy) -> Fixed {
        if nad.is_rendered && !is_guarded {
            return Fixed::Left(
                "its network's operator would take it back at once, as nadmit is not registered in this cluster",
            );
        }
        let path = address(NAD_GROUP, NADS, &nad.namespace, &nad.name);
        let source = Unwatched { cluster: self, operators };
        let completing = Completing { source: &source, cluster: self, policy };
        for _ in 0..2 {
            let stored = match self.read(&path).await {
                Ok(Some(stored)) if !is_leaving(&stored) => stored,
                Ok(_) => return Fixed::Settled,
                Err(failed) => return Fixed::Failed(failed.to_string()),
            };
            match completing.complete(&stored, &path).await {
                Ok(None) => return Fixed::Settled,
                Ok(Some(Written::Stored(_))) => {
                    tokio::time::sleep(PACE).await;
                    return Fixed::Completed;
                }
                Ok(Some(Written::Changed)) => {}
                Err(error) => return Fixed::Failed(error.to_string()),
            }
        }
        Fixed::Left("somebody else keeps writing it")
    }
}

fn is_leaving(stored: &Value) -> bool {
    stored.pointer("/metadata/deletionTimestamp").is_some()
}
