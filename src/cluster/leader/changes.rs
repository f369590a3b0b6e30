//! Tracks changes from the watches between two audits.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::audit::rewrites::RewriteTracker;
use crate::cluster::cache::observer::WatchObserver;
use crate::cluster::client::collection::ApiObject;
use crate::output::RewrittenObject;
use crate::policy::Rewrites;
use crate::resources::{NETWORKS, NetworkKind, Object, ObjectKey};

/// How long writes count.
pub(in crate::cluster) const WINDOW: Duration = Duration::from_secs(60);
/// Beyond this many keys, a full scan is cheaper.
pub(in crate::cluster) const FULL_SCAN_THRESHOLD: usize = 500;

/// How many changed pods are remembered.
const MAX_PODS: usize = 500;
/// The kind of pods, as their cache has it.
const POD: &str = "Pod";

/// How often an object must be written to be listed.
const MIN_WRITES: usize = 3;

/// What must be audited again.
#[derive(Debug, Default)]
pub(in crate::cluster) struct PendingChanges {
    /// Keys of changed NADs and networks.
    pub(in crate::cluster) nad_keys: HashSet<ObjectKey>,
    /// Pods that select networks and changed. Beyond a limit they wait for the next full scan: pods come and go all the time.
    pub(in crate::cluster) pods: HashSet<ObjectKey>,
    /// Namespaces that were created, deleted, or are terminating.
    pub(in crate::cluster) namespaces: HashSet<Box<str>>,
    /// Whether a full scan is needed.
    pub(in crate::cluster) everything: bool,
}

/// The watch observer of an audit: it records what changed, and how often.
pub(in crate::cluster) struct ChangeTracker {
    began: Instant,
    window: Duration,
    /// The observed time, once observation has ended.
    ended: OnceLock<Duration>,
    news: Mutex<PendingChanges>,
    watched: Mutex<RewriteTracker>,
    notify: Notify,
}

impl ChangeTracker {
    /// For a continuous audit.
    pub(in crate::cluster) fn new() -> Self {
        Self::within(WINDOW)
    }

    /// With another window.
    pub(in crate::cluster) fn within(window: Duration) -> Self {
        let (news, watched) = (Mutex::default(), Mutex::new(RewriteTracker::new(window)));
        Self { began: Instant::now(), window, ended: OnceLock::new(), news, watched, notify: Notify::new() }
    }

    /// Stops observing.
    pub(in crate::cluster) fn stop(&self) {
        let _ = self.ended.set(self.began.elapsed());
    }

    fn now(&self) -> Duration {
        self.ended.get().copied().unwrap_or_else(|| self.began.elapsed())
    }

    /// The write times of objects that were written repeatedly.
    pub(in crate::cluster) fn rewritten_objects(&self) -> Vec<RewrittenObject> {
        let (watched, now) = (locked(&self.watched), self.now());
        let began = now.saturating_sub(self.window);
        let of_window = |at: Duration| at.saturating_sub(began).div_duration_f64(self.window).min(1.0);
        let one = |(kind, key, rewrites): (&'static str, &ObjectKey, Rewrites)| RewrittenObject {
            kind,
            key: key.clone(),
            managers: rewrites.managers,
            fields: if rewrites.fields.is_empty() { rewrites.always } else { rewrites.fields },
            writes: watched
                .timeline(kind, key)
                .map(|write| (of_window(write.at), format!("{}: {}", write.writer.manager, write.fields.join(", "))))
                .collect(),
        };
        watched.hot(MIN_WRITES, now).into_iter().map(one).collect()
    }

    /// Takes the changes since the last call.
    pub(in crate::cluster) fn take(&self) -> PendingChanges {
        std::mem::take(&mut *locked(&self.news))
    }

    /// Waits until something has changed.
    pub(in crate::cluster) async fn changed(&self) {
        self.notify.notified().await;
    }

