//! Any bytes as an audit log, plain or compressed: nothing panics, no count is larger than what was read, and every report is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::audit::event::read_list;
use nadmit::audit::lines::each_line;
use nadmit::audit::report::Report;
use nadmit::audit::{Scan, Scope};

fuzz_target!(|bytes: &[u8]| {
    let everything = || Scope::of_groups(vec!["*".to_owned()]);
    let mut scan = Scan::new(everything());
    let _ = each_line(bytes, |line| scan.line(line));
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = read_list(text, &everything(), |_| ());
    }
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
