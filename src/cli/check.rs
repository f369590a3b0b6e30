//! `nadmit check`.

mod account;
mod input_args;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;

use super::fix::{FixArgs, FixJudge};
use super::output_args::{OutputArgs, judged};
use super::outputs::Outputs;
use super::policy_args::PolicyArgs;
use super::progress::Progress;
use super::repository_args::{AssumptionArgs, RepositoryArgs};
use super::{EXIT_CLEAN, EXIT_UNUSABLE, print_error};
use crate::json::LineIndex;
use crate::manifests::{Assumptions, ChangedFiles, ChangedKinds, Index, Input, InputDocument, Manifest, inputs};
use crate::output::Summary;
use crate::policy::{ExcuseReason, Policy, Subject, judge};
use crate::resources::Object;
use crate::supervise::contained;
use account::{Unrendered, closing_line, notices};
use input_args::InputArgs;

/// How many files are processed at once: enough to keep every core busy, few enough to use little memory.
pub(super) const BATCH: usize = 256;

/// Judge manifests in files, offline
///
/// Reads YAML and JSON, including multiple documents and lists. Manifests given together are judged together: a NAD finds the
/// network that owns it, and two networks that render the same NAD are reported. Objects of other kinds are counted and ignored.
///
/// In a directory, every .yaml, .yml and .json file counts that neither a .gitignore of its git repository nor --exclude ignores. What has no
/// kind and Helm templates are skipped there; a file that is named must hold manifests. A line on standard error says what was
/// judged, what was skipped and why, and by which configuration.
///
/// Exit code 0: nothing denied. 1: something denied; with --fix, something still denied, or with --diff something to fix.
/// 2: wrong arguments, an input that could not be read or written (the others are judged), or nothing judged with --fail-if-empty.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Files and directories; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output_args: OutputArgs,
    #[command(flatten)]
    input_args: InputArgs,
    #[command(flatten)]
    fix: FixArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    assumptions: AssumptionArgs,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        self.output_args.check()?;
        self.input_args.check(&self.paths)?;
        self.fix.check(&self.paths)?;
        let mut config = self.input_args.repository.config()?;
        let configured = RepositoryArgs::policy(config.as_ref());
        let policy_args = self.policy.or(configured.as_deref());
        let policy = policy_args.read()?;
        let exclude = self.input_args.repository.excluded(config.as_mut())?;
        let mut found = inputs(&self.paths, &exclude);
        let assume = self.assumptions.assumptions(config.as_ref());
        let with_diff = self.output_args.with_diff();
        let judge = FixJudge { policy: &policy, assume: &assume, changed: &found.changed };
        let fixed = self.fix.run(&self.paths, &mut found.inputs, &judge, with_diff)?;
        let standard = self.fix.report_to(&self.paths, with_diff).unwrap_or(self.input_args.standard_output());
        let mut run = Run {
            policy: &policy,
            assume,
            offers_fixes: !self.fix.is_on(),
            outputs: self.output_args.open("nadmit check", &standard)?,
            progress: Progress::new("checking", found.inputs.len() * 2, 500),
            summary: Summary::default(),
            changed: &found.changed,
            unrendered: Unrendered::default(),
        };
        let skipped = &mut run.summary.skipped;
        (skipped.ignored, skipped.links) = (found.ignored, found.links);
        skipped.kustomize_patches = found.patches.len();
        for error in &found.errors {
            run.unreadable(&error.to_string());
        }
        run.all(&found.inputs)?;
        let Run { summary, unrendered, .. } = run;
        for notice in notices(&summary.skipped, &unrendered, found.patches.first().map(PathBuf::as_path)) {
            print_error(notice);
        }
        let config = config.as_ref().map(|config| config.path.as_path());
        print_error(closing_line(&summary, config, policy_args.file()));
        if summary.documents == 0 && self.input_args.fails_if_empty() {
            print_error(
                "error: nothing was judged, and --fail-if-empty was given: the inputs hold no NAD and no network",
            );
            return Ok(EXIT_UNUSABLE);
        }
        let code = fixed.exit_code(self.output_args.exit_code(&summary));
        if code == EXIT_CLEAN {
            self.input_args.pass_through(&found.inputs)?;
        }
        Ok(code)
    }
}

