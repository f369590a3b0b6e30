//! Keeps nadmit registered: both webhook configurations, which come with the manifests, are filled and stay as they should be. The
//! parameters of the backstop are annotations of the validating one.
//!
//! Every replica does this, without a leader: what they write is the same. Nothing is written when nothing differs. A configuration that
//! somebody has deleted stays deleted.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

pub use super::bundle::follow;
use super::facts::today;
use super::paths::{Choice, Paths, Upgrade, choose};
use super::probe::{ProbeError, probe};
use super::token::TokenPaths;
use super::{Caches, Cluster, Failed, Written, bundle};
use crate::deploy::backstop::Parameters;
use crate::deploy::webhooks::{Address, Phase, configuration};
use crate::deploy::{NAME, set};
use crate::policy::Policy;
use crate::telemetry::metrics::Registered;
use crate::tls::token::Token;

/// How often the configurations are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a bundle that has more than ours is left alone. Another replica may know of a new CA already, and may show a
/// certificate of it as soon as the bundle is registered: taking it away would make the API server mistrust that replica.
const LINGER: Duration = Duration::from_secs(20);

/// Why nadmit is not registered as it should be.
#[derive(Debug, thiserror::Error)]
enum RegistrationError {
    #[error("not registered before nadmit can be reached: {0}")]
    Unreachable(#[from] ProbeError),
    #[error(transparent)]
    Failed(#[from] Failed),
    #[error("the {0} `{NAME}` was deleted; apply nadmit's manifests again to restore it")]
    Deleted(&'static str),
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
    /// The tokens of the paths.
    pub tokens: TokenPaths,
    /// Where everybody can see whether nadmit is registered.
    pub metric: Registered,
    /// What is known of the cluster: the exempt namespaces, and whether there is an SR-IOV DRA driver.
    pub caches: Arc<Caches>,
}

impl Registration {
    /// Registers nadmit when it is ready and can be reached, and keeps it registered.
    pub async fn keep(mut self, is_ready: impl Fn() -> bool, policy: impl Fn() -> Arc<Policy>) {
        let mut keeper = Keeper::default();
        let mut trouble = String::new();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_fed, mut has_tokens) = (true, true);
        // However this ends: what nobody checks any more does not count as registered.
        let shown = Shown(self.metric.clone());
        shown.0.is(false);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = self.bundle.changed(), if is_fed => is_fed = changed.is_ok(),
                changed = self.tokens.registrable.changed(), if has_tokens => has_tokens = changed.is_ok(),
            }
            if let Some(exempt) = self.caches.exempt_namespaces() {
                self.metric.exempt_namespaces(exempt);
            }
            let own = self.bundle.borrow_and_update().clone();
            if own.is_empty() || !is_ready() {
                continue;
            }
            let policy = policy();
            let look = timeout(PATIENCE, keeper.look(&self, &own, &policy));
            let problem = match look.await.unwrap_or(Err(RegistrationError::Late)) {
                Ok(look) => {
                    let carried = Some(look.bundle);
                    self.registered.send_if_modified(|known| {
                        let is_new = *known != carried;
                        *known = carried;
                        is_new
                    });
                    look.deleted.map_or_else(String::new, |phase| RegistrationError::Deleted(phase.kind()).to_string())
                }
                Err(error) => error.to_string(),
            };
            shown.0.is(problem.is_empty());
            // The same trouble is told once, however long it lasts.
            if problem != trouble && !problem.is_empty() {
                warn!(problem, "not registered as it should be; tried again");
            }
            trouble = problem;
        }
    }
}

impl Registration {
    /// How the API server reaches nadmit, with that token.
    fn with_token(&self, token: Option<&Token>) -> Address {
        Address { token: token.map(|token| token.text().to_owned()), ..self.address.clone() }
    }
}

/// Whether nadmit is registered, for as long as somebody checks it.
struct Shown(Registered);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.is(false);
    }
}

/// What is remembered from one look to the next.
#[derive(Default)]
struct Keeper {
    /// The bundle with which nadmit was reached.
    probed: Option<String>,
    /// Since when the stored bundle has more than ours.
    more_since: Option<Instant>,
    /// The token that a replica behind the Service was found to know.
    probed_token: Option<Token>,
    upgrade: Upgrade,
    /// Whether the policy has more than the parameters of the backstop can hold, which is logged once.
    is_too_large: bool,
}

/// What a look came to.
struct Look {
    /// The bundle that all configurations carry that are there.
    bundle: String,
    /// A configuration that is not there.
    deleted: Option<Phase>,
}

