//! The Grafana dashboard: decisions, latency, and health of nadmit.
//!
//! Built here and not drawn in Grafana, so that a test can compare its curves with the metrics there are; no crate builds dashboards.

use serde_json::{Value, json};

use super::{NAME, Options, namespaced_metadata, set};

/// The ConfigMap with the dashboard.
const DASHBOARD: &str = "nadmit-dashboard";
/// The dashboard is this wide.
const WIDTH: usize = 24;
/// How high a graph is, and a single number.
const HEIGHTS: (usize, usize) = (8, 4);

/// The ConfigMap in which Grafana's sidecar finds the dashboard.
pub(super) fn object(options: &Options) -> Value {
    let mut metadata = namespaced_metadata(options, DASHBOARD);
    if let Some(labels) = metadata.get_mut("labels") {
        set(labels, "grafana_dashboard", "1".into());
    }
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "nadmit.json": text() } })
}

/// The dashboard, as Grafana imports it.
pub(super) fn text() -> String {
    format!("{:#}\n", dashboard())
}

/// A query and how its curves are called.
type Query = (&'static str, &'static str);

/// The stat panels.
const STAT_PANELS: [(&str, &str, &str, &str); 6] = [
    (
        "Registered",
        "1: webhooks registered. 0: a webhook configuration is missing or wrong, or a replica cannot check it",
        "min(nadmit_registered{job=~\"$job\"})",
        "short",
    ),
    ("Replicas", "Replicas that Prometheus can reach", "count(nadmit_build_info{job=~\"$job\"})", "short"),
    (
        "Certificate expires in",
        "For the replica with the oldest certificate",
        "min(nadmit_certificate_expiry_timestamp_seconds{job=~\"$job\"}) - time()",
        "s",
    ),
    (
        "Configured policy in force",
        "0: the configured policy is missing or invalid, and the last good one is in force",
        "min(nadmit_policy_current{job=~\"$job\"})",
        "short",
    ),
    (
        "Denied in the last hour",
        "Denied writes, without dry runs",
        "sum(increase(nadmit_reviews_total{job=~\"$job\",decision=\"deny\",dry_run=\"false\"}[1h])) or vector(0)",
        "short",
    ),
    (
        "Failed reviews in the last hour",
        "Reviews that got an HTTP error, so failurePolicy decided",
        "sum(increase(nadmit_reviews_unanswered_total{job=~\"$job\"}[1h])) or vector(0)",
        "short",
    ),
];

