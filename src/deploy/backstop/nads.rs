//! The backstop for NADs: a plugin that needs a device, and no resourceName that says which.
//!
//! CEL cannot parse JSON, so the plugins are taken out of the config by regular expressions that know strings and balanced brackets up to
//! a depth. A config that is nested deeper, malformed, or too long for them is searched for a `type` that needs a device at any place.

use serde_json::{Value, json};

use super::super::conditions::spelled;
use super::super::webhooks;
use super::super::{NAME, WARN_POLICY};
use super::parameters::{NAD_VERDICTS, PLUGIN_PATTERN, PLUGINS};
use super::{Backstop, given, lines};
use crate::resources::RESOURCE_NAME;

/// How deep brackets are followed inside a plugin. `ipam` with ranges needs four.
const DEPTH: usize = 6;
/// Blanks, as JSON has them.
const BLANKS: &str = r"[ \t\r\n]*";
/// A string of JSON.
const STRING: &str = r#""(?:[^"\\]|\\.)*""#;
/// An expression may cost 1,000,000, and matching costs a fortieth of the product of both lengths. Five patterns of about this length,
/// each matched against a config that is not longer than this allows, stay below that.
const PATTERN_LENGTH: usize = 700;
const MAX_MATCH_COST: usize = 6_000_000;
/// The same for the search at any place, which is one pattern at a time.
const SEARCH_LENGTH: usize = 600;
const MOST_SEARCHED: usize = 36_000_000;

/// Incomplete NADs are denied.
pub(super) fn denied() -> Backstop {
    let message = format!(
        "a plugin in this NAD needs a device, but the NAD has no annotation {RESOURCE_NAME}: pods that use it hang in \
         ContainerCreating (nad/resource-name-missing). Add the annotation {RESOURCE_NAME}: <domain>/<name>, as the node offers the devices; \
         where pods claim their devices (DRA) instead, set `dra: allow` for this namespace in nadmit's policy"
    );
    let applies_to = format!("({} ? ['deny'] : ['deny', 'deny-absent'])", has_annotation("object"));
    incomplete(NAME, applies_to, &message, &["Deny", "Audit"])
}

/// If the device may come from a claim, the writer gets a warning.
pub(super) fn warned() -> Backstop {
    let message = format!(
        "a plugin in this NAD needs a device, but the NAD has no annotation {RESOURCE_NAME}: this works only for pods that claim their device \
         (DRA). Others hang in ContainerCreating (nad/resource-name-missing)"
    );
    incomplete(WARN_POLICY, "['warn']".to_owned(), &message, &["Warn"])
}

fn incomplete(name: &str, applies_to: String, message: &str, actions: &'static [&'static str]) -> Backstop {
    let has_config = "has(object.spec) && has(object.spec.config)";
    Backstop {
        name: name.to_owned(),
        rule: webhooks::nads(),
        verdicts: NAD_VERDICTS,
        applies_to,
        conditions: vec![
            json!({ "name": "unnamed", "expression": unnamed("object") }),
            json!({ "name": "configured", "expression": format!("{has_config} && {}", given(PLUGIN_PATTERN)) }),
        ],
        variables: [variables("object", ""), variables("oldObject", "_before")].concat(),
        // NADs that were already incomplete can still be updated.
        validations: vec![json!({
            "expression": "!variables.lacks || variables.lacks_before",
            "message": message,
            "reason": "Invalid",
        })],
        actions,
    }
}

/// Whether an object has the annotation, in CEL.
fn has_annotation(object: &str) -> String {
    format!("has({object}.metadata.annotations) && '{RESOURCE_NAME}' in {object}.metadata.annotations")
}

/// Whether an object has no resourceName, in CEL. Multus treats an empty annotation as absent.
fn unnamed(object: &str) -> String {
    format!("!({}) || {object}.metadata.annotations['{RESOURCE_NAME}'] == ''", has_annotation(object))
}

/// The variable `lacks`: whether an object has a plugin that needs a device, and names no resource for it.
fn variables(object: &str, suffix: &str) -> Vec<Value> {
    let inner = balanced(DEPTH);
    let start = format!(r"^{BLANKS}\{{{inner}");
    let key = |name: &str| format!(r#""{}"{BLANKS}:{BLANKS}"#, spelled(name, true));
    let variable =
        |name: &str, expression: String| json!({ "name": format!("{name}{suffix}"), "expression": expression });
    let config = format!("variables.config{suffix}");
    let pattern = format!("params.metadata.annotations['{PLUGIN_PATTERN}']");
    // A top-level `type` makes Multus ignore a list of plugins.
    let plugins = format!(
        "{config}.matches(r'{start}{plugin_type}\"') ? [{config}] : \
         {config}.find(r'{start}{list}\\[{inner}\\]').find(r'\\[{inner}\\]$').findAll(r'\\{{{inner}\\}}')",
        plugin_type = key("type"),
        list = key("plugins"),
    );
    // A device that is fixed in the config needs no name; only a plugin's own key fixes it, and only a text that is not empty.
    let has_device = format!(
        "variables.plugins{suffix}.exists(plugin, plugin.matches(r'{start}{plugin_type}\"(?:' + {pattern} + r')\"') && \
         !plugin.matches(r'{start}{device}\"(?:[^\"\\\\]|\\\\.)'))",
        plugin_type = key("type"),
        device = key("deviceID"),
    );
    let is_balanced = format!("{config}.matches(r'{start}\\}}{BLANKS}$')");
    // One that is too long for that, too, is only searched for the plugins' names; nobody has such a config.
    let names_device = format!(
        "{config}.size() * ({pattern}.size() + {SEARCH_LENGTH}) < {MOST_SEARCHED} ? \
         {config}.matches(r'{plugin_type}\"(?:' + {pattern} + r')\"') && !{config}.matches(r'{device}\"[^\"]') : \
         {}.exists(plugin, {config}.contains('\"' + plugin + '\"'))",
        lines(PLUGINS),
        plugin_type = key("type"),
        device = key("deviceID"),
    );
    let exists = if object == "object" { "true" } else { "request.operation == 'UPDATE'" };
    let has_config = format!("{exists} && has({object}.spec) && has({object}.spec.config)");
    let lacks = format!(
        "{config}.size() * ({pattern}.size() + {PATTERN_LENGTH}) < {MAX_MATCH_COST} ? \
         variables.has_device{suffix} || (!variables.is_balanced{suffix} && variables.names_device{suffix}) : \
         variables.names_device{suffix}"
    );
    vec![
        variable("config", format!("{has_config} ? {object}.spec.config : ''")),
        variable("plugins", plugins),
        variable("has_device", has_device),
        variable("is_balanced", is_balanced),
        variable("names_device", names_device),
        variable("lacks", format!("{exists} && ({}) && ({lacks})", unnamed(object))),
    ]
}

/// A pattern for anything between two brackets that belong together, in which brackets are nested at most that deep.
fn balanced(depth: usize) -> String {
    let flat = format!(r#"[^{{}}\[\]"]|{STRING}"#);
    (0..depth).fold(format!("(?:{flat})*"), |inner, _| format!(r"(?:{flat}|[{{\[]{inner}[}}\]])*"))
}
