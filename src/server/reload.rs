//! Files that may change while the server runs: the policy and the certificates. A broken new one is refused loudly, and the
//! last good one stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::{error, info};

use super::State;
use crate::manifests::{Input, InputError};
use crate::policy::{Policy, PolicyError};
use crate::telemetry::metrics::Reload;
use crate::tls::{Files, Served, Tls};

/// How often files are compared with what was last seen in them.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// The largest policy file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Why a policy file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] InputError),
    /// It is larger than a policy is.
    #[error("{0}: it is larger than 1 MiB")]
    TooLarge(String),
    /// It is no policy.
    #[error("{path}: {problem}")]
    Policy {
        /// The file.
        path: String,
        /// What is wrong. It is part of the words, and so no cause of its own.
        problem: PolicyError,
    },
}

/// The policy file, and what was last seen in it.
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
    // One that is not there is for the reader to complain about.
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
pub struct Watched {
    /// The policy, if there is a file.
    pub policy: Option<PolicyFile>,
    /// The certificates, if they are files.
    pub certificates: Option<Files>,
}

impl Watched {
    /// Looks at every file once.
    pub(super) fn look(&mut self, state: &Arc<State>, tls: &Tls) {
        match self.policy.as_mut().and_then(PolicyFile::reread) {
            None => {}
            Some(Ok(policy)) => {
                info!("the policy file changed, and is in force");
                state.take_policy(policy);
                state.metrics.policy_reloaded(Reload::Taken);
            }
            Some(Err(error)) => {
                error!(%error, "the policy file changed and is refused; the last good policy stays in force");
                state.metrics.policy_reloaded(Reload::Refused);
            }
        }
        match self.certificates.as_mut().and_then(Files::reread) {
            None => {}
            Some(Ok(served)) => {
                info!(expires = served.expires, "the certificate files changed, and are used");
                take_certificate(served, state, tls);
            }
            Some(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                error!(%error, cause, "the certificate files changed and are refused; the last good ones stay");
                state.metrics.certificate_reloaded(Reload::Refused);
            }
        }
    }
}

/// The next handshake has that certificate.
fn take_certificate(served: Served, state: &State, tls: &Tls) {
    state.metrics.expires("serving", served.expires);
    tls.replace(served);
    state.metrics.certificate_reloaded(Reload::Taken);
}

/// Whoever gets certificates from elsewhere hands them to the server here.
#[derive(Clone)]
pub struct Certificates {
    pub(super) state: Arc<State>,
    pub(super) tls: Arc<Tls>,
}

impl Certificates {
    /// Uses that one from the next handshake on.
    pub fn take(&self, served: Served) {
        take_certificate(served, &self.state, &self.tls);
    }
}
