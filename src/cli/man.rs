//! `nadmit man`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use super::{Cli, EXIT_CLEAN, print};

/// Write the manual pages
///
/// One page for each command: nadmit man ~/.local/share/man/man1. Without a directory, it prints the page of nadmit itself:
/// nadmit man | man -l -
#[derive(Debug, Args)]
pub(super) struct ManualPages {
    /// Where they are written to; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ManualPages {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page)?;
            return print(&String::from_utf8_lossy(&page));
        };
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        clap_mangen::generate_to(Cli::command(), directory).with_context(|| directory.display().to_string())?;
        Ok(EXIT_CLEAN)
    }
}
