//! One collection, listed and then watched for ever. Of every object only a small fact is kept, never the object.
//!
//! ```text
//!  list, page by page ─► watch from there ─► ended in good order: watch on
//!        ▲                                 └► expired or broken: list again, after a pause
//!        └─────────────────────────────────────────────┘
//! ```

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures_util::{AsyncBufReadExt, StreamExt};
use http::Request;
use http::header::ACCEPT_ENCODING;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::collection::{Event, Id, Page, version};
use super::held::Logged;
pub(super) use super::held::{Held, Keep};
use super::pages::Pages;
use super::pause::{FIRST_PAUSE, LONGEST_PAUSE, backoff, jittered, random};
use super::witness::Witnesses;
use super::{Cluster, Failed};
use crate::supervise::contained;
use crate::telemetry::metrics::{CacheMetrics, CacheState};

/// How long the beginning of a watch may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How long the API server keeps one watch open. Then the next begins where it ended.
const WATCH: Duration = Duration::from_secs(290);
/// A watch that ended sooner did not end in good order, whatever it looks like.
const SHORTEST: Duration = Duration::from_secs(1);
/// What was known so long ago, with nobody to ask since, is not known any more.
const STALE: Duration = Duration::from_secs(60);
/// What a watch has told of nothing for so long may be a connection that is dead: the API server sends a bookmark about every minute.
const QUIET: Duration = Duration::from_secs(150);
/// How many new objects wait for whoever wants to hear of them. Whoever is slower has to look at all.
const MOST_NEWS: usize = 256;

/// A collection, and what is known of it.
pub(super) struct Cache<K> {
    /// The kind of its objects.
    pub(super) kind: &'static str,
    /// Its address, and which of its objects are wanted, if not all are.
    address: String,
    selector: &'static str,
    held: RwLock<Held<K>>,
    /// When something was last heard of it.
    heard: Mutex<Instant>,
    listed: CancellationToken,
    news: broadcast::Sender<Box<str>>,
    witnesses: Witnesses,
    metrics: CacheMetrics,
}

impl<K: Keep> Cache<K> {
    pub(super) fn new(kind: &'static str, address: String, selector: &'static str, metrics: &CacheMetrics) -> Self {
        metrics.is(kind, CacheState::Unknown);
        let (held, listed, news) = (RwLock::default(), CancellationToken::new(), broadcast::Sender::new(MOST_NEWS));
        let (heard, witnesses) = (Mutex::new(Instant::now()), Witnesses::default());
        Self { kind, address, selector, held, heard, listed, news, witnesses, metrics: metrics.clone() }
    }

    /// The same, with witnesses who see every write that the watch tells of.
    pub(super) fn seen_by(self, witnesses: &Witnesses) -> Self {
        Self { witnesses: witnesses.clone(), ..self }
    }

    /// What is known now.
    pub(super) fn held(&self) -> RwLockReadGuard<'_, Held<K>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, if it can be relied on: the watch has told of something lately, and be it that nothing has changed.
    pub(super) fn fresh(&self) -> Option<RwLockReadGuard<'_, Held<K>>> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        (heard.elapsed() < QUIET).then(|| self.held())
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until the first list is complete, or the kind turned out not to be there.
    pub(super) async fn listed(&self) {
        self.listed.cancelled().await;
    }

    /// The names of the objects that come from now on, as the watch tells them.
    pub(super) fn news(&self) -> broadcast::Receiver<Box<str>> {
        self.news.subscribe()
    }

    /// Follows the collection for ever.
    pub(super) async fn follow(&self, cluster: &Cluster) {
        let _followed = Followed(self);
        let mut attempts = Attempts { failures: 0, heard: Instant::now() };
        let mut logged = Logged::default();
        loop {
            let pause = match self.round(cluster, &mut attempts, &mut logged).await {
                Ok(pause) => jittered(pause, random()),
                Err(failed) => {
                    if attempts.failures == 0 {
                        warn!(kind = self.kind, error = %failed, "the list or the watch failed; it is tried again");
                    } else {
                        debug!(kind = self.kind, error = %failed, "the list or the watch failed again");
                    }
                    if attempts.heard.elapsed() >= STALE && !self.held().is_unknown() {
                        warn!(kind = self.kind, error = %failed, "nothing was heard of it for a minute: it is unknown now");
                        self.take(Held::Unknown);
                    }
                    let pause = backoff(attempts.failures, random());
                    attempts.failures = attempts.failures.saturating_add(1);
                    pause
                }
            };
            sleep(pause).await;
        }
    }

