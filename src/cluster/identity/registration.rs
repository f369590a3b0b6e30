//! Keeps nadmit registered: fills in both webhook configurations, which the manifests create, and restores them. The parameters
//! of the backstop are annotations of the validating one.
//!
//! Every replica does this without a leader, because they all write the same. Nothing is written if nothing differs. A deleted
//! configuration stays deleted.

mod comparison;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use comparison::{annotate, fixed, is_as_wanted, registered_bundle};

use crate::cluster::cache::Caches;
use crate::cluster::cache::facts::today;
use crate::cluster::client::{ApiError, ApiPath, Cluster, WriteResult};
use crate::cluster::identity::ca_bundle;
pub use crate::cluster::identity::ca_bundle::follow;
use crate::cluster::identity::probe::{ProbeError, ProbeTarget, probe};
use crate::cluster::identity::publish;
use crate::cluster::identity::token::TokenPaths;
use crate::cluster::identity::webhook_paths::{RegisteredPaths, TokenChoice, TokenRollout, choose};
use crate::deploy::NAME;
use crate::deploy::backstop::Parameters;
use crate::deploy::webhooks::{Address, Phase, configuration};
use crate::policy::Policy;
use crate::telemetry::registration::{Registered, RegistrationProblem};
use crate::tls::token::Token;

/// The interval between two reconciles.
const INTERVAL: Duration = Duration::from_secs(1);
/// The timeout of one reconcile. A lasting problem is shown within ten seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a larger bundle is kept. Another replica may already know a new CA and serve a certificate of it once the bundle is
/// registered: removing it would make the API server distrust that replica.
const BUNDLE_GRACE: Duration = Duration::from_secs(20);

