//! What admission would change, as a unified diff of YAML.

use similar::TextDiff;

use super::JudgedDocument;
use crate::visible;
use crate::yaml::emit;

/// The difference between an object as it was given and as it would be stored, both as JSON texts.
pub(super) fn unified(judged: &JudgedDocument<'_>, given: &str, stored: &str) -> String {
    let yaml = |json: &str| serde_json::from_str(json).map(|value| emit::value(&value)).unwrap_or_default();
    let (given, stored) = (yaml(given), yaml(stored));
    let diff = TextDiff::from_lines(given.as_str(), stored.as_str());
    let name = format!("{}:{}", visible::line(judged.source), judged.line);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("{name} as given, keys sorted"), &format!("{name} as it would be stored"))
        .to_string()
}