impl Keeper {
    /// Looks at both configurations and fixes what differs.
    async fn look(&mut self, to: &Registration, own: &str, policy: &Policy) -> Result<Look, RegistrationError> {
        if self.probed.as_deref() != Some(own) {
            probe(&to.address, own).await?;
            self.probed = Some(own.to_owned());
        }
        let parameters = self.parameters(to, policy);
        for _ in 0..5 {
            let mut stored = Vec::new();
            for phase in Phase::ALL {
                let found = to.cluster.read(&format!("{}/{NAME}", phase.collection())).await?;
                to.metric.configuration(phase.kind(), found.is_some());
                stored.push(found);
            }
            let deleted =
                Phase::ALL.into_iter().zip(&stored).find_map(|(phase, stored)| stored.is_none().then_some(phase));
            let bundle = self.choose(carried(&stored), own, Instant::now());
            let paths = Paths::of(&stored);
            let is_plain = self.upgrade.accepts_plain(&paths, Instant::now(), to.tokens.settle);
            to.tokens.accepted.registered(paths.token.clone(), is_plain);
            let token = self.choose_token(to, &paths, own).await?;
            let address = to.with_token(token.as_ref());
            let mut is_done = true;
            for (phase, stored) in Phase::ALL.into_iter().zip(stored) {
                let Some(stored) = stored else { continue };
                let mut wanted = configuration(phase, &address, policy, &bundle);
                if let (Phase::Validating, Some(parameters)) = (phase, &parameters) {
                    annotate(&mut wanted, parameters);
                }
                is_done &= fix(&to.cluster, phase, stored, &wanted).await?;
            }
            if is_done {
                to.tokens.registered.send_if_modified(|known| {
                    let is_new = *known != token;
                    *known = token;
                    is_new
                });
                return Ok(Look { bundle, deleted });
            }
        }
        Err(RegistrationError::Contended)
    }

    /// The token to register, given the one that is; `None` while replicas of a version before tokens are still asked.
    async fn choose_token(
        &mut self,
        to: &Registration,
        paths: &Paths,
        bundle: &str,
    ) -> Result<Option<Token>, RegistrationError> {
        let own = to.tokens.registrable.borrow().clone();
        match choose(paths, &own) {
            Choice::Keep(token) => Ok(token),
            Choice::Change(token) => {
                if self.probed_token.as_ref() != Some(&token) {
                    probe(&to.with_token(Some(&token)), bundle).await?;
                    self.probed_token = Some(token.clone());
                }
                Ok(Some(token))
            }
            Choice::Upgrade(token) => {
                let is_known = probe(&to.with_token(Some(&token)), bundle).await.is_ok();
                let is_over = self.upgrade.is_over(is_known, Instant::now(), to.tokens.settle);
                Ok(is_over.then_some(token))
            }
        }
    }

    /// The parameters of the backstop; `None` as long as nobody knows whether there is a DRA driver: then they stay as they are.
    fn parameters(&mut self, to: &Registration, policy: &Policy) -> Option<Parameters> {
        let parameters = Parameters::of(policy, today(), to.caches.has_sriov_device_class()?);
        if !parameters.fits && !std::mem::replace(&mut self.is_too_large, true) {
            warn!(
                "the policy names more namespaces, users or exceptions than annotations hold; the backstop denies nothing"
            );
        }
        self.is_too_large = !parameters.fits;
        Some(parameters)
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

/// Adds the parameters of the backstop to a configuration.
fn annotate(wanted: &mut Value, parameters: &Parameters) {
    let annotations =
        parameters.annotations.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
    if let Some(metadata) = wanted.get_mut("metadata") {
        set(metadata, "annotations", Value::Object(annotations.collect()));
    }
}

/// Writes a configuration if it differs; whether it is as wanted now.
async fn fix(cluster: &Cluster, phase: Phase, stored: Value, wanted: &Value) -> Result<bool, RegistrationError> {
    if is_as_wanted(&stored, wanted) {
        return Ok(true);
    }
    let path = format!("{}/{NAME}", phase.collection());
    let is_stored = matches!(cluster.replace(&path, &fixed(stored, wanted)).await?, Written::Stored(_));
    if is_stored {
        info!(kind = phase.kind(), "registered");
    }
    Ok(is_stored)
}

/// The parts of metadata of which some keys are ours.
const SHARED: [&str; 2] = ["labels", "annotations"];

/// Whether what is stored is what should be. Labels and annotations of others do not count.
fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let has_ours = |part: &str| {
        let pointer = format!("/metadata/{part}");
        let mut ours = wanted.pointer(&pointer).and_then(Value::as_object).into_iter().flatten();
        ours.all(|(key, value)| stored.pointer(&pointer).and_then(|all| all.get(key)) == Some(value))
    };
    let owners = stored.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    stored.get("webhooks") == wanted.get("webhooks")
        && SHARED.into_iter().all(has_ours)
        && !owners.into_iter().any(is_old_owner)
}

/// What is stored, with everything of ours as it should be.
fn fixed(mut stored: Value, wanted: &Value) -> Value {
    if let Some(webhooks) = wanted.get("webhooks") {
        set(&mut stored, "webhooks", webhooks.clone());
    }
    let Some(metadata) = stored.get_mut("metadata") else { return stored };
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| !is_old_owner(owner));
    }
    for part in SHARED {
        let Some(ours) = wanted.pointer(&format!("/metadata/{part}")).and_then(Value::as_object) else { continue };
        let mut all = metadata.get(part).filter(|all| all.is_object()).cloned().unwrap_or_else(|| json!({}));
        for (key, value) in ours {
            set(&mut all, key, value.clone());
        }
        set(metadata, part, all);
    }
    stored
}

