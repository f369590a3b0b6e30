//! The chain from a network to the device that a pod gets, link by link, and where it breaks.
//!
//! ```text
//!  network ─► rendering ─► namespace ─► operator ─► NAD ─► resourceName ─► node policy ─► pods
//! ```
//!
//! What admission would say of the network and of its NAD is said at the link that it concerns, in the same words.

mod links;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::policy::{
    Action, Facts, Finding, Lookup, NadFact, NamespaceState, NetworkFact, Policy, Prefix, Subject, Verdict, judge,
};
use crate::resources::{LAST_NAMESPACE, Network, NetworkId, Object, Rendered, render};

/// What was read; where it may not be read, which right is missing.
pub type Read<T> = Result<T, String>;

/// All that was read of the cluster.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The network as JSON; `None` where it is not there.
    pub network: Option<String>,
    /// The namespace that its NAD goes to.
    pub namespace: Read<Option<NamespaceState>>,
    /// The operator's Deployment.
    pub operator: Read<Option<Operator>>,
    /// The NAD that stands where the network renders to, as JSON.
    pub nad: Read<Option<String>>,
    /// The same in the namespace that the operator last rendered to, where that is another one.
    pub last_nad: Lookup<()>,
    /// All networks that render a NAD there, this one included.
    pub claims: Read<Vec<NetworkFact>>,
    /// The node policies.
    pub policies: Read<Vec<NodePolicy>>,
    /// How far the nodes are with them.
    pub states: Read<Vec<NodeState>>,
    /// What nodes offer.
    pub nodes: Read<Vec<Node>>,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
}

/// The operator's Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub deployment: String,
    /// How many of its pods are available.
    pub available: i64,
}

/// A SriovNetworkNodePolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePolicy {
    /// Its name.
    pub name: String,
    /// `spec.resourceName`
    pub resource_name: String,
}

/// A SriovNetworkNodeState.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The node.
    pub node: String,
    /// `status.syncStatus`
    pub sync: String,
    /// `status.lastSyncError`
    pub error: String,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// How many devices it has under each extended resource.
    pub allocatable: BTreeMap<String, u64>,
}

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Good,
    /// Nobody knows: it may not be read.
    Unknown,
    /// Not yet: somebody has still to do their part, and has the time.
    Waiting,
    /// It breaks here.
    Broken,
}

impl State {
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
    /// The NAD that the operator makes of it.
    Rendering,
    /// Where that goes.
    Namespace,
    /// Who makes it.
    Operator,
    /// The NAD.
    Nad,
    /// The name of the devices in it.
    ResourceName,
    /// Who offers them.
    NodePolicy,
    /// What a pod gets.
    Pods,
}

impl Link {
    /// As people read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Rendering => "rendering",
            Self::Namespace => "namespace",
            Self::Operator => "operator",
            Self::Nad => "NAD",
            Self::ResourceName => "resourceName",
            Self::NodePolicy => "node policy",
            Self::Pods => "pods",
        }
    }
}

/// A link, and how it is.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which.
    pub link: Link,
    /// How it is.
    pub state: State,
    /// What was found.
    pub says: String,
    /// How to mend it, where it must be mended and no finding says so.
    pub help: Option<String>,
    /// What admission says about it.
    pub findings: Vec<Finding>,
}

/// The chain of one network.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Which network.
    pub id: NetworkId,
    /// The links, in their order.
    pub steps: Vec<Step>,
}

impl Chain {
    /// Follows the chain of a network. Others have the policy's grace to do their part.
    pub fn follow(id: &NetworkId, sight: &Sight, policy: &Policy, now: Timestamp) -> Self {
        let text = sight.network.as_deref();
        let steps = match text.map(Object::read) {
            Some(Ok(Some(Object::Network(network)))) => {
                let around = Around::new(network, sight, policy, now);
                links::steps(&around)
            }
            _ => return Self::missing(id),
        };
        Self { id: id.clone(), steps }
    }

    /// The chain of a network that is not there.
    pub fn missing(id: &NetworkId) -> Self {
        let step = Step {
            link: Link::Network,
            state: State::Broken,
            says: format!("{id} is not there"),
            help: Some("create it, or name another: KIND/NAMESPACE/NAME".to_owned()),
            findings: Vec::new(),
        };
        Self { id: id.clone(), steps: vec![step] }
    }

    /// How it is as a whole. What need not be read to be sure does not count: with a complete NAD, the operator need not be seen.
    pub fn state(&self) -> State {
        let counts = |step: &&Step| {
            step.state != State::Unknown || matches!(step.link, Link::Network | Link::Nad | Link::ResourceName)
        };
        self.steps.iter().filter(counts).map(|step| step.state).max().unwrap_or(State::Unknown)
    }

