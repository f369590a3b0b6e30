//! The CNI version that plugins are called with, and what their results can express in it.

use super::super::finding::Findings;
use super::nad_config::CNI_VERSION;
use crate::cni::releases::Program;
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

/// The rules on the CNI version that a plugin is called with.
pub(super) fn check(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
    no_address(plugin, version, out);
    if !out.versions.is_empty() {
        unsupported(plugin, version, out);
    }
}

/// A CNI version that is newer than the release in use of a plugin, of its IPAM plugin, or of Multus, which reads the result.
fn unsupported(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
    let Some((version, span)) = version.if_one_of(&["1.0.0", "1.1.0"], plugin) else { return };
    if out.has_at(&CNI_VERSION, span) {
        return;
    }
    let readers = [Some(plugin.kind), plugin.ipam().map(|(_, kind)| kind), Some("multus")];
    let too_old = readers.into_iter().flatten().filter_map(Program::of).find_map(|program| {
        let since = program.supports_cni(version)?;
        let in_use = out.versions.get(program)?;
        (out.versions.reach(since) == Some(false)).then_some((since, in_use))
    });
    if let Some((since, in_use)) = too_old {
        let name = since.program.name();
        let headline = format!("CNI version {version} is unknown to release {in_use} of {name}");
        let note = "it rejects the version (\"incompatible CNI versions\"), and no pod that uses this network starts";
        let help = format!("upgrade {name}, or use an older `cniVersion`: {version} is supported {since}");
        out.config(&CNI_VERSION, span, headline, note, help);
    }
}

/// Old versions of the result cannot express an interface without an address.
fn no_address(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
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

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::{found, found_with_versions};

    #[test]
    fn a_version_that_the_release_does_not_know_is_denied() {
        let config = |version: &str| {
            format!(
                r#"{{"cniVersion":"{version}","plugins":[{{"type":"sriov","ipam":{{"type":"whereabouts","range":"10.0.0.0/24"}}}},{{"type":"tuning"}}]}}"#
            )
        };
        let denied = ["nad/cni-version deny /cniVersion"];
        let good: [&str; 0] = [];
        assert_eq!(found(&config("1.1.0")), good);
        for (version, releases, want) in [
            ("1.1.0", r#"sriov-cni: "2.8", cni-plugins: "1.6", whereabouts: "0.7", multus: "4.1""#, &good as &[_]),
            ("1.1.0", r#"sriov-cni: "2.7""#, &denied),
            ("1.1.0", r#"cni-plugins: "1.5.1""#, &denied),
            ("1.1.0", r#"whereabouts: "0.6""#, &denied),
            ("1.1.0", r#"multus: "4.0.2""#, &denied),
            ("1.1.0", r#"ovs-cni: "0.26""#, &good),
            ("1.0.0", r#"multus: "4.0""#, &good),
            ("1.0.0", r#"multus: "3.9""#, &denied),
            ("1.0.0", r#"multus: "3.9", cni-plugins: "0.9", sriov-cni: "2.6""#, &denied),
            ("0.4.0", r#"multus: "3.9", sriov-cni: "2.6""#, &good),
        ] {
            assert_eq!(found_with_versions(&config(version), releases), want, "{version} {releases}");
        }
    }

    /// In a list libcni writes the version of the list into each plugin. A key that sorts after it is read instead.
    #[test]
    fn a_plugin_of_a_list_may_have_a_version_of_its_own() {
        let config = |key: &str| {
            format!(
                r#"{{"cniVersion":"0.2.0","name":"n","plugins":[{{"{key}":"1.0.0","type":"macvlan","master":"e"}}]}}"#
            )
        };
        for (key, is_denied) in [("cniVersion", true), ("CNIVersion", true), ("cniversion", false)] {
            let found = found(&config(key));
            assert_eq!(
                found.iter().any(|found| found == "nad/cni-version deny /cniVersion"),
                is_denied,
                "{key} {found:?}"
            );
        }
    }

    /// A version that nothing supports is one mistake, whichever release is in use.
    #[test]
    fn one_version_is_reported_once() {
        for plugin in [r#"{"type":"sriov"}"#, r#"{"type":"sriov","vlna":5}"#] {
            let config = format!(r#"{{"cniVersion":"1.1.0","name":"n","plugins":[{plugin},{plugin},{plugin}]}}"#);
            let found = found_with_versions(&config, r#"multus: "3.9""#);
            let denied: Vec<_> = found.iter().filter(|found| found.starts_with("nad/cni-version")).collect();
            assert_eq!(denied, ["nad/cni-version deny /cniVersion"], "{plugin}");
        }
    }
}
