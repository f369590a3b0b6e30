//! Findings as text for the writer: the denial, its causes, and the warnings.

use crate::json::unescape;
use crate::policy::{Action, ExcuseReason, Finding};
use crate::visible;

/// The maximum length of a warning, as recommended by the API server.
const WIDTH: usize = 120;
/// The maximum length of all warnings of a response. The API server truncates all webhooks' warnings beyond 4096 in total.
const BUDGET: usize = 3000;

/// The field path of a finding in the API server's format: `spec.ipam`, `metadata.annotations[k8s.v1.cni.cncf.io/resourceName]`,
/// with the place inside a JSON text after a `#`.
pub(super) fn field(finding: &Finding) -> String {
    let mut path = String::new();
    for token in finding.pointer.split('/').skip(1) {
        let token = unescape(token);
        let is_plain = token.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        match (is_plain, path.is_empty()) {
            (true, true) => path.push_str(&token),
            (true, false) => path.extend([".", &token]),
            (false, _) => path.extend(["[", &token, "]"]),
        }
    }
    match &finding.config {
        Some(place) if !place.pointer.is_empty() => plain(&format!("{path}#{}", place.pointer)),
        _ => plain(&path),
    }
}

/// A finding with its help, on one line: headline, note, rule, help, so that the headline survives truncation.
pub(super) fn cause(finding: &Finding) -> String {
    let label = match (finding.action, finding.would) {
        (Action::Patch, _) => "Repaired",
        (_, Some(Action::Patch)) => "The repair",
        // The mutating webhook was skipped, or its patch was reverted.
        _ if !finding.repairs.is_empty() => "This repair was not applied",
        _ => "Help",
    };
    plain(&finding.sentence_with_help(label))
}

/// The denial message.
pub(super) fn denial(findings: &[&Finding]) -> String {
    match findings {
        [only] => format!("{}: {}", field(only), cause(only)),
        several => {
            let mut text = format!("{} problems:", several.len());
            for finding in several {
                text.extend(["\n- ", &field(finding), ": ", &cause(finding)]);
            }
            text
        }
    }
}

/// Findings as warnings. A long one continues in the next, indented.
pub(super) fn warnings<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut left, mut omitted) = (BUDGET, 0);
    for finding in findings {
        let wrapped_lines = wrapped(&sentence(finding));
        let length: usize = wrapped_lines.iter().map(|line| line.chars().count()).sum();
        match left.checked_sub(length) {
            Some(rest) if omitted == 0 => {
                left = rest;
                lines.extend(wrapped_lines);
            }
            _ => omitted += 1,
        }
    }
    if omitted > 0 {
        lines.push(format!("and {omitted} more; `nadmit check` shows all"));
    }
    lines
}

fn sentence(finding: &Finding) -> String {
    let would = finding.would.map(|action| format!("would {}: ", action.name())).unwrap_or_default();
    let because = match &finding.because {
        Some(ExcuseReason::Ratchet) => " (not denied, because the stored object already has it)",
        Some(ExcuseReason::Exempt) => " (not denied, because you are exempt)",
        _ => "",
    };
    plain(&format!("{would}{}: {}{because}", field(finding), cause(finding)))
}

/// The text on one line, without control characters.
fn plain(text: &str) -> String {
    visible::line(&text.replace(['\n', '\r', '\t'], " ")).into_owned()
}

