//! What somebody should look at: the object, what happens because of it, and the cure.

use serde::Serialize;

use super::{Loop, Writer};
use crate::policy::Action;

/// What can be found in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A status was overwritten without a look at what was there.
    Blind,
    /// Writes came too late and were refused.
    Stale,
    /// Writes changed nothing.
    Unchanged,
    /// An object is written again and again.
    Loop,
}

impl Kind {
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

    /// What it finds, in a sentence.
    pub fn finds(self) -> &'static str {
        match self {
            Self::Blind => {
                "a status that was overwritten by a patch or an apply without the resourceVersion it was computed from"
            }
            Self::Stale => "writes that were refused because the object had changed since it was read",
            Self::Unchanged => "writes that changed nothing",
            Self::Loop => "an object that is written again and again",
        }
    }

    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Blind => {
                "state the resourceVersion that was read: as metadata.resourceVersion in a merge patch or an apply (controller-runtime: \
                 client.MergeFromWithOptimisticLock), as a test of /metadata/resourceVersion in a JSON patch, or write with PUT; on 409 read \
                 again and compute anew"
            }
            Self::Stale => {
                "a few are how it should be: the write was refused, and the client reads again. Many mean that two writers share a status, \
                 or that one computes from a cache that lags: give each its own conditions, and read before each retry"
            }
            Self::Unchanged => {
                "compare with what was read before writing: each such write still costs a request, admission and an audit event"
            }
            Self::Loop => {
                "look at who takes turns: two writers that undo each other's work must agree on one owner of the field; a single one reacts \
                 to its own writes, and must compare before it writes"
            }
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// Something that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is.
    pub rule: Kind,
    /// `warn`, or `audit` where it may well be in order.
    #[serde(serialize_with = "name")]
    pub action: Action,
    /// What it is about: a resource, or an object with its resource.
    pub subject: String,
    /// What was found and what it leads to.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

fn name<S: serde::Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(action.name())
}

/// All there is to find, by kind.
pub(super) fn of(writers: &[Writer], loops: &[Loop]) -> Vec<Finding> {
    let mut findings: Vec<_> = writers.iter().flat_map(of_writer).collect();
    findings.extend(loops.iter().map(of_loop));
    findings.sort_by_key(|finding| finding.rule);
    findings
}

fn of_writer(writer: &Writer) -> Vec<Finding> {
    let (agent, counts) = (&writer.agent, &writer.counts);
    let mut findings = Vec::new();
    let mut found = |rule: Kind, action, message| {
        findings.push(Finding { rule, action, subject: writer.resource.clone(), message, help: rule.help() });
    };
    if counts.blind > 0 {
        // Without force the server refuses what another manager owns, so that only the applier's own values are at stake.
        let action = if counts.blind > counts.blind_by.apply { Action::Warn } else { Action::Audit };
        let message = format!(
            "`{agent}` overwrote {} {} without having looked ({}); what others stored since it read is lost without a trace",
            writer.resource,
            times(counts.blind),
            ways(writer)
        );
        found(Kind::Blind, action, message);
    }
    if counts.stale > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` came too late and were refused",
            counts.stale, counts.writes, writer.resource
        );
        found(Kind::Stale, Action::Audit, message);
    }
    if counts.unchanged > 0 {
        let message = format!(
            "{} of {} writes of {} by `{agent}` changed nothing",
            counts.unchanged, counts.writes, writer.resource
        );
        found(Kind::Unchanged, Action::Audit, message);
    }
    findings
}

fn of_loop(found: &Loop) -> Finding {
    let writers: Vec<_> =
        found.writers.iter().map(|writer| format!("`{}` {}", writer.agent, times(writer.writes))).collect();
    let subject = format!("{} {}", found.resource, found.object);
    let message = format!(
        "{subject} was written {} within a minute, {} in all ({}), and changed hands {}; everybody who watches it is woken each time",
        times(u64::from(found.per_minute)),
        times(found.writes),
        writers.join(", "),
        times(found.turns),
    );
    Finding { rule: Kind::Loop, action: Action::Warn, subject, message, help: Kind::Loop.help() }
}

/// The ways of the blind writes, those that there were.
fn ways(writer: &Writer) -> String {
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
