//! The rule reference: the list and the explanations for a terminal, and the pages `docs/rules/`. All are generated from the rules,
//! with the examples that the tests judge and the messages that they get.

mod facts;
mod manifest_facts;
mod page;
mod parts;

pub use page::{markdown, pages};

use super::table::aligned;
use crate::policy::Rule;
use crate::policy::rules::RULES;
use parts::{RulePart, parts};

/// What nadmit reports about the bad example of each rule, below a heading with its id. A test judges the examples and writes it.
const MESSAGES: &str = include_str!("messages.txt");

/// How wide text is in a terminal.
const WIDTH: usize = 100;

/// A family of rules: the part of their ids before the slash, what it is about, and what its rules have in common.
struct Family {
    name: &'static str,
    about: &'static str,
    introduction: &'static str,
}

const fn family_of(name: &'static str, about: &'static str, introduction: &'static str) -> Family {
    Family { name, about, introduction }
}

/// All families, in the order of the reference.
const FAMILIES: [Family; 15] = [
    family_of("nad", "every NetworkAttachmentDefinition", ""),
    family_of(
        "dra",
        "devices that pods claim (Dynamic Resource Allocation)",
        "`nadmit check` judges ResourceClaims, ResourceClaimTemplates and DeviceClasses. In a cluster nadmit only reads them, as facts about \
         the NADs that they name: none of its webhooks is called when a claim is written.",
    ),
    family_of("sriov", "the sriov plugin", ""),
    family_of("ib-sriov", "the ib-sriov plugin", ""),
    family_of("ovs", "the ovs plugin", ""),
    family_of("ovn", "OVN-Kubernetes", ""),
    family_of("plugin", "the other plugins of the CNI project", ""),
    family_of("meta", "chained plugins", ""),
    family_of(
        "ipam",
        "address management",
        "These rules are about the section `ipam` of a config, also of one that a network renders.",
    ),
    family_of(
        "pod",
        "pods, and what makes them, against the NADs they select",
        "`nadmit check` judges Pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs and KubeVirt's VirtualMachines whose \
         pods select networks. In a cluster they are judged only where the policy says so (`pods: warn`, or `pods: audit`), and never \
         denied.",
    ),
    family_of(
        "network",
        "SriovNetwork, SriovIBNetwork, OVSNetwork",
        "A network is also judged by the rules about NADs: nadmit renders the NAD that the operator would create for it, judges that one, \
         and reports the findings at the fields of the network.",
    ),
    family_of(
        "node-policy",
        "SriovNetworkNodePolicy",
        "Node policies are judged by themselves, and together with the others of their namespace. Two policies meet on a PF if both name it, or          if one has the conditions of the other and more; and, in `nadmit check` and in audits, if SriovNetworkNodeStates show that both mean          it. They meet only on nodes that both certainly select: with equal labels in `nodeSelector`, or where one has the labels of the          other and more. In a cluster nothing about node policies is more than a warning.",
    ),
    family_of(
        "status",
        "writes to a status",
        "nadmit judges status writes of the operator's kinds, and of the custom resources that the policy lists under `status.resources`. \
         The examples are of such a resource, `plans` of the group `example.com`. [Writing a status](../status.md) explains how a \
         controller should write.",
    ),
    family_of(
        "audit",
        "stored objects in a cluster",
        "`nadmit audit` reports these, and continuously the leader of `nadmit serve --register`. Nobody writes the object at that moment, so \
         nothing is denied.",
    ),
    family_of("cluster", "what nadmit could not find out", ""),
];

impl Family {
    fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        RULES.iter().copied().filter(|rule| family(rule) == self.name)
    }

    fn title(&self) -> String {
        format!("{}: {}", self.name, self.about)
    }
}

/// All rules by family, each on a line: id, default action, what is wrong.
pub fn table() -> String {
    FAMILIES.iter().map(list).collect::<Vec<_>>().join("\n") + "\nnadmit rules RULE explains one of them.\n"
}

/// The rules of one family, if there is one of that name.
pub fn table_of(name: &str) -> Option<String> {
    FAMILIES.iter().find(|family| family.name == name).map(list)
}

fn list(family: &Family) -> String {
    // The columns of all families are below each other.
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    let row = |rule: &Rule| format!("  {:width$}  {:5}  {}\n", rule.id, rule.default.name(), rule.wrong);
    format!("{}\n", family.title()) + &family.rules().map(row).collect::<String>()
}

/// One rule, as its page in the reference has it: what is wrong, what happens, how to fix it, and two examples.
pub fn explain(rule: &Rule) -> String {
    let mut text = format!("{}\n\n", rule.id);
    let mut is_list = false;
    for part in parts(rule, MESSAGES) {
        let is_property = matches!(part, RulePart::Property(..));
        // Properties are a list; everything else is a paragraph.
        if std::mem::replace(&mut is_list, is_property) && !is_property {
            text.push('\n');
        }
        text += &for_terminal(&part);
        if !is_property {
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn for_terminal(part: &RulePart<'_>) -> String {
    match part {
        RulePart::Headline(sentence) => format!("{}\n", wrap(sentence, WIDTH).join("\n")),
        RulePart::Property(label, value) => {
            let lines = wrap(value, WIDTH - 18);
            format!("{:18}{}\n", format!("{label}:"), lines.join(&format!("\n{:18}", "")))
        }
        RulePart::Text(label, text) => format!("{}\n", wrap(&format!("{label}: {text}"), WIDTH).join("\n")),
        RulePart::Code(label, _, text) => {
            let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
            format!("{label}:\n\n{}", text.lines().map(line).collect::<String>())
        }
        RulePart::Table(head, rows) => {
            let rows: Vec<Vec<String>> =
                rows.iter().map(|row| row.iter().map(|cell| cell.replace('`', "")).collect()).collect();
            aligned(head, &rows)
        }
    }
}

/// A rule's section of the page, without its heading.
pub(super) fn details(rule: &Rule) -> String {
    page::section(rule, MESSAGES)
}

/// The part of an id that several rules share.
pub(super) fn family(rule: &Rule) -> &'static str {
    rule.id.split_once('/').map_or(rule.id, |(family, _)| family)
}

/// Where a rule is explained, below `docs/`.
pub(super) fn path(rule: &Rule) -> String {
    let name = family(rule);
    if FAMILIES.iter().any(|family| family.name == name) {
        format!("rules/{name}.md#{}", page::anchor(rule.id))
    } else {
        // Only the findings in an audit log have rules beside these.
        "audit-log.md".to_owned()
    }
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

#[cfg(test)]
mod tests;
