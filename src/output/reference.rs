//! The rule reference: the table and explanations for a terminal, and the page `docs/rules.md`. All are generated from the rules,
//! with the examples that the tests run.

use super::table::aligned;
use crate::policy::pod_errors::POD_ERRORS;
use crate::policy::rules::RULES;
use crate::policy::{Action, Rule};

/// How wide text is in a terminal.
const WIDTH: usize = 100;

/// All rules, one below the other: id, default action, what it finds.
pub fn table() -> String {
    let id_width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    let width = WIDTH.saturating_sub(id_width + "  DEFAULT  ".len()).max(40);
    let mut rows = Vec::new();
    for rule in RULES {
        let mut first = [rule.id, rule.default.name()];
        for line in wrap(rule.finds, width) {
            rows.push(std::mem::take(&mut first).into_iter().map(str::to_owned).chain([line]).collect());
        }
    }
    aligned(&["RULE", "DEFAULT", "REPORTS"], &rows)
}

/// One rule: its action, what it reports and why, and two example manifests.
pub fn explain(rule: &Rule) -> String {
    let mut text = format!("{}\n\n", rule.id);
    for (label, words) in [("finds", rule.finds), ("default", &default(rule))] {
        let lines = wrap(words, WIDTH - 10);
        text += &format!("{:10}{}\n", format!("{label}:"), lines.join("\n          "));
    }
    text += &format!("\n{}\n", wrap(rule.why, WIDTH).join("\n"));
    if let Some(errors) = pod_errors(rule) {
        text += &format!("\n{}\n", wrap(&format!("Pods show: {errors}"), WIDTH).join("\n"));
    }
    for (title, example) in examples(rule) {
        text += &format!("\n{title}:\n\n");
        for line in example.lines() {
            let indent = if line.is_empty() { "" } else { "    " };
            text += &format!("{indent}{line}\n");
        }
    }
    text
}

/// The whole page of rules.
pub fn markdown() -> String {
    let mut page = format!("{HEAD}\n{ACTIONS}\n## All rules\n\n| rule | default | reports |\n|---|---|---|\n");
    for rule in RULES {
        let (id, default) = (rule.id, rule.default.name());
        page += &format!("| [{id}](#{}) | {default} | {} |\n", anchor(id), rule.finds.replace('|', "\\|"));
    }
    let mut families: Vec<&str> = Vec::new();
    for family in RULES.iter().map(|rule| family(rule)) {
        if !families.contains(&family) {
            families.push(family);
        }
    }
    for name in families {
        page += &format!("\n## {}\n", title(name));
        for rule in RULES.iter().filter(|rule| family(rule) == name) {
            page += &format!("\n### {}\n\n{}", rule.id, details(rule));
        }
    }
    page
}

/// The part of an id that several rules share.
pub(super) fn family(rule: &Rule) -> &'static str {
    rule.id.split_once('/').map_or(rule.id, |(family, _)| family)
}

/// A rule's section of the page, without its heading.
pub(super) fn details(rule: &Rule) -> String {
    let mut text = format!("Finds: {}.\n\nDefault: {}.\n\n{}\n", rule.finds, default(rule), rule.why);
    if let Some(errors) = pod_errors(rule) {
        text += &format!("\nPods show: {errors}\n");
    }
    for (title, example) in examples(rule) {
        text += &format!("\n{title}:\n\n```yaml\n{}\n```\n", example.trim_end());
    }
    text
}

/// The errors that pods show because of what the rule finds.
fn pod_errors(rule: &Rule) -> Option<String> {
    let errors = POD_ERRORS.iter().filter(|error| error.rules.contains(&rule.id));
    let words: Vec<String> = errors.map(|error| format!("`{}`", error.words.trim())).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The default action in words.
fn default(rule: &Rule) -> String {
    match (rule.default, rule.repairs) {
        (Action::Patch, _) => "patch; deny if the repair is not possible".to_owned(),
        (action, true) => format!("{}; patch if a repair is known", action.name()),
        (action, false) => action.name().to_owned(),
    }
}

/// The examples there are.
fn examples(rule: &Rule) -> impl Iterator<Item = (&'static str, &'static str)> {
    let both = [("Reported", rule.bad), ("Accepted", rule.good)];
    both.into_iter().filter(|(_, example)| !example.trim().is_empty())
}

/// Where a heading is linked to: its letters, digits and hyphens, as GitHub has it.
pub(super) fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect()
}

