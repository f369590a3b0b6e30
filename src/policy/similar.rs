//! Suggestions ("did you mean …"): the closest of some known words.

/// The known word that `word` is likely a misspelling of: at most two edits, fewer in short words, ignoring case and separators.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Long words are not misspellings.
    if word.len() > 64 {
        return None;
    }
    let (letters, shape) = (plain(word).collect::<Vec<char>>(), Shape::of(word));
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let other = Shape::of(candidate);
        let allowed = match shape.length.min(other.length) {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        if !shape.could_be(other, allowed) {
            continue;
        }
        let distance = distance(&letters, &plain(candidate).collect::<Vec<char>>());
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A cheap summary of a word that rules out most candidates.
#[derive(Clone, Copy)]
struct Shape {
    length: usize,
    /// Which letters it has, one bit each.
    letters: u32,
}

impl Shape {
    fn of(word: &str) -> Self {
        plain(word).fold(Self { length: 0, letters: 0 }, |shape, letter| Self {
            length: shape.length + 1,
            letters: shape.letters | 1 << (letter as u32 % 32),
        })
    }

    /// Each edit changes the length by at most one, and adds and removes at most one letter.
    fn could_be(self, other: Self, edits: usize) -> bool {
        self.length.abs_diff(other.length) <= edits && (self.letters ^ other.letters).count_ones() as usize <= 2 * edits
    }
}

fn plain(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|character| !matches!(character, '_' | '-' | '.' | ' ')).map(|c| c.to_ascii_lowercase())
}

/// Edits between two words; two neighbours swapped are one edit.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = j > 0 && i > 0 && b.get(j - 1) == Some(x) && a.get(i - 1) == Some(y);
            if swapped {
                cost = cost.min(at(&before_last, j - 1) + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn suggests_the_closest_key() {
        let known = ["vlan", "vlanQoS", "link_state", "max_tx_rate", "spoofchk", "trust", "ipam"];
        for (word, want) in [
            ("max-tx-rate", Some("max_tx_rate")),
            ("maxTxRate", Some("max_tx_rate")),
            ("linkState", Some("link_state")),
            ("vlna", Some("vlan")),
            ("spofchk", Some("spoofchk")),
            ("vlanqos", Some("vlanQoS")),
            ("mtu", None),
            ("x", None),
            ("", None),
            ("resourceName", None),
        ] {
            assert_eq!(closest(word, known), want, "{word}");
        }
    }
}
