//! Keys that not every release of their reader reads: what is wrong with their values depends on the release in use.

use super::super::finding::Findings;
use super::nad_keys::UNKNOWN_KEY;
use crate::cni::CniObject;
use crate::cni::releases::{Program, Since};
use crate::cni::schema::{DecodedField, Misfit};

/// A key that not every release of its reader reads.
pub(super) fn check(taken: &DecodedField<'_, '_>, object: CniObject<'_>, reader: &str, out: &mut Findings<'_>) {
    let Some(release) = taken.field.since else { return };
    let Some(program) = Program::of(reader) else { return };
    // With two types it may run as another program, which reads the key in any release.
    if object.named("type").nth(1).is_some() {
        return;
    }
    let since = Since { program, release };
    let is_read = out.versions.reach(since);
    for member in object.named(taken.field.key) {
        out.add_conditional(member.value.span, since, is_read);
    }
    let (name, key) = (program.name(), taken.field.key);
    // The operator always writes a `logLevel`, and it does not matter to pods.
    let matters = !matches!(key, "logLevel" | "logFile");
    if let (true, Some(false), Some(in_use)) = (matters, is_read, out.versions.get(program)) {
        let headline = format!("`{key}` is unknown to release {in_use} of {name}");
        let note = format!("{reader} reads it {since}; before, the setting has no effect");
        let help = format!("upgrade {name}, or remove `{key}`");
        out.config(&UNKNOWN_KEY, taken.first.key_span, headline, note, help);
    }
}

