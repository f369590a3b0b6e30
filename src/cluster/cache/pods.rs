//! The pods that select networks, and the NADs that they use. They are watched only while the policy judges pods: a cluster has many
//! times more pods than NADs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::sleep;
use tracing::info;

use crate::cluster::cache::Caches;
use crate::cluster::cache::watch::{CacheState, Summarize};
use crate::cluster::client::Cluster;
use crate::cluster::client::collection::{ApiObject, members};
use crate::policy::{NadUsers, Policy};
use crate::resources::{NETWORKS, ObjectKey, SelectedNetwork, Workload};

/// How soon a changed policy is noticed.
const POLICY_INTERVAL: Duration = Duration::from_secs(2);
/// How many NADs of one pod are cached: its annotation is written by whoever creates it.
const MAX_NADS: usize = 64;
/// How many pods are named to whoever deletes a NAD.
const MAX_NAMED: usize = 3;

/// The pods that select networks. Of each only the keys are kept, and each key once.
#[derive(Debug, Default)]
pub(in crate::cluster) struct PodStore {
    nads_of: HashMap<Arc<ObjectKey>, Box<[Arc<ObjectKey>]>>,
    users_of: HashMap<Arc<ObjectKey>, BTreeSet<Arc<ObjectKey>>>,
}

impl PodStore {
    /// The pods that use a NAD.
    pub(in crate::cluster) fn users(&self, nad: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.users_of.get(nad).into_iter().flatten().map(AsRef::as_ref)
    }

    fn deletion_users(&self, nad: &ObjectKey) -> NadUsers {
        let mut users = NadUsers::default();
        for pod in self.users(nad) {
            if pod.namespace() != nad.namespace() {
                users.has_others = true;
                continue;
            }
            users.count += 1;
            if users.pods.len() < MAX_NAMED {
                users.pods.push(pod.name().to_owned());
            }
        }
        users
    }
}

impl Summarize for PodStore {
    /// The NADs that it uses; none for most pods.
    type Summarized = Vec<ObjectKey>;

    fn read(object: &ApiObject<'_>) -> Option<Vec<ObjectKey>> {
        let annotations = members(&object.meta, "annotations");
        let selects = annotations.is_some_and(|annotations| annotations.raw(NETWORKS).is_some());
        let phase = members(&object.fields, "status").and_then(|status| status.text("phase").value());
        if !selects || matches!(phase.as_deref(), Some("Succeeded" | "Failed")) {
            return Some(Vec::new());
        }
        let Some(pod) = Workload::read_pod(object.text).filter(|pod| !pod.is_on_host_network) else {
            return Some(Vec::new());
        };
        let nads: BTreeSet<ObjectKey> = pod.selected().filter_map(SelectedNetwork::nad).take(MAX_NADS).collect();
        Some(nads.into_iter().collect())
    }

    fn put(&mut self, key: &ObjectKey, nads: Vec<ObjectKey>) {
        self.remove(key);
        if nads.is_empty() {
            return;
        }
        let pod = Arc::new(key.clone());
        let known = |nad: ObjectKey| {
            self.users_of.get_key_value(&nad).map_or_else(|| Arc::new(nad), |(nad, _)| Arc::clone(nad))
        };
        let nads: Box<[Arc<ObjectKey>]> = nads.into_iter().map(known).collect();
        for nad in &nads {
            self.users_of.entry(Arc::clone(nad)).or_default().insert(Arc::clone(&pod));
        }
        self.nads_of.insert(pod, nads);
    }

    fn remove(&mut self, key: &ObjectKey) {
        for nad in self.nads_of.remove(key).into_iter().flatten() {
            if let Some(users) = self.users_of.get_mut(&nad) {
                users.remove(key);
                if users.is_empty() {
                    self.users_of.remove(&nad);
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.nads_of.len()
    }
}

impl Caches {
    /// Watches pods while the policy judges them.
    pub async fn follow_pods(&self, cluster: &Cluster, policy: &ArcSwap<Policy>) {
        let changes_to = async |is_on: bool| {
            while policy.load().pods.is_on() != is_on {
                sleep(POLICY_INTERVAL).await;
            }
        };
        loop {
            changes_to(true).await;
            info!("pods are judged by the policy, watching them");
            tokio::select! {
                () = self.pods.follow(cluster) => {}
                () = changes_to(false) => info!("pods are not judged by the policy any more"),
            }
        }
    }

    /// The pods that use a NAD; `None` while they are not known.
    pub(in crate::cluster) fn deletion_users(&self, nad: &ObjectKey) -> Option<NadUsers> {
        match &*self.pods.state() {
            CacheState::Known(pods) => Some(pods.deletion_users(nad)),
            CacheState::Unknown | CacheState::NotInstalled => None,
        }
    }

    /// Some of those pods.
    pub(in crate::cluster) fn pods_using(&self, nad: &ObjectKey, most: usize) -> Vec<ObjectKey> {
        match &*self.pods.state() {
            CacheState::Known(pods) => pods.users(nad).take(most).cloned().collect(),
            CacheState::Unknown | CacheState::NotInstalled => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &mut PodStore, text: &str) {
        let object = ApiObject::read(text).unwrap();
        let nads = PodStore::read(&object).unwrap();
        store.put(&object.key, nads);
    }

    fn pod(namespace: &str, name: &str, networks: &str, rest: &str) -> String {
        let annotations = serde_json::json!({ NETWORKS: networks });
        format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","annotations":{annotations}}},"spec":{{}}{rest}}}"#
        )
    }

    #[test]
    fn users_are_those_that_select_a_nad_and_still_run() {
        let mut store = PodStore::default();
        let nad = ObjectKey::new("apps", "net");
        put(&mut store, &pod("apps", "a", "net,net,other/x", ""));
        put(&mut store, &pod("apps", "done", "net", r#","status":{"phase":"Succeeded"}"#));
        put(&mut store, &pod("apps", "broken", "a@b@c", ""));
        put(&mut store, &pod("other", "far", "apps/net", ""));
        put(&mut store, r#"{"metadata":{"namespace":"apps","name":"plain"},"spec":{}}"#);
        assert_eq!(store.count(), 2);
        let users = NadUsers { pods: vec!["a".to_owned()], count: 1, has_others: true };
        assert_eq!(store.deletion_users(&nad), users);
        for number in 0..10 {
            put(&mut store, &pod("apps", &format!("b{number}"), "net", ""));
        }
        let users = store.deletion_users(&nad);
        assert_eq!((users.pods.join(","), users.count), ("a,b0,b1".to_owned(), 11));
        // A pod that selects something else now is no user any more, and one that ended is none.
        put(&mut store, &pod("apps", "a", "x", ""));
        put(&mut store, &pod("apps", "b0", "net", r#","status":{"phase":"Failed"}"#));
        assert_eq!(store.deletion_users(&nad).count, 9);
        store.remove(&ObjectKey::new("apps", "a"));
        assert_eq!(store.users(&ObjectKey::new("apps", "x")).count(), 0);
        assert!(!store.users_of.contains_key(&ObjectKey::new("other", "x")), "nothing is left of it");
    }

    /// Whoever writes pods must not choose how much is kept of each.
    #[test]
    fn a_pod_has_a_limited_number_of_nads() {
        let many = (0..5000).map(|number| format!("n{number}")).collect::<Vec<_>>().join(",");
        let mut store = PodStore::default();
        put(&mut store, &pod("apps", "a", &many, ""));
        assert_eq!(store.users_of.len(), MAX_NADS);
    }
}
