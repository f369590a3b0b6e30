//! State of each object: its last version, to recognise writes that changed nothing, and how often it is written.
//!
//! The number of objects is bounded. Beyond it, each new object decrements all counters and objects at zero are dropped
//! (Misra–Gries): frequently written objects stay, and their count is at most [`Objects::missed`] too low.

use std::collections::HashMap;

use crate::audit_log::event::{AuditEvent, ObjectRef};
use crate::audit_log::tally::{Agent, shortened};
use crate::audit_log::write::{ClassifiedWrite, Proof, WriteOutcome};

/// How many objects are kept.
pub const MAX_OBJECTS: usize = 16_384;
/// How many writers of an object are distinguished.
const MAX_WRITERS: usize = 4;
/// How many of its last writes are kept.
const MAX_RECENT: usize = 24;
/// A minute is counted in steps of ten seconds: writes in six of them came within a minute.
const STEP: i64 = 10_000_000;
const STEPS: usize = 6;

/// Whether a write changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// It did.
    Something,
    /// It did not, for certain.
    Nothing,
    /// Unknown.
    Unknown,
    /// The write was rejected.
    NotStored,
}

/// The objects.
#[derive(Clone, Debug)]
pub struct Objects {
    known: HashMap<Box<str>, ObjectWrites>,
    limit: usize,
    /// How often an object did not fit: the maximum error of a count.
    pub missed: u64,
    /// Buffer for building names.
    scratch: String,
}

/// The state of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectWrites {
    weight: u64,
    version: Option<Box<str>>,
    completed: i64,
    window: Window,
    /// All writes.
    pub writes: u64,
    /// Writes that certainly changed nothing.
    pub unchanged: u64,
    /// Rejected writes.
    pub refused: u64,
    /// How often the writer alternated.
    pub turns: u64,
    last_writer: Option<Agent>,
    /// Who wrote, and how often; the first few.
    pub writers: Vec<(Agent, u64)>,
    /// When the first and the last write came.
    pub time: (i64, i64),
    /// The last few writes, in no order: when, and by whom.
    recent: Vec<(i64, Agent)>,
}

impl Default for Objects {
    fn default() -> Self {
        Self { known: HashMap::new(), limit: MAX_OBJECTS, missed: 0, scratch: String::new() }
    }
}

impl Objects {
    /// With a limit.
    pub fn limited(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Resets the counts and keeps the versions, which recognise writes that change nothing. If memory is scarce, objects not
    /// written since the last reset are dropped.
    pub fn reset_counts(&mut self) {
        self.missed = 0;
        if self.known.len() > self.limit / 2 {
            self.known.retain(|_, object| object.weight > 0);
        }
        for object in self.known.values_mut() {
            let (version, completed) = (object.version.take(), object.completed);
            *object = ObjectWrites { version, completed, ..ObjectWrites::default() };
        }
    }

    /// Records a write; returns whether it changed anything.
    pub fn count(&mut self, event: &AuditEvent<'_>, write: &ClassifiedWrite, writer: Agent) -> WriteEffect {
        // A create may leave the name to the server.
        if event.object.name.is_empty() {
            return ObjectWrites::default().change(event, write);
        }
        self.scratch.clear();
        push_name(&mut self.scratch, &event.object);
        if !self.known.contains_key(self.scratch.as_str()) {
            if self.known.len() >= self.limit {
                self.evict();
            }
            if self.known.len() < self.limit {
                self.known.insert(self.scratch.as_str().into(), ObjectWrites::default());
            }
        }
        match self.known.get_mut(self.scratch.as_str()) {
            Some(object) => object.count(event, write, writer),
            None => ObjectWrites::default().change(event, write),
        }
    }

    /// The newest version that is known of an object, unless it is newer than that.
    pub fn version(&mut self, object: &ObjectRef<'_>, time: i64) -> Option<&str> {
        self.scratch.clear();
        push_name(&mut self.scratch, object);
        let object = self.known.get(self.scratch.as_str())?;
        object.version.as_deref().filter(|_| object.completed <= time)
    }

    fn evict(&mut self) {
        // Objects not written since the last reset are dropped first.
        let before = self.known.len();
        self.known.retain(|_, object| object.weight > 0);
        if self.known.len() < before {
            return;
        }
        self.missed += 1;
        self.known.retain(|_, object| {
            object.weight = object.weight.saturating_sub(1);
            object.weight > 0
        });
    }

    /// Objects written at least this often within a minute, most frequent first.
    pub fn loops(&self, at_least: u32) -> Vec<(&str, &ObjectWrites)> {
        let mut loops: Vec<_> = self.known.iter().filter(|(_, object)| object.peak() >= at_least).collect();
        loops.sort_by(|(a, one), (b, other)| other.peak().cmp(&one.peak()).then(a.cmp(b)));
        loops.into_iter().map(|(name, object)| (name.as_ref(), object)).collect()
    }
}

impl ObjectWrites {
    /// The most writes within a minute.
    pub fn peak(&self) -> u32 {
        self.window.peak
    }