/// One run over all inputs.
struct Run<'r> {
    policy: &'r Policy,
    assume: Assumptions,
    offers_fixes: bool,
    outputs: Outputs,
    progress: Progress,
    summary: Summary,
    changed: &'r ChangedFiles,
    unrendered: Unrendered,
}

/// The result of one input.
#[derive(Default)]
struct InputOutcome {
    /// The documents, each rendered for every output.
    chunks: Vec<Vec<String>>,
    problems: Vec<String>,
    summary: Summary,
    unrendered: Unrendered,
}

impl Run<'_> {
    fn all(&mut self, inputs: &[Input]) -> anyhow::Result<()> {
        let index = index(inputs, &mut self.progress);
        self.outputs.begin()?;
        for batch in inputs.chunks(BATCH) {
            let judge = InputJudge {
                policy: self.policy,
                assume: &self.assume,
                offers_fixes: self.offers_fixes,
                changed: self.changed,
                outputs: &self.outputs,
                index: &index,
            };
            let outcomes = in_parallel(batch, |input| judge.input(input));
            for outcome in outcomes {
                self.write(outcome)?;
            }
            self.progress.advance(batch.len());
        }
        self.progress.clear();
        std::mem::take(&mut self.outputs).end(&self.summary)
    }

    fn write(&mut self, outcome: InputOutcome) -> anyhow::Result<()> {
        for problem in &outcome.problems {
            self.unreadable(problem);
        }
        for rendered in &outcome.chunks {
            if rendered.iter().any(|chunk| !chunk.is_empty()) {
                self.progress.clear();
            }
            self.outputs.write(rendered)?;
        }
        self.summary.add(&outcome.summary);
        self.unrendered.add(outcome.unrendered);
        Ok(())
    }

    fn unreadable(&mut self, problem: &str) {
        self.progress.clear();
        self.summary.unreadable += 1;
        print_error(format_args!("error: {problem}"));
    }
}

/// The first pass: indexes the manifests. Errors are reported by the second pass.
pub(super) fn index(inputs: &[Input], progress: &mut Progress) -> Index {
    let mut index = Index::default();
    for batch in inputs.chunks(BATCH) {
        let parts = in_parallel(batch, |input| {
            let mut part = Index::default();
            if let Ok(text) = input.text() {
                let (name, lines) = (input.name(), LineIndex::of(&text));
                input.documents(&lines, &mut |document| {
                    if let InputDocument::Manifest(manifest) = document {
                        // A panic here is reported when the input is judged.
                        let _ = contained(|| part.add(&manifest, &name, &lines));
                    }
                });
            }
            part
        });
        parts.into_iter().for_each(|part| index.merge(part));
        progress.advance(batch.len());
    }
    index.finish()
}

/// What is needed to judge one input.
struct InputJudge<'j> {
    policy: &'j Policy,
    assume: &'j Assumptions,
    /// Whether to count what `--fix` would fix.
    offers_fixes: bool,
    changed: &'j ChangedFiles,
    outputs: &'j Outputs,
    index: &'j Index,
}

/// Where a manifest is from.
struct ManifestSource<'s> {
    name: &'s str,
    lines: &'s LineIndex<'s>,
    /// What kustomizations change in it.
    changed: Option<&'s ChangedKinds>,
}

