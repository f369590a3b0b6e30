//! From lines to what is counted.

use super::event::{Event, ObjectRef};
use super::lines::Line;
use super::objects::{Change, Objects};
use super::tally::Tally;
use super::write::Write;
use crate::resources::{NAD_GROUP, NETWORK_GROUP};

/// Which writes are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// API groups; `*` stands for all, and the empty one is the core.
    groups: Vec<String>,
    is_everything: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self::of_groups(vec![NETWORK_GROUP.to_owned(), NAD_GROUP.to_owned()])
    }
}

impl Scope {
    /// The resources of these groups.
    pub fn of_groups(groups: Vec<String>) -> Self {
        let is_everything = groups.iter().any(|group| group == "*");
        Self { groups, is_everything }
    }

    /// Whether that object is one of them.
    pub fn covers(&self, object: &ObjectRef<'_>) -> bool {
        self.is_everything || self.groups.iter().any(|group| *group == object.group)
    }
}

/// What was seen of a log so far. It does not grow with the log: see [`Tally`] and [`Objects`].
#[derive(Debug, Default)]
pub struct Scan {
    scope: Scope,
    /// Lines that hold something.
    pub lines: u64,
    /// Lines that are no events.
    pub unreadable: u64,
    /// Lines that are longer than an event may be.
    pub too_long: u64,
    /// Files whose last line was still being written.
    pub torn: u64,
    /// Dry runs, which store nothing.
    pub dry_runs: u64,
    /// When the first write came that was looked at, and when the last was answered.
    pub time: Option<(i64, i64)>,
    /// By writer.
    pub tally: Tally,
    /// By object.
    pub objects: Objects,
}

impl Scan {
    /// Nothing yet.
    pub fn new(scope: Scope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// What is looked at.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Takes a line in.
    pub fn line(&mut self, line: Line<'_>) {
        if let Some(event) = self.read(line) {
            self.event(&event);
        }
    }

    /// Counts a line, and reads the event that is to be taken in, if there is one.
    pub fn read<'l>(&mut self, line: Line<'l>) -> Option<Event<'l>> {
        let (bytes, is_last) = match line {
            Line::Whole(bytes) => (bytes.trim_ascii(), false),
            Line::Unfinished(bytes) => (bytes.trim_ascii(), true),
            Line::TooLong => {
                self.lines += 1;
                self.too_long += 1;
                return None;
            }
        };
        if bytes.is_empty() {
            return None;
        }
        self.lines += 1;
        let text = std::str::from_utf8(bytes).ok();
        match text.and_then(|text| Event::read(text, &self.scope).ok()) {
            Some(event) => return event,
            None if is_last => self.torn += 1,
            None => self.unreadable += 1,
        }
        None
    }

    /// Takes an event in, and says what it was; `None` for a dry run.
    pub fn event(&mut self, event: &Event<'_>) -> Option<(Write, Change)> {
        let Some(mut write) = Write::of(event) else {
            self.dry_runs += 1;
            return None;
        };
        let (first, last) = self.time.unwrap_or((event.received, event.completed));
        self.time = Some((first.min(event.received), last.max(event.completed)));
        write.was_older_than(self.objects.version(&event.object, event.completed), event);
        let writer = self.tally.agent(&event.agent);
        let change = self.objects.take(event, &write, writer);
        self.tally.count(writer, event, &write, change);
        Some((write, change))
    }
}
