use super::*;

#[test]
fn only_the_leader_exposes_audit_metrics() {
    let metrics = Metrics::default();
    let shown = || {
        let text = metrics.text();
        let lines = text.lines().filter(|line| line.starts_with("nadmit_audit_"));
        lines.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(shown().is_empty(), "{:?}", shown());
    metrics.audit.found([(("a", "warn"), 2), (("b", "deny"), 1)]);
    metrics.audit.scanned(1_700_000_000.0, 0.5);
    metrics.audit.found([(("a", "warn"), 3)]);
    let want = [
        "nadmit_audit_findings{rule=\"a\",action=\"warn\"} 3",
        "nadmit_audit_last_scan_timestamp_seconds 1700000000.0",
        "nadmit_audit_scan_duration_seconds 0.5",
    ];
    assert_eq!(shown(), want.map(str::to_owned).into());
    metrics.audit.clear();
    assert!(shown().is_empty(), "{:?}", shown());
}
