//! The full scan of a cluster. Lists are fetched page by page and judged as they arrive: first networks, of which a short text is
//! kept, then NADs with the networks that render them, and finally the networks without a NAD.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use crate::audit::context::{AuditContext, NetworkContext};
use crate::audit::stored_object::{ObjectMeta, StoredObject};
use crate::cluster::cache::audit_context::UnreadFacts;
use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::cluster::leader::deferred::{Later, Memory};
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::policy::{Lookup, NameVisibility, NetworkFact, Policy, Rewrites, Verdict};
use crate::resources::{NetworkId, NetworkKind, Object, ObjectKey};
use crate::supervise::{Panicked, contained, contained_async};

/// A scanned object.
pub struct Scanned<'a> {
    /// The object, as JSON, without its managedFields.
    pub text: &'a str,
    /// The parsed object.
    pub object: &'a Object<'a>,
    /// Its metadata.
    pub object_meta: &'a ObjectMeta,
    /// For a NAD: whether a network renders it.
    pub is_rendered: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// Receives the results of a scan.
pub trait ScanSink: Send {
    /// More objects will be scanned.
    fn expect(&mut self, objects: usize);

    /// How often an object was written recently, if observed.
    fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites>;

    /// An object was scanned.
    fn scanned(&mut self, scanned: Scanned<'_>) -> impl Future<Output = ()> + Send;

    /// Judging an object panicked; it was skipped.
    fn skipped(&mut self, object: &str, panicked: &Panicked);
}

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

/// The networks that were listed.
#[derive(Default)]
struct ListedNetworks {
    /// By target.
    at: HashMap<ObjectKey, Vec<Later>>,
    /// By id.
    known: HashMap<NetworkId, NetworkFact>,
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
        let context = self.cluster.audit_context(self.policy, now, &mut unread).await;
        let context = AuditContext { names: self.names.clone(), ..context };
        let mut networks = self.networks(sink).await?;
        let mut scan_result = FullScanResult { unread: unread.0, context, listing: began.elapsed() };
        let rest = self.nads(&mut networks, &mut scan_result, sink).await?;
        self.networks_without_nad(rest, &mut networks, &mut scan_result.context, refusals, sink).await?;
        Ok(scan_result)
    }

    async fn networks(&self, sink: &mut impl ScanSink) -> Result<ListedNetworks, ApiError> {
        let mut networks = ListedNetworks::default();
        let mut memory = Memory::default();
        for kind in NetworkKind::ALL {
            let mut seen = 0;
            let path = ApiPath::all(ApiResource::network(kind));
            let mut skipped = Vec::new();
            let add = |text: &str| {
                seen += 1;
                skipped.extend(
                    contained(|| networks.add(text, &mut memory))
                        .err()
                        .map(|panicked| (describe_object(text), panicked)),
                );
            };
            self.cluster.for_each_object(&path, add).await?;
            sink.expect(seen);
            skipped.iter().for_each(|(object, panicked)| sink.skipped(object, panicked));
        }
        Ok(networks)
    }

