//! The texts of a finding: a headline, a note and a help, in words or as one sentence.

use super::Finding;
use crate::visible::truncated;

/// The maximum length of a headline, a note and a help; a quoted value may be of any length.
const MAX_HEADLINE_CHARS: usize = 160;
const MAX_NOTE_CHARS: usize = 240;
const MAX_HELP_CHARS: usize = 400;
/// The maximum length of a word in a headline. A longer one is a quoted value, of which both ends are shown.
const MAX_WORD_CHARS: usize = 64;
/// A headline of that length is readable whatever is in it.
const READABLE_BYTES: usize = 100;
/// How much of the end of such a word is shown.
const WORD_END_CHARS: usize = 16;

/// The texts of a finding.
pub(super) struct FindingText {
    pub(super) message: String,
    pub(super) note: String,
    pub(super) help: String,
}

impl FindingText {
    pub(super) fn new(message: impl Into<String>, note: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), note: note.into(), help: help.into() }
    }
}

impl Finding {
    /// Headline and note as one sentence, for places that have only one text.
    pub fn sentence(&self) -> String {
        if self.note.is_empty() { self.message.clone() } else { [&self.message, ": ", &self.note].concat() }
    }

    /// The sentence with the rule and the help, which this label introduces.
    pub(crate) fn sentence_with_help(&self, label: &str) -> String {
        let mut text = self.sentence();
        text.extend([" (", self.rule.id, ")"]);
        if !self.help.is_empty() {
            text.extend([". ", label, ": ", &self.help]);
        }
        text
    }

    /// Shortens the texts to what is shown; ratcheting compares the whole ones before.
    pub(super) fn shorten(&mut self) {
        self.message = truncated(with_short_words(std::mem::take(&mut self.message)), MAX_HEADLINE_CHARS);
        self.note = truncated(std::mem::take(&mut self.note), MAX_NOTE_CHARS);
        self.help = truncated(std::mem::take(&mut self.help), MAX_HELP_CHARS);
    }
}

/// A headline in which long values are shortened, so that the words after them stay readable.
fn with_short_words(text: String) -> String {
    if text.len() <= READABLE_BYTES || text.split(' ').all(|word| word.len() <= MAX_WORD_CHARS) {
        return text;
    }
    let shortened = |word: &str| -> String {
        let length = word.chars().count();
        if length <= MAX_WORD_CHARS {
            return word.to_owned();
        }
        let start = word.chars().take(MAX_WORD_CHARS - WORD_END_CHARS - 1);
        start.chain(['…']).chain(word.chars().skip(length - WORD_END_CHARS)).collect()
    };
    text.split(' ').map(shortened).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::finding;
    use crate::policy::Action;

    #[test]
    fn sentence_has_headline_note_rule_and_help() {
        let found = finding("sriov/vlan", Action::Deny, "`vlan` is 5000, expected 0 to 4094");
        assert_eq!(found.sentence(), "`vlan` is 5000, expected 0 to 4094");
        let mut found = found.with_note("sriov-cni rejects it");
        assert_eq!(found.sentence(), "`vlan` is 5000, expected 0 to 4094: sriov-cni rejects it");
        assert_eq!(
            found.sentence_with_help("Help"),
            "`vlan` is 5000, expected 0 to 4094: sriov-cni rejects it (sriov/vlan). Help: fix it"
        );
        found.help.clear();
        assert!(found.sentence_with_help("Help").ends_with(" (sriov/vlan)"));
    }

    #[test]
    fn long_values_leave_the_rest_of_the_headline_readable() {
        let short = "`mac` is \"auto\", which is not a MAC address".to_owned();
        assert_eq!(with_short_words(short.clone()), short);
        let long = format!("`mac` is \"{}\", which is not a MAC address", "äb".repeat(100));
        let shown = with_short_words(long);
        assert!(shown.starts_with("`mac` is \"äbäb") && shown.ends_with("äb\", which is not a MAC address"), "{shown}");
        assert!(shown.chars().count() < 110, "{shown}");
        // At exactly the limit a word is kept; beyond it, its start and its end are.
        let word = |chars: usize| ('a'..='z').cycle().take(chars).collect::<String>();
        let rest = "y ".repeat(READABLE_BYTES);
        let of =
            |chars: usize| with_short_words(format!("{} {rest}", word(chars))).split(' ').next().unwrap().to_owned();
        assert_eq!(of(MAX_WORD_CHARS), word(MAX_WORD_CHARS));
        let long = word(MAX_WORD_CHARS + 1);
        let start: String = long.chars().take(MAX_WORD_CHARS - WORD_END_CHARS - 1).collect();
        let end: String = long.chars().skip(MAX_WORD_CHARS + 1 - WORD_END_CHARS).collect();
        assert_eq!(of(MAX_WORD_CHARS + 1), format!("{start}…{end}"));
        // A headline that is short enough keeps a long word.
        let short = word(READABLE_BYTES);
        assert_eq!(with_short_words(short.clone()), short);
        assert_ne!(with_short_words(word(READABLE_BYTES + 1)), word(READABLE_BYTES + 1));
    }

    #[test]
    fn each_text_has_a_limit() {
        let words = "a ".repeat(5000);
        let mut found = finding("sriov/vlan", Action::Deny, &words).with_note(&words);
        found.help = words;
        found.shorten();
        let lengths = [&found.message, &found.note, &found.help].map(|text| text.chars().count() - 1);
        assert_eq!(lengths, [MAX_HEADLINE_CHARS, MAX_NOTE_CHARS, MAX_HELP_CHARS]);
    }
}
