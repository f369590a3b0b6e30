//! The full scan of a cluster. Lists are fetched page by page and judged as they arrive: first networks, of which a short text is
//! kept, then NADs with the networks that render them, and finally the networks without a NAD.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::cluster::cache::audit_context::UnreadFacts;
use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::cluster::leader::deferred::{Later, Memory};
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::object_audit::{
    AuditLookup, NadSlot, ObjectAudit, ScanSink, Waiting, describe_object, network_fact, renderers, renderers_at,
};
use crate::policy::{Lookup, NameVisibility, NamespaceState, NetworkFact, Policy};
use crate::resources::{NetworkId, NetworkKind, Object, ObjectKey};
use crate::supervise::contained;

/// A full scan.
pub struct FullScan<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The policy.
    pub policy: &'a Policy,
    /// What may be named to readers of the findings.
    pub names: NameVisibility,
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

/// What was listed so far.
#[derive(Default)]
struct ScanIndex {
    /// The networks by the key of the NAD they render.
    at: HashMap<ObjectKey, Vec<Later>>,
    /// The networks by id.
    networks: HashMap<NetworkId, NetworkFact>,
    /// The namespaces; `None` if they could not be listed.
    namespaces: Option<HashMap<Box<str>, NamespaceState>>,
    /// The keys of the NADs.
    nads: HashSet<ObjectKey>,
}

impl AuditLookup for ScanIndex {
    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        self.networks.get(id).map_or(Lookup::Absent, |network| Lookup::Found(network.clone()))
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        let find = |known: &HashMap<Box<str>, NamespaceState>| {
            known.get(name).map_or(Lookup::Absent, |state| Lookup::Found(*state))
        };
        self.namespaces.as_ref().map_or(Lookup::Unknown, find)
    }

    /// Only after all of them were listed.
    fn nad(&self, key: &ObjectKey) -> Lookup<()> {
        if self.nads.contains(key) { Lookup::Found(()) } else { Lookup::Absent }
    }
}

