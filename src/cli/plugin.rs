//! nadmit as a plugin of kubectl: `kubectl nadmit` runs the program `kubectl-nadmit` on the PATH, and to complete its arguments
//! the program `kubectl_complete-nadmit`. Both are nadmit under another name.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Command, CommandFactory};

/// What the program is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramName {
    Nadmit,
    Plugin,
    Completer,
}

impl ProgramName {
    /// By the path with which the program was started.
    pub(super) fn of(path: Option<&OsStr>) -> Self {
        match path.and_then(|path| Path::new(path).file_name()).and_then(OsStr::to_str) {
            Some("kubectl-nadmit") => Self::Plugin,
            Some("kubectl_complete-nadmit") => Self::Completer,
            _ => Self::Nadmit,
        }
    }
}

/// Set where nadmit runs as a plugin.
static IS_PLUGIN: OnceLock<()> = OnceLock::new();

/// Remembers that nadmit runs as a plugin, for all that it prints.
pub(super) fn remember() {
    IS_PLUGIN.get_or_init(|| ());
}

/// What a user types to start nadmit.
pub(super) fn program() -> &'static str {
    if IS_PLUGIN.get().is_some() { "kubectl nadmit" } else { "nadmit" }
}

/// A text with the commands as a user types them.
pub(super) fn as_started(text: String) -> String {
    if IS_PLUGIN.get().is_none() {
        return text;
    }
    let names: Vec<String> = super::Cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    in_kubectl(&text, &names)
}

/// The command as a user of kubectl writes it, in usage lines and in texts.
pub(super) fn of_kubectl(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    command.bin_name("kubectl nadmit").mut_subcommands(|sub| renamed(sub, &names))
}

fn renamed(command: Command, names: &[String]) -> Command {
    let in_kubectl = |text: &StyledStr| StyledStr::from(in_kubectl(&text.to_string(), names));
    let about = Resettable::from(command.get_about().map(in_kubectl));
    let long_about = Resettable::from(command.get_long_about().map(in_kubectl));
    command.about(about).long_about(long_about).mut_subcommands(|sub| renamed(sub, names))
}

/// A text in which each command of nadmit is one of kubectl.
fn in_kubectl(text: &str, names: &[String]) -> String {
    let mut parts = text.split("nadmit ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word =
            part.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').next().unwrap_or_default();
        all += if names.iter().any(|name| name == word) { "kubectl nadmit " } else { "nadmit " };
        all += part;
    }
    all
}

/// The candidates for the last of some arguments, as kubectl expects them: one in each line, and at the end whether file names
/// are candidates too.
pub(super) fn candidates(mut command: Command, arguments: &[String]) -> String {
    command.build();
    let (last, before) = arguments.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut current = &command;
    for word in before {
        current = current.find_subcommand(word).unwrap_or(current);
    }
    let is_named = |option: &&Arg, word: &str| {
        let (long, short) = (option.get_long(), option.get_short());
        long.is_some_and(|long| word.strip_prefix("--") == Some(long))
            || short.is_some_and(|short| word == format!("-{short}"))
    };
    let option = before.last().and_then(|word| current.get_arguments().find(|option| is_named(option, word)));
    let mut found: Vec<String> = match option.filter(|option| option.get_action().takes_values()) {
        Some(option) => option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        None => {
            let commands = current.get_subcommands().map(|sub| sub.get_name().to_owned());
            let options = current.get_arguments().filter_map(Arg::get_long).map(|long| format!("--{long}"));
            commands.chain(options.filter(|_| last.starts_with('-'))).collect()
        }
    };
    found.retain(|candidate| candidate.starts_with(last));
    // The directives of cobra: 0 adds file names, 4 does not.
    found.push(if found.is_empty() { ":0" } else { ":4" }.to_owned());
    found.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_name_of_the_program_decides() {
        for (path, want) in [
            ("/usr/bin/nadmit", ProgramName::Nadmit),
            ("kubectl-nadmit", ProgramName::Plugin),
            ("/home/jane/.krew/bin/kubectl-nadmit", ProgramName::Plugin),
            ("./kubectl_complete-nadmit", ProgramName::Completer),
            ("/kubectl-nadmit/nadmit", ProgramName::Nadmit),
            ("", ProgramName::Nadmit),
        ] {
            assert_eq!(ProgramName::of(Some(OsStr::new(path))), want, "{path}");
        }
        assert_eq!(ProgramName::of(None), ProgramName::Nadmit);
    }

    #[test]
    fn texts_name_the_commands_of_kubectl() {
        let names = ["audit", "audit-log"].map(str::to_owned);
        for (text, want) in [
            ("`nadmit audit --fix` and nadmit audit-log", "`kubectl nadmit audit --fix` and kubectl nadmit audit-log"),
            ("nadmit audits, and nadmit runs", "nadmit audits, and nadmit runs"),
            ("nadmit", "nadmit"),
        ] {
            assert_eq!(in_kubectl(text, &names), want);
        }
        let mut command = of_kubectl(Cli::command());
        let help = command.find_subcommand_mut("install").unwrap().render_long_help().to_string();
        assert!(help.contains("kubectl nadmit install --image IMAGE | kubectl apply -f -"), "{help}");
    }

    #[test]
    fn arguments_are_completed() {
        let complete = |arguments: &[&str]| {
            candidates(Cli::command(), &arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        for (arguments, want) in [
            (&["doc"][..], "doctor\n:4\n"),
            (&["audit", "--kube"], "--kubeconfig\n:4\n"),
            (&["audit", "--output", "s"], "sarif\n:4\n"),
            (&["audit", "-o", "js"], "json\n:4\n"),
            (&["doctor", "p"], "pod\n:4\n"),
            (&["doctor", "pod", "--name"], "--namespace\n:4\n"),
            (&["check", "manifests/"], ":0\n"),
            (&["check", "--policy", ""], ":0\n"),
            (&["none", "of", "these"], ":0\n"),
        ] {
            assert_eq!(complete(arguments), want, "{arguments:?}");
        }
        let all = complete(&[""]);
        assert!(all.starts_with("serve\ncheck\naudit\n") && all.ends_with(":4\n") && !all.contains("--"), "{all}");
        assert_eq!(complete(&[]), all);
    }
}
