//! What ovs-cni and the OVS database accept for a port.

use super::super::finding::Findings;
use super::super::rule::rule;
use crate::cni::{CniObject, Plugin};
use crate::json::Value;
use crate::resources::{Nad, RESOURCE_NAME};

rule! { VLAN = "ovs/vlan", Deny;
    wrong: "`vlan` is above 4095.";
    why: "ovs-cni passes the number on without a check. The OVS database allows 0 to 4095 and rejects the transaction that adds the \
        pod's port, so every pod that uses the network fails to start.";
    fix: "Write a VLAN id from 1 to 4094, or remove `vlan`.";
}

rule! { TRUNK = "ovs/trunk", Deny;
    wrong: "`trunk` has an entry that ovs-cni or the OVS database rejects.";
    why: "An entry is one `id`, or a range with `minID` and `maxID`, both above 0. ovs-cni rejects a range that runs backwards, an id \
        above 4096 and a list without any VLAN, and panics on null; the database rejects every id above 4095. The port is then not \
        added, and every pod that uses the network fails to start. An entry without a VLAN beside valid ones is ignored, and is a \
        warning.";
    fix: "Give each entry an `id`, or a `minID` and a `maxID` that is not below it, from 1 to 4094.";
}

rule! { OFPORT = "ovs/ofport", Deny;
    wrong: "`ofport_request` is above 65279.";
    why: "The OVS database allows 1 to 65279, and rejects the port otherwise; every pod that uses the network fails to start. 0 \
        requests no port number.";
    fix: "Write a port number from 1 to 65279, or remove `ofport_request`.";
}

rule! { BRIDGE = "ovs/bridge", Warn;
    wrong: "The config names no `bridge`, and the NAD has no device to find one by.";
    why: "ovs-cni takes the bridge from the config, from its own file on the node, from the pod's `OvnPort`, or from the uplink of the \
        pod's device. Without any of them the pod fails (\"failed to get bridge name\"). nadmit can see only the first and the last, \
        so this is a warning.";
    fix: "Add `bridge`; or for hardware offload the annotation `k8s.v1.cni.cncf.io/resourceName`.";
}

rule! { VLAN_IGNORED = "ovs/vlan-ignored", Warn;
    wrong: "`vlan` has no effect beside `trunk`.";
    why: "The port becomes a trunk port, which has no VLAN of its own: ovs-cni uses `vlan` only if `trunk` is empty.";
    fix: "Remove `vlan` and add its id to `trunk`; or remove `trunk`.";
}

/// The largest VLAN id the database holds.
const LARGEST: i64 = 4095;

const PORT_REJECTED: &str = "the OVS database rejects the port; every pod that uses this network fails to start";
const TRUNK_REJECTED: &str = "the port cannot be added; every pod that uses this network fails to start";

/// The rules on one `ovs` plugin.
pub(crate) fn check(nad: &Nad<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let trunk = plugin.object.value_of("trunk");
    let entries = plugin.object.list_of("trunk");
    vlan(plugin, entries, out);
    if let Some(trunk) = trunk.filter(|_| !entries.is_empty()) {
        check_trunk(trunk, entries, out);
    }
    ofport(plugin, out);
    bridge(nad, plugin, out);
}

fn vlan(plugin: &Plugin<'_>, trunk: &[Value<'_>], out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("vlan") else { return };
    let Some(id) = value.as_int() else { return };
    if !trunk.is_empty() {
        let headline = format!("`vlan` is {id} and has no effect beside `trunk`");
        let note = "the port is a trunk port, for which ovs-cni ignores `vlan`";
        out.config(&VLAN_IGNORED, value.span, headline, note, "keep one of the two");
    } else if id > LARGEST {
        let headline = format!("`vlan` is {id}, expected 0 to {LARGEST}");
        out.config(&VLAN, value.span, headline, PORT_REJECTED, "write a VLAN id from 1 to 4094");
    }
}

/// The result of one trunk entry.
enum TrunkEntry {
    /// Some VLANs.
    Vlans,
    /// No VLAN, which ovs-cni accepts while another entry has one.
    Nothing,
    /// A value that cannot be decoded; another rule reports it.
    Unreadable,
    /// ovs-cni or the database rejects it.
    Refused(String),
}

