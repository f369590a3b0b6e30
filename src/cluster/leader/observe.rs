//! Observes a cluster for a while to find write loops (`nadmit audit --observe`).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use http::Request;
use http::header::ACCEPT_ENCODING;
use tokio::time::{sleep, timeout};

use crate::cluster::cache::networks::NetworkStore;
use crate::cluster::cache::observer::ObserverSlot;
use crate::cluster::cache::stores::NadStore;
use crate::cluster::cache::watch::Cache;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::cluster::leader::changes::ChangeTracker;
use crate::output::RewrittenObject;
use crate::policy::Rewrites;
use crate::resources::{NetworkKind, ObjectKey};
use crate::telemetry::metrics::CacheMetrics;

/// The timeout of the initial lists, before the observation starts.
const FIRST_LISTS: Duration = Duration::from_secs(30);
/// The interval of progress updates.
const STEP: Duration = Duration::from_secs(1);

/// The result of an observation.
pub struct Observation {
    changes: Arc<ChangeTracker>,
    /// What was not observed, and which permission is missing.
    pub unobserved: Vec<String>,
}

impl Cluster {
    /// Observes the networks and NADs of a namespace, or of all, for that long; `passed` is called with each elapsed step.
    pub async fn observe(
        &self,
        time: Duration,
        namespace: Option<&str>,
        mut passed: impl FnMut(Duration) + Send,
    ) -> Result<Observation, ApiError> {
        let (observers, metrics, mut unobserved) = (ObserverSlot::default(), CacheMetrics::default(), Vec::new());
        let mut networks: Vec<Cache<NetworkStore>> = Vec::new();
        for kind in NetworkKind::ALL {
            let path = self.watchable(kind.name(), ApiResource::network(kind), namespace, &mut unobserved).await?;
            networks.extend(path.map(|path| Cache::new(kind.name(), path, &metrics).with_observer(&observers)));
        }
        let kind = "NetworkAttachmentDefinition";
        let path = self.watchable(kind, ApiResource::NADS, namespace, &mut unobserved).await?;
        let nads: Option<Cache<NadStore>> = path.map(|path| Cache::new(kind, path, &metrics).with_observer(&observers));

        let changes = Arc::new(ChangeTracker::within(time));
        let observed = async {
            let listed = join(join_all(networks.iter().map(Cache::listed)), join_all(nads.iter().map(Cache::listed)));
            // What is not listed by then is not observed from the beginning.
            let _ = timeout(FIRST_LISTS, listed).await;
            observers.set(Some(Arc::clone(&changes) as _));
            let mut left = time;
            while !left.is_zero() {
                let step = left.min(STEP);
                sleep(step).await;
                left -= step;
                passed(step);
            }
        };
        let followed_networks = join_all(networks.iter().map(|cache| cache.follow(self)));
        let followed_nads = join_all(nads.iter().map(|cache| cache.follow(self)));
        tokio::select! {
            () = observed => {}
            // They follow until they are dropped, unless there is nothing to follow.
            _ = join(followed_networks, followed_nads) => {}
        }
        changes.stop();
        Ok(Observation { changes, unobserved })
    }

    /// The collection of a kind, if it may be watched.
    async fn watchable(
        &self,
        kind: &str,
        resource: ApiResource,
        namespace: Option<&str>,
        unobserved: &mut Vec<String>,
    ) -> Result<Option<ApiPath>, ApiError> {
        let (path, place) = match namespace {
            Some(namespace) => (ApiPath::in_namespace(resource, namespace)?, format!("namespace {namespace}")),
            None => (ApiPath::all(resource), "all namespaces".to_owned()),
        };
        let watch = path.clone().watch().to_string();
        let request = Request::get(watch).header(ACCEPT_ENCODING, "identity").body(Vec::new())?;
        match self.client.request_stream(request).await {
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let right = missing(&format!("watch {} in {place}", resource.plural()));
                unobserved.push(format!("{kind}s were not observed: {right}"));
                Ok(None)
            }
            // Other errors are those of a kind that is not installed, or are retried.
            _ => Ok(Some(path)),
        }
    }
}

impl Observation {
    /// How often an object was written.
    pub fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        self.changes.rewrites(kind, key)
    }

    /// The write times of objects that were written repeatedly.
    pub fn rewritten_objects(&self) -> Vec<RewrittenObject> {
        self.changes.rewritten_objects()
    }
}
