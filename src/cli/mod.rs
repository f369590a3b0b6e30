//! Command-line arguments and wiring only.

mod audit;
mod audit_log;
mod check;
mod color;
mod connection;
mod doctor;
mod explain;
mod fix;
mod in_cluster;
mod install;
mod man;
mod map;
mod output_args;
mod outputs;
mod plugin;
mod policy;
mod policy_args;
mod progress;
mod repository_args;
mod rules;
mod secret;
mod serve;
mod stored;
mod uninstall;

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::plugin::ProgramName;
use crate::visible;

/// Nothing was denied.
const EXIT_CLEAN: u8 = 0;
/// Something was denied.
const EXIT_DENIED: u8 = 1;
/// The arguments or an input are not what they should be.
const EXIT_UNUSABLE: u8 = 2;
/// The timeout expired.
const EXIT_TIMEOUT: u8 = 3;

/// Admission control for SR-IOV networks on Kubernetes.
///
/// nadmit judges NetworkAttachmentDefinitions and the SR-IOV operator's networks (SriovNetwork, SriovIBNetwork, OVSNetwork): it
/// reports what will fail when a pod starts, and repairs what it can, above all a missing resourceName.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is only one value in the process")]
enum Command {
    Serve(Box<serve::Serve>),
    Check(check::Check),
    Audit(audit::Audit),
    Doctor(doctor::Doctor),
    Explain(Box<explain::Explain>),
    Map(Box<map::MapCommand>),
    AuditLog(audit_log::AuditLog),
    Policy(policy::PolicyCommand),
    Install(install::Install),
    Uninstall(uninstall::Uninstall),
    Rules(rules::Rules),
    /// Print the JSON schema of the policy file
    Schema,
    /// Print a completion script for a shell
    ///
    /// For bash: nadmit completions bash > /etc/bash_completion.d/nadmit
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    Man(man::ManualPages),
}

/// Runs the program that was started: nadmit, or under another name what kubectl runs for `kubectl nadmit`.
pub fn run_program() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let command = match ProgramName::of(arguments.first().map(OsString::as_os_str)) {
        ProgramName::Nadmit => Cli::command(),
        ProgramName::Plugin => {
            plugin::remember();
            plugin::of_kubectl(Cli::command())
        }
        ProgramName::Completer => {
            let given: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let printed = print(&plugin::candidates(Cli::command(), &given));
            return ExitCode::from(printed.unwrap_or(EXIT_UNUSABLE));
        }
    };
    let matches = command.get_matches_from(arguments);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).run()
}

impl Cli {
    /// Runs the command and returns the exit code.
    pub fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Check(check) => check.run(),
            Command::Audit(audit) => audit.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Explain(explain) => explain.run(),
            Command::Map(map) => map.run(),
            Command::AuditLog(audit_log) => audit_log.run(),
            Command::Policy(policy) => policy.run(),
            Command::Install(install) => install.run(),
            Command::Uninstall(uninstall) => uninstall.run(),
            Command::Rules(rules) => rules.run(),
            Command::Schema => print(&format!("{:#}\n", crate::policy::Policy::schema())),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "nadmit", &mut script);
                print(&String::from_utf8_lossy(&script))
            }
            Command::Man(pages) => pages.run(),
        };
        match result {
            Ok(code) => ExitCode::from(code),
            // A closed pipe is no error.
            Err(error) if is_closed_pipe(&error) => ExitCode::from(EXIT_CLEAN),
            Err(error) => {
                print_error(format_args!("error: {error:#}"));
                ExitCode::from(EXIT_UNUSABLE)
            }
        }
    }
}

fn print(text: &str) -> anyhow::Result<u8> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(EXIT_CLEAN)
}

/// Prints a line to standard error, escaped: it may quote untrusted text such as a file name.
fn print_error(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", visible::line(&plugin::as_started(line.to_string())));
}

/// Asks a question on the terminal; only a yes counts. It is the only question, so no crate for prompts is used.
fn confirm(question: &str) -> io::Result<bool> {
    eprint!("{} [y/N] ", visible::line(question));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The error for a file that cannot be read, which says what the file is for.
fn unreadable(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot read {what} \"{}\": {}", path.display(), visible::cause(error))
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
