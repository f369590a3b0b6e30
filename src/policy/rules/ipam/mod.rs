//! The IPAM section, judged as the IPAM plugin reads it.
//!
//! The rules deny only what that plugin rejects in every pod. Where it is not certain that the section is read at all (an unknown
//! plugin, two types), they only warn.

mod address;
mod bridge_gateway;
mod dhcp;
mod dialect;
mod gateways;
mod host_local;
pub(super) mod node_slice;
pub(super) mod overlap;
pub(super) mod per_node;
pub(in crate::policy) mod pools;
mod repeated;
mod routes;
mod static_address;
mod whereabouts;
mod written;

use super::super::Rule;
use super::super::finding::{Finding, Findings};
use crate::cni::{CniObject, Config, Plugin};
use crate::json::{Kind, Span};
use crate::visible::truncated;

pub(crate) use address::{address_number, numbered_address};
pub(crate) use dhcp::DHCP_OPTION;
pub(crate) use dialect::{IGNORED, NO_ADDRESS, WRONG_DIALECT};
pub(crate) use host_local::HOST_LOCAL_RANGE;
pub(crate) use node_slice::NODE_SLICE;
pub(crate) use overlap::OVERLAP;
pub(crate) use per_node::PER_NODE;
pub(crate) use routes::ROUTE;
pub(crate) use static_address::STATIC_ADDRESS;
pub(crate) use whereabouts::WHEREABOUTS_RANGE;
pub(in crate::policy) use whereabouts::first_range;
pub use written::{WrittenRange, written_ranges};

/// The plugins known to always run their IPAM plugin. (ovs-cni skips it for a device with a userspace driver, which the config
/// does not show.)
const RUN_IPAM: &[&str] =
    &["sriov", "ib-sriov", "bridge", "macvlan", "ipvlan", "host-device", "ptp", "vlan", "dummy", "tap"];
/// The plugins known not to have one.
const NO_IPAM: &[&str] = &["tuning", "bandwidth", "vrf", "sbr", "portmap", "firewall", "rdma", "loopback"];

/// The rules on the IPAM section of every plugin of the chain.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    let old_version = old_version(config);
    let last_sbr = config.plugins.iter().rposition(|plugin| plugin.kind == "sbr");
    for (index, plugin) in config.plugins.iter().enumerate() {
        let Some(ipam) = Ipam::of(config.document.text, plugin, old_version) else { continue };
        let source = match ipam.kind {
            "host-local" => host_local::check(&ipam, out),
            "static" => static_address::check(&ipam, out),
            "dhcp" => dhcp::check(&ipam, out),
            "whereabouts" => whereabouts::check(&ipam, out),
            _ => continue,
        };
        static_address::check_beside(plugin, &ipam, out);
        bridge_gateway::check(plugin, &ipam, out);
        gateways::check(&ipam, last_sbr.is_some_and(|last| last > index), out);
        dialect::check(&ipam, source, out);
    }
}

/// Whether an IPAM section has a source of addresses in the keys of its own plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressSource {
    /// It does, well or badly.
    Given,
    /// It does not.
    Missing,
}

/// An IPAM section of a type, and what is around it.
#[derive(Debug)]
struct Ipam<'d> {
    /// The whole config, as written.
    text: &'d str,
    object: CniObject<'d>,
    kind: &'d str,
    /// The CNI version, if its results hold a single address per family.
    old_version: Option<&'d str>,
    /// Pods, the runtime or the node may provide what the section lacks.
    may_be_supplied: bool,
    /// The section may be read differently than here, so nothing is denied.
    is_uncertain: bool,
}

/// Whether a plugin runs its IPAM section: for sure, perhaps, or (`None`) never.
pub(crate) fn is_run(plugin: &Plugin<'_>) -> Option<bool> {
    let is_skipped = plugin.kind == "ib-sriov" && plugin.object.is_true("vfioPciMode");
    let never = is_skipped || NO_IPAM.contains(&plugin.kind);
    (!never).then(|| RUN_IPAM.contains(&plugin.kind))
}

