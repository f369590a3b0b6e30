//! Rules on a SriovNetworkNodePolicy by itself: what the operator's webhook denies, and what the operator ignores. In a cluster that
//! webhook comes first, if it is enabled; `nadmit check` shows the same before anything is applied.

use super::super::Facts;
use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::similar::suggest;
use crate::resources::raw::RawFields;
use crate::resources::{NamedVfs, NetworkNodePolicy, NicSelector, has_variable};
use crate::visible::truncated;

rule! { RESOURCE_NAME = "node-policy/resource-name", Deny in check;
    wrong: "`resourceName` of a node policy is empty, too long or has invalid characters.";
    why: "The operator puts its own domain in front of the name, and the device plugin offers the result. The operator's webhook denies \
        the policy; without that webhook no node offers the resource, and pods that request it stay Pending.";
    fix: "Write a name of at most 63 letters, digits, `_` and `-`, which starts and ends with a letter or digit, without a domain.";
    releases: "Releases of the operator before the middle of 2026 deny a name with `-`, too.";
}

rule! { NO_NIC = "node-policy/no-nic", Deny in check;
    wrong: "`nicSelector` has no condition, so the policy selects no device.";
    why: "An empty `nicSelector` selects nothing, not everything. The operator's webhook denies the policy; without that webhook the \
        operator configures no device for it.";
    fix: "Add `pfNames`, `rootDevices`, `vendor` or `deviceID`.";
}

rule! { VF_RANGE = "node-policy/vf-range", Deny in check;
    wrong: "The VFs in `pfNames` cannot be read, are reversed, or exceed `numVfs`.";
    why: "`ens1#0-3` means the VFs 0, 1, 2 and 3 of `ens1`. The operator's webhook denies any other form, a range whose end is before its \
        start, and a range that does not end before `numVfs`. Of two elements with the same PF the operator reads only the first.";
    fix: "Write `NAME#FIRST-LAST`, with LAST smaller than `numVfs`, and name each PF once.";
}

rule! { COMBINATION = "node-policy/combination", Deny in check;
    wrong: "A node policy has settings that exclude each other.";
    why: "The operator's webhook denies the policy. Without that webhook the devices do not get what the policy says: a VF that is bound \
        to `vfio-pci` has no RDMA device, and only a PF in mode `switchdev` has vDPA devices and a bridge.";
    fix: "Change or remove one of the two settings that the message names.";
    releases: "Newer releases of the operator deny `netFilter` beside other conditions, `eSwitchMode` and `bridge`; older ones accept \
        it, so that is a warning.";
}

/// What becomes of such a policy.
const DENIED: &str = "the operator's webhook denies the policy";

/// The rules on a policy.
pub(super) fn check(policy: &NetworkNodePolicy<'_>, facts: &Facts, out: &mut Findings<'_>) {
    if policy.is_ignored() {
        return;
    }
    // What stands in for a variable of a manifest is not known. In a cluster nothing replaces it any more.
    let is_known = |text: &str| facts.is_cluster || !has_variable(text);
    resource_name(policy, &is_known, out);
    combination(policy, out);
    let Some(nics) = policy.nic_selector() else { return };
    // The API server rejects a policy without the field.
    if nics.is_empty() && policy.spec.raw("nicSelector").is_some() {
        let note = "an empty nicSelector selects nothing; the operator's webhook denies the policy";
        let selector = policy.spec.raw("nicSelector").and_then(|raw| RawFields::parse(raw).ok()).unwrap_or_default();
        let misspelt =
            selector.keys().find_map(|key| suggest(key, CONDITIONS.into_iter().filter(|known| *known != key)));
        let help = match misspelt {
            Some(close) => format!("did you mean `{}`?", close.word),
            None => "add pfNames, rootDevices, vendor or deviceID".to_owned(),
        };
        out.object(&NO_NIC, "/spec/nicSelector", "`nicSelector` has no condition", note, help);
    }
    if policy.spec.raw("nicSelector").is_some_and(is_known) {
        vf_ranges(policy, &nics, out);
    }
}

