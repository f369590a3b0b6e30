//! What nadmit may do, and that the API server finds time for it.

use serde_json::{Value, json};

use super::webhooks::CONFIGURATIONS;
use super::{CERTIFICATE, NAME, Options, TOKEN, anywhere, here, named, set};

/// What is done with reports; they are read one by one and in pages, and nobody watches them.
const REPORTS: &[&str] = &["get", "list", "create", "update", "delete"];

/// The ServiceAccount, its rights, and its place in the API server's queues.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": here(options, NAME) }),
        cluster_role(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": anywhere(),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
            "subjects": [account(options)],
        }),
        role(options),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": here(options, NAME),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME },
            "subjects": [account(options)],
        }),
        priority_level(),
        flow_schema(options),
    ]
}

fn account(options: &Options) -> Value {
    json!({ "kind": "ServiceAccount", "name": NAME, "namespace": options.home.namespace })
}

fn rule(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
    let mut rule = json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    if !names.is_empty() {
        set(&mut rule, "resourceNames", json!(names));
    }
    rule
}

/// What can be bound to names is. A right to create cannot: the name is not known when it is asked for.
fn cluster_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": anywhere(),
        "rules": [
            // What slipped by while nadmit was away is written once more.
            rule(
                "sriovnetwork.openshift.io",
                &["sriovnetworks", "sriovibnetworks", "ovsnetworks"],
                &[],
                &["get", "list", "watch", "update"],
            ),
            rule("sriovnetwork.openshift.io", &["sriovnetworknodepolicies"], &[], &["list", "watch"]),
            rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &[], &["get", "list", "watch", "update"]),
            rule("", &["namespaces"], &[], &["get", "list", "watch"]),
            // Where an operator may be, which is watched by name; and, in those namespaces only, which Deployments and accounts there are,
            // whatever they are called: the prefix is in the operator's Deployment, which Helm names after the release.
            rule("sriovnetwork.openshift.io", &["sriovoperatorconfigs"], &["default"], &["list", "watch"]),
            rule("apps", &["deployments"], &["sriov-network-operator"], &["watch"]),
            rule("apps", &["deployments"], &[], &["get", "list"]),
            rule("", &["serviceaccounts"], &[], &["list"]),
            // Which of those accounts is the operator, and what a writer may read: the API server is asked, and nothing is stored.
            rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
            // What the audit finds is kept beside each object, and its author is told. An Event is never changed.
            rule("openreports.io", &["reports"], &[], REPORTS),
            rule("wgpolicyk8s.io", &["policyreports"], &[], REPORTS),
            rule("", &["events"], &[], &["create"]),
            // Both configurations come with the manifests; nadmit fills them.
            rule("admissionregistration.k8s.io", &CONFIGURATIONS, &[NAME], &["get", "update"]),
            // Where an SR-IOV DRA driver offers devices, the backstop only warns about NADs without a resourceName.
            rule("resource.k8s.io", &["deviceclasses"], &[], &["list", "watch"]),
        ],
    })
}

/// The name of the right to ask by a dry run.
const DRY_RUNS: &str = "nadmit-dry-runs";

/// The right to create NADs. nadmit creates none: it asks by a dry run who denies the one that a network waits for.
pub(super) fn dry_runs(options: &Options) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": named(DRY_RUNS),
            "rules": [rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &[], &["create"])],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named(DRY_RUNS),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": DRY_RUNS },
            "subjects": [account(options)],
        }),
    ]
}

/// The name of what `nadmit audit` and `nadmit doctor` need.
const READER: &str = "nadmit-audit";

/// A ServiceAccount that may read what an audit reads, and nothing else; a person may be bound to the same role.
pub(super) fn reader(options: &Options) -> Vec<Value> {
    let anywhere = || {
        let mut meta = anywhere();
        set(&mut meta, "name", READER.into());
        meta
    };
    let networks =
        ["sriovnetworks", "sriovibnetworks", "ovsnetworks", "sriovnetworknodepolicies", "sriovnetworknodestates"];
    let read = ["get", "list", "watch"];
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": here(options, READER) }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": anywhere(),
            "rules": [
                rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &[], &read),
                rule("sriovnetwork.openshift.io", &networks, &[], &read),
                rule("", &["namespaces", "nodes"], &[], &read),
                // Who is the operator: its Deployment, its account, and what that may do. Nothing is stored by such a review.
                rule("apps", &["deployments"], &[], &["get", "list"]),
                rule("", &["serviceaccounts"], &[], &["list"]),
                rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
                rule("sriovnetwork.openshift.io", &["sriovoperatorconfigs"], &["default"], &read),
                // Whether nadmit is registered.
                rule("admissionregistration.k8s.io", &CONFIGURATIONS, &[NAME], &["get"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": anywhere(),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER },
            "subjects": [{ "kind": "ServiceAccount", "name": READER, "namespace": options.home.namespace }],
        }),
    ]
}

fn role(options: &Options) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": here(options, NAME),
        "rules": [
            rule("", &["secrets"], &[], &["create"]),
            rule("", &["secrets"], &[CERTIFICATE, TOKEN], &["get", "update"]),
            rule("coordination.k8s.io", &["leases"], &[], &["create"]),
            rule("coordination.k8s.io", &["leases"], &[NAME], &["get", "update"]),
        ],
    })
}

/// nadmit's reads must not queue behind the writes that wait for nadmit.
fn priority_level() -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": anywhere(),
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 10,
                "lendablePercent": 50,
                "limitResponse": {
                    "type": "Queue",
                    "queuing": { "queues": 16, "handSize": 4, "queueLengthLimit": 50 },
                },
            },
        },
    })
}

fn flow_schema(options: &Options) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": anywhere(),
        "spec": {
            "priorityLevelConfiguration": { "name": NAME },
            // Before `service-accounts`, which is 9000, and after all that keeps the cluster alive.
            "matchingPrecedence": 1000,
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{
                "subjects": [{ "kind": "ServiceAccount", "serviceAccount": { "name": NAME, "namespace": options.home.namespace } }],
                "resourceRules": [{
                    "verbs": ["*"],
                    "apiGroups": ["*"],
                    "resources": ["*"],
                    "clusterScope": true,
                    "namespaces": ["*"],
                }],
            }],
        },
    })
}