    /// How often an object was written lately.
    pub(in crate::cluster) fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        locked(&self.watched).rewrites(kind, key, self.now())
    }

    fn record(&self, kind: &str, object: &ApiObject<'_>) {
        let mut news = locked(&self.news);
        match kind {
            "NetworkAttachmentDefinition" => drop(news.nad_keys.insert(object.key.clone())),
            "Namespace" => drop(news.namespaces.insert(object.key.name().into())),
            POD if news.pods.len() < MAX_PODS && object.text.contains(NETWORKS) => {
                news.pods.insert(object.key.clone());
            }
            POD => return,
            kind if NetworkKind::from_kind(kind).is_some() => {
                if let Some(Object::Network(network)) = object.typed() {
                    news.nad_keys.insert(network.nad_key());
                }
            }
            // Node policies affect every network.
            _ => news.everything = true,
        }
        if news.nad_keys.len() > FULL_SCAN_THRESHOLD || news.namespaces.len() > FULL_SCAN_THRESHOLD {
            let pods = std::mem::take(&mut news.pods);
            *news = PendingChanges { everything: true, pods, ..PendingChanges::default() };
        }
        drop(news);
        self.notify.notify_one();
    }
}

impl WatchObserver for ChangeTracker {
    fn on_applied(&self, kind: &'static str, object: &ApiObject<'_>) {
        if !matches!(kind, "Namespace" | POD)
            && let Some(version) = object.version()
        {
            locked(&self.watched).record(kind, &object.key, &version, object.text, self.began.elapsed());
        }
        self.record(kind, object);
    }

    fn on_deleted(&self, kind: &'static str, object: &ApiObject<'_>) {
        self.record(kind, object);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(name: &str, target: &str) -> String {
        format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"{name}","namespace":"op"}},
            "spec":{{"networkNamespace":"{target}"}}}}"#
        )
    }

    fn named(namespace: &str, name: &str) -> String {
        format!(r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}"}}}}"#)
    }

    #[tokio::test]
    async fn changes_are_taken_once_and_many_trigger_a_full_scan() {
        let changes = ChangeTracker::new();
        let applied = |kind, text: String| changes.on_applied(kind, &ApiObject::read(&text).unwrap());
        let deleted = |kind, text: String| changes.on_deleted(kind, &ApiObject::read(&text).unwrap());
        applied("SriovNetwork", network("net", "apps"));
        applied("NetworkAttachmentDefinition", named("apps", "net"));
        deleted("Namespace", named("", "gone"));
        changes.changed().await;
        let news = changes.take();
        assert_eq!(news.nad_keys, HashSet::from([ObjectKey::new("apps", "net")]));
        assert_eq!((news.namespaces.len(), news.everything), (1, false));
        assert!(changes.take().nad_keys.is_empty());
        applied("Pod", named("apps", "plain"));
        assert!(changes.take().pods.is_empty(), "it selects no network");
        applied("SriovNetworkNodePolicy", named("op", "p"));
        assert!(changes.take().everything);
        for number in 0..=FULL_SCAN_THRESHOLD {
            deleted("NetworkAttachmentDefinition", named("apps", &number.to_string()));
        }
        let news = changes.take();
        assert!(news.everything && news.nad_keys.is_empty());
    }

    /// Pods come and go: they must not make the leader scan the cluster all the time.
    #[tokio::test]
    async fn many_changed_pods_trigger_no_full_scan() {
        let changes = ChangeTracker::new();
        for number in 0..3 * MAX_PODS {
            let pod = format!(
                r#"{{"metadata":{{"name":"p{number}","namespace":"apps","annotations":{{"{NETWORKS}":"net"}}}}}}"#
            );
            let object = ApiObject::read(&pod).unwrap();
            changes.on_applied("Pod", &object);
            changes.on_deleted("Pod", &object);
        }
        let news = changes.take();
        assert_eq!((news.pods.len(), news.everything), (MAX_PODS, false));
        assert!(changes.rewritten_objects().is_empty());
    }
}
