//! SWAR: checks eight bytes of text at once, because most text needs no special handling.

/// The same byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The next eight bytes, if there are so many.
#[inline(always)]
pub(super) fn chunk_at(text: &[u8], at: usize) -> Option<[u8; 8]> {
    text.get(at..)?.first_chunk().copied()
}

/// Steps over spaces: indentation.
#[inline]
pub(super) fn behind_spaces(text: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = chunk_at(text, at) {
        let spaces = (u64::from_le_bytes(chunk) ^ all(b' ')).trailing_zeros() as usize / 8;
        at += spaces;
        if spaces < chunk.len() {
            return at;
        }
    }
    at + text.get(at..).unwrap_or_default().iter().take_while(|byte| **byte == b' ').count()
}

/// How many of these eight bytes precede the first that ends an unescaped run; 8 if none does.
#[inline(always)]
pub(super) fn plain_in_string(bytes: [u8; 8]) -> usize {
    let word = u64::from_le_bytes(bytes);
    // What is subtracted from a byte borrows from its top bit only where the byte is less. A borrow may go on to bytes behind,
    // but the first one marked is right, and nobody looks at the others.
    let quote = (word ^ all(b'"')).wrapping_sub(all(1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(1));
    let control = word.wrapping_sub(all(0x20));
    first_marked((quote | backslash | control) & !word)
}

/// The same where only the end of the string is looked for, and the escapes that might hide it.
#[inline(always)]
pub(super) fn before_quote(bytes: [u8; 8]) -> usize {
    let word = u64::from_le_bytes(bytes);
    let quote = (word ^ all(b'"')).wrapping_sub(all(1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(1));
    first_marked((quote | backslash) & !word)
}

/// The first byte whose top bit is set.
fn first_marked(word: u64) -> usize {
    (word & all(0x80)).trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of neighbours: a borrow goes from a byte to the next.
    #[test]
    fn agrees_with_bytewise_scan() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                for bytes in [
                    [first, second, b'a', b'z', 0x80, 0xff, first, second],
                    [b'!', first, second, b']', b' ', b'#', 0x7f, b'['],
                ] {
                    let quote = |byte: &u8| matches!(byte, b'"' | b'\\');
                    let ends = |byte: &u8| quote(byte) || *byte < 0x20;
                    assert_eq!(plain_in_string(bytes), bytes.iter().position(ends).unwrap_or(8), "{bytes:?}");
                    assert_eq!(before_quote(bytes), bytes.iter().position(quote).unwrap_or(8), "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn steps_over_any_number_of_spaces() {
        for spaces in 0..30 {
            for rest in ["", "x", "\t", "\n       ", "12345678"] {
                let text = format!("{}{rest}", " ".repeat(spaces));
                assert_eq!(behind_spaces(text.as_bytes(), 0), spaces, "{text:?}");
            }
        }
    }
}
