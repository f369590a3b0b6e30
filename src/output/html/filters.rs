//! The search and the filters. They are in the page from the start, so that nothing moves when the script runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::facet::SEVERITIES;
use super::{Facet, escape};

/// A value that can be chosen.
pub(super) type FacetValue<'a> = (Facet, &'a str);

/// The form for these facets and the values that the lists have.
pub(super) fn render<'a>(
    facets: &[Facet],
    values: impl Iterator<Item = FacetValue<'a>>,
    findings: usize,
    out: &mut String,
) {
    let values: BTreeSet<_> = values.collect();
    *out += "<div class=\"filters\" role=\"search\">\n<div class=\"fields\">\
             <label>Search<input id=\"search\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" placeholder=\"Every word, in any field\"></label>";
    for facet in facets {
        let _ = write!(
            out,
            "<label>{}<select name=\"{}\" autocomplete=\"off\"><option value=\"\">All {}</option>",
            facet.label(),
            facet.name(),
            facet.plural().to_lowercase()
        );
        let mut of_facet: Vec<_> = values.iter().filter(|(one, _)| one == facet).map(|(_, value)| *value).collect();
        if *facet == Facet::Severity {
            of_facet.sort_by_key(|value| SEVERITIES.iter().position(|severity| severity.name() == *value));
        }
        for value in of_facet {
            let shown = escape::line(&facet.shown(value));
            let _ = write!(out, "<option value=\"{}\">{shown}</option>", escape::line(value));
        }
        *out += "</select></label>";
    }
    let plural = if findings == 1 { "" } else { "s" };
    let _ = write!(
        out,
        "<button id=\"reset\" class=\"plain\" type=\"button\" disabled>Clear</button></div>\n\
         <div class=\"status\"><p id=\"status\" role=\"status\">{findings} finding{plural} shown</p>\
         <p class=\"keys\"><kbd>/</kbd> search <kbd>↑</kbd> <kbd>↓</kbd> move <kbd>Enter</kbd> open</p></div></div>\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_listed_once_and_severities_by_weight() {
        let values = [
            (Facet::Severity, "warn"),
            (Facet::Severity, "deny"),
            (Facet::Namespace, "b\""),
            (Facet::Namespace, ""),
            (Facet::Namespace, "b\""),
        ];
        let mut out = String::new();
        render(&[Facet::Severity, Facet::Namespace], values.into_iter(), 1, &mut out);
        for want in [
            "<option value=\"\">All severities</option><option value=\"deny\">deny</option><option value=\"warn\">warn</option></select>",
            "<option value=\"\">(no namespace)</option><option value=\"b&quot;\">b&quot;</option></select>",
            "1 finding shown",
        ] {
            assert!(out.contains(want), "{want}: {out}");
        }
    }
}
