//! A map of manifests: they are read and judged as `nadmit check` does.

use super::MapCommand;
use crate::audit::map::{MapBuilder, MapKind, MapSource, NetworkMap};
use crate::cli::check::{BATCH, in_parallel, index};
use crate::cli::print_error;
use crate::cli::progress::Progress;
use crate::cli::repository_args::RepositoryArgs;
use crate::json::LineIndex;
use crate::manifests::{Assumptions, Index, Input, InputDocument, Manifest, inputs};
use crate::policy::{Facts, Policy, Subject, judge};
use crate::resources::Object;
use crate::supervise::contained;

/// Reads everything; the map, and how many inputs could not be read.
pub(super) fn read(command: &MapCommand) -> anyhow::Result<(NetworkMap, usize)> {
    let mut config = command.repository.config()?;
    let configured = RepositoryArgs::policy(config.as_ref());
    let policy = command.policy.or(configured.as_deref()).read()?;
    let exclude = command.repository.excluded(config.as_mut())?;
    let found = inputs(&command.paths, &exclude);
    let assume = command.assumptions.assumptions(config.as_ref());
    let mut unreadable = found.errors.len();
    found.errors.iter().for_each(|error| print_error(format_args!("error: {error}")));
    let mut progress = Progress::new("reading", found.inputs.len() * 2, 500);
    let index = index(&found.inputs, &mut progress);
    let reader = ManifestReader { policy: &policy, assume: &assume, index: &index };
    let mut all = reader.builder();
    let empty = all.part();
    for batch in found.inputs.chunks(BATCH) {
        for (part, problems) in in_parallel(batch, |input| reader.input(input, empty.part())) {
            unreadable += problems.len();
            problems.iter().for_each(|problem| print_error(format_args!("error: {problem}")));
            all.merge(part);
        }
        progress.advance(batch.len());
    }
    progress.clear();
    Ok((all.finish(), unreadable))
}

/// What is needed to read one input.
struct ManifestReader<'r> {
    policy: &'r Policy,
    assume: &'r Assumptions,
    index: &'r Index,
}

impl ManifestReader<'_> {
    fn builder(&self) -> MapBuilder {
        let facts = Facts { operator_namespace: self.assume.operator_namespace.clone(), ..Facts::default() };
        MapBuilder::new(MapSource::Manifests, &self.assume.prefix.value).with_operator(self.policy, facts)
    }

    /// The objects of an input, added to that part of the map, and what could not be read.
    fn input(&self, input: &Input, mut part: MapBuilder) -> (MapBuilder, Vec<String>) {
        let mut problems = Vec::new();
        let text = match input.text() {
            Ok(text) => text,
            Err(error) => return (part, vec![error.to_string()]),
        };
        let name = input.name();
        let lines = LineIndex::of(&text);
        input.documents(&lines, &mut |document| match document {
            InputDocument::Manifest(manifest) => {
                let place = format!("{name}:{}", manifest.line);
                // A panic on one manifest must not hide the others.
                if let Err(panicked) = contained(|| self.manifest(&manifest, &place, &mut part)) {
                    problems.push(format!("{name}: line {}: cannot read it: nadmit {panicked}", manifest.line));
                }
            }
            InputDocument::Unreadable { line, problem } => problems.push(format!("{name}: line {line}: {problem}")),
            InputDocument::WithoutKind | InputDocument::HelmTemplate => {}
        });
        (part, problems)
    }

    fn manifest(&self, manifest: &Manifest, place: &str, part: &mut MapBuilder) {
        let Some(kind) = MapKind::of(manifest.text("apiVersion"), manifest.text("kind")) else { return };
        let json = manifest.node.to_json();
        part.add(kind, &json, place);
        if let Ok(Some(object)) = Object::read(&json) {
            let facts = self.index.facts(&object, self.assume, self.policy);
            part.add_findings(&object, &judge(&Subject::manifest(&object), &facts, self.policy));
        }
    }
}
