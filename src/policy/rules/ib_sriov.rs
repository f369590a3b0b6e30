//! What ib-sriov-cni, the InfiniBand plugin, rejects.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::sriov;
use crate::cni::{Config, Plugin};
use crate::json::Value;

rule! { DHCP = "ib-sriov/dhcp", Deny;
    wrong: "`ipam.type` is dhcp, which ib-sriov-cni does not support.";
    why: "ib-sriov-cni configures the VF, and then fails the pod at the IPAM section (\"ipam type dhcp is not supported\"). Only with \
        `vfioPciMode` it skips IPAM, because there is no network interface to configure.";
    fix: "Use another IPAM plugin, such as `whereabouts`; or set `vfioPciMode` if the VFs are bound to vfio-pci.";
}

rule! { GUID = "ib-sriov/guid", Deny;
    wrong: "The GUID is not eight bytes between colons, or is all zeros.";
    why: "ib-sriov-cni checks the format before it sets the GUID of the VF, and fails the pod. If ib-kubernetes or a pod with the \
        capability `infinibandGUID` provides the GUID, this one is not used, and it is a warning.";
    fix: "Write eight bytes in hexadecimal, as in \"02:00:00:00:00:00:00:01\"; or remove it.";
}

rule! { LINK_STATE = "ib-sriov/link-state", Deny;
    wrong: "`link_state` is not auto, enable or disable.";
    why: "ib-sriov-cni knows these three words, in lower case only, and fails the pod for any other value (\"invalid link_state \
        value\").";
    fix: "Write \"auto\", \"enable\" or \"disable\"; or remove `link_state`.";
}

rule! { RDMA_ISOLATION = "ib-sriov/rdma-isolation", Warn;
    wrong: "`rdmaIsolation` is set, and the `rdma` plugin is chained too.";
    why: "Each of the two moves the RDMA device into the network namespace of the pod. The documentation of ib-sriov-cni forbids using \
        them together.";
    fix: "Remove `rdmaIsolation`, or the `rdma` plugin.";
}

/// The rules on one `ib-sriov` plugin.
pub(crate) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    dhcp(plugin, out);
    guid(plugin, out);
    sriov::link_state(plugin, &LINK_STATE, "ib-sriov-cni", out);
}

fn dhcp(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let Some((ipam, "dhcp")) = plugin.ipam() else { return };
    if plugin.object.is_true("vfioPciMode") {
        return;
    }
    if let Some(kind) = ipam.get("type") {
        let headline = "`ipam.type` is \"dhcp\", which ib-sriov-cni does not support";
        let note = "every pod that uses this network fails to start";
        let help =
            "use another IPAM plugin, such as whereabouts; or set `vfioPciMode` where the VFs are bound to vfio-pci";
        out.config(&DHCP, kind.value.span, headline, note, help);
    }
}

fn guid(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let object = plugin.object;
    // Arguments are a map to the plugin, so this key has one spelling.
    let argument = object.object_of("args").and_then(|args| args.object_of("cni")?.get_exact("guid"));
    let runtime = object.object_of("runtimeConfig").and_then(|runtime| runtime.value_of("infinibandGUID"));
    let given = |value: &Value<'_>| value.as_str().is_some_and(|text| !text.is_empty());
    let Some(value) = runtime.filter(|value| given(value)).or(argument.map(|member| &member.value)) else { return };
    let Some(guid) = value.as_str().filter(|guid| !guid.is_empty() && !is_guid(guid)) else { return };
    let from_pod = object.is_true("ibKubernetesEnabled") || sriov::from_pod(plugin, "infinibandGUID");
    let pods = sriov::failing_pods(from_pod);
    let is_zero = guid.bytes().all(|digit| matches!(digit, b'0' | b':'));
    let problem = if is_zero { "is all zeros" } else { "is not eight bytes between colons" };
    let headline = format!("GUID {guid:?} {problem}");
    let note = format!("ib-sriov-cni rejects it, and {pods} fails to start");
    let help = "write eight bytes in hexadecimal between colons, not all zero, as in \"02:00:00:00:00:00:00:01\"";
    let finding = out.config(&GUID, value.span, headline, note, help);
    if from_pod {
        finding.at_most_warn();
    }
}

