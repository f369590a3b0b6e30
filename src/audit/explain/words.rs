//! The plan of a pod in words: lines with a label each, for a terminal and for a page.

use std::collections::BTreeMap;

use super::{
    AddressPlan, ChainPlan, ConfigPlan, DevicePlan, FoundBy, InterfacePlan, Listed, NadOrigin, NadPlan, NodesPlan,
    PluginPlan, PodPlan, RangePlan, ResourceNeed, SelectionForm, VlanPlan,
};
use crate::audit::chain::{FirstNames, LinkHealth};
use crate::cni::arguments::Arguments;
use crate::policy::SourcePlace;

/// How many reasons are listed: by a label, each node may have another one.
const MAX_REASONS: usize = 8;

/// A line: what it is about, and what it says.
pub type PlanLine = (&'static str, String);

impl PodPlan {
    /// The remarks on the pod as a whole.
    pub fn summary(&self) -> String {
        let bad = |state: LinkHealth| {
            let names = self.interfaces.iter().filter(|one| one.state == state).map(|one| one.name.text());
            let nodes = self.nodes.iter().filter(|nodes| nodes.state == state).map(|_| "nodes".to_owned());
            names.chain(nodes).collect::<Vec<_>>()
        };
        match (self.state(), self.selection) {
            (_, SelectionForm::Absent) if self.interfaces.is_empty() => "selects no networks".to_owned(),
            (_, SelectionForm::HostNetwork) => "uses the network of its node, and gets no other".to_owned(),
            (LinkHealth::Broken, SelectionForm::Unreadable) => "cannot start: its annotation cannot be read".to_owned(),
            (LinkHealth::Unknown, SelectionForm::Variables) => {
                "is unknown: its networks depend on variables".to_owned()
            }
            (LinkHealth::Unknown, SelectionForm::TooLarge) => "is unknown: its annotation is too large".to_owned(),
            (LinkHealth::Good | LinkHealth::Waiting, _) => "can start".to_owned(),
            (LinkHealth::Unknown, _) if bad(LinkHealth::Unknown).is_empty() => {
                "can start, as far as it was read".to_owned()
            }
            (LinkHealth::Unknown, _) => {
                format!("can start, as far as is known; unknown: {}", bad(LinkHealth::Unknown).join(", "))
            }
            (LinkHealth::Broken, _) if bad(LinkHealth::Broken).is_empty() => "cannot start".to_owned(),
            (LinkHealth::Broken, _) => format!("cannot start: {}", bad(LinkHealth::Broken).join(", ")),
        }
    }
}

impl InterfacePlan {
    /// Its lines.
    pub fn lines(&self) -> Vec<PlanLine> {
        let mut lines = vec![("NAD", self.nad_in_words())];
        let Some(nad) = self.nad_plan() else {
            lines.extend(self.requests(None));
            return lines;
        };
        match &nad.config {
            ConfigPlan::OnNodes => lines.push(("plugins", "unknown: the config is a file on the node".to_owned())),
            ConfigPlan::Unreadable => lines.push(("plugins", "unknown: the config cannot be read".to_owned())),
            ConfigPlan::Read(chain) => lines.extend(of_chain(chain)),
        }
        let at = lines.iter().position(|(label, _)| *label == "plugins").map_or(lines.len(), |at| at + 1);
        lines.insert(at, ("device", device(&self.device, nad, self.state == LinkHealth::Broken)));
        lines.extend(self.requests(nad.config.chain()));
        if let Some(chain) = nad.config.chain() {
            lines.extend(of_addresses(chain));
        }
        lines
    }

    fn nad_in_words(&self) -> String {
        let Some(key) = &self.nad else { return "the selection names none".to_owned() };
        let rule = match self.found_by {
            FoundBy::PodNamespace => "in the pod's namespace",
            FoundBy::NamedNamespace => "in the namespace that the pod names",
            FoundBy::MultusNamespace => "in the namespace of Multus",
        };
        let name = if key.namespace().is_empty() { key.name().to_owned() } else { key.to_string() };
        match &self.plan {
            Ok(None) => format!("{name}, {rule}, does not exist"),
            Err(why) => format!("{name}, {rule}, is unknown: {why}"),
            Ok(Some(nad)) => {
                let network = nad.network.as_ref().map(|network| format!(", rendered from {network}"));
                let repaired = if nad.origin == NadOrigin::Admitted { ", as nadmit would store it" } else { "" };
                let place = nad.place.as_ref().map(|place| format!(" ({})", in_file(place)));
                format!("{name}, {rule}{}{repaired}{}", network.unwrap_or_default(), place.unwrap_or_default())
            }
        }
    }

    /// What the pod asks for.
    fn requests(&self, chain: Option<&ChainPlan>) -> Vec<PlanLine> {
        let asked = |argument: Arguments, text: String| {
            if self.unread.has(argument) {
                format!("{text}: asked for, but no plugin reads it")
            } else {
                format!("{text}, asked for by the pod")
            }
        };
        let mut lines = Vec::new();
        let fixed = chain.and_then(|chain| chain.mac.clone());
        let is_read = !self.requested.mac.is_empty();
        if is_read {
            lines.push(("MAC", asked(Arguments::MAC, self.requested.mac.clone())));
        }
        if let Some(mac) = fixed.filter(|_| !is_read || self.unread.has(Arguments::MAC)) {
            lines.push(("MAC", format!("{mac}, for every pod")));
        }
        if !self.requested.guid.is_empty() {
            lines.push(("GUID", asked(Arguments::GUID, self.requested.guid.clone())));
        }
        if !self.requested.ips.is_empty() {
            lines.push(("requested", asked(Arguments::IPS, self.requested.ips.join(", "))));
        }
        if let Some(gateways) = &self.requested.default_route {
            let via = if gateways.is_empty() { String::new() } else { format!(" via {}", gateways.join(", ")) };
            lines.push(("default", format!("the default route of the pod{via}")));
        }
        lines
    }
}

/// `a.yaml:3`
pub fn in_file(place: &SourcePlace) -> String {
    let file = if &*place.file == "-" { "<stdin>" } else { &place.file };
    format!("{file}:{}", place.line)
}

fn device(device: &DevicePlan, nad: &NadPlan, is_broken: bool) -> String {
    match device {
        DevicePlan::None => "none".to_owned(),
        DevicePlan::Unknown => "unknown".to_owned(),
        DevicePlan::Pool { resource, place, requested: Some(requested) } => {
            format!("number {place} of {requested} of {resource}")
        }
        DevicePlan::Pool { resource, place, requested: None } => format!("number {place} of {resource}"),
        DevicePlan::Short { resource, requested: 0, .. } => {
            let who = if is_broken { "" } else { ", unless network-resources-injector does" };
            format!("none: the pod requests no {resource}{who}")
        }
        DevicePlan::Short { resource, place, requested } => {
            format!("none is left: it is number {place} of {resource}, and the pod requests {requested}")
        }
        DevicePlan::Fixed(device) => format!("always {device}, by the config"),
        DevicePlan::Claim => match &nad.resource {
            Some(resource) => format!("by claim (DRA), under {resource}"),
            None => "by claim (DRA)".to_owned(),
        },
        DevicePlan::PerhapsClaim => "by claim (DRA), if the pod claims one".to_owned(),
        DevicePlan::Missing => "none: the NAD names no resource".to_owned(),
    }
}

fn of_chain(chain: &ChainPlan) -> Vec<PlanLine> {
    let plugin = |plugin: &PluginPlan| match &plugin.on {
        Some(on) => format!("{} on {on}", plugin.kind),
        None => plugin.kind.clone(),
    };
    let mut lines = vec![("plugins", joined(&chain.plugins, plugin))];
    lines.extend(chain.vlan.as_ref().map(|plan| ("VLAN", vlan(plan))));
    lines.extend(chain.partition.clone().map(|partition| ("partition", partition)));
    lines.extend(chain.mtu.map(|mtu| ("MTU", mtu.to_string())));
    lines
}

fn vlan(plan: &VlanPlan) -> String {
    let mut parts: Vec<String> = plan.id.map(|id| id.to_string()).into_iter().collect();
    parts.extend(plan.qos.map(|qos| format!("QoS {qos}")));
    parts.extend(plan.protocol.clone());
    if !plan.trunk.first.is_empty() {
        parts.push(format!("trunk of {}", joined(&plan.trunk, String::clone)));
    }
    parts.join(", ")
}

fn of_addresses(chain: &ChainPlan) -> Vec<PlanLine> {
    if chain.addresses.first.is_empty() {
        return vec![("addresses", "none: no plugin hands out any".to_owned())];
    }
    let mut lines = Vec::new();
    for plan in &chain.addresses.first {
        lines.push(("addresses", addresses(plan)));
        let gateways = plan.gateways();
        if !gateways.is_empty() {
            lines.push(("gateway", gateways.join(", ")));
        }
        if !plan.routes.first.is_empty() {
            let route = |route: &super::RoutePlan| match &route.gateway {
                Some(gateway) => format!("{} via {gateway}", route.destination),
                None => route.destination.clone(),
            };
            lines.push(("routes", joined(&plan.routes, route)));
        }
        let servers = (!plan.nameservers.first.is_empty()).then(|| joined(&plan.nameservers, String::clone));
        let search = (!plan.search.first.is_empty()).then(|| format!("search {}", joined(&plan.search, String::clone)));
        let dns: Vec<_> = servers.into_iter().chain(search).collect();
        if !dns.is_empty() {
            lines.push(("DNS", dns.join("; ")));
        }
    }
    lines
}

fn addresses(plan: &AddressPlan) -> String {
    let mut parts = Vec::new();
    if !plan.ranges.first.is_empty() {
        parts.push(format!("from {}", joined(&plan.ranges, range)));
    }
    if !plan.fixed.first.is_empty() {
        parts.push(joined(&plan.fixed, |one| one.address.clone()));
    }
    let certain = if plan.is_certain { "" } else { " (if the plugin runs it)" };
    match parts.is_empty() {
        true if plan.plugin == "dhcp" => format!("by DHCP{certain}"),
        true => format!("{}: states none{certain}", plan.plugin),
        false => format!("{}: {}{certain}", plan.plugin, parts.join("; ")),
    }
}

fn range(range: &RangePlan) -> String {
    let bounds = match (&range.first, &range.last) {
        (Some(first), Some(last)) => format!(" ({first} to {last})"),
        (Some(first), None) => format!(" ({first} and after)"),
        (None, Some(last)) => format!(" (up to {last})"),
        (None, None) => String::new(),
    };
    let without = match range.excluded.first.is_empty() {
        true => String::new(),
        false => format!(" without {}", joined(&range.excluded, String::clone)),
    };
    format!("{}{bounds}{without}", range.network)
}

/// The elements of a list, and how many more there are.
fn joined<T>(list: &Listed<T>, shown: impl Fn(&T) -> String) -> String {
    let mut text = list.first.iter().map(shown).collect::<Vec<_>>().join(", ");
    if list.more > 0 {
        text += &format!(" and {} more", list.more);
    }
    text
}

impl NodesPlan {
    /// Its lines.
    pub fn lines(&self) -> Vec<PlanLine> {
        let mut lines: Vec<PlanLine> = self.needs.iter().map(|need| ("needs", need.in_words())).collect();
        if let Some(node) = &self.node {
            lines.push(("node", node.clone()));
        }
        if !self.labels.is_empty() {
            lines.push(("labels", labels(&self.labels)));
        }
        lines.extend(self.nad_labels.iter().map(|label| ("labels", label.in_words())));
        match self.groups() {
            Err(why) => lines.push(("nodes", format!("unknown: {why}"))),
            Ok(groups) => {
                let (fitting, all) = (&groups.fitting, groups.all);
                let names = if fitting.count == 0 { String::new() } else { format!(": {fitting}") };
                lines.push(("nodes", format!("{} of {all} can run it{names}", fitting.count)));
                let shown = groups.others.iter().take(MAX_REASONS);
                lines.extend(shown.map(|(reason, names)| ("", format!("{names}: {reason}"))));
                let more: usize = groups.others.values().skip(MAX_REASONS).map(|names| names.count).sum();
                if more > 0 {
                    lines.push(("", format!("{more} more for other reasons")));
                }
            }
        }
        lines
    }

    /// The nodes by what keeps the pod from them, or may keep it.
    fn groups(&self) -> Result<NodeGroups<'_>, &str> {
        let mut groups = NodeGroups::default();
        for node in self.fits()? {
            groups.all += 1;
            let names = match node.fits() {
                Some(true) => &mut groups.fitting,
                Some(false) => groups.others.entry(node.reasons.join("; ")).or_default(),
                None => groups.others.entry(format!("perhaps: {}", node.doubts.join("; "))).or_default(),
            };
            names.push(node.name);
        }
        Ok(groups)
    }
}

