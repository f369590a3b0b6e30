//! The pre-delete hook of the chart, as its templates must render it (a test compares): a Job that deletes the webhook
//! configurations before anything else.
//!
//! Not every version of Helm deletes them before the Service and the Deployment: until they are deleted, a webhook that fails
//! closed would deny every NAD with a device plugin. nadmit itself may not delete them, so the Job has its own account.

use serde_json::{Value, json};

use super::webhooks::CONFIGURATIONS;
use super::workload::hardened;
use super::{NAME, Options, labels, set};

/// The name of the hook's objects.
const UNINSTALL: &str = "nadmit-uninstall";
/// The deadline of the Job, after which `helm uninstall` fails.
const SECONDS: u32 = 120;

/// The Job and its objects; all are deleted when the Job has succeeded.
pub fn objects(options: &Options) -> Vec<Value> {
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
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": UNINSTALL },
            "subjects": [{ "kind": "ServiceAccount", "name": UNINSTALL, "namespace": namespace }],
        }),
        job(options),
    ]
}

fn job(options: &Options) -> Value {
    let container = json!({
        "name": NAME,
        "image": options.image,
        // Nobody is there to be asked.
        "args": ["uninstall", "--registration-only", "--yes"],
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
                "spec": hardened(UNINSTALL, container, json!({ "restartPolicy": "Never" })),
            },
        },
    })
}

/// Labels without the Service's selector.
fn own_labels() -> Value {
    let mut all = labels();
    set(&mut all, "app.kubernetes.io/name", UNINSTALL.into());
    all
}

/// A failed Job is kept for its log until the next attempt.
fn head(namespace: Option<&str>, weight: i32) -> Value {
    let mut head = json!({
        "name": UNINSTALL,
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
