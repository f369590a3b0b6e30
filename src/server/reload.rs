//! Reloading of policy and certificate files. An invalid new file is rejected and logged, and the last good one stays.

use std::fmt::Display;
use std::sync::Arc;

use tracing::{error, info};

use super::ServerState;
use crate::manifests::{LoadedPolicy, PolicyFile};
use crate::telemetry::metrics::Reload;
use crate::tls::{Files, Served, Tls};

/// The files that are watched.
#[derive(Default)]
pub struct WatchedFiles {
    /// The policy, if there is a file.
    pub policy: Option<PolicyFile>,
    /// The certificates, if they are files.
    pub certificates: Option<Files>,
}

impl WatchedFiles {
    /// Checks every file once.
    pub(super) fn check(&mut self, state: &Arc<ServerState>, tls: &Tls) {
        match self.policy.as_mut().and_then(PolicyFile::reread) {
            None => {}
            Some(policy) => take_policy(policy, state),
        }
        match self.certificates.as_mut().and_then(Files::reread) {
            None => {}
            Some(Ok(served)) => {
                info!(expires = served.expires, "certificate reloaded");
                take_certificate(served, state, tls);
            }
            Some(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                error!(%error, cause, "rejected changed certificate files; keeping the last good ones");
                state.metrics.certificate_reloaded(Reload::Refused);
            }
        }
    }
}

/// Judges by that policy from the next review on. An invalid one is rejected.
fn take_policy(policy: Result<LoadedPolicy, impl Display>, state: &ServerState) {
    match policy {
        Ok(loaded) => {
            info!(hash = loaded.hash, "policy reloaded");
            state.take_policy(loaded);
            state.metrics.policy.reloaded(Reload::Taken);
        }
        Err(error) => {
            match *state.has_policy.borrow() {
                true => error!(%error, "rejected changed policy; keeping the last good policy"),
                false => error!(%error, "rejected policy; not ready until there is a valid one"),
            }
            state.metrics.policy.reloaded(Reload::Refused);
        }
    }
}

/// Updates the policy from other sources than a file.
#[derive(Clone)]
pub struct PolicyUpdater {
    pub(super) state: Arc<ServerState>,
}

impl PolicyUpdater {
    /// Uses that one from the next review on; without a valid one the last one stays.
    pub fn replace(&self, policy: Result<LoadedPolicy, impl Display>) {
        take_policy(policy, &self.state);
    }
}

/// Serves that certificate from the next handshake on.
fn take_certificate(served: Served, state: &ServerState, tls: &Tls) {
    state.metrics.expires("serving", served.expires);
    tls.replace(served);
    state.metrics.certificate_reloaded(Reload::Taken);
}

/// Updates the certificate from other sources than files.
#[derive(Clone)]
pub struct CertificateUpdater {
    pub(super) state: Arc<ServerState>,
    pub(super) tls: Arc<Tls>,
}

impl CertificateUpdater {
    /// Uses that one from the next handshake on.
    pub fn replace(&self, served: Served) {
        take_certificate(served, &self.state, &self.tls);
    }
}
