//! `nadmit doctor` without a cluster. The cluster tests run it beside a real API server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

/// `nadmit doctor` without any cluster from the environment.
fn command(arguments: &[&str], home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NADMIT_KUBECONFIG", "NADMIT_CONTEXT", "NADMIT_POLICY"] {
        command.env_remove(name);
    }
    command.arg("doctor").args(arguments).env("HOME", home);
    command
}

fn doctor(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    command(arguments, home.path()).output().unwrap()
}

/// A kubeconfig with a server that does not respond: no process listens on the port of the discard service.
fn kubeconfig(current: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": current,
        "clusters": [{ "name": "it", "cluster": { "server": "https://127.0.0.1:9" } }],
        "users": [{ "name": "it", "user": { "token": "t" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    })
    .to_string()
}

/// Like kubectl: of several files those that do not exist are skipped, and an empty current context is none.
#[test]
fn several_kubeconfigs_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("unset"), kubeconfig("")).unwrap();
    fs::write(path("set"), kubeconfig("it")).unwrap();
    for (files, words) in [
        (vec!["missing", "unset", "set"], "cannot reach "),
        (vec!["set", "unset"], "cannot reach "),
        (vec!["unset"], "cannot use the kubeconfig"),
        (vec!["missing"], "no kubeconfig found"),
    ] {
        let list: Vec<_> = files.iter().map(|name| path(name)).collect();
        let mut command = command(&["op/net"], directory.path());
        let output = command.env("KUBECONFIG", list.join(":")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(words), "{files:?}: {:?} {text}", output.status);
    }
}

#[test]
fn unreachable_cluster_exits_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    fs::write(&file, kubeconfig("it")).unwrap();
    let config = format!("--kubeconfig={}", file.display());
    let missing = format!("--kubeconfig={}/none", directory.path().display());
    for (arguments, words) in [
        (&["net"] as &[&str], "no cluster: no kubeconfig found at "),
        (&["net", "--context", "it"], "--context: no kubeconfig found"),
        (&["net", &missing], "cannot read the kubeconfig "),
        (&["net", &config, "--context", "other"], "other"),
        (&["net", &config], "cannot reach "),
        (&["op/net", &config, "--wait", "60s"], "cannot reach "),
        (&["--canary", "--yes", &config], "cannot reach "),
        (&[], "NETWORK"),
        (&["net", "--canary"], "cannot be used with"),
        (&["net", "--yes"], "cannot be used with"),
        (&["net", "--resource-name", "cx7"], "cannot be used with"),
        (&["--yes"], "--canary"),
        (&["net", "-A", "-n", "a"], "cannot be used with"),
        (&["--canary", "--yes", "-n", "a"], "cannot be used with"),
        (&["op/net", "-n", "other", &config], "name two namespaces"),
        (&["net", "-n", "a", &config], "cannot reach "),
        (&["net", "--user", "none", &config], "the kubeconfig has no user \"none\""),
        (&["net", "--cluster", "none", &config], "none"),
        (&["net", "--user", "it"], "--user: no kubeconfig found"),
        (&["pod", "web", &config], "cannot reach "),
        (&["pod", "a/web", "-n", "b", &config], "name two namespaces"),
        (&["pod", "a/b/c"], "write NAME or NAMESPACE/NAME"),
        (&["Pod/a/b"], "use SriovNetwork, SriovIBNetwork or OVSNetwork"),
        (&["a/b/c/d"], "write KIND/NAMESPACE/NAME, NAMESPACE/NAME or NAME"),
        (&["net", "--wait", "soon"], "write 5s or 500ms"),
        (&["net", "--policy", "nowhere.yaml"], "nowhere.yaml"),
    ] {
        let output = doctor(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(words), "{arguments:?}: {:?} {text}", output.status);
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
