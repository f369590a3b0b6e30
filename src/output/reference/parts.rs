//! What the reference says about a rule, in the order in which every page has it.

use super::facts::ExampleFacts;
use crate::policy::pod_errors::POD_ERRORS;
use crate::policy::{Action, Rule};

/// A part of a rule's page.
#[derive(Debug, PartialEq)]
pub(super) enum RulePart<'a> {
    /// What is wrong.
    Headline(&'a str),
    /// A property of the rule: its label and its value.
    Property(&'static str, String),
    /// A paragraph with a label.
    Text(&'static str, String),
    /// A manifest or what nadmit prints: its label, its language and the text.
    Code(String, &'static str, String),
    /// Facts that decide besides the manifest.
    Table([&'static str; 3], Vec<Vec<String>>),
}

/// Everything about a rule; `messages` has what nadmit reports about its bad example.
pub(super) fn parts<'a>(rule: &'a Rule, messages: &str) -> Vec<RulePart<'a>> {
    let mut parts = vec![
        RulePart::Headline(rule.wrong),
        RulePart::Property("Default action", default_action(rule)),
        RulePart::Property("Patched", patched(rule).to_owned()),
    ];
    if !rule.releases.is_empty() {
        parts.push(RulePart::Property("Releases", rule.releases.to_owned()));
    }
    parts.push(RulePart::Text("What happens", rule.why.to_owned()));
    parts.extend(pod_errors(rule).map(|errors| RulePart::Text("Pods show", errors)));
    parts.push(RulePart::Text("How to fix it", rule.fix.to_owned()));
    examples(rule, messages, &mut parts);
    parts
}

/// What nadmit does unless the policy says otherwise.
fn default_action(rule: &Rule) -> String {
    let action = rule.default.name();
    if rule.warns_in_cluster { format!("{action} in `nadmit check`; warn in a cluster") } else { action.to_owned() }
}

/// Whether nadmit can fix the object itself.
fn patched(rule: &Rule) -> &'static str {
    match (rule.default, rule.repairs) {
        (_, false) => "no",
        _ if super::family(rule) == "audit" => {
            "yes, by the leader of `nadmit serve --register` and by `nadmit audit --fix`"
        }
        (Action::Patch, true) => "yes, at admission; if nadmit does not know the right value, the write is denied",
        (_, true) => "at admission, if nadmit knows the right value",
    }
}

/// The errors that pods show because of what the rule reports.
fn pod_errors(rule: &Rule) -> Option<String> {
    let errors = POD_ERRORS.iter().filter(|error| error.rules.contains(&rule.id));
    let words: Vec<String> = errors.map(|error| format!("`{}`", error.words.trim())).collect();
    let is_about_the_nad = super::family(rule) != "pod";
    let when_deleted = if is_about_the_nad {
        " Deleted pods can also be stuck in `Terminating` until the NAD is corrected or deleted."
    } else {
        ""
    };
    (!words.is_empty()).then(|| format!("{}.{when_deleted}", words.join(", ")))
}

/// The two examples, with what decides besides the manifests, and the message that the bad one gets.
fn examples(rule: &Rule, messages: &str, parts: &mut Vec<RulePart<'_>>) {
    let (bad, good) = (rule.bad.trim_end(), rule.good.trim_end());
    if bad.is_empty() {
        return;
    }
    let yaml = |label: String, text: &str| RulePart::Code(label, "yaml", text.to_owned());
    let facts = ExampleFacts::of(rule.id);
    let (mut of_bad, mut of_good) = (Vec::new(), Vec::new());
    if let Some(facts) = &facts {
        let table = facts.table([bad, good]);
        parts.push(RulePart::Table(["What decides", "Reported", "Accepted"], table.differing));
        if !table.same.is_empty() {
            parts.push(RulePart::Text("The same in both", format!("{}.", table.same.join(", "))));
        }
        for (what, bad, good) in facts.objects() {
            if bad == good {
                parts.push(yaml(what.to_owned(), &bad));
            } else {
                of_bad.push(yaml(format!("{what} (reported)"), &bad));
                of_good.push(yaml(format!("{what} (accepted)"), &good));
            }
        }
    }
    if bad == good {
        parts.push(yaml("The object, the same in both examples".to_owned(), bad));
        parts.append(&mut of_bad);
    } else {
        parts.append(&mut of_bad);
        parts.push(yaml("Reported".to_owned(), bad));
    }
    if let Some(message) = message(messages, rule.id) {
        let label = if facts.is_some() { "nadmit reports" } else { "`nadmit check bad.yaml` prints" };
        parts.push(RulePart::Code(label.to_owned(), "text", message.to_owned()));
    }
    parts.append(&mut of_good);
    if bad != good {
        parts.push(yaml("Accepted".to_owned(), good));
    }
}

/// What nadmit reports about the bad example of a rule.
fn message<'m>(messages: &'m str, id: &str) -> Option<&'m str> {
    let (_, rest) = messages.split_once(&format!("\n## {id}\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest).trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_by_its_rule() {
        let messages = "# Head\n\n## a/b\n\nerror\n  --> x\n\n## a/bc\n\nlast\n";
        assert_eq!(message(messages, "a/b"), Some("error\n  --> x"));
        assert_eq!(message(messages, "a/bc"), Some("last"));
        assert_eq!(message(messages, "a/c"), None);
    }
}
