//! What the API server asks itself before it asks nadmit, in CEL.
//!
//! A condition that cannot be evaluated counts as a failure of the webhook, so each of them looks before it leaps: a NAD may come
//! without a spec, and, as repairs are made before the schema is checked, with a spec of any type.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::policy::Policy;
use crate::resources::{LAST_NAMESPACE, LONGEST_OWNER, MOST_OWNERS, NAD_GROUP, NADS, READ_ANNOTATIONS};

/// What an expression may cost is 1,000,000; matching a pattern costs a fortieth of the product of both lengths. Half of that is
/// enough for every config that people write.
const MOST_LENGTHS: usize = 20_000_000;
/// How many searches of up to ten letters a config of the largest size allows.
const MOST_SEARCHES: usize = 4;

/// Not the update of an object that is being deleted already and of which nothing changes that is judged: finalizers and the garbage
/// collector must get through, also while nadmit is down. A deletionTimestamp in the object that is sent proves nothing. It is
/// `Subject::is_let_go` in CEL, and a test compares the two.
pub(super) fn stays() -> Value {
    json!({ "name": "stays", "expression": format!("!({})", is_let_go()) })
}

fn is_let_go() -> String {
    let [(new, old), (now, before)] = ["annotations", "ownerReferences"]
        .map(|part| (format!("object.metadata.{part}"), format!("oldObject.metadata.{part}")));
    let keys = READ_ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
    let keys_of_owner = ["apiVersion", "kind", "name", "uid"];
    let short = keys_of_owner.map(|key| format!("has(r.{key}) && r.{key}.size() <= {LONGEST_OWNER}")).join(" && ");
    let same = keys_of_owner.map(|key| format!("has(o.{key}) && o.{key} == r.{key}")).join(" && ");
    // What an expression may cost is limited, and to compare all references with all others takes the square of their number.
    format!(
        "request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && \
         has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec) && \
         [{keys}].all(k, (has({new}) && k in {new}) == (has({old}) && k in {old}) && \
         (!has({new}) || !(k in {new}) || {new}[k] == {old}[k])) && \
         (!has({now}) || (has({before}) && ({now} == {before} || ({now}.size() <= {MOST_OWNERS} && {before}.size() <= {MOST_OWNERS} && \
         {now}.all(r, {short} && {before}.exists(o, {same}))))))"
    )
}

/// Not a write to the status of what is being deleted.
pub(super) fn status_stays() -> Value {
    json!({ "name": "stays", "expression": "!has(oldObject.metadata.deletionTimestamp)" })
}

/// A write that changes something of what is judged, or is a person's, who is told again what was wrong before. Controllers write
/// the rest all the time, the operator with each of its reconciles: nothing could be said of it that was not said, and nobody would
/// read it.
pub(super) fn changes(parts: &[&str]) -> Value {
    json!({ "name": "changes", "expression": changed(parts) })
}

