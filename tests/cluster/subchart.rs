//! The chart as a dependency of another chart, in a release of another name, and its test.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::chart::chart;
use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::manifests::{helm, normalized, rendered, stdout, without_hooks};
use crate::processes::{Process, wait};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/nadmit/deployments/nadmit";
const POD: &str = "/api/v1/namespaces/nadmit/pods/nadmit-test";

/// The name of the release means nothing, and a chart may depend on this one.
#[test]
fn chart_works_as_a_subchart() {
    let mut cluster = TestCluster::start();
    cluster.empty();
    let parent = cluster.directory().join("parent");
    fs::create_dir_all(parent.join("charts")).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(chart()).arg(parent.join("charts/nadmit"));
    assert!(run(copy).status.success());
    let dependency = "dependencies: [{name: nadmit, version: \">=0\", condition: nadmit.enabled}]";
    let about = format!("apiVersion: v2\nname: networks\nversion: 1.2.3\n{dependency}\n");
    fs::write(parent.join("Chart.yaml"), about).unwrap();
    let values = "global: {registry: x}\nnadmit: {policy: {mode: audit}, replicas: 3}\n";
    fs::write(parent.join("values.yaml"), values).unwrap();
    let parent = parent.to_str().unwrap();
    let template = |more: &[&str]| {
        let template = ["template", "site", parent, "--kube-version", "1.34.0", "--namespace", "nadmit"];
        without_hooks(&stdout(run(helm(cluster.directory(), &[&template, more].concat())))).0
    };
    let alone = stdout(rendered(&["--namespace", "nadmit", "--set", "policy.mode=audit,replicas=3"]));
    assert_eq!(normalized(template(&[])), normalized(without_hooks(&alone).0));
    assert_eq!(template(&["--set", "nadmit.enabled=false"]), Vec::<Value>::new());
    let wrong = ["template", "site", parent, "--kube-version", "1.34.0", "--set", "nadmit.policy.mode=loud"];
    let out = run(helm(cluster.directory(), &wrong));
    assert!(String::from_utf8_lossy(&out.stderr).contains("/policy/mode"), "{out:?}");

    cluster.run_helm(&["install", "site", parent, "--create-namespace", "--set", "nadmit.policy.mode=enforce"]);
    cluster.start_installed();
    let labels = cluster.admin.get(DEPLOYMENT).unwrap()["metadata"]["labels"].clone();
    assert_eq!(
        (&labels["app.kubernetes.io/name"], &labels["app.kubernetes.io/instance"]),
        (&json!("nadmit"), &json!("site"))
    );

    // Helm waits for the pod of its test, which only this test runs: no node does. It finds the policy, and here no pods.
    let helm = Process::start("helm", cluster.directory(), &mut cluster.helm(&["test", "site"]));
    let found = cluster.admin.wait(POD, |_| true);
    let account = found["spec"]["serviceAccountName"].as_str().unwrap();
    let kubeconfig = cluster.kubeconfig_of("nadmit", account);
    let arguments = found["spec"]["containers"][0]["args"].as_array().unwrap();
    let arguments: Vec<&str> = arguments.iter().map(|word| word.as_str().unwrap()).collect();
    let out = run(nadmit(&[&arguments[..], &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat()));
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.contains("the ConfigMap\n") && printed.contains("no replicas found"), "{out:?}");
    let may = ["auth", "can-i", "get", "pods/x", "--subresource=proxy", "--namespace", "nadmit"];
    let by = format!("--as=system:serviceaccount:nadmit:{account}");
    assert!(cluster.kubectl("admin", &[&may[..], &[&by]].concat(), "").status.success());
    cluster.admin.patch(&format!("{POD}/status"), &json!({ "status": { "phase": "Succeeded" } }));
    wait("the end of Helm", || helm.log().contains("Succeeded").then_some(()));
    cluster.admin.wait_deleted(POD);
    cluster.admin.wait_deleted("/apis/rbac.authorization.k8s.io/v1/namespaces/nadmit/roles/nadmit-test");
}
