//! `nadmit explain` on manifests, through the binary. The cluster tests run it beside a real API server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const EXAMPLE: &str = "tests/shown/explain.yaml";

fn explain(arguments: &[&str]) -> Output {
    explain_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}

fn explain_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    for name in [
        "NADMIT_POLICY",
        "NADMIT_OPERATOR_NAMESPACE",
        "NADMIT_RESOURCE_PREFIX",
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "NADMIT_KUBECONFIG",
    ] {
        command.env_remove(name);
    }
    command
        .arg("explain")
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

#[test]
fn the_example_as_text() {
    let out = explain(&[EXAMPLE]);
    insta::assert_snapshot!(text(&out.stdout));
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), ""));
    assert_eq!(explain(&["pod", "-f", EXAMPLE]).stdout, out.stdout, "both forms do the same");
    assert_eq!(explain(&[EXAMPLE]).stdout, out.stdout, "equal input gives equal bytes");
    let coloured = explain(&[EXAMPLE, "--color", "always"]);
    assert!(text(&coloured.stdout).contains('\u{1b}') && !text(&out.stdout).contains('\u{1b}'));
}

#[test]
fn the_example_as_json() {
    let out = explain(&["-o", "json", EXAMPLE]);
    let pretty = format!("{:#}", report(&out));
    insta::assert_snapshot!(pretty);
}

#[test]
fn the_example_as_a_page() {
    let out = explain(&["-o", "html", EXAMPLE]);
    let html = text(&out.stdout);
    let main = html.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>")).unwrap().0;
    insta::assert_snapshot!(main);
    assert!(html.contains("Content-Security-Policy") && !html.contains("unsafe"));
    assert_eq!((html.matches("<script>").count(), html.matches("src=").count()), (1, 0));
}

#[test]
fn several_outputs_in_one_run() {
    let directory = tempfile::tempdir().unwrap();
    let [json, html] = ["plan.json", "plan.html"].map(|name| directory.path().join(name));
    let out = explain(&[
        "-o",
        "human",
        "-o",
        &format!("json={}", json.display()),
        "-o",
        &format!("html={}", html.display()),
        EXAMPLE,
    ]);
    assert_eq!(out.stdout, explain(&[EXAMPLE]).stdout);
    assert_eq!(fs::read(json).unwrap(), explain(&["-o", "json", EXAMPLE]).stdout);
    assert_eq!(fs::read(html).unwrap(), explain(&["-o", "html", EXAMPLE]).stdout);
    let out = explain(&["-o", "human", "-o", "json", EXAMPLE]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("both go to standard output"));
}

#[test]
fn one_of_them_is_named() {
    for (arguments, names) in [
        (&["pod", "du-0"] as &[&str], &["du-0"] as &[&str]),
        (&["pod", "ran/du-0"], &["du-0"]),
        (&["pod", "du-0", "--namespace", "ran"], &["du-0"]),
        (&["pod", "Deployment/ran/probe"], &["probe"]),
        (&["pod"], &["du-0", "probe"]),
    ] {
        let out = explain(&[arguments, &["-o", "json", "-f", EXAMPLE]].concat());
        let pods = report(&out)["pods"].clone();
        let found: Vec<&str> = pods.as_array().unwrap().iter().map(|pod| pod["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{arguments:?}");
    }
    for (arguments, words) in [
        (&["pod", "other/du-0", "-f", EXAMPLE] as &[&str], "other/du-0 is not among the manifests"),
        (&["pod", "Pod/ran/probe", "-f", EXAMPLE], "ran/probe is not among the manifests"),
        (&["pod", "ran/du-0", "-n", "other", "-f", EXAMPLE], "name two namespaces"),
        (&["pod", "-n", "ran", "-f", EXAMPLE], "--namespace needs the name of a pod"),
        (&["pod", "Service/ran/du-0", "-f", EXAMPLE], "unknown kind `service`"),
        (&["pod", "Deployment/ran/probe"], "is explained in manifests only"),
        (&["pod"], "required"),
        (&[], "required"),
        (&["none.yaml"], "none.yaml"),
        (&["pod", "du-0"], "no cluster"),
    ] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let out = explain_in(directory, arguments);
        assert!(
            out.status.code() == Some(2) && text(&out.stderr).contains(words),
            "{arguments:?}: {}",
            text(&out.stderr)
        );
    }
}

