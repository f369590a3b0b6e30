//! Reads a network and everything it depends on, live, for `nadmit doctor`. What the user may not read is unknown, with the
//! missing permission named.

pub mod canary;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{BoxStream, SelectAll, select_all};
use futures_util::{AsyncBufReadExt, StreamExt};
use http::Request;
use http::header::ACCEPT_ENCODING;
use serde_json::Value;

use crate::audit::chain::{ClusterNode, NetworkSnapshot, NodePolicy, NodeState, OperatorDeployment, Read};
use crate::cluster::cache::prefix::available;
use crate::cluster::cache::stores::NamespaceStore;
use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::segment;
use crate::cluster::client::{ApiError, Cluster, address};
use crate::policy::{DEFAULT_OPERATOR_NAMESPACES, Lookup, NamespaceState, NetworkFact, Operators, Policy};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, Network, NetworkId, NetworkKind, Object};

impl Cluster {
    /// Takes the snapshot of a network. Only an unreachable cluster is an error.
    pub async fn network_snapshot(&self, id: &NetworkId, policy: &Policy) -> Result<NetworkSnapshot, ApiError> {
        let network =
            self.one(&network_path(id), &format!("get {} in namespace {}", id.kind.plural(), id.namespace)).await?;
        // Without the network nothing else matters.
        let network = network.map_err(ApiError::Forbidden)?;
        let read = match network.as_deref().map(Object::read) {
            Some(Ok(Some(Object::Network(network)))) => Some(network),
            _ => None,
        };
        let target =
            read.as_ref().map_or_else(|| id.namespace.clone(), |network| network.target_namespace().into_owned());
        let operators = self.operators_read(policy).await?;
        let operator = match &operators {
            Ok(operators) => Ok(self.availability(operators, &id.namespace).await?),
            Err(missing) => Err(missing.clone()),
        };
        let home =
            operator.as_ref().ok().and_then(Option::as_ref).map_or(&*id.namespace, |operator| &operator.namespace);
        let prefix = match self.prefix(policy, &operators.unwrap_or(Operators::Unknown), &id.namespace, None).await {
            Err(failed) if failed.is_forbidden() => None,
            prefix => prefix?,
        };
        let policies = self.node_policies(home).await?;
        let states = self.all(&in_namespace(home, "sriovnetworknodestates"), "list sriovnetworknodestates").await?;
        Ok(NetworkSnapshot {
            namespace: self.namespace(&target).await?,
            nad: self.nad_text(&target, &id.name).await?,
            last_nad: self.last_nad(read.as_ref()).await?,
            claims: self.claims(id, &target, home).await?,
            states: states.map(|all| all.iter().map(node_state).collect()),
            nodes: self.all("/api/v1/nodes", "list nodes").await?.map(|all| all.iter().map(node).collect()),
            network,
            operator,
            policies,
            prefix,
        })
    }