fn check_trunk(trunk: &Value<'_>, entries: &[Value<'_>], out: &mut Findings<'_>) {
    let help = "give each entry an `id`, or a `minID` and a `maxID` from 1 to 4094";
    let verdicts: Vec<_> = entries.iter().map(|entry| (entry, read(entry))).collect();
    let nothing = verdicts.iter().all(|(_, verdict)| matches!(verdict, TrunkEntry::Nothing));
    if nothing {
        let headline = format!("`trunk` {} contains no VLAN", count(entries));
        out.config(&TRUNK, trunk.span, headline, TRUNK_REJECTED, help);
        return;
    }
    for (entry, verdict) in verdicts {
        match verdict {
            TrunkEntry::Refused(why) => {
                out.config(&TRUNK, entry.span, format!("a `trunk` entry {why}"), TRUNK_REJECTED, help);
            }
            TrunkEntry::Nothing => {
                let headline = format!("`trunk` entry {} contains no VLAN", members(entry));
                out.config(&TRUNK, entry.span, headline, "ovs-cni ignores the entry", help).at_most_warn();
            }
            TrunkEntry::Vlans | TrunkEntry::Unreadable => {}
        }
    }
}

fn count(entries: &[Value<'_>]) -> String {
    let shown: Vec<_> = entries.iter().take(4).map(members).collect();
    let more = if entries.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// An entry with the keys that ovs-cni reads: `{minID: 1, maxID: 5}`.
fn members(entry: &Value<'_>) -> String {
    let ids = CniObject::of(entry).map(|object| {
        let known = ["minID", "maxID", "id"].into_iter();
        known.filter_map(|key| object.int_of(key).map(|id| format!("{key}: {id}"))).collect::<Vec<_>>().join(", ")
    });
    format!("{{{}}}", ids.unwrap_or_default())
}

fn read(entry: &Value<'_>) -> TrunkEntry {
    if entry.is_null() {
        return TrunkEntry::Refused("is null, on which ovs-cni panics".to_owned());
    }
    let Some(object) = CniObject::of(entry) else { return TrunkEntry::Unreadable };
    let keys = ["minID", "maxID", "id"];
    if keys.into_iter().any(|key| object.value_of(key).is_some() && object.int_of(key).is_none_or(|id| id < 0)) {
        return TrunkEntry::Unreadable;
    }
    let (min, max, id) = (object.int_of("minID"), object.int_of("maxID"), object.int_of("id"));
    let from = min.unwrap_or(0);
    let range = from > 0 && max.is_some_and(|max| max > 0);
    // ovs-cni rejects ids above 4096; the database rejects 4096.
    for (key, id, limit) in
        [("minID", min, LARGEST + 1), ("maxID", max, if range { LARGEST } else { LARGEST + 1 }), ("id", id, LARGEST)]
    {
        if let Some(id) = id.filter(|id| *id > limit) {
            return TrunkEntry::Refused(format!("has `{key}` {id}, above {LARGEST}"));
        }
    }
    match max {
        Some(max) if max < from => TrunkEntry::Refused(format!("runs backwards, from `minID` {from} to `maxID` {max}")),
        _ if range || id.is_some() => TrunkEntry::Vlans,
        _ => TrunkEntry::Nothing,
    }
}

fn ofport(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("ofport_request") else { return };
    if let Some(port) = value.as_int().filter(|port| *port > 65279) {
        let headline = format!("`ofport_request` is {port}, expected 1 to 65279");
        let help = "write a port number from 1 to 65279, or remove `ofport_request`";
        out.config(&OFPORT, value.span, headline, PORT_REJECTED, help);
    }
}

fn bridge(nad: &Nad<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let given = |key: &str| plugin.object.value_of(key).is_some_and(|value| value.as_str() != Some(""));
    let annotated = nad.meta.annotation(RESOURCE_NAME).is_some_and(|name| !name.is_empty());
    if !given("bridge") && !given("deviceID") && !annotated {
        let headline = "neither `bridge` nor a device is set";
        let note = "pods fail to start unless a file on the node, or the pod, names the bridge";
        let help = format!("add `bridge`, or the annotation {RESOURCE_NAME} for hardware offload");
        out.config(&BRIDGE, plugin.type_member.value.span, headline, note, help);
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::{found, found_without_device};

    /// The findings in an `ovs` config with these members.
    fn ovs(members: &str) -> Vec<String> {
        found(&format!(r#"{{"cniVersion":"1.0.0","type":"ovs","bridge":"br1",{members}}}"#))
    }

    #[test]
    fn ports() {
        for (members, want) in [
            (r#""vlan":0"#, &[] as &[&str]),
            (r#""vlan":4095"#, &[]),
            (r#""vlan":4096"#, &["ovs/vlan deny /vlan"]),
            (r#""vlan":-1"#, &["nad/field-type deny /vlan"]),
            (r#""vlan":null,"trunk":[{"id":5}]"#, &[]),
            (r#""vlan":100,"trunk":[]"#, &[]),
            (r#""vlan":100,"trunk":[{"id":5}]"#, &["ovs/vlan-ignored warn /vlan"]),
            (r#""vlan":9999,"trunk":[{"id":5}]"#, &["ovs/vlan-ignored warn /vlan"]),
            (r#""ofport_request":0"#, &[]),
            (r#""ofport_request":65279"#, &[]),
            (r#""ofport_request":65280"#, &["ovs/ofport deny /ofport_request"]),
        ] {
            assert_eq!(ovs(members), want, "{members}");
        }
    }

    #[test]
    fn trunks() {
        for (trunk, want) in [
            ("null", ""),
            ("[]", ""),
            (r#"[{"id":5}]"#, ""),
            (r#"[{"id":0}]"#, ""),
            (r#"[{"id":4095}]"#, ""),
            (r#"[{"id":4096}]"#, "deny /trunk/0"),
            (r#"[{"minID":1,"maxID":4095}]"#, ""),
            (r#"[{"minID":5,"maxID":5}]"#, ""),
            (r#"[{"minID":1,"maxID":4096}]"#, "deny /trunk/0"),
            (r#"[{"id":1},{"minID":0,"maxID":4096}]"#, "warn /trunk/1"),
            (r#"[{"id":1},{"minID":0,"maxID":4097}]"#, "deny /trunk/1"),
            (r#"[{"id":1},{"minID":4096}]"#, "warn /trunk/1"),
            (r#"[{"id":1},{"minID":4097}]"#, "deny /trunk/1"),
            (r#"[{"minID":10,"maxID":5}]"#, "deny /trunk/0"),
            (r#"[{"minID":10,"maxID":0}]"#, "deny /trunk/0"),
            (r#"[{"minID":10,"maxID":5,"id":3}]"#, "deny /trunk/0"),
            (r#"[{"minID":5}]"#, "deny /trunk"),
            (r#"[{"maxID":5}]"#, "deny /trunk"),
            (r#"[{}]"#, "deny /trunk"),
            (r#"[{},{"minID":0,"maxID":7}]"#, "deny /trunk"),
            (r#"[{"id":7},{}]"#, "warn /trunk/1"),
            (r#"[{"id":7},null]"#, "deny /trunk/1"),
        ] {
            let want: Vec<_> = (!want.is_empty()).then(|| format!("ovs/trunk {want}")).into_iter().collect();
            assert_eq!(ovs(&format!(r#""trunk":{trunk}"#)), want, "{trunk}");
        }
        assert_eq!(ovs(r#""trunk":[{"id":"7"}]"#), ["nad/field-type deny /trunk/0/id"]);
    }

    #[test]
    fn only_a_few_entries_are_shown() {
        let entries = |count: usize| format!("[{}]", vec![r#"{"id":7}"#; count].join(","));
        let shown = |count: usize| {
            let text = entries(count);
            let document = crate::json::Document::parse(&text).unwrap();
            super::count(document.root.elements().unwrap())
        };
        assert_eq!(shown(4), "{id: 7}, {id: 7}, {id: 7}, {id: 7}");
        assert_eq!(shown(5), "{id: 7}, {id: 7}, {id: 7}, {id: 7}, …");
    }

    #[test]
    fn a_bridge_or_a_device() {
        let ovs = r#"{"cniVersion":"1.0.0","type":"ovs"}"#;
        assert_eq!(found(ovs), Vec::<String>::new());
        assert_eq!(found_without_device(ovs), ["ovs/bridge warn /type"]);
        assert_eq!(
            found_without_device(r#"{"cniVersion":"1.0.0","type":"ovs","bridge":""}"#),
            ["ovs/bridge warn /type"]
        );
        assert_eq!(found_without_device(r#"{"cniVersion":"1.0.0","type":"ovs","bridge":"br1"}"#), Vec::<String>::new());
    }
}
