//! The report as a page.

use super::table::{counted, known};
use super::{Finding, Loop, Report, Writer};
use crate::output::{Page, Table};

impl Report {
    /// One page that needs nothing else.
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
            Table {
                title: "Findings",
                head: vec!["Rule", "Action", "About", "What", "Help"],
                rows: self.findings.iter().map(finding).collect(),
                filter: 0,
                texts: 5,
            },
            Table {
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
                    "Refused",
                    "Unchanged",
                ],
                rows: self.writers.iter().map(writer).collect(),
                filter: 1,
                texts: 3,
            },
            Table {
                title: "Objects in a loop",
                head: vec![
                    "Resource",
                    "Object",
                    "Writers",
                    "From",
                    "To",
                    "Per minute",
                    "Writes",
                    "Unchanged",
                    "Refused",
                    "Turns",
                ],
                rows: self.loops.iter().map(hot).collect(),
                filter: 0,
                texts: 5,
            },
        ];
        let mut notes = vec![format!("Read: {}", self.log.sources.join(", "))];
        notes.extend(self.notes());
        Page { title: "nadmit audit-log", figures, tables, notes }.render()
    }
}

fn finding(finding: &Finding) -> Vec<String> {
    let rule = finding.rule.id().to_owned();
    vec![
        rule,
        finding.action.name().to_owned(),
        finding.subject.clone(),
        finding.message.clone(),
        finding.help.to_owned(),
    ]
}

fn writer(writer: &Writer) -> Vec<String> {
    let more = if writer.has_more_users { ", …" } else { "" };
    let who = [writer.agent.clone(), writer.resource.clone(), writer.users.join(", ") + more];
    who.into_iter().chain(counted(&writer.counts)).collect()
}

fn hot(found: &Loop) -> Vec<String> {
    let writers: Vec<_> = found.writers.iter().map(|writer| format!("{} ({})", writer.agent, writer.writes)).collect();
    let moment = |moment: Option<jiff::Timestamp>| moment.map(|moment| moment.to_string()).unwrap_or_default();
    vec![
        found.resource.clone(),
        found.object.clone(),
        writers.join(", "),
        moment(found.from),
        moment(found.to),
        found.per_minute.to_string(),
        found.writes.to_string(),
        found.unchanged.to_string(),
        found.refused.to_string(),
        found.turns.to_string(),
    ]
}
