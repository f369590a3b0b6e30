//! A NAD as pods that select it see it: what it makes of an interface, and what is wrong with it.

use std::collections::BTreeMap;

use super::config::{ChainPlan, ConfigPlan};
use crate::audit::chain::Read;
use crate::policy::{Action, DeviceSource, Dra, FactLookup, Facts, Finding, Policy, Prefix, SourcePlace, Verdict};
use crate::resources::{Nad, Network, NetworkId, Object, ObjectKey, RESOURCE_NAME, name_of, render};

/// The annotation of a NAD with a label of the nodes that have its network. network-resources-injector copies it to pods.
const NODE_SELECTOR: &str = "k8s.v1.cni.cncf.io/nodeSelector";

/// Where the device of an interface comes from, as far as the NAD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceNeed {
    /// It needs none.
    None,
    /// From a device plugin.
    Pool,
    /// It is always this one.
    Fixed(String),
    /// From a claim, whose driver adds it.
    Claim,
    /// From a claim or from a device plugin.
    Either,
}

/// Whose text a NAD is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NadOrigin {
    /// As it is stored or written.
    Given,
    /// With what admission adds.
    Admitted,
    /// As the operator renders it.
    Rendered,
}

/// A NAD, read once for all pods that select it.
#[derive(Clone, Debug)]
pub struct NadPlan {
    /// Where its manifest is.
    pub place: Option<SourcePlace>,
    /// The network that it is rendered from.
    pub network: Option<NetworkId>,
    /// The resource in its annotation.
    pub resource: Option<String>,
    /// Whether only what follows the `/` of that resource is certain.
    pub(super) is_prefix_assumed: bool,
    /// The label that its annotation asks of nodes, and its value.
    pub(super) node_label: Option<(String, String)>,
    /// Its config.
    pub config: ConfigPlan,
    /// What admission finds.
    pub findings: Vec<Finding>,
    /// Whose text it is.
    pub origin: NadOrigin,
    pub(super) need: DeviceNeed,
}

/// The NADs that are known; `Ok(None)` stands for one that does not exist, `Err` says why it is not known.
pub type NadPlans = BTreeMap<ObjectKey, Read<Option<NadPlan>>>;

impl NadPlan {
    /// A NAD that is stored; `None` if it cannot be read.
    pub fn stored(json: &str, verdict: Verdict, lookup: &dyn FactLookup, policy: &Policy) -> Option<Self> {
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { return None };
        Some(Self::of(&nad, verdict.findings, lookup, policy))
    }

    /// A NAD as admission would store it.
    pub fn admitted(json: &str, verdict: Verdict, lookup: &dyn FactLookup, policy: &Policy) -> Option<Self> {
        let Some(repaired) = repaired(json, &verdict) else { return Self::stored(json, verdict, lookup, policy) };
        Some(Self { origin: NadOrigin::Admitted, ..Self::stored(&repaired, verdict, lookup, policy)? })
    }

    /// The NAD that the operator renders from a network, with the findings about the network. With a prefix that is only assumed, nothing
    /// depends on the domain of its resource.
    pub fn rendered(
        network: &Network<'_>,
        prefix: &Prefix,
        findings: Vec<Finding>,
        lookup: &dyn FactLookup,
        policy: &Policy,
    ) -> Self {
        let rendered = render(network, &prefix.value);
        let plan = match rendered.nad() {
            Some(nad) => Self::of(&nad, findings, lookup, policy),
            None => Self::of(&Nad { config: Some("".into()), ..Nad::default() }, findings, lookup, policy).unreadable(),
        };
        // What admission would repair is in the network or comes with the write of the operator.
        Self { network: Some(network.id()), origin: NadOrigin::Rendered, is_prefix_assumed: prefix.assumed, ..plan }
    }

    /// The same, with the place of its manifest.
    pub fn at(self, place: SourcePlace) -> Self {
        Self { place: Some(place), ..self }
    }

    fn unreadable(self) -> Self {
        Self { config: ConfigPlan::Unreadable, ..self }
    }

    fn of(nad: &Nad<'_>, findings: Vec<Finding>, lookup: &dyn FactLookup, policy: &Policy) -> Self {
        let scope = policy.scope(&nad.meta.namespace);
        let config = ConfigPlan::of(nad.config.as_deref(), &|kind| scope.needs_device(kind));
        let resource = nad.meta.annotation(RESOURCE_NAME).map(|name| name.into_owned());
        let claims = lookup.claims(&nad.meta.key(), resource.as_deref());
        let source = DeviceSource::of(&Facts { claims, ..Facts::default() }, &scope);
        let is_allowed = scope.dra() == Dra::Allow;
        Self {
            place: None,
            network: nad.meta.owner().cloned(),
            need: need(config.chain(), resource.is_some(), source, is_allowed),
            resource,
            is_prefix_assumed: false,
            node_label: nad.meta.annotation(NODE_SELECTOR).and_then(|text| node_label(&text)),
            config,
            findings: findings.into_iter().filter(|finding| finding.action > Action::Off).collect(),
            origin: NadOrigin::Given,
        }
    }

    /// Whether a plugin needs a device.
    pub(super) fn needs_device(&self) -> bool {
        !matches!(self.need, DeviceNeed::None | DeviceNeed::Fixed(_))
    }

    /// The device that the config names itself.
    pub(super) fn fixed_device(&self) -> Option<&str> {
        self.config.chain()?.fixed_device.as_deref()
    }

    /// Whether a finding says that pods cannot use it: what admission denies, and what it would have to repair first. A missing
    /// resourceName in the config does not matter to pods while the annotation names it.
    pub(super) fn is_broken(&self) -> bool {
        let is_breaking = |finding: &Finding| match finding.would.unwrap_or(finding.action) {
            Action::Deny => true,
            Action::Patch => self.origin == NadOrigin::Given && !finding.rule.id.starts_with("nad/resource-name-m"),
            Action::Warn | Action::Audit | Action::Off => false,
        };
        self.findings.iter().any(is_breaking)
    }
}

/// The label in that annotation, as network-resources-injector reads it: one `key=value`, or only a key.
fn node_label(text: &str) -> Option<(String, String)> {
    let mut parts = text.split('=').map(|part| name_of(part.trim()).to_owned());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(key), value, None) if !key.is_empty() => Some((key, value.unwrap_or_default())),
        _ => None,
    }
}

/// The object with the repair of its verdict; `None` if there is none.
fn repaired(json: &str, verdict: &Verdict) -> Option<String> {
    if verdict.patch.is_empty() {
        return None;
    }
    let mut object: serde_json::Value = serde_json::from_str(json).ok()?;
    json_patch::patch(&mut object, &verdict.patch).ok()?;
    Some(object.to_string())
}

fn need(chain: Option<&ChainPlan>, is_named: bool, source: DeviceSource, is_allowed: bool) -> DeviceNeed {
    let Some(chain) = chain else { return DeviceNeed::None };
    match (&chain.fixed_device, source) {
        (Some(device), _) if !chain.needs_device => DeviceNeed::Fixed(device.clone()),
        (None, _) if !chain.needs_device => DeviceNeed::None,
        (_, DeviceSource::Claim) => DeviceNeed::Claim,
        // A device of the resource would replace it.
        (Some(device), _) if !is_named => DeviceNeed::Fixed(device.clone()),
        (_, source) if !is_named && (is_allowed || source == DeviceSource::Either) => DeviceNeed::Either,
        _ => DeviceNeed::Pool,
    }
}
