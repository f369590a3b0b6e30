//! What decides an example besides its manifest: the write, the stored object, and what else is in the cluster, in words.

use serde_json::Value;

use super::manifest_facts::{self, Example};
use crate::yaml::Documents;

/// The facts of the two examples of a rule, from the files `bad.facts.yaml` and `good.facts.yaml` beside them; the tests judge the
/// examples with these.
pub(super) struct ExampleFacts([(&'static str, Value); 2]);

macro_rules! facts {
    ($($rule:literal)*) => {
        /// The rules whose examples have facts.
        const FACTS: &[(&str, [&str; 2])] = &[$((
            $rule,
            [
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy/rules/examples/", $rule, "/bad.facts.yaml")),
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy/rules/examples/", $rule, "/good.facts.yaml")),
            ],
        )),*];
    };
}

facts! {
    "nad/forged-owner" "nad/in-use"
    "network/forged-last-namespace" "network/moves-to-nowhere"
    "status/stale" "status/contradicted" "status/regressed" "status/unversioned" "status/takeover" "status/unproven" "status/ahead"
    "audit/nad-absent" "audit/nad-drift" "audit/nad-incomplete" "audit/stuck-deletion" "audit/orphan" "audit/hot-object"
    "audit/operator-silent"
    "cluster/unknown"
}

/// The facts of both examples, compared.
#[derive(Debug, Default)]
pub(super) struct FactTable {
    /// What, and what it is in the bad and in the good example.
    pub(super) differing: Vec<Vec<String>>,
    /// What is the same in both, with what it is.
    pub(super) same: Vec<String>,
}

/// A fact in words: what it is, and from its value in a file what it says.
type Fact = (&'static str, fn(&Value) -> Option<String>);

/// All facts, in the order in which they are shown.
const WORDS: [Fact; 15] = [
    ("the write", write),
    ("pods that use the NAD", |file| users(file.pointer("/facts/users/pods")?)),
    ("the namespace for the NAD", |file| of_word(file.pointer("/facts/target_namespace")?)),
    ("the network that the NAD names as its owner", |file| network(file.pointer("/facts/named_owner")?)),
    ("the network that renders this NAD", |file| network(file.pointer("/facts/networks_here/0")?)),
    ("the domain that the operator adds to resources", |file| code(file.pointer("/facts/prefix")?)),
    ("the namespace of the operator", |file| code(file.pointer("/facts/operator_namespace")?)),
    ("unknown to nadmit", |file| code(file.pointer("/facts/unreachable/0")?)),
    ("the object was last written", |file| ago(file.pointer("/facts/stored/unchanged_for")?)),
    ("the object was deleted", |file| ago(file.pointer("/facts/stored/deleting_for")?)),
    ("its finalizer", |file| code(file.pointer("/facts/stored/finalizers/0")?)),
    ("the NAD of the network", |file| of_word(file.pointer("/facts/stored/nad")?)),
    ("the operator", |file| of_word(file.pointer("/facts/stored/operator")?)),
    ("networks that wait for their NADs", |file| Some(file.pointer("/facts/stored/waiting")?.to_string())),
    ("writes of the object", |file| rewrites(file.pointer("/facts/stored/rewrites")?)),
];

impl ExampleFacts {
    /// Those of a rule, if its manifests alone do not decide.
    pub(super) fn of(rule: &str) -> Option<Self> {
        let (_, texts) = FACTS.iter().find(|(id, _)| *id == rule)?;
        Some(Self(texts.map(|text| (text, parsed(text)))))
    }

    /// Each fact that differs, with what it is in the bad and in the good example, and the facts that are the same in both.
    pub(super) fn table(&self, manifests: [&str; 2]) -> FactTable {
        let Self([(_, bad), (_, good)]) = self;
        let [bad_manifest, good_manifest] = manifests.map(parsed);
        let of_facts = WORDS.iter().map(|(what, words)| ((*what).to_owned(), words(bad), words(good)));
        let of_manifests = manifest_facts::facts(
            Example { facts: bad, manifest: &bad_manifest },
            Example { facts: good, manifest: &good_manifest },
        );
        let mut table = FactTable::default();
        for (what, bad, good) in of_facts.chain(of_manifests) {
            if bad != good {
                let shown = |fact: Option<String>| fact.unwrap_or_else(|| "–".to_owned());
                table.differing.push(vec![what, shown(bad), shown(good)]);
            } else if let Some(fact) = bad {
                table.same.push(format!("{what} ({fact})"));
            }
        }
        table
    }

    /// The other objects of both examples as YAML, each with what it is.
    pub(super) fn objects(&self) -> Vec<(&'static str, String, String)> {
        let Self([(bad, _), (good, _)]) = self;
        let objects = [("The stored object, before the write", "old:"), ("The NAD", "nad:")];
        objects.into_iter().filter_map(|(what, key)| Some((what, below(bad, key)?, below(good, key)?))).collect()
    }
}

fn parsed(text: &str) -> Value {
    let node = Documents::new(text).next().and_then(|document| document.node.ok());
    node.and_then(|node| serde_json::from_str(&node.to_json()).ok()).unwrap_or_default()
}

/// The YAML below a key, without its indentation.
fn below(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != key);
    let indentation = lines.next()?.find(key)? + 2;
    let block = lines.map_while(|line| {
        let (blanks, rest) = line.split_at_checked(indentation)?;
        blanks.trim().is_empty().then_some(rest)
    });
    Some(block.collect::<Vec<_>>().join("\n"))
}

fn write(file: &Value) -> Option<String> {
    let of = if file.get("sub_resource").is_some() { " of the status" } else { "" };
    Some(format!("{}{of} by `{}`", file.get("operation")?.as_str()?, file.get("user")?.as_str()?))
}

/// A network, or that there is none.
fn network(value: &Value) -> Option<String> {
    let Some(member) = value.as_object() else { return of_word(value) };
    let word = |key: &str| member.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{} `{}/{}`, of resource `{}`", word("kind"), word("namespace"), word("name"), word("resourceName")))
}

fn users(pods: &Value) -> Option<String> {
    let names: Vec<_> = pods.as_array()?.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
    Some(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

fn of_word(value: &Value) -> Option<String> {
    let words = match value.as_str()? {
        "absent" => "does not exist",
        "terminating" => "is being deleted",
        "not-running" => "does not run",
        "active" => "is active",
        "stalled" => "runs, but has written nothing since",
        other => other,
    };
    Some(words.to_owned())
}

fn code(value: &Value) -> Option<String> {
    Some(format!("`{}`", value.as_str()?))
}

fn ago(seconds: &Value) -> Option<String> {
    Some(format!("{seconds} s ago"))
}

fn rewrites(value: &Value) -> Option<String> {
    let list = |key: &str| {
        let names = value.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(" and ")
    };
    let (count, within) = (value.get("count")?, value.get("within")?);
    Some(format!("{count} in {within} s, by {}, of `{}`", list("managers"), list("fields")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_shown_as_they_are_written() {
        let text = "user: a\nold:\n  kind: A\n  spec:\n    b: c\nfacts:\n  stored:\n    nad:\n      kind: B\n      x: y\n    more: 1\n";
        assert_eq!(below(text, "old:").unwrap(), "kind: A\nspec:\n  b: c");
        assert_eq!(below(text, "nad:").unwrap(), "kind: B\nx: y");
        assert_eq!(below(text, "new:"), None);
    }

    /// A fact that no row or object shows would decide unseen.
    #[test]
    fn every_fact_is_shown() {
        const SHOWN: [&str; 20] = [
            "user",
            "operation",
            "sub_resource",
            "old",
            "facts",
            "target_namespace",
            "named_owner",
            "networks_here",
            "prefix",
            "operator_namespace",
            "unreachable",
            "stored",
            "unchanged_for",
            "deleting_for",
            "finalizers",
            "nad",
            "operator",
            "waiting",
            "rewrites",
            "users",
        ];
        for (rule, texts) in FACTS {
            for file in texts.map(parsed) {
                let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
                let facts = file.get("facts").map(members).unwrap_or_default();
                let stored = facts.get("stored").map(members).unwrap_or_default();
                for key in members(&file).keys().chain(facts.keys()).chain(stored.keys()) {
                    assert!(SHOWN.contains(&key.as_str()), "{rule}: `{key}` is not shown");
                }
            }
        }
    }
}
