//! The permissions of nadmit, and its priority at the API server.

use serde_json::{Value, json};

use super::webhooks::CONFIGURATIONS;
use super::{CERTIFICATE, NAME, Options, POLICY, TOKEN, cluster_metadata, named, namespaced_metadata, set};

/// The verbs on reports; they are not watched.
const REPORTS: &[&str] = &["get", "list", "create", "update", "delete"];

/// The ServiceAccount, its permissions, and its priority level.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": namespaced_metadata(options, NAME) }),
        cluster_role(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster_metadata(),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
            "subjects": [account(options)],
        }),
        role(options),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": namespaced_metadata(options, NAME),
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

/// Permissions are bound to names where possible. `create` cannot be: the name is not known at authorization.
fn cluster_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": cluster_metadata(),
        "rules": [
            // NADs and networks stored while nadmit was unavailable are completed.
            rule(
                "sriovnetwork.openshift.io",
                &["sriovnetworks", "sriovibnetworks", "ovsnetworks"],
                &[],
                &["get", "list", "watch", "update"],
            ),
            rule("sriovnetwork.openshift.io", &["sriovnetworknodepolicies"], &[], &["list", "watch"]),
            // Which PF a node policy means; the audit lists them, and no watch has them.
            rule("sriovnetwork.openshift.io", &["sriovnetworknodestates"], &[], &["list"]),
            rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &[], &["get", "list", "watch", "update"]),
            rule("", &["namespaces"], &[], &["get", "list", "watch"]),
            // Candidate namespaces of an operator, watched by name; and, only in those, all Deployments and accounts: the prefix
            // is in the operator's Deployment, which Helm names after the release.
            rule("sriovnetwork.openshift.io", &["sriovoperatorconfigs"], &["default"], &["list", "watch"]),
            rule("apps", &["deployments"], &["sriov-network-operator"], &["watch"]),
            rule("apps", &["deployments"], &[], &["get", "list"]),
            rule("", &["serviceaccounts"], &[], &["list"]),
            // To identify the operator's account, and what a writer may read; access reviews store nothing.
            rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
            // Audit findings are written as reports and Events. Events are never changed.
            rule("openreports.io", &["reports"], &[], REPORTS),
            rule("wgpolicyk8s.io", &["policyreports"], &[], REPORTS),
            rule("", &["events"], &[], &["create"]),
            // The manifests create both configurations; nadmit fills them in.
            rule("admissionregistration.k8s.io", &CONFIGURATIONS, &[NAME], &["get", "update"]),
            // Which NADs get their devices by claim. All but DeviceClasses are read only where the SR-IOV DRA driver is installed.
            rule(
                "resource.k8s.io",
                &["deviceclasses", "resourceclaims", "resourceclaimtemplates"],
                &[],
                &["list", "watch"],
            ),
            rule(
                "sriovnetwork.k8snetworkplumbingwg.io",
                &["deviceattributes", "sriovresourcepolicies"],
                &[],
                &["list", "watch"],
            ),
            rule("apps", &["daemonsets"], &[], &["list", "watch"]),
        ],
    })
}

/// The name of the dry-run permission.
const DRY_RUNS: &str = "nadmit-dry-runs";

/// The permission to create NADs, used only for dry runs that show who denies a missing NAD.
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

/// The name of the permission to read pods.
const PODS: &str = "nadmit-pods";

/// The permission to read pods, which nadmit needs only while the policy judges them.
pub(super) fn pods(options: &Options) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": named(PODS),
            "rules": [rule("", &["pods"], &[], &["get", "list", "watch"])],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named(PODS),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PODS },
            "subjects": [account(options)],
        }),
    ]
}

/// The name of the read-only role of `nadmit audit` and `nadmit doctor`.
const READER: &str = "nadmit-audit";

/// A ServiceAccount with the read-only permissions of an audit; users may be bound to the same role.
pub(super) fn reader(options: &Options) -> Vec<Value> {
    let cluster_metadata = || {
        let mut meta = cluster_metadata();
        set(&mut meta, "name", READER.into());
        meta
    };
    let networks =
        ["sriovnetworks", "sriovibnetworks", "ovsnetworks", "sriovnetworknodepolicies", "sriovnetworknodestates"];
    let read = ["get", "list", "watch"];
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": namespaced_metadata(options, READER) }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": cluster_metadata(),
            "rules": [
                rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &[], &read),
                rule("sriovnetwork.openshift.io", &networks, &[], &read),
                rule("", &["namespaces", "nodes"], &[], &read),
                // Why a pod does not start: its Events, and the NADs it asks for. All pods only for a policy that judges them.
                rule("", &["pods"], &[], if options.pods { &["get", "list"] } else { &["get"] }),
                rule("", &["events"], &[], &["list"]),
                // To identify the operator: its Deployment, its account, and its permissions. Access reviews store nothing.
                rule("apps", &["deployments"], &[], &["get", "list"]),
                rule("", &["serviceaccounts"], &[], &["list"]),
                rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"]),
                rule("sriovnetwork.openshift.io", &["sriovoperatorconfigs"], &["default"], &read),
                // Which NADs get their devices by claim (DRA).
                rule(
                    "resource.k8s.io",
                    &["deviceclasses", "resourceclaims", "resourceclaimtemplates"],
                    &[],
                    &["list"],
                ),
                rule(
                    "sriovnetwork.k8snetworkplumbingwg.io",
                    &["deviceattributes", "sriovresourcepolicies"],
                    &[],
                    &["list"],
                ),
                rule("apps", &["daemonsets"], &[], &["list"]),
                // Whether nadmit is registered.
                rule("admissionregistration.k8s.io", &CONFIGURATIONS, &[NAME], &["get"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster_metadata(),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER },
            "subjects": [{ "kind": "ServiceAccount", "name": READER, "namespace": options.home.namespace }],
        }),
    ]
}

fn role(options: &Options) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": namespaced_metadata(options, NAME),
        "rules": [
            rule("", &["secrets"], &[], &["create"]),
            rule("", &["secrets"], &[CERTIFICATE, TOKEN], &["get", "update"]),
            rule("coordination.k8s.io", &["leases"], &[], &["create"]),
            rule("coordination.k8s.io", &["leases"], &[NAME], &["get", "update"]),
            // The policy, watched by name.
            rule("", &["configmaps"], &[POLICY], &["get", "list", "watch"]),
            // Its cluster IP, with which nadmit reaches itself before it registers.
            rule("", &["services"], &[&options.home.service], &["get"]),
        ],
    })
}

/// nadmit's reads must not queue behind the writes that wait for nadmit.
fn priority_level() -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": cluster_metadata(),
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
        "metadata": cluster_metadata(),
        "spec": {
            "priorityLevelConfiguration": { "name": NAME },
            // Before `service-accounts` (9000), and after all essential flows of the cluster.
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
