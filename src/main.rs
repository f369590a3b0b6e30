//! Parse, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use nadmit::cli::Cli;

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