    /// Lists and watches, until either fails or a new list is due, after that pause.
    async fn round(&self, cluster: &Cluster, attempts: &mut Attempts, logged: &mut Logged) -> Result<Duration, Failed> {
        let listed = self.list(cluster, logged).await?;
        attempts.heard = Instant::now();
        let Some((kept, mut version)) = listed else {
            if !matches!(*self.held(), Held::NotInstalled) {
                info!(kind = self.kind, "is not installed; it is looked for again from time to time");
            }
            self.take(Held::NotInstalled);
            attempts.failures = 0;
            return Ok(LONGEST_PAUSE);
        };
        if attempts.failures > 0 || !matches!(*self.held(), Held::Known(_)) {
            info!(kind = self.kind, objects = kept.count(), "listed");
        }
        self.take(Held::Known(kept));
        loop {
            let began = Instant::now();
            let ended = self.watch(cluster, version, logged).await;
            // Only now is it clear that it works: whoever may list but not watch must not list all the time.
            let has_worked = began.elapsed() >= SHORTEST;
            if has_worked {
                *attempts = Attempts { failures: 0, heard: Instant::now() };
            }
            version = match ended? {
                Some(version) if has_worked => version,
                None if has_worked => return Ok(FIRST_PAUSE),
                Some(_) | None => return Err(Failed::Ended),
            };
        }
    }

    async fn list(&self, cluster: &Cluster, logged: &mut Logged) -> Result<Option<(K, String)>, Failed> {
        let (mut kept, mut version) = (K::default(), None);
        let mut pages = Pages::of(&self.address, self.selector);
        while let Some(text) = pages.next(cluster).await? {
            let page = Page::read(&text)?;
            for object in &page.objects {
                self.keep(&mut kept, object, logged);
            }
            version = Some(page.version.to_string());
            pages.after(&page);
        }
        Ok(version.map(|version| (kept, version)))
    }

    /// Watches to the end: the version to go on from, or `None` where it is too old for that.
    async fn watch(&self, cluster: &Cluster, mut since: String, logged: &mut Logged) -> Result<Option<String>, Failed> {
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={since}{}",
            self.address,
            WATCH.as_secs(),
            self.selector
        );
        // Compressed, some servers write each event as a stream of its own, which the client cannot read.
        let request = Request::get(path).header(ACCEPT_ENCODING, "identity").body(Vec::new())?;
        let stream = timeout(ANSWER, cluster.client.request_stream(request)).await.map_err(|_| Failed::Silent)?;
        let stream = match stream {
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(None),
            stream => stream.map_err(|error| Failed::Request(Box::new(error)))?,
        };
        let mut lines = Box::pin(stream).lines();
        loop {
            // The server ends it long before; if it does not, the connection is dead and nobody has noticed.
            let line = timeout(WATCH + ANSWER, lines.next()).await.map_err(|_| Failed::Silent)?;
            let Some(line) = line else { return Ok(Some(since)) };
            let line = line.map_err(|_| Failed::Ended)?;
            self.hear();
            let next = contained(|| self.event(&line, logged)).unwrap_or_else(|panicked| {
                let id = contained(|| Id::of_event(&line)).ok().flatten();
                self.skip(id.as_ref(), &panicked, logged);
                Ok(Next::On(None))
            });
            match next? {
                Next::On(version) => since = version.unwrap_or(since),
                Next::Expired => return Ok(None),
            }
        }
    }

    /// Takes one line of a watch.
    fn event(&self, line: &str, logged: &mut Logged) -> Result<Next, Failed> {
        let object = match Event::read(line)? {
            Event::There(object) => {
                if self.change(|kept| self.keep(kept, object, logged)) {
                    self.tell(object);
                }
                self.witnesses.saw(self.kind, object);
                object
            }
            Event::Gone(object) => {
                if let Some(id) = Id::of(object) {
                    self.change(|kept| kept.remove(&id));
                }
                self.witnesses.lost(self.kind, object);
                object
            }
            Event::Bookmark(object) => object,
            Event::Ended(410) => return Ok(Next::Expired),
            Event::Ended(_) => return Err(Failed::Ended),
        };
        Ok(Next::On(version(object)))
    }

    /// Keeps what an object says. One that cannot be read is left out, and what it said before is not true any more.
    fn keep(&self, kept: &mut K, object: &str, logged: &mut Logged) {
        let id = Id::of(object);
        // An object must not end the watch of all the others, in every replica.
        let problem = match (&id, contained(|| K::read(object))) {
            (Some(id), Ok(Some(fact))) => return kept.put(id, fact),
            (_, Ok(_)) => "it is not what its kind should be".to_owned(),
            (_, Err(panicked)) => panicked.to_string(),
        };
        self.skip(id.as_ref(), &problem, logged);
        if let Some(id) = &id {
            kept.remove(id);
        }
    }

    /// An object is left out: it is counted, and logged once.
    fn skip(&self, id: Option<&Id<'_>>, problem: &dyn std::fmt::Display, logged: &mut Logged) {
        self.metrics.skipped(self.kind);
        let name = id.map(Id::key).unwrap_or_default();
        if logged.is_new(&name) {
            warn!(kind = self.kind, name = &*name, %problem, "an object cannot be read and is left out");
        }
    }

    /// Whether there is more than before.
    fn change(&self, change: impl FnOnce(&mut K)) -> bool {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let Held::Known(kept) = &mut *held else { return false };
        let before = kept.count();
        change(kept);
        self.metrics.is(self.kind, CacheState::Known(kept.count()));
        kept.count() > before
    }

    /// Tells whoever wants to hear of it.
    fn tell(&self, object: &str) {
        if self.news.receiver_count() > 0
            && let Some(id) = Id::of(object)
        {
            // That the last one has just gone is no loss.
            let _ = self.news.send(id.name.as_ref().into());
        }
    }

    /// From now on this is known.
    pub(super) fn take(&self, new: Held<K>) {
        let state = match &new {
            Held::Unknown => CacheState::Unknown,
            Held::NotInstalled => CacheState::Known(0),
            Held::Known(kept) => CacheState::Known(kept.count()),
        };
        let old = {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, new)
        };
        // It may be large, and nobody is to wait for its end.
        drop(old);
        self.hear();
        self.metrics.is(self.kind, state);
        if state != CacheState::Unknown {
            self.listed.cancel();
        }
    }
}