/// The text in lines of at most [`WIDTH`] characters, broken between words where it can be.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        if length + 1 + rest.len() > WIDTH && length > 2 {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            length = 2;
        } else if length > 0 {
            line.push(' ');
            length += 1;
        }
        // A word longer than a line is cut where the line ends.
        while length + rest.len() > WIDTH {
            let tail = rest.split_off((WIDTH - length).min(rest.len()));
            line.extend(rest);
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            (length, rest) = (2, tail);
        }
        length += rest.len();
        line.extend(rest);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing;
    use crate::policy::{Facts, Policy, Subject, judge};
    use crate::resources::Object;

    fn finding(pointer: &str, config: Option<&str>, message: &str) -> Finding {
        let finding = testing::finding("nad/config-not-json", Action::Warn, message).at(pointer);
        match config {
            Some(pointer) => finding.in_config(pointer),
            None => finding,
        }
    }

    #[test]
    fn field_paths_match_the_api_server_format() {
        for (pointer, config, want) in [
            ("/spec/config", None, "spec.config"),
            ("/spec/config", Some("/ipam/range"), "spec.config#/ipam/range"),
            ("/spec/config", Some(""), "spec.config"),
            (
                "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName",
                None,
                "metadata.annotations[k8s.v1.cni.cncf.io/resourceName]",
            ),
            ("/spec/trunk/0/id", None, "spec.trunk.0.id"),
            ("", None, ""),
        ] {
            assert_eq!(field(&finding(pointer, config, "x")), want);
        }
    }

    #[test]
    fn warnings_fit_into_the_header_limit() {
        let nasty = "tab\there\nand\u{7}bell \u{202e}".repeat(9) + &"x".repeat(500) + &"ü".repeat(130);
        for message in ["short", &nasty, &"word ".repeat(80), "", &"y".repeat(120), &"é".repeat(240)] {
            let lines = warnings(std::iter::once(&finding("/spec/config", None, message)));
            for line in &lines {
                assert!(line.chars().count() <= 120, "{line}");
                assert!(!line.contains(visible::is_hidden), "{line:?}");
                assert!(!line.trim().is_empty(), "{lines:?}");
            }
            // Only white space is lost.
            let ink = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let message = message.replace('\u{7}', "\\u{7}").replace('\u{202e}', "\\u{202e}");
            let want = format!("spec.config: {message} (nad/config-not-json). Help: fix it");
            assert_eq!(ink(&lines.concat()), ink(&want));
        }
    }

    #[test]
    fn warnings_are_limited_in_total() {
        let many: Vec<_> =
            (0..100).map(|n| finding("/spec/config", None, &format!("{n} {}", "word ".repeat(30)))).collect();
        let lines = warnings(many.iter());
        assert!(lines.iter().map(|line| line.chars().count()).sum::<usize>() < 3100);
        assert!(lines.last().unwrap().starts_with("and "), "{:?}", lines.last());
    }

    /// A repair that was not applied must not read as if it will be.
    #[test]
    fn missing_repair_is_worded_as_not_made() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"s"},
            "spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"sriov\",\"resourceName\":\"a.io/b\"}"}}"#;
        let object = Object::read(json).unwrap().unwrap();
        let words = |is_final: bool| {
            let subject = Subject { object: &object, old: None, writer: Some("jane"), is_final };
            cause(&judge(&subject, &Facts::default(), &Policy::default()).findings[0])
        };
        assert!(words(false).ends_with(". Repaired: it becomes a.io/b, as given by the config"), "{}", words(false));
        assert!(
            words(true).ends_with(". This repair was not applied: it becomes a.io/b, as given by the config"),
            "{}",
            words(true)
        );
    }

    /// A truncated text keeps the headline.
    #[test]
    fn headline_comes_first_then_note_rule_and_help() {
        let found = finding("/spec/config", Some("/vlan"), "`vlan` is 5000, expected 0 to 4094")
            .with_note("sriov-cni rejects it; every pod that uses this network fails to start");
        insta::assert_snapshot!(denial(&[&found]), @"spec.config#/vlan: `vlan` is 5000, expected 0 to 4094: sriov-cni rejects it; every pod that uses this network fails to start (nad/config-not-json). Help: fix it");
        insta::assert_snapshot!(warnings(std::iter::once(&found)).join("\n"), @"
        spec.config#/vlan: `vlan` is 5000, expected 0 to 4094: sriov-cni rejects it; every pod that uses this network fails to
          start (nad/config-not-json). Help: fix it
        ");
    }

    #[test]
    fn denial_lists_every_finding() {
        let (one, two) = (finding("/spec/config", None, "it is bad"), finding("/spec", None, "so is\nthis"));
        assert_eq!(denial(&[&one]), "spec.config: it is bad (nad/config-not-json). Help: fix it");
        assert_eq!(
            denial(&[&one, &two]),
            "2 problems:\n- spec.config: it is bad (nad/config-not-json). Help: fix it\n- spec: so is this (nad/config-not-json). Help: fix it"
        );
    }

    /// The label before the help says what became of it.
    #[test]
    fn cause_says_what_became_of_the_repair() {
        let of = |action, would, repairs| {
            let finding = testing::finding("nad/resource-name-missing", action, "m");
            cause(&Finding { would, repairs, ..finding })
        };
        let repair = || vec![crate::policy::testing::some_repair()];
        for (text, label) in [
            (of(Action::Patch, None, repair()), "Repaired: fix it"),
            (of(Action::Warn, Some(Action::Patch), repair()), "The repair: fix it"),
            (of(Action::Deny, None, repair()), "This repair was not applied: fix it"),
            (of(Action::Deny, None, Vec::new()), "Help: fix it"),
        ] {
            assert!(text.ends_with(label), "{text}");
        }
    }

    #[test]
    fn a_warning_says_why_it_is_no_denial() {
        let of = |because, would| sentence(&Finding { because, would, ..finding("/spec/config", None, "m") });
        let rest = "spec.config: m (nad/config-not-json). Help: fix it";
        for (because, would, want) in [
            (None, None, rest.to_owned()),
            (None, Some(Action::Deny), format!("would deny: {rest}")),
            (
                Some(ExcuseReason::Ratchet),
                None,
                format!("{rest} (not denied, because the stored object already has it)"),
            ),
            (Some(ExcuseReason::Exempt), None, format!("{rest} (not denied, because you are exempt)")),
            (Some(ExcuseReason::Deleting), None, rest.to_owned()),
        ] {
            assert_eq!(of(because, would), want);
        }
    }

    #[test]
    fn lines_are_as_long_as_they_may_be() {
        let word = |length: usize| "x".repeat(length);
        for (text, want) in [
            (String::new(), vec![String::new()]),
            (format!("a {}", word(WIDTH - 2)), vec![format!("a {}", word(WIDTH - 2))]),
            (format!("ab {}", word(WIDTH)), vec![format!("ab {}", word(WIDTH - 3)), "  xxx".to_owned()]),
            (format!("abc {}", word(WIDTH - 4)), vec![format!("abc {}", word(WIDTH - 4))]),
            (format!("abc {}", word(WIDTH - 3)), vec!["abc".to_owned(), format!("  {}", word(WIDTH - 3))]),
            (
                format!("abc {}", word(WIDTH - 1)),
                vec!["abc".to_owned(), format!("  {}", word(WIDTH - 2)), "  x".to_owned()],
            ),
            (word(WIDTH), vec![word(WIDTH)]),
            (word(WIDTH + 1), vec![word(WIDTH), "  x".to_owned()]),
            (format!("{} b", word(WIDTH - 2)), vec![format!("{} b", word(WIDTH - 2))]),
            (format!("{} b c", word(WIDTH - 1)), vec![word(WIDTH - 1), "  b c".to_owned()]),
            ("a  b".to_owned(), vec!["a b".to_owned()]),
        ] {
            assert_eq!(wrapped(&text), want, "{text}");
        }
    }

    /// After the first warning that does not fit, none follows, so that the order is kept.
    #[test]
    fn no_warning_overtakes_a_longer_one() {
        let long = finding("/spec/config", None, &"word ".repeat(BUDGET / 5));
        let short = finding("/spec/config", None, "m");
        let lines = warnings([&short, &long, &short].into_iter());
        assert_eq!(
            lines,
            ["spec.config: m (nad/config-not-json). Help: fix it", "and 2 more; `nadmit check` shows all"]
        );
    }
}