impl InputJudge<'_> {
    fn input(&self, input: &Input) -> InputOutcome {
        let mut outcome = InputOutcome::default();
        let text = match input.text() {
            Ok(text) => text,
            Err(error) => {
                outcome.problems.push(error.to_string());
                return outcome;
            }
        };
        let name = input.name();
        let lines = LineIndex::of(&text);
        let source = ManifestSource { name: &name, lines: &lines, changed: self.changed.in_input(input) };
        input.documents(&lines, &mut |document| match document {
            // A panic on one manifest must not hide the others.
            InputDocument::Manifest(manifest) => {
                if let Err(panicked) = contained(|| self.manifest(&manifest, &source, &mut outcome)) {
                    let line = manifest.line;
                    outcome.problems.push(format!("{name}: line {line}: cannot judge it: nadmit {panicked}"));
                }
            }
            InputDocument::Unreadable { line, problem } => {
                outcome.problems.push(format!("{name}: line {line}: {problem}"));
            }
            InputDocument::WithoutKind => outcome.summary.skipped.no_kind += 1,
            InputDocument::HelmTemplate => {
                outcome.summary.skipped.helm_templates += 1;
                outcome.unrendered.template = Some(name.clone().into_owned());
            }
        });
        outcome
    }

    fn manifest(&self, manifest: &Manifest, source: &ManifestSource<'_>, outcome: &mut InputOutcome) {
        let json = manifest.node.to_json();
        let Ok(Some(object)) = Object::read(&json) else {
            match manifest.meant_kind() {
                None => outcome.summary.skipped.other_kinds += 1,
                Some(meant) => outcome.problems.push(format!(
                    "{}: line {}: {} has no kind `{}`; did you mean `{meant}`?",
                    source.name,
                    manifest.line,
                    manifest.text("apiVersion"),
                    manifest.text("kind"),
                )),
            }
            return;
        };
        let facts = self.index.facts(&object, self.assume, self.policy);
        let mut verdict = judge(&Subject::manifest(&object), &facts, self.policy);
        self.index.locate_related(&mut verdict);
        if let Some(part) = source.changed.and_then(|changed| changed.part_of(object.kind()))
            && verdict.only_warn(part, &ExcuseReason::Kustomization)
        {
            outcome.unrendered.count_changed(source.name);
        }
        outcome.summary.count(&verdict);
        if self.offers_fixes {
            outcome.summary.fixable += verdict.findings.iter().filter(|finding| finding.is_fixable()).count();
        }
        let judged = judged((source.name, source.lines), manifest, (object.meta(), &json), &verdict);
        outcome.chunks.push(self.outputs.render(&judged));
    }
}

/// Processes items on all cores; results are in the order of the items.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if workers <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((at, work(item)));
        }
        done
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(run)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::outputs::Destination;
    use crate::output::Format;
    use crate::policy::Prefix;

    /// Panics on one name.
    struct Poisoned;

    impl Format for Poisoned {
        fn document(&self, judged: &crate::output::JudgedDocument<'_>) -> String {
            assert_ne!(judged.name, "poison", "it is poison");
            judged.name.to_owned()
        }

        fn end(&self, _: &Summary) -> String {
            String::new()
        }
    }

    #[test]
    fn panic_on_one_manifest_does_not_skip_the_next() {
        let one = |name: &str| {
            format!("apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {{name: {name}}}\n")
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [one("a"), one("poison"), one("b")].join("---\n")).unwrap();
        let prefix = Prefix { value: "p".to_owned(), assumed: true };
        let assume = Assumptions { prefix, operator_namespace: None, today: "2026-01-01".parse().unwrap() };
        let index = Index::default().finish();
        let mut outputs = Outputs::default();
        outputs.add(Box::new(Poisoned), &Destination::Stdout).unwrap();
        let policy = Policy::default();
        let judge = InputJudge {
            policy: &policy,
            assume: &assume,
            offers_fixes: true,
            changed: &ChangedFiles::default(),
            outputs: &outputs,
            index: &index,
        };
        let outcome = judge.input(&Input::File(file.path().into()));
        assert_eq!(outcome.chunks, [["a"], ["b"]]);
        let [problem] = outcome.problems.as_slice() else { panic!("{:?}", outcome.problems) };
        assert!(problem.contains("line 5: cannot judge it: nadmit panicked: ") && problem.contains("it is poison"));
    }
}