impl<'d> Ipam<'d> {
    /// The section of a plugin, if that plugin runs it.
    fn of(text: &'d str, plugin: &Plugin<'d>, old_version: Option<&'d str>) -> Option<Self> {
        let (object, kind) = plugin.ipam()?;
        let is_sure = is_run(plugin)?;
        // In another spelling it overrides the version that libcni writes.
        let is_respelled =
            old_version.is_some() && plugin.written.named("cniVersion").any(|member| member.key != "cniVersion");
        let is_uncertain = !is_sure || plugin.kind_in_text.is_some() || is_respelled;
        Some(Self {
            text,
            object,
            kind,
            old_version: old_version.filter(|_| !is_respelled),
            may_be_supplied: may_be_supplied(plugin.object, object, kind),
            is_uncertain,
        })
    }

    /// The source text at a span, as a headline shows it.
    fn shown(&self, span: Span) -> String {
        let mut text = String::new();
        for (index, word) in self.text.get(span.range()).unwrap_or_default().split_whitespace().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(word);
            if text.len() > 4 * MAX_SHOWN {
                break;
            }
        }
        truncated(&text, MAX_SHOWN)
    }

    /// What follows where the plugin rejects its section.
    fn fails(&self) -> String {
        format!("{} rejects the config; every pod that uses this network fails to start", self.kind)
    }

    /// Records what the plugin rejects.
    fn report<'o>(
        &self,
        out: &'o mut Findings<'_>,
        rule: &'static Rule,
        span: Span,
        headline: impl Into<String>,
        note: impl Into<String>,
        help: impl Into<String>,
    ) -> &'o mut Finding {
        let finding = out.config(rule, span, headline, note, help);
        if self.is_uncertain {
            finding.at_most_warn();
        }
        finding
    }
}

/// Whether something else may provide what an IPAM section lacks.
fn may_be_supplied(plugin: CniObject<'_>, ipam: CniObject<'_>, kind: &str) -> bool {
    // Capabilities are a map to every reader, so that each has one spelling.
    let is_true = |all: CniObject<'_>, name: &str| {
        all.get_exact(name).is_some_and(|capability| capability.value.kind == Kind::Bool(true))
    };
    let capability = |name: &str| plugin.object_of("capabilities").is_some_and(|all| is_true(all, name));
    // What a runtime would write, written by hand.
    let passed = |name: &str| plugin.object_of("runtimeConfig").is_some_and(|config| config.value_of(name).is_some());
    let argument = || plugin.object_of("args")?.object_of("cni")?.value_of("ips");
    match kind {
        "static" => capability("ips") || passed("ips") || argument().is_some(),
        "host-local" => capability("ipRanges") || passed("ipRanges"),
        // A file on the node fills in what is absent here.
        "whereabouts" => ipam.text_of("configuration_path").is_some(),
        _ => false,
    }
}

/// The CNI version the plugins are called with, where it is certain and older than 0.3.0.
fn old_version<'d>(config: &Config<'d>) -> Option<&'d str> {
    let version = Some(config.cni_version()).filter(|version| matches!(*version, "" | "0.1.0" | "0.2.0"))?;
    let is_negotiated = config.is_list && config.root.get("cniVersions").is_some();
    let is_undecodable = config.root.value_of("cniVersion").is_some_and(|value| value.as_str().is_none());
    (!is_negotiated && !is_undecodable).then_some(version)
}

/// The version as a message names it.
fn version_name(version: &str) -> String {
    if version.is_empty() { "without a cniVersion".to_owned() } else { format!("with cniVersion \"{version}\"") }
}

/// How many characters of a value a headline shows.
const MAX_SHOWN: usize = 40;

/// A text as a headline shows it, in quotes.
fn debug_text(text: &str) -> String {
    format!("{:?}", truncated(text, MAX_SHOWN))
}

#[cfg(test)]
mod tests;