/// A key within the value that not every release reads. It is looked for only if something is wrong with it.
pub(super) fn check_nested(
    taken: &DecodedField<'_, '_>,
    misfit: &Misfit<'_>,
    object: CniObject<'_>,
    reader: &str,
    out: &mut Findings<'_>,
) {
    let (Some(program), None) = (Program::of(reader), taken.field.since) else { return };
    let place = misfit.value.span;
    let release = object.named(taken.field.key).find_map(|member| taken.field.holds.since_at(&member.value, place));
    if let Some(release) = release {
        let since = Since { program, release };
        out.add_conditional(place, since, out.versions.reach(since));
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::{found, found_with_versions};

    /// What is wrong with a key is certain only where the release in use reads it.
    #[test]
    fn a_key_is_judged_by_the_releases_that_read_it() {
        let bridge = r#"{"cniVersion":"1.0.0","type":"bridge","portIsolation":1}"#;
        let (deny, warn) = (["nad/field-type deny /portIsolation"], ["nad/field-type warn /portIsolation"]);
        let ignored = ["nad/unknown-key warn /portIsolation"];
        assert_eq!(found(bridge), warn);
        assert_eq!(found_with_versions(bridge, r#"cni-plugins: "1.7""#), deny);
        assert_eq!(found_with_versions(bridge, r#"cni-plugins: "v1.9.1""#), deny);
        assert_eq!(found_with_versions(bridge, r#"cni-plugins: "1.6.2""#), ignored);
        // Another program says nothing about it.
        assert_eq!(found_with_versions(bridge, r#"sriov-cni: "2.10""#), warn);

        // Every rule at such a key, also those below its value.
        let trunk = r#"{"cniVersion":"1.0.0","type":"bridge","vlanTrunk":[{"id":5000}]}"#;
        assert_eq!(found(trunk), ["plugin/bridge-vlan deny /vlanTrunk/0"]);
        assert_eq!(found_with_versions(trunk, r#"cni-plugins: "1.2""#), ["nad/unknown-key warn /vlanTrunk"]);
        let sriov = r#"{"cniVersion":"0.4.0","type":"sriov","vlan":5,"vlanProto":"802.1x","mtu":"9000"}"#;
        assert_eq!(found(sriov), ["nad/field-type deny /mtu", "sriov/vlan-proto deny /vlanProto"]);
        let old = found_with_versions(sriov, r#"sriov-cni: "2.7""#);
        assert_eq!(old, ["nad/unknown-key warn /vlanProto", "nad/unknown-key warn /mtu"]);

        // Only the patch number could tell.
        let disabled =
            r#"{"cniVersion":"1.0.0","type":"bridge","disableContainerInterface":true,"ipam":{"type":"dhcp"}}"#;
        let of = |action: &str| [format!("plugin/bridge-options {action} /disableContainerInterface")];
        assert_eq!(found_with_versions(disabled, r#"cni-plugins: "1.4""#), of("warn"));
        assert_eq!(found_with_versions(disabled, r#"cni-plugins: "1.4.1""#), of("deny"));

        // What no release reads yet is never certain.
        let sbr = r#"{"cniVersion":"1.0.0","plugins":[{"type":"macvlan","ipam":{"type":"dhcp"}},{"type":"sbr","gateways":1}]}"#;
        let unsure = ["nad/field-type warn /plugins/1/gateways"];
        assert_eq!(found(sbr), unsure);
        assert_eq!(found_with_versions(sbr, r#"cni-plugins: "1.9""#), unsure);
    }

    /// A value that one program reads only from some release on may have another reader, or be a path on the node.
    #[test]
    fn other_readers_of_a_value_are_not_excused() {
        let with = |members: &str| format!(r#"{{"cniVersion":"1.0.0","name":"n",{members}}}"#);
        let denies = |config: &str, versions: &str, rule: &str| {
            let found = found_with_versions(config, versions);
            assert!(found.iter().any(|one| one.starts_with(&format!("{rule} deny"))), "{config} {versions} {found:?}");
        };
        // The program of the other type reads it too.
        let two = with(r#""type":"portmap","Type":"firewall","backend":5,"prevResult":{}"#);
        denies(&two, "", "nad/field-type");
        denies(&with(r#""type":"sriov","Type":"bridge","mtu":1"#), r#"sriov-cni: "2.7""#, "plugin/mtu");
        // A path on the node is one for every release.
        let log = with(r#""type":"sriov","logFile":"/etc/cron.d/x""#);
        assert_eq!(found_with_versions(&log, r#"sriov-cni: "2.7""#), ["sriov/host-file warn /logFile"]);
    }

    /// Keys within a value have releases of their own.
    #[test]
    fn nested_keys_are_judged_by_release_too() {
        let routes = r#"{"cniVersion":"1.0.0","type":"macvlan","ipam":{"type":"host-local","subnet":"10.0.0.0/24","routes":[{"dst":"10.1.0.0/16","mtu":"x"}]}}"#;
        let at = |action: &str| [format!("nad/field-type {action} /ipam/routes/0/mtu")];
        assert_eq!(found(routes), at("warn"));
        assert_eq!(found_with_versions(routes, r#"cni-plugins: "1.6""#), at("deny"));
        assert_eq!(found_with_versions(routes, r#"cni-plugins: "1.5""#), Vec::<String>::new());
        // What every release rejects is not hidden by it.
        let both = routes.replace(r#""mtu":"x"}]"#, r#""mtu":"x"},{"dst":5}]"#);
        assert_eq!(found(&both), ["nad/field-type deny /ipam/routes/1/dst"]);
        let queue = r#"{"cniVersion":"1.0.0","plugins":[{"type":"bridge"},{"type":"tuning","sysctl":{},"args":{"cni":{"txQLen":"x"}}}]}"#;
        assert_eq!(found(queue), ["nad/field-type deny /plugins/1/args/cni/txQLen"]);
        assert_eq!(found_with_versions(queue, r#"cni-plugins: "1.3""#), Vec::<String>::new());
    }

    /// Other rules are not weakened by a key beside theirs.
    #[test]
    fn only_what_is_in_the_value_depends_on_the_release() {
        let config = r#"{"cniVersion":"1.0.0","type":"bridge","portIsolation":1,"mtu":"x","vlan":5000}"#;
        let certain = ["nad/field-type deny /mtu", "plugin/bridge-vlan deny /vlan"];
        for versions in ["", r#"cni-plugins: "1.6""#, r#"cni-plugins: "1.9""#] {
            let found = found_with_versions(config, versions);
            assert!(certain.iter().all(|want| found.iter().any(|one| one == want)), "{versions} {found:?}");
        }
    }
}
