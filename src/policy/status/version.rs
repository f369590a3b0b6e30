//! Comparing resource versions.

use std::cmp::Ordering;

/// Which of two versions is older. Nearly always both are decimal numbers of any length; other texts can only be equal.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    if one == other {
        return Some(Ordering::Equal);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(one) || !digits(other) {
        return None;
    }
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    Some(one.len().cmp(&other.len()).then_with(|| one.cmp(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_compared() {
        use Ordering::{Equal, Greater, Less};
        for (one, other, want) in [
            ("9", "10", Some(Less)),
            ("10", "9", Some(Greater)),
            ("10", "10", Some(Equal)),
            ("010", "10", Some(Equal)),
            ("99999999999999999999999999", "100000000000000000000000000", Some(Less)),
            ("0", "", None),
            ("a", "a", Some(Equal)),
            ("a", "b", None),
            ("1a", "2", None),
            ("-1", "2", None),
        ] {
            assert_eq!(compare(one, other), want, "{one} {other}");
        }
    }
}