/// Why the registration failed.
#[derive(Debug, thiserror::Error)]
enum RegistrationError {
    #[error("nadmit is not reachable yet, not registering: {0}")]
    Unreachable(#[from] ProbeError),
    #[error(transparent)]
    Failed(#[from] ApiError),
    #[error("the {0} `{NAME}` was deleted; apply nadmit's manifests again to restore it")]
    Deleted(&'static str),
    #[error("conflicting writes of the webhook configurations")]
    Contended,
    #[error("the API server did not answer in time")]
    Late,
}

impl RegistrationError {
    /// The same as a label.
    fn problem(&self) -> RegistrationProblem {
        match self {
            Self::Unreachable(_) => RegistrationProblem::Unreachable,
            Self::Failed(_) => RegistrationProblem::Api,
            Self::Deleted(_) => RegistrationProblem::Deleted,
            Self::Contended => RegistrationProblem::Conflict,
            Self::Late => RegistrationProblem::Late,
        }
    }
}

/// The inputs of the registration.
pub struct Registration {
    /// Where.
    pub cluster: Cluster,
    /// How the API server reaches nadmit.
    pub address: Address,
    /// The CA bundle for the certificates of all replicas: PEM, empty until known.
    pub bundle: watch::Receiver<String>,
    /// The bundle that all entries carry.
    pub registered: watch::Sender<Option<String>>,
    /// The tokens of the paths.
    pub tokens: TokenPaths,
    /// The metric of the registration.
    pub metric: Registered,
    /// The caches: exempt namespaces, and whether there is an SR-IOV DRA driver.
    pub caches: Arc<Caches>,
}

impl Registration {
    /// Registers nadmit once it is ready and reachable, and keeps it registered.
    pub async fn run(mut self, is_ready: impl Fn() -> bool, policy: impl Fn() -> Arc<Policy>) {
        let mut state = RegistrationState::default();
        let mut trouble = String::new();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_fed, mut has_tokens) = (true, true);
        // However this task ends, the metric must not stay at 1.
        let shown = UnregisterOnDrop(self.metric.clone());
        shown.0.set(Some(RegistrationProblem::NotReady));
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
            let reconciled = timeout(REQUEST_TIMEOUT, state.reconcile(&self, &own, &policy));
            let error = match reconciled.await.unwrap_or(Err(RegistrationError::Late)) {
                Ok(status) => {
                    publish(&self.registered, Some(status.bundle));
                    status.deleted.map(|phase| RegistrationError::Deleted(phase.kind()))
                }
                Err(error) => Some(error),
            };
            shown.0.set(error.as_ref().map(RegistrationError::problem));
            let problem = error.map(|error| error.to_string()).unwrap_or_default();
            // The same problem is logged once.
            if problem != trouble && !problem.is_empty() {
                warn!(problem, "failed to register webhooks, retrying");
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

    /// Checks that nadmit can be reached like the API server does, with that token.
    async fn probe(&self, token: Option<&Token>, bundle: &str) -> Result<(), ProbeError> {
        let target = ProbeTarget::find(&self.cluster, &self.address).await;
        probe(&self.with_token(token), &target, bundle).await
    }
}

/// Resets the metric when the task ends.
struct UnregisterOnDrop(Registered);

impl Drop for UnregisterOnDrop {
    fn drop(&mut self) {
        self.0.set(Some(RegistrationProblem::Stopped));
    }
}

/// The state between two reconciles.
#[derive(Default)]
struct RegistrationState {
    /// The bundle with which nadmit was reached.
    probed: Option<String>,
    /// Since when the stored bundle is larger than ours.
    more_since: Option<Instant>,
    /// The token that a replica behind the Service is known to accept.
    probed_token: Option<Token>,
    rollout: TokenRollout,
    /// Whether the policy is too large for the parameters of the backstop; logged once.
    is_too_large: bool,
}

/// The result of a reconcile.
struct RegistrationStatus {
    /// The bundle in all existing configurations.
    bundle: String,
    /// A configuration that does not exist.
    deleted: Option<Phase>,
}

impl RegistrationState {
    /// Reads both configurations and restores what differs.
    async fn reconcile(
        &mut self,
        to: &Registration,
        own: &str,
        policy: &Policy,
    ) -> Result<RegistrationStatus, RegistrationError> {
        let parameters = self.parameters(to, policy);
        for _ in 0..5 {
            let mut stored = Vec::new();
            for phase in Phase::ALL {
                let found = to.cluster.read(&ApiPath::webhook(phase)).await?;
                to.metric.configuration(phase.kind(), found.is_some());
                stored.push(found);
            }
            let deleted =
                Phase::ALL.into_iter().zip(&stored).find_map(|(phase, stored)| stored.is_none().then_some(phase));
            let bundle = self.choose(registered_bundle(&stored), own, Instant::now());
            let paths = RegisteredPaths::of(&stored);
            let is_plain = self.rollout.accepts_plain(&paths, Instant::now(), to.tokens.propagation);
            let tokens = self.rollout.registered_tokens(&paths, Instant::now(), to.tokens.propagation);
            to.tokens.accepted.registered(tokens, is_plain);
            let token = self.choose_token(to, &paths, own).await?;
            let address = to.with_token(token.as_ref());
            let mut is_done = true;
            for (phase, stored) in Phase::ALL.into_iter().zip(stored) {
                let Some(stored) = stored else { continue };
                let mut wanted = configuration(phase, &address, policy, &bundle);
                if let (Phase::Validating, Some(parameters)) = (phase, &parameters) {
                    annotate(&mut wanted, parameters);
                }
                if !is_as_wanted(&stored, &wanted) {
                    // Only a write needs the probe: what is stored already is registered, whether or not this replica can
                    // reach the Service.
                    self.probe_bundle(to, own).await?;
                    is_done &= write(&to.cluster, phase, &fixed(stored, &wanted)).await?;
                }
            }
            if is_done {
                publish(&to.tokens.registered, token);
                return Ok(RegistrationStatus { bundle, deleted });
            }
        }
        Err(RegistrationError::Contended)
    }

    /// Checks once for each bundle that nadmit can be reached with it.
    async fn probe_bundle(&mut self, to: &Registration, own: &str) -> Result<(), RegistrationError> {
        if self.probed.as_deref() != Some(own) {
            to.probe(None, own).await?;
            self.probed = Some(own.to_owned());
        }
        Ok(())
    }

    /// The token to register, given the one that is; `None` while replicas of a version before tokens are still asked.
    async fn choose_token(
        &mut self,
        to: &Registration,
        paths: &RegisteredPaths,
        bundle: &str,
    ) -> Result<Option<Token>, RegistrationError> {
        let own = to.tokens.registrable.borrow().clone();
        match choose(paths, &own) {
            TokenChoice::Keep(token) => Ok(token),
            TokenChoice::Change(token) => {
                if self.probed_token.as_ref() != Some(&token) {
                    to.probe(Some(&token), bundle).await?;
                    self.probed_token = Some(token.clone());
                }
                Ok(Some(token))
            }
            TokenChoice::Upgrade(token) => {
                let is_known = to.probe(Some(&token), bundle).await.is_ok();
                let is_complete = self.rollout.is_complete(is_known, Instant::now(), to.tokens.propagation);
                Ok(is_complete.then_some(token))
            }
        }
    }

    /// The parameters of the backstop; `None` while it is unknown whether there is a DRA driver: then they are left unchanged.
    fn parameters(&mut self, to: &Registration, policy: &Policy) -> Option<Parameters> {
        let parameters = Parameters::of(policy, today(), to.caches.has_dra_driver()?);
        if !parameters.fits && !std::mem::replace(&mut self.is_too_large, true) {
            warn!("policy is too large for the backstop parameters; the backstop denies nothing");
        }
        self.is_too_large = !parameters.fits;
        Some(parameters)
    }

    /// The bundle to register, given the one that is.
    fn choose(&mut self, stored: Option<String>, own: &str, now: Instant) -> String {
        let Some(more) = stored.filter(|stored| ca_bundle::is_more(stored, own)) else {
            self.more_since = None;
            return own.to_owned();
        };
        let since = *self.more_since.get_or_insert(now);
        if now.duration_since(since) < BUNDLE_GRACE { more } else { own.to_owned() }
    }
}

/// Writes a configuration; whether it is stored, and nobody else wrote it meanwhile.
async fn write(cluster: &Cluster, phase: Phase, configuration: &Value) -> Result<bool, RegistrationError> {
    let is_stored = matches!(cluster.replace(&ApiPath::webhook(phase), configuration).await?, WriteResult::Stored(_));
    if is_stored {
        info!(kind = phase.kind(), "webhook configuration registered");
    }
    Ok(is_stored)
}

#[cfg(test)]
mod tests;
