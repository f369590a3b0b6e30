//! The informer caches: for warnings, and for facts where a short lag does no harm.

pub(in crate::cluster) mod audit_context;
mod claim_stores;
mod claims;
pub mod facts;
pub(in crate::cluster) mod live;
mod lookups;
pub(in crate::cluster) mod networks;
pub mod observer;
pub(in crate::cluster) mod operators;
pub(in crate::cluster) mod pods;
pub mod policy_config_map;
pub(in crate::cluster) mod prefix;
mod state;
pub(in crate::cluster) mod stores;
pub(in crate::cluster) mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast;

use crate::cluster::cache::claims::ClaimCaches;
use crate::cluster::cache::facts::{ApiFuture, FactSource, FactsFuture, FactsQuery};
use crate::cluster::cache::networks::NetworkStore;
use crate::cluster::cache::observer::{ObserverSlot, WatchObserver};
use crate::cluster::cache::operators::{Discovery, OPERATOR_CONFIG};
use crate::cluster::cache::pods::PodStore;
use crate::cluster::cache::stores::{NadStore, NamespaceStore, NodePolicyStore, OperatorNamespaceStore};
use crate::cluster::cache::watch::{Cache, CacheState, Summarize};
use crate::cluster::client::permissions::{Permission, PermissionCache, UserInfo};
use crate::cluster::client::{ApiPath, ApiResource, Cluster};
use crate::policy::{DEFAULT_OPERATOR_NAME, FactLookup, Facts, NadUsers, NameVisibility, Operators, Policy, Subject};
use crate::resources::{NetworkId, NetworkKind, Object, ObjectKey};
use crate::supervise::Supervisor;
use crate::telemetry::metrics::CacheMetrics;

/// All watched collections.
pub struct Caches {
    pub(in crate::cluster) networks: [Cache<NetworkStore>; 3],
    pub(in crate::cluster) namespaces: Cache<NamespaceStore>,
    pub(in crate::cluster) policies: Cache<NodePolicyStore>,
    pub(in crate::cluster) nads: Cache<NadStore>,
    pub(in crate::cluster) pods: Cache<PodStore>,
    pub(in crate::cluster) deployments: Cache<OperatorNamespaceStore>,
    configs: Cache<OperatorNamespaceStore>,
    discovery: Discovery,
    claims: ClaimCaches,
    observers: ObserverSlot,
    metrics: CacheMetrics,
}

impl Caches {
    /// Starts the watches, which run until the process ends.
    pub fn start(cluster: &Cluster, metrics: &CacheMetrics, supervisor: &Supervisor) -> Arc<Self> {
        let caches = Arc::new(Self::new(metrics));
        for number in 0..caches.networks.len() {
            caches.spawn(cluster, supervisor, move |caches| caches.networks.get(number));
        }
        caches.spawn(cluster, supervisor, |caches| Some(&caches.namespaces));
        caches.spawn(cluster, supervisor, |caches| Some(&caches.policies));
        caches.spawn(cluster, supervisor, |caches| Some(&caches.nads));
        caches.spawn(cluster, supervisor, |caches| Some(&caches.deployments));
        caches.spawn(cluster, supervisor, |caches| Some(&caches.configs));
        caches.spawn(cluster, supervisor, |caches| Some(&caches.claims.classes));
        let (followed, reached) = (Arc::clone(&caches), cluster.clone());
        supervisor.serving("caches", async move { followed.claims.follow(&reached).await });
        let (followed, cluster) = (Arc::clone(&caches), cluster.clone());
        supervisor.serving("operators", async move {
            followed.deployments.listed().await;
            followed.configs.listed().await;
            followed.discovery.follow(&cluster, || followed.candidates()).await;
        });
        caches
    }

