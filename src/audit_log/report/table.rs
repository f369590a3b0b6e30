//! The report for people: two tables, and what to do about them.

use std::fmt::Write as _;

use crate::audit_log::report::{LogSummary, Loop, Report, WriterStats};
use crate::audit_log::tally::Counts;
use crate::output::{aligned, severity};
use crate::policy::Action;
use crate::visible;

/// How much is shown of a user agent.
const AGENT_WIDTH: usize = 48;
/// How many loops are shown; the other formats have all of them.
const MAX_LOOPS: usize = 50;

impl Report {
    /// Tables, and what was found.
    pub fn table(&self) -> String {
        let mut out = String::new();
        if self.writers.is_empty() {
            out += "no writes\n";
        } else {
            let head =
                ["USER AGENT", "RESOURCE", "WRITES", "BLIND", "STALE", "CONFLICT", "DENIED", "REJECTED", "UNCHANGED"];
            let rows: Vec<_> = self.writers.iter().map(writer).collect();
            out += &aligned(&head, &rows);
        }
        if !self.loops.is_empty() {
            let head = ["OBJECT IN A LOOP", "PER MINUTE", "WRITES", "UNCHANGED", "NOT STORED", "TURNS", "WRITERS"];
            let rows: Vec<_> = self.loops.iter().take(MAX_LOOPS).map(hot).collect();
            out += "\n";
            out += &aligned(&head, &rows);
            if self.loops.len() > MAX_LOOPS {
                let _ = writeln!(out, "… and {} more", self.loops.len() - MAX_LOOPS);
            }
        }
        let mut last = None;
        let findings = self.findings.iter().map(|found| &found.finding);
        for finding in findings.filter(|finding| finding.action == Action::Warn) {
            let (rule, severity) = (finding.rule, severity(finding.action));
            let _ = write!(out, "\n{severity}[{}]: {}\n", rule.id, plain(&finding.message));
            let _ = writeln!(out, "   = note: {}", plain(&finding.note));
            if last != Some(rule) {
                let _ = writeln!(out, "   = help: {}", finding.help);
            }
            last = Some(rule);
        }
        out += "\n";
        for line in self.notes() {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// Notes on what was read, and its limits.
    pub(super) fn notes(&self) -> Vec<String> {
        let LogSummary { lines, unreadable, too_long, torn, dry_runs, has_others, objects_missed, .. } = self.log;
        let mut notes = vec![format!("{} of {lines} lines are counted writes", self.totals.writes)];
        if let (Some(from), Some(to)) = (self.log.from, self.log.to) {
            notes.push(format!("from {from} to {to}"));
        }
        let mut note = |count: u64, words: &str| {
            if count > 0 {
                notes.push(format!("{count} {words}"));
            }
        };
        note(
            self.totals.blind_unknown,
            "status writes may have been blind: the log lacks their bodies (level Request is needed)",
        );
        note(
            self.totals.unchanged_unknown,
            "writes may have changed nothing: the log lacks their answers (level RequestResponse is needed), or the write before",
        );
        note(self.totals.values_only, "status writes tested a value, but not the version");
        note(dry_runs, "dry runs are left out");
        note(unreadable, "lines are not events");
        note(too_long, "lines are too long");
        note(torn, "files end in the middle of a line");
        note(objects_missed, "is the maximum error of loop counts: there are more objects than are tracked");
        if has_others {
            notes.push("there are more user agents or resources than are distinguished: see (others)".to_owned());
        }
        notes
    }
}

fn writer(writer: &WriterStats) -> Vec<String> {
    [cut(&writer.agent), plain(&writer.resource)].into_iter().chain(counted(&writer.counts)).collect()
}

/// The columns of a writer's counts, in every table.
pub(super) fn counted(counts: &Counts) -> [String; 7] {
    [
        counts.writes.to_string(),
        known(counts.blind, counts.blind_unknown),
        counts.stale.to_string(),
        counts.conflicts.to_string(),
        counts.denied.to_string(),
        counts.refused.to_string(),
        known(counts.unchanged, counts.unchanged_unknown),
    ]
}

fn hot(found: &Loop) -> Vec<String> {
    let writers: Vec<_> =
        found.writers.iter().map(|writer| format!("{} ({})", cut(&writer.agent), writer.writes)).collect();
    vec![
        plain(&format!("{} {}", found.resource, found.object)),
        found.per_minute.to_string(),
        found.writes.to_string(),
        found.unchanged.to_string(),
        found.refused.to_string(),
        found.turns.to_string(),
        writers.join(", "),
    ]
}

/// A count, and a question mark where there may be more.
pub(super) fn known(count: u64, unknown: u64) -> String {
    match (count, unknown) {
        (0, 1..) => "?".to_owned(),
        (_, 0) => count.to_string(),
        (_, 1..) => format!("{count}+?"),
    }
}

/// The text with the characters escaped that a terminal would interpret.
fn plain(text: &str) -> String {
    visible::line(text).into_owned()
}

fn cut(text: &str) -> String {
    visible::truncated(visible::line(text), AGENT_WIDTH)
}
