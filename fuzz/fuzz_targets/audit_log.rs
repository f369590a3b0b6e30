//! Any bytes as an audit log, plain or compressed: nothing panics, no count is larger than what was read, and every report is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::audit_log::lines::each_line;
use nadmit::audit_log::report::Report;
use nadmit::audit_log::{LogScan, LogScope};

fuzz_target!(|bytes: &[u8]| {
    let mut scan = LogScan::new(LogScope::of_groups(vec!["*".to_owned()]));
    let _ = each_line(bytes, |line| scan.line(line));
    let report = Report::of(&scan, vec!["fuzz".to_owned()], 2);
    let totals = &report.totals;
    assert!(totals.writes + report.log.dry_runs + report.log.unreadable + report.log.too_long <= report.log.lines);
    assert!(totals.blind + totals.blind_unknown + totals.stale + totals.conflicts + totals.denied + totals.refused <= totals.writes);
    for text in [report.json(), report.sarif()] {
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    }
    assert!(!report.table().contains('\u{1b}'));
    assert!(report.html().ends_with("</html>\n"));
});