fn pod(networks: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "apps",
        "annotations": { "k8s.v1.cni.cncf.io/networks": networks } }, "spec": {} })
}

fn nad(config: &str) -> Value {
    json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "net", "namespace": "apps" }, "spec": { "config": config } })
}

/// The exit code, the state of the first pod, and that of its first interface.
fn outcome(objects: &[Value]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    fs::write(&file, objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")).unwrap();
    let out = explain_in(directory.path(), &["-o", "json", file.to_str().unwrap()]);
    let report = report(&out);
    let state = |value: &Value| value["state"].as_str().unwrap_or_default().to_owned();
    let pod = &report["pods"][0];
    (out.status.code(), state(pod), state(&pod["interfaces"][0]))
}

#[test]
fn the_exit_code_says_whether_something_would_fail() {
    let good = || nad(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    let bad = nad(r#"{"cniVersion":"1.0.0","type":"macvlan","mode":"l2"}"#);
    let mut other = good();
    other["spec"]["config"] = json!(r#"{"cniVersion":"1.0.0","type":"ipvlan"}"#);
    for (objects, code, state, interface) in [
        (vec![pod("net"), good()], 0, "good", "good"),
        (vec![pod("net")], 0, "unknown", "unknown"),
        (vec![pod("net"), bad], 1, "broken", "broken"),
        (vec![pod("a@b@c"), good()], 1, "broken", ""),
        // Of two manifests that differ nobody knows which one counts; of two equal ones it does not matter.
        (vec![pod("net"), good(), other], 0, "unknown", "unknown"),
        (vec![pod("net"), good(), good()], 0, "good", "good"),
        (vec![good()], 0, "", ""),
    ] {
        let want = (Some(code), state.to_owned(), interface.to_owned());
        assert_eq!(outcome(&objects), want, "{objects:?}");
    }
}

/// Flux, OpenShift Templates and Kustomize replace variables before anything is applied.
#[test]
fn networks_of_variables_are_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    fs::write(&file, pod("net, ${NET}@$(INTERFACE)").to_string()).unwrap();
    let out = explain(&["-o", "json", file.to_str().unwrap()]);
    let found = report(&out);
    let pod = &found["pods"][0];
    assert_eq!(
        (out.status.code(), pod["state"].as_str(), pod["selection"].as_str()),
        (Some(0), Some("unknown"), Some("variables"))
    );
    assert_eq!(pod["summary"], "is unknown: its networks depend on variables");
}

/// A network outside of the operator's namespace renders nothing elsewhere.
#[test]
fn networks_that_the_operator_ignores_make_no_nad() {
    let network = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
        "metadata": { "name": "net", "namespace": "tenant" }, "spec": { "resourceName": "x", "networkNamespace": "apps" } });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    fs::write(&file, format!("{network}\n---\n{}", pod("net"))).unwrap();
    let file = file.to_str().unwrap();
    for (operator, want) in [("op", "unknown"), ("tenant", "found")] {
        let found = report(&explain(&["-o", "json", "--operator-namespace", operator, file]));
        assert_eq!(found["pods"][0]["interfaces"][0]["nad"]["state"], want, "{operator}");
    }
}

/// Nothing that a tenant writes reaches a terminal or a page as it is.
#[test]
fn hostile_texts_are_escaped() {
    let nasty = "\u{1b}[2J\u{202e}</script><script>x</script>\n";
    let config = json!({ "cniVersion": nasty, "name": nasty, "type": "macvlan", "master": nasty, "mac": nasty,
        "ipam": { "type": "whereabouts", "range": nasty, "exclude": [nasty], "gateway": nasty, "dns": { "nameservers": [nasty], "search": [nasty] },
            "routes": [{ "dst": nasty, "gw": nasty }], "addresses": [{ "address": nasty }] } });
    let mut nad = nad(&config.to_string());
    nad["metadata"]["annotations"] =
        json!({ "k8s.v1.cni.cncf.io/resourceName": nasty, "sriovnetwork.openshift.io/owner-ref": nasty });
    let selection = json!([{ "name": "net", "interface": nasty }, { "name": nasty, "namespace": nasty }]);
    let mut pod = pod(&selection.to_string());
    pod["spec"] = json!({ "nodeSelector": { nasty: nasty }, "nodeName": nasty,
        "containers": [{ "resources": { "limits": { format!("a/{nasty}"): "1" } } }] });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": nasty, "labels": { nasty: "x" } } });
    let policy = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": nasty },
        "spec": { "resourceName": nasty, "nodeSelector": { nasty: nasty } } });
    let unreadable = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": nasty, "namespace": nasty,
        "annotations": { "k8s.v1.cni.cncf.io/networks": nasty } } });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    let objects = [pod, nad, node, policy, unreadable].map(|object| object.to_string()).join("\n---\n");
    fs::write(&file, objects).unwrap();
    let file = file.to_str().unwrap();
    for format in ["human", "html"] {
        let out = explain(&["-o", format, file]);
        let shown = text(&out.stdout);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(shown.contains("\\u{1b}[2J\\u{202e}"), "{shown}");
        if format == "html" {
            assert_eq!((shown.matches("<script>").count(), shown.matches("</script>").count()), (1, 1));
        }
    }
    // Programs get the data.
    let report = report(&explain(&["-o", "json", file]));
    assert_eq!(report["pods"][0]["interfaces"][0]["name"], nasty);
    assert_eq!(report["pods"][0]["nodes"]["labels"][nasty], nasty);
    assert_eq!((&report["pods"][1]["namespace"], &report["pods"][1]["name"]), (&json!(nasty), &json!(nasty)));
}

