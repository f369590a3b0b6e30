//! Live reads of networks and NADs: who owns a NAD, and whether it exists.

use std::time::Duration;

use futures_util::future::{join_all, try_join, try_join_all};

use crate::cluster::cache::Caches;
use crate::cluster::cache::facts::{FactSource, FactsFuture, FactsQuery, Unavailable};
use crate::cluster::client::permissions::{Permission, PermissionCache, UserInfo};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::policy::rules::drift::is_rendering;
use crate::policy::{
    Facts, Lookup, MissingFact, NameVisibility, NetworkFact, NetworkUse, Operators, Policy, Prefix, account_of,
    is_default_operator_namespace,
};
use crate::resources::{Meta, Nad, NetworkId, NetworkKind, Object, ObjectKey};

/// How many namespaces are checked for an operator account if no operator is known.
const MAX_NAMESPACES: usize = 8;

/// A cluster without caches, and its discovered operators.
pub(in crate::cluster) struct UncachedCluster<'a> {
    /// The API client.
    pub(in crate::cluster) cluster: &'a Cluster,
    /// The operators.
    pub(in crate::cluster) operators: &'a Operators,
}

impl FactSource for UncachedCluster<'_> {
    fn operators(&self) -> Operators {
        self.operators.clone()
    }

    fn find<'a>(&'a self, facts: Facts, question: FactsQuery<'a>, within: Duration) -> FactsFuture<'a> {
        self.cluster.fetch_missing(None, facts, question, within)
    }
}

