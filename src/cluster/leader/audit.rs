//! The continuous audit of the leader: a full scan first, then changes as they happen, and a full scan again at intervals.
//! Findings are written as reports, Events and metrics; nothing is written while nothing changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{error, info, warn};

use crate::audit::context::{AuditContext, NetworkContext};
use crate::audit::finding_index::FindingIndex;
use crate::audit::stored_object::StoredObject;
use crate::cluster::cache::CachedCluster;
use crate::cluster::client::{ApiError, ApiPath, Cluster};
use crate::cluster::identity::lease::Claim;
use crate::cluster::leader::changes::{ChangeTracker, FULL_SCAN_THRESHOLD, WINDOW};
use crate::cluster::leader::deferred::Later;
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::events::EventRecorder;
use crate::cluster::leader::full_scan::{FullScan, ScanSink, Scanned, renderers_at};
use crate::cluster::leader::reports::Reporter;
use crate::output::report::ObjectReference;
use crate::policy::rules::audit::{HOT_OBJECT, NAD_ABSENT};
use crate::policy::{Lookup, NameVisibility, Operators, Policy, Rewrites};
use crate::resources::{NAD_GROUP, NETWORK_GROUP, NetworkId, Object, ObjectKey};
use crate::supervise::{Panicked, Supervisor, contained_async};
use crate::telemetry::metrics::AuditMetrics;

/// Delay between a change and its audit: changes come in groups, and their authors need the API server more than an audit does.
const DEBOUNCE: Duration = Duration::from_secs(3);
/// After how many objects metrics are published during a scan: writing reports may take long if there are many.
const PUBLISH_EVERY: usize = 100;
/// The interval between two audited objects.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);
/// The minimum interval between two full scans.
const MIN_RESCAN_INTERVAL: Duration = Duration::from_secs(30);
/// The retry interval after an API error.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The continuous audit.
#[derive(Clone)]
pub struct Auditor {
    /// The cluster and its caches.
    pub cached: Arc<CachedCluster>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Metrics of the audit.
    pub metrics: AuditMetrics,
    /// The identity of this replica.
    pub identity: String,
    /// Counts skipped objects.
    pub supervisor: Supervisor,
}

impl Auditor {
    /// Audits while this replica is the leader.
    pub async fn run(self, mut claims: watch::Receiver<Claim>) {
        while claims.wait_for(Claim::is_held).await.is_ok() {
            let changes = Arc::new(ChangeTracker::new());
            let _shown = ClearOnDrop(&self);
            self.cached.caches.set_observer(Some(Arc::clone(&changes) as _));
            let cluster = &self.cached.cluster;
            let audit = LeaderAudit {
                auditor: &self,
                changes: &changes,
                reporter: Reporter::new(cluster.clone(), self.metrics.reports.clone()),
                events: EventRecorder::new(cluster.clone(), self.identity.clone()),
                index: FindingIndex::default(),
                due: HashMap::new(),
                refusals: DryRunDenials::default(),
                seen: 0,
                context: AuditContext::default(),
                policy: self.policy.load_full(),
            };
            tokio::select! {
                () = audit.lead() => {}
                _ = claims.wait_for(|claim| !claim.is_held()) => {}
            }
        }
    }
}

/// Clears the audit metrics when the audit ends, however it ends.
struct ClearOnDrop<'a>(&'a Auditor);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cached.caches.set_observer(None);
        self.0.metrics.clear();
    }
}

/// An audit while this replica leads.
struct LeaderAudit<'a> {
    auditor: &'a Auditor,
    changes: &'a ChangeTracker,
    reporter: Reporter,
    events: EventRecorder,
    /// The current findings.
    index: FindingIndex,
    /// When to audit which object again.
    due: HashMap<ObjectKey, Instant>,
    /// Dry-run denials of missing NADs.
    refusals: DryRunDenials,
    /// How many objects were audited.
    seen: usize,
    /// The context of the last full scan.
    context: AuditContext,
    policy: Arc<Policy>,
}

