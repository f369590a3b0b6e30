//! What `check` does with its inputs.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use crate::cli::outputs::Destination;
use crate::cli::repository_args::RepositoryArgs;
use crate::manifests::Input;

/// Input arguments.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    #[command(flatten)]
    pub(super) repository: RepositoryArgs,
    /// Exit with 2 if nothing was judged
    #[arg(long)]
    fail_if_empty: bool,
    /// Print the manifests of standard input unchanged unless something is denied, and everything else to standard error: as a
    /// post-renderer of Helm, and before kubectl apply
    #[arg(long)]
    pass_through: bool,
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