/// The longest name that Kubernetes, and the operator's webhook, accept behind the domain.
const LONGEST_RESOURCE_NAME: usize = 63;

/// The conditions of a `nicSelector`.
const CONDITIONS: [&str; 5] = ["vendor", "deviceID", "rootDevices", "pfNames", "netFilter"];

fn resource_name(policy: &NetworkNodePolicy<'_>, is_known: &dyn Fn(&str) -> bool, out: &mut Findings<'_>) {
    let Some(name) = policy.spec.text("resourceName").value().filter(|name| is_known(name)) else { return };
    let is_end = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let problem = if name.is_empty() {
        "is empty"
    } else if name.contains('/') {
        "has a domain"
    } else if !name.chars().all(is_allowed) {
        "has invalid characters"
    } else if name.len() > LONGEST_RESOURCE_NAME {
        "has more than 63 characters"
    } else if !is_end(name.chars().next()) || !is_end(name.chars().last()) {
        "does not start and end with a letter or digit"
    } else {
        return;
    };
    let headline = format!("resourceName {:?} {problem}", truncated(name.as_ref(), 40));
    let own = name.rsplit_once('/').map(|(_, own)| own).filter(|own| !own.is_empty() && own.chars().all(is_allowed));
    let own = own
        .filter(|own| own.len() <= LONGEST_RESOURCE_NAME && is_end(own.chars().next()) && is_end(own.chars().last()));
    let help = match own {
        Some(own) => format!("write `{own}`: the operator adds its domain"),
        None if problem.starts_with("has more") => "write a name of at most 63 characters".to_owned(),
        None if problem.starts_with("does not") => "remove `_` and `-` from its start and end".to_owned(),
        None => "write a name of letters, digits, `_` and `-`, without a domain".to_owned(),
    };
    out.object(&RESOURCE_NAME, "/spec/resourceName", headline, DENIED, help);
}

fn vf_ranges(policy: &NetworkNodePolicy<'_>, nics: &NicSelector, out: &mut Findings<'_>) {
    let count = policy.integer("numVfs");
    for (at, entry) in nics.pf_names.iter().enumerate() {
        let pointer = format!("/spec/nicSelector/pfNames/{at}");
        let name = truncated(entry.name.as_ref(), 40);
        if nics.entry(|other| *other == *entry.name).is_some_and(|(first, _)| first < at) {
            let headline = format!("`pfNames` has PF `{name}` twice");
            let note = "the operator configures the VFs of the first element only";
            let help = "write one range, or a second policy with another resourceName";
            out.object(&VF_RANGE, pointer.clone(), headline, note, help).at_most_warn();
        }
        let (headline, help) = match (entry.vfs, count) {
            (NamedVfs::Unreadable, _) => (
                format!("the VFs of PF `{name}` cannot be read"),
                format!("write `{name}#FIRST-LAST`, as in `{name}#0-3`"),
            ),
            (NamedVfs::Range(from, to), _) if to < from => {
                (format!("the VFs {from}-{to} of PF `{name}` are reversed"), format!("write `{name}#{to}-{from}`"))
            }
            (NamedVfs::Range(from, to), Some(count)) if to >= count => (
                format!("the VFs {from}-{to} of PF `{name}` exceed numVfs {count}"),
                format!("write numVfs: {} or more, or a range that ends before {count}", to.saturating_add(1)),
            ),
            _ => continue,
        };
        out.object(&VF_RANGE, pointer, headline, DENIED, help);
    }
}

