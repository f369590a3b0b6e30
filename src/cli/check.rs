//! `nadmit check`.

use std::io::{self, BufWriter, Write};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;

use super::output_args::{OutputArgs, judged};
use super::policy_args::PolicyArgs;
use super::print_error;
use super::progress::Progress;
use crate::json::LineIndex;
use crate::manifests::{Assumptions, Index, Input, Manifest, ManifestDocument, documents, inputs};
use crate::output::{Format, Summary};
use crate::policy::{Facts, Policy, Prefix, Subject, judge};
use crate::resources::Object;
use crate::supervise::contained;

/// How many files are processed at once: enough to keep every core busy, few enough to use little memory.
const BATCH: usize = 256;

/// Judge manifests in files, offline
///
/// Reads YAML and JSON, including multiple documents and lists. Manifests given together are judged together: a NAD finds the
/// network that owns it, and two networks that render the same NAD are reported. Objects of other kinds are counted and ignored.
///
/// Exit code 0: nothing denied. 1: something denied. 2: wrong arguments, or an input that could not be read (the others are
/// judged).
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Files and directories; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output_args: OutputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The namespace the SR-IOV operator runs in
    #[arg(long, env = "NADMIT_OPERATOR_NAMESPACE", value_name = "NAME")]
    operator_namespace: Option<String>,
    /// The domain the operator prepends to resource names [default: openshift.io]
    #[arg(long, env = "NADMIT_RESOURCE_PREFIX", value_name = "DOMAIN")]
    resource_prefix: Option<String>,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        self.output_args.check()?;
        let policy = self.policy.read()?;
        let (inputs, errors) = inputs(&self.paths);
        let mut run = Run {
            policy: &policy,
            assume: self.assumptions(),
            format: self.output_args.format("nadmit check"),
            progress: Progress::new("checking", inputs.len() * 2, 500),
            summary: Summary::default(),
            out: BufWriter::new(Box::new(io::stdout().lock())),
            is_first: true,
        };
        for error in &errors {
            run.unreadable(&error.to_string());
        }
        run.all(&inputs)?;
        let summary = run.summary;
        drop(run);
        Ok(self.output_args.exit_code(&summary))
    }

    fn assumptions(&self) -> Assumptions {
        let prefix = Prefix {
            value: self.resource_prefix.clone().unwrap_or_else(|| "openshift.io".to_owned()),
            assumed: self.resource_prefix.is_none(),
        };
        let today = Facts::date(jiff::Timestamp::now());
        Assumptions { prefix, operator_namespace: self.operator_namespace.clone(), today }
    }
}

/// One run over all inputs.
struct Run<'r> {
    policy: &'r Policy,
    assume: Assumptions,
    format: Box<dyn Format>,
    progress: Progress,
    summary: Summary,
    out: BufWriter<Box<dyn Write>>,
    is_first: bool,
}

/// The result of one input.
#[derive(Default)]
struct InputOutcome {
    chunks: Vec<String>,
    problems: Vec<String>,
    summary: Summary,
}

impl Run<'_> {
    fn all(&mut self, inputs: &[Input]) -> anyhow::Result<()> {
        let index = self.index(inputs);
        let begin = self.format.begin();
        self.out.write_all(begin.as_bytes())?;
        for batch in inputs.chunks(BATCH) {
            let judge =
                InputJudge { policy: self.policy, assume: &self.assume, format: self.format.as_ref(), index: &index };
            let outcomes = in_parallel(batch, |input| judge.input(input));
            for outcome in &outcomes {
                self.write(outcome)?;
            }
            self.progress.advance(batch.len());
        }
        self.progress.clear();
        let end = self.format.end(&self.summary);
        self.out.write_all(end.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// The first pass: indexes the manifests. Errors are reported by the second pass.
    fn index(&mut self, inputs: &[Input]) -> Index {
        let mut index = Index::default();
        for batch in inputs.chunks(BATCH) {
            let parts = in_parallel(batch, |input| {
                let mut part = Index::default();
                if let Ok(text) = input.text() {
                    documents(&LineIndex::of(&text), &mut |document| {
                        if let ManifestDocument::Manifest(manifest) = document {
                            // A panic here is reported when the input is judged.
                            let _ = contained(|| part.add(&manifest));
                        }
                    });
                }
                part
            });
            parts.into_iter().for_each(|part| index.merge(part));
            self.progress.advance(batch.len());
        }
        index.finish()
    }

    fn write(&mut self, outcome: &InputOutcome) -> anyhow::Result<()> {
        for problem in &outcome.problems {
            self.unreadable(problem);
        }
        for chunk in outcome.chunks.iter().filter(|chunk| !chunk.is_empty()) {
            self.progress.clear();
            if !self.is_first {
                self.out.write_all(self.format.between().as_bytes())?;
            }
            self.is_first = false;
            self.out.write_all(chunk.as_bytes())?;
        }
        self.summary.add(&outcome.summary);
        Ok(())
    }

    fn unreadable(&mut self, problem: &str) {
        self.progress.clear();
        self.summary.unreadable += 1;
        print_error(format_args!("error: {problem}"));
    }
}

/// What is needed to judge one input.
struct InputJudge<'j> {
    policy: &'j Policy,
    assume: &'j Assumptions,
    format: &'j dyn Format,
    index: &'j Index,
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
        documents(&lines, &mut |document| match document {
            // A panic on one manifest must not hide the others.
            ManifestDocument::Manifest(manifest) => {
                if let Err(panicked) = contained(|| self.manifest(&manifest, &name, &lines, &mut outcome)) {
                    let line = manifest.line;
                    outcome.problems.push(format!("{name}: line {line}: cannot judge it: nadmit {panicked}"));
                }
            }
            ManifestDocument::Unreadable { line, problem } => {
                outcome.problems.push(format!("{name}: line {line}: {problem}"));
            }
        });
        outcome
    }

    fn manifest(&self, manifest: &Manifest, source: &str, lines: &LineIndex<'_>, outcome: &mut InputOutcome) {
        let json = manifest.node.to_json();
        let Ok(Some(object)) = Object::read(&json) else {
            outcome.summary.skipped += 1;
            return;
        };
        let facts = self.index.facts(&object, self.assume, self.policy);
        let verdict = judge(&Subject::manifest(&object), &facts, self.policy);
        outcome.summary.count(&verdict);
        let judged = judged((source, lines), manifest, (object.meta(), &json), &verdict);
        outcome.chunks.push(self.format.document(&judged));
    }
}

/// Processes items on all cores; results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
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
        let judge = InputJudge { policy: &Policy::default(), assume: &assume, format: &Poisoned, index: &index };
        let outcome = judge.input(&Input::File(file.path().into()));
        assert_eq!(outcome.chunks, ["a", "b"]);
        let [problem] = outcome.problems.as_slice() else { panic!("{:?}", outcome.problems) };
        assert!(problem.contains("line 5: cannot judge it: nadmit panicked: ") && problem.contains("it is poison"));
    }
}