impl Cluster {
    /// Fetches a missing fact; fresh caches avoid requests.
    pub(in crate::cluster) fn fetch_missing<'a>(
        &'a self,
        caches: Option<&'a Caches>,
        facts: Facts,
        question: FactsQuery<'a>,
        within: Duration,
    ) -> FactsFuture<'a> {
        Box::pin(async move {
            let asked = async {
                let _one = self.live_reads.acquire().await;
                self.ask(caches, facts, question).await
            };
            match tokio::time::timeout(within, asked).await {
                Ok(Ok(facts)) => Ok(Some(facts)),
                Ok(Err(failed)) => Err(failed.into()),
                Err(_) => Err(Unavailable(format!("the API server did not respond within {within:.1?}"))),
            }
        })
    }

    async fn ask(&self, caches: Option<&Caches>, facts: Facts, question: FactsQuery<'_>) -> Result<Facts, ApiError> {
        let FactsQuery { subject, missing, policy, .. } = question;
        let meta = subject.object.meta();
        match missing {
            MissingFact::Owner { named: Some(id), .. } => {
                // Whether the prefix is needed is known only with the owner; fetching both at once saves a round trip.
                let prefix = self.prefix(policy, &facts.operators, &id.namespace, caches);
                let (named_owner, prefix) = try_join(self.network(id), prefix).await?;
                Ok(facts.with_owner(named_owner, prefix))
            }
            MissingFact::Owner { named: None, kinds, .. } => {
                let mut homes = policy.operator_namespaces(&facts);
                if homes.is_empty() {
                    homes.extend(self.writer_operator_namespace(&question, caches).await?);
                }
                let (networks_here, prefix) = if homes.is_empty() {
                    self.networks_anywhere(meta, kinds, policy, caches).await?
                } else {
                    let networks = self.renderers_of(meta, kinds, &homes, caches);
                    // With a single operator the prefix can be fetched in parallel.
                    if let [home] = homes[..] {
                        try_join(networks, self.prefix(policy, &facts.operators, home, caches)).await?
                    } else {
                        self.with_prefix(networks.await?, policy, &facts.operators, caches).await?
                    }
                };
                Ok(facts.with_networks(networks_here, prefix))
            }
            MissingFact::LastNad { namespace } => {
                Ok(facts.with_last_nad(self.nad(&ObjectKey::new(namespace, &meta.name)).await?))
            }
            MissingFact::Claimants { networks } => {
                let found = try_join_all(networks.iter().map(|id| self.network(id))).await?;
                let named = subject.object.meta().owner();
                let named = networks.iter().position(|id| Some(id) == named);
                let named_owner = named.and_then(|at| found.get(at)).cloned().unwrap_or_default();
                let here = found.into_iter().filter_map(|network| match network {
                    Lookup::Found(network) => Some(network),
                    Lookup::Unknown | Lookup::Absent => None,
                });
                let mut claimants: Vec<_> = here.filter(|found| found.renders(&meta.namespace, &meta.name)).collect();
                claimants.dedup();
                Ok(facts.with_claimants(claimants, named_owner))
            }
            MissingFact::Neighbours { nads } => {
                let read = try_join_all(nads.iter().map(|key| self.network_use(key))).await?;
                Ok(facts.with_neighbours(nads.iter().cloned().zip(read).collect()))
            }
            MissingFact::NameVisibility(hidden) => {
                let Some(user) = question.user.and_then(UserInfo::of_review) else { return Ok(facts) };
                let unkept = PermissionCache::default();
                let permissions = caches.map_or(&unkept, Caches::permissions);
                let mut named = Vec::new();
                for reference in hidden {
                    if permissions.may(self, &user, &Permission::to_read(reference)).await? {
                        named.push(reference.clone());
                    }
                }
                Ok(facts.with_names(NameVisibility::Own(named)))
            }
        }
    }

    /// The namespace of the writer, if it has the operator's permission.
    async fn writer_operator_namespace<'q>(
        &self,
        question: &FactsQuery<'q>,
        caches: Option<&Caches>,
    ) -> Result<Option<&'q str>, ApiError> {
        let home = question.subject.writer.and_then(account_of).map(|(namespace, _)| namespace);
        let (Some(home), Some(user), Some(caches)) = (home, question.user.and_then(UserInfo::of_review), caches) else {
            return Ok(None);
        };
        Ok(caches.permissions().may(self, &user, &Permission::RENDER).await?.then_some(home))
    }

    /// Whether a NAD is what a live network renders: the one it names, or one with the same target.
    pub(in crate::cluster) async fn is_rendered(
        &self,
        nad: &Nad<'_>,
        facts: &Facts,
        policy: &Policy,
    ) -> Result<bool, ApiError> {
        let owner = nad.meta.owner().cloned();
        let claimants = facts.renderers(policy, &nad.meta.namespace);
        let claimants = claimants.into_iter().map(|network| network.id.clone());
        for id in owner.clone().into_iter().chain(claimants.filter(|_| owner.is_none())) {
            let Ok(path) = ApiPath::network(&id) else { continue };
            let Some(text) = self.get(&path).await? else { continue };
            if let Ok(Some(Object::Network(network))) = Object::read(&text)
                && network.target_namespace() == nad.meta.namespace
                && network.meta.name == nad.meta.name
                && policy.may_render(&NetworkFact::of(&network), &nad.meta.namespace, facts)
                && is_rendering(&network, nad, facts)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn network(&self, id: &NetworkId) -> Result<Lookup<NetworkFact>, ApiError> {
        let Ok(path) = ApiPath::network(id) else { return Ok(Lookup::Absent) };
        let Some(text) = self.get(&path).await? else { return Ok(Lookup::Absent) };
        match Object::read(&text) {
            // A network that is being deleted still owns its NAD.
            Ok(Some(Object::Network(network))) => Ok(Lookup::Found(NetworkFact::of(&network))),
            _ => Err(ApiError::Unexpected),
        }
    }

    /// What a NAD means to others; `None` if it does not exist.
    async fn network_use(&self, key: &ObjectKey) -> Result<Option<NetworkUse>, ApiError> {
        let path = ApiPath::nad(key).map_err(|_| ApiError::Unexpected)?;
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        match Object::read(&text) {
            Ok(Some(Object::Nad(nad))) => Ok(Some(NetworkUse::of(&nad))),
            _ => Err(ApiError::Unexpected),
        }
    }

    async fn nad(&self, key: &ObjectKey) -> Result<Lookup<()>, ApiError> {
        let Ok(path) = ApiPath::nad(key) else { return Ok(Lookup::Unknown) };
        Ok(self.get(&path).await?.map_or(Lookup::Absent, |_| Lookup::Found(())))
    }

    /// The networks in the NAD's or the operator's namespace that render it; only those in the operator's may target another
    /// namespace. Each is read by name: a list waits up to 100 ms for the API server's cache, and every write of the operator
    /// would wait with it. If there is one in the operator's namespace and the caches know of none in the NAD's, no other is
    /// read.
    async fn renderers_of(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        homes: &[&str],
        caches: Option<&Caches>,
    ) -> Result<Vec<NetworkFact>, ApiError> {
        let homes: Vec<_> = homes.iter().copied().filter(|home| *home != nad.namespace).collect();
        if !homes.is_empty() && caches.is_some_and(|caches| caches.has_no_network(kinds, &nad.key())) {
            let found = self.networks_in(nad, kinds, &homes).await?;
            if !found.is_empty() {
                return Ok(found);
            }
            return self.networks_in(nad, kinds, &[&nad.namespace]).await;
        }
        let all: Vec<_> = std::iter::once(&*nad.namespace).chain(homes).collect();
        self.networks_in(nad, kinds, &all).await
    }

    /// The networks in those namespaces that render a NAD.
    async fn networks_in(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        namespaces: &[&str],
    ) -> Result<Vec<NetworkFact>, ApiError> {
        let ids = namespaces.iter().flat_map(|namespace| {
            let id = |kind| NetworkId { kind, namespace: (*namespace).to_owned(), name: nad.name.clone().into_owned() };
            kinds.iter().copied().map(id)
        });
        let found = try_join_all(ids.map(|id| async move { self.network(&id).await })).await?;
        let networks = found.into_iter().filter_map(|network| match network {
            Lookup::Found(network) => Some(network),
            Lookup::Unknown | Lookup::Absent => None,
        });
        Ok(networks.filter(|network| network.target_namespace == nad.namespace).collect())
    }

    /// The same if no operator is known: networks of that name in the NAD's namespace, and those elsewhere whose namespace has an
    /// account with the operator's permission. Anybody may create a network that targets this namespace.
    async fn networks_anywhere(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        policy: &Policy,
        caches: Option<&Caches>,
    ) -> Result<(Vec<NetworkFact>, Option<Prefix>), ApiError> {
        let unkept = PermissionCache::default();
        let permissions = caches.map_or(&unkept, Caches::permissions);
        let mut listed = self.listed(&nad.name, kinds).await?;
        listed.retain(|network| network.target_namespace == nad.namespace);
        listed.sort_by_key(|network| !is_default_operator_namespace(&network.id.namespace));
        let (mut networks, mut operators) = (Vec::new(), Vec::new());
        for network in listed.into_iter().take(MAX_NAMESPACES) {
            let operator = self.operator_in(&network.id.namespace, &[], permissions).await?;
            if network.id.namespace == nad.namespace || operator.is_some() {
                networks.push(network);
            }
            operators.extend(operator);
        }
        let operators = Operators::Known(operators.into());
        self.with_prefix(networks, policy, &operators, caches).await
    }

    /// The networks, and the prefix for the first of them.
    async fn with_prefix(
        &self,
        networks: Vec<NetworkFact>,
        policy: &Policy,
        operators: &Operators,
        caches: Option<&Caches>,
    ) -> Result<(Vec<NetworkFact>, Option<Prefix>), ApiError> {
        let prefix = match networks.first() {
            Some(network) => self.prefix(policy, operators, &network.id.namespace, caches).await?,
            None => None,
        };
        Ok((networks, prefix))
    }

    /// The networks of that name, wherever they are.
    pub(in crate::cluster) async fn listed(
        &self,
        name: &str,
        kinds: &[NetworkKind],
    ) -> Result<Vec<NetworkFact>, ApiError> {
        // Before the server generates a name, no network has it.
        let paths = kinds.iter().map(|kind| ApiPath::all(ApiResource::network(*kind)).named(name));
        let Ok(paths) = paths.collect::<Result<Vec<_>, _>>() else { return Ok(Vec::new()) };
        let mut networks = Vec::new();
        for list in join_all(paths.iter().map(|path| self.get(path))).await {
            let Some(text) = list? else { continue };
            let items = Object::read_list(&text).map_err(|_| ApiError::Unexpected)?;
            networks.extend(items.iter().filter_map(|item| match item {
                Object::Network(network) => Some(NetworkFact::of(network)),
                Object::Nad(_) | Object::Claim(_) | Object::NodePolicy(_) | Object::Workload(_) => None,
            }));
        }
        Ok(networks)
    }
}