fn combination(policy: &NetworkNodePolicy<'_>, out: &mut Findings<'_>) {
    let link = policy.text("linkType");
    let is_infiniband = link.eq_ignore_ascii_case("ib");
    let is_switchdev = policy.text("eSwitchMode") == "switchdev";
    let is_vfio = policy.text("deviceType") == "vfio-pci";
    let vdpa = policy.text("vdpaType");
    let has_vdpa = matches!(vdpa.as_ref(), "virtio" | "vhost");
    let bridge = policy.spec.raw("bridge").and_then(|raw| RawFields::parse(raw).ok());
    let has_bridge = bridge.is_some_and(|bridge| bridge.raw("ovs").is_some());
    let pairs = [
        (
            is_vfio && policy.flag("isRdma") == Some(true),
            "/spec/isRdma",
            "`isRdma: true` excludes `deviceType: vfio-pci`",
        ),
        (is_infiniband && is_switchdev, "/spec/eSwitchMode", "`eSwitchMode: switchdev` excludes `linkType: ib`"),
        (has_vdpa && is_vfio, "/spec/vdpaType", "`vdpaType` excludes `deviceType: vfio-pci`"),
        (has_vdpa && !is_switchdev, "/spec/vdpaType", "`vdpaType` needs `eSwitchMode: switchdev`"),
        (has_bridge && !is_switchdev, "/spec/bridge", "`bridge` needs `eSwitchMode: switchdev`"),
        (
            has_bridge && policy.flag("externallyManaged") == Some(true),
            "/spec/bridge",
            "`bridge` excludes `externallyManaged: true`",
        ),
    ];
    for (_, pointer, headline) in pairs.into_iter().filter(|(is_wrong, ..)| *is_wrong) {
        out.object(&COMBINATION, pointer, headline, DENIED, "change or remove one of the two");
    }
    let Some(nics) = policy.nic_selector().filter(|nics| !nics.net_filter.is_empty()) else { return };
    let has_others = !nics.vendor.is_empty() || !nics.device_id.is_empty() || !nics.names_none();
    let beside = [
        (has_others, "other conditions"),
        (!policy.text("eSwitchMode").is_empty(), "`eSwitchMode`"),
        (has_bridge, "`bridge`"),
        (is_infiniband, "`linkType: ib`"),
    ];
    for (_, other) in beside.into_iter().filter(|(is_there, _)| *is_there) {
        let headline = format!("`netFilter` excludes {other}");
        let note = "the webhook of newer releases of the operator denies the policy";
        let finding = out.object(&COMBINATION, "/spec/nicSelector/netFilter", headline, note, "remove one of the two");
        finding.at_most_warn();
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Action, Facts, Policy, Subject, judge};
    use crate::resources::Object;

    /// Some rules deny before anything is applied, and only warn in a cluster, whatever the policy says.
    #[test]
    fn some_rules_only_warn_in_a_cluster() {
        let json = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodePolicy","metadata":{"name":"p","namespace":"op"},
            "spec":{"resourceName":"cx7","numVfs":8,"nodeSelector":{},"nicSelector":{}}}"#;
        let object = Object::read(json).unwrap().unwrap();
        let actions = |is_cluster: bool, policy: &str| {
            let facts = Facts { is_cluster, ..Facts::default() };
            let verdict = judge(&Subject::manifest(&object), &facts, &Policy::parse(policy).unwrap());
            verdict.findings.iter().map(|finding| (finding.rule.id, finding.action)).collect::<Vec<_>>()
        };
        let denies = "rules: {node-policy/no-nic: deny}";
        for (is_cluster, policy, want) in [
            (false, "{}", Some(Action::Deny)),
            (true, "{}", Some(Action::Warn)),
            (true, denies, Some(Action::Warn)),
            (true, "rules: {node-policy/no-nic: off}", None),
            (false, "rules: {node-policy/no-nic: warn}", Some(Action::Warn)),
        ] {
            let want: Vec<_> = want.into_iter().map(|action| ("node-policy/no-nic", action)).collect();
            assert_eq!(actions(is_cluster, policy), want, "{is_cluster} {policy}");
        }
    }
}
