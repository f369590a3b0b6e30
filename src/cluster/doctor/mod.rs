//! Reads a network or a pod and everything it depends on, live, for `nadmit doctor` and `nadmit explain`. What the user may not
//! read is unknown, with the missing permission named.

pub mod canary;
pub mod explain;
pub mod pod;
pub mod replica_policies;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{BoxStream, SelectAll, select_all};
use futures_util::{AsyncBufReadExt, StreamExt};
use http::Request;
use http::header::ACCEPT_ENCODING;
use serde_json::Value;

use crate::audit::chain::{
    ClusterNode, InstalledProgram, NetworkSnapshot, NodePolicy, NodeState, OperatorDeployment, Read,
};
use crate::cluster::cache::operators::OPERATOR_RIGHTS;
use crate::cluster::cache::stores::NamespaceStore;
use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::policy::{DEFAULT_OPERATOR_NAMESPACES, Lookup, NamespaceState, NetworkFact, Operators, Policy};
use crate::resources::{NADS, Network, NetworkId, NetworkKind, Object, ObjectKey};

impl Cluster {
    /// Takes the snapshot of a network. Only an unreachable cluster is an error.
    pub async fn network_snapshot(&self, id: &NetworkId, policy: &Policy) -> Result<NetworkSnapshot, ApiError> {
        let network = self
            .one(&ApiPath::network(id)?, &format!("get {} in namespace {}", id.kind.plural(), id.namespace))
            .await?;
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
        let operators = operators.unwrap_or(Operators::Unknown);
        let prefix = match self.prefix(policy, &operators, &id.namespace, None).await {
            // Without the permission to find the operator, the prefix is unknown, too.
            Err(ApiError::NotDiscovered) => None,
            Err(failed) if failed.is_forbidden() => None,
            prefix => prefix?,
        };
        let policies = self.node_policies(home).await?;
        let states = self.all_in(ApiResource::NODE_STATES, home).await?;
        let nodes = self.all(&ApiPath::all(ApiResource::NODES), "list nodes").await?;
        let daemon_sets = self.all(&ApiPath::all(ApiResource::DAEMON_SETS), "list daemonsets").await?;
        let nad = ObjectKey::new(&target, &id.name);
        Ok(NetworkSnapshot {
            namespace: self.namespace(&target).await?,
            nad: self.nad_text(&nad).await?,
            last_nad: self.last_nad(read.as_ref()).await?,
            claims: self.claims(id, &target, home).await?,
            states: states.map(|all| all.iter().map(node_state).collect()),
            nodes: nodes.map(|all| all.iter().map(ClusterNode::of).collect()),
            network,
            operators,
            operator,
            policies,
            prefix,
            device_claims: self.claim_index(Some(&target)).await?.into(),
            programs: daemon_sets.map(|all| all.iter().flat_map(InstalledProgram::of).collect()),
        })
    }

