//! The chain from a network to the device of a pod, link by link, and where it breaks.
//!
//! ```text
//!  network ─► rendering ─► namespace ─► operator ─► NAD ─► resourceName ─► node policy ─► pods
//! ```
//!
//! The findings of the audit on the network, and those of admission on its NAD, are attached to the link they concern. What is broken
//! by time (a NAD that is missing or stale) is judged by the audit's own rules, so that both say the same.

mod links;
mod names;
mod nodes;
mod releases;
mod snapshot;
#[cfg(test)]
mod tests;

use super::context::{AuditContext, NetworkContext};
use super::stored_object::{ObjectMeta, StoredObject};
use crate::cni::releases::Versions;
use crate::policy::rules::audit::NAD_DRIFT;
use crate::policy::{Action, Finding, Lookup, NetworkFact, Policy, Verdict, served_resource};
use crate::resources::{Network, NetworkId, Object, Rendered, render};
use jiff::Timestamp;

pub(in crate::audit) use names::FirstNames;
pub use nodes::{ClusterNode, NodePolicy};
pub use releases::InstalledProgram;
use snapshot::OnlyNetwork;
pub use snapshot::{NetworkSnapshot, NodeState, OperatorDeployment, Read};

/// The health of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkHealth {
    /// Healthy.
    Good,
    /// Unknown: it may not be read.
    Unknown,
    /// Waiting: a controller still has time to act.
    Waiting,
    /// Broken.
    Broken,
}

impl LinkHealth {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Unknown => "unknown",
            Self::Waiting => "waiting",
            Self::Broken => "broken",
        }
    }
}

/// Which link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The network itself.
    Network,
    /// The rendered NAD.
    Rendering,
    /// The target namespace.
    Namespace,
    /// The operator.
    Operator,
    /// The NAD.
    Nad,
    /// The releases of the programs that read the NAD.
    Releases,
    /// The resourceName in the NAD.
    ResourceName,
    /// The node policies.
    NodePolicy,
    /// The devices for pods.
    Pods,
}

impl Link {
    /// The title for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Rendering => "rendering",
            Self::Namespace => "namespace",
            Self::Operator => "operator",
            Self::Nad => "NAD",
            Self::Releases => "releases",
            Self::ResourceName => "resourceName",
            Self::NodePolicy => "node policy",
            Self::Pods => "pods",
        }
    }
}

/// A link and its health.
#[derive(Clone, Debug)]
pub struct ChainStep {
    /// Which.
    pub link: Link,
    /// How it is.
    pub state: LinkHealth,
    /// The description.
    pub says: String,
    /// How to fix it, if no finding says so.
    pub help: Option<String>,
    /// The findings of admission.
    pub findings: Vec<Finding>,
}

/// The chain of one network.
#[derive(Clone, Debug)]
pub struct NetworkChain {
    /// Which network.
    pub id: NetworkId,
    /// The links, in their order.
    pub steps: Vec<ChainStep>,
}

impl NetworkChain {
    /// Evaluates the chain of a network. Controllers have the policy's grace period to act.
    pub fn follow(id: &NetworkId, snapshot: &NetworkSnapshot, policy: &Policy, now: Timestamp) -> Self {
        let text = snapshot.network.as_deref();
        let steps = match text.map(Object::read) {
            Some(Ok(Some(Object::Network(network)))) => {
                let stored = text.and_then(StoredObject::of);
                let context =
                    ChainContext::new(network, &stored.unwrap_or_default().object_meta, snapshot, policy, now);
                links::steps(&context)
            }
            _ => return Self::missing(id),
        };
        Self { id: id.clone(), steps }
    }

    /// The chain of a network that does not exist.
    pub fn missing(id: &NetworkId) -> Self {
        let step = ChainStep {
            link: Link::Network,
            state: LinkHealth::Broken,
            says: format!("{id} does not exist"),
            help: Some("create it, or give another one: KIND/NAMESPACE/NAME".to_owned()),
            findings: Vec::new(),
        };
        Self { id: id.clone(), steps: vec![step] }
    }

    /// The overall health. Unknown links that do not matter are ignored: with a complete NAD, the operator need not be readable.
    pub fn state(&self) -> LinkHealth {
        let counts = |step: &&ChainStep| {
            step.state != LinkHealth::Unknown || matches!(step.link, Link::Network | Link::Nad | Link::ResourceName)
        };
        self.steps.iter().filter(counts).map(|step| step.state).max().unwrap_or(LinkHealth::Unknown)
    }

