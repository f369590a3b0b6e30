//! Which policy each replica judges by, for `nadmit policy`: their metrics, read through the API server.

use serde_json::Value;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, meta_text, object};
use crate::deploy::NAME;
use crate::resources::ObjectKey;

/// The policy of one replica.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaPolicy {
    /// Its pod.
    pub pod: String,
    /// Its state, or why that cannot be read.
    pub state: Result<PolicyState, String>,
}

/// The policy that a replica judges by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyState {
    /// The hash of its text; `None` while the replica waits for a policy.
    pub hash: Option<String>,
    /// When it was applied, in seconds since 1970.
    pub since: Option<f64>,
    /// Whether the configured policy is missing or was rejected.
    pub is_rejected: bool,
}

impl PolicyState {
    /// Reads the metrics of a replica; `None` if they do not have the policy, as those of older versions.
    fn read(metrics: &str) -> Option<Self> {
        let mut state = None;
        for line in metrics.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            match series {
                "nadmit_policy_applied_timestamp_seconds" => {
                    let since = value.parse().ok().filter(|since| *since > 0.0);
                    state.get_or_insert_with(Self::default).since = since;
                }
                "nadmit_policy_current" => state.get_or_insert_with(Self::default).is_rejected = value == "0",
                _ => {
                    let hash =
                        series.strip_prefix("nadmit_policy_info{hash=\"").and_then(|hash| hash.strip_suffix("\"}"));
                    if let Some(hash) = hash {
                        state.get_or_insert_with(Self::default).hash = Some(hash.to_owned());
                    }
                }
            }
        }
        state.filter(|state| state.hash.is_some() || state.is_rejected)
    }
}

impl Cluster {
    /// The policy of each replica in a namespace, by pod. Only pods that cannot be listed are an error.
    pub async fn replica_policies(&self, namespace: &str) -> Result<Vec<ReplicaPolicy>, ApiError> {
        let pods = ApiPath::in_namespace(ApiResource::PODS, namespace)?;
        let pods = self.get(&pods.labelled(&[("app.kubernetes.io/name", NAME)])).await?;
        let pods = pods.map(|text| object(&text)).transpose()?.unwrap_or_default();
        let mut replicas = Vec::new();
        for pod in pods.get("items").and_then(Value::as_array).into_iter().flatten() {
            // The pods of finished Jobs have the same label.
            let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
            if matches!(phase, "Succeeded" | "Failed") {
                continue;
            }
            let pod = meta_text(pod, "name").to_owned();
            let state = self.replica_policy(&ObjectKey::new(namespace, &pod)).await;
            replicas.push(ReplicaPolicy { pod, state });
        }
        replicas.sort_by(|one, other| one.pod.cmp(&other.pod));
        Ok(replicas)
    }

    async fn replica_policy(&self, pod: &ObjectKey) -> Result<PolicyState, String> {
        let metrics = async { self.get(&ApiPath::pod_metrics(pod)?).await };
        let metrics = metrics.await.map_err(|error| error.to_string())?;
        let metrics = metrics.ok_or_else(|| "the pod does not exist any more".to_owned())?;
        PolicyState::read(&metrics).ok_or_else(|| "its metrics do not show a policy".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;
    use crate::telemetry::metrics::Reload;

    #[test]
    fn reads_what_the_server_shows() {
        let metrics = Metrics::default();
        let waiting = PolicyState { hash: None, since: None, is_rejected: true };
        assert_eq!(PolicyState::read(&metrics.text()), Some(waiting));
        metrics.policy.applied("0123456789ab");
        let now = PolicyState::read(&metrics.text()).unwrap();
        assert_eq!((now.hash.as_deref(), now.is_rejected), (Some("0123456789ab"), false));
        assert!(now.since.is_some_and(|since| since > 1.7e9), "{now:?}");
        metrics.policy.reloaded(Reload::Refused);
        assert_eq!(PolicyState::read(&metrics.text()), Some(PolicyState { is_rejected: true, ..now }));
        for old in ["", "nadmit_policy_current 1\n", "nadmit_policy_info{hash=\"\n"] {
            assert_eq!(PolicyState::read(old), None, "{old}");
        }
    }
}
