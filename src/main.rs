//! Allocator, parse, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use nadmit::cli::Cli;

/// The system's allocator gives the tree of a large config back after every judgement and gets it anew, which takes longer
/// than the judgement; this one keeps it for a while. Measured in `benches/README.md`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    nadmit::telemetry::report_panics();
    Cli::parse().run()
}
