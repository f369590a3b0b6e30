//! Audit events that an API server sends continuously, in batches: counted per period, so that memory is bounded and reports are
//! current.
//!
//! The current and the previous period are kept. A period starts without names and counts, but with the known versions of
//! objects; a lasting loop is found in each period.

use serde::Serialize;

use crate::audit_log::event::AuditEvent;
use crate::audit_log::objects::{Objects, WriteEffect};
use crate::audit_log::report::Report;
use crate::audit_log::write::ClassifiedWrite;
use crate::audit_log::{LogScan, LogScope};
use crate::json::{Error, JsonReader};

/// How many objects are tracked per period, to limit memory in a long-running process.
const MAX_OBJECTS: usize = 4096;
/// How many loops a report has, the fastest.
const MAX_LOOPS: usize = 100;

/// A batch of events, `audit.k8s.io/v1` `EventList`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The list, validated once. It is not materialized: a body of a few MiB may have very many items.
    items: &'a str,
}

/// Why a body is not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// It is not JSON.
    #[error("the body is not a JSON object: {0}")]
    Syntax(#[from] Error),
    /// It is not text.
    #[error("the body is not UTF-8")]
    NotText,
    /// It is something else.
    #[error("the body is not an EventList of audit.k8s.io/v1")]
    OtherKind,
}

impl<'a> Batch<'a> {
    /// Parses a body; it is accepted or rejected as a whole.
    pub fn read(body: &'a [u8]) -> Result<Self, BatchError> {
        let text = std::str::from_utf8(body).map_err(|_| BatchError::NotText)?;
        let (mut items, mut is_list, mut is_known) = ("[]", false, false);
        JsonReader::whole(text, |reader| {
            reader.members(|reader, key, _| {
                match key.as_ref() {
                    "kind" => is_list = reader.text()?.as_deref() == Some("EventList"),
                    "apiVersion" => is_known = reader.text()?.as_deref() == Some("audit.k8s.io/v1"),
                    "items" if reader.peek() == Some(b'[') => {
                        let start = reader.at();
                        reader.elements(|reader| reader.skip().map(drop))?;
                        items = reader.text_from(start);
                    }
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        if is_list && is_known { Ok(Self { items }) } else { Err(BatchError::OtherKind) }
    }

    fn each(&self, mut each: impl FnMut(&'a str)) {
        // It was read before.
        let _ = JsonReader::new(self.items).elements(|reader| {
            each(reader.skip()?);
            Ok(())
        });
    }
}

/// Counts the events of batches.
#[derive(Debug)]
pub struct EventCounter {
    current: LogScan,
    previous: Option<LogScan>,
    loop_rate: u32,
}

/// The report of the current and previous period.
#[derive(Clone, Debug, Serialize)]
pub struct Periods {
    version: u32,
    /// The current period.
    pub current: Report,
    /// The one before it.
    pub previous: Option<Report>,
}

impl EventCounter {
    /// Nothing yet. An object that is written `loop_rate` times within a minute is in a loop.
    pub fn new(scope: LogScope, loop_rate: u32) -> Self {
        let mut current = LogScan::new(scope);
        current.objects = Objects::limited(MAX_OBJECTS);
        Self { current, previous: None, loop_rate }
    }

    /// The scope.
    pub fn scope(&self) -> &LogScope {
        self.current.scope()
    }

    /// Counts a batch and calls `each` for every write. An invalid item does not affect the others.
    pub fn count(&mut self, batch: Batch<'_>, mut each: impl FnMut(ClassifiedWrite, WriteEffect)) {
        batch.each(|item| {
            self.current.lines += 1;
            match AuditEvent::read(item, self.current.scope()) {
                Ok(None) => {}
                Ok(Some(event)) => {
                    if let Some((write, change)) = self.current.event(&event) {
                        each(write, change);
                    }
                }
                Err(_) => self.current.unreadable += 1,
            }
        });
    }

    /// Starts a new period.
    pub fn rotate(&mut self) {
        let mut next = LogScan::new(self.scope().clone());
        next.objects = self.current.objects.clone();
        next.objects.reset_counts();
        self.previous = Some(std::mem::replace(&mut self.current, next));
    }

    /// How many objects are in a loop, in this period or the one before it; `None` where there were no events at all.
    pub fn loops(&self) -> Option<usize> {
        let periods = [Some(&self.current), self.previous.as_ref()].into_iter().flatten();
        let with_events = periods.filter(|scan| scan.lines > 0);
        with_events.map(|scan| scan.objects.loops(self.loop_rate).len()).max()
    }

    /// The current report.
    pub fn report(&self) -> Periods {
        Periods {
            version: 1,
            current: self.report_of(&self.current),
            previous: self.previous.as_ref().map(|scan| self.report_of(scan)),
        }
    }

    fn report_of(&self, scan: &LogScan) -> Report {
        Report::within(scan, vec!["audit-events".to_owned()], self.loop_rate, MAX_LOOPS)
    }
}

impl Periods {
    /// One JSON document on one line.
    pub fn json(&self) -> String {
        crate::json::write::to_json(self) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch with that many writes of one object within a second.
    fn batch(writes: usize) -> String {
        let event = serde_json::json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete",
            "requestURI": "/apis/sriovnetwork.openshift.io/v1/x", "verb": "patch", "user": {"username": "u"}, "userAgent": "a",
            "objectRef": {"resource": "sriovnetworks", "name": "n", "apiGroup": "sriovnetwork.openshift.io", "apiVersion": "v1"},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": "2026-11-16T20:00:00.000000Z", "stageTimestamp": "2026-11-16T20:00:00.001000Z",
        });
        let mut items = vec![event; writes];
        items.push(serde_json::json!(5));
        serde_json::json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": items}).to_string()
    }

    #[test]
    fn loops_are_those_of_the_last_two_periods_with_events() {
        let mut counter = EventCounter::new(LogScope::of_groups(vec!["sriovnetwork.openshift.io".to_owned()]), 2);
        assert_eq!(counter.loops(), None, "no events at all");
        let body = batch(1);
        counter.count(Batch::read(body.as_bytes()).unwrap(), |_, _| {});
        assert_eq!(counter.loops(), Some(0));
        let body = batch(2);
        counter.count(Batch::read(body.as_bytes()).unwrap(), |_, _| {});
        assert_eq!(counter.loops(), Some(1));
        assert_eq!((counter.current.lines, counter.current.unreadable), (5, 2));
        counter.rotate();
        assert_eq!(counter.loops(), Some(1), "of the period before");
        counter.rotate();
        assert_eq!(counter.loops(), None);
    }

    #[test]
    fn the_report_is_one_line_of_json() {
        let json = EventCounter::new(LogScope::default(), 2).report().json();
        let line = json.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&value["version"], &value["previous"]), (&1.into(), &serde_json::Value::Null));
    }
}
