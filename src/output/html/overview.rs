//! The figures at the top of a page.

use std::fmt::Write as _;

use super::facet::{SEVERITIES, plural};
use super::{Entry, chart, escape};
use crate::policy::Action;

/// A number and what it counts.
pub(crate) struct Figure {
    /// What it counts.
    pub(crate) label: &'static str,
    /// The number.
    pub(crate) number: String,
    /// A few words below it.
    pub(crate) more: String,
    /// The findings it counts: it filters by them.
    pub(crate) severity: Option<Action>,
}

impl Figure {
    /// A number by itself.
    pub(crate) fn plain(label: &'static str, number: String) -> Self {
        Self { label, number, more: String::new(), severity: None }
    }

    /// How many findings have an action.
    pub(crate) fn findings(severity: Action, number: usize, more: String) -> Self {
        Self { label: plural(severity), number: number.to_string(), more, severity: Some(severity) }
    }

    fn render(&self, out: &mut String) {
        let class = self.severity.map_or("", Action::name);
        let _ = write!(out, "<li class=\"card {class}\">");
        let is_zero = self.number == "0";
        let sign = if self.severity.is_some() { " class=\"sign\"" } else { "" };
        let zero = if is_zero { " class=\"zero\"" } else { "" };
        let more =
            if self.more.is_empty() { String::new() } else { format!("<small>{}</small>", escape::line(&self.more)) };
        let inner = format!("<span{sign}>{}</span><b{zero}>{}</b>{more}", self.label, escape::line(&self.number));
        let _ = match self.severity {
            Some(severity) if !is_zero => write!(
                out,
                "<button class=\"figure\" type=\"button\" data-pick=\"severity\" value=\"{}\" aria-pressed=\"false\">{inner}</button></li>",
                severity.name()
            ),
            _ => writeln!(out, "<div class=\"figure\">{inner}</div></li>"),
        };
    }
}

/// The figures, and which part of all objects has findings of which severity.
pub(super) fn render(figures: &[Figure], entries: &[Entry], objects: Option<usize>, out: &mut String) {
    *out += "<ul class=\"figures\">\n";
    figures.iter().for_each(|figure| figure.render(out));
    *out += "</ul>\n";
    if let Some(objects) = objects.filter(|objects| *objects > 0 && !entries.is_empty()) {
        let count = |severity: Action| entries.iter().filter(|entry| entry.worst() == Some(severity)).count();
        let segments = SEVERITIES.map(|severity| (severity.name(), count(severity)));
        chart::bar(" share", &segments, objects, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_findings_that_exist_can_be_chosen() {
        for (figure, want) in [
            (Figure::findings(Action::Deny, 2, String::new()), true),
            (Figure::findings(Action::Deny, 0, String::new()), false),
            (Figure::plain("Objects", "7".to_owned()), false),
        ] {
            let mut out = String::new();
            figure.render(&mut out);
            assert_eq!(out.contains("<button"), want, "{out}");
        }
    }
}