    fn new(metrics: &CacheMetrics) -> Self {
        let observers = ObserverSlot::default();
        let discovery = Discovery::new();
        let operators_change = ObserverSlot::default();
        operators_change.set(Some(discovery.notifier()));
        let network = |kind: NetworkKind| Cache::new(kind.name(), ApiPath::all(ApiResource::network(kind)), metrics);
        Self {
            networks: NetworkKind::ALL.map(|kind| network(kind).with_observer(&observers)),
            namespaces: Cache::new("Namespace", ApiPath::all(ApiResource::NAMESPACES), metrics)
                .with_observer(&observers),
            policies: Cache::new("SriovNetworkNodePolicy", ApiPath::all(ApiResource::NODE_POLICIES), metrics)
                .with_observer(&observers),
            nads: Cache::new("NetworkAttachmentDefinition", ApiPath::all(ApiResource::NADS), metrics)
                .with_observer(&observers),
            pods: Cache::new("Pod", ApiPath::all(ApiResource::PODS), metrics).with_observer(&observers),
            deployments: Cache::new(
                "Deployment",
                ApiPath::all(ApiResource::DEPLOYMENTS).well_known(DEFAULT_OPERATOR_NAME),
                metrics,
            )
            .with_observer(&operators_change),
            configs: Cache::new(
                "SriovOperatorConfig",
                ApiPath::all(ApiResource::OPERATOR_CONFIGS).well_known(OPERATOR_CONFIG),
                metrics,
            )
            .with_observer(&operators_change),
            discovery,
            claims: ClaimCaches::new(metrics),
            observers,
            metrics: metrics.clone(),
        }
    }

    /// Sets the observer of all writes of networks, NADs, node policies and namespaces; `None` removes it.
    pub fn set_observer(&self, observer: Option<Arc<dyn WatchObserver>>) {
        self.observers.set(observer);
    }

    fn spawn<K: Summarize>(
        self: &Arc<Self>,
        cluster: &Cluster,
        supervisor: &Supervisor,
        which: impl Fn(&Self) -> Option<&Cache<K>> + Send + Sync + 'static,
    ) {
        let (caches, cluster) = (Arc::clone(self), cluster.clone());
        supervisor.serving("caches", async move {
            if let Some(cache) = which(&caches) {
                cache.follow(&cluster).await;
            }
        });
    }

