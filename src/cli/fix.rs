//! `nadmit check --fix`: judge, change, judge again, until there is nothing more to fix; then write.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::check::{BATCH, in_parallel, index};
use super::outputs::Destination;
use super::progress::Progress;
use super::{EXIT_DENIED, EXIT_UNUSABLE, print_error};
use crate::json::LineIndex;
use crate::manifests::{
    Assumptions, ChangedFiles, ChangedKinds, DeclinedFix, FixedText, Index, Input, Manifest, Writable, fixed,
};
use crate::output::diff_of_files;
use crate::policy::{ExcuseReason, Finding, Fix, Policy, Subject, judge};
use crate::resources::Object;
use crate::supervise::contained;

/// How often the inputs are judged. A fix may bring to light what else is wrong, in the same file or in another one.
const MAX_PASSES: usize = 16;

/// Fixing arguments.
#[derive(Debug, Args)]
pub(super) struct FixArgs {
    /// Fix the files: make repairs and replace misspellings, and keep every other byte; with --diff, only show the edits
    #[arg(long, conflicts_with = "pass_through")]
    fix: bool,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct FixOutcome {
    /// Whether edits were shown that are still to be made.
    is_pending: bool,
    /// Whether a file could not be written.
    has_failed: bool,
}

impl FixOutcome {
    /// The exit code, where the remaining findings give that one.
    pub(super) fn exit_code(&self, of_findings: u8) -> u8 {
        match self {
            Self { has_failed: true, .. } => EXIT_UNUSABLE,
            Self { is_pending: true, .. } => of_findings.max(EXIT_DENIED),
            _ => of_findings,
        }
    }
}

impl FixArgs {
    /// Whether findings are to be fixed.
    pub(super) fn is_on(&self) -> bool {
        self.fix
    }

    /// Rejects invalid combinations.
    pub(super) fn check(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        let has_stdin = paths.iter().any(|path| path.as_os_str() == "-");
        let is_clear = !self.fix || !has_stdin || paths.len() == 1;
        anyhow::ensure!(is_clear, "--fix takes - alone, because its fixed text goes to standard output");
        Ok(())
    }

    /// Where the report of the remaining findings goes, if not where it usually does: standard output has the edits, or the fixed text.
    pub(super) fn report_to(&self, paths: &[PathBuf], with_diff: bool) -> Option<Destination> {
        match (self.fix, with_diff) {
            (true, true) => Some(Destination::Discard),
            (true, false) if paths.iter().any(|path| path.as_os_str() == "-") => Some(Destination::Stderr),
            _ => None,
        }
    }