/// The annotation is written by whoever creates the pod.
#[test]
fn a_huge_annotation_is_bounded() {
    let names: Vec<String> = (0..20_000).map(|number| format!("net-{number}")).collect();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    fs::write(&file, pod(&names.join(",")).to_string()).unwrap();
    let report = report(&explain(&["-o", "json", file.to_str().unwrap()]));
    let pod = &report["pods"][0];
    assert_eq!((pod["interfaces"].as_array().unwrap().len(), pod["left_out"].as_u64()), (32, Some(20_000 - 32)));
}

/// Directories and the configuration are read as `nadmit check` reads them.
#[test]
fn a_repository_is_read_as_check_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let good = nad(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    write("pods/a.yaml", &pod("net").to_string());
    write("nets/b.json", &good.to_string());
    write("generated/c.yaml", &pod("net").to_string());
    write("values.yaml", "replicas: 1\n");
    write(".nadmit.yaml", "exclude: [generated/]\n");
    let out = explain_in(directory.path(), &["-o", "json", "."]);
    let found = report(&out);
    assert_eq!((out.status.code(), found["pods"].as_array().unwrap().len()), (Some(0), 1));
    assert_eq!(found["pods"][0]["interfaces"][0]["nad"]["source"], "./nets/b.json");
    let all = report(&explain_in(directory.path(), &["-o", "json", "--no-config", "."]));
    assert_eq!(all["pods"].as_array().unwrap().len(), 2);
    write("broken.yaml", "kind: Pod\na: [");
    let out = explain_in(directory.path(), &["."]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("broken.yaml"), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("Pod apps/p"), "the others are explained");
}
