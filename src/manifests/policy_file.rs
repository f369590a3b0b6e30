//! The policy file: reading it, and following its changes.

use std::path::{Path, PathBuf};

use super::{Input, InputError};
use crate::policy::{Policy, PolicyError};

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
    /// `None` after the file could not be read.
    text: Option<String>,
}

impl PolicyFile {
    /// Reads the file.
    pub fn open(path: PathBuf) -> Result<(Self, Policy), PolicyFileError> {
        let text = read(&path)?;
        let policy = parse(&path, &text)?;
        Ok((Self { path, text: Some(text) }, policy))
    }

    /// The text that was read last.
    pub fn into_text(self) -> String {
        self.text.unwrap_or_default()
    }

    /// The policy in the file now, if it is not what was there before.
    pub fn reread(&mut self) -> Option<Result<Policy, PolicyFileError>> {
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
    Ok(Input::File(path.into()).text()?.into_owned())
}

fn parse(path: &Path, text: &str) -> Result<Policy, PolicyFileError> {
    Policy::parse(text).map_err(|problem| PolicyFileError::Policy { path: path.display().to_string(), problem })
}
