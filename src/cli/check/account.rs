//! What `check` says at its end, whatever its output: how much was judged, what was skipped and why, and by which configuration.

use std::borrow::Cow;
use std::path::Path;

use crate::output::{SkippedCounts, Summary};

/// What is not what will be applied, and has to be rendered to be judged.
#[derive(Debug, Default)]
pub(super) struct Unrendered {
    /// The first Helm template that was skipped.
    pub(super) template: Option<String>,
    /// How many objects have findings that only warn, because a kustomization changes the object.
    changed: usize,
    /// The first file with one.
    first_changed: Option<String>,
}

impl Unrendered {
    /// Counts an object whose findings only warn.
    pub(super) fn count_changed(&mut self, source: &str) {
        self.changed += 1;
        self.first_changed.get_or_insert_with(|| source.to_owned());
    }

    /// Adds what a later input has.
    pub(super) fn add(&mut self, later: Self) {
        self.changed += later.changed;
        self.template = self.template.take().or(later.template);
        self.first_changed = self.first_changed.take().or(later.first_changed);
    }

    fn changed_notice(&self) -> Option<String> {
        let first = self.first_changed.as_ref()?;
        let objects = match self.changed {
            1 => format!("1 object only warn, in {first}, because a kustomization changes it"),
            more => format!("{more} objects only warn, such as in {first}, because kustomizations change them"),
        };
        Some(format!("nadmit: findings on {objects}; judge the result: kustomize build DIRECTORY | nadmit check -"))
    }
}

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
pub(super) fn notices(counts: &SkippedCounts, unrendered: &Unrendered, patch: Option<&Path>) -> Vec<String> {
    let sorts = [
        (
            counts.helm_templates,
            unrendered.template.as_deref().map(Cow::Borrowed),
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
    sorts.into_iter().filter_map(notice).chain(unrendered.changed_notice()).collect()
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
        let unrendered = |number| {
            let mut unrendered = Unrendered { template: Some("a.yaml".to_owned()), ..Unrendered::default() };
            (0..number).for_each(|_| unrendered.count_changed("c.yaml"));
            unrendered
        };
        let shown = |number| notices(&counts(number), &unrendered(number), Some(Path::new("b.yaml")));
        assert_eq!(
            shown(1),
            [
                "nadmit: 1 Helm template is not judged, a.yaml; render it: helm template CHART | nadmit check -",
                "nadmit: 1 kustomize patch is not judged, b.yaml; render it: kustomize build DIRECTORY | nadmit check -",
                "nadmit: findings on 1 object only warn, in c.yaml, because a kustomization changes it; judge the result: kustomize build DIRECTORY | nadmit check -",
            ]
        );
        assert_eq!(
            shown(2),
            [
                "nadmit: 2 Helm templates are not judged, such as a.yaml; render them: helm template CHART | nadmit check -",
                "nadmit: 2 kustomize patches are not judged, such as b.yaml; render them: kustomize build DIRECTORY | nadmit check -",
                "nadmit: findings on 2 objects only warn, such as in c.yaml, because kustomizations change them; judge the result: kustomize build DIRECTORY | nadmit check -",
            ]
        );
        assert!(notices(&SkippedCounts::default(), &Unrendered::default(), None).is_empty());
    }
}
