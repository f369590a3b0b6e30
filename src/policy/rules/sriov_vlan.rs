//! The VLAN of a virtual function: id, priority and protocol, which sriov-cni checks against each other.

use super::super::finding::Findings;
use super::super::rule::rule;
use crate::cni::Plugin;

rule! { VLAN = "sriov/vlan", Deny;
    wrong: "`vlan` is not between 0 and 4094.";
    why: "sriov-cni checks the id before it configures the VF, and fails the pod (\"vlan id … invalid: value must be in the range \
        0-4094\").";
    fix: "Write a VLAN id from 1 to 4094, or 0 for no VLAN.";
}

rule! { QOS = "sriov/vlan-qos", Deny;
    wrong: "`vlanQoS` is not between 0 and 7, or there is no VLAN that it applies to.";
    why: "The priority is part of the VLAN tag. sriov-cni rejects it if there is no tag: without `vlan` even a priority of 0, and with \
        `vlan` 0 every other priority. Every pod that uses the network fails to start.";
    fix: "Write a priority from 0 to 7 and set `vlan` to the id that it applies to; or remove `vlanQoS`.";
}

rule! { PROTO = "sriov/vlan-proto", Deny;
    wrong: "`vlanProto` is not 802.1q or 802.1ad, or there is no VLAN that it applies to.";
    why: "sriov-cni knows these two protocols, in upper or lower case, and rejects `vlanProto` without `vlan`. The outer tag of \
        802.1ad needs an id other than 0. Every pod that uses the network fails to start.";
    fix: "Write \"802.1q\" or \"802.1ad\" and set `vlan` to the id of the tag; or remove `vlanProto`.";
    releases: "sriov-cni reads `vlanProto` from release 2.8 on. A wrong value is not reported if the policy names an older release \
        (`versions`).";
}

const REJECTED: &str = "sriov-cni rejects it; every pod that uses this network fails to start";

/// The three rules.
pub(crate) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let value = plugin.object.value_of("vlan");
    let vlan = match value {
        None => Vlan::Absent,
        Some(value) => value.as_int().map_or(Vlan::Unreadable, Vlan::Id),
    };
    if let (Vlan::Id(id), Some(value)) = (vlan, value)
        && !(0..=4094).contains(&id)
    {
        let headline = format!("`vlan` is {id}, expected 0 to 4094");
        out.config(&VLAN, value.span, headline, REJECTED, "write a VLAN id from 1 to 4094, or 0 for none");
    }
    qos(plugin, vlan, out);
    proto(plugin, vlan, out);
}

/// What sriov-cni finds in `vlan`.
#[derive(Clone, Copy)]
enum Vlan {
    Absent,
    /// A value it cannot decode; another rule reports it.
    Unreadable,
    Id(i64),
}

fn qos(plugin: &Plugin<'_>, vlan: Vlan, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("vlanQoS") else { return };
    let Some(qos) = value.as_int() else { return };
    let (headline, help) = match vlan {
        Vlan::Absent => (format!("`vlanQoS` is {qos} without a `vlan`"), "add `vlan`, or remove `vlanQoS`"),
        _ if !(0..=7).contains(&qos) => {
            (format!("`vlanQoS` is {qos}, expected 0 to 7"), "write a priority from 0 to 7")
        }
        Vlan::Id(0) if qos != 0 => (
            format!("`vlanQoS` is {qos} on `vlan` 0, which has no priority"),
            "set `vlan` to the id the priority is for, or `vlanQoS` to 0",
        ),
        _ => return,
    };
    out.config(&QOS, value.span, headline, REJECTED, help);
}

