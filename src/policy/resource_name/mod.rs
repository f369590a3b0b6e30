//! Where a NAD's resourceName comes from, and what is wrong with the one it has.

mod name;

use std::borrow::Cow;

use name::{domain, is_unqualified, is_usable, own_name};
pub(crate) use name::{is_name, unusable};

use crate::cni::{Config, Plugin, edit};
use crate::json::escape;
use crate::policy::file::{Scope, Write};
use crate::policy::finding::{Findings, Repair};
use crate::policy::rules::nad_device::{MALFORMED, MISMATCH, MISSING, STATIC_DEVICE, named};
use crate::policy::{Facts, Finding, Lookup, NetworkFact, Wanted};
use crate::resources::{Nad, NetworkKind, OWNER_REF, RESOURCE_NAME};

/// The key in the plugin's config that the operator's users look for. Multus does not read it.
const KEY: &str = "resourceName";

/// What the rules about a NAD's resourceName look at.
pub(crate) struct Question<'a> {
    pub(crate) nad: &'a Nad<'a>,
    pub(crate) config: &'a Config<'a>,
    pub(crate) facts: &'a Facts,
    pub(crate) scope: &'a Scope<'a>,
    /// Whether the operator is the writer.
    pub(crate) operator: bool,
}

/// The value a NAD should have, and whose word that is.
struct Answer<'a> {
    value: Cow<'a, str>,
    source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The operator just rendered it from the network.
    Operator,
    /// The network that owns the NAD.
    Owner,
    Annotation,
    Config,
    Namespace,
}

impl Source {
    /// Whether the network itself speaks, directly or through the operator.
    fn is_network(self) -> bool {
        matches!(self, Self::Operator | Self::Owner)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Operator | Self::Annotation => "the annotation says",
            Self::Owner => "the owning network says",
            Self::Config => "the config says",
            Self::Namespace => "the policy says for this namespace",
        }
    }
}

/// Judges the resourceName of a NAD.
pub(crate) fn check(question: &Question<'_>, out: &mut Findings<'_>) {
    let Question { nad, config, scope, .. } = question;
    let annotation = nad.meta.annotation(RESOURCE_NAME);
    let mut devices: Vec<&Plugin<'_>> = config.plugins.iter().filter(|plugin| needs_device(plugin, scope)).collect();
    let all = devices.len();
    devices.retain(|plugin| !has_fixed_device(plugin, out));
    if devices.is_empty() {
        // What has a fixed device needs no name, and a name on what needs no device does little harm.
        let claims = |name: &str| scope.allows_dra() && is_unqualified(name);
        if let Some(name) = annotation.as_deref().filter(|name| all == 0 && unusable(name).is_some() && !claims(name)) {
            malformed_annotation(name, out).at_most_warn();
        }
        return;
    }
    if annotation.is_none() && scope.allows_dra() {
        return;
    }
    let answer = question.answer(annotation.as_deref(), &devices);
    if let Some(wanted) = question.wanted(answer.as_ref()) {
        out.wants(wanted);
    }
    let repaired = question.check_annotation(annotation.as_deref(), answer.as_ref(), &devices, out);
    if !repaired {
        question.check_config(answer.as_ref(), &devices, out);
    }
}

/// Notes a `deviceID` that is fixed in the config.
fn has_fixed_device(plugin: &Plugin<'_>, out: &mut Findings<'_>) -> bool {
    let Some(fixed) = plugin.object.get("deviceID") else { return false };
    let Some(device) = fixed.value.as_str().filter(|device| !device.is_empty()) else { return false };
    out.config(
        &STATIC_DEVICE,
        fixed.key_span,
        format!("`deviceID` is fixed to {device}: every pod gets this one device, on whatever node it runs"),
        "leave `deviceID` out and name the resource the devices are offered under in the annotation k8s.v1.cni.cncf.io/resourceName",
    );
    true
}

