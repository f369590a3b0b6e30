//! What `nadmit install` prints is taken by a real API server, gives nadmit the rights it needs, and goes away again.

use std::path::Path;
use std::process::Command;

use nadmit::deploy::{Certificates, yaml};
use nadmit::yaml::Documents;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::harness::{nadmit, run};
use crate::processes::wait;

/// Kinds that come with others' software, which is not here.
const THEIRS: [&str; 4] = ["Issuer", "Certificate", "ServiceMonitor", "PrometheusRule"];

fn printed(arguments: &[&str]) -> Vec<Value> {
    let out = run(nadmit(&[&["install"], arguments].concat()));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    read(&String::from_utf8(out.stdout).unwrap())
}

fn read(text: &str) -> Vec<Value> {
    Documents::new(text).map(|document| serde_json::from_str(&document.node.unwrap().to_json()).unwrap()).collect()
}

fn without_theirs(objects: Vec<Value>) -> Vec<Value> {
    objects.into_iter().filter(|object| !THEIRS.contains(&object["kind"].as_str().unwrap())).collect()
}

impl Cluster {
    /// Installs nadmit, but for the pods, which nobody here runs: above all, it gets exactly the rights it gets everywhere.
    pub fn install(&self) {
        let objects = without_theirs(printed(&[]));
        let create = ["create", "--validate=strict", "-f", "-"];
        let out = self.kubectl("admin", &create, &yaml::stream(&objects));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        // There is no network of Services: this one has the address that leads to nadmit.
        let elsewhere = json!({ "spec": { "type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": null,
            "clusterIPs": null, "selector": null } });
        self.admin.patch("/api/v1/namespaces/nadmit/services/nadmit", &elsewhere);
        let may = ["auth", "can-i", "update", "mutatingwebhookconfigurations/nadmit"];
        wait("the rights of nadmit", || self.kubectl("nadmit", &may, "").status.success().then_some(()));
    }
}

#[test]
fn every_object_is_accepted_and_goes_away_again() {
    let cluster = Cluster::start();
    cluster.namespace("elsewhere");
    // What every cluster of the tests has already.
    let out = cluster.kubectl("admin", &["delete", "-f", "-"], &yaml::stream(&without_theirs(printed(&[]))));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for certificates in Certificates::ALL {
        let arguments =
            ["--namespace", "elsewhere", "--monitoring", "--backstop", "--certificates", certificates.name()];
        let objects = printed(&arguments);
        let is_ours = |object: &&Value| object["kind"] != "Namespace";
        let objects: Vec<_> = without_theirs(objects).iter().filter(is_ours).cloned().collect();
        assert!(objects.len() > 12, "{objects:#?}");
        let create = ["create", "--validate=strict", "--dry-run=server", "-f", "-"];
        let out = cluster.kubectl("admin", &create, &yaml::stream(&objects));
        assert!(out.status.success(), "{certificates:?}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), objects.len());
    }

    let objects = without_theirs(printed(&["--backstop"]));
    let out = cluster.kubectl("admin", &["create", "--validate=strict", "-f", "-"], &yaml::stream(&objects));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let left =
        || cluster.kubectl("admin", &["get", "-f", "-", "--ignore-not-found", "-o", "name"], &yaml::stream(&objects));
    assert_eq!(String::from_utf8_lossy(&left().stdout).lines().count(), objects.len());
    let kubeconfig = cluster.kubeconfig("admin");
    let uninstall = ["uninstall", "--kubeconfig", kubeconfig.to_str().unwrap()];
    for _ in 0..2 {
        let out = run(nadmit(&uninstall));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        wait("the end of everything", || left().stdout.is_empty().then_some(()));
    }
}

/// The manifests and the binary are one.
#[test]
fn kustomize_builds_what_install_prints() {
    let bin = std::env::var_os("NADMIT_CLUSTER_BIN").expect("NADMIT_CLUSTER_BIN: `make e2e` sets it");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kustomize");
    let built = |directory: &str| {
        let mut command = Command::new(Path::new(&bin).join("kubectl"));
        command.arg("kustomize").arg(root.join(directory));
        let out = run(command);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        sorted(read(&String::from_utf8(out.stdout).unwrap()))
    };
    for (directory, arguments) in [
        ("base", &[] as &[_]),
        ("overlays/cert-manager", &["--certificates", "cert-manager"]),
        ("overlays/openshift", &["--certificates", "openshift"]),
    ] {
        assert_eq!(built(directory), sorted(printed(arguments)), "{directory}");
    }
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(ToString::to_string);
    objects
}
