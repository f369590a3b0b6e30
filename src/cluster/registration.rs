//! Keeps nadmit registered: both webhook configurations are there and as they should be.
//!
//! Every replica does this, without a leader: what they write is the same. Nothing is written when nothing differs.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

pub use super::bundle::follow;
use super::probe::{ProbeError, probe};
use super::{Cluster, Failed, Written, bundle};
use crate::deploy::webhooks::{Address, Phase, configuration};
use crate::deploy::{NAME, set};
use crate::policy::Policy;
use crate::telemetry::metrics::Registered;

/// How often the configurations are looked at.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a bundle that has more than ours is left alone. Another replica may know of a new CA already, and may show a
/// certificate of it as soon as the bundle is registered: taking it away would make the API server mistrust that replica.
const LINGER: Duration = Duration::from_secs(20);
/// The address of the ClusterRoles.
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Why nadmit is not registered as it should be.
#[derive(Debug, thiserror::Error)]
enum RegistrationError {
    #[error("not registered before nadmit can be reached: {0}")]
    Unreachable(#[from] ProbeError),
    #[error(transparent)]
    Failed(#[from] Failed),
    #[error(
        "there is no ClusterRole `{NAME}`, or it is being deleted: nadmit is being taken away, and is not registered"
    )]
    NoOwner,
    #[error("somebody else writes the webhook configurations all the time")]
    Contended,
    #[error("the API server did not answer in time")]
    Late,
}

/// What it takes to be registered.
pub struct Registration {
    /// Where.
    pub cluster: Cluster,
    /// How the API server reaches nadmit.
    pub address: Address,
    /// The bundle that vouches for the certificates of all replicas: PEM, empty as long as it is not known.
    pub bundle: watch::Receiver<String>,
    /// The bundle that all entries carry.
    pub registered: watch::Sender<Option<String>>,
    /// Where everybody can see whether nadmit is registered.
    pub metric: Registered,
}

impl Registration {
    /// Registers nadmit when it is ready and can be reached, and keeps it registered for ever.
    pub async fn keep(mut self, is_ready: impl Fn() -> bool, policy: impl Fn() -> Arc<Policy>) {
        let mut keeper = Keeper::default();
        let mut trouble = String::new();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_fed = true;
        self.metric.is(false);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = self.bundle.changed(), if is_fed => is_fed = changed.is_ok(),
            }
            let own = self.bundle.borrow_and_update().clone();
            if own.is_empty() || !is_ready() {
                continue;
            }
            let policy = policy();
            let look = timeout(PATIENCE, keeper.look(&self, &own, &policy));
            let problem = match look.await.unwrap_or(Err(RegistrationError::Late)) {
                Ok(carried) => {
                    let carried = Some(carried);
                    self.registered.send_if_modified(|known| {
                        let is_new = *known != carried;
                        *known = carried;
                        is_new
                    });
                    String::new()
                }
                Err(error) => error.to_string(),
            };
            self.metric.is(problem.is_empty());
            // The same trouble is told once, however long it lasts.
            if problem != trouble && !problem.is_empty() {
                warn!(problem, "not registered as it should be; tried again");
            }
            trouble = problem;
        }
    }
}

/// What is remembered from one look to the next.
#[derive(Default)]
struct Keeper {
    /// The bundle with which nadmit was reached.
    probed: Option<String>,
    /// Since when the stored bundle has more than ours.
    more_since: Option<Instant>,
}

impl Keeper {
    /// Looks at both configurations and mends what differs; the bundle that they carry then.
    async fn look(&mut self, to: &Registration, own: &str, policy: &Policy) -> Result<String, RegistrationError> {
        if self.probed.as_deref() != Some(own) {
            probe(&to.address, own).await?;
            self.probed = Some(own.to_owned());
        }
        for _ in 0..5 {
            let owner = owner(&to.cluster).await?;
            let mut stored = Vec::new();
            for phase in Phase::ALL {
                stored.push(to.cluster.read(&format!("{}/{NAME}", phase.collection())).await?);
            }
            let bundle = self.choose(carried(&stored), own, Instant::now());
            let mut is_done = true;
            for (phase, stored) in Phase::ALL.into_iter().zip(stored) {
                let mut wanted = configuration(phase, &to.address, policy, &bundle);
                if let Some(metadata) = wanted.get_mut("metadata") {
                    set(metadata, "ownerReferences", json!([owner]));
                }
                is_done &= mend(&to.cluster, phase, stored, &wanted).await?;
            }
            if is_done {
                return Ok(bundle);
            }
        }
        Err(RegistrationError::Contended)
    }

    /// The bundle to register, given the one that is.
    fn choose(&mut self, stored: Option<String>, own: &str, now: Instant) -> String {
        let Some(more) = stored.filter(|stored| bundle::is_more(stored, own)) else {
            self.more_since = None;
            return own.to_owned();
        };
        let since = *self.more_since.get_or_insert(now);
        if now.duration_since(since) < LINGER { more } else { own.to_owned() }
    }
}

