//! The page: its head, an overview, the lists, and the script.

use std::fmt::Write as _;

use super::{Entry, Facet, Figure, HtmlRow, chart, escape, filters, overview, table};

/// The script and style of the page; the Content-Security-Policy allows only these, by hash.
///
/// Its files share one scope, which is not that of the window.
const SCRIPT: &str = concat!(
    "\n\"use strict\";\n{\n",
    include_str!("page/entries.js"),
    include_str!("page/filter.js"),
    include_str!("page/charts.js"),
    include_str!("page/address.js"),
    include_str!("page/copy.js"),
    include_str!("page/step.js"),
    include_str!("page/keyboard.js"),
    include_str!("page/start.js"),
    "}\n",
);
const SCRIPT_HASH: &str = "sha256-RkzT5SABBGWSCb31rvk7vdhBeBqlNrLIZ0GgKwNKI1I=";
const STYLE: &str = concat!(
    "\n",
    include_str!("page/colours.css"),
    include_str!("page/layout.css"),
    include_str!("page/overview.css"),
    include_str!("page/filters.css"),
    include_str!("page/entries.css"),
    include_str!("page/print.css"),
);
const STYLE_HASH: &str = "sha256-WlcQosaT43B2KZvjVfGgI6ziKqqNoVTuuG1Mu48IHic=";

/// How many entries of a list are shown at first; `entries.js` has the same number.
pub(super) const CHUNK: usize = 200;

/// A page.
#[derive(Default)]
pub(crate) struct HtmlPage {
    /// What it is about.
    pub(crate) title: &'static str,
    /// The result, in a few words.
    pub(crate) lead: String,
    /// What to say where nothing was found.
    pub(crate) clear: String,
    /// What readers must know to trust the result.
    pub(crate) alerts: Vec<String>,
    /// The figures at the top.
    pub(crate) figures: Vec<Figure>,
    /// How many objects were judged, where entries are objects.
    pub(crate) objects: Option<usize>,
    /// What there is a chart of.
    pub(crate) charts: Vec<Facet>,
    /// What can be filtered by.
    pub(crate) filters: Vec<Facet>,
    /// The lists below; the first one has the findings.
    pub(crate) lists: Vec<HtmlList>,
    /// Notes at the end.
    pub(crate) notes: Vec<String>,
}

/// A list.
pub(crate) enum HtmlList {
    /// Entries that open.
    Entries {
        /// What is in it.
        title: &'static str,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// Rows of texts and numbers.
    Table {
        /// What is in it.
        title: &'static str,
        /// The column titles.
        head: Vec<&'static str>,
        /// How many columns, from the left, hold text.
        texts: usize,
        /// The rows.
        rows: Vec<HtmlRow>,
    },
}

impl HtmlPage {
    /// The whole page.
    pub(crate) fn render(&self) -> String {
        let title = escape::line(self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        );
        let has_entries = self.lists.iter().any(|list| !list.is_empty());
        if has_entries {
            out += "<a class=\"skip\" href=\"#list\">Skip to the list</a>\n";
        }
        let _ = write!(
            out,
            "<header><h1>{title}</h1><p class=\"lead\">{}</p></header>\n<main>\n",
            escape::line(&self.lead)
        );
        for alert in &self.alerts {
            let _ =
                writeln!(out, "<p class=\"alert card deny\"><span class=\"sign\"></span>{}</p>", escape::lines(alert));
        }
        let findings = match self.lists.first() {
            Some(HtmlList::Entries { entries, .. }) => entries.as_slice(),
            _ => &[],
        };
        overview::render(&self.figures, findings, self.objects, &mut out);
        if findings.is_empty() && !self.clear.is_empty() {
            let _ = writeln!(
                out,
                "<p class=\"verdict card\"><span class=\"sign pass\">{}</span></p>",
                escape::line(&self.clear)
            );
        }
        if !findings.is_empty() {
            out += "<div class=\"charts\">\n";
            for facet in &self.charts {
                chart::render(*facet, findings, self.objects.is_some(), &mut out);
            }
            out += "</div>\n";
        }
        if has_entries {
            let count = findings.iter().map(|entry| entry.findings.len()).sum();
            filters::render(&self.filters, self.lists.iter().flat_map(HtmlList::values), count, &mut out);
        }
        out += "<div id=\"list\" tabindex=\"-1\">\n";
        self.lists.iter().for_each(|list| list.render(&mut out));
        out += "</div>\n</main>\n";
        self.render_end(has_entries, &mut out);
        out
    }

