//! The matchConditions (CEL) of the webhooks.
//!
//! A condition that fails to evaluate counts as a webhook failure, so each checks before it accesses a field: a NAD may have no
//! spec, and, because mutation precedes schema validation, a spec of any type.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cni::OVN_PLUGIN;
use crate::policy::Policy;

use crate::resources::{LAST_NAMESPACE, LONGEST_OWNER, MAX_OWNERS, NAD_GROUP, NADS, READ_ANNOTATIONS};

/// The CEL cost limit is 1,000,000; matching a pattern costs 1/40 of the product of both lengths. Half of that is enough for
/// every realistic config.
const MAX_MATCH_COST: usize = 20_000_000;
/// How many substring searches the cost limit allows for the largest config.
const MAX_SEARCHES: usize = 4;

/// Excludes updates of an object that is already being deleted and that change nothing judged: finalizers and the garbage
/// collector must get through, also while nadmit is down. A deletionTimestamp in the request proves nothing. This is
/// `Subject::is_deletion_progress` in CEL; a test compares the two.
pub(super) fn not_deletion_progress() -> Value {
    json!({ "name": "stays", "expression": format!("!({})", is_deletion_progress()) })
}

fn is_deletion_progress() -> String {
    let [(new, old), (now, before)] = ["annotations", "ownerReferences"]
        .map(|part| (format!("object.metadata.{part}"), format!("oldObject.metadata.{part}")));
    let keys = READ_ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
    let keys_of_owner = ["apiVersion", "kind", "name", "uid"];
    let short = keys_of_owner.map(|key| format!("has(r.{key}) && r.{key}.size() <= {LONGEST_OWNER}")).join(" && ");
    let same = keys_of_owner.map(|key| format!("has(o.{key}) && o.{key} == r.{key}")).join(" && ");
    // The CEL cost is limited, and comparing all references with each other is quadratic.
    format!(
        "request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && \
         has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec) && \
         [{keys}].all(k, (has({new}) && k in {new}) == (has({old}) && k in {old}) && \
         (!has({new}) || !(k in {new}) || {new}[k] == {old}[k])) && \
         (!has({now}) || (has({before}) && ({now} == {before} || ({now}.size() <= {MAX_OWNERS} && {before}.size() <= {MAX_OWNERS} && \
         {now}.all(r, {short} && {before}.exists(o, {same}))))))"
    )
}

/// Excludes status writes of objects that are being deleted.
pub(super) fn not_deleting_status() -> Value {
    json!({ "name": "stays", "expression": "!has(oldObject.metadata.deletionTimestamp)" })
}

/// Writes that change something judged, or are by a person, who gets the warnings again. Controllers write unchanged objects all
/// the time, the operator with each reconcile: nothing new could be reported.
pub(super) fn changes(parts: &[&str]) -> Value {
    json!({ "name": "changes", "expression": changed(parts) })
}

/// The same for a network, and every write to one whose `last-network-namespace` differs from its target: of the operator's
/// annotations only that one is judged.
pub(super) fn changes_or_wedged() -> Value {
    let expression = format!("{} || ({}) || ({})", changed(&["spec"]), is_wedged(), sets_last_namespace());
    json!({ "name": "changes", "expression": expression })
}

fn changed(parts: &[&str]) -> String {
    let mut expression =
        "!request.userInfo.username.startsWith('system:serviceaccount:') || request.operation == 'CREATE'".to_owned();
    for part in parts {
        let (new, old) = (format!("object.{part}"), format!("oldObject.{part}"));
        let _ = write!(expression, " || has({new}) != has({old}) || (has({new}) && {new} != {old})");
    }
    expression
}

/// A writer that may patch. One that may only update has sent a PUT, which the API server compares by itself.
pub(super) fn may_patch() -> Value {
    json!({ "name": "may-patch", "expression": "authorizer.requestResource.check('patch').allowed()" })
}

/// NADs with a device plugin.
pub(super) fn device(policy: &Policy) -> Value {
    json!({ "name": "device", "expression": has_device(policy) })
}

/// NADs without a device plugin.
pub(super) fn no_device(policy: &Policy) -> Value {
    json!({ "name": "no-device", "expression": format!("!({})", has_device(policy)) })
}

/// NADs of OVN-Kubernetes.
pub(super) fn ovn() -> Value {
    json!({ "name": "ovn", "expression": has_plugin(&[OVN_PLUGIN]) })
}

/// Networks whose `last-network-namespace` differs from their target.
pub(super) fn wedged() -> Value {
    json!({ "name": "wedged", "expression": is_wedged() })
}

fn is_wedged() -> String {
    format!(
        "has(object.metadata.annotations) && '{LAST_NAMESPACE}' in object.metadata.annotations && \
         object.metadata.annotations['{LAST_NAMESPACE}'] != \
         (has(object.spec) && type(object.spec) == map && has(object.spec.networkNamespace) && \
         object.spec.networkNamespace != '' ? object.spec.networkNamespace : request.namespace)"
    )
}

/// An update in which someone other than an operator sets `last-network-namespace`. The operator, who may create NADs in all
/// namespaces, sets it on each network and is skipped.
fn sets_last_namespace() -> String {
    let value_in = |object: &str| {
        format!("has({object}.metadata.annotations) && '{LAST_NAMESPACE}' in {object}.metadata.annotations")
    };
    let (now, before) = (value_in("object"), value_in("oldObject"));
    format!(
        "{now} && !({before} && oldObject.metadata.annotations['{LAST_NAMESPACE}'] == object.metadata.annotations['{LAST_NAMESPACE}']) && \
         !authorizer.group('{NAD_GROUP}').resource('{NADS}').check('create').allowed()"
    )
}

