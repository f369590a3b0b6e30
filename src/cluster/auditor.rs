//! The audit that never ends, of the replica that leads: everything once, then what changes, as it changes, and everything again
//! from time to time. What is found is kept as reports and told by Events and metrics; while nothing changes, nothing is written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{error, info, warn};

use super::cache::Informed;
use super::changes::{Changes, MOST_PLACES, Spot, WINDOW};
use super::events::Events;
use super::later::Later;
use super::lease::Claim;
use super::refusals::Refusals;
use super::reports::Reporter;
use super::survey::{Looked, Sink, Survey, here};
use super::{Cluster, Failed, address};
use crate::audit::around::{Around, OfNetwork};
use crate::audit::moments::Kept;
use crate::audit::standing::Standing;
use crate::output::report::About;
use crate::policy::rules::audit::{HOT_OBJECT, NAD_ABSENT};
use crate::policy::{Lookup, Names, Operators, Policy, Rewrites};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, NetworkId, Object};
use crate::supervise::{Panicked, Supervisor, contained_async};
use crate::telemetry::metrics::AuditMetrics;

/// How long after a change it is looked at: most come in groups, and whoever makes them needs the API server more than an audit does.
const SETTLES: Duration = Duration::from_secs(3);
/// After how many objects it is shown what was found so far: reports may take long to write, where there are many.
const SHOWN: usize = 100;
/// The time between two looks.
const PACE: Duration = Duration::from_millis(100);
/// How long after a look at everything there is none again, whatever changes.
const LEAST: Duration = Duration::from_secs(30);
/// The same where the API server could not be asked.
const RETRY: Duration = Duration::from_secs(10);

/// The one who audits.
#[derive(Clone)]
pub struct Auditor {
    /// The cluster, and what is known of it.
    pub informed: Arc<Informed>,
    /// The policy in force.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Where it is counted what is found.
    pub metrics: AuditMetrics,
    /// Who this replica is.
    pub identity: String,
    /// Where it is counted which objects are skipped.
    pub supervisor: Supervisor,
}

impl Auditor {
    /// Audits whenever this replica leads.
    pub async fn run(self, mut claims: watch::Receiver<Claim>) {
        while claims.wait_for(Claim::is_held).await.is_ok() {
            let changes = Arc::new(Changes::new());
            let _shown = Shown(&self);
            self.informed.caches.let_see(Some(Arc::clone(&changes) as _));
            let cluster = &self.informed.cluster;
            let audit = Running {
                auditor: &self,
                changes: &changes,
                reporter: Reporter::new(cluster.clone(), self.metrics.reports.clone()),
                events: Events::new(cluster.clone(), self.identity.clone()),
                standing: Standing::default(),
                due: HashMap::new(),
                refusals: Refusals::default(),
                seen: 0,
                around: Around::default(),
                policy: self.policy.load_full(),
            };
            tokio::select! {
                () = audit.lead() => {}
                _ = claims.wait_for(|claim| !claim.is_held()) => {}
            }
        }
    }
}

/// What an audit shows while it runs. However it ends, nothing of it stays.
struct Shown<'a>(&'a Auditor);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.informed.caches.let_see(None);
        self.0.metrics.clear();
    }
}

/// An audit while this replica leads.
struct Running<'a> {
    auditor: &'a Auditor,
    changes: &'a Changes,
    reporter: Reporter,
    events: Events,
    /// What is found now.
    standing: Standing,
    /// When to look where again.
    due: HashMap<Spot, Instant>,
    /// Who refuses NADs that do not come.
    refusals: Refusals,
    /// How many objects were looked at.
    seen: usize,
    /// What was around everything at the last look at it.
    around: Around,
    policy: Arc<Policy>,
}