fn title(family: &str) -> String {
    let about = match family {
        "nad" => "every NetworkAttachmentDefinition",
        "sriov" => "the sriov plugin",
        "ib-sriov" => "the ib-sriov plugin",
        "ovs" => "the ovs plugin",
        "meta" => "chained plugins",
        "ipam" => "address management",
        "network" => "SriovNetwork, SriovIBNetwork, OVSNetwork",
        "status" => "writes to a status",
        "audit" => "stored objects in a cluster",
        _ => return family.to_owned(),
    };
    format!("{family}: {about}")
}

/// Wraps a text at spaces. A word that is too long gets its own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

const HEAD: &str = "\
<!-- Generated from the rules in src/policy/rules by the function output::reference::markdown; do not edit. -->

# The rules

`nadmit rules` prints this list, and `nadmit rules ID` explains one of them. Ids and defaults are stable.
";

const ACTIONS: &str = "\
## Actions

| action | at admission | in `nadmit check` |
|---|---|---|
| deny | the write is denied | exit code 1 |
| patch | the object is repaired; if that is not possible, the write is denied | the patch is reported |
| warn | the writer sees a warning | reported |
| audit | the finding is only recorded | listed in the JSON, SARIF and JUnit reports |
| off | the rule does not run | |

The policy file changes the action of any rule, for the whole cluster or for some namespaces:

```yaml
rules:
  nad/dotted-name: off
namespaces:
- names: [\"team-*\"]
  rules:
    nad/unknown-key: deny
```

`patch` can be chosen only for rules with a repair. In mode `audit` nothing is denied or repaired; every response says what would have been done.

Where a rule says that pods fail to start, deleted pods can also be stuck in `Terminating`: the plugins read the same config when the network is removed. They terminate once the NAD is corrected or deleted.

A write is never denied for a mistake that the stored object already has (ratcheting), for removing a finalizer from an object that is being deleted, or if the writer, the namespace or the object is exempt.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules;

    const RULE: Rule = Rule {
        id: "nad/example",
        default: Action::Deny,
        repairs: true,
        finds: "a `|` in a name",
        why: "Because of this.",
        bad: "kind: Bad\n\nspec:\n  a: 1\n",
        good: "\n",
    };

    #[test]
    fn explains_a_rule() {
        insta::assert_snapshot!(explain(&RULE), @"
        nad/example

        finds:    a `|` in a name
        default:  deny; patch if a repair is known

        Because of this.

        Reported:

            kind: Bad

            spec:
              a: 1
        ");
    }

    #[test]
    fn shows_available_examples() {
        insta::assert_snapshot!(details(&RULE), @"
        Finds: a `|` in a name.

        Default: deny; patch if a repair is known.

        Because of this.

        Reported:

        ```yaml
        kind: Bad

        spec:
          a: 1
        ```
        ");
    }

    #[test]
    fn every_rule_is_in_the_table_and_on_the_page() {
        let (table, page) = (table(), markdown());
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        assert!(table.lines().any(|line| line.chars().count() > WIDTH - 5), "{table}");
        for rule in RULES {
            assert!(table.contains(&format!("\n{} ", rule.id)));
            assert_eq!(page.matches(&format!("\n### {}\n", rule.id)).count(), 1);
            assert!(page.contains(&format!("](#{})", anchor(rule.id))));
        }
        let mut anchors: Vec<String> = RULES.iter().map(|rule| anchor(rule.id)).collect();
        anchors.sort();
        anchors.dedup();
        assert_eq!(anchors.len(), RULES.len());
    }

    #[test]
    fn explanations_fit_a_terminal() {
        for rule in RULES {
            let words = Rule { bad: "", good: "", ..copy(rule) };
            assert!(explain(&words).lines().all(|line| line.chars().count() <= WIDTH), "{}", rule.id);
        }
        assert!(explain(rules::find("nad/no-plugin").unwrap()).starts_with("nad/no-plugin\n"));
    }

    fn copy(rule: &Rule) -> Rule {
        let Rule { id, default, repairs, finds, why, bad, good } = *rule;
        Rule { id, default, repairs, finds, why, bad, good }
    }

    #[test]
    fn wraps_at_blanks() {
        for (text, want) in [
            ("", &[] as &[&str]),
            ("one two three", &["one two", "three"]),
            ("exactly8 x", &["exactly8", "x"]),
            ("averylongword and", &["averylongword", "and"]),
            ("ää ää ää", &["ää ää ää"]),
        ] {
            assert_eq!(wrap(text, 8), want, "{text}");
        }
    }

    #[test]
    fn the_page_in_the_docs_is_this_one() {
        assert_eq!(markdown(), include_str!("../../docs/rules.md"));
    }
}
