//! The text around a finding.

use std::ops::Range;

/// The longest line that is shown as it is.
pub(super) const MAX_LINE_BYTES: usize = 2000;
/// How many bytes of a longer one are shown on either side of the place.
const CONTEXT_BYTES: usize = 40;

/// The line that a finding is on.
pub(super) fn line_of(text: &str, span: &Range<usize>) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    before.rfind('\n').map_or(0, |newline| newline + 1)..span.end + after.find('\n').unwrap_or(after.len())
}

/// The text around a place.
pub(super) fn around(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.saturating_sub(CONTEXT_BYTES));
    let end = text.ceil_char_boundary((span.end + CONTEXT_BYTES).min(text.len()));
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_excerpt_end_at_their_bounds() {
        let text = "one\ntwo three\nfour";
        let of = |word: &str| text.find(word).map(|start| start..start + word.len()).unwrap();
        for (word, want) in [("one", "one"), ("two", "two three"), ("three", "two three"), ("four", "four")] {
            assert_eq!(text.get(line_of(text, &of(word))), Some(want), "{word}");
        }
        let long = format!("{}x{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(long.get(around(&long, &(100..101))), Some(&*format!("{}x{}", "a".repeat(40), "b".repeat(40))));
        assert_eq!(long.get(around(&long, &(0..1))), Some(&*"a".repeat(41)));
        assert_eq!(long.get(around(&long, &(200..201))), Some(&*"b".repeat(41)));
    }
}
