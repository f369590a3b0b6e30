//! Rows of a table: their cells, and the details that open on demand.

use std::fmt::Write as _;

use super::escaped;

/// A row. With details it can be opened.
#[derive(Default)]
pub(crate) struct HtmlRow {
    /// The cells.
    pub(crate) cells: Vec<Cell>,
    /// What is shown below it when it is opened; often nothing.
    pub(crate) details: Vec<Block>,
}

/// The content of a cell.
pub(crate) enum Cell {
    /// Text, or a number.
    Text(String),
    /// Marks on a timeline, each between 0 and 1, with a label.
    Strip(Vec<(f64, String)>),
}

/// A part of the details, with a title.
pub(crate) struct Block {
    title: String,
    text: String,
    kind: BlockKind,
}

#[derive(PartialEq)]
enum BlockKind {
    Text,
    Preformatted,
    Diff,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for HtmlRow {
    fn from(cells: Vec<String>) -> Self {
        Self { cells: cells.into_iter().map(Cell::from).collect(), details: Vec::new() }
    }
}

impl Block {
    /// A few words.
    pub(crate) fn text(title: &str, text: &str) -> Self {
        Self { title: title.to_owned(), text: text.to_owned(), kind: BlockKind::Text }
    }

    /// Text of which every blank counts, such as a config.
    pub(crate) fn preformatted(title: &str, text: &str) -> Self {
        Self { kind: BlockKind::Preformatted, ..Self::text(title, text) }
    }

    /// A unified diff; additions and removals are styled.
    pub(crate) fn diff(title: &str, text: &str) -> Self {
        Self { kind: BlockKind::Diff, ..Self::text(title, text) }
    }

    fn render(&self, out: &mut String) {
        let _ = write!(out, "<h3>{}</h3>", escaped(&self.title));
        let _ = match self.kind {
            BlockKind::Text => write!(out, "<p>{}</p>", escaped(&self.text)),
            // The first line break after the tag is dropped by every browser; without one it would be the text's own.
            BlockKind::Preformatted => write!(out, "<pre>\n{}</pre>", escaped(&self.text)),
            BlockKind::Diff => write!(out, "<pre class=\"diff\">\n{}</pre>", diff(&self.text)),
        };
    }
}

impl HtmlRow {
    /// The row, and its details as a second one, in a `tbody` of their own: they are shown and hidden together.
    pub(super) fn render(&self, texts: usize, out: &mut String) {
        *out += "<tbody><tr>";
        for (column, cell) in self.cells.iter().enumerate() {
            let kind = if column < texts { "" } else { " class=\"number\"" };
            let _ = write!(out, "<td{kind}>");
            match cell {
                Cell::Text(text) => *out += &escaped(text),
                Cell::Strip(moments) => strip(moments, out),
            }
            *out += "</td>";
        }
        *out += "</tr>";
        if !self.details.is_empty() {
            let _ = write!(out, "\n<tr class=\"details\"><td colspan=\"{}\">", self.cells.len());
            self.details.iter().for_each(|block| block.render(out));
            *out += "</td></tr>";
        }
        *out += "</tbody>\n";
    }
}

/// Each line of a diff in an element for its kind.
fn diff(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (number, line) in text.lines().enumerate() {
        let is_head = number < 2 && (line.starts_with("--- ") || line.starts_with("+++ "));
        let element = match line.as_bytes().first() {
            Some(b'+') if !is_head => Some("ins"),
            Some(b'-') if !is_head => Some("del"),
            _ => None,
        };
        let line = escaped(line);
        let _ = match element {
            Some(element) => writeln!(out, "<{element}>{line}</{element}>"),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// A line of time with a mark for each moment.
fn strip(moments: &[(f64, String)], out: &mut String) {
    const WIDTH: f64 = 200.0;
    let _ = write!(
        out,
        "<svg class=\"strip\" viewBox=\"-2 0 {} 16\" role=\"img\" aria-label=\"{} moments\"><path d=\"M0 8h{WIDTH}\"/>",
        WIDTH + 4.0,
        moments.len()
    );
    for (at, label) in moments {
        // An invalid mark is placed at the start.
        let at = if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) } * WIDTH;
        let _ = write!(out, "<path class=\"mark\" d=\"M{at:.1} 2v12\"><title>{}</title></path>", escaped(label));
    }
    *out += "</svg>";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_marks_added_and_removed_lines() {
        // (diff, HTML)
        let table = [
            ("", ""),
            (" a\n+b\n-c\n", " a\n<ins>+b</ins>\n<del>-c</del>\n"),
            ("--- x\n+++ y\n@@ -1 +1 @@\n--- z\n", "--- x\n+++ y\n@@ -1 +1 @@\n<del>--- z</del>\n"),
            ("--- x\n+++ y\n--- z\n", "--- x\n+++ y\n<del>--- z</del>\n"),
            ("+<b>", "<ins>+&lt;b&gt;</ins>\n"),
        ];
        for (text, want) in table {
            assert_eq!(diff(text), want, "{text:?}");
        }
    }

    #[test]
    fn timeline_marks_stay_in_range() {
        let mut out = String::new();
        let moments = [0.25, -1.0, 7.0, f64::NAN].map(|at| (at, "m".to_owned()));
        strip(&moments, &mut out);
        for at in ["M50.0 2", "M0.0 2", "M200.0 2"] {
            assert!(out.contains(at), "{at}: {out}");
        }
        assert!(!out.contains("NaN"), "{out}");
    }

    #[test]
    fn only_a_row_with_details_can_be_opened() {
        let rendered = |row: HtmlRow| {
            let mut out = String::new();
            row.render(1, &mut out);
            out
        };
        let plain = HtmlRow::from(vec!["a".to_owned(), "1".to_owned()]);
        assert_eq!(rendered(plain), "<tbody><tr><td>a</td><td class=\"number\">1</td></tr></tbody>\n");
        let mut row = HtmlRow::from(vec!["a".to_owned(), "1".to_owned()]);
        row.details = vec![Block::preformatted("Config", "\n  x")];
        let opened = rendered(row);
        assert!(
            opened.contains("<tr class=\"details\"><td colspan=\"2\"><h3>Config</h3><pre>\n\n  x</pre>"),
            "{opened}"
        );
    }

    #[test]
    fn each_kind_of_block_has_its_element() {
        for (block, want) in [
            (Block::text("t", "+a"), "<h3>t</h3><p>+a</p>"),
            (Block::preformatted("t", "+a"), "<h3>t</h3><pre>\n+a</pre>"),
            (Block::diff("t", "+a"), "<h3>t</h3><pre class=\"diff\">\n<ins>+a</ins>\n</pre>"),
        ] {
            let mut out = String::new();
            block.render(&mut out);
            assert_eq!(out, want);
        }
    }
}
