//! Suggestions ("did you mean …"): the closest of some known words.

use strsim::osa_distance;

/// The known word that `word` is likely a misspelling of: at most two edits, fewer in short words, ignoring case and separators.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Long words are not misspellings.
    if word.len() > 64 {
        return None;
    }
    let (letters, shape) = (plain(word).collect::<String>(), Shape::of(word));
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
        // Two neighbours swapped are one edit.
        let distance = osa_distance(&letters, &plain(candidate).collect::<String>());
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
            ("vlaň", Some("vlan")),
            ("vl€n", Some("vlan")),
            ("x", None),
            ("", None),
            ("resourceName", None),
        ] {
            assert_eq!(closest(word, known), want, "{word}");
        }
        for (word, known, want) in [
            // Up to three letters none may differ, up to six one, beyond that two.
            ("mtv", "mtu", None),
            ("vlax", "vlan", Some("vlan")),
            ("vlxx", "vlan", None),
            ("trunx", "trunk", Some("trunk")),
            ("bridxe", "bridge", Some("bridge")),
            ("brixxe", "bridge", None),
            ("rxnxing", "running", Some("running")),
            ("rxnxixg", "running", None),
            ("abcdefgab", "abcdefg", Some("abcdefg")),
            ("abcdefgabc", "abcdefg", None),
        ] {
            assert_eq!(closest(word, [known]), want, "{word}");
        }
        assert_eq!(closest("vlanz", ["vlan", "vlany", "vlanz"]), Some("vlanz"), "the closest of several");
        assert_eq!(closest("vlanz", ["vlany", "vlanx"]), Some("vlany"), "the first of equals");
        let long = "a".repeat(64);
        assert_eq!(closest(&long, [long.as_str()]), Some(long.as_str()));
        let longer = "a".repeat(65);
        assert_eq!(closest(&longer, [longer.as_str()]), None);
    }
}