    fn count(&mut self, event: &AuditEvent<'_>, write: &ClassifiedWrite, writer: Agent) -> WriteEffect {
        let change = self.change(event, write);
        self.record_version(event);
        if self.writes == 0 {
            self.time = (event.received, event.received);
        }
        self.time = (self.time.0.min(event.received), self.time.1.max(event.received));
        self.note(event.received, writer);
        self.weight += 1;
        self.writes += 1;
        self.unchanged += u64::from(change == WriteEffect::Nothing);
        self.refused += u64::from(change == WriteEffect::NotStored);
        self.turns += u64::from(self.last_writer.is_some_and(|last| last != writer));
        self.last_writer = Some(writer);
        self.window.add(event.received.div_euclid(STEP));
        let has_capacity = self.writers.len() < MAX_WRITERS;
        match self.writers.iter_mut().find(|(known, _)| *known == writer) {
            Some((_, writes)) => *writes += 1,
            None if has_capacity => self.writers.push((writer, 1)),
            None => {}
        }
        change
    }

    /// The last few writes, the oldest first.
    pub fn recent(&self) -> Vec<(i64, Agent)> {
        let mut recent = self.recent.clone();
        recent.sort();
        recent
    }

    fn note(&mut self, time: i64, writer: Agent) {
        match self.recent.get_mut((self.writes % MAX_RECENT as u64) as usize) {
            Some(oldest) => *oldest = (time, writer),
            None => self.recent.push((time, writer)),
        }
    }

    /// Whether the write changed anything, by the version in its answer.
    fn change(&self, event: &AuditEvent<'_>, write: &ClassifiedWrite) -> WriteEffect {
        if write.outcome != WriteOutcome::Taken {
            return WriteEffect::NotStored;
        }
        if write.proof == Proof::NotNeeded {
            return WriteEffect::Something;
        }
        let Some(stored) = event.stored.as_deref() else { return WriteEffect::Unknown };
        if let Some(stated) = event.stated() {
            return if stated == stored { WriteEffect::Nothing } else { WriteEffect::Something };
        }
        match self.version.as_deref() {
            None => WriteEffect::Unknown,
            // Events of two servers may arrive out of order.
            Some(known) if number(known) > number(stored) => WriteEffect::Unknown,
            Some(known) if known != stored => WriteEffect::Something,
            // Concurrent writes: it is unknown which one created this version.
            Some(_) if self.completed > event.received => WriteEffect::Unknown,
            Some(_) => WriteEffect::Nothing,
        }
    }

    /// Keeps the newest version: answers may be logged in another order than they were made.
    fn record_version(&mut self, event: &AuditEvent<'_>) {
        let Some(stored) = event.stored.as_deref() else { return };
        let is_older = self.version.as_deref().is_some_and(|known| number(known) > number(stored));
        if !is_older {
            if self.version.as_deref() != Some(stored) {
                self.version = Some(shortened(stored).into());
            }
            self.completed = self.completed.max(event.completed);
        }
    }
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// How many writes came within the last minute.
#[derive(Clone, Debug, Default)]
struct Window {
    step: i64,
    counts: [u32; STEPS],
    peak: u32,
}

impl Window {
    fn add(&mut self, step: i64) {
        let age = self.step - step;
        match usize::try_from(age) {
            Ok(age) if age < STEPS => {
                if let Some(count) = self.counts.get_mut(age) {
                    *count += 1;
                }
            }
            // Newer, or from another log that begins earlier.
            _ => {
                let moved = usize::try_from(-age).unwrap_or(STEPS).min(STEPS);
                self.counts.rotate_right(moved % STEPS);
                self.counts.iter_mut().take(moved).for_each(|count| *count = 0);
                self.step = step;
                if let Some(newest) = self.counts.first_mut() {
                    *newest = 1;
                }
            }
        }
        self.peak = self.peak.max(self.counts.iter().sum());
    }
}

/// `sriovnetworks.sriovnetwork.openshift.io apps/net`: the object with all that is below it.
fn push_name(out: &mut String, object: &ObjectRef<'_>) {
    out.push_str(shortened(&object.resource));
    if !object.group.is_empty() {
        out.push('.');
        out.push_str(shortened(&object.group));
    }
    out.push(' ');
    if !object.namespace.is_empty() {
        out.push_str(shortened(&object.namespace));
        out.push('/');
    }
    out.push_str(shortened(&object.name));
}

#[cfg(test)]
mod tests;