impl FullScan<'_> {
    /// Scans everything. A judged kind that cannot be listed is an error.
    pub async fn run(
        &self,
        now: Timestamp,
        refusals: &mut DryRunDenials,
        sink: &mut impl ScanSink,
    ) -> Result<FullScanResult, ApiError> {
        let began = std::time::Instant::now();
        let mut unread = UnreadFacts::default();
        let (context, namespaces) = self.cluster.audit_context(self.policy, now, &mut unread).await;
        let context = AuditContext { names: self.names.clone(), ..context };
        let mut index = ScanIndex { namespaces, ..ScanIndex::default() };
        self.networks(&mut index, sink).await?;
        let mut scan_result = FullScanResult { unread: unread.0, context, listing: began.elapsed() };
        let deferred = self.nads(&mut index, &mut scan_result, sink).await?;
        self.deferred(deferred, &mut index, &scan_result.context, refusals, sink).await?;
        Ok(scan_result)
    }

    async fn networks(&self, index: &mut ScanIndex, sink: &mut impl ScanSink) -> Result<(), ApiError> {
        let mut memory = Memory::default();
        for kind in NetworkKind::ALL {
            let mut seen = 0;
            let path = ApiPath::all(ApiResource::network(kind));
            let mut skipped = Vec::new();
            let add = |text: &str| {
                seen += 1;
                skipped.extend(
                    contained(|| index.add(text, &mut memory)).err().map(|panicked| (describe_object(text), panicked)),
                );
            };
            self.cluster.for_each_object(&path, add).await?;
            sink.expect(seen);
            skipped.iter().for_each(|(object, panicked)| sink.skipped(object, panicked));
        }
        Ok(())
    }

    /// Audits every NAD with its networks, except those that need all NADs to be known first.
    async fn nads(
        &self,
        index: &mut ScanIndex,
        scan_result: &mut FullScanResult,
        sink: &mut impl ScanSink,
    ) -> Result<DeferredNetworks, ApiError> {
        let mut deferred = DeferredNetworks::default();
        let path = ApiPath::all(ApiResource::NADS);
        let mut pages = ListPager::of(&path);
        loop {
            let began = std::time::Instant::now();
            let Some(text) = pages.next(self.cluster).await? else { return Ok(deferred) };
            scan_result.listing += began.elapsed();
            let page = ListPage::read(&text)?;
            pages.after(&page);
            sink.expect(page.objects.len());
            for text in &page.objects {
                let read = contained(|| StoredObject::of(text).zip(ApiObject::read(text).map(|object| object.key)));
                let read = read.unwrap_or_else(|panicked| {
                    sink.skipped(&describe_object(text), &panicked);
                    None
                });
                let Some((nad, key)) = read else { continue };
                let at = self.whole(index.at.remove(&key).unwrap_or_default()).await?;
                let renderers: Arc<[NetworkFact]> = renderers_at(&at, &scan_result.context, self.policy).into();
                if !renderers.is_empty() {
                    scan_result.context.writers.record_nad(&nad.object_meta);
                }
                index.nads.insert(key);
                let slot = NadSlot { nad: Some(&nad), renderers: &renderers };
                let audit = self.object_audit(&scan_result.context, index);
                audit.nad(slot, sink).await;
                for network in at {
                    match moved_network(&network.text) {
                        Some(id) => deferred.push(id, network, &nad, &renderers),
                        None => audit.network(&network, slot, Waiting::default(), sink).await,
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
        refusals: &mut DryRunDenials,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        for (_, at) in std::mem::take(&mut index.at) {
            let facts = at.iter().filter_map(|network| index.networks.get(network.id.as_ref()?).cloned()).collect();
            let renderers: Arc<[NetworkFact]> = renderers(facts, context, self.policy).into();
            let without_nad = |network| DeferredNetwork { network, renderers: Arc::clone(&renderers), nad: None };
            deferred.networks.extend(at.into_iter().map(without_nad));
        }
        // Sort, because the order of a map is random.
        deferred.networks.sort_by(|one, other| one.network.path.cmp(&other.network.path));
        let audit = self.object_audit(context, index);
        let mut waiting = Vec::new();
        for one in deferred.networks.iter().filter(|one| one.nad.is_none()) {
            let Some(network) = one.network.whole(self.cluster).await? else { continue };
            if audit.is_waiting(&network) {
                waiting.push((&one.network, network.object_meta.uid.clone()));
            }
        }
        let networks = waiting.len();
        refusals.ask(self.cluster, waiting, context).await;
        for DeferredNetwork { network, renderers, nad } in &deferred.networks {
            let Some(network) = network.whole(self.cluster).await? else { continue };
            let nad = match nad {
                Some(nad) => nad.whole(self.cluster).await?,
                None => None,
            };
            let waits = nad.is_none() && audit.is_waiting(&network);
            let denied = refusals.denial(&network.object_meta.uid).filter(|_| waits);
            let slot = NadSlot { nad: nad.as_deref(), renderers };
            audit.network(&network, slot, Waiting { networks, denied }, sink).await;
        }
        Ok(())
    }

    fn object_audit<'a>(&'a self, context: &'a AuditContext, lookup: &'a ScanIndex) -> ObjectAudit<'a, ScanIndex> {
        ObjectAudit { context, policy: self.policy, lookup }
    }

    /// All of these, read again where they were too large to be held; those that are gone by now are left out.
    async fn whole(&self, networks: Vec<Later>) -> Result<Vec<StoredObject>, ApiError> {
        let mut whole = Vec::with_capacity(networks.len());
        for network in networks {
            whole.extend(network.into_whole(self.cluster).await?);
        }
        Ok(whole)
    }
}

/// Networks that need all NADs to be known.
#[derive(Default)]
struct DeferredNetworks {
    networks: Vec<DeferredNetwork>,
    memory: Memory,
}

/// A network that is audited when all NADs were seen.
struct DeferredNetwork {
    network: Later,
    /// The networks that the operator renders to the same key.
    renderers: Arc<[NetworkFact]>,
    /// The NAD there.
    nad: Option<Later>,
}

impl DeferredNetworks {
    /// A network that moved to the key of a NAD.
    fn push(&mut self, id: NetworkId, network: StoredObject, nad: &StoredObject, renderers: &Arc<[NetworkFact]>) {
        let nad = Later::nad(nad, &mut self.memory);
        let network = Later::network(id, network, &mut self.memory);
        self.networks.push(DeferredNetwork { network, renderers: Arc::clone(renderers), nad });
    }
}

impl ScanIndex {
    fn add(&mut self, text: &str, memory: &mut Memory) {
        let (Some(stored), Some(fact)) = (StoredObject::of(text), network_fact(text)) else { return };
        let network = Later::network(fact.id.clone(), stored, memory);
        self.at.entry(ObjectKey::new(&fact.target_namespace, &fact.id.name)).or_default().push(network);
        self.networks.insert(fact.id.clone(), fact);
    }
}

/// The id of a network that moved.
fn moved_network(text: &str) -> Option<NetworkId> {
    let Ok(Some(Object::Network(network))) = Object::read(text) else { return None };
    network.previous_nad_key().map(|_| network.id())
}
