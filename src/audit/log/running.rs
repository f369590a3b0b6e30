//! Events that an API server sends for ever, in batches: counted by periods, so that neither memory nor names pile up, and what is shown is
//! about now.
//!
//! There are the counts of the period at hand and of the one before it. A period begins without names and counts, and with what is known
//! of the objects' versions; a loop that lasts is found in each period that it lasts through.

use serde::Serialize;

use super::event::Event;
use super::objects::{Change, Objects};
use super::report::Report;
use super::write::Write;
use super::{Scan, Scope};
use crate::json::{Error, Reader};

/// How many objects are kept for a period; whoever runs for ever shares a machine with others.
const MAX_OBJECTS: usize = 4096;
/// How many loops a report has, the fastest.
const MAX_LOOPS: usize = 100;

/// A batch of events, `audit.k8s.io/v1` `EventList`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The list, which was read to its end once. Nothing is built of it: a body of a few MiB may hold very many items.
    items: &'a str,
}

/// Why a body is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// It is not JSON.
    #[error("the body is no JSON object: {0}")]
    Syntax(#[from] Error),
    /// It is not text.
    #[error("the body is not UTF-8")]
    NotText,
    /// It is something else.
    #[error("the body is no EventList of audit.k8s.io/v1")]
    OtherKind,
}

impl<'a> Batch<'a> {
    /// Reads a body, all of it or nothing.
    pub fn read(body: &'a [u8]) -> Result<Self, BatchError> {
        let text = std::str::from_utf8(body).map_err(|_| BatchError::NotText)?;
        let (mut items, mut is_list, mut is_known) = ("[]", false, false);
        Reader::whole(text, |reader| {
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
        let _ = Reader::new(self.items).elements(|reader| {
            each(reader.skip()?);
            Ok(())
        });
    }
}

/// What is counted of batches.
#[derive(Debug)]
pub struct Running {
    current: Scan,
    previous: Option<Scan>,
    loop_rate: u32,
}

/// The report of something that goes on.
#[derive(Clone, Debug, Serialize)]
pub struct Periods {
    version: u32,
    /// The period at hand.
    pub current: Report,
    /// The one before it.
    pub previous: Option<Report>,
}

impl Running {
    /// Nothing yet. An object that is written `loop_rate` times within a minute is in a loop.
    pub fn new(scope: Scope, loop_rate: u32) -> Self {
        let mut current = Scan::new(scope);
        current.objects = Objects::limited(MAX_OBJECTS);
        Self { current, previous: None, loop_rate }
    }

    /// What is looked at.
    pub fn scope(&self) -> &Scope {
        self.current.scope()
    }

    /// Takes a batch in; `each` is told what every write was. An item that is no event does not spoil the others.
    pub fn take(&mut self, batch: Batch<'_>, mut each: impl FnMut(Write, Change)) {
        batch.each(|item| {
            self.current.lines += 1;
            match Event::read(item, self.current.scope()) {
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

    /// A period is over.
    pub fn turn(&mut self) {
        let mut next = Scan::new(self.scope().clone());
        next.objects = self.current.objects.clone();
        next.objects.count_anew();
        self.previous = Some(std::mem::replace(&mut self.current, next));
    }

    /// How many objects are in a loop, in this period or the one before it; `None` where there were no events at all.
    pub fn loops(&self) -> Option<usize> {
        let periods = [Some(&self.current), self.previous.as_ref()].into_iter().flatten();
        let with_events = periods.filter(|scan| scan.lines > 0);
        with_events.map(|scan| scan.objects.loops(self.loop_rate).len()).max()
    }

    /// What there is to say now.
    pub fn report(&self) -> Periods {
        Periods {
            version: 1,
            current: self.report_of(&self.current),
            previous: self.previous.as_ref().map(|scan| self.report_of(scan)),
        }
    }

    fn report_of(&self, scan: &Scan) -> Report {
        Report::within(scan, vec!["audit-events".to_owned()], self.loop_rate, MAX_LOOPS)
    }
}

impl Periods {
    /// One JSON document on one line.
    pub fn json(&self) -> String {
        crate::output::to_json(self) + "\n"
    }
}
