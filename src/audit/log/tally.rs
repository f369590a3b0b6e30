//! Who wrote what, and how: one row for each user agent and resource.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::event::{Event, ObjectRef};
use super::objects::Change;
use super::write::{Outcome, Proof, Way, Write};

/// How many user agents are told apart; a client could give another one with every request.
pub const MAX_AGENTS: usize = 500;
/// How many resources are told apart.
pub const MAX_RESOURCES: usize = 500;
/// How many rows there are, besides one of the others for each resource.
pub const MAX_ROWS: usize = 4000;
/// What stands for all that came too late to be told apart.
pub const OTHERS: &str = "(others)";
/// How many users are named in a row.
const MAX_USERS: usize = 3;
/// How much is kept of a user agent or a name.
pub(super) const MAX_NAME: usize = 256;

/// A user agent, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent(u32);

/// The rows.
#[derive(Debug)]
pub struct Tally {
    agents: Names,
    resources: Names,
    rows: HashMap<(Agent, u32), Row>,
    /// Where the name of a resource is put together.
    scratch: String,
}

/// What one user agent did to one resource.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// In whose name, the first few.
    pub users: Vec<String>,
    /// Whether there were more.
    pub has_more_users: bool,
    /// How often.
    pub counts: Counts,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Writes, whatever came of them.
    pub writes: u64,
    /// Status writes that were taken and proved nothing, for certain.
    pub blind: u64,
    /// The same by how they were sent.
    pub blind_by: BlindBy,
    /// Status writes of which the log does not have the body.
    pub blind_unknown: u64,
    /// Status writes that tested values, but not the version.
    pub values_only: u64,
    /// Refused, because the object had changed since it was read.
    pub stale: u64,
    /// Refused, because another manager owns a field, or the name was taken.
    pub conflicts: u64,
    /// Refused by an admission webhook.
    pub denied: u64,
    /// Refused for another reason.
    pub refused: u64,
    /// Taken, and nothing changed.
    pub unchanged: u64,
    /// Taken, and the log does not tell whether something changed.
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
            agents: Names::new(MAX_AGENTS),
            resources: Names::new(MAX_RESOURCES),
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

    /// Whether some user agents or resources are not told apart.
    pub fn has_others(&self) -> bool {
        self.agents.is_full || self.resources.is_full || self.rows.keys().any(|(agent, _)| agent.0 == 0)
    }

    /// Counts a write.
    pub fn count(&mut self, agent: Agent, event: &Event<'_>, write: &Write, change: Change) {
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
    pub fn rows(&self) -> BTreeMap<(&str, &str), &Row> {
        let name = |(agent, resource): &(Agent, u32)| (self.agents.name(agent.0), self.resources.name(*resource));
        self.rows.iter().map(|(key, row)| (name(key), row)).collect()
    }
}

impl Row {
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

    fn add(&mut self, write: &Write, change: Change) {
        self.writes += 1;
        self.blind_unknown += u64::from(write.may_be_blind());
        let is_taken = write.outcome == Outcome::Taken;
        self.values_only += u64::from(is_taken && write.is_status && write.proof == Proof::Values);
        if write.is_blind() {
            self.blind += 1;
            match write.way {
                Way::Put | Way::Create => self.blind_by.put += 1,
                Way::MergePatch | Way::Patch => self.blind_by.merge_patch += 1,
                Way::JsonPatch => self.blind_by.json_patch += 1,
                Way::Apply => self.blind_by.apply += 1,
                Way::ForcedApply => self.blind_by.forced_apply += 1,
            }
        }
        match write.outcome {
            Outcome::Taken => {}
            Outcome::Stale => self.stale += 1,
            Outcome::Conflict => self.conflicts += 1,
            Outcome::Denied => self.denied += 1,
            Outcome::Refused => self.refused += 1,
        }
        match change {
            Change::Nothing => self.unchanged += 1,
            Change::Unknown => self.unchanged_unknown += 1,
            Change::Something | Change::NotStored => {}
        }
    }
}

/// Names by number; number 0 stands for all that there is no room for.
#[derive(Debug)]
struct Names {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    limit: usize,
    is_full: bool,
}

impl Names {
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
    text.get(..text.floor_char_boundary(MAX_NAME)).unwrap_or(text)
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
