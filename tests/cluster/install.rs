//! A real API server accepts the output of `nadmit install`; it gives nadmit the permissions that it needs, and can be uninstalled.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use nadmit::deploy::CertificateSource;
use nadmit::yaml::Documents;
use nadmit::yaml::emit;
use serde_json::{Value, json};

use crate::cluster::{TestCluster, bin};
use crate::harness::{nadmit, run};
use crate::processes::wait;

/// The output of `nadmit install`, with the image of the generated manifests unless another one is given.
pub fn printed(arguments: &[&str]) -> Vec<Value> {
    let image = format!("nadmit:{}", env!("CARGO_PKG_VERSION"));
    let usual: &[&str] = if arguments.contains(&"--image") { &[] } else { &["--image", &image] };
    let out = run(nadmit(&[&["install"], usual, arguments].concat()));
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
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/install.md")).unwrap();
    let shown: Vec<&str> = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let shown: Vec<&str> =
        shown.into_iter().filter(|text| text.starts_with("apiVersion: networking.k8s.io/v1")).collect();
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
    let uninstall = |more: &[&str]| {
        let mut command = nadmit(&[&["uninstall", "--kubeconfig", kubeconfig.to_str().unwrap()], more].concat());
        command.stdin(Stdio::null());
        let out = run(command);
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    // Without a terminal and without --yes, it explains what to do; a dry run shows every object. Both delete nothing.
    let (code, _, message) = uninstall(&[]);
    assert!(code == Some(2) && message.contains("--dry-run") && message.contains("--yes"), "{message}");
    let (code, shown, message) = uninstall(&["--dry-run"]);
    assert_eq!(code, Some(0), "{message}");
    assert!(shown.starts_with("in context \"it\" (https://127.0.0.1:"), "{shown}");
    for line in [
        "deployments.apps/nadmit in namespace nadmit",
        "namespaces/nadmit, with everything in it",
        "1 reports of nadmit",
    ] {
        assert_eq!(shown.lines().filter(|found| found.trim() == line).count(), 1, "{line}: {shown}");
    }
    assert_eq!(shown.lines().count(), 1 + objects.len() + 1, "{shown}");
    let (_, shown, _) = uninstall(&["--dry-run", "--registration-only"]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert_eq!(String::from_utf8_lossy(&left().stdout).lines().count(), objects.len());
    for _ in 0..2 {
        let (code, _, message) = uninstall(&["--yes"]);
        assert_eq!(code, Some(0), "{message}");
        wait("the deletion of all objects", || left().stdout.is_empty().then_some(()));
    }
    let (code, shown, message) = uninstall(&["--dry-run"]);
    assert!(code == Some(0) && shown.starts_with("nothing of nadmit is installed in context"), "{shown}{message}");
    assert!(cluster.admin.get(&format!("{reports}/ours")).is_none());
    assert!(cluster.admin.get(&format!("{reports}/theirs")).is_some());
}
