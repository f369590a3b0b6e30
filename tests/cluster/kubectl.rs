//! The output of kubectl for users.

use std::process::Output;

use crate::cluster::TestCluster;
use crate::objects::{RESOURCE_NAME, TestNetworkKind, annotated, nad_at, version};

const CONFIG_ONLY: &str = r#"apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: NAME
  namespace: apps
spec:
  config: '{"cniVersion": "1.0.0", "type": "sriov", "resourceName": "openshift.io/cx7", "vlan": 100}'
"#;

fn texts(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn cluster() -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("apps");
    cluster
}

/// The warnings of a repair: the problem, and the change.
const REPAIRED: [&str; 3] = [
    "the sriov plugin needs a device, but the NAD has no resourceName annotation:",
    "pods that use this network hang in ContainerCreating with \"VF pci addr is required\" (nad/resource-name-missing).",
    "becomes openshift.io/cx7, as given by the config",
];

/// The warnings of kubectl, which are one per line, as one text.
fn warnings(stderr: &str) -> String {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("Warning: "));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

fn assert_repaired(by: &str, stderr: &str) {
    for words in REPAIRED {
        assert!(warnings(stderr).contains(words), "{by}: {words}: {stderr}");
    }
}

#[test]
fn every_kubectl_verb_is_repaired() {
    let cluster = cluster();
    for (name, arguments) in [
        ("create", ["create", "-f", "-"].as_slice()),
        ("apply", &["apply", "-f", "-"]),
        ("server-side", &["apply", "--server-side", "-f", "-"]),
    ] {
        let manifest = CONFIG_ONLY.replace("NAME", name);
        let (success, _, stderr) = texts(&cluster.kubectl("jane", arguments, &manifest));
        assert!(success, "{stderr}");
        assert_repaired(name, &stderr);
        let made = cluster.jane.get(&nad_at("apps", name)).unwrap();
        assert_eq!(annotated(&made), Some("openshift.io/cx7"), "{name}");
        // The manifest does not have the repaired field: applying it again changes nothing, without a warning.
        if name != "create" {
            let (success, stdout, stderr) = texts(&cluster.kubectl("jane", arguments, &manifest));
            assert!(success && stderr.is_empty(), "{name}: {stderr}");
            assert!(name != "apply" || stdout.ends_with("unchanged\n"), "{stdout}");
            let again = cluster.jane.get(&nad_at("apps", name)).unwrap();
            assert_eq!(version(&again), version(&made), "{name}");
        }
        // A changed object as a whole, without the repaired fields.
        let mut edited = made.clone();
        edited["spec"]["config"] = made["spec"]["config"].as_str().unwrap().replace("100", "200").into();
        edited["metadata"]["annotations"].as_object_mut().unwrap().remove(RESOURCE_NAME);
        let (success, _, stderr) = texts(&cluster.kubectl("jane", &["replace", "-f", "-"], &edited.to_string()));
        assert!(success, "{stderr}");
        assert_repaired("replace", &stderr);
        let now = cluster.jane.get(&nad_at("apps", name)).unwrap();
        assert_eq!(annotated(&now), Some("openshift.io/cx7"), "{name}");
        assert!(now["spec"]["config"].as_str().unwrap().contains("200"));
        // In an editor, which removes the annotation again.
        let (success, _, stderr) =
            texts(&cluster.kubectl("jane", &["edit", "net-attach-def", name, "--namespace=apps"], ""));
        assert!(success, "{stderr}");
        assert_repaired("edit", &stderr);
        let now = cluster.jane.get(&nad_at("apps", name)).unwrap();
        assert_eq!(annotated(&now), Some("openshift.io/cx7"), "{name}: {stderr}");
        assert!(now["spec"]["config"].as_str().unwrap().contains("300"), "{now:#}");
    }
}

#[test]
fn a_dry_run_shows_the_repair_and_stores_nothing() {
    let cluster = cluster();
    let manifest = CONFIG_ONLY.replace("NAME", "dry").replace("\"vlan\"", "\"vlann\"");
    let dry_run = ["apply", "--dry-run=server", "-o", "yaml", "-f", "-"];
    let (success, stdout, stderr) = texts(&cluster.kubectl("jane", &dry_run, &manifest));
    assert!(success, "{stderr}");
    assert!(stdout.contains("k8s.v1.cni.cncf.io/resourceName: openshift.io/cx7"), "{stdout}");
    assert_repaired("apply --dry-run=server", &stderr);
    let unknown = "spec.config#/vlann: unknown key `vlann` for sriov: sriov ignores it, so the setting has no effect (nad/unknown-key). Help: did you mean `vlan`?";
    assert!(warnings(&stderr).contains(unknown), "{stderr}");
    assert!(cluster.jane.get(&nad_at("apps", "dry")).is_none());
}

#[test]
fn denial_message_names_field_problem_and_fix() {
    let cluster = cluster();
    let network = "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\nmetadata:\n  name: bad\n  namespace: openshift-sriov-network-operator\nspec:\n  resourceName: cx7\n  networkNamespace: apps\n  ipam: '{\"type\": \"static\"'\n";
    for (manifest, words) in [
        (
            CONFIG_ONLY.replace("NAME", "bad").replace(r#""resourceName": "openshift.io/cx7", "#, ""),
            "The NetworkAttachmentDefinition \"bad\" is invalid: metadata.annotations: the sriov plugin needs a device, but the NAD has no \
             resourceName annotation: pods that use this network hang in ContainerCreating with \"VF pci addr is required\" \
             (nad/resource-name-missing). Help: add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/<name>, as the node offers \
             the devices; if pods claim their devices (DRA) instead, set `dra: allow` for this namespace in the policy\n",
        ),
        (
            CONFIG_ONLY.replace("NAME", "bad").replace("100}", "\"100\"}"),
            "The NetworkAttachmentDefinition \"bad\" is invalid: spec.config#/vlan: `vlan` is \"100\", expected a whole number, without quotes: sriov \
             cannot decode it; every pod that uses this network fails to start (nad/field-type). Help: write a whole number, without quotes\n",
        ),
        (
            network.to_owned(),
            "The SriovNetwork \"bad\" is invalid: spec.ipam: `ipam` is not valid JSON (unexpected end of text): the operator creates no \
             NAD, and only its log shows it (network/fragment). Help: write one JSON object\n",
        ),
    ] {
        let (success, stdout, stderr) = texts(&cluster.kubectl("jane", &["apply", "-f", "-"], &manifest));
        assert!(!success && stdout.is_empty(), "{stdout}");
        let denial: String =
            stderr.lines().filter(|line| !line.starts_with("Warning: ")).map(|line| format!("{line}\n")).collect();
        assert_eq!(denial.trim_end(), words.trim_end());
    }
    assert!(cluster.jane.get(&nad_at("apps", "bad")).is_none());
    assert!(cluster.jane.get(&TestNetworkKind::Sriov.at("bad")).is_none());
}
