//! Merges the logs of several API servers by time, which order-dependent checks need.
//!
//! One server writes its log nearly in the order of its responses. One event per server is held, and the earliest is processed;
//! memory does not depend on the length of the logs. An event borrows from the buffer of its log, which itertools' `kmerge` cannot express.

use crate::audit_log::LogScan;
use crate::audit_log::event::AuditEvent;
use crate::audit_log::lines::Line;

/// The log of one server, line by line, all its files one after the other.
pub trait LogSource {
    /// Hands the next line over; false if there is none.
    fn next(&mut self, each: &mut dyn FnMut(Line<'_>)) -> bool;
}

/// Reads the logs to their ends.
pub fn merge(logs: &mut [impl LogSource], scan: &mut LogScan) {
    // A single log is in order and needs no merging.
    if let [log] = logs {
        while log.next(&mut |line| scan.line(line)) {}
        return;
    }
    let mut heads: Vec<_> =
        logs.iter_mut().map(|log| NextEvent { event: next(log, scan), log, time: i64::MIN }).collect();
    heads.iter_mut().for_each(NextEvent::advance);
    while let Some(head) = heads.iter_mut().filter(|head| head.event.is_some()).min_by_key(|head| head.time) {
        if let Some(event) = head.event.take() {
            scan.event(&event);
        }
        head.event = next(head.log, scan);
        head.advance();
    }
}

/// The event of a log that comes next.
struct NextEvent<'l, L> {
    log: &'l mut L,
    event: Option<AuditEvent<'static>>,
    /// The completion time, never before that of the previous event: a log is not re-sorted.
    time: i64,
}

impl<L> NextEvent<'_, L> {
    fn advance(&mut self) {
        if let Some(event) = &self.event {
            self.time = self.time.max(event.completed);
        }
    }
}

fn next(log: &mut impl LogSource, scan: &mut LogScan) -> Option<AuditEvent<'static>> {
    let mut found = None;
    while found.is_none() && log.next(&mut |line| found = scan.read(line).map(AuditEvent::into_owned)) {}
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit_log::LogScope;
    use crate::audit_log::report::Report;

    struct FixtureLog(std::vec::IntoIter<String>);

    impl LogSource for FixtureLog {
        fn next(&mut self, each: &mut dyn FnMut(Line<'_>)) -> bool {
            self.0.next().map(|line| each(Line::Whole(line.as_bytes()))).is_some()
        }
    }

    fn event(second: u32, version: u32) -> String {
        serde_json::json!({
            "stage": "ResponseComplete", "verb": "patch", "userAgent": "a", "responseStatus": {"code": 200},
            "objectRef": {"resource": "sriovnetworks", "name": "n", "apiGroup": "sriovnetwork.openshift.io", "subresource": "status"},
            "requestObject": {"status": {}}, "responseObject": {"metadata": {"resourceVersion": version.to_string()}},
            "requestReceivedTimestamp": format!("2026-11-16T20:{:02}:{:02}.000000Z", second / 60, second % 60),
            "stageTimestamp": format!("2026-11-16T20:{:02}:{:02}.001000Z", second / 60, second % 60),
        })
        .to_string()
    }

    fn report(logs: Vec<Vec<String>>) -> String {
        let mut logs: Vec<_> = logs.into_iter().map(|lines| FixtureLog(lines.into_iter())).collect();
        let mut scan = LogScan::new(LogScope::default());
        merge(&mut logs, &mut scan);
        Report::of(&scan, Vec::new(), 10).json()
    }

    /// However the lines are distributed over servers, the report is that of a single log.
    #[test]
    fn merging_servers_gives_the_same_report_as_one_log() {
        let lines: Vec<_> = (0..200).map(|second| event(second * 2, second / 3)).collect();
        let want = report(vec![lines.clone()]);
        assert!(want.contains("\"unchanged\":133"), "{want}");
        for servers in [2_usize, 3, 7] {
            let mut logs = vec![Vec::new(); servers + 1];
            for (number, line) in lines.iter().enumerate() {
                // Not alternating: one server writes a few, and then another one.
                logs[(number * number / 5) % servers].push(line.clone());
            }
            // The last log is empty.
            logs[servers].push("{}".to_owned());
            let found = report(logs).replace("\"lines\":201", "\"lines\":200");
            assert_eq!(found, want, "{servers} servers");
        }
    }

    /// A line that is late in its log does not delay the others, and a damaged line is skipped.
    #[test]
    fn merge_tolerates_out_of_order_and_damaged_lines() {
        let late = vec![event(50, 5), event(10, 1), "damaged".to_owned(), event(60, 6)];
        let other: Vec<_> = (0..4).map(|number| event(20 + number * 10, 2 + number)).collect();
        let report = report(vec![late, other]);
        assert!(report.contains("\"writes\":7") && report.contains("\"unreadable\":1"), "{report}");
    }
}
