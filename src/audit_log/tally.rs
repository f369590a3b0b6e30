//! Counts per user agent and resource.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::audit_log::event::{AuditEvent, ObjectRef};
use crate::audit_log::objects::WriteEffect;
use crate::audit_log::write::{ClassifiedWrite, Proof, WriteMethod, WriteOutcome};

/// How many user agents are distinguished; a client could send a new one with every request.
pub const MAX_AGENTS: usize = 500;
/// How many resources are distinguished.
pub const MAX_RESOURCES: usize = 500;
/// How many rows there are, besides one of the others for each resource.
pub const MAX_ROWS: usize = 4000;
/// The name for everything beyond the limits.
pub const OTHERS: &str = "(others)";
/// How many users are named in a row.
pub(super) const MAX_USERS: usize = 3;
/// The maximum length of a user agent or name.
pub(super) const MAX_NAME: usize = 256;

/// A user agent, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent(u32);

/// The rows.
#[derive(Debug)]
pub struct Tally {
    agents: NameTable,
    resources: NameTable,
    rows: HashMap<(Agent, u32), WriterRow>,
    /// Where the name of a resource is put together.
    scratch: String,
}

/// What one user agent did to one resource.
#[derive(Clone, Debug, Default)]
pub struct WriterRow {
    /// The first few users.
    pub users: Vec<String>,
    /// Whether there were more.
    pub has_more_users: bool,
    /// How often.
    pub counts: Counts,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All writes.
    pub writes: u64,
    /// Accepted status writes that were certainly blind.
    pub blind: u64,
    /// The same by how they were sent.
    pub blind_by: BlindBy,
    /// Status writes of which the log does not have the body.
    pub blind_unknown: u64,
    /// Status writes that tested values, but not the version.
    pub values_only: u64,
    /// Rejected as stale.
    pub stale: u64,
    /// Rejected, because another manager owns a field, or the name is taken.
    pub conflicts: u64,
    /// Denied by an admission webhook.
    pub denied: u64,
    /// Rejected for another reason.
    pub refused: u64,
    /// Accepted without a change.
    pub unchanged: u64,
    /// Accepted; whether something changed is unknown.
    pub unchanged_unknown: u64,
}

/// Blind writes by how they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "see Way")]
pub struct BlindBy {
    pub put: u64,
    pub merge_patch: u64,
    pub json_patch: u64,
    pub apply: u64,
    pub forced_apply: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            agents: NameTable::new(MAX_AGENTS),
            resources: NameTable::new(MAX_RESOURCES),
            rows: HashMap::new(),
            scratch: String::new(),
        }
    }
}

impl Tally {
    /// The number of a user agent.
    pub fn agent(&mut self, name: &str) -> Agent {
        Agent(self.agents.number(name))
    }

    /// The name of a user agent.
    pub fn agent_name(&self, agent: Agent) -> &str {
        self.agents.name(agent.0)
    }

    /// Whether a limit was exceeded.
    pub fn has_others(&self) -> bool {
        self.agents.is_full || self.resources.is_full || self.rows.keys().any(|(agent, _)| agent.0 == 0)
    }

    /// Counts a write.
    pub fn count(&mut self, agent: Agent, event: &AuditEvent<'_>, write: &ClassifiedWrite, change: WriteEffect) {
        self.scratch.clear();
        push_resource(&mut self.scratch, &event.object);
        let resource = self.resources.number(&self.scratch);
        let key = (agent, resource);
        let is_known = self.rows.len() < MAX_ROWS || self.rows.contains_key(&key);
        let row = self.rows.entry(if is_known { key } else { (Agent(0), resource) }).or_default();
        row.counts.add(write, change);
        row.user(&event.user);
    }

    /// The rows by agent and resource, in their order.
    pub fn rows(&self) -> BTreeMap<(&str, &str), &WriterRow> {
        let name = |(agent, resource): &(Agent, u32)| (self.agents.name(agent.0), self.resources.name(*resource));
        self.rows.iter().map(|(key, row)| (name(key), row)).collect()
    }
}

impl WriterRow {
    fn user(&mut self, user: &str) {
        let user = shortened(user);
        if self.users.iter().any(|known| known == user) {
            return;
        }
        match self.users.len() < MAX_USERS {
            true => self.users.push(user.to_owned()),
            false => self.has_more_users = true,
        }
    }
}

