//! Plans as a page: the interfaces, and below them the pods with their nodes.

use crate::audit::chain::LinkHealth;
use crate::audit::explain::{InterfacePlan, PlanLine, PodPlan, in_file};
use crate::output::{Entry, EntryPart, Facet, Figure, HtmlList, HtmlPage, ShownFinding};
use crate::policy::{Action, Finding};

pub(super) fn render(plans: &[PodPlan]) -> String {
    let all = || plans.iter().flat_map(|plan| plan.interfaces.iter().map(move |interface| (plan, interface)));
    let in_state = |state: LinkHealth| plans.iter().filter(|plan| plan.state() == state).count();
    let findings = |action: Action| {
        let of_interfaces = all().flat_map(|(_, interface)| interface.all_findings());
        of_interfaces.filter(|finding| finding.action == action).count()
    };
    let interfaces: Vec<Entry> = all().map(|(plan, one)| interface(plan, one)).collect();
    HtmlPage {
        title: "nadmit explain",
        lead: match plans {
            [plan] => format!("{} {}: {}", plan.kind, plan.full_name(), plan.summary()),
            _ => format!(
                "{} of {} pods can start, as far as is known",
                plans.len() - in_state(LinkHealth::Broken),
                plans.len()
            ),
        },
        clear: if interfaces.is_empty() { "no pod selects a network".to_owned() } else { String::new() },
        figures: vec![
            Figure::plain("Pods", plans.len().to_string()),
            Figure::plain("Cannot start", in_state(LinkHealth::Broken).to_string()),
            Figure::plain("Interfaces", interfaces.len().to_string()),
            Figure::findings(Action::Deny, findings(Action::Deny), String::new()),
            Figure::findings(Action::Patch, findings(Action::Patch), String::new()),
            Figure::findings(Action::Warn, findings(Action::Warn), String::new()),
        ],
        charts: vec![Facet::Rule, Facet::Namespace],
        filters: vec![Facet::Severity, Facet::Rule, Facet::Namespace, Facet::Kind],
        lists: vec![
            HtmlList::Entries { title: "Interfaces", entries: interfaces },
            HtmlList::Entries { title: "Pods", entries: plans.iter().map(pod).collect() },
        ],
        ..HtmlPage::default()
    }
    .render()
}

fn interface(plan: &PodPlan, interface: &InterfacePlan) -> Entry {
    let nad = interface.nad.as_ref().map_or_else(|| "no NAD".to_owned(), |key| format!("NAD {key}"));
    let plugins = interface.nad_plan().and_then(|nad| nad.config.chain()).map(|chain| &chain.plugins.first);
    let plugins = plugins.into_iter().flatten().take(4).map(|plugin| plugin.kind.clone());
    let mut parts = vec![lines("What it will be", interface.lines())];
    parts.extend(interface.all_findings().map(finding));
    Entry {
        id: format!("{}/{}/{}", plan.kind, plan.full_name(), interface.name.text()),
        before: format!("{} ", plan.full_name()),
        name: interface.name.text(),
        kind: plan.kind.to_owned(),
        about: nad,
        facts: plugins.chain(words(interface.state)).collect(),
        labels: labels(plan),
        findings: interface.all_findings().map(|finding| (finding.action, finding.rule)).collect(),
        parts,
        ..Entry::default()
    }
}

fn pod(plan: &PodPlan) -> Entry {
    let mut parts = Vec::new();
    parts.extend(plan.nodes.as_ref().map(|nodes| lines("Where it can run", nodes.lines())));
    parts.extend(plan.findings.iter().map(finding));
    Entry {
        id: format!("{}/{}", plan.kind, plan.full_name()),
        before: if plan.namespace.is_empty() { String::new() } else { format!("{}/", plan.namespace) },
        name: plan.name.clone(),
        kind: plan.kind.to_owned(),
        about: [Some(plan.summary()), plan.place.as_ref().map(in_file)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" · "),
        facts: words(plan.state()).collect(),
        labels: labels(plan),
        findings: plan.findings.iter().map(|finding| (finding.action, finding.rule)).collect(),
        parts,
        ..Entry::default()
    }
}

/// A state that deserves a word.
fn words(state: LinkHealth) -> impl Iterator<Item = String> {
    let word = match state {
        LinkHealth::Good => None,
        LinkHealth::Unknown => Some("partly unknown"),
        LinkHealth::Waiting => Some("waiting"),
        LinkHealth::Broken => Some("does not work"),
    };
    word.map(str::to_owned).into_iter()
}

fn labels(plan: &PodPlan) -> Vec<(Facet, String)> {
    vec![(Facet::Namespace, plan.namespace.clone()), (Facet::Kind, plan.kind.to_owned())]
}

fn lines(title: &'static str, lines: Vec<PlanLine>) -> EntryPart {
    let shown = lines.into_iter().map(|(label, says)| format!("{label:12}{}", says.replace('\n', "\\n")));
    EntryPart::Preformatted { title, text: shown.collect::<Vec<_>>().join("\n") }
}

fn finding(finding: &Finding) -> EntryPart {
    let place = finding.config.as_ref().map(|place| place.pointer.as_str()).unwrap_or_default();
    let pointer = if place.is_empty() { finding.pointer.clone() } else { format!("{} at {place}", finding.pointer) };
    EntryPart::Finding(Box::new(ShownFinding {
        action: finding.action,
        rule: finding.rule.id,
        pointer,
        place: String::new(),
        message: finding.message.clone(),
        excerpt: None,
        notes: Some(finding.note.clone()).filter(|note| !note.is_empty()).into_iter().collect(),
        help: finding.help.clone(),
    }))
}
