//! The HTML report: objects, each with its findings, its text and its repair; and the write loops.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::part::ShownFinding;
use super::{Entry, EntryPart, Facet, Figure, HtmlList, HtmlPage};
use crate::output::{Format, JudgedDocument, LocatedFinding, RewrittenObject, Summary, diff, excerpt, text};
use crate::policy::Action;
use crate::visible;

/// The HTML format, rendered at the end.
#[derive(Default)]
pub struct Html {
    title: &'static str,
    gathered: Mutex<Gathered>,
}

/// The worst first; then by namespace, kind, name and place, so that the order does not depend on who was judged first.
type Place = (Reverse<Action>, [String; 4], usize);

#[derive(Default)]
struct Gathered {
    objects: BTreeMap<Place, Entry>,
    rewritten: Vec<RewrittenObject>,
    notes: Vec<String>,
}

impl Html {
    /// A page with that title.
    pub fn new(title: &'static str) -> Self {
        Self { title, gathered: Mutex::default() }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Format for Html {
    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        if let Some((worst, entry)) = object(judged) {
            let names = [judged.namespace, judged.kind, judged.name, judged.source].map(str::to_owned);
            self.gathered().objects.insert((Reverse(worst), names, judged.line), entry);
        }
        String::new()
    }

    fn rewritten(&self, rewritten: Vec<RewrittenObject>) {
        self.gathered().rewritten = rewritten;
    }

    fn note(&self, note: String) {
        self.gathered().notes.push(note);
    }

    fn end(&self, summary: &Summary) -> String {
        let gathered = std::mem::take(&mut *self.gathered());
        let mut entries: Vec<_> = gathered.objects.into_values().collect();
        number_repeated(&mut entries);
        let mut notes = gathered.notes;
        let other_kinds = summary.skipped.other_kinds;
        if other_kinds > 0 {
            notes.push(format!("{} of other kinds ignored", counted(other_kinds, "object")));
        }
        let (lead, clear) = lead(summary.documents, entries.len());
        let mut page = HtmlPage {
            title: self.title,
            lead,
            clear,
            alerts: Vec::new(),
            figures: figures(summary, &entries),
            objects: Some(summary.documents),
            charts: vec![Facet::Rule, Facet::Namespace],
            filters: vec![Facet::Severity, Facet::Rule, Facet::Namespace, Facet::Kind],
            lists: vec![HtmlList::Entries { title: "Objects", entries }],
            notes,
        };
        if summary.unreadable > 0 {
            let inputs = counted(summary.unreadable, "input");
            page.alerts.push(format!("{inputs} could not be read and not judged: this page is incomplete"));
        }
        if !gathered.rewritten.is_empty() {
            let entries = gathered.rewritten.into_iter().map(rewrites).collect();
            page.lists.push(HtmlList::Entries { title: "Rewrites", entries });
        }
        page.render()
    }
}

/// The result in a few words; and what to say where nothing was found.
fn lead(objects: usize, found: usize) -> (String, String) {
    match (objects, found) {
        (0, 0) => ("Nothing was checked".to_owned(), String::new()),
        (_, 0) => ("No findings".to_owned(), format!("{} checked, nothing to fix", counted(objects, "object"))),
        (_, 1) => (format!("1 of {} has findings", counted(objects, "object")), String::new()),
        _ => (format!("{found} of {} have findings", counted(objects, "object")), String::new()),
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn figures(summary: &Summary, entries: &[Entry]) -> Vec<Figure> {
    let clean = summary.documents.saturating_sub(entries.len());
    let mut figures = vec![Figure {
        more: format!("{clean} without findings"),
        ..Figure::plain("Objects checked", summary.documents.to_string())
    }];
    for (action, number) in [(Action::Deny, summary.deny), (Action::Patch, summary.patch), (Action::Warn, summary.warn)]
    {
        let has = |entry: &&Entry| entry.findings.iter().any(|(one, _)| *one == action);
        let objects = entries.iter().filter(has).count();
        let more = if objects == 0 { "none".to_owned() } else { format!("in {}", counted(objects, "object")) };
        figures.push(Figure::findings(action, number, more));
    }
    figures
}

/// An object that stands in several files has several entries, each with an address of its own.
fn number_repeated(entries: &mut [Entry]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        let times = seen.entry(entry.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            entry.id += &format!("~{times}");
        }
    }
}

/// The entry of an object; `None` without reported findings.
fn object(judged: &JudgedDocument<'_>) -> Option<(Action, Entry)> {
    let shown: Vec<_> = judged.findings.iter().filter(|placed| placed.finding.action > Action::Audit).collect();
    let worst = shown.iter().map(|placed| placed.finding.action).max()?;
    // A stored object has no file: its source is its name.
    let is_file = judged.source != format!("{}/{}/{}", judged.kind, judged.namespace, judged.name);
    let mut by_severity = shown.clone();
    by_severity.sort_by_key(|placed| Reverse(placed.finding.action));
    let found = by_severity.into_iter().map(|placed| EntryPart::Finding(Box::new(finding(judged, placed, is_file))));
    let parts = found.chain(texts(judged)).collect();
    let entry = Entry {
        id: [judged.namespace, judged.kind, judged.name].join("/"),
        before: if judged.namespace.is_empty() { String::new() } else { format!("{}/", judged.namespace) },
        name: if judged.name.is_empty() { "(unnamed)".to_owned() } else { judged.name.to_owned() },
        kind: judged.kind.to_owned(),
        about: if is_file { format!("{}:{}", judged.source, judged.line) } else { String::new() },
        labels: vec![(Facet::Namespace, judged.namespace.to_owned()), (Facet::Kind, judged.kind.to_owned())],
        findings: shown.iter().map(|placed| (placed.finding.action, placed.finding.rule)).collect(),
        parts,
        ..Entry::default()
    };
    Some((worst, entry))
}

fn finding(judged: &JudgedDocument<'_>, placed: &LocatedFinding<'_>, is_file: bool) -> ShownFinding {
    let finding = placed.finding;
    let mut pointer = finding.pointer.clone();
    if let Some(place) = finding.config.as_ref().filter(|place| !place.pointer.is_empty()) {
        pointer += &format!(" at {}", place.pointer);
    }
    let notes = [finding.note.clone(), finding.because.as_ref().map(text::why).unwrap_or_default()];
    let others = finding.related.iter().map(text::located);
    let place = format!("line {}, column {}", placed.line, placed.column);
    ShownFinding {
        action: finding.action,
        rule: finding.rule.id,
        pointer,
        place: if is_file { place } else { String::new() },
        message: text::problem(finding).into_owned(),
        excerpt: marked_excerpt(judged.text, placed).map(|line| (placed.line, line)),
        notes: notes.into_iter().chain(others).filter(|note| !note.is_empty()).collect(),
        help: finding.help.clone(),
    }
}

/// The longest line of which everything is shown.
const MAX_EXCERPT_BYTES: usize = 240;

/// The line of a finding in three parts: before its place, the place, and after it. Of a long line, what is around the place.
fn marked_excerpt(text: &str, placed: &LocatedFinding<'_>) -> Option<[String; 3]> {
    let span = &placed.span;
    let line = excerpt::line_of(text, span);
    let around = if line.len() > MAX_EXCERPT_BYTES { excerpt::around(text, span) } else { line.clone() };
    let range = around.start.max(line.start)..around.end.min(line.end);
    let value = visible::truncated(text.get(span.clone())?, MAX_EXCERPT_BYTES);
    let mut before = text.get(range.start..span.start)?.to_owned();
    let mut after = text.get(span.end..range.end)?.to_owned();
    if range.start > line.start {
        before.insert(0, '…');
    } else {
        before = before.trim_start().to_owned();
    }
    if range.end < line.end {
        after.push('…');
    }
    (!value.is_empty()).then_some([before, value, after])
}

/// How much of an object is shown.
const MAX_OBJECT_BYTES: usize = 20_000;

/// The object; and what admission would change, in the whole object if that is not too long.
fn texts(judged: &JudgedDocument<'_>) -> Vec<EntryPart> {
    let whole = readable(judged.json);
    let is_cut = whole.len() > MAX_OBJECT_BYTES;
    let mut parts = Vec::new();
    if let Some((given, stored)) = &judged.change {
        let lines = diff::whole(given, stored);
        if lines.len() <= MAX_OBJECT_BYTES {
            return vec![EntryPart::Change { lines, is_whole: true }];
        }
        let lines = visible::truncated(diff::unified(judged, given, stored), MAX_OBJECT_BYTES);
        parts.push(EntryPart::Change { lines, is_whole: false });
    }
    parts.push(EntryPart::Object { yaml: visible::truncated(whole, MAX_OBJECT_BYTES), is_cut });
    parts
}

fn readable(json: &str) -> String {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    crate::yaml::emit::value(&object)
}

fn rewrites(one: RewrittenObject) -> Entry {
    let (namespace, name) = (one.key.namespace().to_owned(), one.key.name().to_owned());
    Entry {
        id: ["rewrites", &namespace, one.kind, &name].join("/"),
        before: if namespace.is_empty() { String::new() } else { format!("{namespace}/") },
        name,
        kind: one.kind.to_owned(),
        about: format!("written by {}", one.managers.join(", ")),
        facts: vec![counted(one.writes.len(), "write")],
        labels: vec![(Facet::Namespace, namespace), (Facet::Kind, one.kind.to_owned())],
        parts: vec![EntryPart::Text { title: "What changes", text: one.fields.join("\n") }],
        writes: one.writes,
        ..Entry::default()
    }
}

#[cfg(test)]
mod tests;
