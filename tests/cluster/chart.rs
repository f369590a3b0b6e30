//! The chart with the real Helm: it renders what `nadmit install` prints, rejects unknown values, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nadmit::deploy::CertificateSource;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{TestCluster, bin};
use crate::harness::{nadmit, run};
use crate::install::{printed, read, sorted};
use crate::objects::{nad, nads};
use crate::processes::{Process, wait};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/nadmit/deployments/nadmit";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart")
}

/// Helm, with that directory as its home.
fn helm(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(bin().join("helm"));
    for kind in ["CACHE", "CONFIG", "DATA"] {
        command.env(format!("HELM_{kind}_HOME"), home.join(kind));
    }
    command.args(arguments);
    command
}

/// The rendered chart, or Helm's error.
fn rendered(home: &TempDir, arguments: &[&str]) -> Output {
    let chart = chart();
    let template = ["template", "nadmit", chart.to_str().unwrap(), "--kube-version", "1.34.0"];
    run(helm(home.path(), &[&template, arguments].concat()))
}

#[test]
fn chart_renders_what_install_prints() {
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
            let all = ["--namespace", namespace, "--set", "monitoring=true,dryRuns=true,replicas=3,service=hooks"];
            let image = "registry.example:5000/nadmit@sha256:0";
            let of_chart = [
                format!("certificates={}", certificates.name()),
                format!("policy={file},clientCa={ca}"),
                "clientName=kube-apiserver".to_owned(),
                format!("image={image}"),
            ];
            let values = ["--set", &of_chart[0], "--set-file", &of_chart[1], "--set", &of_chart[2]];
            let values = [&values[..], &["--set-string", &of_chart[3]]].concat();
            let out = rendered(&home, &[&all[..], &values].concat());
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            // Objects for `helm uninstall` exist only in the chart.
            let (hooks, chart): (Vec<_>, Vec<_>) = read(&String::from_utf8(out.stdout).unwrap())
                .into_iter()
                .partition(|object| object["metadata"]["annotations"]["helm.sh/hook"].is_string());
            assert!(hooks.len() == 4 && hooks.iter().any(|hook| hook["kind"] == "Job"), "{hooks:#?}");

            let flags = ["--monitoring", "--dry-runs", "--replicas", "3", "--service", "hooks", "--image", image];
            let more = ["--namespace", namespace, "--certificates", certificates.name(), "--policy", file];
            let more = [&more[..], &["--client-ca", ca, "--client-name", "kube-apiserver"]].concat();
            let mut install = printed(&[&flags[..], &more].concat());
            // Helm itself creates the namespace.
            install.retain(|object| object["kind"] != "Namespace");
            assert_eq!(sorted(chart), sorted(install), "{certificates:?}");
        }
    }
    let file = format!("clientCa={ca}");
    for (values, flags) in [
        // With the default values.
        (&[][..], &[][..]),
        (&["--set", "backstop=false"], &["--backstop=false"]),
        (&["--set-file", &file], &["--client-ca", ca]),
    ] {
        let chart = read(&String::from_utf8(rendered(&home, &[&["--no-hooks"], values].concat()).stdout).unwrap());
        let mut install = printed(&[&["--namespace", "default"], flags].concat());
        install.retain(|object| object["kind"] != "Namespace");
        assert_eq!(sorted(chart), sorted(install), "{values:?}");
    }
}

#[test]
fn chart_rejects_unknown_values() {
    let home = tempfile::tempdir().unwrap();
    let out = run(helm(home.path(), &["lint", "--strict", chart().to_str().unwrap()]));
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    for (values, about) in [
        ("replicas=0", "replicas"),
        ("replicas=many", "replicas"),
        ("certificates=mine", "certificates"),
        ("monitoring=perhaps", "monitoring"),
        ("backstop=1", "backstop"),
        ("dryRuns=perhaps", "dryRuns"),
        ("clientCa=5", "clientCa"),
        ("service=Not_A_Name", "service"),
        ("image=", "image"),
        ("image=null", "image"),
        ("policy.mode=audit", "policy"),
        ("replica=3", "replica"),
    ] {
        let out = rendered(&home, &["--set", values]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && stderr.contains("schema") && stderr.contains(about), "{values}: {stderr}");
    }
}

impl TestCluster {
    fn helm(&self, arguments: &[&str]) -> Command {
        let kubeconfig = self.kubeconfig("admin");
        let mut command = helm(self.directory(), arguments);
        command.args(["--namespace", "nadmit", "--kubeconfig", kubeconfig.to_str().unwrap()]);
        command
    }

