//! What is known of the cluster without asking: for warnings, and for what a moment's lag does not make wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast;

use super::Cluster;
use super::collection::key;
use super::facts::{Asked, Found, Question, Source};
use super::kept::{DeviceClasses, Nads, Namespaces, Places, Policies};
use super::networks::{MOST_HERE, Networks};
use super::operators::Discovery;
use super::rights::{Right, Rights, User};
use super::watch::{Cache, Held, Keep};
use super::witness::{Witness, Witnesses};
use crate::policy::{Facts, Lookup, Names, NetworkFact, Operators, Policy, Subject};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, Network, NetworkId, NetworkKind, Object};
use crate::supervise::Supervisor;
use crate::telemetry::metrics::CacheMetrics;

/// All that is watched.
pub struct Caches {
    pub(super) networks: [Cache<Networks>; 3],
    pub(super) namespaces: Cache<Namespaces>,
    pub(super) policies: Cache<Policies>,
    pub(super) nads: Cache<Nads>,
    pub(super) deployments: Cache<Places>,
    configs: Cache<Places>,
    discovery: Discovery,
    /// Only the backstop asks for these, and no review waits for them.
    device_classes: Cache<DeviceClasses>,
    witnesses: Witnesses,
    metrics: CacheMetrics,
}

impl Caches {
    /// Begins to watch; that ends with the process.
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
        caches.spawn(cluster, supervisor, |caches| Some(&caches.device_classes));
        let (followed, cluster) = (Arc::clone(&caches), cluster.clone());
        supervisor.serving("operators", async move {
            followed.deployments.listed().await;
            followed.configs.listed().await;
            followed.discovery.follow(&cluster, || followed.candidates()).await;
        });
        caches
    }

    fn new(metrics: &CacheMetrics) -> Self {
        let operators = |plural: &str| format!("/apis/{NETWORK_GROUP}/v1/{plural}");
        let witnesses = Witnesses::default();
        let discovery = Discovery::new();
        let operators_change = Witnesses::default();
        operators_change.set(Some(discovery.bell()));
        let network = |kind: NetworkKind| Cache::new(kind.name(), operators(kind.plural()), "", metrics);
        Self {
            networks: NetworkKind::ALL.map(|kind| network(kind).seen_by(&witnesses)),
            namespaces: Cache::new("Namespace", "/api/v1/namespaces".to_owned(), "", metrics).seen_by(&witnesses),
            policies: Cache::new("SriovNetworkNodePolicy", operators("sriovnetworknodepolicies"), "", metrics)
                .seen_by(&witnesses),
            nads: Cache::new("NetworkAttachmentDefinition", format!("/apis/{NAD_GROUP}/v1/{NADS}"), "", metrics)
                .seen_by(&witnesses),
            deployments: Cache::new(
                "Deployment",
                "/apis/apps/v1/deployments".to_owned(),
                "&fieldSelector=metadata.name%3Dsriov-network-operator",
                metrics,
            )
            .seen_by(&operators_change),
            configs: Cache::new(
                "SriovOperatorConfig",
                operators("sriovoperatorconfigs"),
                "&fieldSelector=metadata.name%3Ddefault",
                metrics,
            )
            .seen_by(&operators_change),
            discovery,
            device_classes: Cache::new("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses".to_owned(), "", metrics),
            witnesses,
            metrics: metrics.clone(),
        }
    }

    /// From now on this one sees every write of a network, a NAD, a node policy or a namespace; `None`: nobody does.
    pub fn let_see(&self, witness: Option<Arc<dyn Witness>>) {
        self.witnesses.set(witness);
    }

    fn spawn<K: Keep>(
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

    /// Waits until everything was listed once, but no longer than that: then what is still unknown.
    pub async fn listed(&self, within: Duration) -> Vec<&'static str> {
        let networks = join_all(self.networks.iter().map(Cache::listed));
        let rest = async {
            self.namespaces.listed().await;
            self.policies.listed().await;
            self.nads.listed().await;
            self.deployments.listed().await;
            self.configs.listed().await;
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

    /// How many namespaces have the label that exempts them; `None` where that is unknown.
    pub(super) fn exempt_namespaces(&self) -> Option<usize> {
        match &*self.namespaces.held() {
            Held::Known(namespaces) => Some(namespaces.exempt()),
            Held::Unknown | Held::NotInstalled => None,
        }
    }

    /// Whether there is a DeviceClass of the SR-IOV DRA driver; `None` where that is unknown.
    pub(super) fn has_sriov_device_class(&self) -> Option<bool> {
        match &*self.device_classes.held() {
            Held::Known(classes) => Some(classes.has_sriov()),
            Held::NotInstalled => Some(false),
            Held::Unknown => None,
        }
    }

    /// The namespaces that come from now on.
    pub(super) fn namespaces(&self) -> broadcast::Receiver<Box<str>> {
        self.namespaces.news()
    }

    /// The networks that have moved to a namespace, as far as the operator is concerned not yet.
    pub(super) fn moving_to(&self, namespace: &str) -> Vec<NetworkId> {
        let mut networks = Vec::new();
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            if let Held::Known(known) = &*cache.held() {
                let found = known.moving_to(namespace);
                networks.extend(found.map(|(home, name)| NetworkId {
                    kind,
                    namespace: home.to_owned(),
                    name: name.to_owned(),
                }));
            }
        }
        networks
    }

    /// The kinds of which nothing is known.
    fn unknown(&self) -> Vec<&'static str> {
        let networks = self.networks.iter().map(|cache| (cache.kind, cache.held().is_unknown()));
        let rest = [
            (self.namespaces.kind, self.namespaces.held().is_unknown()),
            (self.policies.kind, self.policies.held().is_unknown()),
            (self.nads.kind, self.nads.held().is_unknown()),
            (self.deployments.kind, self.deployments.held().is_unknown()),
            (self.configs.kind, self.configs.held().is_unknown()),
        ];
        networks.chain(rest).filter(|(_, is_unknown)| *is_unknown).map(|(kind, _)| kind).collect()
    }

    /// What is known around an object. What a stored value is made of is not among it: a NAD's owner is asked for when it is needed.
    fn known(&self, object: &Object<'_>) -> Facts {
        // Who asks may not read what is in other namespaces, unless somebody finds out that they may.
        let names = Names::Own(Vec::new());
        let mut facts = Facts { operators: self.discovery.found(), names, ..Facts::default() };
        match object {
            Object::Nad(nad) => facts.claimants = self.claimants(&nad.meta.namespace, &nad.meta.name),
            Object::Network(network) => {
                self.around(network, &mut facts);
                for kind in self.unknown() {
                    self.metrics.missed(kind);
                    facts.unreachable.push(format!("the cluster's objects of kind {kind} are not known"));
                }
            }
        }
        facts
    }

    fn around(&self, network: &Network<'_>, facts: &mut Facts) {
        let (target, name) = (network.target_namespace(), network.meta.name.as_ref());
        facts.target_namespace = match &*self.namespaces.held() {
            Held::Known(namespaces) => namespaces.find(&target),
            Held::Unknown | Held::NotInstalled => Lookup::Unknown,
        };
        facts.offered = self.offered();
        // Where the server has still to make a name up, nothing can be there.
        if name.is_empty() {
            return;
        }
        let place = key(&target, name);
        facts.nad_here = match &*self.nads.held() {
            Held::Known(nads) => nads.find(&place),
            Held::Unknown | Held::NotInstalled => Lookup::Unknown,
        };
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            if let Held::Known(networks) = &*cache.held() {
                facts.networks_here.extend(networks.at(kind, &target, name));
            }
        }
        facts.networks_here.truncate(MOST_HERE);
    }

    /// The networks that render a NAD there, for the question whose it is; `None` while no network is known.
    fn claimants(&self, namespace: &str, name: &str) -> Option<Vec<NetworkFact>> {
        let mut claimants = Vec::new();
        for (kind, cache) in NetworkKind::ALL.into_iter().zip(&self.networks) {
            match &*cache.held() {
                Held::Known(networks) => claimants.extend(networks.at(kind, namespace, name)),
                Held::NotInstalled => {}
                Held::Unknown => return None,
            }
        }
        Some(claimants)
    }

    /// The operators, as they were found last.
    pub(super) fn operators(&self) -> Operators {
        self.discovery.found()
    }

    /// What users may do.
    pub(super) fn rights(&self) -> &Rights {
        &self.discovery.rights
    }

    /// The namespaces that may have an operator; `None` where that is unknown.
    fn candidates(&self) -> Option<Vec<String>> {
        let (deployments, configs) = (self.deployments.held(), self.configs.held());
        let all = places(&deployments)?.into_iter().chain(places(&configs)?);
        Some(all.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn is_candidate(&self, namespace: &str) -> bool {
        let holds = |held: &Held<Places>| matches!(held, Held::Known(places) if places.has(namespace));
        holds(&self.deployments.held()) || holds(&self.configs.held())
    }
}

/// The namespaces in which something is; `None` where that is unknown.
fn places(held: &Held<Places>) -> Option<Vec<&str>> {
    match held {
        Held::Unknown => None,
        Held::NotInstalled => Some(Vec::new()),
        Held::Known(places) => Some(places.all().collect()),
    }
}

/// A cluster that knows some things at once.
pub struct Informed {
    /// Who is asked.
    pub cluster: Cluster,
    /// What is known.
    pub caches: Arc<Caches>,
}

impl Source for Informed {
    fn known(&self, object: &Object<'_>) -> Facts {
        self.caches.known(object)
    }

    fn operators(&self) -> Operators {
        self.caches.operators()
    }

    fn may_be_operator(&self, user: &str) -> bool {
        self.caches.discovery.may_be_new(user, |namespace| self.caches.is_candidate(namespace))
    }

    fn identify<'a>(&'a self, user: &'a str, info: &'a str) -> Asked<'a, ()> {
        Box::pin(async move {
            let Some(info) = User::of_review(info) else { return Ok(()) };
            Ok(self.caches.discovery.learn(&self.cluster, user, &info).await?)
        })
    }

    fn vouches<'a>(
        &'a self,
        facts: &'a Facts,
        subject: &'a Subject<'a>,
        user: &'a str,
        policy: &'a Policy,
    ) -> Asked<'a, bool> {
        Box::pin(async move {
            let (Object::Nad(nad), Some(user)) = (subject.object, User::of_review(user)) else { return Ok(false) };
            let may = self.caches.rights().may(&self.cluster, &user, &Right::RENDER).await?;
            let _one = self.cluster.live_reads.acquire().await;
            Ok(may && self.cluster.is_rendered(nad, facts, policy).await?)
        })
    }

    fn find<'a>(&'a self, facts: Facts, question: Question<'a>, within: Duration) -> Found<'a> {
        self.cluster.find_beside(Some(&self.caches), facts, question, within)
    }
}

