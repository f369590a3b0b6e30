//! The continuous audit of the leader: a full scan first, then changes as they happen, and a full scan again at intervals.
//! Findings are written as reports, Events and metrics; nothing is written while nothing changes.

mod changed_pods;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{error, info, warn};

use crate::audit::context::AuditContext;
use crate::audit::finding_index::FindingIndex;
use crate::audit::stored_object::StoredObject;
use crate::cluster::cache::CachedCluster;
use crate::cluster::client::{ApiError, ApiPath, Cluster};
use crate::cluster::identity::lease::Claim;
use crate::cluster::leader::changes::{ChangeTracker, FULL_SCAN_THRESHOLD, WINDOW};
use crate::cluster::leader::completion::IncompleteObjects;
use crate::cluster::leader::deferred::DeferredObject;
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::events::EventRecorder;
use crate::cluster::leader::full_scan::FullScan;
use crate::cluster::leader::neighbour_audits::NeighbourAudits;
use crate::cluster::leader::node_policy_audit::index_key;
use crate::cluster::leader::object_audit::{NadSlot, ObjectAudit, ScanSink, Scanned, Waiting, renderers_at};
use crate::cluster::leader::reports::Reporter;
use crate::cluster::leader::scan_scope::ScanScope;
use crate::output::report::ObjectReference;
use crate::policy::rules::audit::{HOT_OBJECT, NAD_ABSENT};
use crate::policy::{NameVisibility, Operators, Policy, Rewrites};
use crate::resources::{CLAIM_GROUP, NAD_GROUP, NETWORK_GROUP, Object, ObjectKey};
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
    /// Where incomplete objects are recorded.
    pub incomplete: Arc<IncompleteObjects>,
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
                neighbours: NeighbourAudits::default(),
                due: HashMap::new(),
                due_pods: BTreeSet::new(),
                dry_run_denials: DryRunDenials::default(),
                seen: 0,
                now: Timestamp::now(),
                context: Arc::default(),
                policy: self.policy.load_full(),
            };
            tokio::select! {
                () = audit.lead() => {}
                _ = claims.wait_for(|claim| !claim.is_held()) => {}
            }
        }
    }
}

