//! The report of a log as values, rendered by the formats. Equal logs give equal reports.

mod findings;
mod html;
mod sarif;
mod table;

use jiff::Timestamp;
use serde::Serialize;

pub use findings::{BLIND, LOG_RULES, LOOP, LogFinding, STALE, UNCHANGED};

use crate::audit_log::LogScan;
use crate::audit_log::objects::ObjectWrites;
use crate::audit_log::tally::Counts;

/// The report. Its content and order are a contract: keys are added, never renamed or removed while `version` stays the same.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    version: u32,
    /// What was read.
    pub log: LogSummary,
    /// All writers together.
    pub totals: Counts,
    /// Who wrote what, by user agent and resource.
    pub writers: Vec<WriterStats>,
    /// Objects in a write loop, most frequent first.
    pub loops: Vec<Loop>,
    /// The findings.
    pub findings: Vec<LogFinding>,
}

/// What was read, and its limits.
#[derive(Clone, Debug, Serialize)]
pub struct LogSummary {
    /// The files, or `-`.
    pub sources: Vec<String>,
    /// Non-empty lines.
    pub lines: u64,
    /// Lines that are no events.
    pub unreadable: u64,
    /// Lines that are longer than an event may be.
    pub too_long: u64,
    /// Files whose last line was still being written.
    pub torn: u64,
    /// Dry runs, which are not counted as writes.
    pub dry_runs: u64,
    /// The first write that was counted.
    pub from: Option<Timestamp>,
    /// The last.
    pub to: Option<Timestamp>,
    /// Whether there were more user agents or resources than are distinguished; the rest is under `(others)`.
    pub has_others: bool,
    /// The maximum error of loop counts; 0 unless there were more objects than are tracked.
    pub objects_missed: u64,
}

/// What one user agent did to one resource.
#[derive(Clone, Debug, Serialize)]
pub struct WriterStats {
    /// The user agent, as it calls itself.
    pub agent: String,
    /// The resource, with its group, and `/status`.
    pub resource: String,
    /// In whose name, the first few.
    pub users: Vec<String>,
    /// Whether there were more.
    pub has_more_users: bool,
    /// How often.
    #[serde(flatten)]
    pub counts: Counts,
}

/// An object that was written again and again.
#[derive(Clone, Debug, Serialize)]
pub struct Loop {
    /// The resource, with its group.
    pub resource: String,
    /// The object, with its namespace.
    pub object: String,
    /// The most writes within a minute.
    pub per_minute: u32,
    /// All writes.
    pub writes: u64,
    /// Writes that certainly changed nothing.
    pub unchanged: u64,
    /// Rejected writes.
    pub refused: u64,
    /// How often the writer alternated.
    pub turns: u64,
    /// The writers, most frequent first.
    pub writers: Vec<LoopWriterStats>,
    /// The first write.
    pub from: Option<Timestamp>,
    /// The last.
    pub to: Option<Timestamp>,
    /// The last few writes, the oldest first.
    pub recent: Vec<TimedWrite>,
}

/// One write of an object.
#[derive(Clone, Debug, Serialize)]
pub struct TimedWrite {
    /// When it came.
    pub at: Timestamp,
    /// The user agent.
    pub agent: String,
}

/// One of those who write an object.
#[derive(Clone, Debug, Serialize)]
pub struct LoopWriterStats {
    /// The user agent.
    pub agent: String,
    /// How often it wrote.
    pub writes: u64,
}

impl Report {
    /// The report of a scan. An object that was written `loop_rate` times within a minute is in a loop.
    pub fn of(scan: &LogScan, sources: Vec<String>, loop_rate: u32) -> Self {
        Self::within(scan, sources, loop_rate, usize::MAX)
    }

    /// The same with a limited number of loops, the fastest first.
    pub fn within(scan: &LogScan, sources: Vec<String>, loop_rate: u32, max_loops: usize) -> Self {
        let mut totals = Counts::default();
        let mut writers = Vec::new();
        for ((agent, resource), row) in scan.tally.rows() {
            totals.sum(&row.counts);
            writers.push(WriterStats {
                agent: agent.to_owned(),
                resource: resource.to_owned(),
                users: row.users.clone(),
                has_more_users: row.has_more_users,
                counts: row.counts,
            });
        }
        let loops = loops(scan, loop_rate, max_loops);
        let findings = findings::of(&writers, &loops);
        Self { version: 1, log: LogSummary::of(scan, sources), totals, writers, loops, findings }
    }

    /// One JSON document on one line.
    pub fn json(&self) -> String {
        crate::json::write::to_json(self) + "\n"
    }
}

impl LogSummary {
    fn of(scan: &LogScan, sources: Vec<String>) -> Self {
        Self {
            sources,
            lines: scan.lines,
            unreadable: scan.unreadable,
            too_long: scan.too_long,
            torn: scan.torn,
            dry_runs: scan.dry_runs,
            from: scan.time.and_then(|(from, _)| timestamp(from)),
            to: scan.time.and_then(|(_, to)| timestamp(to)),
            has_others: scan.tally.has_others(),
            objects_missed: scan.objects.missed,
        }
    }
}

fn loops(scan: &LogScan, loop_rate: u32, max_loops: usize) -> Vec<Loop> {
    let mut loops = Vec::new();
    for (name, object) in scan.objects.loops(loop_rate).into_iter().take(max_loops) {
        let (resource, name) = name.split_once(' ').unwrap_or(("", name));
        let mut writers: Vec<_> = object
            .writers
            .iter()
            .map(|(agent, writes)| LoopWriterStats { agent: scan.tally.agent_name(*agent).to_owned(), writes: *writes })
            .collect();
        writers.sort_by(|a, b| b.writes.cmp(&a.writes).then_with(|| a.agent.cmp(&b.agent)));
        loops.push(Loop {
            resource: resource.to_owned(),
            object: name.to_owned(),
            per_minute: object.peak(),
            writes: object.writes,
            unchanged: object.unchanged,
            refused: object.refused,
            turns: object.turns,
            writers,
            from: timestamp(object.time.0),
            to: timestamp(object.time.1),
            recent: recent(scan, object),
        });
    }
    loops
}

fn recent(scan: &LogScan, object: &ObjectWrites) -> Vec<TimedWrite> {
    let name = |agent| scan.tally.agent_name(agent).to_owned();
    let writes = object.recent().into_iter();
    writes.filter_map(|(at, agent)| Some(TimedWrite { at: timestamp(at)?, agent: name(agent) })).collect()
}

fn timestamp(microseconds: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(microseconds).ok().filter(|timestamp| timestamp.as_microsecond() != 0)
}

#[cfg(test)]
mod tests;