/// Whether the config has a device plugin.
pub(super) fn has_device(policy: &Policy) -> String {
    has_plugin(&policy.device_kinds().collect::<Vec<_>>())
}

/// Whether the config has a member `type` with one of these plugins, in any spelling that JSON and Go allow. It searches the whole
/// text; false positives only mean that nadmit is asked unnecessarily.
fn has_plugin(kinds: &[&str]) -> String {
    let names: Vec<String> = kinds.iter().map(|kind| spelled(kind, false)).collect();
    let space = r"[ \t\r\n]*";
    let pattern = format!(r#""{}"{space}:{space}"(?:{})""#, spelled("type", true), names.join("|"));
    let most = MAX_MATCH_COST / pattern.len();
    // A config that is too long to match is only searched for the names, and for escapes that may hide one.
    let mut roughly = r"object.spec.config.contains('\\')".to_owned();
    // Each search costs a tenth of the text per ten letters; beyond this limit nadmit is always asked.
    let searches: usize = kinds.iter().map(|kind| kind.len().div_ceil(10)).sum();
    if searches > MAX_SEARCHES {
        roughly = "true".to_owned();
    } else {
        for kind in kinds {
            let _ = write!(roughly, " || object.spec.config.contains({})", cel_string(kind));
        }
    }
    format!(
        "has(object.spec) && type(object.spec) == map && has(object.spec.config) && type(object.spec.config) == string && \
         (object.spec.config.size() > {most} ? ({roughly}) : object.spec.config.matches(r'{pattern}'))"
    )
}

/// A pattern for a JSON string: any character may be a unicode escape.
pub(super) fn spelled(text: &str, in_any_case: bool) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        let mut ways = ways(character);
        if in_any_case && character.is_ascii_alphabetic() {
            ways = format!("{ways}|{}", self::ways(character.to_ascii_uppercase()));
        }
        let _ = write!(pattern, "(?:{ways})");
    }
    pattern
}

fn ways(character: char) -> String {
    let mut ways = match character {
        plain if plain.is_ascii_alphanumeric() => plain.to_string(),
        other => format!(r"\x{{{:x}}}", u32::from(other)),
    };
    if matches!(character, '/' | '"' | '\\') {
        let _ = write!(ways, r"|\\\x{{{:x}}}", u32::from(character));
    }
    ways += "|";
    for unit in character.encode_utf16(&mut [0; 2]) {
        ways += r"\\u";
        for digit in format!("{unit:04x}").chars() {
            match digit {
                '0'..='9' => ways.push(digit),
                letter => {
                    let _ = write!(ways, "[{letter}{}]", letter.to_ascii_uppercase());
                }
            }
        }
    }
    ways
}

/// A CEL string literal, fully escaped.
fn cel_string(text: &str) -> String {
    let mut literal = "'".to_owned();
    for character in text.chars() {
        match character {
            plain if plain.is_ascii_alphanumeric() || plain == '-' => literal.push(plain),
            other => {
                let _ = write!(literal, r"\U{:08x}", u32::from(other));
            }
        }
    }
    literal + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_unicode_escapes() {
        assert_eq!(spelled("io", false), r"(?:i|\\u0069)(?:o|\\u006[fF])");
        assert_eq!(spelled("t-", true), r"(?:t|\\u0074|T|\\u0054)(?:\x{2d}|\\u002[dD])");
        assert_eq!(spelled("/", false), r"(?:\x{2f}|\\\x{2f}|\\u002[fF])");
        assert_eq!(spelled(r"\", false), r"(?:\x{5c}|\\\x{5c}|\\u005[cC])");
    }

    #[test]
    fn plugin_names_cannot_escape_the_expression() {
        let policy = Policy { device_plugins: vec![r"a'b\) || true".to_owned()], ..Policy::default() };
        let expression = has_device(&policy);
        assert!(!expression.contains("a'b") && !expression.contains(") || true"), "{expression}");
        assert_eq!(cel_string("a'b-1"), r"'a\U00000027b-1'");
    }

    /// Many searches in the largest config would exceed the cost limit, and an error lets the write pass.
    #[test]
    fn many_plugins_fall_back_to_asking_nadmit() {
        let with = |names: &[&str]| Policy {
            device_plugins: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Policy::default()
        };
        assert!(has_device(&with(&["my-sriov", "other"])).contains("contains('other')"));
        let many = has_device(&with(&["a-name-of-twenty-six-lette", "my-sriov"]));
        assert!(many.contains("? (true) :") && !many.contains("contains("), "{many}");
    }

    #[test]
    fn last_namespace_changes_are_judged_except_for_operators() {
        let expression = changes_or_wedged().to_string();
        assert!(
            expression.contains("resource('network-attachment-definitions').check('create').allowed()"),
            "{expression}"
        );
    }

    #[test]
    fn extra_device_plugins_are_matched() {
        let policy = Policy { device_plugins: vec!["my-sriov".to_owned()], ..Policy::default() };
        assert_ne!(has_device(&policy), has_device(&Policy::default()));
        // The cost of the pattern is bounded for any number of plugins.
        let many = Policy { device_plugins: (0..100).map(|n| format!("plugin-{n}")).collect(), ..Policy::default() };
        let expression = has_device(&many);
        let most: usize = expression.split(['>', '?']).nth(1).unwrap().trim().parse().unwrap();
        let pattern = expression.split("matches(r'").nth(1).unwrap().len();
        assert!(most > 500 && most * pattern / 40 < 1_000_000, "{most} * {pattern}");
    }
}
