//! Outputs and exit code of verdicts, shared by `check` and `audit`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueEnum};

use super::color::ColorArgs;
use super::outputs::{Destination, Outputs};
use super::{EXIT_CLEAN, EXIT_DENIED, EXIT_UNUSABLE, plugin};
use crate::json::LineIndex;
use crate::manifests::Manifest;
use crate::output::{Format, Github, Html, Human, Json, JudgedDocument, Junit, Sarif, Summary, locate};
use crate::policy::Verdict;
use crate::resources::Meta;

/// Output arguments.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// The output format, and the file that it is written to instead of standard output; may be repeated with other files
    #[arg(long, short, value_parser = OutputParser::<OutputFormat>::new(), default_value = "human", value_name = "FORMAT[=FILE]")]
    output: Vec<OutputTarget<OutputFormat>>,
    /// Show what admission would change, as a diff
    #[arg(long)]
    diff: bool,
    /// Exit with 1 on these findings too
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTION")]
    deny: Vec<DenyLevel>,
    #[command(flatten)]
    colours: ColorArgs,
}

/// A format, and the file that it is written to; without one, it goes to standard output.
#[derive(Clone, Debug)]
pub(super) struct OutputTarget<F> {
    pub(super) format: F,
    pub(super) file: Option<PathBuf>,
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
        let is_human = self.output.iter().any(|target| target.format == OutputFormat::Human);
        anyhow::ensure!(!self.diff || is_human, "--diff requires --output human");
        no_repeated_target(&self.output)
    }

    /// Whether differences are shown.
    pub(super) fn with_diff(&self) -> bool {
        self.diff
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

    /// Opens the outputs; a page gets that title. Those without a file go to `standard`.
    pub(super) fn open(&self, title: &'static str, standard: &Destination) -> anyhow::Result<Outputs> {
        let mut outputs = Outputs::default();
        for target in &self.output {
            let file = target.file.clone().map(Destination::File);
            outputs.add(self.format(target, title), file.as_ref().unwrap_or(standard))?;
        }
        Ok(outputs)
    }

    fn format(&self, target: &OutputTarget<OutputFormat>, title: &'static str) -> Box<dyn Format + Send> {
        let is_coloured = match target.file {
            Some(_) => self.colours.is_on_in_files(),
            None => self.colours.is_on(),
        };
        match target.format {
            OutputFormat::Human => Box::new(Human::new(is_coloured, self.diff).started_as(plugin::program())),
            OutputFormat::Json => Box::new(Json),
            OutputFormat::Sarif => Box::new(Sarif),
            OutputFormat::Junit => Box::new(Junit),
            OutputFormat::Github => Box::new(Github),
            OutputFormat::Html => Box::new(Html::new(title)),
        }
    }
}

/// Rejects two outputs in one place.
pub(super) fn no_repeated_target<F: ValueEnum>(targets: &[OutputTarget<F>]) -> anyhow::Result<()> {
    let name = |format: &F| format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    for (at, target) in targets.iter().enumerate() {
        let mut earlier = targets.iter().take(at);
        if let Some(other) = earlier.find(|other| other.file == target.file) {
            let (other, format) = (name(&other.format), name(&target.format));
            match &target.file {
                Some(file) => anyhow::bail!("--output {other} and {format} both go to \"{}\"", file.display()),
                None => anyhow::bail!(
                    "--output {other} and {format} both go to standard output; name a file for one of them: --output {format}=FILE"
                ),
            }
        }
    }
    Ok(())
}

/// Reads `FORMAT[=FILE]`.
#[derive(Clone, Debug)]
pub(super) struct OutputParser<F>(EnumValueParser<F>)
where
    F: ValueEnum + Clone + Send + Sync + 'static;

impl<F: ValueEnum + Clone + Send + Sync + 'static> OutputParser<F> {
    pub(super) fn new() -> Self {
        Self(EnumValueParser::new())
    }
}

impl<F: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for OutputParser<F> {
    type Value = OutputTarget<F>;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<OutputTarget<F>, clap::Error> {
        let mut parts = value.as_bytes().splitn(2, |byte| *byte == b'=').map(OsStr::from_bytes);
        let written = parts.next().unwrap_or_default();
        let format = self.0.parse_ref(command, arg, written)?;
        let file = parts.next();
        if file.is_some_and(OsStr::is_empty) {
            let problem = format!("a file must follow --output {}=\n", written.display());
            return Err(clap::Error::raw(ErrorKind::InvalidValue, problem).with_cmd(command));
        }
        // As in paths to read, a hyphen is the standard stream.
        Ok(OutputTarget { format, file: file.filter(|file| *file != "-").map(PathBuf::from) })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(F::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
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
        template: manifest.template.as_deref(),
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
