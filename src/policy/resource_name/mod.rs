//! Where a NAD's resourceName comes from, and what is wrong with the one it has.

mod device_source;
mod missing;
mod name;

use std::borrow::Cow;

pub(crate) use device_source::DeviceSource;
use name::{domain, is_unqualified};
pub(crate) use name::{is_name, own_name, unusable};

use crate::cni::{Config, Plugin, edit};
use crate::json::escape;
use crate::policy::file::WriteTarget;
use crate::policy::finding::{Findings, Repair};
use crate::policy::rules::dra;
use crate::policy::rules::nad_device::{MALFORMED, MISMATCH, MISSING, ONE_DEVICE, STATIC_DEVICE, named};
use crate::policy::scope::NamespaceScope;
use crate::policy::{Dra, Facts, Finding, Lookup, MissingFact, NetworkFact, Reference};
use crate::resources::{Nad, NetworkKind, OWNER_REF, RESOURCE_NAME};

/// The key in the plugin's config that users look for. Multus does not read it.
const KEY: &str = "resourceName";
/// What a mistake at that key means.
const IGNORED: &str = "Multus uses the annotation and ignores this key";

/// The input of the rules on a NAD's resourceName.
pub(crate) struct ResourceNameCheck<'a> {
    pub(crate) nad: &'a Nad<'a>,
    pub(crate) config: &'a Config<'a>,
    pub(crate) facts: &'a Facts,
    pub(crate) scope: &'a NamespaceScope<'a>,
    /// Whether the operator is the writer.
    pub(crate) operator: bool,
}

/// The value a NAD should have, and its source.
struct ExpectedName<'a> {
    value: Cow<'a, str>,
    source: NameSource,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameSource {
    /// The operator just rendered it from the network.
    Operator,
    /// The network that owns the NAD.
    Owner,
    Annotation,
    Config,
    Namespace,
}

impl NameSource {
    /// Whether the value comes from the network, directly or through the operator.
    fn is_network(self) -> bool {
        matches!(self, Self::Operator | Self::Owner)
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Operator | Self::Annotation => "given by the annotation",
            Self::Owner => "given by the owning network",
            Self::Config => "given by the config",
            Self::Namespace => "given by the policy for this namespace",
        }
    }
}

/// Judges the resourceName of a NAD.
pub(crate) fn check(question: &ResourceNameCheck<'_>, out: &mut Findings<'_>) {
    let ResourceNameCheck { nad, config, scope, .. } = question;
    let annotation = nad.meta.annotation(RESOURCE_NAME);
    let mut devices: Vec<&Plugin<'_>> = config.plugins.iter().filter(|plugin| needs_device(plugin, scope)).collect();
    let source = question.source();
    let all = devices.len();
    if all > 0 && source == DeviceSource::Claim {
        dra::check_claimed(config, out);
    }
    devices.retain(|plugin| !has_fixed_device(plugin, source, out));
    if devices.is_empty() {
        // A plugin with a fixed device needs no name, and a name without a device plugin is mostly harmless.
        if let Some(name) = annotation.as_deref().filter(|name| all == 0 && !question.is_usable(name)) {
            question.malformed_annotation(name, out).at_most_warn();
        }
        return;
    }
    // Nobody may prevent by a claim that the NAD of a network is completed; only the policy may.
    let is_claimed = source == DeviceSource::Claim && !question.belongs_to_network();
    if annotation.is_none() && (is_claimed || scope.dra() == Dra::Allow) {
        return;
    }
    let answer = question.answer(annotation.as_deref(), &devices);
    if let Some(missing) = question.missing_fact(answer.as_ref()) {
        out.request(missing);
    }
    let repaired = question.check_annotation(annotation.as_deref(), answer.as_ref(), &devices, out);
    if !repaired {
        question.check_config(answer.as_ref(), &devices, out);
    }
}

