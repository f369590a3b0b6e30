//! The full scan of a cluster. It fetches lists page by page: first the networks, then the NADs, each audited together with the
//! networks that render to it, and finally the networks without a NAD. The texts of short networks stay in memory in between.
//! Objects outside of the scope are read for what they say about others, and not judged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::cluster::cache::Caches;
use crate::cluster::cache::audit_context::UnreadFacts;
use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiResource, Cluster};
use crate::cluster::leader::deferred::{DeferredObject, TextBudget};
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::node_policy_audit::DeferredPolicies;
use crate::cluster::leader::object_audit::{
    AuditLookup, NadSlot, ObjectAudit, ScanSink, Waiting, describe_object, network_fact, renderers, renderers_at,
};
use crate::cluster::leader::pods::{ListedNads, PodAudit};
use crate::cluster::leader::scan_neighbours::ScanNeighbours;
use crate::cluster::leader::scan_scope::{JudgedObjects, ReadableKinds, ScanScope};
use crate::policy::{
    Lookup, NameVisibility, NamespaceState, NeighbourFact, NetworkCoverage, NetworkFact, NetworkUse, Policy,
};
use crate::resources::{NetworkId, NetworkKind, Object, ObjectKey};
use crate::supervise::contained;

/// A full scan.
pub struct FullScan<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The policy.
    pub policy: &'a Policy,
    /// Which names readers of the findings may see.
    pub names: NameVisibility,
    /// What is judged.
    pub scope: ScanScope,
    /// The caches, if there are any.
    pub caches: Option<Arc<Caches>>,
}

/// The result of a scan besides findings.
#[derive(Debug, Default)]
pub struct FullScanResult {
    /// Descriptions of what could not be read and was therefore not checked.
    pub unread: Vec<String>,
    /// The audit context.
    pub context: AuditContext,
    /// The time spent waiting for lists.
    pub listing: Duration,
}

/// The objects that were listed so far.
#[derive(Default)]
struct ScanIndex {
    /// The networks by the key of the NAD they render.
    networks_by_nad: HashMap<ObjectKey, Vec<DeferredObject>>,
    /// The networks by id.
    networks: HashMap<NetworkId, NetworkFact>,
    /// The namespaces; `None` if they could not be listed.
    namespaces: Option<HashMap<Box<str>, NamespaceState>>,
    /// The keys of the NADs.
    nads: HashSet<ObjectKey>,
    /// What could be listed.
    readable: ReadableKinds,
    /// What is judged.
    judged: JudgedObjects,
    /// What pods need to know of the NADs, if pods are judged.
    for_pods: Option<ListedNads>,
    /// What the NADs mean to each other.
    neighbours: ScanNeighbours,
}

impl AuditLookup for ScanIndex {
    fn coverage(&self) -> NetworkCoverage {
        if self.readable.covers_networks() { NetworkCoverage::Complete } else { NetworkCoverage::Partial }
    }

    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        match self.networks.get(id) {
            Some(network) => Lookup::Found(network.clone()),
            None if self.readable.covers(ApiResource::network(id.kind), &id.namespace) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        let find = |known: &HashMap<Box<str>, NamespaceState>| {
            known.get(name).map_or(Lookup::Absent, |state| Lookup::Found(*state))
        };
        self.namespaces.as_ref().map_or(Lookup::Unknown, find)
    }

    /// Correct only after all NADs were listed.
    fn nad(&self, key: &ObjectKey) -> Lookup<()> {
        match self.nads.contains(key) {
            true => Lookup::Found(()),
            false if self.knows_nads_in(key.namespace()) => Lookup::Absent,
            false => Lookup::Unknown,
        }
    }

    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        self.neighbours.find(nad, own)
    }

    fn knows_nads_in(&self, namespace: &str) -> bool {
        self.readable.covers(ApiResource::NADS, namespace)
    }
}

