//! The policy in a ConfigMap, watched: every replica sees a change at once. A kubelet updates a mounted file only after a minute or so,
//! and each node at another time.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tracing::info;

use crate::cluster::cache::watch::{Cache, CacheState, Summarize};
use crate::cluster::client::collection::{ApiObject, members};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::deploy::POLICY_KEY;
use crate::manifests::{LoadedPolicy, PolicyFileError};
use crate::resources::ObjectKey;
use crate::supervise::contained;
use crate::telemetry::metrics::CacheMetrics;

/// Why the policy of a ConfigMap cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyConfigMapError {
    /// There is no such ConfigMap.
    #[error("the ConfigMap {0} does not exist")]
    Absent(ObjectKey),
    /// It has no policy.
    #[error("the ConfigMap {0} has no key `{POLICY_KEY}`")]
    NoKey(ObjectKey),
    /// Its policy is invalid.
    #[error("the ConfigMap {0}")]
    Policy(PolicyFileError),
    /// Reading its policy panicked.
    #[error("reading the policy of the ConfigMap {0} failed: {1}")]
    Panicked(ObjectKey, String),
}

/// The name of a ConfigMap, as on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapName {
    /// `None`: nadmit's own.
    namespace: Option<String>,
    name: String,
}

impl ConfigMapName {
    /// The ConfigMap; without a namespace it is in the given one.
    pub fn key(&self, namespace: &str) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref().unwrap_or(namespace), &self.name)
    }
}

impl FromStr for ConfigMapName {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        // The same check that a request would fail with, but at start.
        path(&ObjectKey::new(namespace.unwrap_or("any"), name))?;
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

impl fmt::Display for ConfigMapName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// The collection that consists of one ConfigMap: a permission that is bound to its name allows to list and watch it.
fn path(key: &ObjectKey) -> Result<ApiPath, ApiError> {
    ApiPath::in_namespace(ApiResource::CONFIG_MAPS, key.namespace())?.named(key.name())
}

/// The text of the policy; `None` without the key.
type PolicyEntry = Option<Arc<str>>;

/// What is kept of the ConfigMap; `None` if it does not exist.
#[derive(Debug, Default)]
struct PolicyEntryStore(Option<PolicyEntry>);

impl Summarize for PolicyEntryStore {
    type Summarized = PolicyEntry;

    fn read(object: &ApiObject<'_>) -> Option<PolicyEntry> {
        Some(members(&object.fields, "data").and_then(|data| data.text(POLICY_KEY).value()).map(Arc::from))
    }

    fn put(&mut self, _: &ObjectKey, entry: PolicyEntry) {
        self.0 = Some(entry);
    }

    fn remove(&mut self, _: &ObjectKey) {
        self.0 = None;
    }

    fn count(&self) -> usize {
        self.0.iter().count()
    }
}

/// A watched ConfigMap with the policy.
pub struct PolicyConfigMap {
    key: ObjectKey,
    cache: Cache<PolicyEntryStore>,
}

impl PolicyConfigMap {
    /// Nothing is requested yet.
    pub fn new(key: ObjectKey, metrics: &CacheMetrics) -> Result<Self, ApiError> {
        let cache = Cache::new("ConfigMap", path(&key)?, metrics);
        Ok(Self { key, cache })
    }

    /// Watches it continuously, and passes on each policy that it has, or why it has none. While it cannot be read, nothing is
    /// passed on: the last policy stays.
    pub async fn follow(self, cluster: Cluster, mut apply: impl FnMut(Result<LoadedPolicy, PolicyConfigMapError>)) {
        let applying = async {
            let mut last = None;
            loop {
                self.cache.changed().await;
                let Some(now) = self.entry() else { continue };
                if last.as_ref() != Some(&now) {
                    apply(read(&self.key, now.clone()));
                    last = Some(now);
                }
            }
        };
        info!(config_map = %self.key, "watching the policy");
        tokio::join!(self.cache.follow(&cluster), applying);
    }

