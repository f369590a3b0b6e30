//! A chart: for each value of a facet, how many findings there are of each severity. The script counts again when a filter changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::facet::{SEVERITIES, plural};
use super::{Entry, Facet, escape};
use crate::policy::Action;

/// How many rows are shown at first; `charts.js` has the same number.
const FEW: usize = 5;

/// One value.
#[derive(Default)]
struct ChartRow {
    /// How many findings of each severity, in the order of [`SEVERITIES`].
    counts: [usize; SEVERITIES.len()],
    /// How many entries have a finding.
    objects: usize,
    /// What a rule reports.
    about: &'static str,
}

impl ChartRow {
    fn total(&self) -> usize {
        self.counts.iter().sum()
    }
}

/// The chart of a facet; with a column of objects where an entry may have several findings.
pub(super) fn render(facet: Facet, entries: &[Entry], with_objects: bool, out: &mut String) {
    let rows = rows(facet, entries);
    if rows.is_empty() {
        return;
    }
    let columns = present(entries);
    let most = rows.iter().map(|(_, row)| row.total()).max().unwrap_or_default();
    let mut names: Vec<_> = columns.iter().map(|action| action.name()).collect();
    if with_objects {
        names.push("objects");
    }
    let _ = write!(
        out,
        "<section class=\"chart card\"><table data-chart=\"{}\" data-columns=\"{}\">\n<thead><tr><th scope=\"col\"><h2>{}</h2></th>",
        facet.name(),
        names.join(" "),
        facet.plural()
    );
    for action in &columns {
        let _ = write!(out, "<th scope=\"col\"><span class=\"sign {}\">{}</span></th>", action.name(), plural(*action));
    }
    if with_objects {
        *out += "<th scope=\"col\">Objects</th>";
    }
    *out += "</tr></thead>\n<tbody>\n";
    for (at, (value, row)) in rows.iter().enumerate() {
        let hidden = if at < FEW { "" } else { " hidden" };
        let _ = write!(
            out,
            "<tr{hidden}><th scope=\"row\"><button class=\"pick\" type=\"button\" data-pick=\"{}\" value=\"{}\" aria-pressed=\"false\"><span>{}</span>",
            facet.name(),
            escape::line(value),
            escape::line(&facet.shown(value))
        );
        if !row.about.is_empty() {
            let _ = write!(out, "<small>{}</small>", escape::with_code(row.about));
        }
        let segments: Vec<_> = columns.iter().map(|action| (action.name(), row.of(*action))).collect();
        bar("", &segments, most, out);
        *out += "</button></th>";
        for action in &columns {
            cell(row.of(*action), action.name(), out);
        }
        if with_objects {
            cell(row.objects, "objects", out);
        }
        *out += "</tr>\n";
    }
    let hidden = if rows.len() > FEW { "" } else { " hidden" };
    let _ = writeln!(
        out,
        "</tbody></table><button class=\"plain more needs-script\" type=\"button\" aria-expanded=\"false\"{hidden}>Show all {}</button></section>",
        rows.len()
    );
}

impl ChartRow {
    fn of(&self, action: Action) -> usize {
        SEVERITIES.iter().zip(self.counts).find(|(one, _)| **one == action).map_or(0, |(_, count)| count)
    }
}

/// The severities that any entry has.
pub(super) fn present(entries: &[Entry]) -> Vec<Action> {
    let has =
        |severity: &Action| entries.iter().flat_map(|entry| &entry.findings).any(|(action, _)| action == severity);
    SEVERITIES.into_iter().filter(has).collect()
}