/// The nodes of a pod, by what keeps it from them.
#[derive(Default)]
struct NodeGroups<'n> {
    all: usize,
    fitting: FirstNames<'n>,
    others: BTreeMap<String, FirstNames<'n>>,
}

impl ResourceNeed {
    fn in_words(&self) -> String {
        let count = self.count.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
        let offer = match &self.policies {
            _ if self.is_served => "served by a DeviceClass (DRA)".to_owned(),
            Err(why) => format!("who offers it is unknown: {why}"),
            Ok(policies) if policies.is_empty() => "no node policy offers it".to_owned(),
            Ok(policies) => {
                let one = |policy: &super::OfferingPolicy| match policy.nodes.is_empty() {
                    true => policy.name.clone(),
                    false => format!("{} on nodes with {}", policy.name, labels(&policy.nodes)),
                };
                let names: Vec<String> = policies.iter().map(one).collect();
                let mut first = FirstNames::default();
                names.iter().for_each(|name| first.push(name));
                format!("offered by {first}")
            }
        };
        format!("{count} of {}: {offer}", self.resource)
    }
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    let pair = |(key, value): (&String, &String)| if value.is_empty() { key.clone() } else { format!("{key}={value}") };
    let shown: Listed<String> = labels.iter().map(pair).collect();
    joined(&shown, String::clone)
}
