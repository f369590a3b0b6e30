//! `nadmit install`, the chart and kustomize yield the same objects for the same options.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nadmit::deploy::{CertificateSource, Options, ServiceRef, hook};
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::bin;
use crate::harness::run;
use crate::install::{printed, read};

/// A file or a directory of the repository.
pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Helm, with that directory as its home.
pub fn helm(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(bin().join("helm"));
    for kind in ["CACHE", "CONFIG", "DATA"] {
        command.env(format!("HELM_{kind}_HOME"), home.join(kind));
    }
    command.args(arguments);
    command
}

/// The rendered chart, or Helm's error.
pub fn rendered(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let chart = root("deploy/chart");
    let template = ["template", "nadmit", chart.to_str().unwrap(), "--kube-version", "1.34.0"];
    run(helm(home.path(), &[&template, arguments].concat()))
}

/// What was printed.
pub fn stdout(out: Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Copies `deploy/` to where a user's kustomization is beside it.
pub fn beside_deploy() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(root("deploy")).arg(directory.path());
    assert!(run(copy).status.success());
    directory
}

/// What kustomize, which is part of kubectl, builds from the user's kustomization.
pub fn kustomized(directory: &Path, kustomization: &str) -> String {
    fs::write(directory.join("kustomization.yaml"), kustomization).unwrap();
    let mut command = Command::new(bin().join("kubectl"));
    command.arg("kustomize").arg(directory);
    let out = run(command);
    // Also no warnings, as of fields that are deprecated.
    assert!(out.stderr.is_empty(), "{kustomization}: {}", String::from_utf8_lossy(&out.stderr));
    stdout(out)
}

/// The objects of a rendered chart without and with hooks.
pub fn without_hooks(text: &str) -> (Vec<Value>, Vec<Value>) {
    read(text).into_iter().partition(|object| object["metadata"]["annotations"]["helm.sh/hook"].is_null())
}

/// Sorted, and without what depends only on the program that printed them: Helm's labels, and the namespace that kustomize gives to
/// cluster-scoped kinds that it does not know, which the API server ignores.
pub fn normalized(mut objects: Vec<Value>) -> Vec<Value> {
    let of_helm =
        ["helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"];
    for object in &mut objects {
        for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(labels) = object.pointer_mut(labels).and_then(Value::as_object_mut) {
                labels.retain(|key, _| !of_helm.contains(&key.as_str()));
            }
        }
        let kind = object["kind"].as_str().unwrap();
        if kind.starts_with("ValidatingAdmissionPolicy") || ["FlowSchema", "PriorityLevelConfiguration"].contains(&kind)
        {
            object["metadata"].as_object_mut().unwrap().remove("namespace");
        }
    }
    objects.sort_by_key(ToString::to_string);
    objects
}

/// The same without the namespace, which Helm itself creates.
fn without_namespace(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| object["kind"] != "Namespace");
    normalized(objects)
}

/// Options: their name, for `nadmit install`, for the chart, and the user's kustomization.
type InstallVariant<'t> = (&'t str, &'t [&'t str], &'t [&'t str], &'t str);

