//! What admission would change, as a unified diff of YAML.

use similar::{ChangeTag, TextDiff};

use super::{JudgedDocument, text};
use crate::visible;
use crate::yaml::emit;

/// The difference between a file as it is and as it would be written.
pub(crate) fn of_files(name: &str, before: &str, after: &str) -> String {
    let name = visible::line(name);
    let diff = TextDiff::from_lines(before, after);
    visible::lines(&diff.unified_diff().context_radius(3).header(&name, &name).to_string()).into_owned()
}

/// The difference between an object as it was given and as it would be stored, both as JSON texts.
pub(super) fn unified(judged: &JudgedDocument<'_>, given: &str, stored: &str) -> String {
    let (given, stored) = (yaml(given), yaml(stored));
    let diff = TextDiff::from_lines(given.as_str(), stored.as_str());
    let name = format!("{}:{}", visible::line(&text::named_source(judged)), judged.line);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("{name} as given, keys sorted"), &format!("{name} as it would be stored"))
        .to_string()
}

/// Every line of both, each after a blank, `+` or `-`.
pub(super) fn whole(given: &str, stored: &str) -> String {
    let (given, stored) = (yaml(given), yaml(stored));
    let diff = TextDiff::from_lines(given.as_str(), stored.as_str());
    let mut out = String::with_capacity(stored.len() * 2);
    for change in diff.iter_all_changes() {
        out.push(match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        });
        out += change.value().trim_end_matches('\n');
        out.push('\n');
    }
    out
}

fn yaml(json: &str) -> String {
    serde_json::from_str(json).map(|value| emit::value(&value)).unwrap_or_default()
}