/// Version 0.1.0 made its ClusterRole the owner of the configurations it created. They belong to the manifests now: a ClusterRole that
/// is deleted and created again must not take them along, as nobody but an administrator could restore them.
fn is_old_owner(owner: &Value) -> bool {
    let is = |key: &str, value: &str| owner.get(key).and_then(Value::as_str) == Some(value);
    is("kind", "ClusterRole") && is("name", NAME)
}

/// The bundle that all entries of the configurations carry, if it is one.
fn carried(stored: &[Option<Value>]) -> Option<String> {
    let mut bundles = Vec::new();
    for configuration in stored.iter().flatten() {
        for entry in configuration.get("webhooks")?.as_array()? {
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
        let home = Home { namespace: "n".to_owned(), service: "s".to_owned() };
        let address = Address { home, at: None, token: None };
        Phase::ALL.iter().map(|phase| configuration(*phase, &address, &Policy::default(), bundle)).collect()
    }

    #[test]
    fn what_others_add_is_kept_and_what_they_change_is_fixed() {
        for mut wanted in wanted("PEM") {
            annotate(&mut wanted, &Parameters { annotations: vec![("ours", "z".to_owned())], fits: true });
            let mut stored = wanted.clone();
            stored["metadata"]["labels"]["theirs"] = "x".into();
            stored["metadata"]["annotations"]["theirs"] = "y".into();
            stored["metadata"]["ownerReferences"] = json!([{ "kind": "ConfigMap", "name": NAME }]);
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
                ("/metadata/annotations/ours", json!("")),
                ("/metadata/annotations", json!({ "theirs": "y" })),
                (
                    "/metadata/ownerReferences",
                    json!([{ "kind": "ClusterRole", "name": NAME }, { "kind": "ConfigMap", "name": NAME }]),
                ),
            ] {
                *stored.pointer_mut(pointer).unwrap() = value;
                assert!(!is_as_wanted(&stored, &wanted), "{pointer}");
                stored = fixed(stored, &wanted);
                assert_eq!(stored, good, "{pointer}");
                assert!(is_as_wanted(&stored, &wanted), "{pointer}");
            }
            // As the manifests have it.
            let shipped = json!({ "kind": wanted["kind"], "metadata": { "name": NAME } });
            assert!(!is_as_wanted(&shipped, &wanted) && is_as_wanted(&fixed(shipped, &wanted), &wanted));
        }
    }

    #[test]
    fn nobody_who_checks_means_not_registered() {
        let metrics = crate::telemetry::Metrics::default();
        let shown = Shown(metrics.registered.clone());
        shown.0.is(true);
        assert!(metrics.text().contains("nadmit_registered 1\n"));
        let panicked = crate::supervise::contained(move || {
            let _shown = shown;
            panic!("killed");
        });
        assert!(panicked.is_err() && metrics.text().contains("nadmit_registered 0\n"), "{}", metrics.text());
    }

    #[test]
    fn the_bundle_is_the_one_that_all_carry() {
        let stored: Vec<_> = wanted("PEM").into_iter().map(Some).collect();
        assert_eq!(carried(&stored).as_deref(), Some("PEM"));
        assert_eq!(carried(&[stored[0].clone(), None]).as_deref(), Some("PEM"), "one of them was deleted");
        assert_eq!(carried(&[None, None]), None);
        assert_eq!(carried(&[stored[0].clone(), Some(json!({ "metadata": {} }))]), None, "one is not filled");
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
