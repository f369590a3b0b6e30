//! Texts shared by several formats.

use std::borrow::Cow;
use std::path::MAIN_SEPARATOR;

use super::JudgedDocument;
use crate::policy::{Action, ExcuseReason, Finding, RelatedObject, SourcePlace};

/// The object's name with its namespace in front, where it has one.
pub(super) fn full_name(judged: &JudgedDocument<'_>) -> String {
    let name = if judged.name.is_empty() { "(unnamed)" } else { judged.name };
    if judged.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", judged.namespace) }
}

/// The severity of a diagnostic.
pub(crate) fn severity(action: Action) -> &'static str {
    match action {
        Action::Deny => "error",
        Action::Patch => "patch",
        Action::Warn => "warning",
        Action::Audit | Action::Off => "note",
    }
}

/// The level in SARIF, and of workflow commands.
pub(super) fn level(action: Action) -> &'static str {
    match action {
        Action::Deny => "error",
        Action::Patch | Action::Warn => "warning",
        Action::Audit => "note",
        Action::Off => "none",
    }
}

/// The headline; in audit mode prefixed with the action that would have been taken.
pub(super) fn problem(finding: &Finding) -> Cow<'_, str> {
    match finding.would {
        Some(action) => Cow::Owned(format!("would {}: {}", action.name(), finding.message)),
        None => Cow::Borrowed(&finding.message),
    }
}

/// The headline, and note, other objects and help each on its own line.
pub(super) fn whole(finding: &Finding) -> String {
    let mut text = problem(finding).into_owned();
    let mut add = |label: &str, line: &str| {
        if !line.is_empty() {
            text.extend(["\n", label, ": ", line]);
        }
    };
    add("note", &finding.note);
    finding.related.iter().for_each(|other| add("also", &located(other)));
    add("help", &finding.help);
    text
}

/// Another object that a finding is about, and what it has to do with it.
pub(super) fn related(other: &RelatedObject) -> String {
    format!("{} {}", other.object(), other.relation)
}

/// The same with the place of its manifest.
pub(super) fn located(other: &RelatedObject) -> String {
    match &other.place {
        Some(SourcePlace { file, line, column }) => format!("{} ({file}:{line}:{column})", related(other)),
        None => related(other),
    }
}

/// Why a finding has a weaker action than its rule.
pub(super) fn why(because: &ExcuseReason) -> String {
    match because {
        ExcuseReason::Deleting => "allowed, because the object is being deleted".to_owned(),
        ExcuseReason::Ratchet => "allowed, because the stored object already has it".to_owned(),
        ExcuseReason::Exempt => "allowed, because the policy exempts this namespace or user".to_owned(),
        ExcuseReason::Operator => "allowed, because the operator wrote it".to_owned(),
        ExcuseReason::Kustomization => "only a warning, because a kustomization changes this object".to_owned(),
        ExcuseReason::Exception(reason) => format!("allowed by an exception in the policy: {reason}"),
    }
}

/// The file as people know it: standard input has a name of its own, and a rendered document names its template.
pub(super) fn named_source(judged: &JudgedDocument<'_>) -> String {
    let source = if judged.source == "-" { "<stdin>" } else { judged.source };
    judged.template.map_or_else(|| source.to_owned(), |template| format!("{source} ({template})"))
}

/// The file that is to be changed, for programs that show it: the template of what was rendered into standard input.
pub(super) fn file(judged: &JudgedDocument<'_>) -> Option<String> {
    path(judged.source).or_else(|| judged.template.map(ToOwned::to_owned))
}

/// The path of a file with forward slashes and no `./` in front; `None` for the standard input.
pub(super) fn path(source: &str) -> Option<String> {
    if source == "-" {
        return None;
    }
    // Where it separates nothing, a backslash is a letter like any other.
    let path = source.replace(MAIN_SEPARATOR, "/");
    let mut rest = path.as_str();
    while let Some(below) = rest.strip_prefix("./") {
        rest = below.trim_start_matches('/');
    }
    Some(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain() {
        for (source, want) in [
            ("-", None),
            ("a.yaml", Some("a.yaml")),
            ("./a.yaml", Some("a.yaml")),
            ("././/a.yaml", Some("a.yaml")),
            ("../a.yaml", Some("../a.yaml")),
            ("./.hidden/a.yaml", Some(".hidden/a.yaml")),
            ("./../a.yaml", Some("../a.yaml")),
            ("/tmp/a.yaml", Some("/tmp/a.yaml")),
        ] {
            assert_eq!(path(source).as_deref(), want, "{source}");
        }
    }

    #[test]
    fn every_reason_is_explained() {
        let reasons = [
            (ExcuseReason::Deleting, "being deleted"),
            (ExcuseReason::Ratchet, "stored object already has it"),
            (ExcuseReason::Exempt, "exempts this namespace or user"),
            (ExcuseReason::Operator, "the operator wrote it"),
            (ExcuseReason::Exception("lab".to_owned()), "exception in the policy: lab"),
            (ExcuseReason::Kustomization, "a kustomization changes this object"),
        ];
        for (reason, words) in reasons {
            assert!(why(&reason).contains(words), "{reason:?}: {}", why(&reason));
        }
    }
}