    /// Fixes the inputs, which then have the fixed texts; with `with_diff`, nothing is written.
    pub(super) fn run(
        &self,
        paths: &[PathBuf],
        inputs: &mut [Input],
        judge: &FixJudge<'_>,
        with_diff: bool,
    ) -> anyhow::Result<FixOutcome> {
        let mut outcome = FixOutcome::default();
        if !self.fix {
            return Ok(outcome);
        }
        let Passes { changed, declined, has_more } = judge.all(inputs);
        let writable = Writable::below(paths);
        let (mut findings, mut files) = (0, 0);
        let mut shown = String::new();
        for (number, change) in changed {
            let Some(input) = inputs.get_mut(number) else { continue };
            let after = input.text()?.into_owned();
            let is_made = if with_diff {
                shown += &diff_of_files(&input.name(), &change.before, &after);
                Ok(true)
            } else if let Some(path) = input.path() {
                let written = writable.rewrite(path, &change.before, &after).map_err(|error| error.to_string());
                // What is reported next is what the file holds.
                input.reset();
                written
            } else if input.name() == "-" {
                Ok(true)
            } else {
                let problem = format!("{}: not fixed, because it is not a file", input.name());
                input.reset();
                Err(problem)
            };
            match is_made {
                Ok(is_new) => {
                    findings += if is_new { change.findings } else { 0 };
                    files += usize::from(is_new);
                }
                Err(problem) => {
                    outcome.has_failed = true;
                    print_error(format_args!("error: {problem}"));
                }
            }
        }
        if !with_diff && let Some(standard_input) = inputs.iter().find(|input| input.name() == "-") {
            shown = standard_input.text()?.into_owned();
        }
        let mut out = io::stdout().lock();
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        report(&declined, has_more, with_diff, (findings, files));
        outcome.is_pending = with_diff && files > 0;
        Ok(outcome)
    }
}

/// Says on standard error what was fixed and what was not.
fn report(declined: &[(String, DeclinedFix)], has_more: bool, with_diff: bool, (findings, files): (usize, usize)) {
    for (name, fix) in declined {
        let DeclinedFix { line, rule, reason, by_hand } = fix;
        print_error(format_args!("note: {name}: line {line}: cannot fix {rule} in place: {reason}; {by_hand}"));
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let verb = if with_diff { "would fix" } else { "fixed" };
    let mut line = format!("{verb} {} in {}", count(findings, "finding"), count(files, "file"));
    if !declined.is_empty() {
        line += &format!("; {} cannot be fixed in place", declined.len());
    }
    if has_more {
        line += "; there is more to fix: run it again";
    }
    print_error(line);
}

/// What is needed to judge the inputs.
pub(super) struct FixJudge<'j> {
    pub(super) policy: &'j Policy,
    pub(super) assume: &'j Assumptions,
    pub(super) changed: &'j ChangedFiles,
}

/// An input with another text than before.
struct ChangedInput {
    /// Its first text.
    before: String,
    /// How many findings were fixed in it.
    findings: usize,
}

/// The result of all passes.
struct Passes {
    /// By the number of the input.
    changed: BTreeMap<usize, ChangedInput>,
    /// What could not be fixed, with the name of the input.
    declined: Vec<(String, DeclinedFix)>,
    /// Whether the last pass still changed something.
    has_more: bool,
}

impl FixJudge<'_> {
    /// Judges and fixes all inputs until nothing changes any more.
    fn all(&self, inputs: &mut [Input]) -> Passes {
        let mut passes = Passes { changed: BTreeMap::new(), declined: Vec::new(), has_more: true };
        for _ in 0..MAX_PASSES {
            if !passes.has_more {
                break;
            }
            passes.declined.clear();
            passes.has_more = self.pass(inputs, &mut passes.changed, &mut passes.declined);
        }
        passes
    }

    /// Fixes every input once. Whether one was changed.
    fn pass(
        &self,
        inputs: &mut [Input],
        changed: &mut BTreeMap<usize, ChangedInput>,
        declined: &mut Vec<(String, DeclinedFix)>,
    ) -> bool {
        let mut progress = Progress::new("fixing", inputs.len() * 2, 500);
        let index = index(inputs, &mut progress);
        let (mut has_changed, mut number) = (false, 0);
        for batch in inputs.chunks_mut(BATCH) {
            let results = in_parallel(batch, |input| self.input(&index, input));
            progress.advance(batch.len());
            for (input, (before, result)) in batch.iter_mut().zip(results) {
                let name = || input.name().into_owned();
                declined.extend(result.declined.into_iter().map(|fix| (name(), fix)));
                if let Some(text) = result.text {
                    has_changed = true;
                    input.set_text(text);
                    let change = changed.entry(number).or_insert(ChangedInput { before, findings: 0 });
                    change.findings += result.fixed;
                }
                number += 1;
            }
        }
        has_changed
    }

    /// The text of an input, if it is fixed, and the result.
    fn input(&self, index: &Index, input: &Input) -> (String, FixedText) {
        // What cannot be read is reported when the input is judged, and so is a panic.
        let Ok(text) = input.text() else { return Default::default() };
        if input.is_template(&text) {
            return Default::default();
        }
        let changed = self.changed.in_input(input);
        let mut fixes_of = |manifest: &Manifest| contained(|| self.fixes(index, manifest, changed)).unwrap_or_default();
        let result = contained(|| fixed(&LineIndex::of(&text), &mut fixes_of)).unwrap_or_default();
        (if result.text.is_some() { text.into_owned() } else { String::new() }, result)
    }

    fn fixes(&self, index: &Index, manifest: &Manifest, changed: Option<&ChangedKinds>) -> Vec<Fix> {
        let json = manifest.node.to_json();
        let Ok(Some(object)) = Object::read(&json) else { return Vec::new() };
        let facts = index.facts(&object, self.assume, self.policy);
        let mut verdict = judge(&Subject::manifest(&object), &facts, self.policy);
        if let Some(part) = changed.and_then(|changed| changed.part_of(object.kind())) {
            verdict.only_warn(part, &ExcuseReason::Kustomization);
        }
        verdict.findings.iter().filter_map(Finding::fix).collect()
    }
}