#[test]
fn install_chart_and_kustomize_yield_the_same_objects() {
    let directory = beside_deploy();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ca = file("ca.crt", &crate::certificates::TestAuthority::new("callers").pem());
    let policy = file("policy.yaml", "# Not yet.\nmode: audit\n\nrules:\n  nad/unknown-key: off\n");
    let (set_ca, set_policy) = (format!("clientCa={ca}"), format!("policy={policy}"));
    let labels = "options: {disableNameSuffixHash: true, labels: {app.kubernetes.io/name: nadmit, app.kubernetes.io/part-of: nadmit}}";
    let client_ca = format!(
        "resources: [deploy/kustomize/base]\ncomponents: [deploy/kustomize/components/client-ca]\n\
         configMapGenerator: [{{name: nadmit-client-ca, namespace: nadmit, files: [ca.crt], {labels}}}]\n"
    );
    let of_policy = "resources: [deploy/kustomize/base]\n\
         configMapGenerator: [{name: nadmit-policy, namespace: nadmit, behavior: replace, files: [policy.yaml], \
         options: {disableNameSuffixHash: true}}]\n";
    let with_pods = file("pods.yaml", "pods: warn\n");
    let set_pods = format!("policy={with_pods}");
    let of_pods = "resources: [deploy/kustomize/base]\ncomponents: [deploy/kustomize/components/pods]\n\
         configMapGenerator: [{name: nadmit-policy, namespace: nadmit, behavior: replace, files: [policy.yaml=pods.yaml], \
         options: {disableNameSuffixHash: true}}]\n";
    let monitoring = "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true";
    let digest = format!("sha256:{}", "0".repeat(64));
    let (by_digest, set_digest) = (format!("nadmit@{digest}"), format!("image.digest={digest}"));
    let of_digest = format!("resources: [deploy/kustomize/base]\nimages: [{{name: nadmit, digest: \"{digest}\"}}]\n");
    let rows: [InstallVariant<'_>; 14] = [
        ("defaults", &[], &[], "resources: [deploy/kustomize/base]\n"),
        (
            "cert-manager",
            &["--certificates", "cert-manager"],
            &["--set", "certificates=cert-manager"],
            "resources: [deploy/kustomize/overlays/cert-manager]\n",
        ),
        (
            "OpenShift",
            &["--certificates", "openshift"],
            &["--set", "certificates=openshift"],
            "resources: [deploy/kustomize/overlays/openshift]\n",
        ),
        (
            "a Secret",
            &["--certificates", "secret"],
            &["--set", "certificates=secret"],
            "resources: [deploy/kustomize/overlays/secret]\n",
        ),
        (
            "monitoring",
            &["--monitoring"],
            &["--set", monitoring],
            "resources: [deploy/kustomize/base]\ncomponents: [deploy/kustomize/components/monitoring]\n",
        ),
        (
            "dry runs",
            &["--dry-runs"],
            &["--set", "dryRuns=true"],
            "resources: [deploy/kustomize/base]\ncomponents: [deploy/kustomize/components/dry-runs]\n",
        ),
        ("pods", &["--policy", &with_pods], &["--set-file", &set_pods], of_pods),
        (
            "no backstop",
            &["--backstop=false"],
            &["--set", "backstop=false"],
            "resources: [deploy/kustomize/base]\ncomponents: [deploy/kustomize/components/without-backstop]\n",
        ),
        ("client certificates", &["--client-ca", &ca], &["--set-file", &set_ca], &client_ca),
        (
            "replicas and image",
            &["--replicas", "3", "--image", "registry.example:5000/net/nadmit:v1"],
            &["--set", "replicas=3,image.registry=registry.example:5000,image.repository=net/nadmit,image.tag=v1"],
            "resources: [deploy/kustomize/base]\nreplicas: [{name: nadmit, count: 3}]\n\
             images: [{name: nadmit, newName: \"registry.example:5000/net/nadmit\", newTag: v1}]\n",
        ),
        ("a digest", &["--image", &by_digest], &["--set", &set_digest], &of_digest),
        ("a policy", &["--policy", &policy], &["--set-file", &set_policy], of_policy),
        (
            "a namespace",
            &["--namespace", "networking", "--dry-runs", "--monitoring"],
            &["--namespace", "networking", "--set", monitoring, "--set", "dryRuns=true"],
            "namespace: networking\nresources: [deploy/kustomize/base]\n\
             components: [deploy/kustomize/components/dry-runs, deploy/kustomize/components/monitoring]\n",
        ),
        (
            "a namespace with cert-manager",
            &["--namespace", "networking", "--certificates", "cert-manager"],
            &["--namespace", "networking", "--set", "certificates=cert-manager"],
            "namespace: networking\nresources: [deploy/kustomize/overlays/cert-manager]\n\
             replacements: [{path: deploy/kustomize/overlays/cert-manager/dns-names.yaml}]\n",
        ),
    ];
    for (name, install, chart, kustomization) in rows {
        let install = printed(install);
        let built = normalized(read(&kustomized(directory.path(), kustomization)));
        assert_eq!(built, normalized(install.clone()), "kustomize: {name}");
        let in_namespace = ["--namespace", "nadmit"];
        let chart = if chart.contains(&"--namespace") { chart.to_vec() } else { [&in_namespace, chart].concat() };
        let (chart, _) = without_hooks(&stdout(rendered(&chart)));
        assert!(chart.iter().all(|object| object["metadata"]["labels"]["helm.sh/chart"].is_string()), "{name}");
        // The default policy has a comment only in the manifests.
        let parsed = |mut objects: Vec<Value>| {
            for object in objects.iter_mut().filter(|object| object["metadata"]["name"] == "nadmit-policy") {
                let text = object["data"]["policy.yaml"].as_str().unwrap();
                if nadmit::policy::Policy::parse(text).unwrap() == nadmit::policy::Policy::default() {
                    object["data"]["policy.yaml"] = "default".into();
                }
            }
            without_namespace(objects)
        };
        assert_eq!(parsed(chart), parsed(install), "the chart: {name}");
    }
}