/// A bar of segments, each in its severity's colour.
pub(super) fn bar(class: &str, segments: &[(&str, usize)], most: usize, out: &mut String) {
    let _ = write!(
        out,
        "<svg class=\"bar{class}\" viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    );
    let mut from = 0.0;
    for (name, count) in segments {
        let width = 100.0 * *count as f64 / most.max(1) as f64;
        let _ = write!(out, "<rect class=\"{name}\" x=\"{from:.2}\" width=\"{width:.2}\" height=\"1\"/>");
        from += width;
    }
    *out += "</svg>";
}

fn cell(count: usize, severity: &str, out: &mut String) {
    let _ = match count {
        0 => write!(out, "<td class=\"{severity}\">–</td>"),
        _ => write!(out, "<td class=\"{severity} some\">{count}</td>"),
    };
}

/// The values, those with the worst findings first.
fn rows(facet: Facet, entries: &[Entry]) -> Vec<(String, ChartRow)> {
    let mut rows: BTreeMap<&str, ChartRow> = BTreeMap::new();
    for entry in entries {
        let mut seen: Vec<&str> = Vec::new();
        for (action, rule) in &entry.findings {
            let (value, about) = match facet {
                Facet::Severity => (action.name(), ""),
                Facet::Rule => (rule.id, rule.wrong),
                label => match entry.label(label) {
                    Some(value) => (value, ""),
                    None => continue,
                },
            };
            let row = rows.entry(value).or_default();
            row.about = about;
            for (_, count) in SEVERITIES.iter().zip(&mut row.counts).filter(|(severity, _)| *severity == action) {
                *count += 1;
            }
            if !seen.contains(&value) {
                seen.push(value);
                row.objects += 1;
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().map(|(value, row)| (value.to_owned(), row)).collect();
    rows.sort_by_key(|(_, row)| Reverse(row.counts));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules;

    fn entry(namespace: &str, findings: &[(Action, &str)]) -> Entry {
        Entry {
            labels: vec![(Facet::Namespace, namespace.to_owned())],
            findings: findings.iter().map(|(action, rule)| (*action, rules::find(rule).unwrap())).collect(),
            ..Entry::default()
        }
    }

    #[test]
    fn values_with_the_worst_findings_come_first() {
        let entries = [
            entry(
                "b",
                &[(Action::Warn, "nad/dotted-name"), (Action::Warn, "nad/dotted-name"), (Action::Warn, "nad/schema")],
            ),
            entry("", &[(Action::Deny, "nad/schema"), (Action::Deny, "nad/schema")]),
            entry("b", &[(Action::Patch, "nad/schema")]),
            entry("c", &[]),
        ];
        let summary = |facet| -> Vec<_> {
            rows(facet, &entries).into_iter().map(|(value, row)| (value, row.counts, row.objects)).collect()
        };
        // (value, counts by severity, entries)
        assert_eq!(summary(Facet::Namespace), [(String::new(), [2, 0, 0, 0], 1), ("b".to_owned(), [0, 1, 3, 0], 2)]);
        assert_eq!(
            summary(Facet::Rule),
            [("nad/schema".to_owned(), [2, 1, 1, 0], 3), ("nad/dotted-name".to_owned(), [0, 0, 2, 0], 1)]
        );
        assert_eq!(summary(Facet::Kind), []);
        let mut out = String::new();
        render(Facet::Namespace, &entries, true, &mut out);
        assert!(out.contains("data-columns=\"deny patch warn objects\""), "{out}");
        assert!(out.contains("value=\"\" aria-pressed=\"false\"><span>(no namespace)</span>"), "{out}");
        assert!(out.contains("<rect class=\"patch\" x=\"0.00\" width=\"25.00\" height=\"1\"/>"), "{out}");
        assert!(out.contains("<rect class=\"warn\" x=\"25.00\" width=\"75.00\" height=\"1\"/>"), "{out}");
    }

    #[test]
    fn rows_after_the_first_few_wait_behind_a_button() {
        for (count, hidden) in [(FEW, 1), (FEW + 1, 1), (FEW + 2, 2)] {
            let names: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            let entries: Vec<_> = names.iter().map(|name| entry(name, &[(Action::Warn, "nad/dotted-name")])).collect();
            let mut out = String::new();
            render(Facet::Namespace, &entries, false, &mut out);
            assert_eq!(out.matches(" hidden>").count(), hidden, "{count}");
            assert!(out.contains(&format!(">Show all {count}</button>")), "{count}");
        }
    }
}
