//! An entry of a list: one line that opens to its details.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::facet::SEVERITIES;
use super::{EntryPart, Facet, escape, part, strip, table};
use crate::policy::{Action, Rule};

/// An object, a finding, or a write loop.
#[derive(Default)]
pub(crate) struct Entry {
    /// Its address in the page; unique, and the same whenever the page is made again.
    pub(crate) id: String,
    /// What stands before the name, such as a namespace.
    pub(crate) before: String,
    /// The name.
    pub(crate) name: String,
    /// Its kind, in camel case.
    pub(crate) kind: String,
    /// More about it.
    pub(crate) about: String,
    /// Figures about it.
    pub(crate) facts: Vec<String>,
    /// When it was written, between 0 and 1, each with a label.
    pub(crate) writes: Vec<(f64, String)>,
    /// What it can be filtered by.
    pub(crate) labels: Vec<(Facet, String)>,
    /// Its findings.
    pub(crate) findings: Vec<(Action, &'static Rule)>,
    /// What is shown when it is opened.
    pub(crate) parts: Vec<EntryPart>,
}

impl Entry {
    /// The most severe action of its findings.
    pub(super) fn worst(&self) -> Option<Action> {
        self.findings.iter().map(|(action, _)| *action).max()
    }

    /// The value of a facet that entries have; findings have the others.
    pub(super) fn label(&self, wanted: Facet) -> Option<&str> {
        self.labels.iter().find(|(facet, _)| *facet == wanted).map(|(_, value)| value.as_str())
    }

    /// The entry; one that is shown later is shown by the script, on paper, and where there are no scripts.
    pub(super) fn render(&self, is_later: bool, out: &mut String) {
        let hidden = if is_later { " hidden" } else { "" };
        let _ = write!(out, "<li class=\"entry\"{hidden} data-entry=\"{}\"", escape::line(&self.id));
        if !self.findings.is_empty() {
            let found = self.findings.iter().map(|(action, rule)| format!("{} {}", action.name(), rule.id));
            let _ = write!(out, " data-found=\"{}\"", escape::line(&found.collect::<Vec<_>>().join(",")));
        }
        table::attributes(&self.labels, out);
        *out += "><details><summary>";
        match self.worst() {
            Some(worst) => {
                let word = worst.name();
                let _ = write!(out, "<span class=\"sign {word}\">{word}</span>");
            }
            None => *out += "<span></span>",
        }
        let _ = write!(
            out,
            "<span><span class=\"name\"><span class=\"soft\">{}</span><b>{}</b></span><span class=\"of\">{}</span></span>",
            escape::line(&self.before),
            escape::line(&self.name),
            self.second_line(),
        );
        self.tags(out);
        *out += "</summary>\n<div class=\"body\">";
        *out += &part::copy("link", "Copy link", "Copy the link to this entry");
        self.parts.iter().for_each(|part| part.render(out));
        *out += "</div></details></li>\n";
    }

    fn second_line(&self) -> String {
        let parts = [escape::camel_case(&self.kind), escape::line(&self.about)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    /// Each rule once, the worst first; or the figures.
    fn tags(&self, out: &mut String) {
        *out += "<span class=\"tags\">";
        for severity in SEVERITIES {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, rule) in self.findings.iter().filter(|(action, _)| *action == severity) {
                *counts.entry(rule.id).or_default() += 1;
            }
            for (rule, count) in counts {
                let times = if count > 1 { format!(" ×{count}") } else { String::new() };
                let _ = write!(out, "<span class=\"tag sign {}\">{rule}{times}</span>", severity.name());
            }
        }
        if !self.writes.is_empty() {
            strip::render(&self.writes, out);
        }
        for fact in &self.facts {
            let _ = write!(out, "<span class=\"fact\">{}</span>", escape::line(fact));
        }
        *out += "</span>";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules;

    #[test]
    fn rules_are_named_once_and_the_worst_comes_first() {
        let rule = |id| rules::find(id).unwrap();
        let findings = vec![
            (Action::Warn, rule("nad/dotted-name")),
            (Action::Deny, rule("nad/schema")),
            (Action::Warn, rule("nad/dotted-name")),
            (Action::Warn, rule("nad/schema")),
        ];
        let mut out = String::new();
        Entry { findings, ..Entry::default() }.render(false, &mut out);
        assert!(
            out.contains("data-found=\"warn nad/dotted-name,deny nad/schema,warn nad/dotted-name,warn nad/schema\""),
            "{out}"
        );
        assert!(out.contains("<summary><span class=\"sign deny\">deny</span>"), "{out}");
        let tags = "<span class=\"tag sign deny\">nad/schema</span><span class=\"tag sign warn\">nad/dotted-name ×2</span>\
                    <span class=\"tag sign warn\">nad/schema</span></span>";
        assert!(out.contains(tags), "{out}");
    }
}