/// How a watch goes on after a line.
enum Next {
    /// From that version, or from the one before where the line had none.
    On(Option<String>),
    /// It must be listed again: the version to go on from is too old.
    Expired,
}

/// A watch that ended, however it ended, knows nothing any more.
struct Followed<'c, K: Keep>(&'c Cache<K>);

impl<K: Keep> Drop for Followed<'_, K> {
    fn drop(&mut self) {
        self.0.take(Held::Unknown);
    }
}

/// How it goes.
#[derive(Debug)]
struct Attempts {
    /// How many failed since a watch last worked.
    failures: u32,
    /// When the API server last answered.
    heard: Instant,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Puts objects, given as text, into a new cache.
    pub(in super::super) fn kept<K: Keep>(objects: &[String]) -> K {
        let mut kept = K::default();
        put(&mut kept, objects);
        kept
    }

    pub(in super::super) fn put<K: Keep>(kept: &mut K, objects: &[String]) {
        for object in objects {
            kept.put(&Id::of(object).unwrap(), K::read(object).unwrap());
        }
    }

    #[test]
    fn one_that_cannot_be_read_is_left_out_and_counted() {
        #[derive(Default)]
        struct Sizes(std::collections::BTreeMap<Box<str>, usize>);
        impl Keep for Sizes {
            type Fact = usize;
            fn read(object: &str) -> Option<usize> {
                (!object.contains("odd")).then_some(object.len())
            }
            fn put(&mut self, id: &Id<'_>, fact: usize) {
                self.0.insert(id.key(), fact);
            }
            fn remove(&mut self, id: &Id<'_>) {
                self.0.remove(&id.key());
            }
            fn count(&self) -> usize {
                self.0.len()
            }
        }
        let metrics = crate::telemetry::Metrics::default();
        let cache = Cache::<Sizes>::new("Thing", "/things".to_owned(), "", &metrics.caches);
        let (mut kept, mut logged) = (Sizes::default(), Logged::default());
        let named = |name: &str, rest: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":"{rest}"}}"#);
        for object in [named("a", ""), named("b", "odd"), "5".to_owned(), "{}".to_owned(), named("c", "")] {
            cache.keep(&mut kept, &object, &mut logged);
        }
        assert_eq!(kept.0.keys().map(|key| &**key).collect::<Vec<_>>(), ["/a", "/c"]);
        // What it said before is not true any more.
        cache.keep(&mut kept, &named("a", "odd"), &mut logged);
        cache.keep(&mut kept, &named("b", "odd"), &mut logged);
        assert_eq!(kept.0.keys().map(|key| &**key).collect::<Vec<_>>(), ["/c"]);
        let text = metrics.text();
        assert!(text.contains("nadmit_cache_skipped_total{kind=\"Thing\"} 5\n"), "{text}");
        // Each is logged once; those without a name once together.
        assert_eq!(logged.0.len(), 3);
        assert!(cache.held().is_unknown() && text.contains("nadmit_cache_ready{kind=\"Thing\"} 0\n"), "{text}");
        cache.take(Held::Known(kept));
        assert!(metrics.text().contains("nadmit_cache_ready{kind=\"Thing\"} 1\n"));
        assert!(metrics.text().contains("nadmit_cache_objects{kind=\"Thing\"} 1\n"));
        assert!(cache.listed.is_cancelled());
    }
}
