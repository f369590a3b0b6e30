//! Multus as a plugin: it runs its delegates, which are judged like any plugin but get no device.

use super::super::finding::Findings;
use super::nad_config::{NO_PLUGIN, NOTHING_TO_RUN, TOO_LARGE};
use super::nad_device::{MISSING, ONE_DEVICE, STATIC_DEVICE};
use crate::cni::{Config, Plugin};

/// The rules on every `multus` of a config, and on its delegates beyond those of any config.
pub(super) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    for one in std::iter::once(config).chain(&config.others) {
        let of_multus = |plugin: &&Plugin<'_>| matches!(plugin.kind, "multus" | "multus-shim");
        one.plugins.iter().filter(of_multus).for_each(|plugin| delegates(plugin, out));
    }
    for delegate in config.others.iter().filter(|other| !other.is_same_text(config)) {
        delegate.plugins.iter().for_each(|plugin| device(plugin, out));
    }
    if let Some(delegate) = config.nested_delegate {
        let headline = "`multus` has delegates inside of a delegate or beside another `type`";
        let note = "nadmit does not judge such delegates, so the config is denied";
        out.config(&TOO_LARGE, delegate.value.span, headline, note, "name the plugin directly in the NAD");
    }
}

fn delegates(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    if plugin.object.value_of("clusterNetwork").is_some_and(|network| network.as_str() != Some("")) {
        return;
    }
    let list = plugin.object.value_of("delegates");
    let elements = list.and_then(|list| list.elements()).unwrap_or_default();
    let span = list.map_or(plugin.type_member.value.span, |list| list.span);
    let help = "give `delegates` one object with a `type` for each plugin; or name the plugin directly in the NAD";
    if list.is_none_or(|list| list.elements().is_some_and(<[_]>::is_empty)) {
        out.config(&NO_PLUGIN, span, "`multus` has no `delegates`", NOTHING_TO_RUN, help);
    }
    if let Some(null) = elements.iter().find(|element| element.is_null()) {
        out.config(&NO_PLUGIN, null.span, "an element of `delegates` is null", NOTHING_TO_RUN, help);
    }
}

/// A delegate does not get the pod's device: Multus adds the device to the NAD's own config, where the delegate does not read it.
fn device(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    if !matches!(plugin.kind, "sriov" | "ib-sriov") {
        return;
    }
    match plugin.object.get("deviceID").filter(|fixed| fixed.value.as_str().is_some_and(|device| !device.is_empty())) {
        Some(fixed) => {
            let device = fixed.value.as_str().unwrap_or_default();
            let headline = format!("`deviceID` is fixed to {device}");
            let help = "name the plugin directly in the NAD, with a resourceName";
            out.config(&STATIC_DEVICE, fixed.key_span, headline, ONE_DEVICE, help);
        }
        None => {
            let headline = format!("`{}` is a delegate of `multus`, which passes it no device", plugin.kind);
            let note = "every pod that uses this network fails to start";
            out.config(&MISSING, plugin.type_member.value.span, headline, note, "name the plugin directly in the NAD");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn delegates_are_judged_like_any_plugin() {
        let sriov = r#""type":"sriov","name":"n","cniVersion":"1.0.0","deviceID":"0000:01:00.1""#;
        for (members, want) in [
            (
                format!(r#""delegates":[{{{sriov},"spoofchk":"true","logFile":"/etc/cron.d/x"}}]"#),
                &[
                    "nad/static-device-id warn /delegates/0/deviceID",
                    "sriov/on-off deny /delegates/0/spoofchk",
                    "sriov/host-file warn /delegates/0/logFile",
                ] as &[_],
            ),
            (
                format!(r#""delegates":[{{"name":"n","cniVersion":"1.0.0","plugins":[{{{sriov},"vlan":5000}}]}}]"#),
                &[
                    "nad/static-device-id warn /delegates/0/plugins/0/deviceID",
                    "sriov/vlan deny /delegates/0/plugins/0/vlan",
                ],
            ),
            (
                format!(r#""delegates":[{{"type":"multus","name":"n","delegates":[{{{sriov}}}]}}]"#),
                &["nad/config-too-large deny /delegates/0/delegates/0"],
            ),
            (
                r#""delegates":[{"name":"n","cniVersion":"1.0.0","type":"sriov"}]"#.to_owned(),
                &["nad/resource-name-missing deny /delegates/0/type"],
            ),
            (r#""delegates":[{"name":"n","type":"a/b"}]"#.to_owned(), &["nad/plugin-type deny /delegates/0/type"]),
            (r#""delegates":[{"name":"n"}]"#.to_owned(), &["nad/no-plugin deny /delegates/0"]),
            (r#""delegates":[null]"#.to_owned(), &["nad/no-plugin deny /delegates/0"]),
            (r#""delegates":[5]"#.to_owned(), &["nad/field-type deny /delegates/0"]),
            (r#""delegates":[]"#.to_owned(), &["nad/no-plugin deny /delegates"]),
            (r#""x":1"#.to_owned(), &["nad/no-plugin deny /type"]),
            // With a cluster network Multus ignores them.
            (r#""delegates":[{"type":"a/b"}],"clusterNetwork":"net""#.to_owned(), &[]),
            // Two spellings make one list, whose objects are merged.
            (
                format!(r#""Delegates":[{{{sriov}}}],"delegates":[{{"trust":"ON"}}]"#),
                &[
                    "nad/ambiguous-key warn /delegates",
                    "nad/static-device-id warn /Delegates/0/deviceID",
                    "sriov/on-off deny /delegates/0/trust",
                ],
            ),
        ] {
            let mut found = found(&format!(r#"{{"cniVersion":"1.0.0","type":"multus",{members}}}"#));
            let mut want: Vec<_> = want.to_vec();
            found.sort_unstable();
            want.sort_unstable();
            assert_eq!(found, want, "{members}");
        }
    }
}
