//! What admission would change, as a unified diff of YAML.

use std::fmt::Write;

use serde_json::Value;
use similar::TextDiff;

use super::JudgedDocument;
use crate::visible;

/// The difference between an object as it was given and as it would be stored, both as JSON texts.
pub(super) fn unified(judged: &JudgedDocument<'_>, given: &str, stored: &str) -> String {
    let yaml = |json: &str| serde_json::from_str(json).map(|value| to_yaml(&value)).unwrap_or_default();
    let (given, stored) = (yaml(given), yaml(stored));
    let diff = TextDiff::from_lines(given.as_str(), stored.as_str());
    let name = format!("{}:{}", visible::line(judged.source), judged.line);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("{name} as given, keys sorted"), &format!("{name} as it would be stored"))
        .to_string()
}

/// A value as block YAML. Texts of several lines come as blocks, so that a config can be compared line by line.
pub(super) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let _ = write!(out, "{indent}{}:", scalar(key));
                child(value, depth, out);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                let _ = write!(out, "{indent}-");
                child(element, depth, out);
            }
        }
        other => {
            let _ = writeln!(out, "{indent}{other}");
        }
    }
}

fn child(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => nested(value, depth, out),
        Value::Array(elements) if !elements.is_empty() => nested(value, depth, out),
        Value::String(text) if text.contains('\n') => {
            let keep = if text.ends_with('\n') { "|" } else { "|-" };
            let _ = writeln!(out, " {keep}");
            for line in text.lines() {
                let _ = writeln!(out, "{}{line}", "  ".repeat(depth + 1));
            }
        }
        Value::String(text) => {
            let _ = writeln!(out, " {}", scalar(text));
        }
        other => {
            let _ = writeln!(out, " {other}");
        }
    }
}

fn nested(value: &Value, depth: usize, out: &mut String) {
    out.push('\n');
    write(value, depth + 1, out);
}

/// A text of one line: bare where that is safe, in double quotes otherwise.
fn scalar(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_');
    let is_safe = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(bare);
    if is_safe && crate::yaml::resolve(text) == crate::yaml::Scalar::String {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_yaml_that_reads_back() {
        let value = serde_json::json!({
            "a": {"b": ["x", 1, {"c": null}], "on": "on", "empty": {}, "none": []},
            "config": "{\n    \"type\": \"sriov\"\n}", "s": "a: b", "t": true, "n": "123", "trail": "x\ny\n",
        });
        let text = to_yaml(&value);
        let node = crate::yaml::Documents::new(&text).next().unwrap().node.unwrap();
        let back: Value = serde_json::from_str(&node.to_json()).unwrap();
        assert_eq!(back, value, "{text}");
    }
}
