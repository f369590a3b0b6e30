//! What the chart has for `helm uninstall`: a Job that deletes the webhook configurations before anything else goes.
//!
//! Not every version of Helm deletes them before the Service and the Deployment: until they are gone, a webhook that fails closed would
//! deny every NAD with a device plugin. nadmit itself may not delete them, so the Job has an account of its own.

use serde_json::{Value, json};

use super::webhooks::CONFIGURATIONS;
use super::workload::hardened;
use super::{NAME, Options, labels, set};

/// The name of everything that is there only for this.
const LEAVING: &str = "nadmit-uninstall";
/// How long the Job may take before `helm uninstall` hears that it has failed.
const SECONDS: u32 = 120;

/// The Job, and what it needs; all of it is gone when the Job has done its work.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    let namespace = &options.home.namespace;
    let group = "rbac.authorization.k8s.io";
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": head(Some(namespace), -1) }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": head(None, -1),
            "rules": [{
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": CONFIGURATIONS,
                "resourceNames": [NAME],
                "verbs": ["delete"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": head(None, -1),
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": LEAVING },
            "subjects": [{ "kind": "ServiceAccount", "name": LEAVING, "namespace": namespace }],
        }),
        job(options),
    ]
}

fn job(options: &Options) -> Value {
    let container = json!({
        "name": NAME,
        "image": options.image,
        "args": ["uninstall", "--registration-only"],
        "resources": { "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": head(Some(&options.home.namespace), 0),
        "spec": {
            "backoffLimit": 3,
            "activeDeadlineSeconds": SECONDS,
            "template": {
                "metadata": { "labels": own_labels() },
                "spec": hardened(LEAVING, container, json!({ "restartPolicy": "Never" })),
            },
        },
    })
}

/// Not those by which the Service finds its pods.
fn own_labels() -> Value {
    let mut all = labels();
    set(&mut all, "app.kubernetes.io/name", LEAVING.into());
    all
}

/// A failed Job stays, so that its log can be read, until the next attempt.
fn head(namespace: Option<&str>, weight: i32) -> Value {
    let mut head = json!({
        "name": LEAVING,
        "labels": own_labels(),
        "annotations": {
            "helm.sh/hook": "pre-delete",
            "helm.sh/hook-weight": weight.to_string(),
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        },
    });
    if let Some(namespace) = namespace {
        set(&mut head, "namespace", namespace.into());
    }
    head
}
