//! The manifests contain the webhook configurations without entries: applying the manifests does not change the entries, and
//! nadmit does not recreate a deleted configuration.

use std::time::{Duration, Instant};

use nadmit::yaml::emit;
use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::install::printed;
use crate::objects::version;
use crate::processes::wait;
use crate::replicas::await_effect;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
const BOTH: [&str; 2] = [MUTATING, VALIDATING];

/// The manifests of admission.
fn manifests() -> Vec<Value> {
    let all = printed(&[]).into_iter();
    all.filter(|object| object["apiVersion"] == "admissionregistration.k8s.io/v1").collect()
}

/// The entries of a configuration, and the parameters of the backstop.
fn content(configuration: &Value) -> (Value, Vec<(String, Value)>) {
    let annotations = configuration["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let ours = annotations.into_iter().filter(|(key, _)| key.starts_with("backstop.nadmit.io/")).collect();
    (configuration["webhooks"].clone(), ours)
}

impl TestCluster {
    fn try_kubectl(&self, arguments: &[&str], objects: &[Value]) {
        let out = self.kubectl("admin", &[arguments, &["-f", "-"]].concat(), &emit::stream(objects));
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn applying_manifests_keeps_the_webhook_entries() {
    let mut cluster = TestCluster::start();
    cluster.start_nadmit();
    cluster.deploy();
    let good = BOTH.map(|path| cluster.admin.get(path).unwrap());
    assert_eq!(good.each_ref().map(|configuration| content(configuration).0.as_array().unwrap().len()), [4, 4]);
    assert_eq!(content(&good[1]).1.len(), 6, "{:#}", good[1]["metadata"]);
    let manifests = manifests();
    assert_eq!(manifests.len(), 10);
    let forced = ["apply", "--server-side", "--force-conflicts", "--field-manager"];
    for arguments in [
        &["apply"][..],
        &["apply"],
        &[&forced[..], &["argocd-controller"]].concat(),
        &[&forced[..], &["kustomize-controller"]].concat(),
        &[&forced[..], &["argocd-controller"]].concat(),
    ] {
        cluster.try_kubectl(arguments, &manifests);
        for (path, before) in BOTH.iter().zip(&good) {
            let now = cluster.admin.get(path).unwrap();
            assert_eq!(content(&now), content(before), "{arguments:?}");
            // The API server counts each change of the entries: they were never removed.
            assert_eq!(now["metadata"]["generation"], before["metadata"]["generation"], "{arguments:?}");
        }
    }

    // A replacement removes everything that is not in the manifest, and nadmit restores it.
    let configurations: Vec<Value> =
        manifests.into_iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Configuration")).collect();
    cluster.try_kubectl(&["replace"], &configurations);
    let replaced = Instant::now();
    for (path, before) in BOTH.iter().zip(&good) {
        cluster.admin.wait(path, |now| content(now) == content(before));
        assert_ne!(cluster.admin.get(path).unwrap()["metadata"]["generation"], before["metadata"]["generation"]);
    }
    println!("restored {:.1?} after a replacement", replaced.elapsed());
    assert!(replaced.elapsed() < Duration::from_secs(3), "{:?}", replaced.elapsed());
    await_effect(&cluster.admin);
}

#[test]
fn deleted_configuration_is_not_recreated() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let nadmit = "--as=system:serviceaccount:nadmit:nadmit";
    for (verb, what, may) in [
        ("update", "mutatingwebhookconfigurations/nadmit", true),
        ("get", "validatingwebhookconfigurations/nadmit", true),
        ("update", "mutatingwebhookconfigurations/other", false),
        ("create", "mutatingwebhookconfigurations", false),
        ("create", "validatingwebhookconfigurations", false),
        ("delete", "validatingwebhookconfigurations/nadmit", false),
        ("patch", "validatingwebhookconfigurations/nadmit", false),
        ("list", "validatingwebhookconfigurations", false),
        ("get", "clusterroles/nadmit", false),
        ("update", "validatingadmissionpolicies/nadmit", false),
        ("create", "network-attachment-definitions.k8s.cni.cncf.io", false),
        ("update", "network-attachment-definitions.k8s.cni.cncf.io", true),
        ("list", "deviceclasses.resource.k8s.io", cluster.has_device_claims()),
        ("watch", "daemonsets.apps", true),
        ("create", "daemonsets.apps", false),
    ] {
        let can = cluster.kubectl("admin", &["auth", "can-i", verb, what, "--all-namespaces", nadmit], "");
        assert_eq!(can.status.success(), may, "{verb} {what}");
    }

    let good = BOTH.map(|path| cluster.admin.get(path).unwrap());
    let there = |kind: &str| cluster.nadmit().metric(&format!("nadmit_webhook_configurations{{kind=\"{kind}\"}}"));
    assert_eq!(there("ValidatingWebhookConfiguration"), 1.0);
    cluster.admin.delete(VALIDATING);
    wait("the metric", || (there("ValidatingWebhookConfiguration") == 0.0).then_some(()));
    wait("the metric", || (cluster.nadmit().metric("nadmit_registered") == 0.0).then_some(()));
    cluster.nadmit().wait_for_line("ValidatingWebhookConfiguration `nadmit` was deleted");
    // The other configuration is still reconciled, and this one stays deleted.
    cluster.admin.patch(MUTATING, &json!({ "webhooks": [] }));
    cluster.admin.wait(MUTATING, |now| content(now) == content(&good[0]));
    assert_eq!(there("MutatingWebhookConfiguration"), 1.0);
    assert!(cluster.admin.get(VALIDATING).is_none());

    // The manifests create it again, and nadmit adds the entries.
    cluster.try_kubectl(&["apply"], &manifests());
    let back = cluster.admin.wait(VALIDATING, |now| content(now) == content(&good[1]));
    assert_ne!(back["metadata"]["uid"], good[1]["metadata"]["uid"]);
    wait("the metric", || (cluster.nadmit().metric("nadmit_registered") == 1.0).then_some(()));
    await_effect(&cluster.admin);
    let settled = version(&cluster.admin.get(VALIDATING).unwrap()).to_owned();
    cluster.admin.patch(MUTATING, &json!({ "webhooks": [] }));
    cluster.admin.wait(MUTATING, |now| content(now) == content(&good[0]));
    assert_eq!(
        version(&cluster.admin.get(VALIDATING).unwrap()),
        settled,
        "the configuration was written without a change"
    );
}
