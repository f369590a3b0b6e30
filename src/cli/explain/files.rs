//! Reads manifests as `nadmit check` does, and explains the pods in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{ExplainOptions, WorkloadArg};
use crate::audit::chain::{ClusterNode, NodePolicy, Read};
use crate::audit::explain::{KnownNodes, NadPlan, NadPlans, PodPlan, PodQuestion, in_file, selected_by};
use crate::cli::check::{BATCH, in_parallel, index};
use crate::cli::print_error;
use crate::cli::progress::Progress;
use crate::cli::repository_args::RepositoryArgs;
use crate::json::LineIndex;
use crate::manifests::{Assumptions, Index, Input, InputDocument, Manifest, inputs};
use crate::policy::{FactLookup, Facts, NetworkFact, Policy, SourcePlace, Subject, Verdict, judge};
use crate::resources::{NETWORK_GROUP, Network, Object, ObjectKey, Workload, WorkloadKind};
use crate::supervise::contained;

/// What is in some manifests, as far as pods need it.
pub(super) struct Manifests {
    policy: Policy,
    assume: Assumptions,
    index: Index,
    inputs: Vec<Input>,
    found: Found,
    unreadable: usize,
}

/// What is kept of the manifests: pods, nodes and node policies, and later the NADs that the pods select.
#[derive(Default)]
struct Found {
    workloads: Vec<WorkloadManifest>,
    nodes: Vec<ClusterNode>,
    policies: Vec<NodePolicy>,
    nads: Vec<NadManifest>,
    problems: Vec<String>,
}

/// A pod, or something that makes pods.
struct WorkloadManifest {
    kind: WorkloadKind,
    namespace: String,
    name: String,
    json: String,
    place: SourcePlace,
}

/// A NAD, or a network that renders one.
struct NadManifest {
    key: ObjectKey,
    is_network: bool,
    json: String,
    place: SourcePlace,
}

impl Manifests {
    /// Reads everything but the NADs.
    pub(super) fn read(options: &ExplainOptions, paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut config = options.repository.config()?;
        let configured = RepositoryArgs::policy(config.as_ref());
        let policy = options.policy.or(configured.as_deref()).read()?;
        let exclude = options.repository.excluded(config.as_mut())?;
        let given = inputs(paths, &exclude);
        let assume = options.assumptions.assumptions(config.as_ref());
        let mut progress = Progress::new("reading", given.inputs.len(), 500);
        let index = index(&given.inputs, &mut progress);
        progress.clear();
        let found = visit_all(&given.inputs, &|manifest, place, found| found.add(manifest, place));
        let problems: Vec<String> =
            given.errors.iter().map(ToString::to_string).chain(found.problems.clone()).collect();
        problems.iter().for_each(|problem| print_error(format_args!("error: {problem}")));
        Ok(Self { policy, assume, index, inputs: given.inputs, found, unreadable: problems.len() })
    }

    /// How many inputs could not be read.
    pub(super) fn unreadable(&self) -> usize {
        self.unreadable
    }

    /// Explains the pods that select networks, or the one that is named.
    pub(super) fn explain(&self, named: Option<&WorkloadArg>) -> Vec<PodPlan> {
        let is_named =
            |one: &&WorkloadManifest| named.is_none_or(|named| named.is(one.kind, &one.namespace, &one.name));
        let chosen: Vec<&WorkloadManifest> = self.found.workloads.iter().filter(is_named).collect();
        let selected = |one: &&WorkloadManifest| one.read().map(|workload| selected_by(&workload)).unwrap_or_default();
        let wanted: BTreeSet<ObjectKey> = chosen.iter().flat_map(selected).collect();
        let nads = self.nads(&wanted);
        let nodes = self.nodes();
        let explained = chosen.into_iter().filter_map(|one| {
            let workload = one.read();
            // Who explains everything wants to see pods with networks.
            if workload.is_none() && named.is_none() {
                return None;
            }
            Some(PodPlan::of(PodQuestion {
                findings: self.judge(&one.json).map(|verdict| verdict.findings).unwrap_or_default(),
                workload: workload.as_ref(),
                kind: one.kind.name(),
                namespace: one.namespace.clone(),
                name: one.name.clone(),
                place: Some(one.place.clone()),
                injector: self.policy.resource_injector,
                nads: &nads,
                nodes: &nodes,
            }))
        });
        explained.collect()
    }

    /// The plans of the NADs with these keys.
    fn nads(&self, wanted: &BTreeSet<ObjectKey>) -> NadPlans {
        let mut found = visit_all(&self.inputs, &|manifest, place, found| self.add_nad(manifest, place, wanted, found));
        let found = &mut found.nads;
        // A manifest of the NAD itself counts more than the network that renders it.
        found.sort_by(|one, other| (&one.key, one.is_network).cmp(&(&other.key, other.is_network)));
        let absent = || Err("it is not among the manifests".to_owned());
        let mut plans: NadPlans = wanted.iter().map(|key| (key.clone(), absent())).collect();
        let mut first: BTreeMap<&ObjectKey, &NadManifest> = BTreeMap::new();
        for one in found.iter() {
            match first.get(&one.key) {
                None => {
                    plans.insert(one.key.clone(), self.plan(one));
                    first.insert(&one.key, one);
                }
                // The same manifest may be given twice, as an overlay and as its base.
                Some(known) if known.json == one.json || known.is_network != one.is_network => {}
                Some(known) => {
                    let places = [known, one].map(|manifest| in_file(&manifest.place)).join(" and ");
                    plans.insert(one.key.clone(), Err(format!("two manifests of it differ: {places}")));
                }
            }
        }
        plans
    }

