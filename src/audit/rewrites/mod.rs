//! Detects write loops from watch events: which objects, by whom, and which fields flip.
//!
//! An idle object costs a few numbers. Its text is kept only after a few writes within the window, and then only the last two
//! versions: with the next one they show a field that flipped back (A, B, A). Memory is bounded by the limits below.

mod change;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use self::change::{ObjectVersion, VersionDiff};
use crate::policy::Rewrites;
use crate::resources::ObjectKey;

/// How many objects are tracked; beyond it the least recently written one is dropped.
pub const MAX_OBJECTS: usize = 4096;
/// Of how many objects texts are kept.
pub const MAX_TRACKED: usize = 256;
/// From this many writes within the window, an object's versions are kept.
const TRACK_AFTER: u32 = 3;
/// How many writes of an object are recorded one by one.
const MAX_WRITES: usize = 32;
/// How many fields, of one write or of all, are named.
const MAX_FIELDS: usize = 16;
/// How many managers are named.
const MAX_MANAGERS: usize = 8;
/// The window is counted in so many steps.
const STEPS: usize = 12;

/// One write of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedWrite {
    /// When it was seen.
    pub at: Duration,
    /// Who wrote.
    pub writer: ChangeAuthor,
    /// What it changed, as JSON pointers; into a CNI config as `/spec/config#/vlan`.
    pub fields: Vec<String>,
    /// Those that flipped back to their value before the previous write.
    pub flipped: Vec<String>,
}

/// Who wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeAuthor {
    /// The field manager, and how it wrote unless by update: `operator`, `operator (status)`, `kubectl (apply)`. Empty if
    /// unknown.
    pub manager: String,
    /// Whether that is a guess: removing fields leaves no trace in managedFields.
    pub is_presumed: bool,
}

/// The recently written objects.
///
/// Times are durations since the observation started.
#[derive(Debug)]
pub struct RewriteTracker {
    /// By kind and key.
    seen: HashMap<(&'static str, ObjectKey), TrackedObject>,
    window: Duration,
}

impl RewriteTracker {
    /// Nothing was written yet; writes count for as long as `window`.
    pub fn new(window: Duration) -> Self {
        Self { seen: HashMap::new(), window }
    }

    /// Records an object from a watch event, with its resourceVersion. A known one is no write.
    pub fn record(&mut self, kind: &'static str, key: &ObjectKey, version: &str, object: &str, at: Duration) {
        let id = (kind, key.clone());
        if !self.seen.contains_key(&id) {
            self.evict(at);
            self.seen.insert(id.clone(), TrackedObject::default());
        }
        let Some(seen) = self.seen.get_mut(&id) else { return };
        if !seen.counts(version, at, self.window) {
            return;
        }
        if seen.rate.count(at, self.window) < TRACK_AFTER {
            seen.followed = None;
            return;
        }
        if seen.followed.is_none() {
            let followed = self.seen.values().filter(|seen| seen.followed.is_some()).count();
            if followed >= MAX_TRACKED && !self.drop_idle_versions(at) {
                return;
            }
        }
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.followed.get_or_insert_default().record(object, at);
        }
    }

    /// How often an object was written within the window that ends now; `None` where it was not.
    pub fn rewrites(&self, kind: &'static str, key: &ObjectKey, now: Duration) -> Option<Rewrites> {
        self.seen.get(&(kind, key.clone()))?.rewrites(now, self.window)
    }

    /// The objects that were written more often than that within the window that ends now, the most often written first.
    pub fn hot(&self, more_than: usize, now: Duration) -> Vec<(&'static str, &ObjectKey, Rewrites)> {
        let hot = self.seen.iter().filter_map(|((kind, key), seen)| {
            let rewrites = seen.rewrites(now, self.window)?;
            (rewrites.count > more_than).then_some((*kind, key, rewrites))
        });
        let mut hot: Vec<_> = hot.collect();
        hot.sort_by(|one, other| (other.2.count, one.0, one.1).cmp(&(one.2.count, other.0, other.1)));
        hot
    }

    /// The last writes of an object, one by one, the oldest first. There are none of an object that is written rarely.
    pub fn timeline(&self, kind: &'static str, key: &ObjectKey) -> impl Iterator<Item = &ObservedWrite> {
        let followed = self.seen.get(&(kind, key.clone())).and_then(|seen| seen.followed.as_ref());
        followed.into_iter().flat_map(|followed| &followed.writes)
    }

    /// Evicts the least recently written object if the limit is reached.
    fn evict(&mut self, now: Duration) {
        if self.seen.len() < MAX_OBJECTS {
            return;
        }
        let window = self.window;
        self.seen.retain(|_, seen| seen.last + window >= now);
        if self.seen.len() < MAX_OBJECTS {
            return;
        }
        let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.last).map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.seen.remove(&key);
        }
    }

    /// Drops the versions of idle objects; returns whether there were any.
    fn drop_idle_versions(&mut self, now: Duration) -> bool {
        let mut is_any = false;
        for seen in self.seen.values_mut().filter(|seen| seen.last + self.window < now) {
            is_any |= seen.followed.take().is_some();
        }
        is_any
    }
}

