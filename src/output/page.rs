//! The report as one page: what there is by namespace, each object with its findings, its config and what admission would change,
//! and who rewrites what.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{Block, Cell, Format, Judged, Page, Rewritten, Row, Summary, Table, diff, words};
use crate::policy::Action;

/// The page. It is made at the end, of what was found until then.
#[derive(Default)]
pub struct Html {
    title: &'static str,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    /// By namespace, kind, name and source, so that the order does not depend on who was judged first.
    objects: BTreeMap<[String; 4], Object>,
    rewritten: Vec<Rewritten>,
    notes: Vec<String>,
}

struct Object {
    row: Row,
    /// Denials, repairs and warnings.
    counts: [usize; 3],
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
    fn document(&self, judged: &Judged<'_>) -> String {
        if let Some(object) = object(judged) {
            let key = [judged.namespace, judged.kind, judged.name, judged.source].map(str::to_owned);
            self.gathered().objects.insert(key, object);
        }
        String::new()
    }

    fn rewritten(&self, rewritten: Vec<Rewritten>) {
        self.gathered().rewritten = rewritten;
    }

    fn note(&self, note: String) {
        self.gathered().notes.push(note);
    }

    fn end(&self, summary: &Summary) -> String {
        let gathered = std::mem::take(&mut *self.gathered());
        let mut tables = vec![namespaces(&gathered.objects), objects(gathered.objects)];
        if !gathered.rewritten.is_empty() {
            tables.push(timeline(gathered.rewritten));
        }
        let figures = [
            (summary.documents, "judged"),
            (summary.deny, "denials"),
            (summary.patch, "repairs"),
            (summary.warn, "warnings"),
        ];
        let figures = figures.map(|(number, what)| (number.to_string(), what)).to_vec();
        Page { title: self.title, figures, tables, notes: gathered.notes }.render()
    }
}

/// An object's row; `None` where nothing is found that people should see.
fn object(judged: &Judged<'_>) -> Option<Object> {
    let shown: Vec<_> = judged.findings.iter().map(|placed| placed.finding).collect();
    let shown: Vec<_> = shown.into_iter().filter(|finding| finding.action > Action::Audit).collect();
    let worst = shown.iter().map(|finding| finding.action).max()?;
    let mut rules: Vec<_> = shown.iter().map(|finding| finding.rule.id).collect();
    let mut seen = BTreeSet::new();
    rules.retain(|rule| seen.insert(*rule));
    let mut details: Vec<_> = shown
        .iter()
        .map(|finding| {
            let title = format!("{}: {}", finding.action.name(), finding.rule.id);
            Block::text(&title, &format!("{}\n{}", words::problem(finding), finding.help))
        })
        .collect();
    if let Some((given, stored)) = &judged.change {
        details.push(Block::diff("What admission would change", &diff::unified(judged, given, stored)));
    }
    details.push(Block::preformatted("The object", &readable(judged.json)));
    let count = |action| shown.iter().filter(|finding| finding.action == action).count();
    let cells = [worst.name(), judged.namespace, judged.kind, judged.name, &rules.join(", ")];
    Some(Object {
        row: Row { cells: cells.map(|cell| Cell::Text(cell.to_owned())).into(), details },
        counts: [Action::Deny, Action::Patch, Action::Warn].map(count),
    })
}

/// How much of an object is shown.
const MOST_SHOWN: usize = 20_000;

fn readable(json: &str) -> String {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    crate::policy::shortened(diff::to_yaml(&object), MOST_SHOWN)
}

fn namespaces(objects: &BTreeMap<[String; 4], Object>) -> Table {
    let mut by_namespace: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for ([namespace, ..], object) in objects {
        let sums = by_namespace.entry(namespace).or_default();
        let [deny, patch, warn] = object.counts;
        for (sum, more) in sums.iter_mut().zip([1, deny, patch, warn]) {
            *sum += more;
        }
    }
    let row = |(namespace, sums): (&str, [usize; 4])| {
        let numbers = sums.iter().map(ToString::to_string);
        Row::from(std::iter::once(namespace.to_owned()).chain(numbers).collect::<Vec<_>>())
    };
    Table {
        title: "Namespaces",
        head: vec!["namespace", "objects", "denials", "repairs", "warnings"],
        rows: by_namespace.into_iter().map(row).collect(),
        filter: 0,
        texts: 1,
    }
}

fn objects(objects: BTreeMap<[String; 4], Object>) -> Table {
    Table {
        title: "Objects",
        head: vec!["worst", "namespace", "kind", "name", "found"],
        rows: objects.into_values().map(|object| object.row).collect(),
        filter: 0,
        texts: 5,
    }
}

fn timeline(rewritten: Vec<Rewritten>) -> Table {
    let row = |one: Rewritten| Row {
        cells: vec![
            one.namespace.into(),
            one.kind.into(),
            one.name.into(),
            one.managers.join(", ").into(),
            Cell::Strip(one.writes),
        ],
        details: vec![Block::text("What changes", &one.fields.join("\n"))],
    };
    Table {
        title: "Rewrites",
        head: vec!["namespace", "kind", "name", "written by", "when"],
        rows: rewritten.into_iter().map(row).collect(),
        filter: 0,
        texts: 5,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Case};
    use super::*;

    #[test]
    fn objects_and_namespaces_are_there_and_the_rest_is_not() {
        let found = testing::finding("nad/schema", Action::Deny, "a <b>").at("/spec");
        let quiet = testing::finding("nad/schema", Action::Audit, "only recorded");
        let page = Html::new("nadmit audit");
        page.note("one thing was not read".to_owned());
        page.rewritten(vec![Rewritten {
            kind: "K".to_owned(),
            namespace: "ns".to_owned(),
            name: "hot".to_owned(),
            managers: vec!["one".to_owned(), "two".to_owned()],
            fields: vec!["/spec/config#/vlan".to_owned()],
            writes: vec![(0.5, "one".to_owned())],
        }]);
        let cases = [Case::new(vec![found]), Case::new(vec![quiet]), Case::new(Vec::new())];
        let html = testing::report(&page, &[&cases[0], &cases[1], &cases[2]]);
        for want in
            ["a &lt;b&gt;", "nad/schema", "one thing was not read", "one, two", "/spec/config#/vlan", "nadmit audit"]
        {
            assert!(html.contains(want), "{want} is missing");
        }
        assert!(!html.contains("only recorded"));
    }
}