/// Texts and names that a template could change.
#[test]
fn chart_keeps_every_text_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("policy.yaml");
    let ca = home.path().join("ca.crt");
    fs::write(&ca, crate::certificates::TestAuthority::new("callers").pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let policies = [
        "mode: audit\n\nrules:\n  nad/unknown-key: off\n",
        "# {{ not a template }}: \"quotes\", 'more' and \\ too\nmode: audit\n",
        "  rules:\n    nad/unknown-key: off\n",
    ];
    for certificates in CertificateSource::ALL {
        for (policy, namespace) in policies.into_iter().zip(["here", "123", "null"]) {
            fs::write(&file, policy).unwrap();
            let file = file.to_str().unwrap();
            let set_certificates = format!("certificates={}", certificates.name());
            let files = format!("policy={file},clientCa={ca}");
            let values = ["--set", &set_certificates, "--set-file", &files, "--set", "service.name=hooks"];
            let name = ["--namespace", namespace, "--set-string", "clientName=123"];
            let (chart, _) = without_hooks(&stdout(rendered(&[&values[..], &name].concat())));
            let install = ["--namespace", namespace, "--certificates", certificates.name(), "--policy", file];
            let more = ["--client-ca", ca, "--client-name", "123", "--service", "hooks"];
            let install = printed(&[&install[..], &more].concat());
            assert_eq!(without_namespace(chart), without_namespace(install), "{certificates:?}, {namespace}");
        }
    }
}

/// Objects that only the chart has: the Job of `helm uninstall`, as `src/deploy/hook.rs` has it, and the pod of `helm test`.
#[test]
fn chart_has_its_hooks() {
    let (_, hooks) = without_hooks(&stdout(rendered(&["--namespace", "here"])));
    let (tests, hooks): (Vec<_>, Vec<_>) =
        hooks.into_iter().partition(|hook| hook["metadata"]["annotations"]["helm.sh/hook"] == "test");
    let home = ServiceRef { namespace: "here".to_owned(), service: "nadmit".to_owned() };
    let wanted = hook::objects(&Options { home, ..Options::default() });
    assert_eq!(normalized(hooks), normalized(wanted));

    let kinds: Vec<_> = tests.iter().map(|test| test["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    let pod = tests.iter().find(|test| test["kind"] == "Pod").unwrap();
    let container = &pod["spec"]["containers"][0];
    let arguments: Vec<_> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let all = [&["nadmit"], &arguments[..]].concat();
    <nadmit::cli::Cli as clap::CommandFactory>::command().try_get_matches_from(all).unwrap();
    // The Service and `nadmit policy` must not take it for a replica.
    assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/name"], "nadmit-test");

    let (_, hooks) = without_hooks(&stdout(rendered(&["--set", "uninstallHook.enabled=false"])));
    assert_eq!(hooks.len(), tests.len());
}