/// Whether a `deviceID` is fixed in the config, which is reported unless the driver of a claim replaces it.
fn has_fixed_device(plugin: &Plugin<'_>, source: DeviceSource, out: &mut Findings<'_>) -> bool {
    let Some(fixed) = plugin.object.get("deviceID") else { return false };
    let Some(device) = fixed.value.as_str().filter(|device| !device.is_empty()) else { return false };
    if source == DeviceSource::Claim {
        return true;
    }
    let help = "remove `deviceID` and name the resource in the annotation k8s.v1.cni.cncf.io/resourceName";
    out.config(&STATIC_DEVICE, fixed.key_span, format!("`deviceID` is fixed to {device}"), ONE_DEVICE, help);
    true
}

fn needs_device(plugin: &Plugin<'_>, scope: &NamespaceScope<'_>) -> bool {
    scope.needs_device(plugin.kind) || plugin.kind_in_text.is_some_and(|kind| scope.needs_device(kind))
}

impl ResourceNameCheck<'_> {
    fn source(&self) -> DeviceSource {
        DeviceSource::of(self.facts, self.scope)
    }

    /// Whether a device plugin can offer, or the driver of claims publishes, devices under that resourceName, which the NAD has.
    fn is_usable(&self, name: &str) -> bool {
        unusable(name).is_none() || DeviceSource::accepts_any_name(name, self.facts, self.scope)
    }

    /// Published names that differ from that of the NAD only before the slash; without a name, some of all. As far as they may be named.
    fn published(&self, out: &mut Findings<'_>) -> &[String] {
        let names = &self.facts.claims.published;
        let is_none = names.is_empty() || self.scope.dra() == Dra::Deny;
        let may_name = !is_none && out.may_name(Reference::DeviceAttributes, &self.nad.meta.namespace, self.facts);
        if may_name { names } else { &[] }
    }

    fn malformed_annotation<'o>(&self, name: &str, out: &'o mut Findings<'_>) -> &'o mut Finding {
        let pointer = format!("/metadata/annotations/{}", escape(RESOURCE_NAME));
        let problem = unusable(name).unwrap_or_default();
        let help = match self.published(out) {
            [] => "write <domain>/<name> exactly as the node offers it: `kubectl get node -o yaml` shows it under status.allocatable"
                .to_owned(),
            names => format!("write {}, which the SR-IOV DRA driver publishes", names.join(" or ")),
        };
        out.object(
            &MALFORMED,
            pointer,
            format!("annotation resourceName is {name:?}, which {problem}"),
            "no pod ever gets a device under that name",
            help,
        )
    }

    /// The network that renders this NAD: the one it names, or the only one there is. A network that renders elsewhere may be
    /// named, but is ignored here.
    fn owner(&self) -> Option<&NetworkFact> {
        let meta = &self.nad.meta;
        let renders_this = |network: &&NetworkFact| self.is_rendered_by(network);
        match (&self.facts.named_owner, self.facts.networks_here.as_slice()) {
            (Lookup::Found(network), _) => Some(network).filter(renders_this),
            // If two networks render this NAD, its owner is not known.
            (_, [only]) if meta.owner().is_none() => Some(only).filter(renders_this),
            _ => None,
        }
    }

    /// Whether the operator renders this NAD from that network.
    fn is_rendered_by(&self, network: &NetworkFact) -> bool {
        let meta = &self.nad.meta;
        network.renders(&meta.namespace, &meta.name)
            && self.scope.policy.may_render(network, &meta.namespace, self.facts)
    }

    /// The owning network, if only the prefix of its resource name is not known.
    fn lacks_prefix(&self) -> Option<&NetworkFact> {
        let is_stated = self.facts.operators.known().iter().any(|operator| operator.prefix.is_some());
        if is_stated || self.scope.prefix(self.facts).is_some() {
            return None;
        }
        let claimants = self.facts.claimants.iter().flatten();
        let known = self.owner().into_iter().chain(claimants);
        known.filter(|network| self.is_rendered_by(network)).find(|network| is_name(&network.resource_name))
    }

    /// The network that would override that value, if it has not been read yet.
    fn missing_fact(&self, answer: Option<&ExpectedName<'_>>) -> Option<MissingFact> {
        if answer.is_some_and(|answer| answer.source.is_network()) {
            return None;
        }
        let owner = self.nad.meta.owner();
        let is_unknown = match owner {
            Some(_) => self.facts.named_owner == Lookup::Unknown,
            // A name that was written by hand is accepted.
            None => answer.is_none() && !self.facts.knows_networks,
        };
        is_unknown.then(|| MissingFact::Owner {
            named: owner.cloned(),
            kinds: self.kinds(),
            is_required: answer.is_none(),
        })
    }

    /// The kinds of network that use one of the plugins; all of them if none does, as a customized template may use another.
    fn kinds(&self) -> Vec<NetworkKind> {
        let calls = |kind: &NetworkKind| self.config.plugins.iter().any(|plugin| plugin.kind == kind.plugin());
        let kinds: Vec<_> = NetworkKind::ALL.into_iter().filter(calls).collect();
        if kinds.is_empty() { NetworkKind::ALL.to_vec() } else { kinds }
    }

    fn belongs_to_network(&self) -> bool {
        self.operator
            || self.owner().is_some()
            || self.nad.meta.owner().is_some()
            || self.nad.meta.annotation(OWNER_REF).is_some_and(|text| !text.is_empty())
    }

    /// The first source that has a value.
    fn answer<'q>(&'q self, annotation: Option<&'q str>, devices: &[&'q Plugin<'q>]) -> Option<ExpectedName<'q>> {
        let usable = annotation.filter(|name| self.is_usable(name) || is_unqualified(name));
        if let (true, Some(value)) = (self.operator, usable) {
            return Some(ExpectedName { value: value.into(), source: NameSource::Operator });
        }
        let in_config =
            devices.iter().find_map(|plugin| plugin.object.str_of(KEY)).filter(|name| unusable(name).is_none());
        if let Some(value) = self.owner_value(|| annotation.and_then(domain).or_else(|| in_config.and_then(domain))) {
            return Some(ExpectedName { value: value.into(), source: NameSource::Owner });
        }
        let rest = [
            (usable, NameSource::Annotation),
            (in_config, NameSource::Config),
            (self.scope.default_resource_name(), NameSource::Namespace),
        ];
        rest.into_iter().find_map(|(value, source)| Some(ExpectedName { value: value?.into(), source }))
    }

    /// `<prefix>/<spec.resourceName>` of the owner. A domain that the object has already is kept.
    fn owner_value<'n>(&self, present: impl FnOnce() -> Option<&'n str>) -> Option<String> {
        let owner = self.owner()?;
        let prefix = self.scope.prefix(self.facts).map(|prefix| prefix.value);
        let value = [present().or(prefix)?, "/", &owner.resource_name].concat();
        unusable(&value).is_none().then_some(value)
    }

    /// The repairs that set annotation and config to that value, as far as the policy allows.
    fn repairs(&self, value: &str, devices: &[&Plugin<'_>]) -> Vec<Repair> {
        let mut repairs = Vec::with_capacity(1 + devices.len());
        repairs.push(Repair::Annotate(RESOURCE_NAME, value.to_owned()));
        let write = self.scope.policy.resource_name.write;
        for plugin in devices {
            if write != WriteTarget::Annotation {
                repairs.extend(self.write_config(plugin, value));
            }
        }
        repairs
    }

    fn write_config(&self, plugin: &Plugin<'_>, value: &str) -> Option<Repair> {
        // A key with the same name under another domain is left unchanged.
        let is_left = |name: &str| name == value || (unusable(name).is_none() && own_name(name) == own_name(value));
        if plugin.object.str_of(KEY).is_some_and(is_left) {
            return None;
        }
        edit::set_string(self.config.document, plugin.written, KEY, value, plugin.type_member).map(Repair::Config)
    }

    /// Checks the annotation; true if it will be repaired, and the config with it.
    fn check_annotation(
        &self,
        annotation: Option<&str>,
        answer: Option<&ExpectedName<'_>>,
        devices: &[&Plugin<'_>],
        out: &mut Findings<'_>,
    ) -> bool {
        let Some(name) = annotation else {
            self.missing(answer, devices, out);
            return true;
        };
        let from_network = answer.filter(|answer| answer.source == NameSource::Owner);
        if !self.is_usable(name) {
            let finding = self.malformed_annotation(name, out);
            if let Some(answer) = from_network {
                finding.with_repairs(self.repairs(&answer.value, devices));
                finding.help = format!("it becomes {}, as {}", answer.value, answer.source.phrase());
                return true;
            }
            if is_unqualified(name) || self.source() == DeviceSource::Claim {
                finding.at_most_warn();
            }
            return false;
        }
        if self.source() == DeviceSource::ByResourceName {
            let names = self.published(out);
            dra::check_name(name, &self.facts.claims, names, out);
        }
        let Some(answer) = from_network else { return false };
        let pointer = || format!("/metadata/annotations/{}", escape(RESOURCE_NAME));
        if own_name(name) != own_name(&answer.value) {
            let owner = self.owner().map_or_else(String::new, |owner| {
                format!("{} has ", named(&owner.id, &self.nad.meta.namespace, self.facts, out))
            });
            let own = own_name(&answer.value);
            let headline = format!("annotation resourceName is {name}, but {owner}{own}");
            let note = "pods would be given another network's device";
            let help = format!("nadmit sets it to {}; change the network to change it", answer.value);
            out.object(&MISMATCH, pointer(), headline, note, help).with_repairs(self.repairs(&answer.value, devices));
            return true;
        }
        let expected = self.scope.prefix(self.facts).filter(|prefix| !prefix.assumed);
        if let (Some(expected), Some(found)) = (expected, domain(name))
            && expected.value != found
            && !self.facts.served_by_classes.iter().any(|served| served == name)
            && self.facts.claims.is_published != Some(true)
        {
            let headline =
                format!("annotation resourceName is {name}, but the operator's prefix is {}", expected.value);
            let note = "pods get a device only if nodes offer the resource under this name";
            let help = "check that nodes offer the resource under this name; nadmit leaves it unchanged";
            out.object(&MISMATCH, pointer(), headline, note, help).at_most_warn();
        }
        false
    }

    /// Checks the key in the config if the annotation is correct. Multus does not read it, so a mistake there is no reason to
    /// deny the NAD.
    fn check_config(&self, answer: Option<&ExpectedName<'_>>, devices: &[&Plugin<'_>], out: &mut Findings<'_>) {
        let Some(answer) = answer else { return };
        let belongs = self.belongs_to_network();
        let write = self.scope.policy.resource_name.write;
        let is_wanted = write == WriteTarget::Both || (write == WriteTarget::Auto && belongs);
        for plugin in devices {
            let repair = || self.write_config(plugin, &answer.value);
            let Some(member) = plugin.object.get(KEY).filter(|member| !member.value.is_null()) else {
                if is_wanted {
                    let headline = "the plugin config has no `resourceName`";
                    let note = "Multus reads the annotation, but tools that read the config do not find the resource";
                    let help = format!("it becomes {}", answer.value);
                    out.config(&MISSING, plugin.type_member.key_span, headline, note, help)
                        .never_denied()
                        .with_repairs(repair());
                }
                continue;
            };
            let found = member.value.as_str().unwrap_or_else(|| member.value.describe());
            let help = format!("write {}, or leave the key out", answer.value);
            let says = answer.source.phrase();
            let may_write = belongs && write != WriteTarget::Annotation;
            if let Some(problem) = unusable(found) {
                let headline = format!("`resourceName` in the config is {found:?}, which {problem}");
                let finding = out.config(&MALFORMED, member.value.span, headline, IGNORED, help).never_denied();
                finding.with_repairs(repair().filter(|_| may_write));
            } else if own_name(found) != own_name(&answer.value) {
                let headline = format!("`resourceName` in the config is {found}, expected {}", answer.value);
                let note = format!("the expected value is {says}; {IGNORED}");
                let finding = out.config(&MISMATCH, member.value.span, headline, note, help).never_denied();
                finding.with_repairs(repair().filter(|_| may_write && answer.source.is_network()));
            } else if found != answer.value {
                let headline = format!("`resourceName` in the config is {found}, expected {}", answer.value);
                let note = format!("only the domain differs; the expected value is {says}");
                let help = "write the same name in both places; nadmit leaves it unchanged";
                out.config(&MISMATCH, member.value.span, headline, note, help).at_most_warn();
            }
        }
    }
}

#[cfg(test)]
mod tests;
