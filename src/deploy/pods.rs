//! The webhook entries about pods: which writes they match, and the conditions (CEL) that the API server evaluates, so that nothing
//! reaches nadmit for a pod that selects no network.

use serde_json::{Value, json};

use crate::resources::{DEFAULT_NETWORK, NAD_GROUP, NADS, NETWORKS};

/// The accounts that delete what nobody uses any more: a whole namespace, and what lost its owner. The last one is that of all controllers
/// where they have none of their own.
const COLLECTORS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];
/// The pod templates of all kinds, below the object.
const TEMPLATES: [&str; 2] = [".?spec.?template", ".?spec.?jobTemplate.?spec.?template"];

/// Pods and what people make them with. The annotation of a pod has no effect after its creation, and neither has the template of a
/// Job.
pub(super) fn workloads() -> Value {
    let rule = |group: &str, resources: &[&str], operations: &[&str]| {
        json!({
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": operations,
            "resources": resources,
            "scope": "Namespaced",
        })
    };
    json!([
        rule("", &["pods"], &["CREATE"]),
        rule("apps", &["daemonsets", "deployments", "statefulsets"], &["CREATE", "UPDATE"]),
        rule("batch", &["jobs"], &["CREATE"]),
        rule("batch", &["cronjobs"], &["CREATE", "UPDATE"]),
        rule("kubevirt.io", &["virtualmachines"], &["CREATE", "UPDATE"]),
    ])
}

/// Deletions of NADs.
pub(super) fn deleted_nads() -> Value {
    json!({
        "apiGroups": [NAD_GROUP],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": [NADS],
        "scope": "Namespaced",
    })
}

/// Those whose pods have one of the annotations, or that are a virtual machine with such networks.
pub(super) fn annotated() -> Value {
    let holders = std::iter::once(String::new()).chain(TEMPLATES.map(str::to_owned));
    let annotations = holders.map(|holder| format!("object{holder}.?metadata.?annotations.orValue({{}})"));
    let annotations = annotations.collect::<Vec<_>>().join(", ");
    let expression = format!(
        "[{annotations}].exists(a, '{NETWORKS}' in a || '{DEFAULT_NETWORK}' in a) || \
         object.?spec.?template.?spec.?networks.orValue([]).exists(n, has(n.multus))"
    );
    json!({ "name": "annotated", "expression": expression })
}

/// New objects, and those whose pod template changes.
pub(super) fn changes_pods() -> Value {
    let is_same = TEMPLATES.map(|path| format!("object{path}.orValue({{}}) == oldObject{path}.orValue({{}})"));
    let expression = format!("request.operation == 'CREATE' || !({})", is_same.join(" && "));
    json!({ "name": "changes", "expression": expression })
}

/// Nobody reads the warnings of the controllers that clean up.
pub(super) fn no_collector() -> Value {
    let names = COLLECTORS.map(|name| format!("'{name}'")).join(", ");
    json!({ "name": "by-somebody", "expression": format!("!(request.userInfo.username in [{names}])") })
}