    /// The networks of that name in all namespaces; of that kind, if given.
    pub async fn networks_named(&self, name: &str, kind: Option<NetworkKind>) -> Result<Vec<NetworkId>, ApiError> {
        let mut found = Vec::new();
        for kind in NetworkKind::ALL.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one)) {
            match self.listed(name, &[kind]).await {
                Ok(networks) => found.extend(networks.into_iter().map(|network| network.id)),
                // Without the permission to list all namespaces, try the default namespaces.
                Err(failed) if failed.is_forbidden() => {
                    for namespace in DEFAULT_OPERATOR_NAMESPACES {
                        let id = NetworkId { kind, namespace: namespace.to_owned(), name: name.to_owned() };
                        if let Ok(Some(_)) = self.get(&network_path(&id)).await {
                            found.push(id);
                        }
                    }
                }
                Err(failed) => return Err(failed),
            }
        }
        Ok(found)
    }

    /// The operators, or the missing permission.
    async fn operators_read(&self, policy: &Policy) -> Result<Read<Operators>, ApiError> {
        match self.operators(policy).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(
                "list sriovoperatorconfigs, deployments and serviceaccounts and to create subjectaccessreviews",
            ))),
            operators => operators.map(Ok),
        }
    }

    /// The operator: the one in the network's namespace, if there are several.
    pub async fn operator(&self, policy: &Policy, beside: &str) -> Result<Read<Option<OperatorDeployment>>, ApiError> {
        match self.operators_read(policy).await? {
            Ok(operators) => Ok(Ok(self.availability(&operators, beside).await?)),
            Err(missing) => Ok(Err(missing)),
        }
    }

    async fn availability(&self, operators: &Operators, beside: &str) -> Result<Option<OperatorDeployment>, ApiError> {
        let Some(operator) = operators.in_namespace(beside).or_else(|| operators.known().first()) else {
            return Ok(None);
        };
        let Some(deployment) = operator.deployment.as_deref().and_then(segment) else { return Ok(None) };
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/{deployment}", operator.namespace);
        let found = self.read(&path).await?;
        Ok(found.map(|found| OperatorDeployment {
            namespace: operator.namespace.clone(),
            deployment: deployment.to_owned(),
            available: available(&found),
        }))
    }

    /// The node policies in the operator's namespace, the only ones it reads.
    pub async fn node_policies(&self, home: &str) -> Result<Read<Vec<NodePolicy>>, ApiError> {
        let all = self.all(&in_namespace(home, "sriovnetworknodepolicies"), "list sriovnetworknodepolicies").await?;
        Ok(all.map(|all| {
            let policy = |one: &Value| NodePolicy {
                name: text(one, "/metadata/name"),
                resource_name: text(one, "/spec/resourceName"),
            };
            all.iter().map(policy).collect()
        }))
    }

    /// A stream of changes around a network; changes may be merged or spurious.
    pub async fn network_changes(&self, id: &NetworkId, target: &str) -> NetworkChanges {
        let Some(target) = segment(target) else { return NetworkChanges(select_all([])) };
        let named =
            |collection: String, name: &str| format!("{collection}?watch=1&fieldSelector=metadata.name%3D{name}");
        let collections = [
            named(in_namespace(&id.namespace, id.kind.plural()), &id.name),
            named(format!("/apis/{NAD_GROUP}/v1/namespaces/{target}/{NADS}"), &id.name),
            named("/api/v1/namespaces".to_owned(), target),
        ];
        let mut streams = Vec::new();
        for path in collections {
            let request = Request::get(path).header(ACCEPT_ENCODING, "identity").body(Vec::new());
            let Ok(request) = request else { continue };
            if let Ok(stream) = self.client.request_stream(request).await {
                streams.push(Box::pin(stream).lines().map(drop).boxed());
            }
        }
        NetworkChanges(select_all(streams))
    }

    async fn namespace(&self, name: &str) -> Result<Read<Option<NamespaceState>>, ApiError> {
        let Some(name) = segment(name) else { return Ok(Ok(None)) };
        let found = self.one(&format!("/api/v1/namespaces/{name}"), "get namespaces").await?;
        // A namespace that cannot be parsed at least exists.
        let state =
            |text: String| NamespaceStore::read(&text).map_or(NamespaceState::Active, |namespace| namespace.state);
        Ok(found.map(|found| found.map(state)))
    }

    async fn nad_text(&self, namespace: &str, name: &str) -> Result<Read<Option<String>>, ApiError> {
        let (Some(namespace), Some(name)) = (segment(namespace), segment(name)) else { return Ok(Ok(None)) };
        let path = address(NAD_GROUP, NADS, namespace, name);
        self.one(&path, &format!("get {NADS} in namespace {namespace}")).await
    }

    async fn last_nad(&self, network: Option<&Network<'_>>) -> Result<Lookup<()>, ApiError> {
        let Some(network) = network else { return Ok(Lookup::Unknown) };
        let Some(last) = network.previous_namespace() else { return Ok(Lookup::Unknown) };
        Ok(match self.nad_text(&last, &network.meta.name).await? {
            Ok(Some(_)) => Lookup::Found(()),
            Ok(None) => Lookup::Absent,
            Err(_) => Lookup::Unknown,
        })
    }

    /// The networks of that name, in the same or the operator's namespace, that render the same NAD.
    async fn claims(&self, id: &NetworkId, target: &str, home: &str) -> Result<Read<Vec<NetworkFact>>, ApiError> {
        let mut claims = Vec::new();
        let mut namespaces = vec![home, target];
        namespaces.dedup();
        for namespace in namespaces {
            for kind in NetworkKind::ALL {
                let other = NetworkId { kind, namespace: namespace.to_owned(), name: id.name.clone() };
                let right = format!("get {} in namespace {namespace}", kind.plural());
                match self.one(&network_path(&other), &right).await? {
                    Err(missing) => return Ok(Err(missing)),
                    Ok(None) => {}
                    Ok(Some(text)) => {
                        if let Ok(Some(Object::Network(network))) = Object::read(&text) {
                            claims.push(NetworkFact::of(&network));
                        }
                    }
                }
            }
        }
        claims.retain(|claim| claim.target_namespace == target);
        Ok(Ok(claims))
    }

    /// One object, or the missing permission.
    async fn one(&self, path: &str, right: &str) -> Result<Read<Option<String>>, ApiError> {
        match self.get(path).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(right))),
            answer => answer.map(Ok),
        }
    }

    /// All objects of a collection, or the missing permission.
    async fn all(&self, path: &str, right: &str) -> Result<Read<Vec<Value>>, ApiError> {
        let mut all = Vec::new();
        match self.for_each_object(path, "", |object| all.extend(serde_json::from_str::<Value>(object).ok())).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(right))),
            listed => listed.map(|_| Ok(all)),
        }
    }
}

fn missing(right: &str) -> String {
    format!("missing permission: {right}")
}

/// Changes around a network.
pub struct NetworkChanges(SelectAll<BoxStream<'static, ()>>);

impl NetworkChanges {
    /// Waits for the next one, but no longer than that.
    pub async fn next(&mut self, within: Duration) {
        let stir = async {
            match self.0.next().await {
                Some(()) => {}
                // No watch is left.
                None => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(within, stir).await;
    }
}

/// The API path of an operator kind in a namespace.
pub(in crate::cluster) fn in_namespace(namespace: &str, plural: &str) -> String {
    format!("/apis/{NETWORK_GROUP}/v1/namespaces/{namespace}/{plural}")
}

/// The API path of a network.
pub(in crate::cluster) fn network_path(id: &NetworkId) -> String {
    address(NETWORK_GROUP, id.kind.plural(), &id.namespace, &id.name)
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn node_state(state: &Value) -> NodeState {
    NodeState {
        node: text(state, "/metadata/name"),
        sync: text(state, "/status/syncStatus"),
        error: text(state, "/status/lastSyncError"),
    }
}

fn node(node: &Value) -> ClusterNode {
    let allocatable = node.pointer("/status/allocatable").and_then(Value::as_object);
    // Extended resources are integers and have a domain.
    let counted = |(name, count): (&String, &Value)| {
        let count = count.as_str()?.parse().ok()?;
        name.contains('/').then(|| (name.clone(), count))
    };
    let allocatable: BTreeMap<_, _> = allocatable.into_iter().flatten().filter_map(counted).collect();
    ClusterNode { name: text(node, "/metadata/name"), allocatable }
}