/// An object.
#[derive(Debug, Default)]
struct TrackedObject {
    /// Its resourceVersion.
    version: Box<str>,
    /// When it was last written.
    last: Duration,
    rate: WriteRate,
    followed: Option<Box<TrackedVersions>>,
}

impl TrackedObject {
    /// Counts a write; false if it is none.
    fn counts(&mut self, version: &str, at: Duration, window: Duration) -> bool {
        if *self.version == *version {
            return false;
        }
        self.version = version.into();
        self.last = self.last.max(at);
        self.rate.add(at, window);
        true
    }

    fn rewrites(&self, now: Duration, window: Duration) -> Option<Rewrites> {
        let count = self.rate.count(now, window) as usize;
        if count == 0 {
            return None;
        }
        let mut rewrites = Rewrites { count, within: now.min(window), ..Rewrites::default() };
        let mut managers: Vec<(&str, bool)> = Vec::new();
        // How often each field changed, and how often it went back.
        let mut changed: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut compared = 0;
        let writes = self.followed.iter().flat_map(|followed| &followed.writes);
        for write in writes.filter(|write| write.at + window >= now) {
            let (writer, has_capacity) = (&write.writer, managers.len() < MAX_MANAGERS);
            match managers.iter_mut().find(|(known, _)| *known == writer.manager) {
                Some((_, is_presumed)) => *is_presumed &= writer.is_presumed,
                None if has_capacity && !writer.manager.is_empty() => {
                    managers.push((&writer.manager, writer.is_presumed));
                }
                None => {}
            }
            // Writes without a known change are skipped.
            compared += usize::from(!write.fields.is_empty());
            for field in &write.fields {
                let (times, back) = changed.entry(field).or_default();
                *times += 1;
                *back += usize::from(write.flipped.contains(field));
            }
        }
        let label = |(manager, is_presumed): (&str, bool)| {
            if is_presumed { format!("{manager} (presumably)") } else { manager.to_owned() }
        };
        rewrites.managers = managers.into_iter().map(label).collect();
        rewrites.managers.sort();
        let fields_where = |is_it: &dyn Fn(usize, usize) -> bool| -> Vec<String> {
            let fields = changed.iter().filter(|(_, (times, back))| is_it(*times, *back));
            fields.map(|(field, _)| (*field).to_owned()).take(MAX_FIELDS).collect()
        };
        // Fields that returned to an earlier value in about half of their changes.
        rewrites.fields = fields_where(&|times, back| back > 0 && 2 * back + 1 >= times);
        rewrites.always = fields_where(&|times, _| times == compared);
        Some(rewrites)
    }
}

/// How many writes came within the window, counted in steps of it.
#[derive(Debug, Default)]
struct WriteRate {
    /// The newest step.
    step: u128,
    /// It, and those before it.
    counts: [u32; STEPS],
}

impl WriteRate {
    fn add(&mut self, at: Duration, window: Duration) {
        let step = step_of(at, window).max(self.step);
        let moved = usize::try_from(step - self.step).unwrap_or(STEPS).min(STEPS);
        self.counts.rotate_right(moved % STEPS);
        self.counts.iter_mut().take(moved).for_each(|count| *count = 0);
        self.step = step;
        if let Some(newest) = self.counts.first_mut() {
            *newest = newest.saturating_add(1);
        }
    }

    fn count(&self, now: Duration, window: Duration) -> u32 {
        let passed = step_of(now, window).saturating_sub(self.step);
        let left = STEPS.saturating_sub(usize::try_from(passed).unwrap_or(STEPS));
        self.counts.iter().take(left).fold(0, |sum, count| sum.saturating_add(*count))
    }
}

fn step_of(at: Duration, window: Duration) -> u128 {
    at.as_nanos() * STEPS as u128 / window.as_nanos().max(1)
}

/// An object that is written often.
#[derive(Debug, Default)]
struct TrackedVersions {
    /// The last version.
    before: Option<ObjectVersion>,
    /// The one before the last.
    before_last: Option<ObjectVersion>,
    writes: VecDeque<ObservedWrite>,
}

impl TrackedVersions {
    fn record(&mut self, object: &str, at: Duration) {
        let Some(version) = ObjectVersion::read(object) else { return };
        let change = VersionDiff::between(self.before_last.as_ref(), self.before.as_ref(), &version);
        if self.writes.len() >= MAX_WRITES {
            self.writes.pop_front();
        }
        let VersionDiff { writer, fields, flipped } = change;
        self.writes.push_back(ObservedWrite { at, writer, fields, flipped });
        self.before_last = self.before.replace(version);
    }
}
