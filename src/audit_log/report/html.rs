//! The report as a page.

use crate::audit_log::report::table::{counted, known};
use crate::audit_log::report::{LogFinding, Loop, Report, TimedWrite, WriterStats};
use crate::output::{Block, Cell, HtmlPage, HtmlRow, HtmlTable};

impl Report {
    /// A self-contained page.
    pub fn html(&self) -> String {
        let figures = vec![
            (self.totals.writes.to_string(), "writes"),
            (known(self.totals.blind, self.totals.blind_unknown), "blind"),
            (self.totals.stale.to_string(), "stale"),
            (self.totals.conflicts.to_string(), "conflicts"),
            (known(self.totals.unchanged, self.totals.unchanged_unknown), "changed nothing"),
            (self.loops.len().to_string(), "objects in a loop"),
        ];
        let tables = vec![
            HtmlTable {
                title: "Findings",
                head: vec!["Rule", "Action", "About", "What"],
                rows: self.findings.iter().map(finding).collect(),
                filter: 0,
                texts: 4,
            },
            HtmlTable {
                title: "Writers",
                head: vec![
                    "User agent",
                    "Resource",
                    "Users",
                    "Writes",
                    "Blind",
                    "Stale",
                    "Conflict",
                    "Denied",
                    "Rejected",
                    "Unchanged",
                ],
                rows: self.writers.iter().map(writer).collect(),
                filter: 1,
                texts: 3,
            },
            HtmlTable {
                title: "Objects in a loop",
                head: vec![
                    "Object",
                    "Resource",
                    "Last writes",
                    "Per minute",
                    "Writes",
                    "Unchanged",
                    "Rejected",
                    "Turns",
                ],
                rows: self.loops.iter().map(hot).collect(),
                filter: 1,
                texts: 3,
            },
        ];
        let mut notes = vec![format!("Read: {}", self.log.sources.join(", "))];
        notes.extend(self.notes());
        HtmlPage { title: "nadmit audit-log", figures, tables, notes }.render()
    }
}

fn finding(LogFinding { subject, finding }: &LogFinding) -> HtmlRow {
    let cells = [finding.rule.id, finding.action.name(), subject, &finding.message];
    let cells = cells.map(|text| Cell::from(text.to_owned()));
    let details = vec![Block::text("Note", &finding.note), Block::text("How to fix it", &finding.help)];
    HtmlRow { cells: cells.into(), details }
}

fn writer(writer: &WriterStats) -> HtmlRow {
    let more = if writer.has_more_users { ", …" } else { "" };
    let who = [writer.agent.clone(), writer.resource.clone(), writer.users.join(", ") + more];
    who.into_iter().chain(counted(&writer.counts)).collect::<Vec<_>>().into()
}

fn hot(found: &Loop) -> HtmlRow {
    let texts = [found.object.clone(), found.resource.clone()].map(Cell::from);
    let numbers = [u64::from(found.per_minute), found.writes, found.unchanged, found.refused, found.turns];
    let numbers = numbers.map(|number| Cell::from(number.to_string()));
    let writers: Vec<_> = found.writers.iter().map(|writer| format!("{}: {}", writer.agent, writer.writes)).collect();
    let recent: Vec<_> = found.recent.iter().map(|write| format!("{}  {}", write.at, write.agent)).collect();
    let mut details = vec![Block::text("Writes by user agent", &writers.join("\n"))];
    if let (Some(from), Some(to)) = (found.from, found.to) {
        details.push(Block::text("First and last write", &format!("{from} to {to}")));
    }
    details.push(Block::preformatted("Last writes", &recent.join("\n")));
    HtmlRow { cells: texts.into_iter().chain([strip(&found.recent)]).chain(numbers).collect(), details }
}

/// The last writes, from the first of them to the last.
fn strip(recent: &[TimedWrite]) -> Cell {
    let at = |write: &TimedWrite| write.at.as_microsecond() as f64;
    let first = recent.first().map_or(0.0, at);
    let span = recent.last().map_or(0.0, at) - first;
    let mark = |write: &TimedWrite| {
        let place = if span > 0.0 { (at(write) - first) / span } else { 0.0 };
        (place, format!("{} {}", write.at, write.agent))
    };
    Cell::Strip(recent.iter().map(mark).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lie_between_the_first_write_and_the_last() {
        let marks = |seconds: &[i64]| -> Vec<f64> {
            let write =
                |second: &i64| TimedWrite { at: jiff::Timestamp::from_second(*second).unwrap(), agent: "a".to_owned() };
            let Cell::Strip(marks) = strip(&seconds.iter().map(write).collect::<Vec<_>>()) else { panic!("a strip") };
            marks.into_iter().map(|(place, _)| place).collect()
        };
        assert_eq!(marks(&[5]), [0.0]);
        assert_eq!(marks(&[5, 6, 9]), [0.0, 0.25, 1.0]);
        assert!(marks(&[]).is_empty());
    }
}