    /// Scans every NAD with its networks; returns what is left for the networks without a NAD.
    async fn nads(
        &self,
        networks: &mut ListedNetworks,
        scan_result: &mut FullScanResult,
        sink: &mut impl ScanSink,
    ) -> Result<RemainingNetworks, ApiError> {
        let mut rest = RemainingNetworks::default();
        let path = ApiPath::all(ApiResource::NADS);
        let mut pages = ListPager::of(&path);
        loop {
            let began = std::time::Instant::now();
            let Some(text) = pages.next(self.cluster).await? else { return Ok(rest) };
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
                let at = self.whole(networks.at.remove(&key).unwrap_or_default()).await?;
                if !renderers_at(&at, &scan_result.context, self.policy).is_empty() {
                    scan_result.context.writers.record_nad(&nad.object_meta);
                }
                rest.nads.insert(key);
                self.place(Some(&nad), at, networks, &scan_result.context, &mut rest, sink).await;
            }
        }
    }

    /// Scans a NAD and the networks that render it, except those that need all NADs to be known first.
    async fn place(
        &self,
        nad: Option<&StoredObject>,
        at: Vec<StoredObject>,
        networks: &ListedNetworks,
        context: &AuditContext,
        rest: &mut RemainingNetworks,
        sink: &mut impl ScanSink,
    ) {
        let here = renderers_at(&at, context, self.policy);
        if let Some(kept) = nad
            && let Err(panicked) = contained_async(self.nad(kept, &here, networks, context, sink)).await
        {
            sink.skipped(&describe_object(&kept.text), &panicked);
        }
        for network in at {
            if let Some(id) = previous_nad_key(&network.text).and_then(|_| fact(&network.text)).map(|fact| fact.id) {
                let nad = nad.and_then(|nad| Later::nad(nad, &mut rest.memory));
                let network = Later::network(id, network, &mut rest.memory);
                rest.moved.push(Moved { network, here: here.clone(), nad });
            } else {
                self.network(&network, &here, NetworkContext { nad, ..NetworkContext::default() }, context, sink).await;
            }
        }
    }

    async fn nad(
        &self,
        kept: &StoredObject,
        here: &[NetworkFact],
        networks: &ListedNetworks,
        context: &AuditContext,
        sink: &mut impl ScanSink,
    ) {
        let Ok(Some(object)) = Object::read(&kept.text) else { return };
        let meta = object.meta();
        let named = meta.owner().map_or(Lookup::Unknown, |owner| {
            networks.known.get(&owner).map_or(Lookup::Absent, |network| Lookup::Found(network.clone()))
        });
        let rewrites = sink.rewrites(object.kind(), &meta.key());
        let verdict = context.nad((&object, &kept.object_meta), here, named, rewrites, self.policy);
        let is_rendered = !here.is_empty();
        sink.scanned(Scanned {
            text: &kept.text,
            object: &object,
            object_meta: &kept.object_meta,
            is_rendered,
            verdict,
        })
        .await;
    }

    /// Scans the remaining networks: those that moved, and those without a NAD.
    async fn networks_without_nad(
        &self,
        mut rest: RemainingNetworks,
        networks: &mut ListedNetworks,
        context: &mut AuditContext,
        refusals: &mut DryRunDenials,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        for (_, at) in std::mem::take(&mut networks.at) {
            let facts = at.iter().filter_map(|network| networks.known.get(network.id.as_ref()?).cloned()).collect();
            let here = renderers(facts, context, self.policy);
            rest.moved.extend(at.into_iter().map(|network| Moved { network, here: here.clone(), nad: None }));
        }
        // Sort, because the order of a map is random.
        rest.moved.sort_by(|one, other| one.network.path.cmp(&other.network.path));
        let mut waiting = Vec::new();
        for moved in rest.moved.iter().filter(|moved| moved.nad.is_none()) {
            let Some(network) = moved.network.whole(self.cluster).await? else { continue };
            if self.is_waiting(&network, context) {
                waiting.push((&moved.network, network.object_meta.uid.clone()));
            }
        }
        context.waiting = waiting.len();
        refusals.ask(self.cluster, waiting, context).await;
        for Moved { network, here, nad } in &rest.moved {
            let Some(network) = network.whole(self.cluster).await? else { continue };
            let nad = match nad {
                Some(nad) => nad.whole(self.cluster).await?,
                None => None,
            };
            let last_nad = previous_nad_key(&network.text).map(|last| rest.nads.contains(&last));
            let waits = nad.is_none() && self.is_waiting(&network, context);
            let refused = refusals.denial(&network.object_meta.uid).filter(|_| waits);
            let of = NetworkContext { nad: nad.as_deref(), last_nad, refused };
            self.network(&network, here, of, context, sink).await;
        }
        Ok(())
    }

    /// All of these, read again where they were too large to be held; those that are gone by now are left out.
    async fn whole(&self, networks: Vec<Later>) -> Result<Vec<StoredObject>, ApiError> {
        let mut whole = Vec::with_capacity(networks.len());
        for network in networks {
            whole.extend(network.into_whole(self.cluster).await?);
        }
        Ok(whole)
    }

    fn is_waiting(&self, kept: &StoredObject, context: &AuditContext) -> bool {
        match Object::read(&kept.text) {
            Ok(Some(Object::Network(network))) => context.is_waiting(&network, &kept.object_meta, self.policy),
            _ => false,
        }
    }

    async fn network(
        &self,
        kept: &StoredObject,
        here: &[NetworkFact],
        of: NetworkContext<'_>,
        context: &AuditContext,
        sink: &mut impl ScanSink,
    ) {
        if let Err(panicked) = contained_async(self.judge_network(kept, here, of, context, sink)).await {
            sink.skipped(&describe_object(&kept.text), &panicked);
        }
    }

    async fn judge_network(
        &self,
        kept: &StoredObject,
        here: &[NetworkFact],
        of: NetworkContext<'_>,
        context: &AuditContext,
        sink: &mut impl ScanSink,
    ) {
        let Ok(Some(object)) = Object::read(&kept.text) else { return };
        let Object::Network(network) = &object else { return };
        let rewrites = sink.rewrites(object.kind(), &network.meta.key());
        let verdict = context.network((&object, network, &kept.object_meta), here, of, rewrites, self.policy);
        let scanned =
            Scanned { text: &kept.text, object: &object, object_meta: &kept.object_meta, is_rendered: false, verdict };
        sink.scanned(scanned).await;
    }
}

