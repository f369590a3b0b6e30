//! The text of a policy, and the policy file: reading it, and following its changes.

use std::path::{Path, PathBuf};

use super::{Input, InputError};
use crate::policy::{Policy, PolicyError};
use crate::tls::sha256_digits;
use crate::visible::cause;

/// The largest policy that is read.
const MAX_BYTES: u64 = 1 << 20;
/// How many digits of a hash are shown.
const HASH_DIGITS: usize = 12;

/// Why a policy file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// It cannot be read.
    #[error("cannot read policy file \"{path}\": {problem}")]
    Read {
        /// The file.
        path: String,
        /// What is wrong; part of the message, so not a source.
        problem: String,
    },
    /// It is larger than a policy is.
    #[error("{0}: the policy is larger than 1 MiB")]
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

/// A policy, and which text it was read from.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Policy,
    /// The first digits of the text's SHA-256; `default` if there is no text.
    pub hash: String,
}

impl LoadedPolicy {
    /// Reads a text; an error names where it comes from.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PolicyFileError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(PolicyFileError::TooLarge(origin.to_owned()));
        }
        let problem = |problem| PolicyFileError::Policy { path: origin.to_owned(), problem };
        Ok(Self { policy: Policy::parse(text).map_err(problem)?, hash: sha256_digits(text, HASH_DIGITS) })
    }
}

impl From<Policy> for LoadedPolicy {
    fn from(policy: Policy) -> Self {
        Self { policy, hash: "default".to_owned() }
    }
}

/// The policy file with its last content.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    /// `None` after the file could not be read.
    text: Option<String>,
}

impl PolicyFile {
    /// Reads the file.
    pub fn open(path: PathBuf) -> Result<(Self, LoadedPolicy), PolicyFileError> {
        let text = read(&path)?;
        let policy = parse(&path, &text)?;
        Ok((Self { path, text: Some(text) }, policy))
    }

    /// The text that was read last.
    pub fn into_text(self) -> String {
        self.text.unwrap_or_default()
    }

    /// The policy in the file now, if it is not what was there before.
    pub fn reread(&mut self) -> Option<Result<LoadedPolicy, PolicyFileError>> {
        match read(&self.path) {
            Ok(text) if self.text.as_ref() == Some(&text) => None,
            Ok(text) => {
                let policy = parse(&self.path, &text);
                self.text = Some(text);
                Some(policy)
            }
            Err(error) => self.text.take().map(|_| Err(error)),
        }
    }
}

fn read(path: &Path) -> Result<String, PolicyFileError> {
    // A missing file is reported by the read below.
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
        return Err(PolicyFileError::TooLarge(path.display().to_string()));
    }
    let text = Input::File(path.into()).text().map(|text| text.into_owned());
    text.map_err(|error| match error {
        InputError::Io { problem, .. } => {
            PolicyFileError::Read { path: path.display().to_string(), problem: cause(&problem) }
        }
        other => PolicyFileError::Read { path: path.display().to_string(), problem: other.to_string() },
    })
}

fn parse(path: &Path, text: &str) -> Result<LoadedPolicy, PolicyFileError> {
    LoadedPolicy::parse(&path.display().to_string(), text)
}