fn proto(plugin: &Plugin<'_>, vlan: Vlan, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("vlanProto") else { return };
    let Some(proto) = value.as_str() else { return };
    let outer = proto.eq_ignore_ascii_case("802.1ad");
    let (headline, help) = match vlan {
        Vlan::Absent => (format!("`vlanProto` is {proto:?} without a `vlan`"), "add `vlan`, or remove `vlanProto`"),
        _ if !outer && !proto.eq_ignore_ascii_case("802.1q") => (
            format!("`vlanProto` is {proto:?}, expected 802.1q or 802.1ad"),
            "write \"802.1q\" or \"802.1ad\", or remove it for 802.1q",
        ),
        Vlan::Id(0) if outer => (
            format!("`vlanProto` is {proto:?} on `vlan` 0, which has no outer tag"),
            "set `vlan` to the id of the outer tag, or `vlanProto` to \"802.1q\"",
        ),
        _ => return,
    };
    out.config(&PROTO, value.span, headline, REJECTED, help);
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    /// Every combination of values of the three keys: the first error of sriov-cni, and the findings. sriov-cni stops at its
    /// first error, so there may be more findings than it reports, but never none when it fails.
    #[test]
    fn agrees_with_sriov_cni_on_every_combination() {
        let vlans = [None, Some(-1), Some(0), Some(1), Some(4094), Some(4095)];
        let priorities = [None, Some(-1), Some(0), Some(3), Some(7), Some(8)];
        let protocols =
            [None, Some(""), Some("802.1q"), Some("802.1Q"), Some("802.1ad"), Some("802.1AD"), Some("qinq")];
        for vlan in vlans {
            for qos in priorities {
                for proto in protocols {
                    let mut config = serde_json::json!({"cniVersion": "1.0.0", "type": "sriov"});
                    vlan.inspect(|id: &i64| config["vlan"] = (*id).into());
                    qos.inspect(|priority: &i64| config["vlanQoS"] = (*priority).into());
                    proto.inspect(|name: &&str| config["vlanProto"] = (*name).into());
                    let found = found(&config.to_string());
                    match rejected_key(vlan, qos, proto) {
                        Some(rule) => assert!(found.iter().any(|line| line.starts_with(rule)), "{config}: {found:?}"),
                        None => assert_eq!(found, Vec::<String>::new(), "{config}"),
                    }
                }
            }
        }
    }

    /// The key that sriov-cni rejects first, in the order of its checks.
    fn rejected_key(vlan: Option<i64>, qos: Option<i64>, proto: Option<&str>) -> Option<&'static str> {
        let proto = proto.map(str::to_lowercase);
        let Some(vlan) = vlan else {
            return qos.map(|_| "sriov/vlan-qos ").or_else(|| proto.map(|_| "sriov/vlan-proto "));
        };
        match (qos.unwrap_or(0), proto.as_deref().unwrap_or("802.1q")) {
            _ if !(0..=4094).contains(&vlan) => Some("sriov/vlan "),
            (qos, _) if !(0..=7).contains(&qos) || (qos != 0 && vlan == 0) => Some("sriov/vlan-qos "),
            (_, "802.1q") => None,
            (_, "802.1ad") if vlan != 0 => None,
            _ => Some("sriov/vlan-proto "),
        }
    }

    #[test]
    fn reports_each_mistake_once_at_its_key() {
        for (config, want) in [
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":4095}"#, &["sriov/vlan deny /vlan"] as &[_]),
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":4095.0}"#, &["sriov/vlan deny /vlan"]),
            (
                r#"{"cniVersion":"1.0.0","type":"sriov","vlan":-1,"vlanQoS":9}"#,
                &["sriov/vlan deny /vlan", "sriov/vlan-qos deny /vlanQoS"],
            ),
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":null,"vlanQoS":0}"#, &["sriov/vlan-qos deny /vlanQoS"]),
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":null,"vlanQoS":null,"vlanProto":null}"#, &[]),
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":0,"vlanQoS":0,"vlanProto":"802.1Q"}"#, &[]),
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlanProto":"nonsense"}"#, &["sriov/vlan-proto deny /vlanProto"]),
            // Another rule reports a type that cannot be decoded; nothing is reported here.
            (r#"{"cniVersion":"1.0.0","type":"sriov","vlan":"100","vlanQoS":3}"#, &["nad/field-type deny /vlan"]),
            (
                r#"{"cniVersion":"1.0.0","type":"sriov","vlan":"100","vlanQoS":8}"#,
                &["nad/field-type deny /vlan", "sriov/vlan-qos deny /vlanQoS"],
            ),
            // The plugin reads the key that sorts last.
            (r#"{"cniVersion":"1.0.0","type":"sriov","VLAN":9999,"vlan":5}"#, &["nad/ambiguous-key warn /vlan"]),
            (
                r#"{"cniVersion":"1.0.0","plugins":[{"type":"tuning2"},{"type":"sriov","vlan":5000}]}"#,
                &["sriov/vlan deny /plugins/1/vlan"],
            ),
            (r#"{"type":"ptp","vlan":5000}"#, &[]),
        ] {
            assert_eq!(found(config), want, "{config}");
        }
    }
}
