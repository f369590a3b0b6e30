//! One collection, listed and then watched continuously. Only a small summary of each object is kept.
//!
//! ```text
//!  list, page by page ─► watch from there ─► ended normally: watch again
//!        ▲                                 └► expired or failed: list again, after a backoff
//!        └─────────────────────────────────────────────┘
//! ```
//!
//! This is not kube-runtime's `watcher`, for four reasons. It lists pages of a fixed number of objects, whatever their size; here a
//! page over 4 MiB is given up and requested again with an eighth of the objects. It deserializes each object into a type, and one
//! that does not fit fails the page or the event; here it is skipped, and the audit gets the text as it is stored. A kind that is
//! not installed is an error to it, which it retries; here that is knowledge: there are no such objects. And it swallows bookmarks,
//! so nobody knows whether a quiet watch is alive; here [`Cache::fresh_state`] does.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures_util::{AsyncBufReadExt, StreamExt};
use http::Request;
use http::header::ACCEPT_ENCODING;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::cluster::cache::observer::ObserverSlot;
use crate::cluster::cache::state::LoggedObjects;
pub(in crate::cluster) use crate::cluster::cache::state::{CacheState, Summarize};
use crate::cluster::client::backoff::{MAX_BACKOFF, MIN_BACKOFF, backoff, jittered, random};
use crate::cluster::client::collection::{ApiObject, ListPage, WatchEvent};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, Cluster};
use crate::resources::ObjectKey;
use crate::supervise::contained;
use crate::telemetry::metrics::{CacheMetrics, CacheSize};

/// The timeout for starting a watch.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeoutSeconds of a watch. The next one continues where it ended.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);
/// A watch that ends sooner counts as failed.
const MIN_WATCH: Duration = Duration::from_secs(1);
/// Without a successful list or watch for this long, the cache becomes unknown.
const STALE_AFTER: Duration = Duration::from_secs(60);
/// A watch without an event for this long may be a dead connection: the API server sends a bookmark about every minute.
const FRESH_FOR: Duration = Duration::from_secs(150);
/// The channel capacity for added objects. A slower receiver must check all objects.
const ADDITIONS_CAPACITY: usize = 256;

/// The cache of a collection.
pub(in crate::cluster) struct Cache<K> {
    /// The kind of its objects.
    pub(in crate::cluster) kind: &'static str,
    path: ApiPath,
    state: RwLock<CacheState<K>>,
    /// When the last event was received.
    last_event: Mutex<Instant>,
    listed: CancellationToken,
    additions: broadcast::Sender<Box<str>>,
    /// Whoever waits for changes; there is one at most.
    changed: Notify,
    observers: ObserverSlot,
    metrics: CacheMetrics,
}

impl<K: Summarize> Cache<K> {
    pub(in crate::cluster) fn new(kind: &'static str, path: ApiPath, metrics: &CacheMetrics) -> Self {
        let (state, listed, additions) =
            (RwLock::default(), CancellationToken::new(), broadcast::Sender::new(ADDITIONS_CAPACITY));
        let (last_event, observers) = (Mutex::new(Instant::now()), ObserverSlot::default());
        let (changed, metrics) = (Notify::new(), metrics.clone());
        Self { kind, path, state, last_event, listed, additions, changed, observers, metrics }
    }

    /// Sets the observer of every watch event.
    pub(in crate::cluster) fn with_observer(self, observers: &ObserverSlot) -> Self {
        Self { observers: observers.clone(), ..self }
    }