impl Counts {
    /// Adds what another one counted.
    pub(super) fn sum(&mut self, other: &Self) {
        self.writes += other.writes;
        self.blind += other.blind;
        self.blind_by.put += other.blind_by.put;
        self.blind_by.merge_patch += other.blind_by.merge_patch;
        self.blind_by.json_patch += other.blind_by.json_patch;
        self.blind_by.apply += other.blind_by.apply;
        self.blind_by.forced_apply += other.blind_by.forced_apply;
        self.blind_unknown += other.blind_unknown;
        self.values_only += other.values_only;
        self.stale += other.stale;
        self.conflicts += other.conflicts;
        self.denied += other.denied;
        self.refused += other.refused;
        self.unchanged += other.unchanged;
        self.unchanged_unknown += other.unchanged_unknown;
    }

    fn add(&mut self, write: &ClassifiedWrite, change: WriteEffect) {
        self.writes += 1;
        self.blind_unknown += u64::from(write.may_be_blind());
        let is_taken = write.outcome == WriteOutcome::Taken;
        self.values_only += u64::from(is_taken && write.is_status && write.proof == Proof::Values);
        if write.is_blind() {
            self.blind += 1;
            match write.way {
                WriteMethod::Put | WriteMethod::Create => self.blind_by.put += 1,
                WriteMethod::MergePatch | WriteMethod::Patch => self.blind_by.merge_patch += 1,
                WriteMethod::JsonPatch => self.blind_by.json_patch += 1,
                WriteMethod::Apply => self.blind_by.apply += 1,
                WriteMethod::ForcedApply => self.blind_by.forced_apply += 1,
            }
        }
        match write.outcome {
            WriteOutcome::Taken => {}
            WriteOutcome::Stale => self.stale += 1,
            WriteOutcome::Conflict => self.conflicts += 1,
            WriteOutcome::Denied => self.denied += 1,
            WriteOutcome::Refused => self.refused += 1,
        }
        match change {
            WriteEffect::Nothing => self.unchanged += 1,
            WriteEffect::Unknown => self.unchanged_unknown += 1,
            WriteEffect::Something | WriteEffect::NotStored => {}
        }
    }
}

/// Interned names; number 0 stands for everything beyond the limit.
#[derive(Debug)]
struct NameTable {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    limit: usize,
    is_full: bool,
}

impl NameTable {
    fn new(limit: usize) -> Self {
        Self { numbers: HashMap::new(), names: vec![OTHERS.into()], limit, is_full: false }
    }

