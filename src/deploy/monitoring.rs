//! What Prometheus is told: where the metrics are, and what in them is worth waking somebody. And what Grafana shows of them.

use serde_json::{Value, json};

use super::{NAME, Options, dashboard, here, selector};

/// The ServiceMonitor, the alerts and the dashboard.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": here(options, NAME),
            "spec": { "selector": { "matchLabels": selector() }, "endpoints": [{ "port": "metrics", "interval": "30s" }] },
        }),
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": here(options, NAME),
            "spec": { "groups": [{ "name": NAME, "rules": alerts() }] },
        }),
        dashboard::object(options),
    ]
}

fn alerts() -> Vec<Value> {
    let alert = |name: &str, expression: &str, lasting: &str, severity: &str, summary: &str| {
        json!({
            "alert": name,
            "expr": expression,
            "for": lasting,
            "labels": { "severity": severity },
            "annotations": { "summary": summary },
        })
    };
    [
        alert(
            "NadmitAbsent",
            "absent(nadmit_build_info)",
            "5m",
            "critical",
            "No nadmit is running: NADs with a device plugin cannot be written",
        ),
        alert(
            "NadmitNotRegistered",
            "min(nadmit_registered) == 0",
            "5m",
            "critical",
            "The API server does not ask nadmit as it should: broken networks are stored as they come. The log says why",
        ),
        alert(
            "NadmitConfigurationDeleted",
            "min by (kind) (nadmit_webhook_configurations) == 0",
            "1m",
            "critical",
            "Somebody has deleted the {{ $labels.kind }} of nadmit, and it is not restored by itself: apply nadmit's manifests again",
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
            "nadmit answers reviews with errors ({{ $labels.reason }}), and failurePolicy decides instead",
        ),
        alert(
            "NadmitUnexpectedCallers",
            "sum by (reason) (rate(nadmit_reviews_unanswered_total{reason=~\"unknown_.*\"}[5m])) > 0",
            "5m",
            "warning",
            "Somebody other than the API server sends reviews to nadmit ({{ $labels.reason }}), or the API server calls a path that nadmit did not register",
        ),
        alert(
            "NadmitPanics",
            "sum by (endpoint) (increase(nadmit_review_panics_total[15m])) > 0",
            "0m",
            "critical",
            "A defect of nadmit: judging a write panicked, and the write was denied. The log says where, and which object it was",
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
            "A certificate of nadmit expires within three days and was not renewed; after that no review is answered",
        ),
        alert(
            "NadmitPolicyRefused",
            "min(nadmit_policy_current) == 0",
            "5m",
            "warning",
            "The policy file is broken; the last good policy is in force",
        ),
        alert(
            "NadmitCacheUnknown",
            "min by (kind) (nadmit_cache_ready) == 0",
            "15m",
            "warning",
            "Nothing is known of the cluster's {{ $labels.kind }} objects: warnings that need them are missing",
        ),
        alert(
            "NadmitTaskDown",
            // A task that keeps ending is up for moments in between.
            "min by (task) (min_over_time(nadmit_task_up[15m])) == 0",
            "1m",
            "warning",
            "The background task {{ $labels.task }} ended unexpectedly and is restarted. Reviews are answered; the log says why it ended",
        ),
        alert(
            "NadmitTaskPanics",
            "sum by (task) (increase(nadmit_task_panics_total[30m])) > 0",
            "1m",
            "warning",
            "The background task {{ $labels.task }} panicked; an object that caused it is skipped. The log names it",
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
            // The leader alone has it; while none leads nobody does.
            "time() - max(nadmit_audit_last_scan_timestamp_seconds) > 3600",
            "15m",
            "warning",
            "Nobody has looked at all NADs and networks for an hour: reports and the alerts that rest on them are old",
        ),
        alert(
            "NadmitReportsFail",
            "sum(increase(nadmit_audit_report_writes_total{result=\"failed\"}[30m])) > 0",
            "30m",
            "warning",
            "Reports of what is wrong with NADs and networks cannot be written. The log says why",
        ),
        alert(
            "NadmitAuditEventsRefused",
            "sum by (result) (rate(nadmit_audit_batches_total{result!=\"taken\"}[15m])) > 0",
            "15m",
            "warning",
            "Audit events are not taken ({{ $labels.result }}): what is told of status writes and loops is incomplete",
        ),
    ]
    .into_iter()
    .chain(AUDITED.map(|(rule, name, lasting, severity, summary)| {
        let expression = format!("sum(max by (action) (nadmit_audit_findings{{rule=\"{rule}\"}})) > 0");
        alert(name, &expression, lasting, severity, summary)
    }))
    .collect()
}

