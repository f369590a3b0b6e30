//! JUnit XML: every document is a test case, which fails if the document would be denied.
//!
//! By hand: no crate in the tree writes XML, and quick-junit holds the whole report in memory before it writes.

use super::text::{file, full_name, path, problem, whole};
use super::{Format, JudgedDocument, LocatedFinding, Summary};
use crate::policy::Action;

/// The JUnit report. Every document is a suite of its own: a suite states its counts before its tests, and only those of
/// one document are known before all are judged.
#[derive(Clone, Copy, Debug)]
pub struct Junit;

impl Format for Junit {
    fn begin(&self) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"nadmit\">\n".to_owned()
    }

    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        let suite = attribute(&label(judged));
        let file = attribute(&file(judged).unwrap_or_else(|| "stdin".to_owned()));
        let (kind, name) = (attribute(judged.kind), attribute(&full_name(judged)));
        // The line is one of the rendered text, not of its template.
        let is_template = judged.template.is_some() && path(judged.source).is_none();
        let line = if is_template { String::new() } else { format!(" line=\"{}\"", judged.line) };
        let failures = u8::from(judged.verdict.denies());
        let suite =
            format!("name=\"{suite}\" tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"0\"");
        let test = format!("classname=\"{kind}\" name=\"{name}\" file=\"{file}\"{line} time=\"0\"");
        let outcome = outcome(judged);
        let test = if outcome.is_empty() {
            format!("<testcase {test}/>")
        } else {
            format!("<testcase {test}>\n{outcome}</testcase>")
        };
        format!("<testsuite {suite}>\n{test}\n</testsuite>\n")
    }

    fn end(&self, _: &Summary) -> String {
        "</testsuites>\n".to_owned()
    }
}

/// Denials are failures; everything else is test output.
fn outcome(judged: &JudgedDocument<'_>) -> String {
    let (denying, rest): (Vec<&LocatedFinding<'_>>, Vec<_>) =
        judged.findings.iter().partition(|placed| placed.finding.action == Action::Deny);
    let mut outcome = String::new();
    if let Some(first) = denying.first() {
        let message = match denying.len() {
            1 => problem(first.finding).into_owned(),
            more => format!("{} (and {} more)", problem(first.finding), more - 1),
        };
        let (message, rule) = (attribute(&message), attribute(first.finding.rule.id));
        outcome += &format!("<failure message=\"{message}\" type=\"{rule}\">{}</failure>\n", list(judged, &denying));
    }
    if !rest.is_empty() {
        outcome += &format!("<system-out>{}</system-out>\n", list(judged, &rest));
    }
    outcome
}

/// Where a document was read, and what it was rendered from.
fn label(judged: &JudgedDocument<'_>) -> String {
    let read = path(judged.source).unwrap_or_else(|| "stdin".to_owned());
    judged.template.map_or_else(|| read.clone(), |template| format!("{read} ({template})"))
}

/// The findings, each as compilers write one.
fn list(judged: &JudgedDocument<'_>, findings: &[&LocatedFinding<'_>]) -> String {
    let source = label(judged);
    let one = |placed: &&LocatedFinding<'_>| {
        let LocatedFinding { finding, line, column, .. } = placed;
        let (action, rule) = (finding.action.name(), finding.rule.id);
        format!("{source}:{line}:{column}: {action} {rule}: {}\n", whole(finding))
    };
    text(&findings.iter().map(one).collect::<String>())
}

/// Escapes text between tags.
fn text(text: &str) -> String {
    escape(text, false)
}

/// Escapes an attribute, in which parsers turn line breaks and tabs into spaces.
fn attribute(text: &str) -> String {
    escape(text, true)
}

