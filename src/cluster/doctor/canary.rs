//! A throw-away network in its own namespace that shows whether the operator reconciles. It is removed completely.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cluster::client::backoff::random;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult};
use crate::resources::{NETWORK_GROUP, NetworkId, NetworkKind};

/// The polling interval while objects are deleted.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the operator has to remove its finalizer.
const OPERATOR_GRACE: Duration = Duration::from_secs(10);
/// How long the deletion of a namespace may take.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(60);

/// The network and its namespace.
pub struct Canary {
    cluster: Cluster,
    /// The network, in the operator's namespace.
    pub id: NetworkId,
    /// The namespace that its NAD goes to; it has the same name.
    pub namespace: String,
    /// Whether they may exist.
    has_network: bool,
    has_namespace: bool,
}

impl Canary {
    /// A canary that is not created yet, for the operator in that namespace.
    pub fn new(cluster: &Cluster, home: &str) -> Self {
        let namespace = format!("nadmit-canary-{:08x}", random() >> 32);
        let id = NetworkId { kind: NetworkKind::Sriov, namespace: home.to_owned(), name: namespace.clone() };
        Self { cluster: cluster.clone(), id, namespace, has_network: false, has_namespace: false }
    }

    /// Creates the namespace and the network.
    pub async fn start(&mut self, resource_name: &str) -> Result<(), ApiError> {
        let labels = json!({ "app.kubernetes.io/managed-by": "nadmit" });
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace, "labels": labels },
        });
        let network = json!({
            "apiVersion": format!("{NETWORK_GROUP}/v1"), "kind": self.id.kind.name(),
            "metadata": { "name": self.id.name, "namespace": self.id.namespace, "labels": labels },
            "spec": { "resourceName": resource_name, "networkNamespace": self.namespace },
        });
        let networks = ApiPath::in_namespace(ApiResource::network(self.id.kind), &self.id.namespace)?;
        let created = self.cluster.create(&ApiPath::all(ApiResource::NAMESPACES), &namespace).await;
        self.has_namespace = !is_rejected(&created);
        stored(created)?;
        let created = self.cluster.create(&networks, &network).await;
        self.has_network = !is_rejected(&created);
        stored(created)
    }

    /// Deletes everything it may have created; returns what could not be deleted.
    pub async fn remove(&self) -> Vec<String> {
        let mut left = Vec::new();
        if self.has_network
            && let Err(why) = self.remove_network().await
        {
            left.push(format!("{}: {why}", self.id));
        }
        if self.has_namespace
            && let Err(why) = self.remove_at(ApiPath::namespace(&self.namespace), NAMESPACE_TIMEOUT).await
        {
            left.push(format!("Namespace {}: {why}", self.namespace));
        }
        left
    }

    /// The operator keeps a finalizer on its networks. If it does not remove it, the canary does: the object is ours.
    async fn remove_network(&self) -> Result<(), String> {
        if self.remove_at(ApiPath::network(&self.id), OPERATOR_GRACE).await.is_ok() {
            return Ok(());
        }
        let words = |failed: ApiError| failed.to_string();
        let path = ApiPath::network(&self.id).map_err(words)?;
        if let Some(mut network) = self.cluster.read(&path).await.map_err(words)? {
            if let Some(metadata) = network.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                metadata.remove("finalizers");
            }
            self.cluster.replace(&path, &network).await.map_err(words)?;
        }
        self.remove_at(Ok(path), OPERATOR_GRACE).await
    }

    async fn remove_at(&self, path: Result<ApiPath, ApiError>, within: Duration) -> Result<(), String> {
        let path = path.map_err(|failed| failed.to_string())?;
        let until = Instant::now() + within;
        loop {
            let deleted = async {
                self.cluster.delete(&path).await?;
                self.cluster.get(&path).await
            };
            let why = match deleted.await {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => "its deletion is still pending".to_owned(),
                Err(failed) => failed.to_string(),
            };
            if Instant::now() >= until {
                return Err(why);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// Whether the API server rejected the request. Without a response the object may exist.
fn is_rejected(created: &Result<WriteResult, ApiError>) -> bool {
    matches!(created, Err(ApiError::Request(error)) if matches!(**error, kube::Error::Api(_)))
}

fn stored(created: Result<WriteResult, ApiError>) -> Result<(), ApiError> {
    match created? {
        WriteResult::Stored(_) => Ok(()),
        WriteResult::Changed => Err(ApiError::Unexpected),
    }
}
