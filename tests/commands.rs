//! The command line itself: its manual pages, nadmit as a plugin of kubectl, and what `install` and `uninstall` ask for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use nadmit::cli::Cli;

/// Runs nadmit, or a link to it, without a terminal.
fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("NADMIT_POLICY", "of-the-caller.yaml").output().unwrap()
}

fn nadmit(arguments: &[&str]) -> Output {
    run(Path::new(env!("CARGO_BIN_EXE_nadmit")), arguments)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The options of each command, by the name of its page.
fn options(command: &clap::Command, name: &str, all: &mut BTreeMap<String, Vec<String>>) {
    let long = command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
    all.insert(format!("{name}.1"), long.map(|long| format!("--{long}").replace('-', "\\-")).collect());
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        options(sub, &format!("{name}-{}", sub.get_name()), all);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let man = directory.path().join("share/man1");
    let written = || {
        let out = nadmit(&["man", man.to_str().unwrap()]);
        assert!(out.status.success() && out.stdout.is_empty(), "{}", text(&out.stderr));
        let files = fs::read_dir(&man).unwrap().map(|entry| entry.unwrap().path());
        let page = |path: std::path::PathBuf| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        };
        files.map(page).collect::<BTreeMap<_, _>>()
    };
    let pages = written();
    let mut command = Cli::command();
    command.build();
    let mut wanted = BTreeMap::new();
    options(&command, "nadmit", &mut wanted);
    assert_eq!(pages.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    let mut checked = 0;
    for (name, options) in &wanted {
        let page = &pages[name];
        assert!(page.contains(".SH SYNOPSIS") && !page.contains("of-the-caller"), "{name}: {page}");
        for option in options {
            assert!(page.contains(option.as_str()), "{name} does not have {option}");
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} options");
    assert_eq!(written(), pages, "equal input gives equal bytes");
    assert_eq!(text(&nadmit(&["man"]).stdout), pages["nadmit.1"]);
}

#[test]
fn under_its_name_as_a_plugin_it_speaks_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let [plugin, completer] = ["kubectl-nadmit", "kubectl_complete-nadmit"].map(|name| {
        let path = directory.path().join(name);
        symlink(env!("CARGO_BIN_EXE_nadmit"), &path).unwrap();
        path
    });
    for (arguments, code, words) in [
        (&["--help"][..], 0, &["Usage: kubectl nadmit <COMMAND>"][..]),
        (&["audit", "--help"], 0, &["Usage: kubectl nadmit audit [OPTIONS]", "`kubectl nadmit install --audit-only`"]),
        (&["help", "doctor", "pod"], 0, &["Usage: kubectl nadmit doctor pod [OPTIONS]"]),
        (&["check", "--none"], 2, &["Usage: kubectl nadmit check"]),
        (&[], 2, &["Usage: kubectl nadmit <COMMAND>"]),
        (&["--version"], 0, &[concat!("nadmit ", env!("CARGO_PKG_VERSION"))]),
        (&["rules", "nad/schema"], 0, &["nad/schema"]),
        (&["check", "--policy", "/dev/null", "examples/telco.yaml"], 1, &["fixed with `kubectl nadmit check --fix`"]),
        (&["check", "--policy", "/dev/null", "deploy/chart/templates/service.yaml"], 2, &["| kubectl nadmit check -"]),
    ] {
        let out = run(&plugin, arguments);
        let shown = [text(&out.stdout), text(&out.stderr)].concat();
        // A paragraph is wrapped at any space.
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {shown}");
        for words in words {
            assert!(shown.contains(words), "{arguments:?}: {shown}");
        }
    }
    assert!(!text(&nadmit(&["audit", "--help"]).stdout).contains("kubectl nadmit"));
    let out = run(&completer, &["audit", "--all"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "--all-namespaces\n:4\n"));
}

#[test]
fn install_needs_an_image_and_uninstall_a_yes() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("admission");
    for (arguments, code, words) in [
        (&["install"][..], 2, "--image is required"),
        (&["install", "--monitoring"], 2, "docker build -t REGISTRY/nadmit:"),
        (&["install", "--image", ""], 2, "--image"),
        (&["install", "--image", "r.example/nadmit:1"], 0, "image: \"r.example/nadmit:1\""),
        (&["install", "--audit-only"], 0, "name: nadmit-audit"),
        (&["install", "--admission-files", files.to_str().unwrap()], 0, "admission.yaml"),
        (&["uninstall"], 2, "pass --dry-run to see what it would delete, or --yes to delete it"),
        (&["uninstall", "--registration-only"], 2, "there is no terminal"),
        (&["uninstall", "--yes", "--dry-run"], 2, "cannot be used with"),
    ] {
        let out = nadmit(arguments);
        let shown = text(if code == 0 { &out.stdout } else { &out.stderr });
        assert!(out.status.code() == Some(code) && shown.contains(words), "{arguments:?}: {:?} {shown}", out.status);
        assert!(code == 0 || out.stdout.is_empty(), "{arguments:?}");
    }
}

/// Errors about a cluster name the server, the context or the file, and the cause once.
#[test]
fn errors_name_the_server_the_context_and_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let kubeconfig = at("config");
    fs::write(
        &kubeconfig,
        "{apiVersion: v1, kind: Config, current-context: dev, clusters: [{name: dev, cluster: {server: 'https://127.0.0.1:1'}}], \
         users: [{name: dev, user: {token: t}}], contexts: [{name: dev, context: {cluster: dev, user: dev}}]}",
    )
    .unwrap();
    let refused = "cannot reach https://127.0.0.1:1 (context \"dev\"): connection refused\n";
    let missing = at("none");
    for (arguments, want) in [
        (&["audit", "--kubeconfig", &kubeconfig] as &[&str], refused.to_owned()),
        (&["uninstall", "--dry-run", "--kubeconfig", &kubeconfig], refused.to_owned()),
        (
            &["audit", "--kubeconfig", &kubeconfig, "--context", "nope"],
            "error: the kubeconfig has no context \"nope\"; it has \"dev\"\n".to_owned(),
        ),
        (
            &["audit", "--kubeconfig", &missing],
            format!("error: cannot read the kubeconfig \"{missing}\": no such file or directory\n"),
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
        let output = command.args(arguments).env_remove("NADMIT_POLICY").output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.ends_with(&want), "{arguments:?}: {error}");
        assert_eq!(error.to_lowercase().matches("refused").count(), usize::from(want == refused), "{error}");
        assert!(!error.contains("cannot delete") && !error.contains("os error"), "{error}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.arg("audit").env("KUBECONFIG", format!("{missing}:{}", at("other")));
    command
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("NADMIT_KUBECONFIG")
        .env_remove("NADMIT_CONTEXT")
        .env_remove("NADMIT_POLICY");
    let error = command.output().unwrap().stderr;
    let want = format!("no kubeconfig found at {missing} or {}, and not running in a pod", at("other"));
    assert!(text(&error).contains(&want), "{}", text(&error));
}
