//! A self-contained HTML report: no network, no other files. It supports light and dark mode, printing, search and filters.
//!
//! The URL fragment sets the initial view: `#q=words` searches, `&only=value` filters the tables that have this value, and
//! `&open=1` opens every row. Without scripts everything is shown and open.
//!
//! No template engine is in the tree: a page is a head, tables and a script, and all text goes through `escaped`.

mod report;
mod rows;

use std::fmt::Write as _;

pub use report::Html;
pub(crate) use rows::{Block, Cell, HtmlRow};

use crate::visible;

/// The script and style of the page; the Content-Security-Policy allows only these, by hash.
const SCRIPT: &str = concat!("\n", include_str!("page.js"));
const SCRIPT_HASH: &str = "sha256-/FhDy3Pk7WBfOgV0kBtfziijSKvZpXkrwHlCt0YbR4I=";
const STYLE: &str = concat!("\n", include_str!("page.css"));
const STYLE_HASH: &str = "sha256-LYWjRXdFGanm903SLiZfZE3+aIUxFAEIW6E3DjtmNlc=";

/// A page.
pub(crate) struct HtmlPage<'a> {
    /// What it is about.
    pub(crate) title: &'a str,
    /// The figures at the top: a number, and what it counts.
    pub(crate) figures: Vec<(String, &'static str)>,
    /// The tables below.
    pub(crate) tables: Vec<HtmlTable>,
    /// Notes at the end.
    pub(crate) notes: Vec<String>,
}

/// A table. It is searched by its text, and can be filtered by one of its columns.
pub(crate) struct HtmlTable {
    /// What is in it.
    pub(crate) title: &'static str,
    /// The column titles.
    pub(crate) head: Vec<&'static str>,
    /// What is below.
    pub(crate) rows: Vec<HtmlRow>,
    /// The column to filter by.
    pub(crate) filter: usize,
    /// How many columns, from the left, hold text; the others hold numbers.
    pub(crate) texts: usize,
}

impl HtmlPage<'_> {
    /// The whole page.
    pub(crate) fn render(&self) -> String {
        let title = escaped(self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <header><h1>{title}</h1>\n<input id=\"search\" type=\"search\" placeholder=\"Search\" aria-label=\"Search\"></header>\n<ul class=\"figures\">\n"
        );
        for (number, what) in &self.figures {
            let _ = writeln!(out, "<li><b>{}</b> {}</li>", escaped(number), escaped(what));
        }
        out += "</ul>\n";
        self.tables.iter().for_each(|table| table.render(&mut out));
        out += "<footer><ul>\n";
        for note in &self.notes {
            let _ = writeln!(out, "<li>{}</li>", escaped(note));
        }
        let _ = write!(out, "</ul></footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
        out
    }
}

impl HtmlTable {
    fn render(&self, out: &mut String) {
        let _ = writeln!(out, "<section><h2>{} <span class=\"count\"></span></h2>", escaped(self.title));
        if self.rows.is_empty() {
            *out += "<p>none</p></section>\n";
            return;
        }
        let _ = writeln!(out, "<div class=\"scroll\"><table data-filter=\"{}\">\n<thead><tr>", self.filter);
        for title in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(title));
        }
        *out += "</tr></thead>\n";
        self.rows.iter().for_each(|row| row.render(self.texts, out));
        *out += "</table></div></section>\n";
    }
}

/// Text escaped for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible::lines(text).chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser runs the script only if its hash is the one in the page's head.
    #[test]
    fn csp_hashes_match_script_and_style() {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let hashes =
            provider.cipher_suites.iter().filter_map(|suite| suite.tls13()).map(|suite| suite.common.hash_provider);
        let sha256 = hashes.into_iter().find(|hash| hash.output_len() == 32).unwrap();
        for (text, want) in [(SCRIPT, SCRIPT_HASH), (STYLE, STYLE_HASH)] {
            let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, sha256.hash(text.as_bytes()));
            assert_eq!(format!("sha256-{hash}"), want);
        }
        let html = HtmlPage { title: "t", figures: Vec::new(), tables: Vec::new(), notes: Vec::new() }.render();
        assert!(html.contains(&format!("script-src '{SCRIPT_HASH}'")) && !html.contains("unsafe"));
        assert!(html.contains(&format!("<script>{SCRIPT}</script>")));
    }

    #[test]
    fn untrusted_text_is_escaped() {
        let nasty = "<script>alert('x')</script>\" onload=\"y\u{1b}\u{202e}&";
        let strip = Cell::Strip(vec![(0.5, nasty.to_owned())]);
        let blocks = vec![
            Block::text(nasty, nasty),
            Block::preformatted(nasty, nasty),
            Block::diff(nasty, &format!("+{nasty}\n-{nasty}\n")),
        ];
        let row = HtmlRow { cells: vec![nasty.to_owned().into(), strip], details: blocks };
        let table = HtmlTable { title: "t", head: vec!["h"], rows: vec![row], filter: 0, texts: 1 };
        let page = HtmlPage {
            title: nasty,
            figures: vec![(nasty.to_owned(), "f")],
            tables: vec![table],
            notes: vec![nasty.to_owned()],
        };
        let html = page.render();
        assert_eq!(html.matches("<script>").count(), 1, "only the page's own script");
        assert!(!html.contains(" onload=\"") && !html.contains(['\u{1b}', '\u{202e}']));
        assert!(html.contains("y\\u{1b}\\u{202e}&amp;"));
        assert_eq!(html.matches("&lt;script&gt;").count(), 13);
        assert!(
            !html.contains("http:") && !html.contains("https:") && !html.contains("src="),
            "the page requests nothing else"
        );
    }
}
