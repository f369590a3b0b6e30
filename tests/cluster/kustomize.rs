//! kustomize with another namespace and another image, as docs/install.md shows it, on the real API server.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::TestCluster;
use crate::harness::{TestServer, nadmit};
use crate::manifests::{beside_deploy, kustomized, root, stdout};
use crate::processes::wait;
use crate::replicas::await_effect;

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/networking/deployments/nadmit";
const SERVICE: &str = "/api/v1/namespaces/networking/services/nadmit";
const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/nadmit";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";

/// The kustomization in the documentation.
fn shown() -> String {
    let text = fs::read_to_string(root("docs/install.md")).unwrap();
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    let mut shown: Vec<String> = blocks.filter(|block| block.contains("kind: Kustomization\n")).collect();
    assert_eq!(shown.len(), 1);
    shown.remove(0)
}

impl TestCluster {
    /// Starts a replica of the Deployment in that namespace, with the permissions of its ServiceAccount.
    fn start_in_networking(&self) -> TestServer {
        let deployment = self.admin.get(DEPLOYMENT).unwrap();
        let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let here = |argument: &Value| match argument.as_str().unwrap().split_once('=') {
            Some((option @ ("--listen" | "--metrics-listen"), _)) => format!("{option}=127.0.0.1:0"),
            _ => argument.as_str().unwrap().to_owned(),
        };
        let mut command = nadmit(&arguments.iter().map(here).collect::<Vec<_>>());
        command.arg(format!("--kubeconfig={}", self.kubeconfig_of("networking", "nadmit").display()));
        // A pod knows its namespace.
        command.args(["--namespace=networking", "--shutdown-grace=1s"]);
        command.arg(format!("--service-address={}", self.service.address));
        TestServer::launch(command, TempDir::new().unwrap())
    }
}

#[test]
fn kustomize_installs_into_another_namespace() {
    let cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.empty();
    let directory = beside_deploy();
    fs::write(directory.path().join("policy.yaml"), "mode: enforce\n").unwrap();
    let text = kustomized(directory.path(), &format!("namespace: networking\n{}", shown()));
    // No name of the namespace in the base is left.
    assert!(!text.contains("namespace: nadmit\n") && !text.contains("nadmit.nadmit"), "{text}");
    stdout(cluster.kubectl("admin", &["apply", "-f", "-"], &text));

    let deployment = cluster.admin.get(DEPLOYMENT).unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "REGISTRY/nadmit:0.1.0");
    let subject = &cluster.admin.get(FLOW).unwrap()["spec"]["rules"][0]["subjects"][0];
    assert_eq!(subject["serviceAccount"], json!({ "name": "nadmit", "namespace": "networking" }));
    let namespace = cluster.admin.get("/api/v1/namespaces/networking").unwrap();
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    assert!(cluster.admin.get("/api/v1/namespaces/networking/services/nadmit-metrics").is_some());

    // It has all permissions that it needs, and the API server calls it by its name there.
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": null,
        "clusterIPs": null, "selector": null } });
    cluster.admin.patch(SERVICE, &external);
    let server = cluster.start_in_networking();
    cluster.service.add(server.https);
    wait("the metric", || (server.metric("nadmit_registered") == 1.0).then_some(()));
    let service = &cluster.admin.get(VALIDATING).unwrap()["webhooks"][0]["clientConfig"]["service"];
    assert_eq!((&service["namespace"], &service["name"]), (&json!("networking"), &json!("nadmit")));
    await_effect(&cluster.admin);
    // Deleted as it was applied.
    stdout(cluster.kubectl("admin", &["delete", "--wait=false", "-f", "-"], &text));
    cluster.admin.wait_deleted(VALIDATING);
}
