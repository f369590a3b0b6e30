//! A table of texts and numbers. Its rows are searched and filtered like entries.

use std::fmt::Write as _;

use super::page::CHUNK;
use super::{Facet, escape};

/// A row.
pub(crate) struct HtmlRow {
    /// The cells.
    pub(crate) cells: Vec<String>,
    /// What it can be filtered by.
    pub(crate) labels: Vec<(Facet, String)>,
}

/// A table with these column titles; the first `texts` columns hold text and the others numbers.
pub(super) fn render(head: &[&str], texts: usize, rows: &[HtmlRow], out: &mut String) {
    let class = |column: usize| if column < texts { "" } else { " class=\"number\"" };
    *out += "<div class=\"scroll\"><table>\n<thead><tr>";
    for (column, title) in head.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape::line(title));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for (number, row) in rows.iter().enumerate() {
        *out += if number < CHUNK { "<tr data-entry" } else { "<tr hidden data-entry" };
        attributes(&row.labels, out);
        out.push('>');
        for (column, cell) in row.cells.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(column), escape::line(cell));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div>\n";
}

/// The attributes that the script filters by.
pub(super) fn attributes(labels: &[(Facet, String)], out: &mut String) {
    for (facet, value) in labels {
        let _ = write!(out, " data-{}=\"{}\"", facet.name(), escape::line(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numbers_stand_over_their_numbers() {
        let row = HtmlRow {
            cells: vec!["<a>".to_owned(), "1".to_owned()],
            labels: vec![(Facet::Resource, "r\"s".to_owned())],
        };
        let mut out = String::new();
        render(&["Who", "Writes"], 1, &[row], &mut out);
        assert!(out.contains("<th scope=\"col\">Who</th><th scope=\"col\" class=\"number\">Writes</th>"), "{out}");
        assert!(
            out.contains(
                "<tr data-entry data-resource=\"r&quot;s\"><td>&lt;a&gt;</td><td class=\"number\">1</td></tr>"
            )
        );
    }
}