#[cfg(test)]
mod tests {
    use super::super::collection::Id;
    use super::*;
    use crate::policy::{NadFact, NamespaceState};

    #[test]
    fn what_a_watch_knows_well_enough_is_not_asked_for() {
        let caches = Caches::new(&crate::telemetry::Metrics::default().caches);
        let sriov = [NetworkKind::Sriov];
        assert_eq!(caches.prefix("op"), None, "nothing is known");
        assert!(!caches.has_none_at(&sriov, "apps", "net"), "nothing is known");

        let spec = r#"{"template":{"spec":{"containers":[{},{"env":[{"name":"A","value":"b"},{"name":"RESOURCE_PREFIX","value":"vendor.io"}]}]}}}"#;
        let deployment =
            |namespace: &str, spec: &str| object("apps", "Deployment", namespace, "sriov-network-operator", spec);
        put(&caches.deployments, &[deployment("op", spec), deployment("bare", "{}")]);
        assert_eq!(caches.prefix("op"), Some(Some("vendor.io".to_owned())));
        assert_eq!((caches.prefix("bare"), caches.prefix("elsewhere")), (Some(None), Some(None)));

        put(&caches.networks[0], &[object(NETWORK_GROUP, "SriovNetwork", "apps", "net", "{}")]);
        assert!(!caches.has_none_at(&sriov, "apps", "net"));
        assert!(caches.has_none_at(&sriov, "apps", "other") && caches.has_none_at(&sriov, "op", "net"));
        assert!(!caches.has_none_at(&NetworkKind::ALL, "apps", "other"), "of the other kinds nothing is known");
    }

