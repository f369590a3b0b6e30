//! What the commands that read manifests know about a repository: its configuration, what is left out of directories, and what is assumed
//! about the cluster.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use crate::manifests::{Assumptions, ConfigFile, IgnoreList};
use crate::policy::{Facts, Prefix};

/// The arguments about a repository.
#[derive(Debug, Args)]
pub(super) struct RepositoryArgs {
    /// Leave out of directories what matches this pattern, as in a .gitignore of the working directory; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// The configuration [default: .nadmit.yaml in the working directory or above it, up to the root of the git repository]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use no configuration
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
}

/// What manifests do not say about the cluster they are for.
#[derive(Debug, Args)]
pub(super) struct AssumptionArgs {
    /// The namespace the SR-IOV operator runs in
    #[arg(long, env = "NADMIT_OPERATOR_NAMESPACE", value_name = "NAME")]
    operator_namespace: Option<String>,
    /// The domain the operator prepends to resource names [default: openshift.io]
    #[arg(long, env = "NADMIT_RESOURCE_PREFIX", value_name = "DOMAIN")]
    resource_prefix: Option<String>,
}

impl AssumptionArgs {
    /// What is assumed about the cluster: by the arguments, or else by the configuration.
    pub(super) fn assumptions(&self, config: Option<&ConfigFile>) -> Assumptions {
        let prefix = self.resource_prefix.as_ref().or(config.and_then(|config| config.resource_prefix.as_ref()));
        let namespace =
            self.operator_namespace.as_ref().or(config.and_then(|config| config.operator_namespace.as_ref()));
        let prefix =
            Prefix { value: prefix.cloned().unwrap_or_else(|| "openshift.io".to_owned()), assumed: prefix.is_none() };
        let today = Facts::date(jiff::Timestamp::now());
        Assumptions { prefix, operator_namespace: namespace.cloned(), today }
    }

    /// The prefix of resource names, if it is given.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.resource_prefix.as_deref()
    }
}

impl RepositoryArgs {
    /// The configuration that holds here.
    pub(super) fn config(&self) -> anyhow::Result<Option<ConfigFile>> {
        Ok(match &self.config {
            Some(path) => Some(ConfigFile::open(path)?),
            None if self.no_config => None,
            None => ConfigFile::find(Path::new("."))?,
        })
    }

    /// The policy file that the configuration names.
    pub(super) fn policy(config: Option<&ConfigFile>) -> Option<PathBuf> {
        config?.policy.as_deref().map(from_here)
    }

    /// What is left out of directories: by the arguments, and by the configuration.
    pub(super) fn excluded(&self, config: Option<&mut ConfigFile>) -> anyhow::Result<Vec<IgnoreList>> {
        let of_config = config.and_then(|config| config.exclude.take());
        Ok([self.exclude()?].into_iter().chain(of_config).collect())
    }

    fn exclude(&self) -> anyhow::Result<IgnoreList> {
        // Without symbolic links, like the paths that it is compared with.
        let here = fs::canonicalize(".").context("cannot read the working directory")?;
        IgnoreList::new(here, &self.exclude).map_err(|(number, problem)| {
            anyhow!("--exclude {}: {problem}", self.exclude.get(number).map_or("", String::as_str))
        })
    }
}

/// A path from the working directory, if it is below.
fn from_here(path: &Path) -> PathBuf {
    let here = env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf)).unwrap_or_else(|| path.to_path_buf())
}
