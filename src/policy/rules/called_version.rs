//! The CNI version that plugins are called with, and what their results can express in it.

use super::super::finding::Findings;
use super::nad_config::CNI_VERSION;
use crate::cni::{Config, Plugin};
use crate::json::Span;

/// The CNI version that the plugins of a config are called with. It is looked up once: a config may have tens of thousands of plugins.
pub(super) struct Version<'d> {
    /// `None` where something else than `cniVersion` can decide it.
    value: Option<&'d str>,
    /// Where it is written.
    span: Option<Span>,
    is_list: bool,
}

impl<'d> Version<'d> {
    pub(super) fn of(config: &Config<'d>) -> Self {
        let written = config.root.value_of("cniVersion");
        // libcni chooses among these where a list has them.
        let chooses = config.is_list && !config.root.list_of("cniVersions").is_empty();
        let is_readable = written.is_none_or(|value| value.as_str().is_some());
        let value = (!chooses && is_readable).then(|| config.cni_version());
        Self { value, span: written.map(|value| value.span), is_list: config.is_list }
    }

    /// The version that this plugin is called with and where it is written, if it is one of those given.
    pub(super) fn if_one_of(&self, versions: &[&str], plugin: &Plugin<'_>) -> Option<(&'d str, Span)> {
        // A key that sorts after the one libcni writes is the one the plugin reads.
        let overrides = |key: &str| key > "cniVersion";
        let own = self.is_list && plugin.written.get("cniVersion").is_some_and(|member| overrides(&member.key));
        let version = self.value.filter(|version| !own && versions.contains(version))?;
        let span = self.span.unwrap_or(plugin.type_member.value.span);
        Some((if version.is_empty() { "0.1.0" } else { version }, span))
    }
}

/// Old versions of the result cannot express an interface without an address.
pub(super) fn check(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
    let is_measured = matches!(plugin.kind, "bridge" | "macvlan" | "ipvlan" | "vlan" | "host-device");
    if plugin.ipam().is_some() || !(is_measured || matches!(plugin.kind, "sriov" | "ib-sriov" | "ovs")) {
        return;
    }
    if let Some((version, span)) = version.if_one_of(&["", "0.1.0", "0.2.0"], plugin) {
        let headline = format!("CNI version {version} has no result for `{}` without `ipam`", plugin.kind);
        let note = "the plugin fails after it made the interface (\"no valid IP addresses\"), and no pod that uses this network starts";
        let finding = out.config(&CNI_VERSION, span, headline, note, "set `cniVersion` to 0.3.0 or later");
        if !is_measured {
            finding.at_most_warn();
        }
    }
}
