//! `nadmit doctor` without a cluster. The cluster tests run it beside a real API server.

use std::fs;
use std::process::{Command, Output};

use serde_json::json;

/// Runs `nadmit doctor` without any cluster from the environment.
fn doctor(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NADMIT_KUBECONFIG", "NADMIT_CONTEXT", "NADMIT_POLICY"] {
        command.env_remove(name);
    }
    command.arg("doctor").args(arguments).env("HOME", home.path()).output().unwrap()
}

#[test]
fn unreachable_cluster_exits_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    // No process listens on the port of the discard service.
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
        (&["net"] as &[&str], "no cluster: no kubeconfig found and not running in a pod"),
        (&["net", "--context", "it"], "--context: no kubeconfig found"),
        (&["net", &missing], "cannot use the kubeconfig"),
        (&["net", &config, "--context", "other"], "other"),
        (&["net", &config], "request to the API server failed"),
        (&["op/net", &config, "--wait", "60s"], "request to the API server failed"),
        (&["--canary", "--yes", &config], "request to the API server failed"),
        (&[], "NETWORK"),
        (&["net", "--canary"], "cannot be used with"),
        (&["net", "--yes"], "cannot be used with"),
        (&["net", "--resource-name", "cx7"], "cannot be used with"),
        (&["--yes"], "--canary"),
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