/// The reference that makes the configurations go with nadmit's ClusterRole.
async fn owner(cluster: &Cluster) -> Result<Value, RegistrationError> {
    let role = cluster.read(&format!("{ROLES}/{NAME}")).await?.ok_or(RegistrationError::NoOwner)?;
    let uid = role.pointer("/metadata/uid").filter(|_| role.pointer("/metadata/deletionTimestamp").is_none());
    let uid = uid.and_then(Value::as_str).ok_or(RegistrationError::NoOwner)?;
    Ok(json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": NAME, "uid": uid }))
}

/// Writes a configuration if it differs; whether it is as wanted now.
async fn mend(
    cluster: &Cluster,
    phase: Phase,
    stored: Option<Value>,
    wanted: &Value,
) -> Result<bool, RegistrationError> {
    let collection = phase.collection();
    let written = match stored {
        None => cluster.create(collection, wanted).await?,
        Some(stored) if is_as_wanted(&stored, wanted) => return Ok(true),
        Some(stored) => cluster.replace(&format!("{collection}/{NAME}"), &mended(stored, wanted)).await?,
    };
    if let Written::Stored(_) = written {
        info!(kind = phase.kind(), "registered");
    }
    Ok(matches!(written, Written::Stored(_)))
}

/// Whether what is stored is what should be. Labels and annotations of others do not count.
fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let same = |pointer: &str| stored.pointer(pointer) == wanted.pointer(pointer);
    let labels = wanted.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut labels =
        labels.map(|(key, value)| stored.pointer("/metadata/labels").and_then(|all| all.get(key)) == Some(value));
    same("/webhooks") && same("/metadata/ownerReferences") && labels.all(|is_there| is_there)
}

/// What is stored, with everything of ours as it should be.
fn mended(mut stored: Value, wanted: &Value) -> Value {
    if let Some(webhooks) = wanted.get("webhooks") {
        set(&mut stored, "webhooks", webhooks.clone());
    }
    let Some(metadata) = stored.get_mut("metadata") else { return stored };
    if let Some(owners) = wanted.pointer("/metadata/ownerReferences") {
        set(metadata, "ownerReferences", owners.clone());
    }
    let mut labels = metadata.get("labels").filter(|labels| labels.is_object()).cloned().unwrap_or_else(|| json!({}));
    for (key, value) in wanted.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten() {
        set(&mut labels, key, value.clone());
    }
    set(metadata, "labels", labels);
    stored
}

/// The bundle that all entries of the configurations carry, if it is one.
fn carried(stored: &[Option<Value>]) -> Option<String> {
    let mut bundles = Vec::new();
    for configuration in stored {
        for entry in configuration.as_ref()?.get("webhooks")?.as_array()? {
            bundles.push(entry.pointer("/clientConfig/caBundle")?.as_str()?);
        }
    }
    let first = *bundles.first()?;
    if bundles.iter().any(|bundle| *bundle != first) {
        return None;
    }
    String::from_utf8(BASE64_STANDARD.decode(first).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::Home;

    fn wanted(bundle: &str) -> Vec<Value> {
        let address = Address { home: Home { namespace: "n".to_owned(), service: "s".to_owned() }, at: None };
        Phase::ALL.iter().map(|phase| configuration(*phase, &address, &Policy::default(), bundle)).collect()
    }

    #[test]
    fn what_others_add_is_kept_and_what_they_change_is_mended() {
        for wanted in wanted("PEM") {
            let mut stored = wanted.clone();
            stored["metadata"]["labels"]["theirs"] = "x".into();
            stored["metadata"]["annotations"] = json!({ "theirs": "y" });
            stored["metadata"]["resourceVersion"] = "7".into();
            assert!(is_as_wanted(&stored, &wanted));
            let good = stored.clone();
            for (pointer, value) in [
                ("/webhooks/0/failurePolicy", json!("Ignore!")),
                ("/webhooks/0/clientConfig/caBundle", json!("")),
                ("/webhooks/0/objectSelector", json!({ "matchLabels": { "a": "b" } })),
                ("/webhooks/1/namespaceSelector", json!({})),
                ("/webhooks/0/matchConditions", json!([])),
                ("/webhooks", json!([])),
                ("/metadata/labels/app.kubernetes.io~1name", json!("other")),
            ] {
                *stored.pointer_mut(pointer).unwrap() = value;
                assert!(!is_as_wanted(&stored, &wanted), "{pointer}");
                stored = mended(stored, &wanted);
                assert_eq!(stored["metadata"]["labels"], good["metadata"]["labels"]);
                assert_eq!(
                    (&stored["webhooks"], &stored["metadata"]["annotations"]),
                    (&good["webhooks"], &json!({ "theirs": "y" }))
                );
                assert_eq!(stored["metadata"]["resourceVersion"], "7");
                assert!(is_as_wanted(&stored, &wanted), "{pointer}");
            }
            stored["metadata"]["ownerReferences"] = json!([{ "uid": "another" }]);
            assert!(!is_as_wanted(&stored, &wanted));
        }
    }

    #[test]
    fn the_bundle_is_the_one_that_all_carry() {
        let stored: Vec<_> = wanted("PEM").into_iter().map(Some).collect();
        assert_eq!(carried(&stored).as_deref(), Some("PEM"));
        assert_eq!(carried(&[stored[0].clone(), None]), None);
        let mut one = stored;
        one[1].as_mut().unwrap()["webhooks"][2]["clientConfig"]["caBundle"] = "QQ==".into();
        assert_eq!(carried(&one), None);
    }

    #[test]
    fn a_larger_bundle_is_left_alone_for_a_while() {
        let make = || rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap().cert.pem();
        let (own, new) = (make(), make());
        let both = format!("{own}{new}");
        let mut keeper = Keeper::default();
        let start = Instant::now();
        for (stored, after, want) in [
            (None, 0, &own),
            (Some(&own), 1, &own),
            (Some(&new), 2, &own),
            (Some(&both), 3, &both),
            (Some(&both), 20, &both),
            (Some(&both), 23, &own),
            (Some(&own), 24, &own),
            (Some(&both), 25, &both),
            (Some(&"junk".to_owned()), 26, &own),
        ] {
            let chosen = keeper.choose(stored.cloned(), &own, start + Duration::from_secs(after));
            assert_eq!(&chosen, want, "after {after} seconds");
        }
    }
}