impl Running<'_> {
    async fn lead(mut self) {
        loop {
            self.policy = self.auditor.policy.load_full();
            let began = Instant::now();
            let pause = match self.everything().await {
                Ok(()) => Duration::from_secs(self.policy.audit.rescan_seconds.into()).max(LEAST),
                Err(failed) => {
                    warn!(error = %failed, "the cluster could not be audited");
                    RETRY
                }
            };
            self.follow(began + LEAST, began + pause).await;
        }
    }

    /// Looks at everything.
    async fn everything(&mut self) -> Result<(), Failed> {
        let began = Instant::now();
        // What changes from here on is looked at again.
        drop(self.changes.take());
        self.due.clear();
        // Whoever may not keep reports can count all the same.
        let may_report = self.reporter.load(self.policy.audit.reports).await;
        if let Err(error) = &may_report {
            warn!(%error, "reports cannot be read, and are not brought up to date");
        }
        self.standing.begin();
        let (auditor, policy) = (self.auditor, Arc::clone(&self.policy));
        let cluster = &auditor.informed.cluster;
        // Reports and Events are read by everybody who may read the object's namespace.
        let survey = Survey { cluster, policy: &policy, names: Names::Own(Vec::new()) };
        self.around.now = Timestamp::now();
        let mut refusals = std::mem::take(&mut self.refusals);
        let surveyed = survey.run(self.around.now, &mut refusals, self).await;
        self.refusals = refusals;
        let surveyed = surveyed?;
        for unread in &surveyed.unread {
            warn!("{unread}");
        }
        self.around = surveyed.around;
        self.standing.finish();
        if may_report.is_ok()
            && let Err(error) = self.reporter.finish().await
        {
            warn!(%error, "the report of an object that is gone stays");
        }
        self.show();
        let seconds = began.elapsed().as_secs_f64();
        self.auditor.metrics.scanned(Timestamp::now().as_millisecond() as f64 / 1000.0, seconds);
        info!(objects_with_findings = self.standing.objects(), seconds, "audited the cluster");
        Ok(())
    }

    /// Looks at what changes until it is time for everything: not before `earliest`, and at `until`.
    async fn follow(&mut self, earliest: Instant, mut until: Instant) {
        loop {
            let news = self.changes.take();
            if news.everything {
                until = until.min(earliest.max(Instant::now() + SETTLES));
            }
            let concerned =
                news.namespaces.iter().flat_map(|namespace| self.auditor.informed.caches.spots_in(namespace));
            let concerned: Vec<Spot> = concerned.chain(news.spots).collect();
            for spot in concerned {
                self.look_in(spot, SETTLES);
            }
            let now = Instant::now();
            if now >= until {
                return;
            }
            let ready: Vec<Spot> =
                self.due.iter().filter(|(_, due)| **due <= now).map(|(spot, _)| spot.clone()).collect();
            if ready.len() > MOST_PLACES {
                until = earliest.max(now);
                if now < until {
                    sleep_until(until).await;
                }
                continue;
            }
            for spot in ready {
                self.due.remove(&spot);
                match contained_async(self.look(&spot)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(failed)) => {
                        warn!(namespace = &*spot.0, name = &*spot.1, error = %failed, "could not be audited");
                        self.look_in(spot, RETRY);
                    }
                    Err(panicked) => self.skipped(&format!("{}/{}", spot.0, spot.1), &panicked),
                }
                self.show();
                sleep(PACE).await;
            }
            let next = self.due.values().min().map_or(until, |due| until.min(*due));
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.changes.heard() => {}
            }
        }
    }

    /// There is to be a look then, if none comes sooner.
    fn look_in(&mut self, spot: Spot, pause: Duration) {
        let then = Instant::now() + pause;
        self.due.entry(spot).and_modify(|due| *due = then.min(*due)).or_insert(then);
    }

    /// Looks at one place: the NAD there, and the networks that render it, as they are now.
    async fn look(&mut self, spot: &Spot) -> Result<(), Failed> {
        let (namespace, name) = (&*spot.0, &*spot.1);
        let caches = Arc::clone(&self.auditor.informed.caches);
        let cluster = &self.auditor.informed.cluster;
        let nad = cluster.kept(&address(NAD_GROUP, NADS, namespace, name)).await?;
        let mut networks = Vec::new();
        for id in caches.networks_at(namespace, name) {
            let path = address(NETWORK_GROUP, id.kind.plural(), &id.namespace, &id.name);
            networks.extend(cluster.kept(&path).await?);
        }
        let mut around = self.around.clone();
        around.now = Timestamp::now();
        around.namespaces =
            caches.namespace(namespace).map(|state| state.map(|state| (namespace.into(), state)).into_iter().collect());
        around.offered = caches.offered();
        // The policy's word does not change by itself.
        if self.policy.operator.namespace.is_none() && caches.operators() != Operators::Unknown {
            around.operators = caches.operators();
        }
        let here = here(&networks, &around, &self.policy);
        if let Some(nad) = &nad
            && !here.is_empty()
        {
            self.around.writers.saw(&nad.moments);
            around.writers.saw(&nad.moments);
        } else {
            around.operator_runs = cluster.operator_runs(around.operators.known()).await?.or(around.operator_runs);
        }
        self.around.now = around.now;
        self.standing.leave(namespace, name);
        if let Some(kept) = &nad
            && let Ok(Some(object)) = Object::read(&kept.text)
        {
            let named = object.meta().owner().map_or(Lookup::Unknown, |owner: NetworkId| caches.network(&owner));
            let rewrites = self.changes.rewrites(object.kind(), namespace, name);
            let verdict = around.nad((&object, &kept.moments), &here, named, rewrites, &self.policy);
            let is_rendered = !here.is_empty();
            self.looked(Looked { text: &kept.text, object: &object, moments: &kept.moments, is_rendered, verdict })
                .await;
        }
        for kept in &networks {
            let Ok(Some(object)) = Object::read(&kept.text) else { continue };
            let Object::Network(network) = &object else { continue };
            // This one waits, too, if it does.
            let waited = self.standing.objects_with(NAD_ABSENT.id);
            around.waiting = waited + 1;
            let waits = nad.is_none() && around.waits(network, &kept.moments, &self.policy);
            if waits {
                let network = Later::held(kept.clone());
                self.refusals.ask(cluster, vec![(&network, kept.moments.uid.clone())], &around).await;
            } else if nad.is_some() {
                self.refusals.forget(&kept.moments.uid);
            }
            let refused = self.refusals.said(&kept.moments.uid).filter(|_| waits);
            let of = OfNetwork { nad: nad.as_ref(), last_nad: caches.last_nad(network), refused };
            let rewrites = self.changes.rewrites(object.kind(), &network.meta.namespace, &network.meta.name);
            let verdict = around.network((&object, network, &kept.moments), &here, of, rewrites, &self.policy);
            self.looked(Looked {
                text: &kept.text,
                object: &object,
                moments: &kept.moments,
                is_rendered: false,
                verdict,
            })
            .await;
            // The second that waits shows that the first does not wait alone.
            if waited == 1 && self.standing.objects_with(NAD_ABSENT.id) == 2 {
                let first: Vec<Spot> = self.standing.spots_with(NAD_ABSENT.id).filter(|other| other != spot).collect();
                first.into_iter().for_each(|first| self.look_in(first, SETTLES));
            }
        }
        for uid in self.standing.left(namespace, name) {
            self.reporter.forget(&uid);
            self.refusals.forget(&uid);
        }
        Ok(())
    }

    fn show(&self) {
        self.auditor.metrics.found(self.standing.counts());
    }
}

