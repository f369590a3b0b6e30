//! Counts the writes in log lines.

use crate::audit_log::event::{AuditEvent, ObjectRef};
use crate::audit_log::lines::Line;
use crate::audit_log::objects::{Objects, WriteEffect};
use crate::audit_log::tally::Tally;
use crate::audit_log::write::ClassifiedWrite;
use crate::resources::{NAD_GROUP, NETWORK_GROUP};

/// Which writes are in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogScope {
    /// API groups; `*` stands for all, and the empty one is the core.
    groups: Vec<String>,
    is_everything: bool,
}

impl Default for LogScope {
    fn default() -> Self {
        Self::of_groups(vec![NETWORK_GROUP.to_owned(), NAD_GROUP.to_owned()])
    }
}

impl LogScope {
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

/// The counts of a log. Memory does not grow with the log: see [`Tally`] and [`Objects`].
#[derive(Debug, Default)]
pub struct LogScan {
    scope: LogScope,
    /// Non-empty lines.
    pub lines: u64,
    /// Lines that are not events.
    pub unreadable: u64,
    /// Lines that are longer than an event may be.
    pub too_long: u64,
    /// Files whose last line was still being written.
    pub torn: u64,
    /// Dry runs, which store nothing.
    pub dry_runs: u64,
    /// The time of the first counted write, and the completion of the last.
    pub time: Option<(i64, i64)>,
    /// By writer.
    pub tally: Tally,
    /// By object.
    pub objects: Objects,
}

impl LogScan {
    /// Nothing yet.
    pub fn new(scope: LogScope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// The scope.
    pub fn scope(&self) -> &LogScope {
        &self.scope
    }

    /// Counts a line.
    pub fn line(&mut self, line: Line<'_>) {
        if let Some(event) = self.read(line) {
            self.event(&event);
        }
    }

    /// Counts a line and parses its event, if in scope.
    pub fn read<'l>(&mut self, line: Line<'l>) -> Option<AuditEvent<'l>> {
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
        match text.and_then(|text| AuditEvent::read(text, &self.scope).ok()) {
            Some(event) => return event,
            None if is_last => self.torn += 1,
            None => self.unreadable += 1,
        }
        None
    }

    /// Counts an event and classifies it; `None` for a dry run.
    pub fn event(&mut self, event: &AuditEvent<'_>) -> Option<(ClassifiedWrite, WriteEffect)> {
        let Some(mut write) = ClassifiedWrite::of(event) else {
            self.dry_runs += 1;
            return None;
        };
        let (first, last) = self.time.unwrap_or((event.received, event.completed));
        self.time = Some((first.min(event.received), last.max(event.completed)));
        write.was_older_than(self.objects.version(&event.object, event.completed), event);
        let writer = self.tally.agent(&event.agent);
        let change = self.objects.count(event, &write, writer);
        self.tally.count(writer, event, &write, change);
        Some((write, change))
    }
}