    /// Keeps a NAD, or a network that renders it, if a pod selects it.
    fn add_nad(&self, manifest: &Manifest, place: SourcePlace, wanted: &BTreeSet<ObjectKey>, found: &mut Found) {
        let json = manifest.node.to_json();
        let (key, is_network) = match Object::read(&json) {
            Ok(Some(object @ Object::Nad(_))) => (object.nad_key(), false),
            Ok(Some(Object::Network(network))) if self.may_render(&network) => {
                (Object::Network(network).nad_key(), true)
            }
            _ => return,
        };
        if wanted.contains(&key) {
            found.nads.push(NadManifest { key, is_network, json, place });
        }
    }

    /// Whether the operator may render a network: it ignores those of other namespaces that have a foreign target.
    fn may_render(&self, network: &Network<'_>) -> bool {
        let facts = Facts { operator_namespace: self.assume.operator_namespace.clone(), ..Facts::default() };
        self.policy.may_render(&NetworkFact::of(network), &network.target_namespace(), &facts)
    }

    fn plan(&self, manifest: &NadManifest) -> Read<Option<NadPlan>> {
        let unreadable = || "it cannot be read".to_owned();
        let verdict = self.judge(&manifest.json).ok_or_else(unreadable)?;
        let (json, index, policy) = (&manifest.json, &self.index, &self.policy);
        let plan = match Object::read(json) {
            Ok(Some(Object::Network(network))) => {
                Some(NadPlan::rendered(&network, &self.assume.prefix, verdict.findings, index, policy))
            }
            _ => NadPlan::admitted(json, verdict, index, policy),
        };
        plan.map(|plan| Some(plan.at(manifest.place.clone()))).ok_or_else(unreadable)
    }

    fn judge(&self, json: &str) -> Option<Verdict> {
        let object = Object::read(json).ok().flatten()?;
        let facts = self.index.facts(&object, &self.assume, &self.policy);
        let mut verdict = judge(&Subject::manifest(&object), &facts, &self.policy);
        self.index.locate_related(&mut verdict);
        Some(verdict)
    }

    fn nodes(&self) -> KnownNodes {
        let missing = |what: &str| format!("no {what} is among the manifests");
        let Found { nodes, policies, .. } = &self.found;
        KnownNodes {
            nodes: if nodes.is_empty() { Err(missing("Node")) } else { Ok(nodes.clone().into()) },
            policies: if policies.is_empty() { Err(missing("SriovNetworkNodePolicy")) } else { Ok(policies.clone()) },
            served: self.index.served_by_classes(),
            prefix: Some(&self.assume.prefix).filter(|prefix| !prefix.assumed).map(|prefix| prefix.value.clone()),
            is_cluster: false,
        }
    }
}

impl WorkloadManifest {
    /// The object, if it selects networks.
    fn read(&self) -> Option<Workload<'_>> {
        match Object::read(&self.json) {
            Ok(Some(Object::Workload(workload))) => Some(workload),
            _ => None,
        }
    }
}

/// Visits every manifest of all inputs.
fn visit_all(inputs: &[Input], visit: &(dyn Fn(&Manifest, SourcePlace, &mut Found) + Sync)) -> Found {
    let mut all = Found::default();
    for batch in inputs.chunks(BATCH) {
        in_parallel(batch, |input| visit_one(input, visit)).into_iter().for_each(|part| all.merge(part));
    }
    all
}

fn visit_one(input: &Input, visit: &dyn Fn(&Manifest, SourcePlace, &mut Found)) -> Found {
    let mut found = Found::default();
    let text = match input.text() {
        Ok(text) => text,
        Err(error) => return Found { problems: vec![error.to_string()], ..found },
    };
    let name = input.name();
    let lines = LineIndex::of(&text);
    input.documents(&lines, &mut |document| match document {
        InputDocument::Manifest(manifest) => {
            let place = SourcePlace { file: name.as_ref().into(), line: manifest.line, column: 1 };
            // A panic on one manifest must not hide the others.
            if let Err(panicked) = contained(|| visit(&manifest, place, &mut found)) {
                let line = manifest.line;
                found.problems.push(format!("{name}: line {line}: cannot read it: nadmit {panicked}"));
            }
        }
        InputDocument::Unreadable { line, problem } => found.problems.push(format!("{name}: line {line}: {problem}")),
        InputDocument::WithoutKind | InputDocument::HelmTemplate => {}
    });
    found
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.workloads.extend(other.workloads);
        self.nodes.extend(other.nodes);
        self.policies.extend(other.policies);
        self.nads.extend(other.nads);
        self.problems.extend(other.problems);
    }

    /// Keeps a pod, a node or a node policy.
    fn add(&mut self, manifest: &Manifest, place: SourcePlace) {
        let (api_version, kind) = (manifest.text("apiVersion"), manifest.text("kind"));
        let json = || manifest.node.to_json();
        if let Some(kind) = WorkloadKind::of(api_version, kind) {
            let text = |pointer: &str| manifest.node.follow(pointer).0.as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            self.workloads.push(WorkloadManifest { kind, namespace, name, json: json(), place });
        } else if api_version == "v1" && kind == "Node" {
            self.nodes.extend(serde_json::from_str(&json()).ok().map(|node| ClusterNode::of(&node)));
        } else if api_version.starts_with(NETWORK_GROUP) && kind == "SriovNetworkNodePolicy" {
            self.policies.extend(serde_json::from_str(&json()).ok().map(|policy| NodePolicy::of(&policy)));
        }
    }
}
