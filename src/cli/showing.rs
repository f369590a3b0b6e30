//! How verdicts are shown, and what exit code comes of them: the same for files and for a cluster.

use std::path::Path;

use clap::{Args, ValueEnum};

use super::colour::Colours;
use super::{CLEAN, DENIED, UNUSABLE, complain};
use crate::json::Lines;
use crate::manifests::Manifest;
use crate::output::{Format, Github, Html, Human, Json, Judged, Junit, Sarif, Summary, place};
use crate::policy::{Policy, Verdict};
use crate::resources::Meta;
use crate::server::reload::PolicyFile;

/// How to show what was found.
#[derive(Debug, Args)]
pub(super) struct Showing {
    /// How to show what was found
    #[arg(long, short, value_enum, default_value_t = Output::Human)]
    output: Output,
    /// Show what admission would change, as a diff
    #[arg(long)]
    diff: bool,
    /// Exit with 1 on these findings too
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTION")]
    deny: Vec<Stricter>,
    #[command(flatten)]
    colours: Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
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
    /// One page that needs nothing else, to search, filter, print and send
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stricter {
    /// What would be repaired
    Patch,
    /// Warnings
    Warn,
}

impl Showing {
    /// Refuses what does not go together.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.diff || self.output == Output::Human, "--diff goes with --output human only");
        Ok(())
    }

    /// The exit code that scripts can trust.
    pub(super) fn exit_code(&self, summary: &Summary) -> u8 {
        let patched = summary.patch > 0 && self.deny.contains(&Stricter::Patch);
        let warned = summary.warn > 0 && self.deny.contains(&Stricter::Warn);
        if summary.unreadable > 0 {
            UNUSABLE
        } else if summary.deny > 0 || patched || warned {
            DENIED
        } else {
            CLEAN
        }
    }

    /// The chosen way; a page has that title.
    pub(super) fn format(&self, title: &'static str) -> Box<dyn Format + Send> {
        match self.output {
            Output::Human => Box::new(Human::new(self.colours.is_on(), self.diff)),
            Output::Json => Box::new(Json),
            Output::Sarif => Box::new(Sarif),
            Output::Junit => Box::new(Junit),
            Output::Github => Box::new(Github),
            Output::Html => Box::new(Html::new(title)),
        }
    }
}

/// The policy in a file; without one, the default policy.
pub(super) fn read_policy(path: Option<&Path>) -> anyhow::Result<Policy> {
    let Some(path) = path else { return Ok(Policy::default()) };
    let (_, policy) = PolicyFile::open(path.to_owned())?;
    for warning in policy.warnings() {
        complain(format_args!("nadmit: {}: {warning}", path.display()));
    }
    Ok(policy)
}

/// A verdict on an object that stands in a text.
pub(super) fn judged<'a>(
    (source, lines): (&'a str, &'a Lines<'a>),
    manifest: &'a Manifest,
    (meta, json): (&'a Meta<'a>, &'a str),
    verdict: &'a Verdict,
) -> Judged<'a> {
    let mut findings: Vec<_> = verdict.findings.iter().map(|finding| place(finding, &manifest.node, lines)).collect();
    findings.sort_by_key(|placed| placed.span.start);
    Judged {
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