impl FullScan<'_> {
    /// Scans everything in the scope. A judged kind that cannot be listed is an error, unless the scope is one namespace.
    pub async fn run(
        &self,
        now: Timestamp,
        denials: &mut DryRunDenials,
        sink: &mut impl ScanSink,
    ) -> Result<FullScanResult, ApiError> {
        let began = std::time::Instant::now();
        let mut unread = UnreadFacts::default();
        let readable = self.cluster.readable_kinds(&self.scope, &mut unread).await?;
        let judged = self.cluster.judged_objects(&self.scope, &readable).await?;
        let namespace = self.scope.namespace.as_deref();
        let mut policies = DeferredPolicies::default();
        let each_policy = |text: &str| policies.add(text, &judged);
        let (context, namespaces) =
            self.cluster.audit_context(self.policy, now, namespace, each_policy, &mut unread).await;
        let mut context = AuditContext { names: self.names.clone(), ..context };
        if !readable.covers_everything() {
            // That a running operator stopped reconciling shows only in all networks and NADs.
            context.is_operator_running = context.is_operator_running.filter(|is_running| !is_running);
        }
        if let (Some(namespace), Some(known)) = (namespace, &namespaces)
            && !known.contains_key(namespace)
        {
            unread.0.push(format!("namespace `{namespace}` does not exist"));
        }
        let for_pods = self.policy.pods.is_on().then(ListedNads::default);
        let neighbours = match &self.caches {
            Some(caches) => ScanNeighbours::Cached(Arc::clone(caches)),
            None => self.cluster.list_neighbours(&readable).await?,
        };
        let mut index = ScanIndex { namespaces, readable, judged, for_pods, neighbours, ..ScanIndex::default() };
        self.networks(&mut index, sink).await?;
        let mut scan_result = FullScanResult { unread: unread.0, context, listing: began.elapsed() };
        let deferred = self.nads(&mut index, &mut scan_result, sink).await?;
        self.deferred(deferred, &mut index, &scan_result.context, denials, sink).await?;
        self.node_policies(policies, &scan_result.context, sink).await?;
        self.pods(index, &mut scan_result, sink).await?;
        Ok(scan_result)
    }

    /// Audits the pods, if the policy says so.
    async fn pods(
        &self,
        mut index: ScanIndex,
        scan_result: &mut FullScanResult,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        let Some(mut nads) = index.for_pods.take() else { return Ok(()) };
        nads.add_networks(index.networks.values());
        let covers = |namespace: &str| index.readable.covers(ApiResource::NADS, namespace);
        nads.only = self.scope.namespace.clone().filter(|_| !covers(""));
        nads.are_unknown = nads.only.as_deref().is_some_and(|namespace| !covers(namespace));
        let audit = PodAudit { context: &scan_result.context, policy: self.policy, lookup: &nads };
        audit.all(self.cluster, &self.scope, &mut scan_result.unread, sink).await
    }

    async fn networks(&self, index: &mut ScanIndex, sink: &mut impl ScanSink) -> Result<(), ApiError> {
        let mut budget = TextBudget::default();
        for kind in NetworkKind::ALL {
            let resource = ApiResource::network(kind);
            let Some(path) = index.readable.collection(resource)? else { continue };
            let mut expected = 0;
            let mut skipped = Vec::new();
            let add = |text: &str| {
                let added = contained(|| {
                    expected += usize::from(index.judged.has_text(resource, text));
                    index.add(text, &mut budget);
                });
                skipped.extend(added.err().map(|panicked| (describe_object(text), panicked)));
            };
            let listed = self.cluster.for_each_object(&path, add).await;
            listed.map_err(|failed| failed.naming(&format!("list {} in all namespaces", resource.plural())))?;
            sink.expect(expected);
            skipped.iter().for_each(|(object, panicked)| sink.skipped(object, panicked));
        }
        Ok(())
    }

    /// Audits every NAD with its networks, except the networks that need the full list of NADs.
    async fn nads(
        &self,
        index: &mut ScanIndex,
        scan_result: &mut FullScanResult,
        sink: &mut impl ScanSink,
    ) -> Result<DeferredNetworks, ApiError> {
        let mut deferred = DeferredNetworks::default();
        let Some(path) = index.readable.collection(ApiResource::NADS)? else { return Ok(deferred) };
        let mut pages = ListPager::of(&path);
        loop {
            let began = std::time::Instant::now();
            let listed = pages.next(self.cluster).await;
            let right = || format!("list {} in all namespaces", ApiResource::NADS.plural());
            let Some(text) = listed.map_err(|failed| failed.naming(&right()))? else { return Ok(deferred) };
            scan_result.listing += began.elapsed();
            let page = ListPage::read(&text)?;
            pages.after(&page);
            sink.expect(page.objects.iter().filter(|text| index.judged.has_text(ApiResource::NADS, text)).count());
            for text in &page.objects {
                let read = contained(|| StoredObject::of(text).zip(ApiObject::read(text).map(|object| object.key)));
                let read = read.unwrap_or_else(|panicked| {
                    sink.skipped(&describe_object(text), &panicked);
                    None
                });
                let Some((nad, key)) = read else { continue };
                let at = self.load_all(index.networks_by_nad.remove(&key).unwrap_or_default()).await?;
                let renderers: Arc<[NetworkFact]> = renderers_at(&at, &scan_result.context, self.policy).into();
                if !renderers.is_empty() {
                    scan_result.context.writers.record_nad(&nad.object_meta);
                }
                let is_judged = index.judged.has(ApiResource::NADS, &key);
                if let Some(for_pods) = &mut index.for_pods {
                    for_pods.add(&key, &nad);
                }
                index.nads.insert(key);
                let slot = NadSlot { nad: Some(&nad), renderers: &renderers };
                let audit = self.object_audit(&scan_result.context, index);
                if is_judged {
                    audit.nad(slot, sink).await;
                }
                for network in at {
                    let Some((id, has_moved)) = read_network(&network.text) else { continue };
                    if !index.judged.has(ApiResource::network(id.kind), &id.key()) {
                        continue;
                    }
                    if has_moved {
                        deferred.push(id, network, &nad, &renderers);
                    } else {
                        audit.network(&network, slot, Waiting::default(), sink).await;
                    }
                }
            }
        }
    }

    /// Audits the remaining networks: those that moved, and those without a NAD.
    async fn deferred(
        &self,
        mut deferred: DeferredNetworks,
        index: &mut ScanIndex,
        context: &AuditContext,
        denials: &mut DryRunDenials,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        for (_, at) in std::mem::take(&mut index.networks_by_nad) {
            let facts = at.iter().filter_map(|network| index.networks.get(network.id.as_ref()?).cloned()).collect();
            let renderers: Arc<[NetworkFact]> = renderers(facts, context, self.policy).into();
            let without_nad = |network| DeferredNetwork { network, renderers: Arc::clone(&renderers), nad: None };
            deferred.networks.extend(at.into_iter().map(without_nad));
        }
        // Sort, because the order of a map is random.
        deferred.networks.sort_by(|one, other| one.network.path.cmp(&other.network.path));
        let audit = self.object_audit(context, index);
        let is_judged = |network: &DeferredObject| {
            let id = network.id.as_ref();
            id.is_some_and(|id| index.judged.has(ApiResource::network(id.kind), &id.key()))
        };
        let (mut waiting, mut networks) = (Vec::new(), 0);
        for one in deferred.networks.iter().filter(|one| one.nad.is_none()) {
            let Some(network) = one.network.load(self.cluster).await? else { continue };
            if audit.is_waiting(&network) {
                networks += 1;
                if is_judged(&one.network) {
                    waiting.push((&one.network, network.object_meta.uid.clone()));
                }
            }
        }
        denials.ask(self.cluster, waiting, context).await;
        for DeferredNetwork { network, renderers, nad } in
            deferred.networks.iter().filter(|one| is_judged(&one.network))
        {
            let Some(network) = network.load(self.cluster).await? else { continue };
            let nad = match nad {
                Some(nad) => nad.load(self.cluster).await?,
                None => None,
            };
            let waits = nad.is_none() && audit.is_waiting(&network);
            let denied = denials.denial(&network.object_meta.uid).filter(|_| waits);
            let slot = NadSlot { nad: nad.as_deref(), renderers };
            audit.network(&network, slot, Waiting { networks, denied }, sink).await;
        }
        Ok(())
    }

    fn object_audit<'a>(&'a self, context: &'a AuditContext, lookup: &'a ScanIndex) -> ObjectAudit<'a, ScanIndex> {
        ObjectAudit { context, policy: self.policy, lookup }
    }

    /// The networks, without those that were deleted in the meantime.
    async fn load_all(&self, networks: Vec<DeferredObject>) -> Result<Vec<StoredObject>, ApiError> {
        let mut loaded = Vec::with_capacity(networks.len());
        for network in networks {
            loaded.extend(network.into_loaded(self.cluster).await?);
        }
        Ok(loaded)
    }
}

