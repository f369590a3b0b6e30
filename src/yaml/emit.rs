//! Objects as YAML that people read and compare.
//!
//! Not with libyaml-safer's emitter: it writes a text with a space at the end of a line without line breaks, and configs are
//! compared line by line.

use std::fmt::Write;

use serde_json::Value;

use super::{Scalar, resolve};
use crate::json::write::push_quoted;

/// The objects as one stream; apiVersion, kind and metadata come first.
pub fn stream(objects: &[Value]) -> String {
    objects.iter().map(document).collect::<Vec<_>>().join("---\n")
}

fn document(object: &Value) -> String {
    let mut members: Vec<_> = object.as_object().into_iter().flatten().collect();
    let rank = |key: &str| ["apiVersion", "kind", "metadata"].iter().position(|known| *known == key).unwrap_or(3);
    members.sort_by_key(|(key, _)| rank(key));
    let mut out = String::new();
    write_members(&mut out, members, 0, false);
    out
}

/// A value, with its keys in their order.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0, false);
    out
}

/// Writes a value on lines of its own; the first line may have begun.
fn write_value(out: &mut String, value: &Value, depth: usize, has_begun: bool) {
    match value {
        Value::Object(members) if !members.is_empty() => write_members(out, members, depth, has_begun),
        Value::Array(elements) if !elements.is_empty() => write_elements(out, elements, depth, has_begun),
        scalar => {
            begin_line(out, depth, has_begun);
            // A block is indented even where its key is not.
            write_scalar(out, scalar, depth.max(2));
        }
    }
}

fn write_members<'v>(
    out: &mut String,
    members: impl IntoIterator<Item = (&'v String, &'v Value)>,
    depth: usize,
    mut has_begun: bool,
) {
    for (key, value) in members {
        begin_line(out, depth, std::mem::take(&mut has_begun));
        write_text(out, key);
        out.push(':');
        match value {
            // A list is as deep as its key.
            Value::Array(elements) if !elements.is_empty() => {
                out.push('\n');
                write_elements(out, elements, depth, false);
            }
            Value::Object(members) if !members.is_empty() => {
                out.push('\n');
                write_members(out, members, depth + 2, false);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, depth + 2);
            }
        }
    }
}

fn write_elements(out: &mut String, elements: &[Value], depth: usize, mut has_begun: bool) {
    for element in elements {
        begin_line(out, depth, std::mem::take(&mut has_begun));
        out.push_str("- ");
        write_value(out, element, depth + 2, true);
    }
}

fn begin_line(out: &mut String, depth: usize, has_begun: bool) {
    if !has_begun {
        let _ = write!(out, "{:depth$}", "");
    }
}

/// Writes what fits on the line that has begun, or a block below it.
fn write_scalar(out: &mut String, scalar: &Value, depth: usize) {
    match scalar {
        Value::String(text) if is_block(text) => {
            out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
            for line in text.lines() {
                let depth = if line.is_empty() { 0 } else { depth };
                let _ = writeln!(out, "{:depth$}{line}", "");
            }
        }
        Value::String(text) => {
            write_text(out, text);
            out.push('\n');
        }
        // JSON is YAML.
        other => {
            let _ = writeln!(out, "{other}");
        }
    }
}

/// Whether a text of several lines keeps every character in a block.
fn is_block(text: &str) -> bool {
    text.contains('\n') && !text.ends_with("\n\n") && !text.starts_with([' ', '\t', '\n']) && !text.contains(is_odd)
}

/// Writes a text without quotes where that is unambiguous.
pub(super) fn write_text(out: &mut String, text: &str) {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(is_word)
        && resolve(text) == Scalar::String;
    if is_plain {
        out.push_str(text);
        return;
    }
    write_quoted(out, text);
}

/// Writes a text in double quotes, as JSON and YAML both read it.
pub(super) fn write_quoted(out: &mut String, text: &str) {
    let start = out.len();
    push_quoted(out, text);
    if text.contains(is_odd) {
        // A JSON string may have them as they are.
        for character in out.split_off(start).chars() {
            let _ =
                if is_odd(character) { write!(out, "\\u{:04x}", character as u32) } else { out.write_char(character) };
        }
    }
}

/// Whether a character is a line break to YAML, is ignored by it, or is not allowed in it.
fn is_odd(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml::Documents;

    fn read(text: &str) -> Vec<Value> {
        let read = |node: crate::yaml::YamlNode| serde_json::from_str(&node.to_json()).unwrap();
        Documents::new(text).map(|document| read(document.node.unwrap())).collect()
    }

    /// Output is parsed back to the same value.
    #[test]
    fn yaml_round_trips() {
        let objects = [
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": {} }, "data": {
                "policy.yaml": "# words\nmode: audit\n\nrules: {}\n", "odd": "a: b\t\n", "empty": "", "end": "x\n\n",
                "yes": "on", "number": "5", "space": " x\n", "quote": "it's \"so\"", "- x": "*y", "null": "~" } }),
            json!({ "kind": "X", "list": [1, "a", { "b": [{ "c": null, "d": {} }, "true"], "e": [] }, {}, true], "n": 1.5 }),
            json!({ "config": "{\n    \"type\": \"sriov\"\n}", "lists": [[1, [2, "x\ny"]], [], [{ "a": [[3]] }]], "s": "a: b" }),
        ];
        let text = stream(&objects);
        assert_eq!(read(&text), objects, "{text}");
        for object in objects.iter().chain(&[json!([["a"], "b\nc"]), json!("d\ne"), json!({}), json!(null)]) {
            let text = value(object);
            assert_eq!(read(&text), std::slice::from_ref(object), "{text}");
        }
    }

    #[test]
    fn every_text_round_trips() {
        let odd = [
            "", "a", "\n", "\n\n", " ", "\t", "\r\n", "\u{85}", "\u{2028}", "\u{feff}", "\u{7f}", "\u{ffff}", "-", "#",
            "\u{1}", "\"", "b: c",
        ];
        let pairs = odd.iter().flat_map(|a| odd.map(|b| format!("{a}{b}")));
        for pair in pairs.collect::<Vec<_>>() {
            for text in
                odd.map(|end| format!("{pair}{end}")).into_iter().chain([format!("{pair}x"), format!("x{pair}")])
            {
                let object = json!({ "a": { text.as_str(): text }, "b": [text] });
                let yaml = value(&object);
                assert_eq!(read(&yaml), [object], "{yaml}");
            }
        }
    }

    #[test]
    fn objects_are_written_as_people_write_them() {
        let object = json!({ "spec": { "list": [{ "a": 1, "b": [] }, "x y", [2]], "text": "a\n\nb\n", "empty": {} },
            "metadata": { "name": "net" }, "kind": "K", "apiVersion": "v1", "b": "l1\nl2" });
        let want = "apiVersion: v1\nkind: K\nmetadata:\n  name: net\nb: |-\n  l1\n  l2\nspec:\n  empty: {}\n  list:\n  - a: 1\n    b: []\n  \
            - \"x y\"\n  - - 2\n  text: |\n    a\n\n    b\n";
        assert_eq!(stream(std::slice::from_ref(&object)), want);
        assert_eq!(stream(&[json!({"a": 1}), json!({"b": "yes"})]), "a: 1\n---\nb: \"yes\"\n");
        assert_eq!(value(&json!(["/a", "_b", "c:d", "5"])), "- /a\n- \"_b\"\n- \"c:d\"\n- \"5\"\n");
    }
}
