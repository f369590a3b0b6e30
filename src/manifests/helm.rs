//! Helm templates: files of a chart that are manifests only once they are rendered.

use std::fs;
use std::path::{Path, PathBuf};

use crate::yaml::Documents;

/// A template, and where it can be seen that it is one.
#[derive(Debug, PartialEq)]
pub(super) struct HelmTemplate {
    /// The line of the first action, from 1.
    pub(super) line: usize,
    /// The directory of its chart, if it is in one.
    pub(super) chart: Option<PathBuf>,
}

impl HelmTemplate {
    /// Whether a text is a template: it has an action (`{{ … }}`), and lies in the templates of a chart or cannot be parsed.
    ///
    /// A file without an action is rendered to itself, so it is a manifest wherever it lies.
    pub(super) fn recognize(text: &str, path: Option<&Path>) -> Option<Self> {
        let line = first_action(text)?;
        let chart = path.and_then(chart_of);
        let is_template = chart.is_some() || Documents::new(text).any(|document| document.node.is_err());
        is_template.then_some(Self { line, chart })
    }
}

/// The line of the first action outside of comments.
fn first_action(text: &str) -> Option<usize> {
    if !text.contains("{{") {
        return None;
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    let (at, _) = lines.find(|(_, line)| line.contains("{{"))?;
    text.rfind("}}").map(|_| at + 1)
}

/// The chart in whose `templates` a file lies.
fn chart_of(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    let templates = real.ancestors().skip(1).filter(|above| above.ends_with("templates"));
    let mut charts = templates.filter_map(Path::parent);
    charts.find(|chart| chart.join("Chart.yaml").is_file()).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_actions_and_do_not_parse() {
        for (text, want) in [
            ("{{- if .Values.on }}\nkind: A\n{{- end }}\n", Some(1)),
            ("kind: A\nmetadata:\n  {{- include \"x\" . }}\n", Some(3)),
            ("# {{ a }}\nkind: [\n", None),
            ("kind: [\n", None),
            ("kind: A\nname: '{{ .Release.Name }}'\n", None),
            ("kind: A\n---\n{{ a }}: {{ b\n}}\n", Some(3)),
            ("a: {{ b\n", None),
        ] {
            let found = HelmTemplate::recognize(text, None);
            assert_eq!(found.map(|template| template.line), want, "{text}");
        }
    }

    #[test]
    fn in_a_chart_an_action_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let text = "kind: A\nname: '{{ .Release.Name }}'\n";
        for (file, chart) in [
            ("c/templates/a.yaml", Some("c")),
            ("c/templates/x/a.yaml", Some("c")),
            ("c/charts/d/templates/a.yaml", Some("c/charts/d")),
            ("c/crds/a.yaml", None),
            ("templates/a.yaml", None),
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            for chart in ["c", "c/charts/d"] {
                let chart = root.join(chart);
                fs::create_dir_all(&chart).unwrap();
                fs::write(chart.join("Chart.yaml"), "name: c\n").unwrap();
            }
            let found = HelmTemplate::recognize(text, Some(&file)).map(|template| template.chart);
            assert_eq!(found, chart.map(|chart| Some(root.join(chart))), "{}", file.display());
            assert_eq!(HelmTemplate::recognize("kind: A\n", Some(&file)), None);
        }
    }
}
