//! docs/errors.md: what pods showed, which the node tests write, and what is known without a pod, which `make generate` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nadmit::policy::pod_errors::{ErrorEvidence, POD_ERRORS, PodError};
use nadmit::yaml::Documents;
use serde_json::Value;

/// The headings of the sections that are generated; each ends with a table.
const SHOWN: &str = "## What pods showed";
const NOT_RUN: &str = "## Recorded, and not run";
const WITHOUT: &str = "## Denied, and no pod shows it";

/// Each error with the rules whose mistakes showed it.
pub type Seen = BTreeMap<String, BTreeSet<String>>;

pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md")
}

/// A rule that denies, and whose bad example no pod on the node fails with.
pub struct WithoutError {
    pub rule: String,
    /// What happens instead: `starts`, `rejected` (by the API server), `fails` (with another error), `hardware`, or `untried`.
    pub instead: String,
    pub why: String,
}

/// All of them, from `without_error.yaml`.
pub fn without_error() -> Vec<WithoutError> {
    let read = |value: Value| {
        let text = |key: &str| value[key].as_str().unwrap_or_else(|| panic!("{key} is missing: {value}")).to_owned();
        WithoutError { rule: text("rule"), instead: text("instead"), why: text("why") }
    };
    let documents = Documents::new(include_str!("without_error.yaml"));
    documents.map(|document| read(serde_json::from_str(&document.node.unwrap().to_json()).unwrap())).collect()
}

/// A link to the section of a rule.
fn link(rule: &str) -> String {
    let (family, _) = rule.split_once('/').expect("a rule has a family");
    format!("[{rule}](rules/{family}.md#{})", rule.replace('/', ""))
}

/// What explains an error: the rules, and what no NAD can show.
fn explanation<'r>(rules: impl Iterator<Item = &'r str>, cause: Option<&str>) -> String {
    let rules = rules.map(link).collect::<Vec<_>>().join(", ");
    match cause {
        None => rules,
        Some(cause) if rules.is_empty() => cause.to_owned(),
        Some(cause) => format!("{rules}; or {cause}"),
    }
}

fn code(text: &str) -> String {
    format!("`{}`", text.trim().replace('|', "\\|"))
}

/// The page with another table in a section.
fn with_table(page: &str, heading: &str, table: &str) -> String {
    let (before, rest) =
        page.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("docs/errors.md has no {heading}"));
    let (text, after) = rest.split_once("\n|").unwrap_or_else(|| panic!("{heading} has no table"));
    let after = after.split_once("\n\n").map_or("", |(_, after)| after);
    let end = if after.is_empty() { String::new() } else { format!("\n{after}") };
    format!("{before}{heading}\n{text}\n{table}{end}")
}

/// The page with these errors of pods.
pub fn with_seen(page: &str, seen: &Seen) -> String {
    let mut table = "| the pod shows | found by |\n|---|---|\n".to_owned();
    for (message, rules) in seen {
        let cause = PodError::of(message).and_then(|error| error.cause);
        table += &format!("| {} | {} |\n", code(message), explanation(rules.iter().map(String::as_str), cause));
    }
    with_table(page, SHOWN, &table)
}

/// The errors of pods on the page.
pub fn seen(page: &str) -> Seen {
    let (_, section) = page.split_once(SHOWN).expect("docs/errors.md has what pods showed");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rules = |cell: &str| {
        let names = cell.split('[').skip(1).filter_map(|rest| Some(rest.split_once("](rules/")?.0.to_owned()));
        names.collect()
    };
    rows.map(|(message, cell)| (message.replace("\\|", "|"), rules(cell))).collect()
}

/// The page with what is known without a pod.
pub fn with_rest(page: &str) -> String {
    let mut table = "| the pod shows | found by | known from |\n|---|---|---|\n".to_owned();
    for error in POD_ERRORS {
        let evidence = match error.evidence {
            ErrorEvidence::Pod => continue,
            ErrorEvidence::Recorded => "recorded",
            ErrorEvidence::Source => "source",
        };
        let explained = explanation(error.rules.iter().copied(), error.cause);
        table += &format!("| {} | {explained} | {evidence} |\n", code(error.words));
    }
    let page = with_table(page, NOT_RUN, &table);
    let mut table = "| rule | why |\n|---|---|\n".to_owned();
    for WithoutError { rule, why, .. } in without_error() {
        table += &format!("| {} | {why} |\n", link(&rule));
    }
    with_table(&page, WITHOUT, &table)
}
