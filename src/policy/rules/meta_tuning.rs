//! What the `tuning` plugin rejects.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::plugin::SMALLEST_MTU;
use super::sriov;
use crate::cni::{CniObject, Plugin};
use crate::json::Span;

rule! { TUNING = "meta/tuning", Deny;
    wrong: "`tuning` has a sysctl outside of `net.`, or an invalid MAC address or MTU.";
    why: "The plugin writes only sysctls below /proc/sys/net, which belong to the pod alone, and fails the pod for every other one \
        (\"invalid net sysctl key\"). It parses `mac` when a pod starts, and fails the pod if it cannot. It panics if there are \
        sysctls in `args` and no `sysctl` beside them.";
    fix: "Use sysctls that start with `net.`; set others in the pod's securityContext.sysctls.";
}

/// The rule on one `tuning` plugin.
pub(super) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let arguments = plugin.object.object_of("args").and_then(|args| args.object_of("cni"));
    let argument = |key: &str| arguments.and_then(|arguments| arguments.value_of(key));
    let sysctl = plugin.object.object_of("sysctl");
    let in_arguments = argument("sysctl").and_then(CniObject::of).filter(|map| !map.members.is_empty());
    for member in [sysctl, in_arguments].iter().flatten().flat_map(|map| map.members) {
        check_sysctl(&member.key, member.key_span, out);
    }
    if let Some(map) = in_arguments
        && plugin.object.value_of("sysctl").is_none()
    {
        let first = map.members.first().map_or("", |member| &member.key);
        let headline = format!("`args.cni.sysctl` sets {first:?}, but `sysctl` is absent");
        let note = "the tuning plugin panics; every pod that uses this network fails to start";
        out.config(&TUNING, map.value.span, headline, note, "add a `sysctl`, which may be empty");
    }
    // Values in the arguments take precedence.
    if let Some(value) = argument("mac").or_else(|| sriov::configured_mac(plugin)) {
        sriov::mac(plugin, value, &TUNING, "the tuning plugin", out);
    }
    if argument("mtu").is_none()
        && let Some(value) = plugin.object.value_of("mtu")
        && let Some(mtu) = value.as_int().filter(|mtu| *mtu != 0 && *mtu < SMALLEST_MTU)
    {
        let headline = format!("`mtu` is {mtu}, expected at least {SMALLEST_MTU}");
        let note = "the kernel rejects it; every pod that uses this network fails to start";
        let finding = out.config(&TUNING, value.span, headline, note, "write the MTU in bytes");
        // Interfaces of other kinds than Ethernet may have a smaller one.
        if mtu > 0 {
            finding.at_most_warn();
        }
    }
}

fn check_sysctl(key: &str, span: Span, out: &mut Findings<'_>) {
    // The plugin treats a dot as a slash and merges repeated ones.
    let mut steps = key.split(['.', '/']).filter(|step| !step.is_empty());
    let first = steps.next().unwrap_or_default();
    if first == "net" && steps.next().is_some() {
        return;
    }
    let headline = format!("sysctl {key:?} is not below `net.`");
    let note = "the tuning plugin rejects it; every pod that uses this network fails to start";
    let help = "set it in the pod's securityContext.sysctls, or use one that starts with `net.`";
    let finding = out.config(&TUNING, span, headline, note, help);
    // The pod chooses the interface name that replaces IFNAME.
    if first.contains("IFNAME") {
        finding.at_most_warn();
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn denies_what_tuning_rejects() {
        for (members, want) in [
            (r#""sysctl":{"net.ipv4.conf.IFNAME.arp_notify":"1","net/ipv4/ip_forward":"1"}"#, &[] as &[&str]),
            (r#""sysctl":{"net/../kernel/x":"1",".net..core.somaxconn":"500"}"#, &[]),
            (r#""mtu":0"#, &[]),
            (r#""mtu":68"#, &[]),
            (r#""mtu":67"#, &["meta/tuning warn /plugins/1/mtu"]),
            (r#""mtu":-1"#, &["meta/tuning deny /plugins/1/mtu"]),
            (r#""sysctl":{"kernel.msgmax":"1"}"#, &["meta/tuning deny /plugins/1/sysctl/kernel.msgmax"]),
            (r#""sysctl":{"net":"1"}"#, &["meta/tuning deny /plugins/1/sysctl/net"]),
            (r#""sysctl":{"network.x":"1"}"#, &["meta/tuning deny /plugins/1/sysctl/network.x"]),
            (r#""sysctl":{"IFNAME.x":"1"}"#, &["meta/tuning warn /plugins/1/sysctl/IFNAME.x"]),
            (r#""args":{"cni":{"sysctl":{"net.x.y":"1"}}}"#, &["meta/tuning deny /plugins/1/args/cni/sysctl"]),
            (r#""args":{"cni":{"sysctl":{"net.x.y":"1"}}},"sysctl":{}"#, &[]),
            (r#""args":{"cni":{"sysctl":{}}}"#, &[]),
            (
                r#""args":{"cni":{"sysctl":{"vm.x":"1"}}},"sysctl":{}"#,
                &["meta/tuning deny /plugins/1/args/cni/sysctl/vm.x"],
            ),
            (r#""mac":"02:00:00:00:00:01","mtu":9000"#, &[]),
            (r#""mac":"02:00:00""#, &["meta/tuning deny /plugins/1/mac"]),
            (r#""mac":"02:00:00","capabilities":{"mac":true}"#, &["meta/tuning warn /plugins/1/mac"]),
            (r#""mac":"02:00:00","args":{"cni":{"mac":"02:00:00:00:00:01"}}"#, &[]),
            (r#""args":{"cni":{"mac":"02"}}"#, &["meta/tuning deny /plugins/1/args/cni/mac"]),
            (r#""mtu":-1"#, &["meta/tuning deny /plugins/1/mtu"]),
        ] {
            let config =
                format!(r#"{{"cniVersion":"1.0.0","plugins":[{{"type":"sriov"}},{{"type":"tuning",{members}}}]}}"#);
            assert_eq!(found(&config), want, "{members}");
        }
    }
}