impl Sink for Running<'_> {
    fn expects(&mut self, _: usize) {}

    fn rewrites(&self, kind: &str, namespace: &str, name: &str) -> Option<Rewrites> {
        self.changes.rewrites(kind, namespace, name)
    }

    fn skipped(&mut self, object: &str, panicked: &Panicked) {
        self.auditor.supervisor.skipped("audit");
        error!(object, problem = %panicked, "an object made the audit panic and is skipped");
    }

    async fn looked(&mut self, looked: Looked<'_>) {
        let (meta, uid) = (looked.object.meta(), &*looked.moments.uid);
        let (group, target) = match looked.object {
            Object::Nad(_) => (NAD_GROUP, meta.namespace.clone()),
            Object::Network(network) => (NETWORK_GROUP, network.target_namespace()),
        };
        let spot: Spot = (target.as_ref().into(), meta.name.as_ref().into());
        let api_version = format!("{group}/v1");
        let about = About {
            api_version: &api_version,
            kind: looked.object.kind(),
            namespace: &meta.namespace,
            name: &meta.name,
            uid,
        };
        if let Err(error) = self.reporter.keep(&about, &looked.verdict).await {
            warn!(kind = about.kind, namespace = about.namespace, name = about.name, %error, "a report could not be kept");
        }
        if self.policy.audit.events
            && let Err(error) = self.events.tell(&about, &looked.verdict).await
        {
            warn!(kind = about.kind, namespace = about.namespace, name = about.name, %error, "an Event could not be written");
        }
        if let Some(rest) = self.around.due_in(looked.moments, &self.policy) {
            self.look_in(spot.clone(), rest + SETTLES);
        }
        if looked.verdict.findings.iter().any(|finding| finding.rule == &HOT_OBJECT) {
            self.look_in(spot.clone(), WINDOW);
        }
        self.standing.stands(uid, (&spot.0, &spot.1), &looked.verdict);
        self.seen = self.seen.wrapping_add(1);
        if self.seen.is_multiple_of(SHOWN) {
            self.show();
        }
    }
}

impl Cluster {
    /// The object at an address, as an audit keeps it.
    pub(super) async fn kept(&self, path: &str) -> Result<Option<Kept>, Failed> {
        Ok(self.get(path).await?.and_then(|text| Kept::of(&text)))
    }
}
