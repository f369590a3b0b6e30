//! The report as a page.

use crate::audit_log::report::table::{counted, known};
use crate::audit_log::report::{LogFinding, Loop, Report, TimedWrite, WriterStats};
use crate::output::{Entry, EntryPart, Facet, Figure, HtmlList, HtmlPage, HtmlRow, ShownFinding};

impl Report {
    /// A self-contained page.
    pub fn html(&self) -> String {
        let figures = vec![
            Figure::plain("Writes", self.totals.writes.to_string()),
            Figure::plain("Blind", known(self.totals.blind, self.totals.blind_unknown)),
            Figure::plain("Stale", self.totals.stale.to_string()),
            Figure::plain("Conflicts", self.totals.conflicts.to_string()),
            Figure::plain("Changed nothing", known(self.totals.unchanged, self.totals.unchanged_unknown)),
            Figure::plain("Objects in a loop", self.loops.len().to_string()),
        ];
        let head = vec![
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
        ];
        let mut notes = vec![format!("Read: {}", self.log.sources.join(", "))];
        notes.extend(self.notes());
        HtmlPage {
            title: "nadmit audit-log",
            lead: match self.findings.len() {
                0 => "No findings".to_owned(),
                1 => "1 finding".to_owned(),
                number => format!("{number} findings"),
            },
            clear: "no blind, stale or ineffective writes, and no write loops".to_owned(),
            alerts: Vec::new(),
            figures,
            objects: None,
            charts: vec![Facet::Rule, Facet::Resource],
            filters: vec![Facet::Severity, Facet::Rule, Facet::Resource],
            lists: vec![
                HtmlList::Entries {
                    title: "Findings",
                    entries: self.findings.iter().enumerate().map(|(number, found)| finding(number, found)).collect(),
                },
                HtmlList::Entries { title: "Objects in a loop", entries: self.loops.iter().map(hot).collect() },
                HtmlList::Table { title: "Writers", head, texts: 3, rows: self.writers.iter().map(writer).collect() },
            ],
            notes,
        }
        .render()
    }
}

fn finding(number: usize, LogFinding { subject, finding }: &LogFinding) -> Entry {
    let shown = ShownFinding {
        action: finding.action,
        rule: finding.rule.id,
        pointer: String::new(),
        place: String::new(),
        message: finding.message.clone(),
        excerpt: None,
        notes: vec![finding.note.clone()],
        help: finding.help.clone(),
    };
    // The subject of a loop is its resource and the object.
    let resource = subject.split_once(' ').map_or(subject.as_str(), |(resource, _)| resource);
    Entry {
        id: format!("finding/{}", number + 1),
        name: finding.message.clone(),
        about: subject.clone(),
        labels: vec![(Facet::Resource, plain(resource).to_owned())],
        findings: vec![(finding.action, finding.rule)],
        parts: vec![EntryPart::Finding(Box::new(shown))],
        ..Entry::default()
    }
}

/// A resource without its subresource: the objects of a loop are of the same resource as the writes of their status.
fn plain(resource: &str) -> &str {
    resource.strip_suffix("/status").unwrap_or(resource)
}

fn writer(writer: &WriterStats) -> HtmlRow {
    let more = if writer.has_more_users { ", …" } else { "" };
    let who = [writer.agent.clone(), writer.resource.clone(), writer.users.join(", ") + more];
    HtmlRow {
        cells: who.into_iter().chain(counted(&writer.counts)).collect(),
        labels: vec![(Facet::Resource, plain(&writer.resource).to_owned())],
    }
}

fn hot(found: &Loop) -> Entry {
    let numbers = [
        (u64::from(found.per_minute), "per minute"),
        (found.writes, "writes"),
        (found.unchanged, "unchanged"),
        (found.refused, "rejected"),
        (found.turns, "turns"),
    ];
    let writers: Vec<_> = found.writers.iter().map(|writer| format!("{}: {}", writer.agent, writer.writes)).collect();
    let recent: Vec<_> = found.recent.iter().map(|write| format!("{}  {}", write.at, write.agent)).collect();
    let mut parts = vec![EntryPart::Text { title: "Writes by user agent", text: writers.join("\n") }];
    if let (Some(from), Some(to)) = (found.from, found.to) {
        parts.push(EntryPart::Text { title: "First and last write", text: format!("{from} to {to}") });
    }
    parts.push(EntryPart::Preformatted { title: "Last writes", text: recent.join("\n") });
    Entry {
        id: format!("loop/{}/{}", found.resource, found.object),
        name: found.object.clone(),
        about: found.resource.clone(),
        facts: numbers.map(|(number, what)| format!("{number} {what}")).into(),
        writes: marks(&found.recent),
        labels: vec![(Facet::Resource, plain(&found.resource).to_owned())],
        parts,
        ..Entry::default()
    }
}

/// The last writes, from the first of them to the last.
fn marks(recent: &[TimedWrite]) -> Vec<(f64, String)> {
    let at = |write: &TimedWrite| write.at.as_microsecond() as f64;
    let first = recent.first().map_or(0.0, at);
    let span = recent.last().map_or(0.0, at) - first;
    let mark = |write: &TimedWrite| {
        let place = if span > 0.0 { (at(write) - first) / span } else { 0.0 };
        (place, format!("{} {}", write.at, write.agent))
    };
    recent.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lie_between_the_first_write_and_the_last() {
        let places = |seconds: &[i64]| -> Vec<f64> {
            let write =
                |second: &i64| TimedWrite { at: jiff::Timestamp::from_second(*second).unwrap(), agent: "a".to_owned() };
            marks(&seconds.iter().map(write).collect::<Vec<_>>()).into_iter().map(|(place, _)| place).collect()
        };
        assert_eq!(places(&[5]), [0.0]);
        assert_eq!(places(&[5, 6, 9]), [0.0, 0.25, 1.0]);
        assert!(places(&[]).is_empty());
    }
}
