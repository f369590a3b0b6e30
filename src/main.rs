//! Allocator, parse, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use nadmit::cli::Cli;

/// The system's allocator gives the tree of a large config back after every judgement and gets it anew, which takes longer
/// than the judgement; this one keeps it for a while. Measured in `benches/README.md`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    silence_yaml_panics();
    Cli::parse().run()
}

/// The YAML parser panics on a few texts, which is caught and reported where it is called; the rest of the panics are ours.
fn silence_yaml_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|location| location.file().contains("libyaml-safer")) {
            default(info);
        }
    }));
}
