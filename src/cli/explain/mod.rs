//! `nadmit explain`.

mod files;
mod json;
mod page;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::color::ColorArgs;
use super::connection::{Connection, block_on};
use super::doctor::namespace_of;
use super::output_args::{OutputParser, OutputTarget, no_repeated_target};
use super::outputs::{write_parts, write_whole};
use super::policy_args::PolicyArgs;
use super::repository_args::{AssumptionArgs, RepositoryArgs};
use super::{EXIT_CLEAN, EXIT_DENIED, EXIT_UNUSABLE};
use crate::audit::chain::LinkHealth;
use crate::audit::explain::PodPlan;
use crate::resources::{ObjectKey, WorkloadKind};
use files::Manifests;

/// Show what each interface of a pod will be, and where the pod can run
///
/// For each interface: the NAD, and by which rule it is found; the plugins; the device, and from which resource; VLAN, MAC
/// address and MTU; where its addresses come from; routes and DNS. For the pod: which nodes can run it, and why the others
/// cannot. What is not known is shown as unknown.
///
/// With PATH it explains every Pod, and whatever makes pods, in manifests, without a cluster: NADs, networks, node policies and
/// Nodes are those that are given. With `pod` it explains a pod of a cluster, or one of the manifests.
///
/// Exit code 0: nothing is known that would keep a pod from starting. 1: something is. 2: wrong arguments, or an input or a
/// cluster that cannot be read.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Explain {
    #[command(subcommand)]
    subject: Option<ExplainSubject>,
    /// Files and directories with manifests; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    options: ExplainOptions,
}

/// The options for every subject.
#[derive(Debug, Args)]
struct ExplainOptions {
    /// The output format, and the file that it is written to instead of standard output; may be repeated with other files
    #[arg(long, short, value_parser = OutputParser::<ExplainFormat>::new(), default_value = "human", value_name = "FORMAT[=FILE]")]
    output: Vec<OutputTarget<ExplainFormat>>,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    assumptions: AssumptionArgs,
    #[command(flatten)]
    colours: ColorArgs,
}

#[derive(Debug, Subcommand)]
enum ExplainSubject {
    Pod(Box<ExplainPod>),
}

/// Explain one pod: of a cluster, or with --filename of manifests
///
/// What you may not read in the cluster is unknown, with the missing permission named.
///
/// Exit code 0: nothing is known that would keep the pod from starting. 1: something is. 2: wrong arguments, there is no such
/// pod, or an input or the cluster cannot be read.
#[derive(Debug, Args)]
struct ExplainPod {
    /// The pod; in manifests also what makes pods, as KIND/NAMESPACE/NAME
    #[arg(required_unless_present = "filename", value_name = "[[KIND/]NAMESPACE/]NAME")]
    pod: Option<WorkloadArg>,
    /// The namespace of the pod [default: that of the context; in manifests any]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Read manifests and no cluster: a file or directory, or - for standard input; may be repeated
    #[arg(long, short, value_name = "PATH")]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    options: ExplainOptions,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// A block of lines for each interface
    Human,
    /// One JSON document
    Json,
    /// A self-contained HTML page
    Html,
}

/// A pod, or what makes pods, as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WorkloadArg {
    kind: Option<WorkloadKind>,
    namespace: Option<String>,
    name: String,
}

