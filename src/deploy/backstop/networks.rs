//! The backstop for networks: template injection, by which an author would make the operator create an object of their choice.
//! `network/render-unsafe` decides that by rendering; here patterns approximate it, each matching only what the rule denies, too.

use serde_json::{Value, json};

use super::super::{INJECTION_POLICY, webhooks};
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
        // The operator removes all spaces from it.
        validation("spec", "ipam", LONE_QUOTE),
    ];
    for field in ["capabilities", "metaPlugins"] {
        validations.push(validation("spec", field, &format!("{LONE_QUOTE}|{NEXT_OBJECT}")));
    }
    for field in ["logFile", "bridge", "interfaceType"] {
        validations.push(validation("spec", field, &format!("{LONE_QUOTE}|{NEXT_OBJECT}|{ENDS_TEXT}")));
    }
    Backstop {
        name: INJECTION_POLICY.to_owned(),
        rule: webhooks::networks(),
        verdicts: NETWORK_VERDICTS,
        applies_to: "['deny']".to_owned(),
        conditions: Vec::new(),
        variables: Vec::new(),
        validations,
        actions: &["Deny", "Audit"],
    }
}

/// The maximum match cost as the product of both lengths: a part of the API server's limit. An expression that exceeds the limit
/// is an error, which lets the write pass.
const MAX_MATCH_COST: usize = 25_000_000;

/// A field must not match the pattern, unless it is unchanged. One that is too long to match is denied.
fn validation(part: &str, field: &str, pattern: &str) -> Value {
    let most = MAX_MATCH_COST / pattern.len();
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
            "{part}.{field} injects into the operator's template: another object would be created with the operator's \
             rights (network/render-unsafe). Remove line breaks, quotes and `---` lines from it"
        ),
        "reason": "Invalid",
    })
}
