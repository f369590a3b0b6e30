//! What Prometheus is told: where the metrics are, and what in them is worth waking somebody.

use serde_json::{Value, json};

use super::{NAME, Options, here, selector};

/// The ServiceMonitor and the alerts.
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
    vec![
        alert(
            "NadmitAbsent",
            "absent(nadmit_build_info)",
            "5m",
            "critical",
            "No nadmit is running: NADs with a device plugin cannot be written",
        ),
        alert(
            "NadmitUnanswered",
            "sum by (reason) (rate(nadmit_reviews_unanswered_total[5m])) > 0",
            "5m",
            "warning",
            "nadmit answers reviews with errors, and failurePolicy decides instead",
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
            "A certificate of nadmit expires within three days and was not renewed",
        ),
        alert(
            "NadmitPolicyRefused",
            "min(nadmit_policy_current) == 0",
            "5m",
            "warning",
            "The policy file is broken; the last good policy is in force",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::{Answered, Metrics, Reload};

    /// Each name in an alert is one that the server shows.
    #[test]
    fn alerts_are_about_real_metrics() {
        let metrics = Metrics::default();
        let review = Answered { endpoint: "m", kind: "n", operation: "c", decision: "allow", dry_run: "no" };
        metrics.answered(&review, 0.001);
        metrics.unanswered("x");
        metrics.expires("serving", 1);
        metrics.policy_reloaded(Reload::Taken);
        let text = metrics.text();
        let mut checked = 0;
        for alert in alerts() {
            let expression = alert["expr"].as_str().unwrap();
            let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
            for name in expression.split(|character| !is_word(character)).filter(|word| word.starts_with("nadmit_")) {
                let is_shown = text.lines().any(|line| line.split(['{', ' ']).next() == Some(name));
                assert!(is_shown, "{name} is no metric of ours:\n{text}");
                checked += 1;
            }
        }
        assert_eq!(checked, alerts().len());
    }
}