/// Clears the audit metrics and the incomplete objects when the audit ends, however it ends.
struct ClearOnDrop<'a>(&'a Auditor);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cached.caches.set_observer(None);
        self.0.incomplete.clear();
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
    /// Which NADs to audit again with another one.
    neighbours: NeighbourAudits,
    /// When to audit which object again.
    due: HashMap<ObjectKey, Instant>,
    /// The pods to audit again, one of them after each NAD or pause: NADs come first.
    due_pods: BTreeSet<ObjectKey>,
    /// Dry-run denials of missing NADs.
    dry_run_denials: DryRunDenials,
    /// How many objects were audited.
    seen: usize,
    /// The time of the last audit.
    now: Timestamp,
    /// The context of the last full scan, and what changed since.
    context: Arc<AuditContext>,
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
        self.due_pods.clear();
        // Without the permission to write reports, findings are still counted.
        let may_report = self.reporter.load(self.policy.audit.reports).await;
        if let Err(error) = &may_report {
            warn!(%error, "failed to read reports; not updating them");
        }
        self.index.begin();
        let (auditor, policy) = (self.auditor, Arc::clone(&self.policy));
        let cluster = &auditor.cached.cluster;
        // Reports and Events are readable by everybody who may read the object's namespace.
        let (names, scope) = (NameVisibility::Own(Vec::new()), ScanScope::default());
        let caches = Some(Arc::clone(&auditor.cached.caches));
        let scan = FullScan { cluster, policy: &policy, names, scope, caches };
        self.now = Timestamp::now();
        let mut dry_run_denials = std::mem::take(&mut self.dry_run_denials);
        let scan_result = scan.run(self.now, &mut dry_run_denials, self).await;
        self.dry_run_denials = dry_run_denials;
        let scan_result = scan_result?;
        for unread in &scan_result.unread {
            warn!(problem = unread.as_str(), "a part of the cluster is not audited");
        }
        self.context = Arc::new(scan_result.context);
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
            let beside = news.nad_keys.iter().flat_map(|key| self.neighbours_of(key));
            let concerned: Vec<ObjectKey> = concerned.chain(beside).chain(news.nad_keys.iter().cloned()).collect();
            for key in concerned {
                self.schedule_users_of(&key);
                self.schedule(key, DEBOUNCE);
            }
            self.schedule_pods(news.pods);
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
            self.audit_pods().await;
            let next = self.due.values().min().map_or(until, |due| until.min(*due));
            let next = if self.due_pods.is_empty() { next } else { next.min(Instant::now() + SCAN_INTERVAL) };
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.changes.changed() => sleep(SCAN_INTERVAL).await,
            }
        }
    }

    /// The NADs whose findings may be about a changed one: about it as it was, or as it is now.
    fn neighbours_of(&self, changed: &ObjectKey) -> Vec<ObjectKey> {
        let now = self.auditor.cached.caches.neighbour_keys(changed);
        self.neighbours.concerned(changed).cloned().chain(now).collect()
    }

    /// Schedules an audit of a key, unless an earlier one is scheduled.
    fn schedule(&mut self, key: ObjectKey, pause: Duration) {
        let then = Instant::now() + pause;
        self.due.entry(key).and_modify(|due| *due = then.min(*due)).or_insert(then);
    }

    /// Audits one key: the NAD and the networks that render it, read live.
    async fn audit_key(&mut self, key: &ObjectKey) -> Result<(), ApiError> {
        let caches = Arc::clone(&self.auditor.cached.caches);
        let cluster = &self.auditor.cached.cluster;
        let nad = cluster.stored_object(&ApiPath::nad(key)?).await?;
        let mut networks = Vec::new();
        for id in caches.networks_to(key) {
            networks.extend(cluster.stored_object(&ApiPath::network(&id)?).await?);
        }
        self.now = Timestamp::now();
        let policy = Arc::clone(&self.policy);
        // Nobody else holds it here, so it is changed in place.
        let context = Arc::make_mut(&mut self.context);
        context.now = self.now;
        context.offered = caches.offered();
        // A prefix from the policy does not change by itself.
        if policy.operator.namespace.is_none() && caches.operators() != Operators::Unknown {
            context.operators = caches.operators();
        }
        let renderers = renderers_at(&networks, context, &policy);
        match &nad {
            Some(nad) if !renderers.is_empty() => context.writers.record_nad(&nad.object_meta),
            _ => {
                let runs = cluster.is_operator_running(context.operators.known()).await?;
                context.is_operator_running = runs.or(context.is_operator_running);
            }
        }
        let context = Arc::clone(&self.context);
        let audit = ObjectAudit { context: &context, policy: &policy, lookup: &*caches };
        let slot = NadSlot { nad: nad.as_ref(), renderers: &renderers };
        self.index.leave(key);
        audit.nad(slot, self).await;
        for network in &networks {
            // Count this network, too, if it is waiting.
            let waited = self.index.objects_with(NAD_ABSENT.id);
            let uid = &network.object_meta.uid;
            let waits = nad.is_none() && audit.is_waiting(network);
            if waits {
                let network = DeferredObject::in_memory(network.clone());
                self.dry_run_denials.ask(cluster, vec![(&network, uid.clone())], &context).await;
            } else if nad.is_some() {
                self.dry_run_denials.forget(uid);
            }
            let denied = self.dry_run_denials.denial(uid).filter(|_| waits).map(str::to_owned);
            let waiting = Waiting { networks: waited + 1, denied: denied.as_deref() };
            audit.network(network, slot, waiting, self).await;
            // A second waiting network means that the first is no longer the only one: audit it again.
            if waited == 1 && self.index.objects_with(NAD_ABSENT.id) == 2 {
                let first: Vec<ObjectKey> =
                    self.index.keys_with(NAD_ABSENT.id).filter(|other| *other != key).cloned().collect();
                first.into_iter().for_each(|first| self.schedule(first, DEBOUNCE));
            }
        }
        if nad.is_none() && networks.is_empty() {
            self.neighbours.record(key, Vec::new());
        }
        for uid in self.index.left(key) {
            self.reporter.forget(&uid);
            self.dry_run_denials.forget(&uid);
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
            Object::Network(_) | Object::NodePolicy(_) => NETWORK_GROUP,
            Object::Claim(_) => CLAIM_GROUP,
            Object::Workload(workload) => workload.kind.group(),
        };
        let key = index_key(scanned.object);
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
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
        if matches!(scanned.object, Object::Workload(_)) {
            self.index.set_findings(uid, &key, &scanned.verdict);
            return;
        }
        self.auditor.incomplete.record(scanned.object, &scanned.verdict);
        let is_followed = !matches!(scanned.object, Object::NodePolicy(_));
        if is_followed {
            self.neighbours.record(&key, self.auditor.cached.caches.neighbour_keys(&key));
        }
        if let Some(rest) = scanned.object_meta.recheck_in(self.now, self.policy.audit.grace())
            && is_followed
        {
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
