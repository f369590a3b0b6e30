//! A real API server accepts the output of `nadmit install`; it gives nadmit the permissions that it needs, and can be uninstalled.

use std::fs;
use std::path::Path;
use std::process::Command;

use nadmit::deploy::CertificateSource;
use nadmit::yaml::Documents;
use nadmit::yaml::emit;
use serde_json::{Value, json};

use crate::cluster::{TestCluster, bin};
use crate::harness::{nadmit, run};
use crate::processes::wait;

/// The output of `nadmit install`.
pub fn printed(arguments: &[&str]) -> Vec<Value> {
    let out = run(nadmit(&[&["install"], arguments].concat()));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    read(&String::from_utf8(out.stdout).unwrap())
}

pub fn read(text: &str) -> Vec<Value> {
    Documents::new(text).map(|document| serde_json::from_str(&document.node.unwrap().to_json()).unwrap()).collect()
}

impl TestCluster {
    /// The cluster has no Service network: nadmit's Service gets the address of this machine.
    pub fn point_service_here(&self) {
        let here = json!({ "spec": { "type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": null,
            "clusterIPs": null, "selector": null } });
        self.admin.patch("/api/v1/namespaces/nadmit/services/nadmit", &here);
    }

    /// Creates objects with strict field validation.
    pub fn create_strictly(&self, objects: &[Value], more: &[&str]) {
        let create = [&["create", "--validate=strict", "-f", "-"], more].concat();
        let out = self.kubectl("admin", &create, &emit::stream(objects));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), objects.len());
    }

    /// Installs nadmit except for its pods, so that it has exactly the shipped permissions.
    pub fn install(&self) {
        self.create_strictly(&printed(&[]), &[]);
        self.point_service_here();
        let may = ["auth", "can-i", "update", "mutatingwebhookconfigurations/nadmit"];
        wait("the rights of nadmit", || self.kubectl("nadmit", &may, "").status.success().then_some(()));
    }

    /// Grants nadmit the permission to find out by dry runs who denies a NAD.
    pub fn allow_dry_runs(&self) {
        let usual = printed(&[]);
        let added: Vec<Value> = printed(&["--dry-runs"]).into_iter().filter(|object| !usual.contains(object)).collect();
        assert_eq!(added.len(), 2, "{added:#?}");
        self.create_strictly(&added, &[]);
    }

    /// Removes the backstop, for tests of what is stored while nadmit is down.
    pub fn remove_backstop(&self) {
        let left = printed(&["--backstop=false"]);
        let backstop: Vec<Value> = printed(&[]).into_iter().filter(|object| !left.contains(object)).collect();
        assert_eq!(backstop.len(), 6, "{backstop:#?}");
        let out = self.kubectl("admin", &["delete", "-f", "-"], &emit::stream(&backstop));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Deletes the objects that every cluster of the tests has already.
    pub fn empty(&self) {
        let out = self.kubectl("admin", &["delete", "-f", "-"], &emit::stream(&printed(&[])));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Creates the CRDs of cert-manager, Prometheus and reports, without their software.
    pub fn create_other_crds(&self) {
        let crds = bin().join("crds-of-others");
        let out = self.kubectl("admin", &["create", "-f", crds.to_str().unwrap()], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let out = self.kubectl("admin", &["wait", "--for=condition=Established", "crd", "--all"], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        for kind in ["cert-manager.io/v1/issuers", "cert-manager.io/v1/certificates"] {
            self.admin.wait(&format!("/apis/{kind}"), |_| true);
        }
        for kind in ["openreports.io/v1alpha1/reports", "wgpolicyk8s.io/v1alpha2/policyreports"] {
            self.admin.wait(&format!("/apis/{kind}"), |_| true);
        }
        for kind in ["monitoring.coreos.com/v1/servicemonitors", "monitoring.coreos.com/v1/prometheusrules"] {
            self.admin.wait(&format!("/apis/{kind}"), |_| true);
        }
    }
}

#[test]
fn install_and_uninstall_every_object() {
    let cluster = TestCluster::start();
    cluster.namespace("elsewhere");
    cluster.create_other_crds();
    cluster.empty();
    for certificates in CertificateSource::ALL {
        let arguments =
            ["--namespace", "elsewhere", "--monitoring", "--dry-runs", "--certificates", certificates.name()];
        let objects: Vec<_> = printed(&arguments).into_iter().filter(|object| object["kind"] != "Namespace").collect();
        assert!(objects.len() > 16, "{objects:#?}");
        cluster.create_strictly(&objects, &["--dry-run=server"]);
    }

    let ca = cluster.directory().join("ca.crt");
    fs::write(&ca, cluster.authority.pem()).unwrap();
    let more = ["--client-ca", ca.to_str().unwrap(), "--certificates", "cert-manager"];
    let objects = printed(&[&["--dry-runs", "--monitoring"], &more[..]].concat());
    cluster.create_strictly(&objects, &[]);
    // The steps in the documentation.
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/README.md")).unwrap();
    let shown: Vec<&str> = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(shown.len(), 1);
    cluster.create_strictly(&read(shown[0]), &["--dry-run=server"]);
    let left =
        || cluster.kubectl("admin", &["get", "-f", "-", "--ignore-not-found", "-o", "name"], &emit::stream(&objects));
    assert_eq!(String::from_utf8_lossy(&left().stdout).lines().count(), objects.len());
    // nadmit's own objects are deleted; those of others stay.
    let reports = "/apis/openreports.io/v1alpha1/namespaces/elsewhere/reports";
    for (name, by) in [("ours", "nadmit"), ("theirs", "others")] {
        let labels = json!({ "app.kubernetes.io/managed-by": by });
        let report = json!({ "apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": { "name": name, "labels": labels } });
        cluster.admin.create(reports, &report);
    }
    let kubeconfig = cluster.kubeconfig("admin");
    let uninstall = ["uninstall", "--kubeconfig", kubeconfig.to_str().unwrap()];
    for _ in 0..2 {
        let out = run(nadmit(&uninstall));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        wait("the deletion of all objects", || left().stdout.is_empty().then_some(()));
    }
    assert!(cluster.admin.get(&format!("{reports}/ours")).is_none());
    assert!(cluster.admin.get(&format!("{reports}/theirs")).is_some());
}

/// The manifests and the binary agree.
#[test]
fn kustomize_builds_what_install_prints() {
    let copy = tempfile::tempdir().unwrap();
    let mut command = Command::new("cp");
    command.arg("-R").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kustomize")).arg(copy.path());
    assert!(run(command).status.success());
    let root = copy.path().join("kustomize");
    // A kustomization with all components.
    fs::create_dir(root.join("all")).unwrap();
    let ca = "configMapGenerator: [{name: nadmit-client-ca, namespace: nadmit, files: [ca.crt], options: {disableNameSuffixHash: true, \
              labels: {app.kubernetes.io/name: nadmit, app.kubernetes.io/part-of: nadmit}}}]";
    let all = format!(
        "resources: [../base]\ncomponents: [../components/monitoring, ../components/dry-runs, ../components/client-ca]\n{ca}\n"
    );
    fs::write(root.join("all/kustomization.yaml"), all).unwrap();
    let file = root.join("all/ca.crt");
    fs::write(&file, crate::certificates::TestAuthority::new("callers").pem()).unwrap();
    let file = file.to_str().unwrap();
    fs::create_dir(root.join("without")).unwrap();
    let without = "resources: [../base]\ncomponents: [../components/without-backstop]\n";
    fs::write(root.join("without/kustomization.yaml"), without).unwrap();
    let built = |directory: &str| {
        let mut command = Command::new(bin().join("kubectl"));
        command.arg("kustomize").arg(root.join(directory));
        let out = run(command);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        sorted(read(&String::from_utf8(out.stdout).unwrap()))
    };
    for (directory, arguments) in [
        ("base", &[] as &[_]),
        ("overlays/cert-manager", &["--certificates", "cert-manager"]),
        ("overlays/openshift", &["--certificates", "openshift"]),
        ("all", &["--monitoring", "--dry-runs", "--client-ca", file]),
        ("without", &["--backstop=false"]),
    ] {
        assert_eq!(built(directory), sorted(printed(arguments)), "{directory}");
    }
}

/// Sorted, so that the order does not depend on the program that printed them.
pub fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(ToString::to_string);
    objects
}
