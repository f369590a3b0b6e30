//! The ServiceMonitor, the alerts and the Grafana dashboard.

use serde_json::{Value, json};

use super::{NAME, Options, dashboard, namespaced_metadata, selector};

/// The ServiceMonitor, the alerts and the dashboard.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": namespaced_metadata(options, NAME),
            "spec": { "selector": { "matchLabels": selector() }, "endpoints": [{ "port": "metrics", "interval": "30s" }] },
        }),
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": namespaced_metadata(options, NAME),
            "spec": rules(),
        }),
        dashboard::object(options),
    ]
}

/// The spec of the PrometheusRule.
pub(super) fn rules() -> Value {
    json!({ "groups": [
        { "name": NAME, "rules": alerts() },
        // Evaluated more often than Prometheus does by default, because the alert is to show the reason while somebody still waits.
        { "name": format!("{NAME}-registration"), "interval": "5s", "rules": [registration_problem()] },
    ] })
}

/// An alert: its name, its expression, how long that must hold, the severity, and the summary.
fn alert(name: &str, expression: &str, lasting: &str, severity: &str, summary: &str) -> Value {
    json!({
        "alert": name,
        "expr": expression,
        "for": lasting,
        "labels": { "severity": severity },
        "annotations": { "summary": summary, "runbook_url": runbook(name) },
    })
}

