//! The policy file on the command line.

use std::path::{Path, PathBuf};

use clap::Args;

use super::print_error;
use crate::manifests::{LoadedPolicy, PolicyFile, PolicyFileError};
use crate::policy::Policy;

/// Policy arguments.
#[derive(Clone, Debug, Args)]
pub(super) struct PolicyArgs {
    /// The policy file
    #[arg(long, env = "NADMIT_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl PolicyArgs {
    /// With this file, unless one was given.
    pub(super) fn or(&self, file: Option<&Path>) -> Self {
        Self { policy: self.policy.clone().or_else(|| file.map(Path::to_path_buf)) }
    }

    /// The file, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.policy.as_deref()
    }

    /// The policy; without a file, the default policy. Warnings go to standard error.
    pub(super) fn read(&self) -> Result<Policy, PolicyFileError> {
        Ok(self.read_with_file()?.1)
    }

    /// The policy and its file, if there is one. Warnings go to standard error.
    pub(super) fn read_with_file(&self) -> Result<(Option<PolicyFile>, Policy), PolicyFileError> {
        let (file, LoadedPolicy { policy, .. }) = self.open()?;
        if let Some(path) = &self.policy {
            for warning in policy.warnings() {
                print_error(format_args!("nadmit: {}: {warning}", path.display()));
            }
        }
        Ok((file, policy))
    }

    /// The policy and its file, if there is one, for a command that logs the warnings.
    pub(super) fn open(&self) -> Result<(Option<PolicyFile>, LoadedPolicy), PolicyFileError> {
        Ok(match self.policy.clone().map(PolicyFile::open).transpose()? {
            Some((file, policy)) => (Some(file), policy),
            None => (None, Policy::default().into()),
        })
    }
}