impl std::str::FromStr for WorkloadArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME".to_owned();
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        let (kind, namespace, name) = match parts.as_slice() {
            [name] => (None, None, *name),
            [namespace, name] => (None, Some(*namespace), *name),
            [kind, namespace, name] => (Some(kind_of(kind)?), Some(*namespace), *name),
            _ => return Err(wrong()),
        };
        Ok(Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

/// A kind as people write it: `StatefulSet`, `statefulset`, `statefulsets`.
fn kind_of(text: &str) -> Result<WorkloadKind, String> {
    let text = text.to_lowercase();
    let is_it = |kind: &WorkloadKind| {
        let name = kind.name().to_lowercase();
        text == name || text.strip_suffix('s') == Some(name.as_str())
    };
    let kinds = || WorkloadKind::ALL.into_iter().map(|(kind, _)| kind);
    let names = || kinds().map(WorkloadKind::name).collect::<Vec<_>>().join(", ");
    kinds().find(is_it).ok_or_else(|| format!("unknown kind `{text}`: use one of {}", names()))
}

impl WorkloadArg {
    /// Whether it names that object.
    fn is(&self, kind: WorkloadKind, namespace: &str, name: &str) -> bool {
        self.name == name
            && self.kind.is_none_or(|wanted| wanted == kind)
            && self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        match self.subject {
            Some(ExplainSubject::Pod(pod)) => pod.run(),
            None => self.options.of_manifests(&self.paths, None),
        }
    }
}

impl ExplainPod {
    fn run(self) -> anyhow::Result<u8> {
        let option = self.namespace.as_deref().filter(|name| !name.is_empty());
        let written = self.pod.as_ref().and_then(|pod| pod.namespace.as_deref());
        let namespace = namespace_of(written, option)?.map(str::to_owned);
        if !self.filename.is_empty() {
            if self.pod.is_none() && namespace.is_some() {
                bail!("--namespace needs the name of a pod");
            }
            let pod = self.pod.map(|pod| WorkloadArg { namespace, ..pod });
            return self.options.of_manifests(&self.filename, pod.as_ref());
        }
        let Some(pod) = self.pod else { bail!("name a pod, or pass --filename") };
        if let Some(kind) = pod.kind.filter(|kind| *kind != WorkloadKind::Pod) {
            bail!("a {} is explained in manifests only: pass --filename, or name one of its pods", kind.name());
        }
        self.options.check()?;
        let policy = self.options.policy.read()?;
        let plan = block_on(async {
            let cluster = self.connection.connect().await?;
            let key = ObjectKey::new(namespace.as_deref().unwrap_or_else(|| cluster.default_namespace()), &pod.name);
            let snapshot = cluster.explain_snapshot(&key, &policy).await?;
            let mut snapshot = snapshot.with_context(|| format!("pod {key} does not exist"))?;
            if let Some(prefix) = self.options.assumptions.prefix() {
                snapshot.nodes.prefix = Some(prefix.to_owned());
            }
            Ok(PodPlan::of_cluster(&snapshot, &policy, jiff::Timestamp::now()))
        })?;
        self.options.show(&[plan])
    }
}

impl ExplainOptions {
    /// Rejects invalid combinations.
    fn check(&self) -> anyhow::Result<()> {
        no_repeated_target(&self.output)
    }

    fn of_manifests(&self, paths: &[PathBuf], named: Option<&WorkloadArg>) -> anyhow::Result<u8> {
        self.check()?;
        let manifests = Manifests::read(self, paths)?;
        let plans = manifests.explain(named);
        if let (true, Some(named)) = (plans.is_empty(), named) {
            let namespace = named.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            bail!("{namespace}{} is not among the manifests, as a pod or something that makes pods", named.name);
        }
        let code = self.show(&plans)?;
        Ok(if manifests.unreadable() > 0 { EXIT_UNUSABLE } else { code })
    }

    fn show(&self, plans: &[PodPlan]) -> anyhow::Result<u8> {
        for target in &self.output {
            let file: Option<&Path> = target.file.as_deref();
            let is_coloured = if file.is_some() { self.colours.is_on_in_files() } else { self.colours.is_on() };
            match target.format {
                ExplainFormat::Human => write_parts(file, text::parts(plans, is_coloured))?,
                ExplainFormat::Json => write_parts(file, json::parts(plans))?,
                ExplainFormat::Html => write_whole(file, &page::render(plans))?,
            }
        }
        let is_broken = plans.iter().any(|plan| plan.state() == LinkHealth::Broken);
        Ok(if is_broken { EXIT_DENIED } else { EXIT_CLEAN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_has_a_name_and_may_have_more() {
        let arg = |kind, namespace: Option<&str>| {
            Ok(WorkloadArg { kind, namespace: namespace.map(str::to_owned), name: "p".to_owned() })
        };
        for (text, want) in [
            ("p", arg(None, None)),
            ("apps/p", arg(None, Some("apps"))),
            ("StatefulSet/apps/p", arg(Some(WorkloadKind::StatefulSet), Some("apps"))),
            ("cronjobs/apps/p", arg(Some(WorkloadKind::CronJob), Some("apps"))),
        ] {
            assert_eq!(text.parse(), want, "{text}");
        }
        for bad in ["", "/p", "apps/", "x/apps/p", "Pod/a/b/c"] {
            assert!(bad.parse::<WorkloadArg>().is_err(), "{bad}");
        }
    }
}