/// What the audit finds in the cluster and somebody should know of: the rule, the name of the alert, how long it lasts before
/// it is told, how bad it is, and what it means. The reports say which objects it is about.
const AUDITED: [(&str, &str, &str, &str, &str); 7] = [
    (
        "audit/nad-absent",
        "NadmitNadAbsent",
        "10m",
        "critical",
        "{{ $value }} networks have no NAD: pods that ask for them do not start",
    ),
    (
        "audit/nad-drift",
        "NadmitNadDrift",
        "15m",
        "warning",
        "{{ $value }} NADs are not what their networks render: new pods get something else than the network says",
    ),
    (
        "audit/nad-incomplete",
        "NadmitNadIncomplete",
        "15m",
        "critical",
        "{{ $value }} NADs are stored without what pods need of them: pods that use them hang in ContainerCreating",
    ),
    (
        "audit/stuck-deletion",
        "NadmitStuckDeletion",
        "30m",
        "warning",
        "{{ $value }} NADs or networks wait to be deleted, and whoever holds a finalizer on them does not let go",
    ),
    (
        "audit/orphan",
        "NadmitOrphan",
        "1h",
        "info",
        "{{ $value }} NADs belong to networks that are gone: nobody keeps them up to date",
    ),
    (
        "audit/hot-object",
        "NadmitHotObject",
        "10m",
        "warning",
        "{{ $value }} objects are written again and again: two controllers undo each other's work",
    ),
    (
        "audit/operator-silent",
        "NadmitOperatorSilent",
        "10m",
        "critical",
        "The SR-IOV operator runs and does nothing: {{ $value }} networks wait for it. Restarting it usually helps",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::telemetry::metrics::{Answered, CacheState, Metrics, Reload};

    /// The names of all series that a server may show.
    fn shown() -> BTreeSet<String> {
        let metrics = Metrics::default();
        let review = Answered { endpoint: "m", kind: "n", operation: "c", decision: "allow", dry_run: "no" };
        metrics.answered(&review, 0.001);
        metrics.found("rule", "warn");
        metrics.unanswered("x");
        metrics.panicked("validate");
        metrics.refused("x");
        metrics.expires("serving", 1);
        metrics.certificate_reloaded(Reload::Taken);
        metrics.policy_reloaded(Reload::Taken);
        metrics.completions.count("failed");
        metrics.registered.is(true);
        metrics.tasks.is_up("audit", true);
        metrics.registered.configuration("k", true);
        metrics.registered.exempt_namespaces(1);
        metrics.audit.found([(("rule", "warn"), 1)]);
        metrics.audit.scanned(1.0, 0.1);
        metrics.audit.reports.count("created");
        metrics.caches.is("n", CacheState::Known(1));
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

    /// Each name in an alert and on the dashboard is one that the server shows.
    #[test]
    fn alerts_and_dashboard_are_about_real_metrics() {
        let shown = shown();
        let alerts = alerts();
        let mut expressions: Vec<String> =
            alerts.iter().map(|alert| alert["expr"].as_str().unwrap().to_owned()).collect();
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
        // And the other way round: whatever is counted can be seen.
        let is_part = |name: &&String| name.ends_with("_sum") || name.ends_with("_count");
        let unseen: Vec<_> = shown.difference(&seen).filter(|name| !is_part(name)).collect();
        assert!(unseen.is_empty(), "{unseen:?}");
    }

    #[test]
    fn the_readme_has_every_metric() {
        let readme = include_str!("../../README.md");
        for name in shown() {
            let parts = ["_bucket", "_sum", "_count"];
            let name = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
            assert!(readme.contains(&format!("`{name}`")), "README.md does not have {name}");
        }
    }
}
