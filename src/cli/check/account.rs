//! What `check` says at its end, whatever its output: how much was judged, what was skipped and why, and by which configuration.

use std::borrow::Cow;
use std::path::Path;

use crate::output::{SkippedCounts, Summary};

/// The last line.
pub(super) fn closing_line(summary: &Summary, config: Option<&Path>, policy: Option<&Path>) -> String {
    let mut line = format!("nadmit: {} judged", counted(summary.documents, "document"));
    let skipped = skipped(&summary.skipped);
    if !skipped.is_empty() {
        line += &format!("; skipped: {}", skipped.join(", "));
    }
    line += "; ";
    if let Some(config) = config {
        line += &format!("configuration {}, ", config.display());
    }
    line += &policy.map_or_else(|| "default policy".to_owned(), |policy| format!("policy {}", policy.display()));
    line
}

fn skipped(counts: &SkippedCounts) -> Vec<String> {
    let SkippedCounts { other_kinds, no_kind, helm_templates, kustomize_patches, ignored, links } = *counts;
    let reasons = [
        (other_kinds, format!("{other_kinds} of other kinds")),
        (no_kind, format!("{no_kind} without a kind")),
        (helm_templates, counted(helm_templates, "Helm template")),
        (
            kustomize_patches,
            format!("{kustomize_patches} kustomize patch{}", if kustomize_patches == 1 { "" } else { "es" }),
        ),
        (ignored, counted(ignored, "ignored path")),
        (links, counted(links, "symbolic link")),
    ];
    reasons.into_iter().filter(|(number, _)| *number > 0).map(|(_, reason)| reason).collect()
}

/// What to do about files that must be rendered first: for each sort one notice, which names the first file.
pub(super) fn notices(counts: &SkippedCounts, template: Option<&str>, patch: Option<&Path>) -> Vec<String> {
    let sorts = [
        (
            counts.helm_templates,
            template.map(Cow::Borrowed),
            ["Helm template", "Helm templates"],
            "helm template CHART",
        ),
        (
            counts.kustomize_patches,
            patch.map(Path::to_string_lossy),
            ["kustomize patch", "kustomize patches"],
            "kustomize build DIRECTORY",
        ),
    ];
    let notice = |(number, first, [one, many], renderer): (usize, Option<Cow<'_, str>>, [&str; 2], &str)| {
        let first = first?;
        Some(match number {
            1 => format!("nadmit: 1 {one} is not judged, {first}; render it: {renderer} | nadmit check -"),
            more => {
                format!(
                    "nadmit: {more} {many} are not judged, such as {first}; render them: {renderer} | nadmit check -"
                )
            }
        })
    };
    sorts.into_iter().filter_map(notice).collect()
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_skipped_and_why() {
        let all =
            SkippedCounts { other_kinds: 1, no_kind: 2, helm_templates: 3, kustomize_patches: 6, ignored: 4, links: 5 };
        let one =
            SkippedCounts { other_kinds: 0, no_kind: 0, helm_templates: 1, kustomize_patches: 1, ignored: 1, links: 1 };
        let (config, policy) = (Some(Path::new("../.nadmit.yaml")), Some(Path::new("p.yaml")));
        for (documents, skipped, config, policy, want) in [
            (0, SkippedCounts::default(), None, None, "nadmit: 0 documents judged; default policy"),
            (1, SkippedCounts::default(), None, policy, "nadmit: 1 document judged; policy p.yaml"),
            (
                2,
                all,
                config,
                None,
                "nadmit: 2 documents judged; skipped: 1 of other kinds, 2 without a kind, 3 Helm templates, 6 kustomize patches, \
                 4 ignored paths, 5 symbolic links; configuration ../.nadmit.yaml, default policy",
            ),
            (
                2,
                one,
                config,
                policy,
                "nadmit: 2 documents judged; skipped: 1 Helm template, 1 kustomize patch, 1 ignored path, 1 symbolic link; \
                 configuration ../.nadmit.yaml, policy p.yaml",
            ),
        ] {
            assert_eq!(closing_line(&Summary { documents, skipped, ..Summary::default() }, config, policy), want);
        }
    }

    #[test]
    fn one_notice_for_all_files_of_a_sort() {
        let counts = |number| SkippedCounts { helm_templates: number, kustomize_patches: number, ..Default::default() };
        let shown = |number| notices(&counts(number), Some("a.yaml"), Some(Path::new("b.yaml")));
        assert_eq!(
            shown(1),
            [
                "nadmit: 1 Helm template is not judged, a.yaml; render it: helm template CHART | nadmit check -",
                "nadmit: 1 kustomize patch is not judged, b.yaml; render it: kustomize build DIRECTORY | nadmit check -",
            ]
        );
        assert_eq!(
            shown(2),
            [
                "nadmit: 2 Helm templates are not judged, such as a.yaml; render them: helm template CHART | nadmit check -",
                "nadmit: 2 kustomize patches are not judged, such as b.yaml; render them: kustomize build DIRECTORY | nadmit check -",
            ]
        );
        assert!(notices(&SkippedCounts::default(), None, None).is_empty());
    }
}
