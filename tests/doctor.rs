//! `nadmit doctor` where there is no cluster. What it says of one is tested beside a real API server.

use std::fs;
use std::process::{Command, Output};

use serde_json::json;

/// Runs it without any cluster that the environment would lead to.
fn doctor(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NADMIT_KUBECONFIG", "NADMIT_CONTEXT", "NADMIT_POLICY"] {
        command.env_remove(name);
    }
    command.arg("doctor").args(arguments).env("HOME", home.path()).output().unwrap()
}

#[test]
fn what_cannot_be_asked_ends_with_2_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    // Nobody listens on the port of the discard service any more.
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": "https://127.0.0.1:9" } }],
        "users": [{ "name": "it", "user": { "token": "t" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    fs::write(&file, kubeconfig.to_string()).unwrap();
    let config = format!("--kubeconfig={}", file.display());
    let missing = format!("--kubeconfig={}/none", directory.path().display());
    for (arguments, words) in [
        (&["net"] as &[&str], "there is no cluster: no kubeconfig, and this is no pod"),
        (&["net", "--context", "it"], "--context: there is no kubeconfig"),
        (&["net", &missing], "no usable kubeconfig"),
        (&["net", &config, "--context", "other"], "other"),
        (&["net", &config], "the API server cannot be asked"),
        (&["op/net", &config, "--wait", "60s"], "the API server cannot be asked"),
        (&["--canary", "--yes", &config], "the API server cannot be asked"),
        (&[], "NETWORK"),
        (&["net", "--canary"], "cannot be used with"),
        (&["net", "--yes"], "cannot be used with"),
        (&["net", "--resource-name", "cx7"], "cannot be used with"),
        (&["--yes"], "--canary"),
        (&["Pod/a/b"], "is no kind of network: write SriovNetwork, SriovIBNetwork or OVSNetwork"),
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