    /// The networks of that name in a namespace, or in all; of that kind, if given. Without the permission to list all namespaces it
    /// looks in that of the context, as kubectl would, and in those where networks usually are.
    pub async fn networks_named(
        &self,
        name: &str,
        kind: Option<NetworkKind>,
        namespace: Option<&str>,
    ) -> Result<Vec<NetworkId>, ApiError> {
        let (mut found, mut unread) = (Vec::new(), None);
        for kind in NetworkKind::ALL.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one)) {
            let namespaces = match namespace {
                Some(namespace) => BTreeSet::from([namespace]),
                None => match self.listed(name, &[kind]).await {
                    Ok(networks) => {
                        found.extend(networks.into_iter().map(|network| network.id));
                        continue;
                    }
                    Err(failed) if failed.is_forbidden() => {
                        unread.get_or_insert_with(|| format!("list {} in all namespaces", kind.plural()));
                        std::iter::once(self.default_namespace()).chain(DEFAULT_OPERATOR_NAMESPACES).collect()
                    }
                    Err(failed) => return Err(failed),
                },
            };
            for namespace in namespaces {
                let id = NetworkId { kind, namespace: namespace.to_owned(), name: name.to_owned() };
                match self.get(&ApiPath::network(&id)?).await {
                    Ok(Some(_)) => found.push(id),
                    Ok(None) => {}
                    Err(failed) if failed.is_forbidden() => {
                        unread.get_or_insert_with(|| format!("get {} in namespace {namespace}", kind.plural()));
                    }
                    Err(failed) => return Err(failed),
                }
            }
        }
        match unread {
            // It may be one of those that may not be read.
            Some(right) if found.is_empty() => Err(ApiError::Forbidden(missing(&right))),
            _ => Ok(found),
        }
    }

    /// The operators, or the missing permission.
    async fn operators_read(&self, policy: &Policy) -> Result<Read<Operators>, ApiError> {
        match self.operators(policy).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(OPERATOR_RIGHTS))),
            operators => operators.map(Ok),
        }
    }

    /// The operator that is responsible for a namespace.
    pub async fn operator(&self, policy: &Policy, beside: &str) -> Result<Read<Option<OperatorDeployment>>, ApiError> {
        match self.operators_read(policy).await? {
            Ok(operators) => Ok(Ok(self.availability(&operators, beside).await?)),
            Err(missing) => Ok(Err(missing)),
        }
    }

    async fn availability(&self, operators: &Operators, beside: &str) -> Result<Option<OperatorDeployment>, ApiError> {
        let Some(operator) = operators.responsible_for(beside) else { return Ok(None) };
        let found = self.operator_deployment(operator).await?;
        Ok(found.map(|found| OperatorDeployment {
            namespace: operator.namespace.clone(),
            deployment: found.name,
            available: found.available,
        }))
    }

    /// The node policies in the operator's namespace, the only ones it reads.
    pub async fn node_policies(&self, home: &str) -> Result<Read<Vec<NodePolicy>>, ApiError> {
        let all = self.all_in(ApiResource::NODE_POLICIES, home).await?;
        Ok(all.map(|all| all.iter().map(NodePolicy::of).collect()))
    }

    /// A stream of changes to a network and its NAD; changes may be merged or spurious.
    pub async fn network_changes(&self, id: &NetworkId, target: &str) -> NetworkChanges {
        let collections = [
            ApiPath::in_namespace(ApiResource::network(id.kind), &id.namespace).and_then(|path| path.named(&id.name)),
            ApiPath::in_namespace(ApiResource::NADS, target).and_then(|path| path.named(&id.name)),
            ApiPath::all(ApiResource::NAMESPACES).named(target),
        ];
        let mut streams = Vec::new();
        for path in collections.into_iter().flatten() {
            let request = Request::get(path.watch().to_string()).header(ACCEPT_ENCODING, "identity").body(Vec::new());
            let Ok(request) = request else { continue };
            if let Ok(stream) = self.client.request_stream(request).await {
                streams.push(Box::pin(stream).lines().map(drop).boxed());
            }
        }
        NetworkChanges(select_all(streams))
    }

    async fn namespace(&self, name: &str) -> Result<Read<Option<NamespaceState>>, ApiError> {
        let Ok(path) = ApiPath::namespace(name) else { return Ok(Ok(None)) };
        let found = self.one(&path, "get namespaces").await?;
        // A namespace that cannot be parsed at least exists.
        let state = |text: String| {
            let read = ApiObject::read(&text).and_then(|object| NamespaceStore::read(&object));
            read.map_or(NamespaceState::Active, |namespace| namespace.state)
        };
        Ok(found.map(|found| found.map(state)))
    }

    async fn nad_text(&self, key: &ObjectKey) -> Result<Read<Option<String>>, ApiError> {
        let Ok(path) = ApiPath::nad(key) else { return Ok(Ok(None)) };
        self.one(&path, &format!("get {NADS} in namespace {}", key.namespace())).await
    }

    async fn last_nad(&self, network: Option<&Network<'_>>) -> Result<Lookup<()>, ApiError> {
        let Some(network) = network else { return Ok(Lookup::Unknown) };
        let Some(last) = network.previous_nad_key() else { return Ok(Lookup::Unknown) };
        Ok(match self.nad_text(&last).await? {
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
                let Ok(path) = ApiPath::network(&other) else { continue };
                match self.one(&path, &right).await? {
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
    async fn one(&self, path: &ApiPath, right: &str) -> Result<Read<Option<String>>, ApiError> {
        match self.get(path).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(right))),
            answer => answer.map(Ok),
        }
    }

    /// All objects of a resource in a namespace, or the missing permission.
    async fn all_in(&self, resource: ApiResource, namespace: &str) -> Result<Read<Vec<Value>>, ApiError> {
        self.all(&ApiPath::in_namespace(resource, namespace)?, &format!("list {}", resource.plural())).await
    }

    /// All objects of a collection, or the missing permission.
    async fn all(&self, path: &ApiPath, right: &str) -> Result<Read<Vec<Value>>, ApiError> {
        let mut all = Vec::new();
        match self.for_each_object(path, |object| all.extend(serde_json::from_str::<Value>(object).ok())).await {
            Err(failed) if failed.is_forbidden() => Ok(Err(missing(right))),
            listed => listed.map(|_| Ok(all)),
        }
    }
}

/// Changes to a network and its NAD.
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