impl LeaderAudit<'_> {
    async fn lead(mut self) {
        loop {
            self.policy = self.auditor.policy.load_full();
            let began = Instant::now();
            let pause = match self.full_scan().await {
                Ok(()) => Duration::from_secs(self.policy.audit.rescan_seconds.into()).max(MIN_RESCAN_INTERVAL),
                Err(failed) => {
                    warn!(error = %failed, "failed to audit the cluster, retrying");
                    RETRY_INTERVAL
                }
            };
            self.follow(began + MIN_RESCAN_INTERVAL, began + pause).await;
        }
    }

    /// Runs a full scan.
    async fn full_scan(&mut self) -> Result<(), ApiError> {
        let began = Instant::now();
        // Changes from here on are audited again.
        drop(self.changes.take());
        self.due.clear();
        // Without the permission to write reports, findings are still counted.
        let may_report = self.reporter.load(self.policy.audit.reports).await;
        if let Err(error) = &may_report {
            warn!(%error, "failed to read reports; not updating them");
        }
        self.index.begin();
        let (auditor, policy) = (self.auditor, Arc::clone(&self.policy));
        let cluster = &auditor.cached.cluster;
        // Reports and Events are readable by everybody who may read the object's namespace.
        let scan = FullScan { cluster, policy: &policy, names: NameVisibility::Own(Vec::new()) };
        self.context.now = Timestamp::now();
        let mut refusals = std::mem::take(&mut self.refusals);
        let scan_result = scan.run(self.context.now, &mut refusals, self).await;
        self.refusals = refusals;
        let scan_result = scan_result?;
        for unread in &scan_result.unread {
            warn!("{unread}");
        }
        self.context = scan_result.context;
        self.index.finish();
        if may_report.is_ok()
            && let Err(error) = self.reporter.delete_stale().await
        {
            warn!(%error, "failed to delete the report of a deleted object");
        }
        self.show();
        let seconds = began.elapsed().as_secs_f64();
        self.auditor.metrics.scanned(Timestamp::now().as_millisecond() as f64 / 1000.0, seconds);
        info!(objects_with_findings = self.index.objects(), seconds, "audited the cluster");
        Ok(())
    }

    /// Audits changes until the next full scan: not before `earliest`, and at `until`.
    async fn follow(&mut self, earliest: Instant, mut until: Instant) {
        loop {
            let news = self.changes.take();
            if news.everything {
                until = until.min(earliest.max(Instant::now() + DEBOUNCE));
            }
            let concerned =
                news.namespaces.iter().flat_map(|namespace| self.auditor.cached.caches.nad_keys_in(namespace));
            let concerned: Vec<ObjectKey> = concerned.chain(news.nad_keys).collect();
            for key in concerned {
                self.schedule(key, DEBOUNCE);
            }
            let now = Instant::now();
            if now >= until {
                return;
            }
            let ready: Vec<ObjectKey> =
                self.due.iter().filter(|(_, due)| **due <= now).map(|(key, _)| key.clone()).collect();
            if ready.len() > FULL_SCAN_THRESHOLD {
                until = earliest.max(now);
                if now < until {
                    sleep_until(until).await;
                }
                continue;
            }
            for key in ready {
                self.due.remove(&key);
                match contained_async(self.audit_key(&key)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(failed)) => {
                        warn!(namespace = key.namespace(), name = key.name(), error = %failed, "failed to audit NAD and networks, retrying");
                        self.schedule(key, RETRY_INTERVAL);
                    }
                    Err(panicked) => self.skipped(&key.to_string(), &panicked),
                }
                self.show();
                sleep(SCAN_INTERVAL).await;
            }
            let next = self.due.values().min().map_or(until, |due| until.min(*due));
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.changes.changed() => {}
            }
        }
    }

    /// Schedules an audit of a key, unless an earlier one is scheduled.
    fn schedule(&mut self, key: ObjectKey, pause: Duration) {
        let then = Instant::now() + pause;
        self.due.entry(key).and_modify(|due| *due = then.min(*due)).or_insert(then);
    }

    /// Audits one key: the NAD and the networks that render it, read live.
    async fn audit_key(&mut self, key: &ObjectKey) -> Result<(), ApiError> {
        let namespace = key.namespace();
        let caches = Arc::clone(&self.auditor.cached.caches);
        let cluster = &self.auditor.cached.cluster;
        let nad = cluster.stored_object(&ApiPath::nad(key)?).await?;
        let mut networks = Vec::new();
        for id in caches.networks_at(key) {
            networks.extend(cluster.stored_object(&ApiPath::network(&id)?).await?);
        }
        let mut context = self.context.clone();
        context.now = Timestamp::now();
        context.namespaces =
            caches.namespace(namespace).map(|state| state.map(|state| (namespace.into(), state)).into_iter().collect());
        context.offered = caches.offered();
        // A prefix from the policy does not change by itself.
        if self.policy.operator.namespace.is_none() && caches.operators() != Operators::Unknown {
            context.operators = caches.operators();
        }
        let here = renderers_at(&networks, &context, &self.policy);
        if let Some(nad) = &nad
            && !here.is_empty()
        {
            self.context.writers.record_nad(&nad.object_meta);
            context.writers.record_nad(&nad.object_meta);
        } else {
            context.is_operator_running =
                cluster.is_operator_running(context.operators.known()).await?.or(context.is_operator_running);
        }
        self.context.now = context.now;
        self.index.leave(key);
        if let Some(kept) = &nad
            && let Ok(Some(object)) = Object::read(&kept.text)
        {
            let named = object.meta().owner().map_or(Lookup::Unknown, |owner: NetworkId| caches.network(&owner));
            let rewrites = self.changes.rewrites(object.kind(), key);
            let verdict = context.nad((&object, &kept.object_meta), &here, named, rewrites, &self.policy);
            let is_rendered = !here.is_empty();
            self.scanned(Scanned {
                text: &kept.text,
                object: &object,
                object_meta: &kept.object_meta,
                is_rendered,
                verdict,
            })
            .await;
        }
        for kept in &networks {
            let Ok(Some(object)) = Object::read(&kept.text) else { continue };
            let Object::Network(network) = &object else { continue };
            // Count this network, too, if it is waiting.
            let waited = self.index.objects_with(NAD_ABSENT.id);
            context.waiting = waited + 1;
            let waits = nad.is_none() && context.is_waiting(network, &kept.object_meta, &self.policy);
            if waits {
                let network = Later::held(kept.clone());
                self.refusals.ask(cluster, vec![(&network, kept.object_meta.uid.clone())], &context).await;
            } else if nad.is_some() {
                self.refusals.forget(&kept.object_meta.uid);
            }
            let refused = self.refusals.denial(&kept.object_meta.uid).filter(|_| waits);
            let of = NetworkContext { nad: nad.as_ref(), last_nad: caches.last_nad(network), refused };
            let rewrites = self.changes.rewrites(object.kind(), &network.meta.key());
            let verdict = context.network((&object, network, &kept.object_meta), &here, of, rewrites, &self.policy);
            self.scanned(Scanned {
                text: &kept.text,
                object: &object,
                object_meta: &kept.object_meta,
                is_rendered: false,
                verdict,
            })
            .await;
            // A second waiting network means that the first is no longer the only one: audit it again.
            if waited == 1 && self.index.objects_with(NAD_ABSENT.id) == 2 {
                let first: Vec<ObjectKey> =
                    self.index.keys_with(NAD_ABSENT.id).filter(|other| *other != key).cloned().collect();
                first.into_iter().for_each(|first| self.schedule(first, DEBOUNCE));
            }
        }
        for uid in self.index.left(key) {
            self.reporter.forget(&uid);
            self.refusals.forget(&uid);
        }
        Ok(())
    }

    fn show(&self) {
        self.auditor.metrics.found(self.index.counts());
    }
}