    /// The current state.
    pub(in crate::cluster) fn state(&self) -> RwLockReadGuard<'_, CacheState<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state, if the watch is alive: an event or a bookmark was received recently.
    pub(in crate::cluster) fn fresh_state(&self) -> Option<RwLockReadGuard<'_, CacheState<K>>> {
        let last_event = *self.last_event.lock().unwrap_or_else(PoisonError::into_inner);
        (last_event.elapsed() < FRESH_FOR).then(|| self.state())
    }

    fn mark_alive(&self) {
        *self.last_event.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until the first list is complete, or the kind is found not to be installed.
    pub(in crate::cluster) async fn listed(&self) {
        self.listed.cancelled().await;
    }

    /// Waits until something may have changed since the last call.
    pub(in crate::cluster) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The names of objects that are added from now on.
    pub(in crate::cluster) fn additions(&self) -> broadcast::Receiver<Box<str>> {
        self.additions.subscribe()
    }

    /// Lists and watches the collection continuously.
    pub(in crate::cluster) async fn follow(&self, cluster: &Cluster) {
        // Of a collection that is not watched there are no metrics.
        self.metrics.set_size(self.kind, CacheSize::Unknown);
        let _followed = ResetOnDrop(self);
        let mut attempts = Attempts { failures: 0, last_event: Instant::now() };
        let mut logged = LoggedObjects::default();
        loop {
            let pause = match self.list_and_watch(cluster, &mut attempts, &mut logged).await {
                Ok(pause) => jittered(pause, random()),
                Err(failed) => {
                    if attempts.failures == 0 {
                        warn!(kind = self.kind, error = %failed, "list or watch failed, retrying");
                    } else {
                        debug!(kind = self.kind, error = %failed, "list or watch failed again");
                    }
                    if attempts.last_event.elapsed() >= STALE_AFTER && !self.state().is_unknown() {
                        warn!(kind = self.kind, error = %failed, "no successful list or watch for 60 s; treating the cache as unknown");
                        self.replace(CacheState::Unknown);
                    }
                    let pause = backoff(attempts.failures, random());
                    attempts.failures = attempts.failures.saturating_add(1);
                    pause
                }
            };
            sleep(pause).await;
        }
    }

    /// Lists and watches until either fails or a new list is due; returns the pause before it.
    async fn list_and_watch(
        &self,
        cluster: &Cluster,
        attempts: &mut Attempts,
        logged: &mut LoggedObjects,
    ) -> Result<Duration, ApiError> {
        let listed = self.list(cluster, logged).await?;
        attempts.last_event = Instant::now();
        let Some((store, mut version)) = listed else {
            if !matches!(*self.state(), CacheState::NotInstalled) {
                info!(kind = self.kind, "kind is not installed; checking again at intervals");
            }
            self.replace(CacheState::NotInstalled);
            attempts.failures = 0;
            return Ok(MAX_BACKOFF);
        };
        if attempts.failures > 0 || !matches!(*self.state(), CacheState::Known(_)) {
            info!(kind = self.kind, objects = store.count(), "cache synced");
        }
        self.replace(CacheState::Known(store));
        loop {
            let began = Instant::now();
            let ended = self.watch(cluster, version, logged).await;
            // Only now it is known to work: with permission to list but not to watch, it must not list in a loop.
            let has_worked = began.elapsed() >= MIN_WATCH;
            if has_worked {
                *attempts = Attempts { failures: 0, last_event: Instant::now() };
            }
            version = match ended? {
                Some(version) if has_worked => version,
                None if has_worked => return Ok(MIN_BACKOFF),
                Some(_) | None => return Err(ApiError::Ended),
            };
        }
    }

    async fn list(&self, cluster: &Cluster, logged: &mut LoggedObjects) -> Result<Option<(K, String)>, ApiError> {
        let (mut store, mut version) = (K::default(), None);
        let mut pages = ListPager::of(&self.path);
        while let Some(text) = pages.next(cluster).await? {
            let page = ListPage::read(&text)?;
            for text in &page.objects {
                self.add(&mut store, ApiObject::read(text).as_ref(), logged);
            }
            version = Some(page.version.to_string());
            pages.after(&page);
        }
        Ok(version.map(|version| (store, version)))
    }

    /// Watches until the end; returns the resourceVersion to continue from, or `None` if it expired.
    async fn watch(
        &self,
        cluster: &Cluster,
        mut since: String,
        logged: &mut LoggedObjects,
    ) -> Result<Option<String>, ApiError> {
        let path = self.path.watch_from(&since, WATCH_TIMEOUT);
        // Some servers compress each event as its own stream, which the client cannot read.
        let request = Request::get(path.to_string()).header(ACCEPT_ENCODING, "identity").body(Vec::new())?;
        let stream =
            timeout(RESPONSE_TIMEOUT, cluster.client.request_stream(request)).await.map_err(|_| ApiError::Timeout)?;
        let stream = match stream {
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(None),
            stream => stream.map_err(|error| cluster.failure(error))?,
        };
        let mut lines = Box::pin(stream).lines();
        loop {
            // The server ends the watch long before; otherwise the connection is dead.
            let line = timeout(WATCH_TIMEOUT + RESPONSE_TIMEOUT, lines.next()).await.map_err(|_| ApiError::Timeout)?;
            let Some(line) = line else { return Ok(Some(since)) };
            let line = line.map_err(|_| ApiError::Ended)?;
            self.mark_alive();
            let next = contained(|| self.event(&line, logged)).unwrap_or_else(|panicked| {
                let key = contained(|| WatchEvent::read(&line).ok()?.key().cloned()).ok().flatten();
                self.skip(key.as_ref(), &panicked, logged);
                Ok(WatchProgress::On(None))
            });
            match next? {
                WatchProgress::On(version) => since = version.unwrap_or(since),
                WatchProgress::Expired => return Ok(None),
            }
        }
    }

    /// Handles one watch event.
    fn event(&self, line: &str, logged: &mut LoggedObjects) -> Result<WatchProgress, ApiError> {
        let version = match WatchEvent::read(line)? {
            WatchEvent::Applied(object) => {
                let is_added = self.change(|store| self.add(store, object.as_ref(), logged));
                object.and_then(|object| {
                    if is_added {
                        self.notify_added(&object.key);
                    }
                    self.observers.on_applied(self.kind, &object);
                    object.version()
                })
            }
            WatchEvent::Deleted(object) => object.and_then(|object| {
                self.change(|store| store.remove(&object.key));
                self.observers.on_deleted(self.kind, &object);
                object.version()
            }),
            WatchEvent::Bookmark(version) => version,
            WatchEvent::Ended(410) => return Ok(WatchProgress::Expired),
            WatchEvent::Ended(_) => return Err(ApiError::Ended),
        };
        Ok(WatchProgress::On(version.map(Cow::into_owned)))
    }

    /// Stores the summary of an object. An unreadable object is skipped, and its previous summary removed.
    fn add(&self, store: &mut K, object: Option<&ApiObject<'_>>, logged: &mut LoggedObjects) {
        let Some(object) = object else {
            return self.skip(None, &"an object without a name", logged);
        };
        let key = &object.key;
        // One object must not stop the watch in every replica.
        let problem = match contained(|| K::read(object)) {
            Ok(Some(fact)) => return store.put(key, fact),
            Ok(None) => "unexpected content for its kind".to_owned(),
            Err(panicked) => panicked.to_string(),
        };
        self.skip(Some(key), &problem, logged);
        store.remove(key);
    }

    /// Skips an object: counted, and logged once.
    fn skip(&self, key: Option<&ObjectKey>, problem: &dyn std::fmt::Display, logged: &mut LoggedObjects) {
        self.metrics.skipped(self.kind);
        if logged.is_new(key) {
            let name = key.map(ToString::to_string).unwrap_or_default();
            warn!(kind = self.kind, name, %problem, "failed to read an object, skipping it");
        }
    }

    /// Applies a change; returns whether the number of objects grew.
    fn change(&self, change: impl FnOnce(&mut K)) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let CacheState::Known(store) = &mut *state else { return false };
        let before = store.count();
        change(store);
        self.metrics.set_size(self.kind, CacheSize::Known(store.count()));
        self.changed.notify_one();
        store.count() > before
    }

    /// Notifies receivers of an added object.
    fn notify_added(&self, key: &ObjectKey) {
        if self.additions.receiver_count() > 0 {
            // It is fine if the last receiver was just dropped.
            let _ = self.additions.send(key.name().into());
        }
    }

    /// Replaces the state.
    pub(in crate::cluster) fn replace(&self, new: CacheState<K>) {
        let state = match &new {
            CacheState::Unknown => CacheSize::Unknown,
            CacheState::NotInstalled => CacheSize::Known(0),
            CacheState::Known(store) => CacheSize::Known(store.count()),
        };
        let old = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, new)
        };
        // Drop the old state outside of the lock: it may be large.
        drop(old);
        self.mark_alive();
        self.changed.notify_one();
        self.metrics.set_size(self.kind, state);
        if state != CacheSize::Unknown {
            self.listed.cancel();
        }
    }
}

/// How a watch continues after an event.
enum WatchProgress {
    /// Continue from that resourceVersion, or from the previous one if the event had none.
    On(Option<String>),
    /// The resourceVersion expired: relist.
    Expired,
}

/// Resets the cache to unknown when it is not watched any more.
struct ResetOnDrop<'c, K: Summarize>(&'c Cache<K>);

impl<K: Summarize> Drop for ResetOnDrop<'_, K> {
    fn drop(&mut self) {
        self.0.replace(CacheState::Unknown);
        self.0.metrics.remove(self.0.kind);
    }
}

/// The state of the retries.
#[derive(Debug)]
struct Attempts {
    /// Failures since the last successful watch.
    failures: u32,
    /// When the API server last responded.
    last_event: Instant,
}

#[cfg(test)]
pub(super) mod tests;
