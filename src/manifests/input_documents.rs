//! The documents of an input, and which of them are not for nadmit.
//!
//! A file that is named must hold manifests. A directory holds other files too: values, pipelines, templates. There, what is clearly no
//! manifest is skipped, and what might be a broken one stays an error.

use super::helm::HelmTemplate;
use super::{Input, Manifest, ManifestDocument, documents};
use crate::json::LineIndex;
use crate::policy::Policy;
use crate::yaml::{Documents, YamlValue};

/// A document of an input.
#[derive(Debug)]
pub enum InputDocument {
    /// An object with a kind.
    Manifest(Manifest),
    /// What cannot be read: its line and the reason.
    Unreadable {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A document in a file of a directory that has no kind.
    WithoutKind,
    /// A file of a directory that is a Helm template.
    HelmTemplate,
}

impl Input {
    /// Calls `visit` for every document of this input, whose text is given.
    pub fn documents(&self, lines: &LineIndex<'_>, visit: &mut dyn FnMut(InputDocument)) {
        let is_named = self.is_named();
        if let Some(template) = HelmTemplate::recognize(lines.text(), self.path()) {
            return visit(if is_named { unrendered(&template) } else { InputDocument::HelmTemplate });
        }
        documents(lines, &mut |document| {
            visit(match document {
                ManifestDocument::Manifest(manifest) => InputDocument::Manifest(manifest),
                ManifestDocument::Unreadable { might_be_ours: false, .. } if !is_named => InputDocument::WithoutKind,
                ManifestDocument::Unreadable { line, problem, .. } => {
                    InputDocument::Unreadable { line, problem: problem + self.other_use(lines.text()) }
                }
            });
        });
    }

    /// Whether its text, which is given, is a Helm template: it holds no manifests, even if it can be parsed.
    pub fn is_template(&self, text: &str) -> bool {
        HelmTemplate::recognize(text, self.path()).is_some()
    }

    /// What a named file without manifests is for, if it is a file of nadmit itself.
    fn other_use(&self, text: &str) -> &'static str {
        let is = |name: &str| self.path().is_some_and(|path| path.ends_with(name));
        if is(super::CONFIG_FILE) {
            "; this is the configuration of nadmit: pass it with --config"
        } else if Policy::parse(text).is_ok() && has_entries(text) {
            "; this is a policy of nadmit: pass it with --policy"
        } else {
            ""
        }
    }
}

/// Whether a text is a mapping with something in it, which an empty file is not.
fn has_entries(text: &str) -> bool {
    let node = Documents::new(text).next().and_then(|document| document.node.ok());
    node.is_some_and(|node| matches!(node.value, YamlValue::Map(entries) if !entries.is_empty()))
}

fn unrendered(template: &HelmTemplate) -> InputDocument {
    let chart = template.chart.as_ref().map_or_else(|| "CHART".into(), |chart| chart.to_string_lossy());
    let problem = format!("a Helm template, not a manifest; render it first: helm template {chart} | nadmit check -");
    InputDocument::Unreadable { line: template.line, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &Input, text: &str) -> Vec<String> {
        let mut shown = Vec::new();
        input.documents(&LineIndex::of(text), &mut |document| {
            shown.push(match document {
                InputDocument::Manifest(manifest) => manifest.text("kind").to_owned(),
                InputDocument::Unreadable { line, problem } => format!("{line}: {problem}"),
                InputDocument::WithoutKind => "no kind".to_owned(),
                InputDocument::HelmTemplate => "template".to_owned(),
            });
        });
        shown
    }

    /// Text, what it is in a directory, and what it is if it is named; the latter only in part.
    #[test]
    fn directories_hold_other_files_too() {
        for (text, found, named) in [
            ("kind: A\n---\nkind: B\n", &["A", "B"] as &[_], &["A", "B"] as &[_]),
            ("replicas: 1\n---\nkind: B\n", &["no kind", "B"], &["`kind` is missing", "B"]),
            ("- hosts: all\n", &["no kind"], &["expected a mapping"]),
            ("# nothing\n", &[], &[]),
            ("a: [\n", &["no kind"], &["did not find expected node content"]),
            ("kind: A\nb: [\n", &["2: document 1: column 4: "], &["did not find expected"]),
            ("apiVersion: k8s.cni.cncf.io/v1\n", &["`kind` is missing"], &["`kind` is missing"]),
            ("apiVersion: v2\nname: chart\n", &["no kind"], &["`kind` is missing"]),
            ("mode: audit\n", &["no kind"], &["this is a policy of nadmit: pass it with --policy"]),
            ("mode: enforce\n", &["no kind"], &["this is a policy of nadmit: pass it with --policy"]),
            ("{}\n", &["no kind"], &["`kind` is missing"]),
            (
                "kind: A\nb: {{ c }}: d\n",
                &["template"],
                &["2: a Helm template, not a manifest; render it first: helm template CHART"],
            ),
        ] {
            for (input, want) in [
                (Input::Found(Box::from(std::path::Path::new("x.yaml"))), found),
                (Input::File(Box::from(std::path::Path::new("x.yaml"))), named),
            ] {
                let shown = shown(&input, text);
                let is_same =
                    shown.len() == want.len() && shown.iter().zip(want).all(|(shown, want)| shown.contains(want));
                assert!(is_same, "{text}: {shown:?}, wanted {want:?}");
            }
        }
        let config = Input::File(Box::from(std::path::Path::new("a/.nadmit.yaml")));
        assert!(shown(&config, "policy: p.yaml\n")[0].ends_with("pass it with --config"));
    }
}