    /// `None` while it is unknown.
    fn entry(&self) -> Option<Option<PolicyEntry>> {
        match &*self.cache.state() {
            CacheState::Unknown | CacheState::NotInstalled => None,
            CacheState::Known(store) => Some(store.0.clone()),
        }
    }
}

/// Reads the policy of a ConfigMap once.
pub async fn read_policy(
    cluster: &Cluster,
    key: &ObjectKey,
) -> Result<Result<LoadedPolicy, PolicyConfigMapError>, ApiError> {
    let path = ApiPath::object(ApiResource::CONFIG_MAPS, key)?;
    let text = cluster.get(&path).await?;
    let entry = text.as_deref().and_then(ApiObject::read).and_then(|object| PolicyEntryStore::read(&object));
    Ok(read(key, entry))
}

fn read(key: &ObjectKey, entry: Option<PolicyEntry>) -> Result<LoadedPolicy, PolicyConfigMapError> {
    let entry = entry.ok_or_else(|| PolicyConfigMapError::Absent(key.clone()))?;
    let text = entry.ok_or_else(|| PolicyConfigMapError::NoKey(key.clone()))?;
    // The task that watches must not end because of a text.
    match contained(|| LoadedPolicy::parse(&key.to_string(), &text)) {
        Ok(loaded) => loaded.map_err(PolicyConfigMapError::Policy),
        Err(panicked) => Err(PolicyConfigMapError::Panicked(key.clone(), panicked.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cache::watch::tests::read as summarize;

    fn key() -> ObjectKey {
        ObjectKey::new("nadmit", "nadmit-policy")
    }

    #[test]
    fn name_may_have_a_namespace() {
        for (text, want) in [("p", Some("home/p")), ("a/p", Some("a/p"))] {
            let name: ConfigMapName = text.parse().unwrap();
            assert_eq!((name.key("home").to_string().as_str(), name.to_string().as_str()), (want.unwrap(), text));
        }
        for bad in ["", "/", "a/", "/p", "a/b/c", "a b", "..", "a/..", "p?x=1"] {
            assert!(bad.parse::<ConfigMapName>().is_err(), "{bad}");
        }
        let all = path(&key()).unwrap().to_string();
        assert_eq!(all, "/api/v1/namespaces/nadmit/configmaps?fieldSelector=metadata.name%3Dnadmit-policy");
    }

    #[test]
    fn says_why_there_is_no_policy() {
        let of = |data: &str| {
            let object = format!(r#"{{"metadata":{{"name":"nadmit-policy","namespace":"nadmit"}}{data}}}"#);
            read(&key(), summarize::<PolicyEntryStore>(&object)).map_err(|error| error.to_string())
        };
        let good = of(r#","data":{"policy.yaml":"mode: audit\n"}"#).unwrap();
        assert_eq!(good.hash, LoadedPolicy::parse("a file", "mode: audit\n").unwrap().hash);
        let no_key = "the ConfigMap nadmit/nadmit-policy has no key `policy.yaml`";
        for data in
            ["", r#","data":null"#, r#","data":{}"#, r#","data":{"policy":"{}"}"#, r#","data":{"policy.yaml":5}"#]
        {
            assert_eq!(of(data).unwrap_err(), no_key, "{data}");
        }
        let error = of(r#","data":{"policy.yaml":"rulez: {}\n"}"#).unwrap_err();
        assert!(error.starts_with("the ConfigMap nadmit/nadmit-policy: line 1") && error.contains("rulez"), "{error}");
        let large = format!(r##","data":{{"policy.yaml":"#{}"}}"##, "x".repeat(1 << 20));
        assert!(of(&large).unwrap_err().contains("larger than 1 MiB"));
        assert_eq!(read(&key(), None).unwrap_err().to_string(), "the ConfigMap nadmit/nadmit-policy does not exist");
    }
}
