//! Suggestions ("did you mean …"): the closest of some known words.

use std::collections::BTreeMap;

use strsim::osa_distance;

/// A known word that another one is likely a misspelling of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suggestion<'k> {
    /// The known word.
    pub(crate) word: &'k str,
    /// Whether no other known word is meant: it differs only in case and separators, or no other one is near.
    pub(crate) is_only: bool,
    /// Whether it differs only in case and separators.
    pub(crate) has_same_letters: bool,
}

/// The known word that `word` is likely a misspelling of: at most two edits, fewer in short words, ignoring case and separators.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    suggest(word, known).map(|suggestion| suggestion.word)
}

/// The same word, and how certain it is.
pub(crate) fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<Suggestion<'k>> {
    // Long words are not misspellings.
    if word.len() > 64 {
        return None;
    }
    let (letters, shape) = (plain(word).collect::<String>(), Shape::of(word));
    let mut best: Option<(usize, &str)> = None;
    // How many words are near, and how many of them have the same letters.
    let (mut near, mut same) = (0, 0);
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
        // A word may be known from two tables.
        if distance > allowed || best.is_some_and(|(_, known)| known == candidate) {
            continue;
        }
        near += 1;
        same += usize::from(distance == 0);
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    let (distance, word) = best?;
    let has_same_letters = distance == 0;
    Some(Suggestion { word, is_only: if has_same_letters { same == 1 } else { near == 1 }, has_same_letters })
}

/// The name of an object that another one is nearly certainly a misspelling of. Objects are often named alike on purpose, `net-1` and
/// `net-2`, or `net-a` and `net-b`: names that differ only in numbers, or in one of their words as a whole, are different ones.
pub(crate) fn similar_name<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let likely = suggest(name, known)?.word;
    let without_digits = |word: &str| word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let is_numbered = without_digits(name) == without_digits(likely);
    let words = |word: &'k str| word.split(['-', '.', '_']).collect::<Vec<_>>();
    let (own, other): (Vec<&str>, Vec<&str>) = (name.split(['-', '.', '_']).collect(), words(likely));
    let is_other_word = own.len() == other.len()
        && own.iter().zip(&other).any(|(own, other)| own != other && own.len().min(other.len()) < 4);
    (!is_numbered && !is_other_word).then_some(likely)
}

/// The words that exactly one of these suggestions names: of two misspellings of one word nobody knows which is meant.
pub(crate) fn named_once<'k>(suggestions: impl IntoIterator<Item = Suggestion<'k>>) -> Vec<&'k str> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for suggestion in suggestions {
        *counts.entry(suggestion.word).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count == 1).map(|(word, _)| word).collect()
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
    use super::{closest, suggest};

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
    /// Only a word that nothing else is near to can be written for somebody.
    #[test]
    fn a_suggestion_says_whether_another_word_may_be_meant() {
        for (word, known, is_only, has_same_letters) in [
            ("vlann", &["vlan", "vlanQoS", "trust"] as &[_], true, false),
            ("vlanz", &["vlan", "vlany"], false, false),
            ("vlanz", &["vlany", "vlan"], false, false),
            // The same letters are the same word, whatever else is near.
            ("max-tx-rate", &["min_tx_rate", "max_tx_rate"], true, true),
            ("max-tx-rate", &["max_tx_rate", "min_tx_rate"], true, true),
            ("mix_tx_rate", &["min_tx_rate", "max_tx_rate"], false, false),
            ("LINKSTATE", &["link_state", "linkState"], false, true),
            // A word may be known twice.
            ("vlann", &["vlan", "vlan"], true, false),
        ] {
            let suggestion = suggest(word, known.iter().copied()).unwrap();
            assert_eq!(
                (suggestion.is_only, suggestion.has_same_letters),
                (is_only, has_same_letters),
                "{word} {known:?}"
            );
        }
    }
}