/// ListedNetworks that need all NADs to be known.
#[derive(Default)]
struct RemainingNetworks {
    /// The keys of all NADs.
    nads: HashSet<ObjectKey>,
    /// The networks that went elsewhere before, and those without a NAD.
    moved: Vec<Moved>,
    memory: Memory,
}

/// A network that is looked at when all NADs were seen.
struct Moved {
    network: Later,
    /// The networks that render to the same place.
    here: Vec<NetworkFact>,
    /// The NAD there.
    nad: Option<Later>,
}

impl ListedNetworks {
    fn add(&mut self, text: &str, memory: &mut Memory) {
        let (Some(kept), Some(fact)) = (StoredObject::of(text), fact(text)) else { return };
        let network = Later::network(fact.id.clone(), kept, memory);
        self.at.entry(ObjectKey::new(&fact.target_namespace, &fact.id.name)).or_default().push(network);
        self.known.insert(fact.id.clone(), fact);
    }
}

/// Kind and name of an object that may be unreadable.
pub(in crate::cluster) fn describe_object(text: &str) -> String {
    let read = || {
        let object = ApiObject::read(text)?;
        Some(format!("{} {}", object.fields.text("kind").value()?, object.key))
    };
    contained(read).ok().flatten().unwrap_or_else(|| "an object without a name".to_owned())
}

/// The networks at one key that the operator renders there.
pub(in crate::cluster) fn renderers_at(
    at: &[StoredObject],
    context: &AuditContext,
    policy: &Policy,
) -> Vec<NetworkFact> {
    renderers(at.iter().filter_map(|network| fact(&network.text)).collect(), context, policy)
}

fn renderers(facts: Vec<NetworkFact>, context: &AuditContext, policy: &Policy) -> Vec<NetworkFact> {
    let target = facts.first().map(|fact| fact.target_namespace.clone()).unwrap_or_default();
    context.renderers(facts, &target, policy)
}

/// Summarizes a network.
fn fact(text: &str) -> Option<NetworkFact> {
    match Object::read(text) {
        Ok(Some(Object::Network(network))) => Some(NetworkFact::of(&network)),
        _ => None,
    }
}

/// The key of the NAD that a network rendered before it moved, if it did.
fn previous_nad_key(text: &str) -> Option<ObjectKey> {
    let Ok(Some(Object::Network(network))) = Object::read(text) else { return None };
    network.previous_nad_key()
}
