//! What has changed since somebody last looked, from the watches.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::witness::Witness;
use crate::audit::rewrites::{Place, Watched};
use crate::output::Rewritten;
use crate::policy::{NetworkFact, Rewrites};
use crate::resources::{NetworkKind, Object};

/// How long writes are remembered.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// With more places than this it is shorter to look at everything.
pub(super) const MOST_PLACES: usize = 500;

/// How often an object is written before it is worth a line.
const FEW: usize = 3;

/// Where a NAD is or should be: its namespace and its name.
pub(super) type Spot = (Box<str>, Box<str>);

/// What is to be looked at again.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Where a NAD or a network has changed.
    pub(super) spots: HashSet<Spot>,
    /// Namespaces that came, went, or are about to.
    pub(super) namespaces: HashSet<Box<str>>,
    /// Whether so much has changed that everything is to be looked at.
    pub(super) everything: bool,
}

/// The witness of an audit: it remembers what has changed, and how often.
pub(super) struct Changes {
    began: Instant,
    window: Duration,
    /// How long it was watched, once it is over.
    ended: OnceLock<Duration>,
    news: Mutex<News>,
    watched: Mutex<Watched>,
    bell: Notify,
}

impl Changes {
    /// For as long as somebody audits.
    pub(super) fn new() -> Self {
        Self::within(WINDOW)
    }

    /// Writes count for that long.
    pub(super) fn within(window: Duration) -> Self {
        let (news, watched) = (Mutex::default(), Mutex::new(Watched::new(window)));
        Self { began: Instant::now(), window, ended: OnceLock::new(), news, watched, bell: Notify::new() }
    }

    /// Nothing more comes, and time passes no more.
    pub(super) fn stop(&self) {
        let _ = self.ended.set(self.began.elapsed());
    }

    fn now(&self) -> Duration {
        self.ended.get().copied().unwrap_or_else(|| self.began.elapsed())
    }

    /// When each object was written, of those that were written a few times.
    pub(super) fn rewritten(&self) -> Vec<Rewritten> {
        let (watched, now) = (locked(&self.watched), self.now());
        let began = now.saturating_sub(self.window);
        let of_window = |at: Duration| at.saturating_sub(began).div_duration_f64(self.window).min(1.0);
        let one = |(place, rewrites): (Place<'_>, Rewrites)| Rewritten {
            kind: place.kind.to_owned(),
            namespace: place.namespace.to_owned(),
            name: place.name.to_owned(),
            managers: rewrites.managers,
            fields: if rewrites.fields.is_empty() { rewrites.always } else { rewrites.fields },
            writes: watched
                .timeline(place)
                .map(|write| (of_window(write.at), format!("{}: {}", write.writer.manager, write.fields.join(", "))))
                .collect(),
        };
        watched.hot(FEW, now).into_iter().map(one).collect()
    }

    /// What has changed since the last time.
    pub(super) fn take(&self) -> News {
        std::mem::take(&mut *locked(&self.news))
    }

    /// Waits until something has changed.
    pub(super) async fn heard(&self) {
        self.bell.notified().await;
    }

    /// How often an object was written lately.
    pub(super) fn rewrites(&self, kind: &str, namespace: &str, name: &str) -> Option<Rewrites> {
        locked(&self.watched).rewrites(Place { kind, namespace, name }, self.now())
    }

    fn note(&self, kind: &str, namespace: &str, name: &str, object: &str) {
        let mut news = locked(&self.news);
        match kind {
            "NetworkAttachmentDefinition" => drop(news.spots.insert((namespace.into(), name.into()))),
            "Namespace" => drop(news.namespaces.insert(name.into())),
            kind if NetworkKind::from_kind(kind).is_some() => {
                if let Ok(Some(Object::Network(network))) = Object::read(object) {
                    news.spots.insert((NetworkFact::of(&network).target_namespace.into(), name.into()));
                }
            }
            // What node policies offer concerns every network.
            _ => news.everything = true,
        }
        if news.spots.len() > MOST_PLACES || news.namespaces.len() > MOST_PLACES {
            *news = News { everything: true, ..News::default() };
        }
        drop(news);
        self.bell.notify_one();
    }
}

impl Witness for Changes {
    fn saw(&self, kind: &'static str, namespace: &str, name: &str, object: &str) {
        if kind != "Namespace" {
            locked(&self.watched).saw(Place { kind, namespace, name }, object, self.began.elapsed());
        }
        self.note(kind, namespace, name, object);
    }

    fn lost(&self, kind: &'static str, namespace: &str, name: &str, object: &str) {
        self.note(kind, namespace, name, object);
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

    #[tokio::test]
    async fn what_changed_is_told_once_and_very_much_is_everything() {
        let changes = Changes::new();
        changes.saw("SriovNetwork", "op", "net", &network("net", "apps"));
        changes.saw("NetworkAttachmentDefinition", "apps", "net", "{}");
        changes.lost("Namespace", "", "gone", "{}");
        changes.heard().await;
        let news = changes.take();
        assert_eq!(news.spots, HashSet::from([("apps".into(), "net".into())]));
        assert_eq!((news.namespaces.len(), news.everything), (1, false));
        assert!(changes.take().spots.is_empty());
        changes.saw("SriovNetworkNodePolicy", "op", "p", "{}");
        assert!(changes.take().everything);
        for number in 0..=MOST_PLACES {
            changes.lost("NetworkAttachmentDefinition", "apps", &number.to_string(), "{}");
        }
        let news = changes.take();
        assert!(news.everything && news.spots.is_empty());
    }
}