    /// One of its links.
    pub fn step(&self, link: Link) -> Option<&Step> {
        self.steps.iter().find(|step| step.link == link)
    }
}

/// A network, and what is known around it.
struct Around<'s> {
    network: Network<'s>,
    sight: &'s Sight,
    rendered: Rendered,
    /// Findings on the network, and on the NAD.
    of_network: Vec<Finding>,
    of_nad: Vec<Finding>,
    /// Whether others still have time to do their part.
    is_fresh: bool,
    /// What the NAD's annotation should say, as far as that is known.
    resource: Option<String>,
}

impl<'s> Around<'s> {
    fn new(network: Network<'s>, sight: &'s Sight, policy: &Policy, now: Timestamp) -> Self {
        let known = policy.resource_name.prefix.clone().or_else(|| sight.prefix.as_ref().map(|p| p.value.clone()));
        let rendered = render(&network, known.as_deref().unwrap_or("openshift.io"));
        let today = Some(now.to_zoned(jiff::tz::TimeZone::UTC).date());
        let home = sight.operator.as_ref().ok().and_then(Option::as_ref).map(|operator| operator.namespace.clone());
        let nad = sight.nad.as_ref().ok();
        let nad_fact = |text: &Option<String>| match text.as_deref().map(Object::read) {
            None => Lookup::Absent,
            Some(Ok(Some(object))) => Lookup::Found(NadFact { owner: object.meta().owner() }),
            Some(_) => Lookup::Unknown,
        };
        let offered = sight.policies.as_ref().ok().map(|policies| {
            policies.iter().map(|policy| policy.resource_name.clone()).filter(|name| !name.is_empty()).collect()
        });
        let facts = Facts {
            networks_here: sight.claims.clone().unwrap_or_default(),
            nad_here: nad.map_or(Lookup::Unknown, nad_fact),
            last_nad: sight.last_nad.clone(),
            target_namespace: match sight.namespace {
                Ok(Some(state)) => Lookup::Found(state),
                Ok(None) => Lookup::Absent,
                Err(_) => Lookup::Unknown,
            },
            offered,
            prefix: sight.prefix.clone(),
            operator_namespace: home,
            today,
            ..Facts::default()
        };
        let fact = NetworkFact::of(&network);
        let age = since_written(sight.network.as_deref().unwrap_or_default(), now);
        let resource = known.map(|prefix| format!("{prefix}/{}", fact.resource_name));
        let object = Object::Network(network.clone());
        let of_network = said(judge(&Subject::manifest(&object), &facts, policy));
        let of_nad = match nad.and_then(Option::as_deref).map(Object::read) {
            Some(Ok(Some(object))) => {
                let facts = Facts {
                    named_owner: Lookup::Found(fact.clone()),
                    networks_here: vec![fact],
                    knows_networks: true,
                    ..facts
                };
                let mut findings = said(judge(&Subject::manifest(&object), &facts, policy));
                // What is wrong with the network is wrong with the NAD, and is said once.
                findings.retain(|one| !of_network.iter().any(|o| o.rule == one.rule && o.message == one.message));
                // Older operators do not write whose a NAD is, but where they rendered it to.
                findings.retain(|one| !has_rendered(&network) || one.rule.id != "nad/operator-overwrites");
                findings
            }
            _ => Vec::new(),
        };
        let is_fresh = age.is_none_or(|age| age < policy.audit.grace());
        Self { network, sight, rendered, of_network, of_nad, is_fresh, resource }
    }

    /// Where the NAD goes: `apps/net`.
    fn place(&self) -> String {
        format!("{}/{}", self.network.target_namespace(), self.network.meta.name)
    }
}

/// Whether the operator notes that it rendered the network to where it goes now.
fn has_rendered(network: &Network<'_>) -> bool {
    network.meta.annotation(LAST_NAMESPACE).is_some_and(|last| last == network.target_namespace())
}

/// The findings that somebody should hear of.
fn said(verdict: Verdict) -> Vec<Finding> {
    verdict.findings.into_iter().filter(|finding| finding.action > Action::Audit).collect()
}

/// Whether the object does not work with this.
fn is_grave(finding: &Finding) -> bool {
    finding.would.unwrap_or(finding.action) >= Action::Patch
}

/// How long ago an object was last written, statuses aside.
fn since_written(text: &str, now: Timestamp) -> Option<Duration> {
    let object: Value = serde_json::from_str(text).ok()?;
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let of_spec = entries.filter(|entry| entry.get("subresource").is_none()).filter_map(|entry| entry.get("time"));
    let times = of_spec.chain(object.pointer("/metadata/creationTimestamp")).filter_map(Value::as_str);
    let last = times.filter_map(|time| time.parse::<Timestamp>().ok()).max()?;
    // A clock that is ahead of ours.
    Some(Duration::try_from(now.duration_since(last)).unwrap_or_default())
}