/// The graph panels.
const GRAPH_PANELS: [(&str, &str, &[Query], &str); 14] = [
    (
        "Reviews by decision",
        "Decisions on reviewed writes",
        &[(
            "sum by (endpoint, decision) (rate(nadmit_reviews_total{job=~\"$job\"}[$__rate_interval]))",
            "{{endpoint}} {{decision}}",
        )],
        "reqps",
    ),
    (
        "Findings by rule",
        "Findings and their actions; docs/rules explains each rule",
        &[(
            "topk(15, sum by (rule, action) (increase(nadmit_findings_total{job=~\"$job\"}[$__rate_interval])))",
            "{{rule}} {{action}}",
        )],
        "short",
    ),
    (
        "Review latency",
        "From the last byte of a review to its response",
        &[
            (
                "histogram_quantile(0.5, sum by (le, endpoint) (rate(nadmit_review_duration_seconds_bucket{job=~\"$job\"}[$__rate_interval])))",
                "{{endpoint}} p50",
            ),
            (
                "histogram_quantile(0.99, sum by (le, endpoint) (rate(nadmit_review_duration_seconds_bucket{job=~\"$job\"}[$__rate_interval])))",
                "{{endpoint}} p99",
            ),
        ],
        "s",
    ),
    (
        "Failed reviews",
        "Reviews that got an HTTP error, so failurePolicy decided, and panics, which deny",
        &[
            ("sum by (reason) (rate(nadmit_reviews_unanswered_total{job=~\"$job\"}[$__rate_interval]))", "{{reason}}"),
            (
                "sum by (endpoint) (rate(nadmit_review_panics_total{job=~\"$job\"}[$__rate_interval]))",
                "panics: {{endpoint}}",
            ),
        ],
        "reqps",
    ),
    (
        "Completions",
        "NADs and networks that were stored without nadmit, by result of their completion",
        &[("sum by (result) (increase(nadmit_completions_total{job=~\"$job\"}[$__rate_interval]))", "{{result}}")],
        "short",
    ),
    (
        "Audit findings",
        "Findings on stored NADs and networks; reports and Events name the objects",
        &[("topk(15, max by (rule, action) (nadmit_audit_findings{job=~\"$job\"}))", "{{rule}} {{action}}")],
        "short",
    ),
    (
        "Audit",
        "Duration and age of the last full scan, and report writes",
        &[
            ("max(nadmit_audit_scan_duration_seconds{job=~\"$job\"})", "duration, seconds"),
            ("(time() - max(nadmit_audit_last_scan_timestamp_seconds{job=~\"$job\"})) / 60", "age, minutes"),
            (
                "sum by (result) (increase(nadmit_audit_report_writes_total{job=~\"$job\"}[$__rate_interval]))",
                "reports {{result}}",
            ),
        ],
        "short",
    ),
    (
        "Registration",
        "1 for each replica with a correct registration and for each existing webhook configuration; replicas by what \
         prevents the registration; and how many namespaces are exempt by their label",
        &[
            ("nadmit_registered{job=~\"$job\"}", "{{pod}}"),
            ("sum by (problem) (nadmit_registration_problem{job=~\"$job\"}) > 0", "problem: {{problem}}"),
            ("min by (kind) (nadmit_webhook_configurations{job=~\"$job\"})", "{{kind}}"),
            ("max(nadmit_exempt_namespaces{job=~\"$job\"})", "exempt namespaces"),
        ],
        "short",
    ),
    (
        "Background tasks",
        "Tasks that are down in a replica, and panics. A task that ends is restarted, or shuts down its replica",
        &[
            ("sum by (task) (1 - nadmit_task_up{job=~\"$job\"}) > 0", "{{task}} down"),
            ("sum by (task) (increase(nadmit_task_panics_total{job=~\"$job\"}[$__rate_interval]))", "{{task}} panics"),
        ],
        "short",
    ),
    (
        "Cached objects",
        "Objects in the informer caches, which warnings depend on",
        &[("max by (kind) (nadmit_cache_objects{job=~\"$job\"})", "{{kind}}")],
        "short",
    ),
    (
        "Caches: unknown, missed and skipped",
        "Replicas without a synced cache of a kind; reviews judged without it; objects that could not be read",
        &[
            ("sum by (kind) (1 - nadmit_cache_ready{job=~\"$job\"}) > 0", "{{kind}} unknown"),
            ("sum by (kind) (increase(nadmit_cache_missed_total{job=~\"$job\"}[$__rate_interval]))", "{{kind}} missed"),
            (
                "sum by (kind) (increase(nadmit_cache_skipped_total{job=~\"$job\"}[$__rate_interval]))",
                "{{kind}} skipped",
            ),
        ],
        "short",
    ),
    (
        "Connections and reviews in flight",
        "Each replica accepts 1024 connections and judges 256 complete reviews at once; others wait",
        &[
            ("sum(nadmit_connections{job=~\"$job\"})", "connections"),
            ("sum(nadmit_reviews_in_flight{job=~\"$job\"})", "reviews"),
            ("sum(nadmit_requests_unfinished{job=~\"$job\"})", "requests with incomplete body"),
            (
                "sum by (reason) (rate(nadmit_connections_refused_total{job=~\"$job\"}[$__rate_interval]))",
                "rejected per second: {{reason}}",
            ),
        ],
        "short",
    ),
    (
        "Certificate and policy reloads",
        "Whether a new certificate or policy was accepted",
        &[
            (
                "sum by (result) (increase(nadmit_certificate_reloads_total{job=~\"$job\"}[$__rate_interval]))",
                "certificate {{result}}",
            ),
            (
                "sum by (result) (increase(nadmit_policy_reloads_total{job=~\"$job\"}[$__rate_interval]))",
                "policy {{result}}",
            ),
            ("count by (hash) (nadmit_policy_info{job=~\"$job\"})", "replicas with policy {{hash}}"),
            (
                "(time() - min(nadmit_policy_applied_timestamp_seconds{job=~\"$job\"})) / 3600",
                "age of the oldest policy, hours",
            ),
        ],
        "short",
    ),
    (
        "Writes in audit events",
        "Only if the API server sends audit events: blind status writes, outcomes of writes, objects in a loop, rejected batches",
        &[
            (
                "sum by (way) (increase(nadmit_audit_blind_writes_total{job=~\"$job\"}[$__rate_interval]))",
                "blind: {{way}}",
            ),
            ("sum by (outcome) (increase(nadmit_audit_writes_total{job=~\"$job\"}[$__rate_interval]))", "{{outcome}}"),
            ("max(nadmit_audit_loops{job=~\"$job\"})", "objects in a loop"),
            (
                "sum by (result) (increase(nadmit_audit_batches_total{job=~\"$job\",result!=\"taken\"}[$__rate_interval]))",
                "batches: {{result}}",
            ),
        ],
        "short",
    ),
];

fn dashboard() -> Value {
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let mut panels = Vec::new();
    let width = WIDTH / STAT_PANELS.len();
    for (index, (title, description, query, unit)) in STAT_PANELS.into_iter().enumerate() {
        let place = json!({ "x": index * width, "y": 0, "w": width, "h": HEIGHTS.1 });
        panels.push(panel("stat", title, description, &[(query, "")], unit, &place));
    }
    for (index, (title, description, queries, unit)) in GRAPH_PANELS.into_iter().enumerate() {
        let (column, row) = (index % 2, index / 2);
        let (width, height) = (WIDTH / 2, HEIGHTS.0);
        let place = json!({ "x": column * width, "y": HEIGHTS.1 + row * height, "w": width, "h": height });
        panels.push(panel("timeseries", title, description, queries, unit, &place));
    }
    for (index, panel) in panels.iter_mut().enumerate() {
        set(panel, "id", (index + 1).into());
        set(panel, "datasource", source.clone());
    }
    let jobs = "label_values(nadmit_build_info, job)";
    json!({
        "title": "nadmit",
        "uid": NAME,
        "tags": [NAME, "sriov"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "1m",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": [
            { "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" },
            {
                "name": "job", "label": "Job", "type": "query", "datasource": source, "definition": jobs,
                "query": { "query": jobs, "refId": "job" }, "refresh": 2, "includeAll": true, "multi": true,
                "current": { "text": "All", "value": "$__all" },
            },
        ] },
        "panels": panels,
    })
}

fn panel(kind: &str, title: &str, description: &str, queries: &[Query], unit: &str, place: &Value) -> Value {
    let targets: Vec<Value> = ('A'..)
        .zip(queries)
        .map(|(letter, (query, legend))| json!({ "refId": letter, "expr": query, "legendFormat": legend }))
        .collect();
    json!({
        "type": kind,
        "title": title,
        "description": description,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
    })
}

/// Every query of the dashboard, as Prometheus gets it.
#[cfg(test)]
pub(super) fn queries() -> Vec<String> {
    let panels = dashboard()["panels"].as_array().cloned().unwrap_or_default();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap_or_default().replace("$__rate_interval", "5m")).collect()
}
