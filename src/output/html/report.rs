//! The HTML report: objects by namespace, each with its findings, config and repair, and the write loops.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::output::{
    Block, Cell, Format, HtmlPage, HtmlRow, HtmlTable, JudgedDocument, RewrittenObject, Summary, diff, text,
};
use crate::policy::Action;

/// The HTML format, rendered at the end.
#[derive(Default)]
pub struct Html {
    title: &'static str,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    /// By namespace, kind, name and source, so that the order does not depend on who was judged first.
    objects: BTreeMap<[String; 4], PageObject>,
    rewritten: Vec<RewrittenObject>,
    notes: Vec<String>,
}

struct PageObject {
    row: HtmlRow,
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
    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        if let Some(object) = object(judged) {
            let key = [judged.namespace, judged.kind, judged.name, judged.source].map(str::to_owned);
            self.gathered().objects.insert(key, object);
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
        HtmlPage { title: self.title, figures, tables, notes: gathered.notes }.render()
    }
}

/// The row of an object; `None` without reported findings.
fn object(judged: &JudgedDocument<'_>) -> Option<PageObject> {
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
            Block::text(&title, &text::whole(finding))
        })
        .collect();
    if let Some((given, stored)) = &judged.change {
        details.push(Block::diff("What admission would change", &diff::unified(judged, given, stored)));
    }
    details.push(Block::preformatted("The object", &readable(judged.json)));
    let count = |action| shown.iter().filter(|finding| finding.action == action).count();
    let cells = [worst.name(), judged.namespace, judged.kind, judged.name, &rules.join(", ")];
    Some(PageObject {
        row: HtmlRow { cells: cells.map(|cell| Cell::Text(cell.to_owned())).into(), details },
        counts: [Action::Deny, Action::Patch, Action::Warn].map(count),
    })
}

/// How much of an object is shown.
const MAX_OBJECT_BYTES: usize = 20_000;

fn readable(json: &str) -> String {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    crate::visible::truncated(crate::yaml::emit::value(&object), MAX_OBJECT_BYTES)
}

fn namespaces(objects: &BTreeMap<[String; 4], PageObject>) -> HtmlTable {
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
        HtmlRow::from(std::iter::once(namespace.to_owned()).chain(numbers).collect::<Vec<_>>())
    };
    HtmlTable {
        title: "Namespaces",
        head: vec!["namespace", "objects", "denials", "repairs", "warnings"],
        rows: by_namespace.into_iter().map(row).collect(),
        filter: 0,
        texts: 1,
    }
}

fn objects(objects: BTreeMap<[String; 4], PageObject>) -> HtmlTable {
    HtmlTable {
        title: "Objects",
        head: vec!["worst", "namespace", "kind", "name", "found"],
        rows: objects.into_values().map(|object| object.row).collect(),
        filter: 0,
        texts: 5,
    }
}

fn timeline(rewritten: Vec<RewrittenObject>) -> HtmlTable {
    let row = |one: RewrittenObject| HtmlRow {
        cells: vec![
            one.key.namespace().to_owned().into(),
            one.kind.to_owned().into(),
            one.key.name().to_owned().into(),
            one.managers.join(", ").into(),
            Cell::Strip(one.writes),
        ],
        details: vec![Block::text("What changes", &one.fields.join("\n"))],
    };
    HtmlTable {
        title: "Rewrites",
        head: vec!["namespace", "kind", "name", "written by", "when"],
        rows: rewritten.into_iter().map(row).collect(),
        filter: 0,
        texts: 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{self, TestDocument};
    use crate::resources::ObjectKey;

    #[test]
    fn page_lists_objects_and_namespaces_with_findings() {
        let found = testing::finding("nad/schema", Action::Deny, "a <b>").at("/spec");
        let quiet = testing::finding("nad/schema", Action::Audit, "only recorded");
        let page = Html::new("nadmit audit");
        page.note("one thing was not read".to_owned());
        page.rewritten(vec![RewrittenObject {
            kind: "K",
            key: ObjectKey::new("ns", "hot"),
            managers: vec!["one".to_owned(), "two".to_owned()],
            fields: vec!["/spec/config#/vlan".to_owned()],
            writes: vec![(0.5, "one".to_owned())],
        }]);
        let cases = [TestDocument::new(vec![found]), TestDocument::new(vec![quiet]), TestDocument::new(Vec::new())];
        let html = testing::report(&page, &[&cases[0], &cases[1], &cases[2]]);
        for want in
            ["a &lt;b&gt;", "nad/schema", "one thing was not read", "one, two", "/spec/config#/vlan", "nadmit audit"]
        {
            assert!(html.contains(want), "{want} is missing");
        }
        assert!(!html.contains("only recorded"));
    }

    #[test]
    fn objects_are_shown_as_yaml_up_to_a_limit() {
        assert_eq!(readable(r#"{"kind":"K","spec":{"a":["x"]}}"#), "kind: K\nspec:\n  a:\n  - x\n");
        let long = readable(&format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_OBJECT_BYTES)));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_OBJECT_BYTES + 1, true));
    }

    #[test]
    fn namespaces_sum_up_their_objects() {
        let named = |name: &'static str, actions: &[Action]| {
            let found = actions.iter().map(|action| testing::finding("nad/schema", *action, "m")).collect();
            TestDocument { name, ..TestDocument::new(found) }
        };
        let cases =
            [named("a", &[Action::Deny, Action::Deny, Action::Warn]), named("b", &[Action::Deny, Action::Patch])];
        let html = testing::report(&Html::new("t"), &[&cases[0], &cases[1]]);
        let row = html.split("<tr").find(|row| row.contains(">apps<")).unwrap();
        let numbers: Vec<_> = row.split(['<', '>']).filter_map(|text| text.trim().parse::<u32>().ok()).collect();
        assert_eq!(numbers, [2, 3, 1, 1], "objects, denials, repairs, warnings: {row}");
    }
}