    fn run_helm(&self, arguments: &[&str]) {
        let out = run(self.helm(arguments));
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// Installs the chart, and starts a nadmit that registers itself with the chart's permissions.
    fn install_chart(&mut self) {
        let chart = chart();
        self.run_helm(&["install", "nadmit", chart.to_str().unwrap(), "--create-namespace"]);
        self.point_service_here();
        self.start_nadmit();
        wait("the metric", || (self.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    }

    /// Runs the pod of a Job as a kubelet would: its arguments, with the permissions of its ServiceAccount.
    fn run_job(&self, job: &Value) {
        let pod = &job["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().unwrap();
        let out = self.kubectl("admin", &["create", "token", account, "--namespace", "nadmit"], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let token = String::from_utf8(out.stdout).unwrap();
        let kubeconfig = fs::read_to_string(self.kubeconfig("admin")).unwrap();
        let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
        kubeconfig["users"][0]["user"]["token"] = token.trim().into();
        let file = self.directory().join("job.kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let arguments: Vec<&str> =
            pod["containers"][0]["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let out = run(nadmit(&[&arguments[..], &["--kubeconfig", file.to_str().unwrap()]].concat()));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    fn is_registered(&self) -> bool {
        self.admin.get(MUTATING).is_some() || self.admin.get(VALIDATING).is_some()
    }
}

#[test]
fn chart_installs_upgrades_and_uninstalls_cleanly() {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.empty();
    cluster.install_chart();

    let registered = [MUTATING, VALIDATING].map(|path| cluster.admin.get(path).unwrap());
    let is_untouched = |cluster: &TestCluster| {
        for (path, before) in [MUTATING, VALIDATING].iter().zip(&registered) {
            let now = cluster.admin.get(path).unwrap();
            assert_eq!(now["webhooks"], before["webhooks"]);
            // The API server counts each change of the entries: they were never removed.
            assert_eq!(now["metadata"]["generation"], before["metadata"]["generation"]);
            let backstop = |object: &Value| {
                let all = object["metadata"]["annotations"].as_object().unwrap().clone();
                all.into_iter().filter(|(key, _)| key.starts_with("backstop.")).collect::<Vec<_>>()
            };
            assert_eq!(backstop(&now), backstop(before));
        }
    };
    let values = "replicas=3,monitoring=true,dryRuns=true,certificates=cert-manager";
    let path = chart();
    cluster.run_helm(&["upgrade", "nadmit", path.to_str().unwrap(), "--set", values]);
    is_untouched(&cluster);
    cluster.run_helm(&["rollback", "nadmit", "1"]);
    is_untouched(&cluster);
    cluster.run_helm(&["rollback", "nadmit", "2"]);
    is_untouched(&cluster);
    let arguments = ["--replicas", "3", "--monitoring", "--dry-runs", "--certificates", "cert-manager"];
    let objects = nadmit::yaml::emit::stream(&printed(&arguments));
    let names = ["get", "-f", "-", "--ignore-not-found", "-o", "name"];
    let there = |cluster: &TestCluster| {
        String::from_utf8(cluster.kubectl("admin", &names, &objects).stdout).unwrap().lines().count()
    };
    assert_eq!(there(&cluster), read(&objects).len());
    assert_eq!(cluster.admin.get(DEPLOYMENT).unwrap()["spec"]["replicas"], 3);

    // Helm waits for the Job, which only this test runs. A nadmit still runs, and would register itself again.
    let helm = Process::start("helm", cluster.directory(), &mut cluster.helm(&["uninstall", "nadmit"]));
    let job = "/apis/batch/v1/namespaces/nadmit/jobs/nadmit-uninstall";
    let found = cluster.admin.wait(job, |_| true);
    for (what, may) in [
        ("mutatingwebhookconfigurations/nadmit", true),
        ("validatingwebhookconfigurations/nadmit", true),
        ("clusterroles/nadmit", false),
        ("mutatingwebhookconfigurations/other", false),
        ("clusterroles/other", false),
        ("namespaces/nadmit", false),
    ] {
        let account = "--as=system:serviceaccount:nadmit:nadmit-uninstall";
        let can = cluster.kubectl("admin", &["auth", "can-i", "delete", what, account], "");
        assert_eq!(can.status.success(), may, "{what}");
    }
    assert!(cluster.is_registered() && cluster.admin.get(DEPLOYMENT).is_some(), "Helm did not wait");
    cluster.run_job(&found);
    wait("the end of the registration", || (cluster.nadmit().metric("nadmit_registered") == 0.0).then_some(()));
    assert!(!cluster.is_registered());
    // Writes succeed without nadmit, whatever Helm has not deleted yet.
    cluster.kill_nadmit();
    let sriov = nad("one", r#"{"cniVersion":"1.0.0","type":"sriov","deviceID":"0000:03:02.0"}"#);
    let dry_run = format!("{}?dryRun=All", nads("default"));
    wait("writes without nadmit", || cluster.jane.try_create(&dry_run, &sriov).ok());
    assert!(cluster.admin.get(DEPLOYMENT).is_some());

    let time = found["metadata"]["creationTimestamp"].clone();
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastProbeTime": time, "lastTransitionTime": time });
    let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
    let status = json!({ "startTime": time, "completionTime": time, "succeeded": 1, "conditions": conditions });
    cluster.admin.patch(&format!("{job}/status"), &json!({ "status": status }));
    wait("the end of Helm", || helm.log().contains("uninstalled").then_some(()));
    // Only the namespace, which Helm does not delete.
    wait("the deletion of all objects", || (there(&cluster) == 1).then_some(()));
    for path in [
        job,
        "/api/v1/namespaces/nadmit/serviceaccounts/nadmit-uninstall",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/nadmit-uninstall",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/nadmit-uninstall",
    ] {
        cluster.admin.wait_deleted(path);
    }
    assert!(!cluster.is_registered());
}

/// If the hook does not run, as in old versions of Argo CD, Helm deletes the configurations with everything else; a replica that still
/// runs cannot create them again.
#[test]
fn uninstall_without_hooks_removes_the_registration() {
    let mut cluster = TestCluster::start();
    cluster.empty();
    cluster.install_chart();
    cluster.run_helm(&["uninstall", "nadmit", "--no-hooks"]);
    cluster.admin.wait_deleted(MUTATING);
    cluster.admin.wait_deleted(VALIDATING);
    wait("the end of the registration", || (cluster.nadmit().metric("nadmit_registered") == 0.0).then_some(()));
    assert!(!cluster.is_registered());
}

/// The chart of version 0.1.0 had no webhook configurations: nadmit created them, owned by its ClusterRole and without Helm's labels.
#[test]
fn configurations_that_version_0_1_0_created_are_adopted() {
    let mut cluster = TestCluster::start();
    cluster.empty();
    let old = cluster.directory().join("old");
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(chart()).arg(&old);
    assert!(run(copy).status.success());
    let template = old.join("templates/own.yaml");
    let text = fs::read_to_string(&template).unwrap();
    let (kept, left): (Vec<_>, Vec<_>) = text.split("---\n").partition(|document| {
        !document.contains("kind: MutatingWebhookConfiguration")
            && !document.contains("kind: ValidatingWebhookConfiguration")
    });
    assert_eq!(left.len(), 2);
    fs::write(&template, kept.join("---\n")).unwrap();
    cluster.run_helm(&["install", "nadmit", old.to_str().unwrap(), "--create-namespace"]);
    cluster.point_service_here();
    let role = cluster.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/nadmit").unwrap();
    let owner = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "nadmit",
        "uid": role["metadata"]["uid"] });
    for path in [MUTATING, VALIDATING] {
        let service = json!({ "namespace": "nadmit", "name": "nadmit", "path": "/old" });
        let entry = json!({ "name": "old.nadmit.io", "clientConfig": { "service": service }, "rules": [],
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"] });
        let old = json!({ "metadata": { "name": "nadmit", "ownerReferences": [owner] }, "webhooks": [entry] });
        cluster.admin.create(path.strip_suffix("/nadmit").unwrap(), &old);
    }
    let before = [MUTATING, VALIDATING].map(|path| cluster.admin.get(path).unwrap());

    let path = chart();
    let upgrade = ["upgrade", "nadmit", path.to_str().unwrap()];
    let out = run(cluster.helm(&upgrade));
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && stderr.contains("invalid ownership metadata"), "{stderr}");
    cluster.run_helm(&[&upgrade[..], &["--take-ownership"]].concat());
    for (path, before) in [MUTATING, VALIDATING].iter().zip(&before) {
        let now = cluster.admin.get(path).unwrap();
        assert_eq!(now["webhooks"], before["webhooks"], "no entry was removed");
        assert_eq!(now["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    }
    cluster.point_service_here();
    cluster.start_nadmit();
    wait("the metric", || (cluster.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    for path in [MUTATING, VALIDATING] {
        let now = cluster.admin.get(path).unwrap();
        assert!(now["metadata"]["ownerReferences"].is_null(), "{now:#}");
        assert_eq!(now["webhooks"][0]["name"], "nads.nadmit.io");
    }
    // After a rollback Helm deletes what the old chart does not have, and the old version creates its own configurations.
    cluster.kill_nadmit();
    cluster.run_helm(&["rollback", "nadmit", "1"]);
    assert!(!cluster.is_registered());
}
