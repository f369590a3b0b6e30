//! "Did you mean …": the closest of some known words.

/// The known word that a typing error away gives `word`: at most two edits, fewer in short words, blind to case and to the
/// separators people mix up.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Nobody mistypes a novel.
    if word.len() > 64 {
        return None;
    }
    let word = plain(word);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let plain = plain(candidate);
        let allowed = match plain.len().min(word.len()) {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        if plain.len().abs_diff(word.len()) > allowed {
            continue;
        }
        let distance = distance(&word, &plain);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn plain(word: &str) -> Vec<char> {
    word.chars()
        .filter(|character| !matches!(character, '_' | '-' | '.' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect()
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
    fn finds_what_was_meant() {
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