    fn number(&mut self, name: &str) -> u32 {
        let name = shortened(name);
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() > self.limit {
            self.is_full = true;
            return 0;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or(OTHERS, AsRef::as_ref)
    }
}

/// The first of a text, whole characters.
pub(super) fn shortened(text: &str) -> &str {
    crate::visible::at_most(text, MAX_NAME)
}

/// `sriovnetworks.sriovnetwork.openshift.io/status`
pub(super) fn push_resource(out: &mut String, object: &ObjectRef<'_>) {
    out.push_str(&object.resource);
    if !object.group.is_empty() {
        out.push('.');
        out.push_str(&object.group);
    }
    if !object.subresource.is_empty() {
        out.push('/');
        out.push_str(&object.subresource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(writes: &[(WriteMethod, Proof, WriteOutcome, WriteEffect)]) -> Counts {
        let mut counts = Counts::default();
        for (way, proof, outcome, change) in writes {
            let write = ClassifiedWrite { way: *way, proof: *proof, outcome: *outcome, is_status: true };
            counts.add(&write, *change);
        }
        let mut twice = counts;
        twice.sum(&counts);
        let json = |counts| serde_json::to_value(counts).unwrap();
        assert_eq!(doubled(&json(counts)), json(twice), "a sum adds every counter");
        counts
    }

    fn doubled(counts: &serde_json::Value) -> serde_json::Value {
        match counts {
            serde_json::Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), doubled(value))).collect()
            }
            number => (number.as_u64().unwrap() * 2).into(),
        }
    }

    #[test]
    fn each_write_is_counted_under_its_class() {
        use WriteEffect::{NotStored, Nothing, Something, Unknown};
        use WriteMethod::{Apply, Create, ForcedApply, JsonPatch, MergePatch, Patch, Put};
        use WriteOutcome::{Conflict, Denied, Refused, Stale, Taken};
        let accepted = counted(&[
            (Put, Proof::Nothing, Taken, Something),
            (Create, Proof::Nothing, Taken, Something),
            (MergePatch, Proof::Nothing, Taken, Nothing),
            (Patch, Proof::Nothing, Taken, Nothing),
            (MergePatch, Proof::Nothing, Taken, Nothing),
            (JsonPatch, Proof::Nothing, Taken, Unknown),
            (Apply, Proof::Nothing, Taken, Unknown),
            (Apply, Proof::Nothing, Taken, Something),
            (ForcedApply, Proof::Nothing, Taken, Something),
            (Put, Proof::Unknown, Taken, Something),
            (JsonPatch, Proof::Values, Taken, Something),
            (Put, Proof::Version, Taken, Something),
        ]);
        let blind_by = BlindBy { put: 2, merge_patch: 3, json_patch: 1, apply: 2, forced_apply: 1 };
        let want = Counts {
            writes: 12,
            blind: 9,
            blind_by,
            blind_unknown: 1,
            values_only: 1,
            unchanged: 3,
            unchanged_unknown: 2,
            ..Counts::default()
        };
        assert_eq!(accepted, want);
        let others = counted(&[
            (Put, Proof::Version, Stale, NotStored),
            (Put, Proof::Version, Stale, NotStored),
            (Put, Proof::Version, Conflict, NotStored),
            (JsonPatch, Proof::Values, Denied, NotStored),
            (Put, Proof::Unknown, Denied, NotStored),
            (Put, Proof::Nothing, Denied, NotStored),
            (Put, Proof::Nothing, Refused, NotStored),
        ]);
        let want = Counts { writes: 7, stale: 2, conflicts: 1, denied: 3, refused: 1, ..Counts::default() };
        assert_eq!(others, want);
    }

    #[test]
    fn resources_are_named_as_kubectl_names_them() {
        for (group, resource, subresource, want) in [
            ("", "pods", "", "pods"),
            ("", "pods", "status", "pods/status"),
            ("apps", "deployments", "", "deployments.apps"),
            ("apps", "deployments", "scale", "deployments.apps/scale"),
        ] {
            let object = ObjectRef {
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                ..ObjectRef::default()
            };
            let mut name = String::new();
            push_resource(&mut name, &object);
            assert_eq!(name, want);
        }
    }

    #[test]
    fn names_beyond_the_limit_are_one() {
        let mut table = NameTable::new(2);
        assert_eq!(["a", "b", "a"].map(|name| table.number(name)), [1, 2, 1]);
        assert!(!table.is_full);
        assert_eq!(["c", "b"].map(|name| table.number(name)), [0, 2]);
        assert!(table.is_full);
        assert_eq!([0, 1, 2, 9].map(|number| table.name(number)), [OTHERS, "a", "b", OTHERS]);
    }

    #[test]
    fn any_exceeded_limit_is_reported() {
        let mut tally = Tally::default();
        assert!(!tally.has_others());
        for number in 0..=MAX_AGENTS {
            tally.agent(&number.to_string());
        }
        assert!(tally.has_others());
        let mut tally = Tally::default();
        tally.rows.insert((Agent(1), 0), WriterRow::default());
        assert!(!tally.has_others());
        tally.rows.insert((Agent(0), 1), WriterRow::default());
        assert!(tally.has_others());
        let mut tally = Tally::default();
        tally.resources.is_full = true;
        assert!(tally.has_others());
    }

    #[test]
    fn every_count_is_summed_up() {
        let one = Counts {
            writes: 1,
            blind: 2,
            blind_by: BlindBy { put: 3, merge_patch: 4, json_patch: 5, apply: 6, forced_apply: 7 },
            blind_unknown: 8,
            values_only: 9,
            stale: 10,
            conflicts: 11,
            denied: 12,
            refused: 13,
            unchanged: 14,
            unchanged_unknown: 15,
        };
        let mut sum = Counts::default();
        sum.sum(&one);
        assert_eq!(sum, one);
    }
}
