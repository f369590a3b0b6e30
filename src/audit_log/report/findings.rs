//! Findings in an audit log: the object, the consequence, and the fix.

use serde::Serialize;

use crate::audit_log::report::{Loop, WriterStats};
use crate::policy::Action;

/// The rules of audit-log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogRule {
    /// A status was overwritten without a precondition.
    Blind,
    /// Stale writes were rejected.
    Stale,
    /// Writes changed nothing.
    Unchanged,
    /// An object is in a write loop.
    Loop,
}

impl LogRule {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Blind, Self::Stale, Self::Unchanged, Self::Loop];

    /// The stable name.
    pub fn id(self) -> &'static str {
        match self {
            Self::Blind => "audit-log/blind-status-write",
            Self::Stale => "audit-log/stale-write",
            Self::Unchanged => "audit-log/unchanged-write",
            Self::Loop => "audit-log/write-loop",
        }
    }

    /// What it reports, in one sentence.
    pub fn finds(self) -> &'static str {
        match self {
            Self::Blind => {
                "a status that was overwritten by a patch or an apply without the resourceVersion it was computed from"
            }
            Self::Stale => "writes that were rejected because the object had changed since it was read",
            Self::Unchanged => "writes that changed nothing",
            Self::Loop => "an object in a write loop",
        }
    }

    /// How to fix it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Blind => {
                "state the resourceVersion that was read: as metadata.resourceVersion in a merge patch or an apply (controller-runtime: \
                 client.MergeFromWithOptimisticLock), as a test of /metadata/resourceVersion in a JSON patch, or write with PUT; on 409 read \
                 again and compute anew"
            }
            Self::Stale => {
                "a few are normal: the write was rejected, and the client reads again. Many mean that two writers share a status, \
                 or that one computes from a cache that lags: give each its own conditions, and read before each retry"
            }
            Self::Unchanged => "compare with what was read, and write only what differs",
            Self::Loop => {
                "check who alternates: two writers that undo each other's work must agree on one owner of the field; a single one reacts \
                 to its own writes, and must compare before it writes"
            }
        }
    }
}

impl Serialize for LogRule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
pub struct LogFinding {
    /// What it is.
    pub rule: LogRule,
    /// `warn`, or `audit` if it may be legitimate.
    #[serde(serialize_with = "name")]
    pub action: Action,
    /// What it is about: a resource, or an object with its resource.
    pub subject: String,
    /// The headline.
    pub message: String,
    /// The details and the consequence.
    pub note: String,
    /// How to fix it.
    pub help: &'static str,
}

fn name<S: serde::Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(action.name())
}

/// All findings, by rule.
pub(super) fn of(writers: &[WriterStats], loops: &[Loop]) -> Vec<LogFinding> {
    let mut findings: Vec<_> = writers.iter().flat_map(of_writer).collect();
    findings.extend(loops.iter().map(of_loop));
    findings.sort_by_key(|finding| finding.rule);
    findings
}

fn of_writer(writer: &WriterStats) -> Vec<LogFinding> {
    let (agent, counts) = (&writer.agent, &writer.counts);
    let mut findings = Vec::new();
    let mut found = |rule: LogRule, action, message, note: String| {
        let subject = writer.resource.clone();
        findings.push(LogFinding { rule, action, subject, message, note, help: rule.help() });
    };
    if counts.blind > 0 {
        // Without force the server rejects fields of other managers, so only the applier's own values are at stake.
        let action = if counts.blind > counts.blind_by.apply { Action::Warn } else { Action::Audit };
        let message = format!("`{agent}` overwrote {} {} without a precondition", writer.resource, times(counts.blind));
        let note = format!("values that others stored since it read are lost ({})", ways(writer));
        found(LogRule::Blind, action, message, note);
    }
    if counts.stale > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` were stale and rejected",
            counts.stale, counts.writes, writer.resource
        );
        let note = "the object had changed since it was read, so nothing was stored";
        found(LogRule::Stale, Action::Audit, message, note.to_owned());
    }
    if counts.unchanged > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` changed nothing",
            counts.unchanged, counts.writes, writer.resource
        );
        let note = "each such write still costs a request, admission and an audit event";
        found(LogRule::Unchanged, Action::Audit, message, note.to_owned());
    }
    findings
}

fn of_loop(found: &Loop) -> LogFinding {
    let writers: Vec<_> =
        found.writers.iter().map(|writer| format!("`{}` {}", writer.agent, times(writer.writes))).collect();
    let subject = format!("{} {}", found.resource, found.object);
    let message = format!("{subject} was written {} within a minute", times(u64::from(found.per_minute)));
    let note = format!(
        "each write sends a watch event to every client; it was written {} in all ({}), and the writer alternated {}",
        times(found.writes),
        writers.join(", "),
        times(found.turns),
    );
    LogFinding { rule: LogRule::Loop, action: Action::Warn, subject, message, note, help: LogRule::Loop.help() }
}

/// The ways of the blind writes, those that there were.
fn ways(writer: &WriterStats) -> String {
    let by = writer.counts.blind_by;
    let ways = [
        (by.put, "PUT"),
        (by.merge_patch, "merge patch"),
        (by.json_patch, "JSON patch"),
        (by.apply, "apply"),
        (by.forced_apply, "apply with force"),
    ];
    let said: Vec<_> =
        ways.iter().filter(|(count, _)| *count > 0).map(|(count, way)| format!("{way}: {count}")).collect();
    said.join(", ")
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
