//! The formatting of the config.

use crate::json::{Document, Error, MAX_BYTES, Problem};

/// Go's `json.Indent` with four spaces: every token stays, only the blanks between them change. A text with many values that are nested
/// deeply becomes many times as long, so that the limit on the length counts here once more.
pub(super) fn indent(text: &str) -> Result<String, Error> {
    Document::parse(text)?;
    let mut out = String::with_capacity(text.len() * 2);
    let (mut rest, mut depth, mut is_opened) = (text, 0, false);
    while let Some(first) = rest.bytes().next() {
        if out.len() > MAX_BYTES {
            break;
        }
        let token = match first {
            b' ' | b'\t' | b'\r' | b'\n' => {
                rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
                continue;
            }
            b'"' => string(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at_checked(token).unwrap_or((rest, ""));
        let is_closing = matches!(first, b'}' | b']');
        match (is_opened, is_closing) {
            (true, false) => {
                depth += 1;
                newline(&mut out, depth);
            }
            (false, true) => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
            }
            _ => {}
        }
        out.push_str(token);
        match first {
            b',' => newline(&mut out, depth),
            b':' => out.push(' '),
            _ => {}
        }
        is_opened = matches!(first, b'{' | b'[');
        rest = behind;
    }
    if out.len() > MAX_BYTES { Err(Error { offset: 0, problem: Problem::TooLarge }) } else { Ok(out) }
}

fn newline(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("    ", depth));
}

/// The length of the string that a text begins with, quotes included.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}
