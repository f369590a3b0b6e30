//! Workflow commands, which GitHub shows as annotations beside the lines they are about.

use super::text::{full_name, level, path, whole};
use super::{Format, JudgedDocument, LocatedFinding, Summary};
use crate::policy::Action;
use crate::visible;

/// One command per finding, except for recorded-only ones.
#[derive(Clone, Copy, Debug)]
pub struct Github;

impl Format for Github {
    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        judged.findings.iter().filter_map(|placed| command(judged, placed)).collect()
    }

    /// A line for those who read the log.
    fn end(&self, summary: &Summary) -> String {
        let Summary { documents, deny, patch, warn, .. } = summary;
        format!("nadmit: {documents} judged, {deny} deny, {patch} patch, {warn} warn\n")
    }
}

fn command(judged: &JudgedDocument<'_>, placed: &LocatedFinding<'_>) -> Option<String> {
    let action = placed.finding.action;
    if action < Action::Warn {
        return None;
    }
    let level = level(action);
    let mut properties = String::new();
    let mut rendered_from = String::new();
    // Without a file there is no line to annotate.
    if let Some(path) = path(judged.source) {
        let LocatedFinding { line, column, end_line, end_column, .. } = placed;
        properties = format!("file={},line={line},", property(&path));
        properties += &if line == end_line {
            format!("col={column},endLine={end_line},endColumn={end_column},")
        } else {
            // The runner takes columns only within one line.
            format!("endLine={end_line},")
        };
        rendered_from = judged.template.map_or_else(String::new, |template| format!(" ({template})"));
    } else if let Some(template) = judged.template {
        // The lines are those of the rendered text.
        properties = format!("file={},", property(template));
    }
    let title = property(placed.finding.rule.id);
    let text = format!("{} {}{rendered_from}: {}", judged.kind, full_name(judged), whole(placed.finding));
    Some(format!("::{level} {properties}title={title}::{}\n", data(&text)))
}

/// Escapes the message. The workflow log interprets escape sequences.
fn data(text: &str) -> String {
    visible::lines(text).replace('%', "%25").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, TestDocument};
    use super::*;

    #[test]
    fn one_command_per_finding() {
        let case = TestDocument::new(vec![
            testing::finding("nad/no-plugin", Action::Deny, "no plugin").with_note("pods fail"),
            testing::finding("nad/resource-name-missing", Action::Patch, "no resource"),
            testing::finding("nad/plugins-ignored", Action::Warn, "ignored"),
            testing::finding("nad/schema", Action::Audit, "only recorded"),
        ]);
        let quiet = TestDocument::new(Vec::new());
        insta::assert_snapshot!(testing::report(&Github, &[&case, &quiet]), @"
        ::error file=nets/a b.yaml,line=9,col=5,endLine=9,endColumn=14,title=nad/no-plugin::NetworkAttachmentDefinition apps/net: no plugin%0Anote: pods fail%0Ahelp: fix it
        ::warning file=nets/a b.yaml,line=9,col=5,endLine=9,endColumn=14,title=nad/resource-name-missing::NetworkAttachmentDefinition apps/net: no resource%0Ahelp: fix it
        ::warning file=nets/a b.yaml,line=9,col=5,endLine=9,endColumn=14,title=nad/plugins-ignored::NetworkAttachmentDefinition apps/net: ignored%0Ahelp: fix it
        nadmit: 2 judged, 1 deny, 1 patch, 1 warn
        ");
    }

    #[test]
    fn escapes_workflow_command_characters() {
        let text = "100%\r\n::error::x, y: z\n::add-mask::\u{1b}\u{202e}";
        let mut case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, text)]);
        case.source = "./a,b:c%\n.yaml";
        case.name = "n\n::stop-commands::";
        let shown = Github.document(&case.judged());
        assert_eq!(shown.lines().count(), 1);
        assert!(shown.starts_with("::error file=a%2Cb%3Ac%25%0A.yaml,line=9,"), "{shown}");
        assert!(shown.contains("100%25\\u{d}%0A::error::x, y: z%0A::add-mask::\\u{1b}\\u{202e}%0Ahelp"), "{shown}");
    }

    #[test]
    fn columns_only_within_a_line() {
        let mut case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, "m")]);
        case.place = (4, 3, 6, 2);
        assert!(Github.document(&case.judged()).starts_with("::error file=nets/a b.yaml,line=4,endLine=6,title="));
        case.source = "-";
        assert!(Github.document(&case.judged()).starts_with("::error title=nad/schema::"));
    }

    #[test]
    fn a_rendered_document_names_its_template() {
        let mut case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, "m")]);
        case.template = Some("chart/templates/a.yaml");
        let shown = Github.document(&case.judged());
        assert!(shown.starts_with("::error file=nets/a b.yaml,line=9,"), "{shown}");
        assert!(shown.contains("::NetworkAttachmentDefinition apps/net (chart/templates/a.yaml): m"), "{shown}");
        case.source = "-";
        let shown = Github.document(&case.judged());
        assert!(shown.starts_with("::error file=chart/templates/a.yaml,title=nad/schema::"), "{shown}");
    }

    #[test]
    fn audit_mode_reports_the_would_be_action() {
        let mut finding = testing::finding("nad/schema", Action::Warn, "m");
        finding.would = Some(Action::Deny);
        finding.help.clear();
        let shown = Github.document(&TestDocument::new(vec![finding]).judged());
        assert!(shown.ends_with("::NetworkAttachmentDefinition apps/net: would deny: m\n"), "{shown}");
    }
}