    fn render_end(&self, has_script: bool, out: &mut String) {
        *out += "<footer>";
        if !self.notes.is_empty() {
            *out += "<h2>Notes</h2><ul>\n";
            for note in &self.notes {
                let _ = writeln!(out, "<li>{}</li>", escape::lines(note));
            }
            *out += "</ul>";
        }
        *out += "</footer>\n";
        if has_script {
            let _ = write!(
                out,
                "<p id=\"announcement\" class=\"unseen\" role=\"status\"></p>\n<script>{SCRIPT}</script>\n"
            );
        }
        *out += "</body>\n</html>\n";
    }
}

impl HtmlList {
    fn len(&self) -> usize {
        match self {
            Self::Entries { entries, .. } => entries.len(),
            Self::Table { rows, .. } => rows.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What its entries can be filtered by.
    fn values(&self) -> Box<dyn Iterator<Item = filters::FacetValue<'_>> + '_> {
        fn of(labels: &[(Facet, String)]) -> impl Iterator<Item = filters::FacetValue<'_>> {
            labels.iter().map(|(facet, value)| (*facet, value.as_str()))
        }
        match self {
            Self::Entries { entries, .. } => Box::new(entries.iter().flat_map(|entry| {
                let findings = entry.findings.iter();
                let found =
                    findings.flat_map(|(action, rule)| [(Facet::Severity, action.name()), (Facet::Rule, rule.id)]);
                of(&entry.labels).chain(found)
            })),
            Self::Table { rows, .. } => Box::new(rows.iter().flat_map(|row| of(&row.labels))),
        }
    }

    fn render(&self, out: &mut String) {
        if self.is_empty() {
            return;
        }
        let (Self::Entries { title, .. } | Self::Table { title, .. }) = self;
        let _ = write!(
            out,
            "<section data-list><div class=\"head\"><h2>{title}<span class=\"count\">{}</span></h2>",
            self.len()
        );
        if matches!(self, Self::Entries { .. }) {
            *out += "<button class=\"plain expand needs-script\" type=\"button\">Open or close all</button>";
        }
        *out += "</div>\n";
        match self {
            Self::Entries { entries, .. } => {
                *out += "<div class=\"entries card\"><ol>\n";
                entries.iter().enumerate().for_each(|(number, entry)| entry.render(number >= CHUNK, out));
                *out += "</ol>";
            }
            Self::Table { head, texts, rows, .. } => {
                *out += "<div class=\"card\">";
                table::render(head, *texts, rows, out);
            }
        }
        let hidden = if self.len() > CHUNK { "" } else { " hidden" };
        let _ = writeln!(
            out,
            "<p class=\"empty\" hidden>Nothing matches the search and the filters.</p></div>\
             <button class=\"plain rest needs-script\" type=\"button\"{hidden}>Show more</button></section>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::csp_hash;
    use super::*;
    use crate::output::{EntryPart, ShownFinding};
    use crate::policy::{Action, rules};

    /// A browser runs the script only if its hash is the one in the page's head.
    #[test]
    fn csp_hashes_match_script_and_style() {
        let found = [SCRIPT, STYLE].map(csp_hash);
        assert_eq!(found, [SCRIPT_HASH, STYLE_HASH], "the hashes of the script and of the style");
        let html = nasty_page("x").render();
        assert!(html.contains(&format!("script-src '{SCRIPT_HASH}'")) && !html.contains("unsafe"));
        assert!(html.contains(&format!("<script>{SCRIPT}</script>")));
        // Neither holds what would end its element.
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
    }

    /// A page with a text in every place that a page has for text.
    fn nasty_page(nasty: &'static str) -> HtmlPage {
        let text = || nasty.to_owned();
        let finding = ShownFinding {
            action: Action::Deny,
            rule: "nad/schema",
            pointer: text(),
            place: text(),
            message: text(),
            excerpt: Some((1, [text(), text(), text()])),
            notes: vec![text()],
            help: text(),
        };
        let parts = vec![
            EntryPart::Finding(Box::new(finding)),
            EntryPart::Text { title: "t", text: text() },
            EntryPart::Preformatted { title: "t", text: text() },
            EntryPart::Change { lines: format!("+{nasty}\n-{nasty}\n {nasty}\n"), is_whole: true },
            EntryPart::Object { yaml: text(), is_cut: false },
        ];
        let labels = || vec![(Facet::Namespace, text()), (Facet::Kind, text()), (Facet::Resource, text())];
        let entry = Entry {
            id: text(),
            before: text(),
            name: text(),
            kind: text(),
            about: text(),
            facts: vec![text()],
            writes: vec![(0.5, text())],
            labels: labels(),
            findings: vec![(Action::Deny, rules::find("nad/schema").unwrap())],
            parts,
        };
        HtmlPage {
            title: "t",
            lead: text(),
            clear: String::new(),
            alerts: vec![text()],
            figures: vec![Figure { label: "f", number: text(), more: text(), severity: Some(Action::Deny) }],
            objects: Some(1),
            charts: vec![Facet::Rule, Facet::Namespace],
            filters: vec![Facet::Namespace, Facet::Kind],
            lists: vec![
                HtmlList::Entries { title: "l", entries: vec![entry] },
                HtmlList::Table {
                    title: "t",
                    head: vec!["h"],
                    texts: 1,
                    rows: vec![HtmlRow { cells: vec![text()], labels: labels() }],
                },
            ],
            notes: vec![text()],
        }
    }

    #[test]
    fn untrusted_text_is_escaped_everywhere() {
        let nasty = "</script><script>alert('x')</script>\" onload=\"y\u{1b}\u{202e}&";
        let html = nasty_page(nasty).render();
        assert_eq!(html.matches("<script>").count(), 1, "only the page's own script");
        assert_eq!(html.matches("</script>").count(), 1, "only the page's own script ends");
        assert!(!html.contains(" onload=\"") && !html.contains(['\u{1b}', '\u{202e}']));
        // As often as an unsuspicious word of its own: nothing is lost.
        let plain = nasty_page("unsuspicious").render();
        assert_eq!(html.matches("alert(&#39;x&#39;)").count(), plain.matches("unsuspicious").count());
        assert!(
            !html.contains("http:") && !html.contains("https:") && !html.contains("src="),
            "the page requests nothing else"
        );
    }

    #[test]
    fn page_without_entries_has_neither_filters_nor_a_script() {
        let html = HtmlPage { title: "t", lead: "No findings".to_owned(), ..HtmlPage::default() }.render();
        assert!(!html.contains("<script") && !html.contains("id=\"search\"") && html.contains("No findings"), "{html}");
    }
}
