//! Objects as YAML that people read and diff.

use std::fmt::Write;

use serde_json::Value;

/// The objects as one stream.
pub fn stream(objects: &[Value]) -> String {
    objects.iter().map(document).collect::<Vec<_>>().join("---\n")
}

fn document(object: &Value) -> String {
    let mut out = String::new();
    // apiVersion, kind and metadata come first.
    let mut members: Vec<_> = object.as_object().into_iter().flatten().collect();
    let rank = |key: &str| ["apiVersion", "kind", "metadata"].iter().position(|known| *known == key).unwrap_or(3);
    members.sort_by_key(|(key, _)| rank(key));
    for (key, value) in members {
        member(&mut out, key, value, 0);
    }
    out
}

fn member(out: &mut String, key: &str, value: &Value, depth: usize) {
    let _ = write!(out, "{:1$}", "", depth);
    entry(out, key, value, depth);
}

/// A key and its value; the line has begun.
fn entry(out: &mut String, key: &str, value: &Value, depth: usize) {
    out.push_str(&text(key));
    out.push(':');
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            for (key, value) in members {
                member(out, key, value, depth + 2);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            out.push('\n');
            list(out, elements, depth);
        }
        Value::String(lines) if is_block(lines) => {
            out.push_str(" |\n");
            for line in lines.lines() {
                let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "{:1$}{line}", "", depth + 2) };
            }
        }
        scalar => {
            let _ = writeln!(out, " {}", plain(scalar));
        }
    }
}

fn list(out: &mut String, elements: &[Value], depth: usize) {
    for element in elements {
        let _ = write!(out, "{:1$}- ", "", depth);
        match element {
            Value::Object(members) if !members.is_empty() => {
                for (index, (key, value)) in members.iter().enumerate() {
                    if index == 0 {
                        entry(out, key, value, depth + 2);
                    } else {
                        member(out, key, value, depth + 2);
                    }
                }
            }
            scalar => {
                let _ = writeln!(out, "{}", plain(scalar));
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(words) => text(words),
        // JSON is YAML.
        other => other.to_string(),
    }
}

/// A text that can stand as a block keeps every byte there.
fn is_block(text: &str) -> bool {
    let has_odd = text.chars().any(|character| character.is_control() && character != '\n');
    text.ends_with('\n') && !text.ends_with("\n\n") && !text.starts_with([' ', '\n']) && !has_odd
}

/// Unquoted where that is unambiguous.
fn text(words: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    let is_plain = words.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && words.chars().all(is_word)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&words.to_lowercase().as_str());
    if is_plain { words.to_owned() } else { Value::from(words).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml::Documents;

    /// Output is parsed back to the same value.
    #[test]
    fn yaml_round_trips() {
        let objects = [
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": {} }, "data": {
                "policy.yaml": "# words\nmode: audit\n\nrules: {}\n", "odd": "a: b\t\n", "empty": "", "end": "x\n\n",
                "yes": "on", "number": "5", "space": " x\n", "quote": "it's \"so\"", "- x": "*y", "null": "~" } }),
            json!({ "kind": "X", "list": [1, "a", { "b": [{ "c": null, "d": {} }, "true"], "e": [] }, {}, true], "n": 1.5 }),
        ];
        let text = stream(&objects);
        let read: Vec<Value> = Documents::new(&text)
            .map(|document| serde_json::from_str(&document.node.unwrap().to_json()).unwrap())
            .collect();
        assert_eq!(read, objects, "{text}");
    }
}
