//! Parse, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use nadmit::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