/// The same for a network, and whatever is written to one that goes elsewhere than it went: of all that the operator notes on a network only
/// that is judged.
pub(super) fn changes_or_wedged() -> Value {
    let expression = format!("{} || ({}) || ({})", changed(&["spec"]), is_wedged(), is_annotated_anew());
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

/// A writer who might have patched. One who may only update has sent a PUT, which the API server compares by itself.
pub(super) fn may_patch() -> Value {
    json!({ "name": "may-patch", "expression": "authorizer.requestResource.check('patch').allowed()" })
}

/// A NAD that has a plugin that needs a device.
pub(super) fn device(policy: &Policy) -> Value {
    json!({ "name": "device", "expression": has_device(policy) })
}

/// A NAD that has none.
pub(super) fn no_device(policy: &Policy) -> Value {
    json!({ "name": "no-device", "expression": format!("!({})", has_device(policy)) })
}

/// A network of which the operator noted another namespace than the one it goes to.
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

/// An update in which somebody who is no operator says where the network was. The operator, who may create NADs in all namespaces, does so
/// with each network, and is not asked about.
fn is_annotated_anew() -> String {
    let said = |object: &str| {
        format!("has({object}.metadata.annotations) && '{LAST_NAMESPACE}' in {object}.metadata.annotations")
    };
    let (now, before) = (said("object"), said("oldObject"));
    format!(
        "{now} && !({before} && oldObject.metadata.annotations['{LAST_NAMESPACE}'] == object.metadata.annotations['{LAST_NAMESPACE}']) && \
         !authorizer.group('{NAD_GROUP}').resource('{NADS}').check('create').allowed()"
    )
}

/// Whether the config has a member `type` with the name of such a plugin, in any spelling that JSON and Go allow. It looks
/// everywhere in the text: of what it finds too much nadmit has nothing to repair.
pub(super) fn has_device(policy: &Policy) -> String {
    let kinds: Vec<&str> = policy.device_kinds().collect();
    let names: Vec<String> = kinds.iter().map(|kind| spelled(kind, false)).collect();
    let space = r"[ \t\r\n]*";
    let pattern = format!(r#""{}"{space}:{space}"(?:{})""#, spelled("type", true), names.join("|"));
    let most = MOST_LENGTHS / pattern.len();
    // A config that is too long to be matched is only looked through for the names, and for escapes that may hide one.
    let mut roughly = r"object.spec.config.contains('\\')".to_owned();
    // Each search costs a tenth of the text for every ten letters; of more than these the API server would give up, so nadmit is asked.
    let searches: usize = kinds.iter().map(|kind| kind.len().div_ceil(10)).sum();
    if searches > MOST_SEARCHES {
        roughly = "true".to_owned();
    } else {
        for kind in kinds {
            let _ = write!(roughly, " || object.spec.config.contains({})", quoted(kind));
        }
    }
    format!(
        "has(object.spec) && type(object.spec) == map && has(object.spec.config) && type(object.spec.config) == string && \
         (object.spec.config.size() > {most} ? ({roughly}) : object.spec.config.matches(r'{pattern}'))"
    )
}

/// A pattern for a text as it may stand between the quotes of JSON: any letter may be written by its number.
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

/// A text of CEL, in which nothing is left that could end it.
fn quoted(text: &str) -> String {
    let mut quoted = "'".to_owned();
    for character in text.chars() {
        match character {
            plain if plain.is_ascii_alphanumeric() || plain == '-' => quoted.push(plain),
            other => {
                let _ = write!(quoted, r"\U{:08x}", u32::from(other));
            }
        }
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_may_be_its_number() {
        assert_eq!(spelled("io", false), r"(?:i|\\u0069)(?:o|\\u006[fF])");
        assert_eq!(spelled("t-", true), r"(?:t|\\u0074|T|\\u0054)(?:\x{2d}|\\u002[dD])");
        assert_eq!(spelled("/", false), r"(?:\x{2f}|\\\x{2f}|\\u002[fF])");
        assert_eq!(spelled(r"\", false), r"(?:\x{5c}|\\\x{5c}|\\u005[cC])");
    }

    #[test]
    fn no_name_can_end_the_expression() {
        let policy = Policy { device_plugins: vec![r"a'b\) || true".to_owned()], ..Policy::default() };
        let expression = has_device(&policy);
        assert!(!expression.contains("a'b") && !expression.contains(") || true"), "{expression}");
        assert_eq!(quoted("a'b-1"), r"'a\U00000027b-1'");
    }

    /// Many searches in a config of the largest size would cost more than the API server allows, and an error lets the write pass.
    #[test]
    fn with_many_plugins_nadmit_is_asked_about_every_long_config() {
        let with = |names: &[&str]| Policy {
            device_plugins: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Policy::default()
        };
        assert!(has_device(&with(&["my-sriov", "other"])).contains("contains('other')"));
        let many = has_device(&with(&["a-name-of-twenty-six-lette", "my-sriov"]));
        assert!(many.contains("? (true) :") && !many.contains("contains("), "{many}");
    }

    #[test]
    fn whoever_says_where_a_network_was_is_judged_unless_it_may_be_the_operator() {
        let expression = changes_or_wedged().to_string();
        assert!(
            expression.contains("resource('network-attachment-definitions').check('create').allowed()"),
            "{expression}"
        );
    }

    #[test]
    fn more_plugins_are_looked_for() {
        let policy = Policy { device_plugins: vec!["my-sriov".to_owned()], ..Policy::default() };
        assert_ne!(has_device(&policy), has_device(&Policy::default()));
        // However many there are, the pattern stays affordable.
        let many = Policy { device_plugins: (0..100).map(|n| format!("plugin-{n}")).collect(), ..Policy::default() };
        let expression = has_device(&many);
        let most: usize = expression.split(['>', '?']).nth(1).unwrap().trim().parse().unwrap();
        let pattern = expression.split("matches(r'").nth(1).unwrap().len();
        assert!(most > 500 && most * pattern / 40 < 1_000_000, "{most} * {pattern}");
    }
}
