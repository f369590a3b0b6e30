//! The backstop for networks: text that leaves its place in the operator's template, by which its author would have the operator create an
//! object of their choosing. `network/render-unsafe` decides that by rendering; here patterns stand for it, each of which matches only
//! what the rule denies, too.

use serde_json::{Value, json};

use super::super::{INJECTION, webhooks};
use super::Backstop;
use super::parameters::NETWORK_VERDICTS;

/// What ends a line in YAML, control characters that no reader of YAML takes, and what ends a value on its line.
const ENDS_VALUE: &str = r"[\x00-\x08\x0a-\x1f\x7f-\x{9f}\x{2028}\x{2029}]|:(?:[ \t]|$)|[ \t]#|[ \t]$";
/// What makes something else than a plain text of a value, where it stands first.
const STARTS_OTHERWISE: &str = r"^[ \t\x22\x27*!|>%@\x60]|^&[^ \t]+[ \t]+[^ \t]";
/// A quote that is not doubled ends the config, which stands between quotes.
const LONE_QUOTE: &str = r"(?:^|[^\x27])\x27(?:\x27\x27)*(?:[^\x27]|$)";
/// A double quote that is not escaped ends a text that the template puts between such quotes.
const ENDS_TEXT: &str = r"(?:^|[^\\])(?:\\\\)*\x22";
/// A line of dashes begins another object.
const NEXT_OBJECT: &str = r"\n---";

/// Template injection is denied.
pub(super) fn denied() -> Backstop {
    let mut validations = vec![
        validation("metadata", "name", &format!("{ENDS_VALUE}|{STARTS_OTHERWISE}")),
        validation("spec", "resourceName", ENDS_VALUE),
        validation("spec", "networkNamespace", &format!("{ENDS_VALUE}|{STARTS_OTHERWISE}")),
        // The operator takes all blanks out of it.
        validation("spec", "ipam", LONE_QUOTE),
    ];
    for field in ["capabilities", "metaPlugins"] {
        validations.push(validation("spec", field, &format!("{LONE_QUOTE}|{NEXT_OBJECT}")));
    }
    for field in ["logFile", "bridge", "interfaceType"] {
        validations.push(validation("spec", field, &format!("{LONE_QUOTE}|{NEXT_OBJECT}|{ENDS_TEXT}")));
    }
    Backstop {
        name: INJECTION.to_owned(),
        rule: webhooks::networks(),
        verdicts: NETWORK_VERDICTS,
        applies_to: "['deny']".to_owned(),
        conditions: Vec::new(),
        variables: Vec::new(),
        validations,
        actions: &["Deny", "Audit"],
    }
}

/// What matching a pattern may cost, as the product of both lengths: a part of what the API server allows. An expression that costs more is
/// an error, which lets the write pass.
const MOST_LENGTHS: usize = 25_000_000;

/// A field must not match the pattern, unless it did before and has not changed. One that is too long to be matched is nobody's.
fn validation(part: &str, field: &str, pattern: &str) -> Value {
    let most = MOST_LENGTHS / pattern.len();
    let has = |object: &str| format!("has({object}.{part}) && has({object}.{part}.{field})");
    let is_unchanged = format!(
        "request.operation == 'UPDATE' && {} && oldObject.{part}.{field} == object.{part}.{field}",
        has("oldObject")
    );
    json!({
        "expression": format!(
            "!({}) || ({is_unchanged}) || !(object.{part}.{field}.size() > {most} || object.{part}.{field}.matches(r'{pattern}'))",
            has("object")
        ),
        "message": format!(
            "{part}.{field} leaves its place in the operator's template: an object of another form would be created with the operator's \
             rights (network/render-unsafe). Remove line breaks, quotes and `---` lines from it"
        ),
        "reason": "Invalid",
    })
}