fn escape(text: &str, quoted: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' if quoted => escaped.push_str("&quot;"),
            '\n' | '\t' if quoted => escaped.push_str(&format!("&#{};", character as u32)),
            '\n' | '\t' => escaped.push(character),
            '\r' => escaped.push_str("&#13;"),
            // XML 1.0 has no way to write these, not even escaped.
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, TestDocument};
    use super::*;

    #[test]
    fn each_document_is_a_test_case() {
        let denied = TestDocument::new(vec![
            testing::finding("nad/no-plugin", Action::Deny, "no <plugin> & no \"type\"").with_note("pods fail"),
            testing::finding("nad/plugins-ignored", Action::Warn, "ignored"),
            testing::finding("nad/cni-version", Action::Deny, "version"),
        ]);
        let mut warned = TestDocument::new(vec![testing::finding("nad/schema", Action::Audit, "only recorded")]);
        (warned.source, warned.namespace) = ("-", "");
        insta::assert_snapshot!(testing::report(&Junit, &[&denied, &warned, &TestDocument::new(Vec::new())]), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="nadmit">
        <testsuite name="nets/a b.yaml" tests="1" failures="1" errors="0" skipped="0" time="0">
        <testcase classname="NetworkAttachmentDefinition" name="apps/net" file="nets/a b.yaml" line="3" time="0">
        <failure message="no &lt;plugin&gt; &amp; no &quot;type&quot; (and 1 more)" type="nad/no-plugin">nets/a b.yaml:9:5: deny nad/no-plugin: no &lt;plugin&gt; &amp; no "type"
        note: pods fail
        help: fix it
        nets/a b.yaml:9:5: deny nad/cni-version: version
        help: fix it
        </failure>
        <system-out>nets/a b.yaml:9:5: warn nad/plugins-ignored: ignored
        help: fix it
        </system-out>
        </testcase>
        </testsuite>
        <testsuite name="stdin" tests="1" failures="0" errors="0" skipped="0" time="0">
        <testcase classname="NetworkAttachmentDefinition" name="net" file="stdin" line="3" time="0">
        <system-out>stdin:9:5: audit nad/schema: only recorded
        help: fix it
        </system-out>
        </testcase>
        </testsuite>
        <testsuite name="nets/a b.yaml" tests="1" failures="0" errors="0" skipped="0" time="0">
        <testcase classname="NetworkAttachmentDefinition" name="apps/net" file="nets/a b.yaml" line="3" time="0"/>
        </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn a_rendered_document_names_its_template() {
        let mut case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, "m")]);
        case.template = Some("chart/templates/a.yaml");
        let shown = Junit.document(&case.judged());
        assert!(shown.contains("<testsuite name=\"nets/a b.yaml (chart/templates/a.yaml)\" "), "{shown}");
        assert!(shown.contains(" file=\"nets/a b.yaml\" line=\"3\" "), "{shown}");
        case.source = "-";
        let shown = Junit.document(&case.judged());
        assert!(shown.contains("<testsuite name=\"stdin (chart/templates/a.yaml)\" "), "{shown}");
        assert!(shown.contains(" file=\"chart/templates/a.yaml\" time="), "{shown}");
        assert!(
            shown.contains("\nstdin (chart/templates/a.yaml):9:5: deny")
                || shown.contains(">stdin (chart/templates/a.yaml):9:5: deny"),
            "{shown}"
        );
    }

    #[test]
    fn empty_junit_report_is_valid() {
        assert_eq!(
            testing::report(&Junit, &[]),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"nadmit\">\n</testsuites>\n"
        );
    }

    #[test]
    fn escapes_all_text_for_xml() {
        for (given, between_tags, in_quotes) in [
            ("a<b>&\"c\"'", "a&lt;b&gt;&amp;\"c\"'", "a&lt;b&gt;&amp;&quot;c&quot;'"),
            ("a\r\n\tb", "a&#13;\n\tb", "a&#13;&#10;&#9;b"),
            ("\0\u{1b}[31m\u{b}", "\u{fffd}\u{fffd}[31m\u{fffd}", "\u{fffd}\u{fffd}[31m\u{fffd}"),
            ("\u{ffff}é\u{1f600}]]>", "\u{fffd}é\u{1f600}]]&gt;", "\u{fffd}é\u{1f600}]]&gt;"),
            ("", "", ""),
        ] {
            assert_eq!(text(given), between_tags);
            assert_eq!(attribute(given), in_quotes);
        }
    }

    #[test]
    fn unnamed_document_gets_a_placeholder_name() {
        let mut case = TestDocument::new(Vec::new());
        case.name = "";
        assert!(Junit.document(&case.judged()).contains("name=\"apps/(unnamed)\""));
    }
}
