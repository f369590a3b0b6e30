//! Format and exit code of verdicts, shared by `check` and `audit`.

use clap::{Args, ValueEnum};

use super::color::ColorArgs;
use super::{EXIT_CLEAN, EXIT_DENIED, EXIT_UNUSABLE};
use crate::json::LineIndex;
use crate::manifests::Manifest;
use crate::output::{Format, Github, Html, Human, Json, JudgedDocument, Junit, Sarif, Summary, locate};
use crate::policy::Verdict;
use crate::resources::Meta;

/// Output arguments.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// The output format
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Human)]
    output: OutputFormat,
    /// Show what admission would change, as a diff
    #[arg(long)]
    diff: bool,
    /// Exit with 1 on these findings too
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTION")]
    deny: Vec<DenyLevel>,
    #[command(flatten)]
    colours: ColorArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Diagnostics that point into the object
    Human,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for CI servers
    Junit,
    /// Workflow commands, for annotations in pull requests
    Github,
    /// A self-contained HTML page to search, filter, print and share
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DenyLevel {
    /// Repairs
    Patch,
    /// Warnings
    Warn,
}

impl OutputArgs {
    /// Rejects invalid combinations.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.diff || self.output == OutputFormat::Human, "--diff requires --output human");
        Ok(())
    }

    /// The exit code.
    pub(super) fn exit_code(&self, summary: &Summary) -> u8 {
        let patched = summary.patch > 0 && self.deny.contains(&DenyLevel::Patch);
        let warned = summary.warn > 0 && self.deny.contains(&DenyLevel::Warn);
        if summary.unreadable > 0 {
            EXIT_UNUSABLE
        } else if summary.deny > 0 || patched || warned {
            EXIT_DENIED
        } else {
            EXIT_CLEAN
        }
    }

    /// The chosen format; a page gets that title.
    pub(super) fn format(&self, title: &'static str) -> Box<dyn Format + Send> {
        match self.output {
            OutputFormat::Human => Box::new(Human::new(self.colours.is_on(), self.diff)),
            OutputFormat::Json => Box::new(Json),
            OutputFormat::Sarif => Box::new(Sarif),
            OutputFormat::Junit => Box::new(Junit),
            OutputFormat::Github => Box::new(Github),
            OutputFormat::Html => Box::new(Html::new(title)),
        }
    }
}

/// A judged document with located findings.
pub(super) fn judged<'a>(
    (source, lines): (&'a str, &'a LineIndex<'a>),
    manifest: &'a Manifest,
    (meta, json): (&'a Meta<'a>, &'a str),
    verdict: &'a Verdict,
) -> JudgedDocument<'a> {
    let mut findings: Vec<_> = verdict.findings.iter().map(|finding| locate(finding, &manifest.node, lines)).collect();
    findings.sort_by_key(|placed| placed.span.start);
    JudgedDocument {
        source,
        text: lines.text(),
        line: manifest.line,
        api_version: manifest.text("apiVersion"),
        kind: manifest.text("kind"),
        namespace: &meta.namespace,
        name: &meta.name,
        json,
        verdict,
        findings,
        change: change(json, &verdict.patch),
    }
}

/// The object before and after its patch, where there is one.
fn change(json: &str, patch: &json_patch::Patch) -> Option<(String, String)> {
    if patch.is_empty() {
        return None;
    }
    let mut object: serde_json::Value = serde_json::from_str(json).ok()?;
    json_patch::patch(&mut object, patch).ok()?;
    Some((json.to_owned(), object.to_string()))
}
