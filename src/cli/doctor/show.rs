//! Output of a chain as text and JSON.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::audit::chain::{ChainStep, Link, LinkHealth, NetworkChain};
use crate::output::severity;
use crate::policy::Finding;
use crate::visible;

/// The column of the link description.
const COLUMN: usize = 18;

/// The chain as text: one line per link, with advice below.
pub(super) fn human(chain: &NetworkChain, has_colours: bool) -> String {
    let mut text = format!(
        "{}: {}\n\n",
        visible::line(&chain.id.to_string()),
        colored(&summary(chain), chain.state(), has_colours)
    );
    for step in &chain.steps {
        text += &colored(&format!("  {} {:14}", mark(step.state), step.link.title()), step.state, has_colours);
        text += &visible::line(&step.says);
        text.push('\n');
        for finding in &step.findings {
            text += &below(&format!("{}[{}]: {}", severity(finding.action), finding.rule.id, finding.message));
            for (label, line) in [("note", &finding.note), ("help", &finding.help)] {
                if !line.is_empty() {
                    text += &below(&format!("{label}: {line}"));
                }
            }
        }
        if let Some(help) = &step.help {
            text += &below(&format!("help: {help}"));
        }
    }
    text
}

pub(in crate::cli) fn below(line: &str) -> String {
    format!("{:COLUMN$}{}\n", "", visible::line(line))
}

/// `broken at the namespace`
pub(super) fn summary(chain: &NetworkChain) -> String {
    let state = chain.state();
    let links: Vec<_> = chain.steps.iter().filter(|step| step.state == state).map(|step| step.link.title()).collect();
    match state {
        LinkHealth::Good => "healthy".to_owned(),
        LinkHealth::Unknown => format!("unknown: {}", links.join(", ")),
        LinkHealth::Waiting => format!("waiting: {}", links.join(", ")),
        LinkHealth::Broken => format!("broken at {}", links.join(", ")),
    }
}

pub(in crate::cli) fn mark(state: LinkHealth) -> char {
    match state {
        LinkHealth::Good => '✓',
        LinkHealth::Unknown => '?',
        LinkHealth::Waiting => '…',
        LinkHealth::Broken => '✗',
    }
}

pub(in crate::cli) fn colored(text: &str, state: LinkHealth, has_colours: bool) -> String {
    if !has_colours {
        return text.to_owned();
    }
    let colour = match state {
        LinkHealth::Good => AnsiColor::Green,
        LinkHealth::Unknown => AnsiColor::BrightBlack,
        LinkHealth::Waiting => AnsiColor::Yellow,
        LinkHealth::Broken => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{text}{style:#}")
}

/// The links whose state changed, one line each.
pub(super) fn changes(before: Option<&NetworkChain>, now: &NetworkChain) -> Vec<String> {
    let was = |link: Link| before.and_then(|chain| chain.step(link)).map(|step| step.state);
    let changed = now.steps.iter().filter(|step| was(step.link) != Some(step.state));
    changed.map(|step| format!("{} {:14}{}", mark(step.state), step.link.title(), step.says)).collect()
}

/// One JSON document.
pub(super) fn json(chain: &NetworkChain, canary: Option<&CanaryJson>) -> String {
    let document = ChainReport {
        version: 1,
        kind: chain.id.kind.name(),
        namespace: &chain.id.namespace,
        name: &chain.id.name,
        state: chain.state().name(),
        steps: chain.steps.iter().map(StepJson::of).collect(),
        canary,
    };
    crate::json::write::to_json(&document) + "\n"
}

#[derive(Serialize)]
struct ChainReport<'a> {
    version: u8,
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    state: &'static str,
    steps: Vec<StepJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<&'a CanaryJson>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    step: &'static str,
    state: &'static str,
    says: &'a str,
    help: Option<&'a str>,
    findings: Vec<FindingJson<'a>>,
}

impl<'a> StepJson<'a> {
    fn of(step: &'a ChainStep) -> Self {
        Self {
            step: step.link.title(),
            state: step.state.name(),
            says: &step.says,
            help: step.help.as_deref(),
            findings: step.findings.iter().map(FindingJson::of).collect(),
        }
    }
}

#[derive(Serialize)]
pub(in crate::cli) struct FindingJson<'a> {
    rule: &'static str,
    action: &'static str,
    pointer: &'a str,
    config_pointer: Option<&'a str>,
    message: &'a str,
    note: &'a str,
    help: &'a str,
}

impl<'a> FindingJson<'a> {
    pub(in crate::cli) fn of(finding: &'a Finding) -> Self {
        Self {
            rule: finding.rule.id,
            action: finding.action.name(),
            pointer: &finding.pointer,
            config_pointer: finding.config.as_ref().map(|place| place.pointer.as_str()),
            message: &finding.message,
            note: &finding.note,
            help: &finding.help,
        }
    }
}

/// The result of a canary.
#[derive(Serialize)]
pub(super) struct CanaryJson {
    /// When its NAD existed and when it was complete, in seconds since the network was created.
    pub(super) nad_after: Option<f64>,
    pub(super) complete_after: Option<f64>,
    /// What could not be deleted.
    pub(super) left: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::finding;
    use crate::policy::Action;
    use crate::resources::{NetworkId, NetworkKind};

    #[test]
    fn findings_stand_below_their_link() {
        let found = finding("network/namespace-absent", Action::Warn, "namespace `late` does not exist")
            .with_note("the operator creates no NAD");
        let id = NetworkId { kind: NetworkKind::Sriov, namespace: "op".to_owned(), name: "net".to_owned() };
        let says = "late does not exist".to_owned();
        let step =
            ChainStep { link: Link::Namespace, state: LinkHealth::Broken, says, help: None, findings: vec![found] };
        let chain = NetworkChain { id, steps: vec![step] };
        insta::assert_snapshot!(human(&chain, false), @"
        SriovNetwork op/net: broken at namespace

          ✗ namespace     late does not exist
                          warning[network/namespace-absent]: namespace `late` does not exist
                          note: the operator creates no NAD
                          help: fix it
        ");
        let json: serde_json::Value = serde_json::from_str(&json(&chain, None)).unwrap();
        let found = &json["steps"][0]["findings"][0];
        assert_eq!(
            (&found["message"], &found["note"]),
            (&"namespace `late` does not exist".into(), &"the operator creates no NAD".into())
        );
    }

    #[test]
    fn untrusted_text_is_escaped() {
        let nasty = "n\u{1b}[2J\u{202e}\nx";
        let id = NetworkId { kind: NetworkKind::Sriov, namespace: nasty.to_owned(), name: nasty.to_owned() };
        let findings = vec![finding("nad/schema", Action::Deny, nasty).with_note(nasty)];
        let (says, help) = (nasty.to_owned(), Some(nasty.to_owned()));
        let chain = NetworkChain {
            id,
            steps: vec![ChainStep { link: Link::Nad, state: LinkHealth::Broken, says, help, findings }],
        };
        let text = human(&chain, false);
        assert!(!text.contains(|c| visible::is_hidden(c) && c != '\n'), "{text:?}");
        assert_eq!(text.matches("n\\u{1b}[2J\\u{202e}\\nx").count(), 6, "{text}");
        let json: serde_json::Value = serde_json::from_str(&json(&chain, None)).unwrap();
        assert_eq!((&json["name"], &json["steps"][0]["says"]), (&nasty.into(), &nasty.into()));
    }
}
