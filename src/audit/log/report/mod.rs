//! What came of a log, as values; the formats make text of it. Equal logs give equal reports.

mod findings;
mod html;
mod sarif;
mod table;

use jiff::Timestamp;
use serde::Serialize;

pub use findings::{Finding, Kind};

use super::Scan;
use super::objects::Object;
use super::tally::Counts;

/// The report. What it holds and in which order is a promise: keys are added, never renamed or taken away while `version` stays the same.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    version: u32,
    /// What was read.
    pub log: Log,
    /// All writers together.
    pub totals: Counts,
    /// Who wrote what, by user agent and resource.
    pub writers: Vec<Writer>,
    /// Objects that were written again and again, the most often written first.
    pub loops: Vec<Loop>,
    /// What somebody should look at.
    pub findings: Vec<Finding>,
}

/// What was read, and how far it can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// The files, or `-`.
    pub sources: Vec<String>,
    /// Lines that hold something.
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
    /// Whether there were more user agents or resources than are told apart; the rest is under `(others)`.
    pub has_others: bool,
    /// How much too low the counts of a loop may be; 0 unless there were more objects than are kept.
    pub objects_missed: u64,
}

/// What one user agent did to one resource.
#[derive(Clone, Debug, Serialize)]
pub struct Writer {
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
    /// Writes, whatever came of them.
    pub writes: u64,
    /// Those that changed nothing, for certain.
    pub unchanged: u64,
    /// Those that were refused.
    pub refused: u64,
    /// How often another one wrote than the time before.
    pub turns: u64,
    /// Who wrote, the most diligent first.
    pub writers: Vec<LoopWriter>,
    /// The first write.
    pub from: Option<Timestamp>,
    /// The last.
    pub to: Option<Timestamp>,
    /// The last few writes, the oldest first.
    pub recent: Vec<Moment>,
}

/// One write of an object.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// When it came.
    pub at: Timestamp,
    /// The user agent.
    pub agent: String,
}

/// One of those who write an object.
#[derive(Clone, Debug, Serialize)]
pub struct LoopWriter {
    /// The user agent.
    pub agent: String,
    /// How often it wrote.
    pub writes: u64,
}

impl Report {
    /// What came of it. An object that was written `loop_rate` times within a minute is in a loop.
    pub fn of(scan: &Scan, sources: Vec<String>, loop_rate: u32) -> Self {
        Self::within(scan, sources, loop_rate, usize::MAX)
    }

    /// The same with no more than so many loops, the fastest.
    pub fn within(scan: &Scan, sources: Vec<String>, loop_rate: u32, max_loops: usize) -> Self {
        let mut totals = Counts::default();
        let mut writers = Vec::new();
        for ((agent, resource), row) in scan.tally.rows() {
            totals.sum(&row.counts);
            writers.push(Writer {
                agent: agent.to_owned(),
                resource: resource.to_owned(),
                users: row.users.clone(),
                has_more_users: row.has_more_users,
                counts: row.counts,
            });
        }
        let loops = loops(scan, loop_rate, max_loops);
        let findings = findings::of(&writers, &loops);
        Self { version: 1, log: Log::of(scan, sources), totals, writers, loops, findings }
    }

    /// One JSON document on one line.
    pub fn json(&self) -> String {
        crate::output::to_json(self) + "\n"
    }
}

impl Log {
    fn of(scan: &Scan, sources: Vec<String>) -> Self {
        Self {
            sources,
            lines: scan.lines,
            unreadable: scan.unreadable,
            too_long: scan.too_long,
            torn: scan.torn,
            dry_runs: scan.dry_runs,
            from: scan.time.and_then(|(from, _)| moment(from)),
            to: scan.time.and_then(|(_, to)| moment(to)),
            has_others: scan.tally.has_others(),
            objects_missed: scan.objects.missed,
        }
    }
}

fn loops(scan: &Scan, loop_rate: u32, max_loops: usize) -> Vec<Loop> {
    let mut loops = Vec::new();
    for (name, object) in scan.objects.loops(loop_rate).into_iter().take(max_loops) {
        let (resource, name) = name.split_once(' ').unwrap_or(("", name));
        let mut writers: Vec<_> = object
            .writers
            .iter()
            .map(|(agent, writes)| LoopWriter { agent: scan.tally.agent_name(*agent).to_owned(), writes: *writes })
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
            from: moment(object.time.0),
            to: moment(object.time.1),
            recent: recent(scan, object),
        });
    }
    loops
}

fn recent(scan: &Scan, object: &Object) -> Vec<Moment> {
    let name = |agent| scan.tally.agent_name(agent).to_owned();
    let writes = object.recent().into_iter();
    writes.filter_map(|(at, agent)| Some(Moment { at: moment(at)?, agent: name(agent) })).collect()
}

fn moment(microseconds: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(microseconds).ok().filter(|moment| moment.as_microsecond() != 0)
}