fn is_guid(text: &str) -> bool {
    let byte = |pair: &str| pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    text.split(':').count() == 8 && text.split(':').all(byte) && text.bytes().any(|digit| !matches!(digit, b'0' | b':'))
}

/// The rule on a chain with an `ib-sriov` plugin.
pub(crate) fn check_chain(config: &Config<'_>, out: &mut Findings<'_>) {
    if !config.plugins.iter().any(|plugin| plugin.kind == "rdma") {
        return;
    }
    let isolated = config.plugins.iter().filter(|plugin| plugin.kind == "ib-sriov");
    for plugin in isolated.filter(|plugin| plugin.object.is_true("rdmaIsolation")) {
        let Some(value) = plugin.object.value_of("rdmaIsolation") else { continue };
        let headline = "`rdmaIsolation` is true beside a chained `rdma` plugin";
        let note = "both move the RDMA device into the pod, which ib-sriov-cni does not support";
        out.config(&RDMA_ISOLATION, value.span, headline, note, "keep one of the two");
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn denies_what_ib_sriov_rejects() {
        for (members, want) in [
            (r#""ipam":{"type":"dhcp"}"#, &["ib-sriov/dhcp deny /ipam/type"] as &[&str]),
            (r#""ipam":{"type":"dhcp"},"vfioPciMode":false"#, &["ib-sriov/dhcp deny /ipam/type"]),
            (r#""ipam":{"type":"dhcp"},"vfioPciMode":true"#, &[]),
            (r#""ipam":{}"#, &[]),
            (r#""link_state":"enable""#, &[]),
            (r#""link_state":"ENABLE""#, &["ib-sriov/link-state deny /link_state"]),
            (r#""args":{"cni":{"guid":"02:00:00:00:00:00:00:01"}}"#, &[]),
            (r#""args":{"cni":{"guid":"00:00:00:00:00:00:00:00"}}"#, &["ib-sriov/guid deny /args/cni/guid"]),
            (r#""args":{"cni":{"guid":"02:00:00:00:00:01"}}"#, &["ib-sriov/guid deny /args/cni/guid"]),
            (r#""args":{"cni":{"guid":"02-00-00-00-00-00-00-01"}}"#, &["ib-sriov/guid deny /args/cni/guid"]),
            (r#""args":{"cni":{"guid":"02:00:00:00:00:00:00:0g"}}"#, &["ib-sriov/guid deny /args/cni/guid"]),
            (r#""args":{"cni":{"guid":"2:0:0:0:0:0:0:1"}}"#, &["ib-sriov/guid deny /args/cni/guid"]),
            (r#""args":{"cni":{"GUID":"x"}}"#, &[]),
            (r#""args":{"cni":{"guid":""}}"#, &[]),
            (r#""args":{"cni":{"guid":"x"}},"ibKubernetesEnabled":true"#, &["ib-sriov/guid warn /args/cni/guid"]),
            (
                r#""runtimeConfig":{"infinibandGUID":"x"},"args":{"cni":{"guid":"y"}}"#,
                &["ib-sriov/guid deny /runtimeConfig/infinibandGUID"],
            ),
            (
                r#""runtimeConfig":{"infinibandGUID":"x"},"capabilities":{"infinibandGUID":true}"#,
                &["ib-sriov/guid warn /runtimeConfig/infinibandGUID"],
            ),
            (r#""rdmaIsolation":true"#, &[]),
        ] {
            let config = format!(r#"{{"cniVersion":"1.0.0","type":"ib-sriov",{members}}}"#);
            assert_eq!(found(&config), want, "{config}");
        }
    }

    #[test]
    fn isolation_once() {
        for (isolation, next, want) in [
            ("true", "rdma", &["ib-sriov/rdma-isolation warn /plugins/0/rdmaIsolation"] as &[&str]),
            ("false", "rdma", &[]),
            ("true", "tuning", &[]),
        ] {
            let config = format!(
                r#"{{"cniVersion":"1.0.0","plugins":[{{"type":"ib-sriov","rdmaIsolation":{isolation}}},{{"type":"{next}"}}]}}"#
            );
            assert_eq!(found(&config), want, "{config}");
        }
    }
}
