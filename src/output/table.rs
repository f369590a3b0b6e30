//! Aligned columns for a terminal.
//!
//! By hand: no crate in the tree formats tables, and this is all that is needed of one.

use std::fmt::Write;

/// Rows below a head, each column as wide as its widest cell. Columns without words, such as numbers, are aligned to the right.
pub(crate) fn aligned(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|title| title.len())).max().unwrap_or_default()
    };
    // Numbers stand on the right.
    let is_number = |cell: &String| !cell.contains(|c: char| c.is_ascii_lowercase());
    let is_right = |column: usize| rows.iter().filter_map(|row| row.get(column)).all(is_number);
    let columns: Vec<_> = (0..head.len()).map(|column| (width(column), is_right(column))).collect();
    let mut out = String::new();
    let mut line = |cells: Vec<&str>| {
        let mut text = String::new();
        for (cell, (width, is_right)) in cells.iter().zip(&columns) {
            let _ = if *is_right { write!(text, "{cell:>width$}  ") } else { write!(text, "{cell:<width$}  ") };
        }
        out += text.trim_end();
        out.push('\n');
    };
    line(head.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
    out
}
