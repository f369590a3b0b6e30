//! Plans as text: a block of aligned lines for each interface, with its findings below.

use crate::audit::chain::LinkHealth;
use crate::audit::explain::{PlanLine, PodPlan, SelectionForm, in_file};
use crate::cli::doctor::show::{colored, mark};
use crate::output::severity;
use crate::policy::{Action, Finding};
use crate::visible;

/// The column in which lines say something.
const COLUMN: usize = 16;

/// The text of each pod, in their order.
pub(super) fn parts(plans: &[PodPlan], has_colours: bool) -> impl Iterator<Item = String> {
    let nothing = "nothing selects networks: no pod, and nothing that makes pods\n";
    let one = move |(number, plan)| {
        let mut text = if number == 0 { String::new() } else { "\n".to_owned() };
        pod(plan, has_colours, &mut text);
        text
    };
    plans.iter().enumerate().map(one).chain(plans.is_empty().then(|| nothing.to_owned()))
}

fn pod(plan: &PodPlan, has_colours: bool, text: &mut String) {
    let place = plan.place.as_ref().map(|place| format!(" ({})", in_file(place))).unwrap_or_default();
    let state = plan.state();
    *text += &visible::line(&format!("{} {}{place}: ", plan.kind, plan.full_name()));
    *text += &colored(&visible::line(&plan.summary()), state, has_colours);
    text.push('\n');
    for interface in &plan.interfaces {
        head(&interface.name.text(), interface.state, interface.lines(), has_colours, text);
        interface.all_findings().for_each(|found| finding(found, text));
    }
    if plan.left_out > 0 {
        below(&format!("{} more networks are not explained", plan.left_out), text);
    }
    if let Some(nodes) = plan.nodes.as_ref().filter(|_| plan.selection != SelectionForm::Unreadable) {
        head("nodes", nodes.state, nodes.lines(), has_colours, text);
    }
    if !plan.findings.is_empty() {
        text.push('\n');
        plan.findings.iter().for_each(|found| finding(found, text));
    }
}

/// The lines of a block, the first of which has its name.
fn head(name: &str, state: LinkHealth, lines: Vec<PlanLine>, has_colours: bool, text: &mut String) {
    text.push('\n');
    *text += &colored(&format!("{} {}", mark(state), visible::line(name)), state, has_colours);
    text.push('\n');
    let mut last = "";
    for (label, says) in lines {
        let shown = if label == last { "" } else { label };
        *text += &format!("    {shown:12}{}\n", visible::line(&says));
        last = label;
    }
}

fn finding(finding: &Finding, text: &mut String) {
    // What is only recorded is in the JSON report.
    if finding.action < Action::Warn {
        return;
    }
    below(&format!("{}[{}]: {}", severity(finding.action), finding.rule.id, finding.message), text);
    for (label, line) in [("note", &finding.note), ("help", &finding.help)] {
        if !line.is_empty() {
            below(&format!("{label}: {line}"), text);
        }
    }
}

fn below(line: &str, text: &mut String) {
    *text += &format!("{:COLUMN$}{}\n", "", visible::line(line));
}
