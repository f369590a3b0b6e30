//! Reads a pod, its warnings, and the NADs it asks for.

use serde_json::Value;

use super::text;
use crate::audit::chain::Read;
use crate::audit::pod::{NetworkSelection, PodEvent, PodSnapshot};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::policy::{Operators, Policy};
use crate::resources::{NETWORKS, ObjectKey, selected_nads};

/// How many NADs of a pod are read: its annotation is written by whoever creates it.
const MAX_NADS: usize = 32;
/// How many Events are read: whoever may create some can create many.
const MAX_EVENTS: usize = 500;

impl Cluster {
    /// Takes the snapshot of a pod; `None` if it does not exist.
    pub async fn pod_snapshot(&self, key: &ObjectKey, policy: &Policy) -> Result<Option<PodSnapshot>, ApiError> {
        let Some(pod) = self.pod_text(key).await? else { return Ok(None) };
        let pod: Value = serde_json::from_str(&pod).unwrap_or_default();
        let about = ApiPath::in_namespace(ApiResource::EVENTS, key.namespace())?.about(key.name())?;
        let uid = text(&pod, "/metadata/uid");
        let mut events = Vec::new();
        let add = |found: &str| {
            let found: Value = serde_json::from_str(found).unwrap_or_default();
            // An earlier pod may have had the same name.
            let is_of_pod = text(&found, "/involvedObject/kind") == "Pod" && text(&found, "/involvedObject/uid") == uid;
            if is_of_pod && text(&found, "/type") == "Warning" {
                events.push(event(&found));
            }
        };
        let events = match self.first(MAX_EVENTS, &about, add).await {
            Err(failed) if failed.is_forbidden() => {
                Err(missing(&format!("list events in namespace {}", key.namespace())))
            }
            listed => listed.map(|_| Ok(events))?,
        };
        let annotation = pod.pointer("/metadata/annotations").and_then(|all| all.get(NETWORKS)).and_then(Value::as_str);
        let selected = selected_nads(annotation.unwrap_or_default(), key.namespace());
        let nads = self.nad_texts(selected.iter().flatten().take(MAX_NADS)).await?;
        Ok(Some(PodSnapshot {
            key: key.clone(),
            is_ready: is_ready(&pod),
            is_deleting: pod.pointer("/metadata/deletionTimestamp").is_some(),
            events,
            selection: match &selected {
                None => NetworkSelection::Unreadable,
                Some(all) => NetworkSelection::Read { left_out: all.len().saturating_sub(MAX_NADS) },
            },
            nads,
            operators: self.operators_read(policy).await?.unwrap_or(Operators::Unknown),
            device_claims: self.claim_index(Some(key.namespace())).await?.into(),
        }))
    }

    /// A pod as JSON; `None` if it does not exist.
    pub(super) async fn pod_text(&self, key: &ObjectKey) -> Result<Option<String>, ApiError> {
        let path = ApiPath::object(ApiResource::PODS, key)?;
        let pod = self.one(&path, &format!("get pods in namespace {}", key.namespace())).await?;
        pod.map_err(ApiError::Forbidden)
    }

    /// Some NADs as JSON.
    pub(super) async fn nad_texts<'k>(
        &self,
        keys: impl Iterator<Item = &'k ObjectKey>,
    ) -> Result<Vec<(ObjectKey, Read<Option<String>>)>, ApiError> {
        let mut nads = Vec::new();
        for key in keys {
            nads.push((key.clone(), self.nad_text(key).await?));
        }
        Ok(nads)
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let is = |condition: &Value, kind: &str| text(condition, "/type") == kind && text(condition, "/status") == "True";
    conditions.into_iter().any(|condition| is(condition, "Ready"))
}

/// An Event, of either API: the newer one counts in a series.
fn event(event: &Value) -> PodEvent {
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64);
    PodEvent {
        reason: text(event, "/reason"),
        message: text(event, "/message"),
        count: number("/series/count").or_else(|| number("/count")).unwrap_or(1).max(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_both_apis_are_counted() {
        for (given, want) in [
            (json!({ "count": 5 }), 5),
            (json!({ "series": { "count": 7 }, "count": 1 }), 7),
            (json!({ "count": 0 }), 1),
            (json!({}), 1),
        ] {
            assert_eq!(event(&given).count, want, "{given}");
        }
    }
}
