//! The chart with the real Helm and the real API server: installed, upgraded, rolled back; and it leaves nothing behind.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::install::{printed, read};
use crate::manifests::{helm, root, stdout};
use crate::objects::{nad, nads};
use crate::processes::{Process, wait};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/nadmit/deployments/nadmit";

/// The chart.
pub fn chart() -> PathBuf {
    root("deploy/chart")
}

/// What the API server must accept in each of these places.
const VALUES: &str = r#"
image: {registry: registry.example:5000, repository: net/nadmit, tag: v1, pullPolicy: IfNotPresent}
imagePullSecrets: [{name: pull}]
policy: {mode: enforce, rules: {nad/unknown-key: off}}
service: {annotations: {a.example/b: c}}
serviceAccount: {annotations: {a.example/b: c}}
resources: {limits: {memory: 256Mi}}
nodeSelector: {node-role.kubernetes.io/control-plane: ""}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}
priorityClassName: ""
podAnnotations: {a.example/b: c}
podLabels: {a.example/b: c}
extraArgs: [--log-level=debug]
extraEnv: [{name: NADMIT_LOG_FORMAT, value: text}]
monitoring:
  metricsService: {annotations: {a.example/b: c}}
  serviceMonitor: {labels: {release: prometheus}, interval: 1m}
  prometheusRule: {labels: {release: prometheus}}
  dashboard: {labels: {folder: networks}}
"#;

/// The chart of version 0.1.0, as far as values matter: image and policy were texts.
const FORMER: [(&str, &str); 3] = [
    ("Chart.yaml", "apiVersion: v2\nname: nadmit\nversion: 0.1.0\n"),
    (
        "values.yaml",
        "image: nadmit:0.1.0\nservice: nadmit\nreplicas: 2\ncertificates: own\nmonitoring: false\nbackstop: true\n\
      dryRuns: false\nclientCa: \"\"\nclientName: \"\"\npolicy: |\n  {}\n",
    ),
    (
        "templates/policy.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nadmit-policy, namespace: {{ .Release.Namespace }}}\n\
      data: {policy.yaml: {{ .Values.policy | quote }}}\n",
    ),
];

impl TestCluster {
    pub fn helm(&self, arguments: &[&str]) -> Command {
        let kubeconfig = self.kubeconfig("admin");
        let mut command = helm(self.directory(), arguments);
        command.args(["--namespace", "nadmit", "--kubeconfig", kubeconfig.to_str().unwrap()]);
        command
    }

    pub fn run_helm(&self, arguments: &[&str]) {
        let out = run(self.helm(arguments));
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// Installs the chart, and starts a nadmit that registers itself with the chart's permissions.
    fn install_chart(&mut self) {
        let chart = chart();
        self.run_helm(&["install", "nadmit", chart.to_str().unwrap(), "--create-namespace"]);
        self.start_installed();
    }

    /// Starts a nadmit that registers itself with the permissions of what is installed.
    pub fn start_installed(&mut self) {
        self.point_service_here();
        self.start_nadmit();
        wait("the metric", || (self.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    }

    /// Runs the pod of a Job as a kubelet would: its arguments, with the permissions of its ServiceAccount.
    fn run_job(&self, job: &Value) {
        let pod = &job["spec"]["template"]["spec"];
        let kubeconfig = self.kubeconfig_of("nadmit", pod["serviceAccountName"].as_str().unwrap());
        let arguments: Vec<&str> =
            pod["containers"][0]["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let out = run(nadmit(&[&arguments[..], &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat()));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// A kubeconfig with a token of a ServiceAccount.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let out = self.kubectl("admin", &["create", "token", account, "--namespace", namespace], "");
        let token = stdout(out);
        let kubeconfig = fs::read_to_string(self.kubeconfig("admin")).unwrap();
        let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
        kubeconfig["users"][0]["user"]["token"] = token.trim().into();
        let file = self.directory().join(format!("{namespace}-{account}.kubeconfig"));
        fs::write(&file, kubeconfig.to_string()).unwrap();
        file
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
    let monitoring = "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true";
    let values = format!("replicas=3,dryRuns=true,certificates=cert-manager,{monitoring}");
    let file = cluster.directory().join("values.yaml");
    fs::write(&file, VALUES).unwrap();
    let (path, file) = (chart(), file.to_str().unwrap().to_owned());
    cluster.run_helm(&["upgrade", "nadmit", path.to_str().unwrap(), "--set", &values, "--values", &file]);
    is_untouched(&cluster);
    let policy = cluster.admin.get("/api/v1/namespaces/nadmit/configmaps/nadmit-policy").unwrap();
    assert_eq!(policy["data"]["policy.yaml"], "mode: enforce\nrules:\n  nad/unknown-key: false\n");
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
    for template in ["mutatingwebhookconfiguration.yaml", "validatingwebhookconfiguration.yaml"] {
        fs::remove_file(old.join("templates").join(template)).unwrap();
    }
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

/// Values of version 0.1.0 are reused where they still mean the same, and otherwise the error says what to write.
#[test]
fn values_of_version_0_1_0_are_reused_or_explained() {
    let cluster = TestCluster::start();
    cluster.empty();
    let old = cluster.directory().join("old");
    fs::create_dir_all(old.join("templates")).unwrap();
    for (name, text) in FORMER {
        fs::write(old.join(name), text).unwrap();
    }
    let (old, path) = (old.to_str().unwrap().to_owned(), chart());
    let path = path.to_str().unwrap();
    let policy = "policy=# Ours.\nmode: audit\n";
    cluster.run_helm(&[
        "install",
        "nadmit",
        &old,
        "--create-namespace",
        "--set",
        "image=r.example/nadmit:1",
        "--set",
        policy,
    ]);
    for reused in ["--reuse-values", "--reset-then-reuse-values"] {
        let out = run(cluster.helm(&["upgrade", "nadmit", path, reused]));
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success()
                && stderr.contains("set image.repository")
                && stderr.contains("--reset-then-reuse-values"),
            "{reused}: {stderr}"
        );
    }
    let image = "image.repository=r.example/nadmit,image.tag=1.0";
    cluster.run_helm(&["upgrade", "nadmit", path, "--reset-then-reuse-values", "--set", image]);
    let policy = cluster.admin.get("/api/v1/namespaces/nadmit/configmaps/nadmit-policy").unwrap();
    assert_eq!(policy["data"]["policy.yaml"], "# Ours.\nmode: audit\n");
    let deployment = cluster.admin.get(DEPLOYMENT).unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "r.example/nadmit:1.0");
    // And from then on values are reused as they are.
    cluster.run_helm(&["upgrade", "nadmit", path, "--reuse-values", "--set", "policy.mode=enforce"]);
}