/// Networks that can be audited only after all NADs were listed.
#[derive(Default)]
struct DeferredNetworks {
    networks: Vec<DeferredNetwork>,
    budget: TextBudget,
}

/// A network that is audited after all NADs were listed.
struct DeferredNetwork {
    network: DeferredObject,
    /// The networks that the operator renders to the same key.
    renderers: Arc<[NetworkFact]>,
    /// The NAD with this key, if one exists.
    nad: Option<DeferredObject>,
}

impl DeferredNetworks {
    /// Defers a network that moved to the key of an existing NAD.
    fn push(&mut self, id: NetworkId, network: StoredObject, nad: &StoredObject, renderers: &Arc<[NetworkFact]>) {
        let nad = DeferredObject::nad(nad, &mut self.budget);
        let network = DeferredObject::network(id, network, &mut self.budget);
        self.networks.push(DeferredNetwork { network, renderers: Arc::clone(renderers), nad });
    }
}

impl ScanIndex {
    fn add(&mut self, text: &str, budget: &mut TextBudget) {
        let (Some(stored), Some(fact)) = (StoredObject::of(text), network_fact(text)) else { return };
        let network = DeferredObject::network(fact.id.clone(), stored, budget);
        self.networks_by_nad.entry(ObjectKey::new(&fact.target_namespace, &fact.id.name)).or_default().push(network);
        self.networks.insert(fact.id.clone(), fact);
    }
}

/// The id of a network, and whether it moved.
fn read_network(text: &str) -> Option<(NetworkId, bool)> {
    let Ok(Some(Object::Network(network))) = Object::read(text) else { return None };
    Some((network.id(), network.previous_nad_key().is_some()))
}