/// The section about an alert, in the pages of this version.
fn runbook(alert: &str) -> String {
    let (repository, version) = (env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION"));
    format!("{repository}/blob/v{version}/docs/troubleshooting.md#{}", alert.to_ascii_lowercase())
}

/// Shows at once why nadmit is not registered. A new replica is not ready for a moment in each rollout, which is no problem while
/// another replica is registered.
fn registration_problem() -> Value {
    alert(
        "NadmitRegistrationProblem",
        "max by (problem) (nadmit_registration_problem{problem!=\"not_ready\"}) > 0 \
         or max by (problem) (nadmit_registration_problem{problem=\"not_ready\"}) > 0 unless on () max(nadmit_registered) == 1",
        "0s",
        "warning",
        "nadmit is not registered correctly, or cannot check it ({{ $labels.problem }}): invalid networks may be stored. \
         The runbook says what to do about each reason",
    )
}

fn alerts() -> Vec<Value> {
    [
        alert(
            "NadmitAbsent",
            "absent(nadmit_build_info)",
            "5m",
            "critical",
            "nadmit is not running: NADs with a device plugin cannot be written",
        ),
        alert(
            "NadmitNotRegistered",
            "min(nadmit_registered) == 0",
            "5m",
            "critical",
            "nadmit has not been registered correctly for 5 minutes: invalid networks are stored. NadmitRegistrationProblem has the reason, and the log the details",
        ),
        alert(
            "NadmitConfigurationDeleted",
            "min by (kind) (nadmit_webhook_configurations) == 0",
            "1m",
            "critical",
            "The {{ $labels.kind }} of nadmit was deleted and is not restored automatically: apply nadmit's manifests again",
        ),
        alert(
            "NadmitExemptNamespaces",
            "max(nadmit_exempt_namespaces) > 0",
            "1h",
            "warning",
            "{{ $value }} namespaces are exempt from nadmit by the label nadmit.io/exempt=true, which is meant for emergencies",
        ),
        alert(
            "NadmitUnanswered",
            "sum by (reason) (rate(nadmit_reviews_unanswered_total{reason!~\"unknown_.*\"}[5m])) > 0",
            "5m",
            "warning",
            "Reviews fail ({{ $labels.reason }}), and failurePolicy decides instead",
        ),
        alert(
            "NadmitUnexpectedCallers",
            "sum by (reason) (rate(nadmit_reviews_unanswered_total{reason=~\"unknown_.*\"}[5m])) > 0",
            "5m",
            "warning",
            "A client other than the API server sends reviews to nadmit ({{ $labels.reason }}), or the API server calls a path that nadmit did not register",
        ),
        alert(
            "NadmitPanics",
            "sum by (endpoint) (increase(nadmit_review_panics_total[15m])) > 0",
            "0m",
            "critical",
            "Bug in nadmit: judging a write panicked, and the write was denied. The log has the location and the object",
        ),
        alert(
            "NadmitSlow",
            "histogram_quantile(0.99, sum by (le) (rate(nadmit_review_duration_seconds_bucket[5m]))) > 1",
            "10m",
            "warning",
            "One review in a hundred takes longer than a second",
        ),
        alert(
            "NadmitCertificateExpires",
            "min by (certificate) (nadmit_certificate_expiry_timestamp_seconds) - time() < 3 * 24 * 3600",
            "10m",
            "critical",
            "A certificate of nadmit expires within three days and was not renewed; after that all reviews fail",
        ),
        alert(
            "NadmitPolicyRefused",
            "min(nadmit_policy_current) == 0",
            "5m",
            "warning",
            "The policy is missing or invalid; the last good policy is in force, and replicas without one are not ready",
        ),
        alert(
            "NadmitPoliciesDiffer",
            // Replicas apply a change within seconds of each other.
            "count(count by (hash) (nadmit_policy_info)) > 1",
            "2m",
            "warning",
            "Replicas judge by different policies: `nadmit policy` shows which",
        ),
        alert(
            "NadmitCacheUnknown",
            "min by (kind) (nadmit_cache_ready) == 0",
            "15m",
            "warning",
            "The cache of {{ $labels.kind }} objects is not synced: warnings that need them are missing, and of a ConfigMap, changes of the policy",
        ),
        alert(
            "NadmitTaskDown",
            // A task that keeps ending is briefly up in between.
            "min by (task) (min_over_time(nadmit_task_up[15m])) == 0",
            "1m",
            "warning",
            "The background task {{ $labels.task }} ended unexpectedly and is restarted. Reviews are not affected; see the log",
        ),
        alert(
            "NadmitTaskPanics",
            "sum by (task) (increase(nadmit_task_panics_total[30m])) > 0",
            "1m",
            "warning",
            "The background task {{ $labels.task }} panicked; the object that caused it is skipped. The log names it",
        ),
        alert(
            "NadmitCompletionsFail",
            "sum(increase(nadmit_completions_total{result=\"failed\"}[30m])) > 0",
            "15m",
            "warning",
            "NADs or networks that were stored without nadmit cannot be completed: pods that use them hang",
        ),
        alert(
            "NadmitAuditStopped",
            // Only the leader exposes this metric.
            "time() - max(nadmit_audit_last_scan_timestamp_seconds) > 3600",
            "15m",
            "warning",
            "No full scan for an hour: reports and the alerts based on them are outdated",
        ),
        alert(
            "NadmitReportsFail",
            "sum(increase(nadmit_audit_report_writes_total{result=\"failed\"}[30m])) > 0",
            "30m",
            "warning",
            "Audit reports cannot be written. See the log",
        ),
        alert(
            "NadmitAuditEventsRefused",
            "sum by (result) (rate(nadmit_audit_batches_total{result!=\"taken\"}[15m])) > 0",
            "15m",
            "warning",
            "Audit events are rejected ({{ $labels.result }}): metrics on status writes and loops are incomplete",
        ),
    ]
    .into_iter()
    .chain(AUDIT_ALERTS.map(|(rule, name, lasting, severity, summary)| {
        let expression = format!("sum(max by (action) (nadmit_audit_findings{{rule=\"{rule}\"}})) > 0");
        alert(name, &expression, lasting, severity, summary)
    }))
    .collect()
}

/// Alerts on audit findings: the rule, the alert name, how long it must last, the severity, and the summary. The reports name the
/// objects.
const AUDIT_ALERTS: [(&str, &str, &str, &str, &str); 7] = [
    (
        "audit/nad-absent",
        "NadmitNadAbsent",
        "10m",
        "critical",
        "{{ $value }} networks have no NAD: pods that use them do not start",
    ),
    (
        "audit/nad-drift",
        "NadmitNadDrift",
        "15m",
        "warning",
        "{{ $value }} NADs drifted from their networks: new pods get other settings than the network has",
    ),
    (
        "audit/nad-incomplete",
        "NadmitNadIncomplete",
        "15m",
        "critical",
        "{{ $value }} NADs are incomplete: pods that use them hang in ContainerCreating",
    ),
    (
        "audit/stuck-deletion",
        "NadmitStuckDeletion",
        "30m",
        "warning",
        "{{ $value }} NADs or networks are stuck in deletion: a finalizer is not removed",
    ),
    (
        "audit/orphan",
        "NadmitOrphan",
        "1h",
        "info",
        "{{ $value }} NADs belong to networks that no longer exist: no controller updates them",
    ),
    (
        "audit/hot-object",
        "NadmitHotObject",
        "10m",
        "warning",
        "{{ $value }} objects are in a write loop: controllers undo each other's work",
    ),
    (
        "audit/operator-silent",
        "NadmitOperatorSilent",
        "10m",
        "critical",
        "The SR-IOV operator stopped reconciling: {{ $value }} networks wait for it. A restart usually helps",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::telemetry::metrics::{CacheSize, Metrics, Reload, ReviewLabels};

    /// The names of all series that a server may expose.
    fn shown() -> BTreeSet<String> {
        let metrics = Metrics::default();
        let review = ReviewLabels { endpoint: "m", kind: "n", operation: "c", decision: "allow", dry_run: "no" };
        metrics.answered(&review, 0.001);
        metrics.found("rule", "warn");
        metrics.unanswered("x");
        metrics.panicked("validate");
        metrics.refused("x");
        metrics.expires("serving", 1);
        metrics.certificate_reloaded(Reload::Taken);
        metrics.policy.reloaded(Reload::Taken);
        metrics.policy.applied("0");
        metrics.completions.count("failed");
        metrics.registered.set(None);
        metrics.tasks.set_up("audit", true);
        metrics.registered.configuration("k", true);
        metrics.registered.exempt_namespaces(1);
        metrics.audit.found([(("rule", "warn"), 1)]);
        metrics.audit.scanned(1.0, 0.1);
        metrics.audit.reports.count("created");
        metrics.caches.set_size("n", CacheSize::Known(1));
        metrics.caches.missed("n");
        metrics.caches.skipped("n");
        metrics.audit_events.batch("taken");
        metrics.audit_events.write("changed", Some("put"));
        metrics.audit_events.loops(Some(1));
        let text = metrics.text();
        let series = text.lines().filter(|line| !line.starts_with('#'));
        series.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
    }

    fn names(expression: &str) -> BTreeSet<String> {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words = expression.split(|character| !is_word(character));
        words.filter(|word| word.starts_with("nadmit_")).map(str::to_owned).collect()
    }

    /// Each metric in an alert or on the dashboard is one that the server exposes.
    #[test]
    fn alerts_and_dashboard_use_existing_metrics() {
        let shown = shown();
        let rules = rules();
        let groups = rules["groups"].as_array().unwrap().iter();
        let alerts = groups.flat_map(|group| group["rules"].as_array().unwrap());
        let mut expressions: Vec<String> = alerts.map(|alert| alert["expr"].as_str().unwrap().to_owned()).collect();
        expressions.extend(dashboard::queries());
        let mut seen = BTreeSet::new();
        for expression in &expressions {
            let names = names(expression);
            assert!(
                !names.is_empty() && names.is_subset(&shown),
                "{expression}: not all are metrics of ours: {shown:?}"
            );
            seen.extend(names);
        }
        // And conversely: the dashboard or an alert shows every metric.
        let is_part = |name: &&String| name.ends_with("_sum") || name.ends_with("_count");
        let unseen: Vec<_> = shown.difference(&seen).filter(|name| !is_part(name)).collect();
        assert!(unseen.is_empty(), "{unseen:?}");
    }

    #[test]
    fn every_metric_is_documented() {
        let page = include_str!("../../docs/metrics.md");
        for name in shown() {
            let parts = ["_bucket", "_sum", "_count"];
            let name = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
            assert!(page.contains(&format!("`{name}`")), "docs/metrics.md does not have {name}");
        }
    }
}
