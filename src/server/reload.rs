//! Reloading of policy and certificate files. An invalid new file is rejected and logged, and the last good one stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::{error, info};

use super::ServerState;
use crate::manifests::{Input, InputError};
use crate::policy::{Policy, PolicyError};
use crate::telemetry::metrics::Reload;
use crate::tls::{Files, Served, Tls};

/// The polling interval of the files.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// The largest policy file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Why a policy file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] InputError),
    /// It is larger than a policy is.
    #[error("cannot read policy file {0}: larger than 1 MiB")]
    TooLarge(String),
    /// It is no policy.
    #[error("{path}: {problem}")]
    Policy {
        /// The file.
        path: String,
        /// What is wrong; part of the message, so not a source.
        problem: PolicyError,
    },
}

/// The policy file with its last content.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    seen: Option<String>,
}

impl PolicyFile {
    /// Reads the file.
    pub fn open(path: PathBuf) -> Result<(Self, Policy), PolicyFileError> {
        let text = read(&path)?;
        let policy = parse(&path, &text)?;
        Ok((Self { path, seen: Some(text) }, policy))
    }

    /// The policy in the file now, if it is not what was there before.
    fn reread(&mut self) -> Option<Result<Policy, PolicyFileError>> {
        match read(&self.path) {
            Ok(text) if self.seen.as_ref() == Some(&text) => None,
            Ok(text) => {
                let policy = parse(&self.path, &text);
                self.seen = Some(text);
                Some(policy)
            }
            Err(error) => self.seen.take().map(|_| Err(error)),
        }
    }
}

fn read(path: &Path) -> Result<String, PolicyFileError> {
    // A missing file is reported by the read below.
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
        return Err(PolicyFileError::TooLarge(path.display().to_string()));
    }
    Ok(Input::File(path.into()).text()?.into_owned())
}

fn parse(path: &Path, text: &str) -> Result<Policy, PolicyFileError> {
    Policy::parse(text).map_err(|problem| PolicyFileError::Policy { path: path.display().to_string(), problem })
}

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
    pub fn take(&self, served: Served) {
        take_certificate(served, &self.state, &self.tls);
    }
}
