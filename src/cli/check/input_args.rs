//! What `check` reads: the configuration of the repository, and what it leaves out of directories.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::Args;

use crate::cli::outputs::Destination;
use crate::manifests::{ConfigFile, IgnoreList, Input};

/// Input arguments.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// Leave out of directories what matches this pattern, as in a .gitignore of the working directory; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Exit with 2 if nothing was judged
    #[arg(long)]
    fail_if_empty: bool,
    /// Print the manifests of standard input unchanged unless something is denied, and everything else to standard error: as a post-renderer of
    /// Helm, and before kubectl apply
    #[arg(long)]
    pass_through: bool,
    /// The configuration [default: .nadmit.yaml in the working directory or above it, up to the root of the git repository]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use no configuration
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
}

impl InputArgs {
    /// Rejects invalid combinations.
    pub(super) fn check(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        let is_stdin = matches!(paths, [path] if path.as_os_str() == "-");
        ensure!(
            !self.pass_through || is_stdin,
            "--pass-through needs - as its only path: the manifests of standard input"
        );
        Ok(())
    }

    /// Where outputs without a file go.
    pub(super) fn standard_output(&self) -> Destination {
        if self.pass_through { Destination::Stderr } else { Destination::Stdout }
    }

    /// The configuration that holds here.
    pub(super) fn config(&self) -> anyhow::Result<Option<ConfigFile>> {
        Ok(match &self.config {
            Some(path) => Some(ConfigFile::open(path)?),
            None if self.no_config => None,
            None => ConfigFile::find(Path::new("."))?,
        })
    }

    /// The patterns of the arguments.
    pub(super) fn exclude(&self) -> anyhow::Result<IgnoreList> {
        // Without symbolic links, like the paths that it is compared with.
        let here = fs::canonicalize(".").context("cannot read the working directory")?;
        IgnoreList::new(here, &self.exclude).map_err(|(number, problem)| {
            anyhow!("--exclude {}: {problem}", self.exclude.get(number).map_or("", String::as_str))
        })
    }

    /// Whether it is an error that nothing was judged.
    pub(super) fn fails_if_empty(&self) -> bool {
        self.fail_if_empty
    }

    /// Prints the manifests of standard input, if that is wanted.
    pub(super) fn pass_through(&self, inputs: &[Input]) -> anyhow::Result<()> {
        if self.pass_through {
            let mut out = io::stdout().lock();
            for input in inputs {
                out.write_all(input.text()?.as_bytes())?;
            }
            out.flush()?;
        }
        Ok(())
    }
}

/// A path from the working directory, if it is below.
pub(super) fn from_here(path: &Path) -> PathBuf {
    let here = env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf)).unwrap_or_else(|| path.to_path_buf())
}