impl ScanSink for LeaderAudit<'_> {
    fn expect(&mut self, _: usize) {}

    fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        self.changes.rewrites(kind, key)
    }

    fn skipped(&mut self, object: &str, panicked: &Panicked) {
        self.auditor.supervisor.skipped("audit");
        error!(object, problem = %panicked, "audit panicked on an object, skipping it");
    }

    async fn scanned(&mut self, scanned: Scanned<'_>) {
        let (meta, uid) = (scanned.object.meta(), &*scanned.object_meta.uid);
        let group = match scanned.object {
            Object::Nad(_) => NAD_GROUP,
            Object::Network(_) => NETWORK_GROUP,
        };
        let key = scanned.object.nad_key();
        let api_version = format!("{group}/v1");
        let about = ObjectReference {
            api_version: &api_version,
            kind: scanned.object.kind(),
            namespace: &meta.namespace,
            name: &meta.name,
            uid,
        };
        if let Err(error) = self.reporter.write_report(&about, &scanned.verdict).await {
            warn!(kind = about.kind, namespace = about.namespace, name = about.name, %error, "failed to write report");
        }
        if self.policy.audit.events
            && let Err(error) = self.events.record(&about, &scanned.verdict).await
        {
            warn!(kind = about.kind, namespace = about.namespace, name = about.name, %error, "failed to record Event");
        }
        if let Some(rest) = self.context.next_check_in(scanned.object_meta, &self.policy) {
            self.schedule(key.clone(), rest + DEBOUNCE);
        }
        if scanned.verdict.findings.iter().any(|finding| finding.rule == &HOT_OBJECT) {
            self.schedule(key.clone(), WINDOW);
        }
        self.index.set_findings(uid, &key, &scanned.verdict);
        self.seen = self.seen.wrapping_add(1);
        if self.seen.is_multiple_of(PUBLISH_EVERY) {
            self.show();
        }
    }
}

impl Cluster {
    /// Reads the object at a path.
    pub(in crate::cluster) async fn stored_object(&self, path: &ApiPath) -> Result<Option<StoredObject>, ApiError> {
        Ok(self.get(path).await?.and_then(|text| StoredObject::of(&text)))
    }
}
