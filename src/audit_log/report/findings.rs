//! Findings in an audit log: the object, the consequence, and the fix.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::audit_log::report::{Loop, WriterStats};
use crate::policy::{Action, Finding, Rule};

/// Declares a rule of audit-log. There is no manifest to show.
macro_rules! log_rule {
    ($name:ident = $id:literal, $default:ident; $wrong:literal; $why:literal; $fix:literal) => {
        #[doc = $wrong]
        pub static $name: Rule = Rule {
            id: $id,
            default: Action::$default,
            warns_in_cluster: false,
            repairs: false,
            wrong: $wrong,
            why: $why,
            fix: $fix,
            releases: "",
            bad: "",
            good: "",
        };
    };
}

log_rule! { BLIND = "audit-log/blind-status-write", Warn;
"A patch or an apply wrote a status without the resourceVersion that it was computed from.";
"The API server cannot compare such a write with what is stored, so it erases what others wrote since the writer read the object.";
"state the resourceVersion that was read: as metadata.resourceVersion in a merge patch or an apply (controller-runtime: \
client.MergeFromWithOptimisticLock), as a test of /metadata/resourceVersion in a JSON patch, or write with PUT; on 409 read \
again and compute anew" }
log_rule! { STALE = "audit-log/stale-write", Audit;
"Writes were rejected because the object had changed since it was read.";
"The API server compares the resourceVersion of a write with the stored one, and rejects a write that is too late.";
"a few are normal: the write was rejected, and the client reads again. Many mean that two writers share a status, \
or that one computes from a cache that lags: give each its own conditions, and read before each retry" }
log_rule! { UNCHANGED = "audit-log/unchanged-write", Audit;
"Writes changed nothing.";
"The API server stores nothing, but each such write still costs a request, admission and an audit event.";
"compare with what was read, and write only what differs" }
log_rule! { LOOP = "audit-log/write-loop", Warn;
"An object is written in a loop.";
"Every write sends a watch event to every client, and what a reader sees depends on the moment.";
"check who alternates: two writers that undo each other's work must agree on one owner of the field; a single one reacts \
to its own writes, and must compare before it writes" }

/// The rules of audit-log. They are not in [`crate::policy::rules::RULES`]: no policy decides on them.
pub static LOG_RULES: [&Rule; 4] = [&BLIND, &STALE, &UNCHANGED, &LOOP];

/// A finding in a log. Its action is `warn`, or `audit` if it may be legitimate.
#[derive(Clone, Debug)]
pub struct LogFinding {
    /// What it is about: a resource, or an object with its resource.
    pub subject: String,
    /// The finding, its consequence, and how to fix it.
    pub finding: Finding,
}

impl LogFinding {
    fn new(rule: &'static Rule, action: Action, subject: String, message: String, note: String) -> Self {
        Self { subject, finding: Finding::plain(rule, action, message, note) }
    }
}

impl Serialize for LogFinding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding { rule, action, message, note, help, .. } = &self.finding;
        let mut members = serializer.serialize_struct("LogFinding", 6)?;
        members.serialize_field("rule", rule.id)?;
        members.serialize_field("action", action)?;
        members.serialize_field("subject", &self.subject)?;
        members.serialize_field("message", message)?;
        members.serialize_field("note", note)?;
        members.serialize_field("help", help)?;
        members.end()
    }
}

/// All findings, by rule.
pub(super) fn of(writers: &[WriterStats], loops: &[Loop]) -> Vec<LogFinding> {
    let mut findings: Vec<_> = writers.iter().flat_map(of_writer).collect();
    findings.extend(loops.iter().map(of_loop));
    findings.sort_by_key(|found| LOG_RULES.iter().position(|rule| *rule == found.finding.rule));
    findings
}

fn of_writer(writer: &WriterStats) -> Vec<LogFinding> {
    let (agent, counts) = (&writer.agent, &writer.counts);
    let mut findings = Vec::new();
    let mut found = |rule, action, message, note: String| {
        findings.push(LogFinding::new(rule, action, writer.resource.clone(), message, note));
    };
    if counts.blind > 0 {
        // Without force the server rejects fields of other managers, so only the applier's own values are at stake.
        let action = if counts.blind > counts.blind_by.apply { Action::Warn } else { Action::Audit };
        let message = format!("`{agent}` overwrote {} {} without a precondition", writer.resource, times(counts.blind));
        let note = format!("values that others stored since it read are lost ({})", ways(writer));
        found(&BLIND, action, message, note);
    }
    if counts.stale > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` were stale and rejected",
            counts.stale, counts.writes, writer.resource
        );
        let note = "the object had changed since it was read, so nothing was stored";
        found(&STALE, Action::Audit, message, note.to_owned());
    }
    if counts.unchanged > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` changed nothing",
            counts.unchanged, counts.writes, writer.resource
        );
        let note = "each such write still costs a request, admission and an audit event";
        found(&UNCHANGED, Action::Audit, message, note.to_owned());
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
    LogFinding::new(&LOOP, Action::Warn, subject, message, note)
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
    let counted: Vec<_> =
        ways.iter().filter(|(count, _)| *count > 0).map(|(count, way)| format!("{way}: {count}")).collect();
    counted.join(", ")
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
