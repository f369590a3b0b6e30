//! What a pod can ask of the plugins of a network in its selection, and which of it reaches one of them.
//!
//! Multus passes these on as capability arguments: libcni gives a plugin only those whose capability the config declares. MAC and IP
//! addresses it also passes as `CNI_ARGS`, which some plugins read without any capability.

use super::{CniObject, Config, Plugin};
use crate::json::Kind;

/// A set of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arguments(u8);

impl Arguments {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Addresses: `ips`.
    pub const IPS: Self = Self(1);
    /// A MAC address: `mac`.
    pub const MAC: Self = Self(2);
    /// Port mappings.
    pub const PORTS: Self = Self(4);
    /// Rates.
    pub const BANDWIDTH: Self = Self(8);
    /// An InfiniBand GUID.
    pub const GUID: Self = Self(16);
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::IPS, Self::MAC, Self::PORTS, Self::BANDWIDTH, Self::GUID];
    /// All of them.
    pub const EVERY: Self = Self(31);

    /// Those of both sets.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in another set.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it has all of another set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The key of one argument in a selection.
    pub fn key(self) -> &'static str {
        match self {
            Self::IPS => "ips",
            Self::MAC => "mac",
            Self::PORTS => "portMappings",
            Self::BANDWIDTH => "bandwidth",
            Self::GUID => "infiniband-guid",
            _ => "",
        }
    }

    /// The capability that a plugin needs for one argument.
    pub fn capability(self) -> &'static str {
        if self == Self::GUID { "infinibandGUID" } else { self.key() }
    }
}

/// The plugins that read a MAC address from `CNI_ARGS`.
const READ_MAC: &[&str] = &["sriov", "ovs", "macvlan", "bridge", "tap", "tuning"];
/// The plugins we know that read neither a MAC address nor an IP address from `CNI_ARGS` themselves.
const READ_NO_MAC: &[&str] =
    &["ib-sriov", "ipvlan", "vlan", "host-device", "vrf", "sbr", "bandwidth", "portmap", "firewall", "rdma"];
/// The IPAM plugins that read no IP address from `CNI_ARGS`.
const READ_NO_IP: &[&str] = &["dhcp"];

impl Config<'_> {
    /// The arguments that reach a plugin of this config, or may.
    pub fn arguments_read(&self) -> Arguments {
        // Delegates get arguments of their own.
        let is_certain = self.others.is_empty() && self.nested_delegate.is_none() && !self.plugins.is_empty();
        if !is_certain {
            return Arguments::EVERY;
        }
        self.plugins.iter().map(arguments_of).fold(Arguments::NONE, Arguments::with)
    }
}

fn arguments_of(plugin: &Plugin<'_>) -> Arguments {
    let is_known = READ_MAC.contains(&plugin.kind) || READ_NO_MAC.contains(&plugin.kind);
    let mut read = Arguments::NONE;
    if !is_known || READ_MAC.contains(&plugin.kind) {
        read = read.with(Arguments::MAC);
    }
    let has_ipam = plugin.ipam().is_some_and(|(_, kind)| !READ_NO_IP.contains(&kind));
    if !is_known || has_ipam {
        read = read.with(Arguments::IPS);
    }
    let Some(value) = plugin.object.value_of("capabilities") else { return read };
    // What is not an object of booleans, another rule reports.
    let Some(capabilities) = CniObject::of(value) else { return Arguments::EVERY };
    let declares = |argument: &Arguments| {
        let declared = capabilities.get_exact(argument.capability());
        declared.is_some_and(|member| member.value.kind != Kind::Bool(false))
    };
    Arguments::ALL.into_iter().filter(declares).fold(read, Arguments::with)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn arguments_reach_plugins_that_read_them() {
        for (text, want) in [
            (r#"{"type":"sriov"}"#, &["mac"] as &[_]),
            (r#"{"type":"sriov","ipam":{"type":"whereabouts"}}"#, &["ips", "mac"]),
            (r#"{"type":"macvlan","ipam":{"type":"dhcp"}}"#, &["mac"]),
            (r#"{"type":"macvlan","ipam":{}}"#, &["mac"]),
            (r#"{"type":"ipvlan","ipam":{"type":"static"}}"#, &["ips"]),
            (r#"{"type":"ipvlan","ipam":{"type":"dhcp"}}"#, &[]),
            (r#"{"type":"ipvlan","capabilities":{"mac":true,"ips":false}}"#, &["mac"]),
            (r#"{"type":"ib-sriov"}"#, &[]),
            (r#"{"type":"ib-sriov","capabilities":{"infinibandGUID":true}}"#, &["infiniband-guid"]),
            (r#"{"type":"my-plugin"}"#, &["ips", "mac"]),
            (r#"{"plugins":[{"type":"ipvlan"},{"type":"tuning"}]}"#, &["mac"]),
            (
                r#"{"plugins":[{"type":"ipvlan"},{"type":"portmap","capabilities":{"portMappings":true}}]}"#,
                &["portMappings"],
            ),
            (r#"{"type":"ipvlan","capabilities":5}"#, &["ips", "mac", "portMappings", "bandwidth", "infiniband-guid"]),
            (r#"{"plugins":[]}"#, &["ips", "mac", "portMappings", "bandwidth", "infiniband-guid"]),
        ] {
            let document = Document::parse(text).unwrap();
            let read = Config::of(&document).unwrap().arguments_read();
            let keys: Vec<_> = Arguments::ALL.into_iter().filter(|one| read.has(*one)).map(Arguments::key).collect();
            assert_eq!(keys, want, "{text}");
        }
    }
}
