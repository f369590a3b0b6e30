//! What is known of the cluster without asking: for warnings, and for what a moment's lag does not make wrong.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast;

use super::Cluster;
use super::collection::key;
use super::facts::{Found, Question, Source};
use super::kept::{Nads, Namespaces, Places, Policies};
use super::networks::{MOST_HERE, Networks};
use super::watch::{Cache, Held, Keep};
use super::witness::{Witness, Witnesses};
use crate::policy::{Facts, Lookup};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, Network, NetworkId, NetworkKind, Object};
use crate::telemetry::metrics::CacheMetrics;

/// All that is watched.
pub struct Caches {
    pub(super) networks: [Cache<Networks>; 3],
    pub(super) namespaces: Cache<Namespaces>,
    pub(super) policies: Cache<Policies>,
    pub(super) nads: Cache<Nads>,
    pub(super) deployments: Cache<Places>,
    configs: Cache<Places>,
    witnesses: Witnesses,
    metrics: CacheMetrics,
}

impl Caches {
    /// Begins to watch; that ends with the process.
    pub fn start(cluster: &Cluster, metrics: &CacheMetrics) -> Arc<Self> {
        let caches = Arc::new(Self::new(metrics));
        for number in 0..caches.networks.len() {
            caches.spawn(cluster, move |caches| caches.networks.get(number));
        }
        caches.spawn(cluster, |caches| Some(&caches.namespaces));
        caches.spawn(cluster, |caches| Some(&caches.policies));
        caches.spawn(cluster, |caches| Some(&caches.nads));
        caches.spawn(cluster, |caches| Some(&caches.deployments));
        caches.spawn(cluster, |caches| Some(&caches.configs));
        caches
    }

    fn new(metrics: &CacheMetrics) -> Self {
        let operators = |plural: &str| format!("/apis/{NETWORK_GROUP}/v1/{plural}");
        let witnesses = Witnesses::default();
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
            ),
            configs: Cache::new(
                "SriovOperatorConfig",
                operators("sriovoperatorconfigs"),
                "&fieldSelector=metadata.name%3Ddefault",
                metrics,
            ),
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
        which: impl Fn(&Self) -> Option<&Cache<K>> + Send + Sync + 'static,
    ) {
        let (caches, cluster) = (Arc::clone(self), cluster.clone());
        tokio::spawn(async move {
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
        let mut facts = Facts { operator_namespace: self.operator_namespace(), ..Facts::default() };
        if let Object::Network(network) = object {
            self.around(network, &mut facts);
            for kind in self.unknown() {
                self.metrics.missed(kind);
                facts.unreachable.push(format!("the cluster's objects of kind {kind} are not known"));
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

    fn operator_namespace(&self) -> Option<String> {
        let (deployments, configs) = (self.deployments.held(), self.configs.held());
        home(&places(&deployments)?, &places(&configs)?).map(str::to_owned)
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

/// The operator's namespace: the only one with both its Deployment and its configuration. Where one of the two is nowhere (some
/// charts give the Deployment another name, and the configuration may come later), the only one with the other. Where they
/// contradict each other nobody knows: anybody may give a Deployment that name, and networks would be refused for it.
pub(super) fn home<'a>(deployments: &[&'a str], configs: &[&'a str]) -> Option<&'a str> {
    let mut candidates = match (deployments, configs) {
        ([], some) | (some, []) => some.to_vec(),
        _ => deployments.iter().copied().filter(|home| configs.contains(home)).collect(),
    };
    let only = candidates.pop()?;
    candidates.is_empty().then_some(only)
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

    fn operator_namespace(&self) -> Option<String> {
        self.caches.operator_namespace()
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
    fn the_operator_is_where_nothing_contradicts_it() {
        let table: [(&[&str], &[&str], Option<&str>); 9] = [
            (&["op"], &["op"], Some("op")),
            (&["op"], &[], Some("op")),
            (&[], &["op"], Some("op")),
            (&["op", "mine"], &["op"], Some("op")),
            (&["op"], &["op", "mine"], Some("op")),
            (&["mine"], &["op"], None),
            (&["op", "mine"], &[], None),
            (&["op", "mine"], &["op", "mine"], None),
            (&[], &[], None),
        ];
        for (deployments, configs, want) in table {
            assert_eq!(home(deployments, configs), want, "{deployments:?} {configs:?}");
        }
        assert_eq!(places(&Held::Unknown), None);
        assert_eq!(places(&Held::NotInstalled), Some(Vec::new()));
    }

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
        assert!(facts.networks_here.is_empty() && facts.offered.is_none() && facts.operator_namespace.is_none());
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
        assert_eq!((facts.offered.as_deref(), facts.operator_namespace.as_deref()), (Some([].as_slice()), Some("op")));
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
        assert_eq!(facts.operator_namespace.as_deref(), Some("op"));
    }
}
