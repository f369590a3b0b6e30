//! nadmit installed as users do it: with its own command, with kustomize, and with Helm, whose hook is a Job.

use std::path::Path;
use std::process::Command;

use super::container::images;
use super::on_a_node;
use crate::harness::run;
use crate::replicas::await_effect;

fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_str().unwrap().to_owned()
}

/// Its archive has the name that the manifests use.
#[test]
fn the_image_has_its_name_and_kustomize_installs_it() {
    on_a_node(|node| {
        let wanted = format!("docker.io/library/nadmit:{}", env!("CARGO_PKG_VERSION"));
        assert!(images().contains(&wanted), "{:?}", images());
        let out = node.cluster.kubectl("admin", &["apply", "-k", &root("deploy/kustomize/base")], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        node.await_rollout();
        await_effect(&node.cluster.admin);
        // The namespace enforces `restricted`, and it is in force.
        let pod = serde_json::json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": wanted }] } });
        let denied = node.cluster.admin.try_create("/api/v1/namespaces/nadmit/pods", &pod).unwrap_err();
        assert!(denied.message.contains("violates PodSecurity \"restricted"), "{denied:?}");
    });
}

#[test]
fn helm_installs_upgrades_and_uninstalls() {
    on_a_node(|node| {
        let helm = |arguments: &[&str]| {
            let mut command = Command::new(node.cluster.bin.join("helm"));
            command.args(arguments).args(["--namespace", "nadmit", "--timeout", "60s"]);
            command.env("KUBECONFIG", node.cluster.kubeconfig("admin")).env("HOME", node.cluster.directory());
            let out = run(command);
            assert!(
                out.status.success(),
                "{}{}",
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            );
        };
        let chart = root("deploy/chart");
        helm(&["install", "nadmit", &chart, "--create-namespace", "--wait", "--set", "policy.mode=enforce"]);
        await_effect(&node.cluster.admin);
        helm(&["upgrade", "nadmit", &chart, "--wait", "--reset-then-reuse-values", "--set", "replicas=3"]);
        node.await_rollout();
        assert_eq!(node.ready_pods().len(), 3);
        // Its test, a pod with the same image, sees the policy in all replicas.
        helm(&["test", "nadmit"]);
        // Its hook, a Job with the same image, removes the registration before the pods end.
        helm(&["uninstall", "nadmit", "--wait"]);
        let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
        assert!(node.cluster.admin.get(configurations).is_none());
    });
}