    /// Waits until every collection was listed once, up to a timeout; returns the kinds that are still unknown.
    pub async fn listed(&self, within: Duration) -> Vec<&'static str> {
        let networks = join_all(self.networks.iter().map(Cache::listed));
        let rest = async {
            self.namespaces.listed().await;
            self.policies.listed().await;
            self.nads.listed().await;
            self.deployments.listed().await;
            self.configs.listed().await;
            self.claims.classes.listed().await;
            self.discovery.asked().await;
        };
        let all = async {
            networks.await;
            rest.await;
        };
        match tokio::time::timeout(within, all).await {
            Ok(()) => Vec::new(),
            Err(_) => self.unknown(),
        }
    }

    /// How many namespaces are exempt by label; `None` if unknown.
    pub(in crate::cluster) fn exempt_namespaces(&self) -> Option<usize> {
        match &*self.namespaces.state() {
            CacheState::Known(namespaces) => Some(namespaces.exempt()),
            CacheState::Unknown | CacheState::NotInstalled => None,
        }
    }

    /// Whether the SR-IOV DRA driver is installed; `None` if unknown.
    pub(in crate::cluster) fn has_dra_driver(&self) -> Option<bool> {
        self.claims.has_driver()
    }

    /// Namespaces that are created from now on.
    pub(in crate::cluster) fn namespaces(&self) -> broadcast::Receiver<Box<str>> {
        self.namespaces.additions()
    }

    /// The networks that moved to a namespace and whose move the operator has not completed.
    pub(in crate::cluster) fn moving_to(&self, namespace: &str) -> Vec<NetworkId> {
        let mut networks = Vec::new();
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            if let CacheState::Known(known) = &*cache.state() {
                let found = known.moving_to(namespace);
                networks.extend(found.map(|key| NetworkId::new(kind, key)));
            }
        }
        networks
    }

    /// The kinds whose cache is unknown.
    fn unknown(&self) -> Vec<&'static str> {
        let networks = self.networks.iter().map(|cache| (cache.kind, cache.state().is_unknown()));
        let rest = [
            (self.namespaces.kind, self.namespaces.state().is_unknown()),
            (self.policies.kind, self.policies.state().is_unknown()),
            (self.nads.kind, self.nads.state().is_unknown()),
            (self.deployments.kind, self.deployments.state().is_unknown()),
            (self.configs.kind, self.configs.state().is_unknown()),
            (self.claims.classes.kind, self.claims.classes.state().is_unknown()),
        ];
        networks.chain(rest).filter(|(_, is_unknown)| *is_unknown).map(|(kind, _)| kind).collect()
    }

    /// The last discovered operators.
    pub(in crate::cluster) fn operators(&self) -> Operators {
        self.discovery.found()
    }

    /// The cached permission checks.
    pub(in crate::cluster) fn permissions(&self) -> &PermissionCache {
        &self.discovery.permissions
    }

    /// The namespaces that may have an operator; `None` if unknown.
    fn candidates(&self) -> Option<Vec<String>> {
        let (deployments, configs) = (self.deployments.state(), self.configs.state());
        let all = places(&deployments)?.into_iter().chain(places(&configs)?);
        Some(all.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn is_candidate(&self, namespace: &str) -> bool {
        let holds = |state: &CacheState<OperatorNamespaceStore>| matches!(state, CacheState::Known(places) if places.has(namespace));
        holds(&self.deployments.state()) || holds(&self.configs.state())
    }
}

/// The namespaces of the objects in a store; `None` if unknown.
fn places(state: &CacheState<OperatorNamespaceStore>) -> Option<Vec<&str>> {
    match state {
        CacheState::Unknown => None,
        CacheState::NotInstalled => Some(Vec::new()),
        CacheState::Known(places) => Some(places.all().collect()),
    }
}

/// A cluster with informer caches.
pub struct CachedCluster {
    /// The API client.
    pub cluster: Cluster,
    /// The caches.
    pub caches: Arc<Caches>,
}

impl FactSource for CachedCluster {
    fn lookup(&self) -> &dyn FactLookup {
        &*self.caches
    }

    /// The writer may not read other namespaces, unless a permission check says otherwise.
    fn names(&self) -> NameVisibility {
        NameVisibility::Own(Vec::new())
    }

    fn users_of(&self, nad: &ObjectKey) -> Option<NadUsers> {
        self.caches.deletion_users(nad)
    }

    fn operators(&self) -> Operators {
        self.caches.operators()
    }

    fn may_be_operator(&self, user: &str) -> bool {
        self.caches.discovery.may_be_unknown_operator(user, |namespace| self.caches.is_candidate(namespace))
    }

    fn identify<'a>(&'a self, user: &'a str, info: &'a str) -> ApiFuture<'a, ()> {
        Box::pin(async move {
            let Some(info) = UserInfo::of_review(info) else { return Ok(()) };
            Ok(self.caches.discovery.learn_operator(&self.cluster, user, &info).await?)
        })
    }

    fn is_unknown_operator<'a>(
        &'a self,
        facts: &'a Facts,
        subject: &'a Subject<'a>,
        user: &'a str,
        policy: &'a Policy,
    ) -> ApiFuture<'a, bool> {
        Box::pin(async move {
            let (Object::Nad(nad), Some(user)) = (subject.object, UserInfo::of_review(user)) else { return Ok(false) };
            let may = self.caches.permissions().may(&self.cluster, &user, &Permission::RENDER).await?;
            let _one = self.cluster.live_reads.acquire().await;
            Ok(may && self.cluster.is_rendered(nad, facts, policy).await?)
        })
    }

    fn find<'a>(&'a self, facts: Facts, question: FactsQuery<'a>, within: Duration) -> FactsFuture<'a> {
        self.cluster.fetch_missing(Some(&self.caches), facts, question, within)
    }
}

#[cfg(test)]
mod tests;
