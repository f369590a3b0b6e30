//! The audit of pods against the NADs that they select. Only stored pods are judged: what makes pods is shown by the pods it made.

use std::collections::{BTreeMap, HashMap};

use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::cluster::cache::stores::similar_key;
use crate::cluster::client::collection::ListPage;
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::cluster::leader::object_audit::{ScanSink, Scanned, describe_object};
use crate::cluster::leader::scan_scope::ScanScope;
use crate::policy::{FactLookup, Lookup, NadFact, NadSummary, NetworkCoverage, NetworkFact, Policy};
use crate::resources::{NETWORKS, Object, ObjectKey, Workload};
use crate::supervise::{contained, contained_async};

/// The key of a pod among those of NADs and networks, with which it may share namespace and name. No namespace has a slash.
pub(in crate::cluster) fn pod_place(pod: &ObjectKey) -> ObjectKey {
    ObjectKey::new(&format!("{}/Pod", pod.namespace()), pod.name())
}

/// What a full scan knows of the NADs when it comes to the pods.
#[derive(Debug, Default)]
pub(in crate::cluster) struct ListedNads {
    nads: BTreeMap<ObjectKey, NadSummary>,
    /// The networks by the NAD that they render.
    networks: HashMap<ObjectKey, Vec<NetworkFact>>,
    /// The only namespace whose NADs were listed; `None` if all were.
    pub(in crate::cluster) only: Option<String>,
    /// Whether none were.
    pub(in crate::cluster) are_unknown: bool,
}

impl ListedNads {
    /// Adds a NAD.
    pub(in crate::cluster) fn add(&mut self, key: &ObjectKey, nad: &StoredObject) {
        self.nads.insert(key.clone(), nad.nad_fact().summary);
    }

    /// Adds the networks.
    pub(in crate::cluster) fn add_networks<'n>(&mut self, networks: impl Iterator<Item = &'n NetworkFact>) {
        for network in networks {
            let nad = ObjectKey::new(&network.target_namespace, &network.id.name);
            self.networks.entry(nad).or_default().push(network.clone());
        }
    }
}

impl FactLookup for ListedNads {
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Cached
    }

    fn networks_at(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        self.networks.get(nad).into_iter().flatten().filter(|network| renders(network)).cloned().collect()
    }

    fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        let is_listed = !self.are_unknown && self.only.as_deref().is_none_or(|only| only == key.namespace());
        match self.nads.get(key) {
            Some(summary) => Lookup::Found(NadFact { summary: summary.clone(), ..NadFact::default() }),
            None if is_listed => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    fn similar_nad(&self, key: &ObjectKey) -> Option<String> {
        similar_key(&self.nads, key)
    }
}

/// Audits pods, one by one.
pub(in crate::cluster) struct PodAudit<'a> {
    pub(in crate::cluster) context: &'a AuditContext,
    pub(in crate::cluster) policy: &'a Policy,
    pub(in crate::cluster) lookup: &'a (dyn FactLookup + Sync),
}

impl PodAudit<'_> {
    /// Audits all pods of a scope that select networks, page by page. Where they may not be listed, the scan reports that and goes on.
    pub(in crate::cluster) async fn all(
        &self,
        cluster: &Cluster,
        scope: &ScanScope,
        unread: &mut Vec<String>,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        let (path, place) = match &scope.namespace {
            Some(namespace) => (ApiPath::in_namespace(ApiResource::PODS, namespace)?, format!("namespace {namespace}")),
            None => (ApiPath::all(ApiResource::PODS), "all namespaces".to_owned()),
        };
        let path = match &scope.selector {
            Some(selector) => path.selected(selector),
            None => path,
        };
        let mut pages = ListPager::of(&path);
        loop {
            let text = match pages.next(cluster).await {
                Err(failed) if failed.is_forbidden() => {
                    let right = missing(&format!("list pods in {place}"));
                    unread.push(format!("pods were not judged, although the policy says so: {right}"));
                    return Ok(());
                }
                listed => listed?,
            };
            let Some(text) = text else { return Ok(()) };
            let page = ListPage::read(&text)?;
            pages.after(&page);
            // Most pods select no network.
            for text in page.objects.iter().filter(|text| text.contains(NETWORKS)) {
                self.one(text, sink).await;
            }
        }
    }

    /// Audits a pod, if it selects networks.
    pub(in crate::cluster) async fn one(&self, text: &str, sink: &mut impl ScanSink) {
        let judged = async {
            let Some(stored) = StoredObject::of(text) else { return };
            let Some(pod) = contained(|| Workload::read_pod(&stored.text)).ok().flatten() else { return };
            let object = Object::Workload(pod);
            let verdict = self.context.at_admission(&object, self.lookup, self.policy);
            sink.expect(1);
            let object_meta = &stored.object_meta;
            sink.scanned(Scanned { text: &stored.text, object: &object, object_meta, is_rendered: false, verdict })
                .await;
        };
        if let Err(panicked) = contained_async(judged).await {
            sink.skipped(&describe_object(text), &panicked);
        }
    }
}