    fn put<K: Keep>(cache: &Cache<K>, objects: &[String]) {
        let mut kept = K::default();
        for object in objects {
            kept.put(&Id::of(object).unwrap(), K::read(object).unwrap());
        }
        cache.take(Held::Known(kept));
    }

    fn object(api: &str, kind: &str, namespace: &str, name: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"{api}/v1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{spec}}}"#
        )
    }

    #[test]
    fn what_is_not_watched_yet_is_unknown_and_what_is_missing_then_is_absent() {
        let metrics = crate::telemetry::Metrics::default();
        let caches = Caches::new(&metrics.caches);
        let text = object(NETWORK_GROUP, "SriovNetwork", "op", "net", r#"{"networkNamespace":"apps"}"#);
        let network = Object::read(&text).unwrap().unwrap();
        let nad_text = object(NAD_GROUP, "NetworkAttachmentDefinition", "apps", "net", "{}");
        let nad = Object::read(&nad_text).unwrap().unwrap();

        let facts = caches.known(&network);
        assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Unknown, Lookup::Unknown));
        assert!(facts.networks_here.is_empty() && facts.offered.is_none() && facts.operators == Operators::Unknown);
        assert_eq!((caches.candidates(), caches.known(&nad).claimants), (None, None));
        assert!(metrics.text().contains("nadmit_cache_missed_total{kind=\"Namespace\"} 1\n"));
        assert_eq!(caches.unknown().len(), 8);

        put(&caches.namespaces, &[]);
        put(&caches.nads, &[]);
        put(&caches.policies, &[]);
        put(&caches.deployments, &[object("apps", "Deployment", "op", "sriov-network-operator", "{}")]);
        caches.configs.take(Held::NotInstalled);
        for cache in &caches.networks {
            cache.take(Held::NotInstalled);
        }
        let facts = caches.known(&network);
        assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Absent, Lookup::Absent));
        assert_eq!(facts.offered.as_deref(), Some([].as_slice()));
        assert_eq!(caches.candidates(), Some(vec!["op".to_owned()]), "a Deployment of that name proves nothing");
        assert!(caches.is_candidate("op") && !caches.is_candidate("apps") && facts.operators == Operators::Unknown);
        assert!(caches.unknown().is_empty());
        assert!(metrics.text().contains("nadmit_cache_missed_total{kind=\"Namespace\"} 1\n"), "none was missed again");

        put(&caches.namespaces, &[r#"{"metadata":{"name":"apps"}}"#.to_owned()]);
        put(&caches.nads, std::slice::from_ref(&nad_text));
        put(&caches.networks[0], std::slice::from_ref(&text));
        put(&caches.networks[2], &[object(NETWORK_GROUP, "OVSNetwork", "apps", "net", "{}")]);
        caches.policies.take(Held::NotInstalled);
        let facts = caches.known(&network);
        assert_eq!(facts.target_namespace, Lookup::Found(NamespaceState::Active));
        assert_eq!(facts.nad_here, Lookup::Found(NadFact { owner: None }));
        let here: Vec<_> = facts.networks_here.iter().map(|network| network.id.to_string()).collect();
        assert_eq!(here, ["SriovNetwork op/net", "OVSNetwork apps/net"]);
        assert_eq!(facts.offered, None, "without the kind nobody knows what is offered");

        // What decides a stored value is asked for at that moment.
        let facts = caches.known(&nad);
        assert_eq!(
            (facts.named_owner, facts.networks_here, facts.knows_networks),
            (Lookup::Unknown, Vec::new(), false)
        );
        let claimants: Vec<_> = facts.claimants.iter().flatten().map(|network| network.id.to_string()).collect();
        assert_eq!(claimants, ["SriovNetwork op/net", "OVSNetwork apps/net"]);
    }
}
