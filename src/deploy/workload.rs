//! The Deployment and how it is reached.

use serde_json::{Value, json};

use super::clients::{self, Clients};
use super::{
    HTTPS_PORT, METRICS_PORT, NAME, Options, POLICY, POLICY_KEY, certificates, labels, namespaced_metadata, selector,
    set,
};

/// The Service for the metrics.
const METRICS_SERVICE: &str = "nadmit-metrics";

/// The policy ConfigMap, Services, Deployment, PodDisruptionBudget and NetworkPolicy.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": namespaced_metadata(options, POLICY),
            "data": { POLICY_KEY: options.policy },
        }),
        service(options),
        metrics_service(options),
        deployment(options),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": namespaced_metadata(options, NAME),
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": selector() } },
        }),
        network_policy(options),
    ]
}

fn service(options: &Options) -> Value {
    let mut metadata = namespaced_metadata(options, &options.home.service);
    if let Some(annotations) = certificates::service_annotations(options) {
        set(&mut metadata, "annotations", annotations);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "selector": selector(),
            "ports": [{ "name": "https", "port": 443, "targetPort": "https", "protocol": "TCP" }],
        },
    })
}

/// A Service of its own: the one that the API server calls has nothing but the webhooks.
fn metrics_service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": namespaced_metadata(options, METRICS_SERVICE),
        "spec": {
            "selector": selector(),
            "ports": [{ "name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP" }],
        },
    })
}

fn deployment(options: &Options) -> Value {
    let mut volumes = Vec::new();
    volumes.extend(certificates::volumes(options));
    volumes.extend(options.clients.as_ref().map(|_| clients::volume()));
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|(volume, path)| json!({ "name": volume.get("name"), "mountPath": path, "readOnly": true }))
        .collect();
    let volumes: Vec<Value> = volumes.into_iter().map(|(volume, _)| volume).collect();
    let mut arguments = vec![
        "serve".to_owned(),
        format!("--listen=0.0.0.0:{HTTPS_PORT}"),
        format!("--metrics-listen=0.0.0.0:{METRICS_PORT}"),
        format!("--policy-configmap={POLICY}"),
        format!("--service={}", options.home.service),
        "--register".to_owned(),
    ];
    arguments.extend(certificates::arguments(options));
    arguments.extend(options.clients.iter().flat_map(Clients::arguments));
    let probe = |path: &str, seconds: u32| json!({ "httpGet": { "path": path, "port": "https", "scheme": "HTTPS" }, "periodSeconds": seconds });
    let mut container = json!({
        "name": NAME,
        "image": options.image,
        "args": arguments,
        "ports": [
            { "name": "https", "containerPort": HTTPS_PORT, "protocol": "TCP" },
            { "name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP" },
        ],
        "livenessProbe": probe("/healthz", 10),
        "readinessProbe": probe("/readyz", 2),
        "resources": { "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
    });
    let spread = json!({
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": selector() },
        // The pods that a rollout replaces do not count, or the new ones would avoid their nodes and meet on another.
        "matchLabelKeys": ["pod-template-hash"],
    });
    // Not as a second spread: on nodes without that label, the scheduler would ignore the first one, too.
    let another_zone = json!({
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "topology.kubernetes.io/zone",
            "labelSelector": { "matchLabels": selector() },
        },
    });
    let mut pod = json!({
        "terminationGracePeriodSeconds": 30,
        "topologySpreadConstraints": [spread],
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [another_zone] } },
    });
    if !volumes.is_empty() {
        set(&mut container, "volumeMounts", mounts.into());
        set(&mut pod, "volumes", volumes.into());
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced_metadata(options, NAME),
        "spec": {
            "replicas": options.replicas,
            "selector": { "matchLabels": selector() },
            // A new replica is ready before an old one is stopped.
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            "template": {
                "metadata": { "labels": labels() },
                "spec": hardened(NAME, container, pod),
            },
        },
    })
}

/// A pod with one container that has no more rights than its account: what the pod security standard `restricted` asks for.
pub(super) fn hardened(account: &str, mut container: Value, more: Value) -> Value {
    let confined = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "readOnlyRootFilesystem": true,
    });
    set(&mut container, "securityContext", confined);
    let mut pod = more;
    set(&mut pod, "serviceAccountName", account.into());
    set(&mut pod, "priorityClassName", "system-cluster-critical".into());
    set(&mut pod, "securityContext", json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } }));
    set(&mut pod, "containers", json!([container]));
    pod
}

/// Allows ingress only to nadmit's ports, from anywhere: an API server is not a pod, and no selector matches it.
fn network_policy(options: &Options) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": namespaced_metadata(options, NAME),
        "spec": {
            "podSelector": { "matchLabels": selector() },
            "policyTypes": ["Ingress"],
            "ingress": [{ "ports": [
                { "port": "https", "protocol": "TCP" },
                { "port": "metrics", "protocol": "TCP" },
            ] }],
        },
    })
}