fn needs_device(plugin: &Plugin<'_>, scope: &Scope<'_>) -> bool {
    scope.needs_device(plugin.kind) || plugin.kind_in_text.is_some_and(|kind| scope.needs_device(kind))
}

fn malformed_annotation<'o>(name: &str, out: &'o mut Findings<'_>) -> &'o mut Finding {
    let pointer = format!("/metadata/annotations/{}", escape(RESOURCE_NAME));
    let problem = unusable(name).unwrap_or_default();
    out.object(
        &MALFORMED,
        pointer,
        format!("the annotation k8s.v1.cni.cncf.io/resourceName is \"{name}\", which {problem}; no pod is ever given a device under that name"),
        "write <domain>/<name> exactly as the node offers it: `kubectl get node -o yaml` shows it under status.allocatable",
    )
}

/// What becomes of pods when no device is handed over to a plugin that needs one.
fn hang(kind: &str) -> &'static str {
    match kind {
        "sriov" => "pods that use it hang in ContainerCreating with \"VF pci addr is required\"",
        "ib-sriov" => "pods that use it hang in ContainerCreating for want of a deviceID",
        _ => "pods that use it get no device",
    }
}

impl Question<'_> {
    /// The network that renders this NAD: the one it names, or the only one there is. A network that renders elsewhere may be
    /// named, but has no say here.
    fn owner(&self) -> Option<&NetworkFact> {
        let meta = &self.nad.meta;
        let renders_this = |network: &&NetworkFact| self.is_rendered_by(network);
        match (&self.facts.named_owner, self.facts.networks_here.as_slice()) {
            (Lookup::Found(network), _) => Some(network).filter(renders_this),
            // Two networks that claim one NAD: neither is known to be its owner.
            (_, [only]) if meta.owner().is_none() => Some(only).filter(renders_this),
            _ => None,
        }
    }

    /// Whether the operator renders this NAD from that network.
    fn is_rendered_by(&self, network: &NetworkFact) -> bool {
        let meta = &self.nad.meta;
        network.target_namespace == meta.namespace
            && network.id.name == meta.name
            && self.scope.policy.may_render(network, &meta.namespace, self.facts)
    }

    /// The network that has a name for the devices, where only the domain in front of it is not known.
    fn lacks_prefix(&self) -> Option<&NetworkFact> {
        let is_stated = self.facts.operators.known().iter().any(|operator| operator.prefix.is_some());
        if is_stated || self.scope.prefix(self.facts).is_some() {
            return None;
        }
        let claimants = self.facts.claimants.iter().flatten();
        let known = self.owner().into_iter().chain(claimants);
        known.filter(|network| self.is_rendered_by(network)).find(|network| is_name(&network.resource_name))
    }

    /// The network whose word would go before that answer, where nobody has looked for it.
    fn wanted(&self, answer: Option<&Answer<'_>>) -> Option<Wanted> {
        if answer.is_some_and(|answer| answer.source.is_network()) {
            return None;
        }
        let owner = self.nad.meta.owner();
        let is_unknown = match owner {
            Some(_) => self.facts.named_owner == Lookup::Unknown,
            // A name that somebody wrote by hand is taken at its word.
            None => answer.is_none() && !self.facts.knows_networks,
        };
        is_unknown.then(|| Wanted::Owner { named: owner, kinds: self.kinds(), is_vital: answer.is_none() })
    }

    /// The kinds of network that call one of the plugins; all of them where none does, as somebody's template may call another.
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
    fn answer<'q>(&'q self, annotation: Option<&'q str>, devices: &[&'q Plugin<'q>]) -> Option<Answer<'q>> {
        let usable = annotation.filter(|name| is_usable(name));
        if let (true, Some(value)) = (self.operator, usable) {
            return Some(Answer { value: value.into(), source: Source::Operator });
        }
        let in_config =
            devices.iter().find_map(|plugin| plugin.object.str_of(KEY)).filter(|name| unusable(name).is_none());
        if let Some(value) = self.owners_value(annotation.and_then(domain).or_else(|| in_config.and_then(domain))) {
            return Some(Answer { value: value.into(), source: Source::Owner });
        }
        let rest = [
            (usable, Source::Annotation),
            (in_config, Source::Config),
            (self.scope.default_resource_name(), Source::Namespace),
        ];
        rest.into_iter().find_map(|(value, source)| Some(Answer { value: value?.into(), source }))
    }

    /// `<prefix>/<spec.resourceName>` of the owner. A domain that the object has already is kept.
    fn owners_value(&self, present: Option<&str>) -> Option<String> {
        let owner = self.owner()?;
        let prefix = self.scope.prefix(self.facts).map(|prefix| prefix.value);
        let value = [present.or(prefix)?, "/", &owner.resource_name].concat();
        unusable(&value).is_none().then_some(value)
    }

    /// Everything that gives annotation and config that value, as far as policy wants it there.
    fn repairs(&self, value: &str, devices: &[&Plugin<'_>]) -> Vec<Repair> {
        let mut repairs = Vec::with_capacity(1 + devices.len());
        repairs.push(Repair::Annotate(RESOURCE_NAME, value.to_owned()));
        let write = self.scope.policy.resource_name.write;
        for plugin in devices {
            if write != Write::Annotation {
                repairs.extend(self.write_config(plugin, value));
            }
        }
        repairs
    }

    fn write_config(&self, plugin: &Plugin<'_>, value: &str) -> Option<Repair> {
        // A key that says the same under another domain stays as it is.
        if plugin.object.str_of(KEY).is_some_and(|name| unusable(name).is_none() && own_name(name) == own_name(value)) {
            return None;
        }
        edit::set_string(self.config.document, plugin.written, KEY, value, plugin.type_member).map(Repair::Config)
    }

    /// Looks at the annotation; true if it is to be repaired, and the config with it.
    fn check_annotation(
        &self,
        annotation: Option<&str>,
        answer: Option<&Answer<'_>>,
        devices: &[&Plugin<'_>],
        out: &mut Findings<'_>,
    ) -> bool {
        let Some(name) = annotation else {
            self.missing(answer, devices, out);
            return true;
        };
        let from_network = answer.filter(|answer| answer.source == Source::Owner);
        if !is_usable(name) || (is_unqualified(name) && !self.scope.allows_dra()) {
            let finding = malformed_annotation(name, out);
            if let Some(answer) = from_network {
                finding.mended_by(self.repairs(&answer.value, devices));
                finding.help = format!("it becomes {}, as {}", answer.value, answer.source.words());
                return true;
            }
            if is_unqualified(name) {
                finding.at_most_warn();
            }
            return false;
        }
        let Some(answer) = from_network else { return false };
        let pointer = || format!("/metadata/annotations/{}", escape(RESOURCE_NAME));
        if own_name(name) != own_name(&answer.value) {
            let message = format!(
                "the annotation k8s.v1.cni.cncf.io/resourceName is {name}, but {} {}: pods would be given another network's device",
                self.owner().map_or_else(String::new, |owner| {
                    format!("{} has resourceName", named(&owner.id, &self.nad.meta.namespace, self.facts, out))
                }),
                own_name(&answer.value)
            );
            out.object(
                &MISMATCH,
                pointer(),
                message,
                format!("it becomes {}; to change it, change the network", answer.value),
            )
            .mended_by(self.repairs(&answer.value, devices));
            return true;
        }
        let expected = self.scope.prefix(self.facts).filter(|prefix| !prefix.assumed);
        if let (Some(expected), Some(found)) = (expected, domain(name))
            && expected.value != found
        {
            let message = format!(
                "the annotation k8s.v1.cni.cncf.io/resourceName is {name}, but the operator's prefix is {}",
                expected.value
            );
            out.object(
                &MISMATCH,
                pointer(),
                message,
                "it stays as it is; make sure that nodes offer the resource under this name",
            )
            .at_most_warn();
        }
        false
    }

    fn missing(&self, answer: Option<&Answer<'_>>, devices: &[&Plugin<'_>], out: &mut Findings<'_>) {
        let kind = devices.first().map_or("sriov", |plugin| plugin.kind);
        let pointer = if self.nad.meta.has_annotations() { "/metadata/annotations" } else { "/metadata" };
        // This is said of nearly every NAD that the operator writes.
        let wants =
            " plugin needs a device, and there is no annotation k8s.v1.cni.cncf.io/resourceName to take one from: ";
        let message = ["the ", kind, wants, hang(kind)].concat();
        match answer {
            Some(answer) => {
                let help = ["it becomes ", &answer.value, ", as ", answer.source.words()].concat();
                out.object(&MISSING, pointer, message, help).mended_by(self.repairs(&answer.value, devices));
            }
            None => {
                let unqualified =
                    devices.iter().find_map(|plugin| plugin.object.str_of(KEY)).filter(|name| is_unqualified(name));
                let help = match (unqualified, self.lacks_prefix()) {
                    (None, Some(network)) => format!(
                        "its network's resourceName is `{name}`, but no operator is known that states its RESOURCE_PREFIX: set `resourceName: \
                         {{prefix: <domain>}}` in nadmit's policy to that value, such as `openshift.io`, or add the annotation \
                         k8s.v1.cni.cncf.io/resourceName: <domain>/{name}",
                        name = network.resource_name
                    ),
                    (Some(name), _) => format!(
                        "the config says `{name}`, without the domain: add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/{name}"
                    ),
                    (None, None) => "add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/<name>, as the node offers the devices; where pods \
                             claim their devices (DRA) instead, let the policy say `dra: allow` for this namespace"
                        .to_owned(),
                };
                out.object(&MISSING, pointer, message, help);
            }
        }
    }

    /// Looks at the key in the config, where the annotation needs nothing. Multus does not read it, so whatever is wrong there
    /// is no reason to refuse the NAD.
    fn check_config(&self, answer: Option<&Answer<'_>>, devices: &[&Plugin<'_>], out: &mut Findings<'_>) {
        let Some(answer) = answer else { return };
        let belongs = self.belongs_to_network();
        let write = self.scope.policy.resource_name.write;
        let is_wanted = write == Write::Both || (write == Write::Auto && belongs);
        for plugin in devices {
            let repair = || self.write_config(plugin, &answer.value);
            let Some(member) = plugin.object.get(KEY).filter(|member| !member.value.is_null()) else {
                if is_wanted {
                    let message = "the config lacks `resourceName`: Multus reads the annotation, but tools and tests that look into the config do not find the device's resource";
                    let help = format!("it becomes {}", answer.value);
                    out.config(&MISSING, plugin.type_member.key_span, message, help).never_denied().mended_by(repair());
                }
                continue;
            };
            let found = member.value.as_str().unwrap_or_else(|| member.value.describe());
            let help = format!("write {}, or leave the key out", answer.value);
            let says = answer.source.words();
            let may_write = belongs && write != Write::Annotation;
            if let Some(problem) = unusable(found) {
                let message =
                    format!("`resourceName` in the config is \"{found}\", which {problem}; Multus uses the annotation");
                let finding = out.config(&MALFORMED, member.value.span, message, help).never_denied();
                finding.mended_by(repair().filter(|_| may_write));
            } else if own_name(found) != own_name(&answer.value) {
                let message = format!(
                    "`resourceName` in the config is {found}, but {says} {}; Multus uses the annotation",
                    answer.value
                );
                let finding = out.config(&MISMATCH, member.value.span, message, help).never_denied();
                finding.mended_by(repair().filter(|_| may_write && answer.source.is_network()));
            } else if found != answer.value {
                let message = format!(
                    "`resourceName` in the config is {found}, but {says} {}: only the domain differs",
                    answer.value
                );
                let help = "it stays as it is; write the same name in both places";
                out.config(&MISMATCH, member.value.span, message, help).at_most_warn();
            }
        }
    }
}