    /// One of its links.
    pub fn step(&self, link: Link) -> Option<&ChainStep> {
        self.steps.iter().find(|step| step.link == link)
    }
}

/// A network with its derived facts.
struct ChainContext<'s> {
    network: Network<'s>,
    snapshot: &'s NetworkSnapshot,
    rendered: Rendered,
    /// Findings on the network, and on the NAD.
    of_network: Vec<Finding>,
    of_nad: Vec<Finding>,
    /// Whether controllers are still within the grace period.
    is_fresh: bool,
    /// How the NAD differs from what the network renders, as the audit says it now or after the grace period.
    drift: Option<String>,
    /// The error in the operator's conditions.
    condition: Option<String>,
    /// The expected annotation of the NAD, if known.
    resource: Option<String>,
    /// The extended resource of the network that a DeviceClass serves.
    served: Option<String>,
    /// The releases that the policy names.
    versions: &'s Versions,
}

impl<'s> ChainContext<'s> {
    fn new(
        network: Network<'s>,
        meta: &ObjectMeta,
        snapshot: &'s NetworkSnapshot,
        policy: &'s Policy,
        now: Timestamp,
    ) -> Self {
        let known = policy.resource_name.prefix.clone().or_else(|| snapshot.prefix.as_ref().map(|p| p.value.clone()));
        let rendered = render(&network, known.as_deref().unwrap_or("openshift.io"));
        let nad_text = snapshot.nad.as_ref().ok().and_then(Option::as_deref);
        let nad = nad_text.and_then(StoredObject::of);
        let context = snapshot.audit_context(nad.as_ref(), now);
        let of = NetworkContext {
            nad: match (&snapshot.nad, &nad) {
                (_, Some(nad)) => Lookup::Found(nad),
                (Ok(None), None) => Lookup::Absent,
                (Ok(Some(_)) | Err(_), None) => Lookup::Unknown,
            },
            waiting: 1,
            ..NetworkContext::default()
        };
        let is_fresh = context.unchanged_for(meta, &of.nad) < policy.audit.grace();
        let object = Object::Network(network.clone());
        let audited = context.network((&object, &network, meta), of.clone(), snapshot, policy);
        // What the audit will find if nobody acts.
        let later = AuditContext { now: now.checked_add(policy.audit.grace()).unwrap_or(now), ..context.clone() };
        let later = later.network((&object, &network, meta), of, snapshot, policy);
        let drift = later.findings.into_iter().find(|finding| finding.rule == &NAD_DRIFT).map(|drift| drift.message);
        let of_network = reportable(audited);
        let fact = NetworkFact::of(&network);
        let certain = policy.resource_name.prefix.as_deref();
        let certain =
            certain.or(snapshot.prefix.as_ref().filter(|prefix| !prefix.assumed).map(|prefix| &*prefix.value));
        let served = snapshot.device_claims.served();
        let served = served_resource(&served, &fact.resource_name, certain).map(str::to_owned);
        let resource = known.map(|prefix| format!("{prefix}/{}", fact.resource_name));
        let of_nad = match nad_text.map(Object::read) {
            Some(Ok(Some(object))) => {
                let verdict = context.at_admission(&object, &OnlyNetwork(fact, &snapshot.device_claims), policy);
                let mut findings = reportable(verdict);
                // A problem of the network also shows up in the NAD; report it once.
                let is_same =
                    |one: &Finding, other: &Finding| one.rule == other.rule && one.sentence() == other.sentence();
                findings.retain(|one| !of_network.iter().any(|other| is_same(one, other)));
                // Older operators do not set the owner-ref, but last-network-namespace.
                findings.retain(|one| !network.is_rendered_to_target() || one.rule.id != "nad/operator-overwrites");
                findings
            }
            _ => Vec::new(),
        };
        let condition = meta.condition.clone();
        let versions = &policy.versions;
        Self { network, snapshot, rendered, of_network, of_nad, is_fresh, drift, condition, resource, served, versions }
    }

    /// Namespace and name of the NAD: `apps/net`.
    fn place(&self) -> String {
        format!("{}/{}", self.network.target_namespace(), self.network.meta.name)
    }
}

/// The findings that are reported.
fn reportable(verdict: Verdict) -> Vec<Finding> {
    verdict.findings.into_iter().filter(|finding| finding.action > Action::Audit).collect()
}

/// Whether the finding breaks the object.
fn is_breaking(finding: &Finding) -> bool {
    finding.would.unwrap_or(finding.action) >= Action::Patch
}
