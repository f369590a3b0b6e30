//! What the API server is told of nadmit.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::api::Api;
use crate::objects::{self, LAST_NAMESPACE, annotated};
use crate::processes::wait;

/// Registers nadmit at that address, and waits until the API server asks it.
pub fn register(api: &Api, address: &str, ca: &str) {
    let entry = |name: &str, path: &str, what: Value, policy: &str, conditions: Value| {
        json!({
            "name": name,
            "clientConfig": { "url": format!("https://{address}{path}"), "caBundle": BASE64_STANDARD.encode(ca) },
            "rules": [what],
            "failurePolicy": policy,
            "matchConditions": conditions,
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"],
        })
    };
    let rule = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": resources });
    let nads = || rule("k8s.cni.cncf.io", &["network-attachment-definitions"]);
    let networks = || rule("sriovnetwork.openshift.io", &["sriovnetworks", "sriovibnetworks", "ovsnetworks"]);
    // Whatever is being deleted must be able to go, also while nadmit is down.
    let stays = json!({ "name": "stays", "expression": "!has(object.metadata.deletionTimestamp)" });
    let device = json!({ "name": "device", "expression":
        "has(object.spec) && has(object.spec.config) && object.spec.config.contains('sriov')" });
    let wedged = json!({ "name": "wedged", "expression": format!(
        "has(object.metadata.annotations) && '{LAST_NAMESPACE}' in object.metadata.annotations \
         && object.metadata.annotations['{LAST_NAMESPACE}'] \
         != (has(object.spec.networkNamespace) && object.spec.networkNamespace != '' \
         ? object.spec.networkNamespace : object.metadata.namespace)") });
    let mut mutating = [
        entry("nads.nadmit.io", "/mutate", nads(), "Fail", json!([stays, device])),
        entry("networks.nadmit.io", "/mutate", networks(), "Ignore", json!([stays, wedged])),
    ];
    for entry in &mut mutating {
        entry["reinvocationPolicy"] = "IfNeeded".into();
    }
    let validating = [
        entry("nads.nadmit.io", "/validate", nads(), "Ignore", json!([stays])),
        entry("networks.nadmit.io", "/validate", networks(), "Ignore", json!([stays])),
    ];
    for (kind, path, webhooks) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", mutating),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", validating),
    ] {
        let configuration = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": "nadmit" }, "webhooks": webhooks });
        api.create(&format!("/apis/admissionregistration.k8s.io/v1/{path}"), &configuration);
    }
    await_effect(api);
}

/// Both configurations reach the server's admission some time after they are stored.
pub fn await_effect(api: &Api) {
    let dry_run = format!("{}?dryRun=All", objects::nads("default"));
    let repairable = objects::nad("probe", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"probe.io/x"}"#);
    wait("a repair", || api.try_create(&dry_run, &repairable).ok().filter(|nad| annotated(nad) == Some("probe.io/x")));
    let bad = objects::nad("probe", "not JSON");
    wait("a refusal", || api.try_create(&dry_run, &bad).err());
}
