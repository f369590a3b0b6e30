//! Reloading of policy and certificate files. An invalid new file is rejected and logged, and the last good one stays.

use std::sync::Arc;

use tracing::{error, info};

use super::ServerState;
use crate::manifests::PolicyFile;
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
            Some(Ok(policy)) => {
                info!("policy reloaded");
                state.take_policy(policy);
                state.metrics.policy_reloaded(Reload::Taken);
            }
            Some(Err(error)) => {
                error!(%error, "rejected changed policy file; keeping the last good policy");
                state.metrics.policy_reloaded(Reload::Refused);
            }
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
