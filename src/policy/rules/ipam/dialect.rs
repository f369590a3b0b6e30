//! Keys of other IPAM plugins in a section, and sections without a source of addresses.

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::{AddressSource, HOST_LOCAL_RANGE, Ipam};
use crate::cni::{readers, same_key};
use crate::json::Member;

rule! { WRONG_DIALECT = "ipam/wrong-dialect", Deny;
"the keys of one IPAM plugin in the section of another, so that it has no range";
"Each IPAM plugin has its own keys for a range and ignores those of the others: host-local reads `subnet`, whereabouts reads `range`, static reads `addresses`. With the wrong keys it has no address to hand out, and every pod fails with \"no IP ranges specified\" or \"IPAM plugin returned missing IP config\"." }

rule! { IGNORED = "ipam/ignored", Warn;
"a value that the IPAM plugin silently ignores";
"The network works, but not as written: whereabouts ignores a `range_start` or `range_end` outside of its range, an `exclude` without a range beside it, and addresses that a cniVersion 0.2.0 result cannot hold; every plugin ignores the keys of the others, for example `exclude` in host-local or `routes` in dhcp." }

rule! { NO_ADDRESS = "ipam/no-address", Warn;
"an IPAM section that has no address to hand out";
"Pods fail with \"IPAM plugin returned missing IP config\" unless the address comes from elsewhere: the pod (capability `ips` with static, or `cni-args`), the runtime (capability `ipRanges` with host-local), or a file on the node (whereabouts). static with the capability `ips` is meant for that and is not reported." }

/// The keys that define where addresses come from, in any plugin, and which plugin reads them.
const SOURCES: &[(&str, &str)] = &[
    ("subnet", "host-local"),
    ("ranges", "host-local"),
    ("range", "whereabouts"),
    ("ipRanges", "whereabouts"),
    ("addresses", "static"),
    ("rangeStart", "host-local"),
    ("rangeEnd", "host-local"),
    ("range_start", "whereabouts"),
    ("range_end", "whereabouts"),
];

/// The other keys that some IPAM plugin reads.
const OTHERS: &[(&str, &str)] = &[
    ("gateway", "host-local and whereabouts"),
    ("exclude", "whereabouts"),
    ("node_slice_size", "whereabouts"),
    ("routes", "host-local, static and whereabouts"),
    ("dns", "static and whereabouts"),
    ("resolvConf", "host-local"),
    ("dataDir", "host-local"),
    ("daemonSocketPath", "dhcp"),
    ("provide", "dhcp"),
    ("request", "dhcp"),
];

/// The rules on missing address sources and on keys of other plugins.
pub(super) fn check(ipam: &Ipam<'_>, source: AddressSource, out: &mut Findings<'_>) {
    let works_without = ipam.kind == "static" && ipam.may_be_supplied;
    if source == AddressSource::Given || works_without {
        ignored(ipam, out);
    } else if let Some((member, owner)) = foreign(ipam, SOURCES).next() {
        wrong_dialect(ipam, member, owner, out);
    } else {
        no_source(ipam, out);
    }
}

/// The members whose keys other plugins read, with who does. Null counts as absent.
fn foreign<'a>(
    ipam: &'a Ipam<'_>,
    keys: &'a [(&'static str, &'static str)],
) -> impl Iterator<Item = (&'a Member<'a>, &'static str)> {
    let own = readers::ipam(ipam.kind).unwrap_or_default();
    ipam.object.members.iter().filter(|member| !member.value.is_null()).filter_map(move |member| {
        let (_, owner) = keys.iter().find(|(key, _)| same_key(&member.key, key))?;
        let is_known = own.iter().any(|field| same_key(&member.key, field.key));
        (!is_known).then_some((member, *owner))
    })
}

fn wrong_dialect(ipam: &Ipam<'_>, member: &Member<'_>, owner: &str, out: &mut Findings<'_>) {
    let kind = ipam.kind;
    let headline = format!("`{}` is {}, a key of {owner}, not of {kind}", member.key, ipam.shown(member.value.span));
    let note =
        format!("{kind} ignores it and has no address to hand out; every pod that uses this network fails to start");
    let help = match (kind, owner) {
        ("host-local", "whereabouts") => "write `subnet`, `rangeStart`, `rangeEnd`, or change `type` to whereabouts",
        ("whereabouts", "host-local") => "write `range`, `range_start`, `range_end`, or change `type` to host-local",
        ("static", "host-local") => "write `addresses`, or change `type` to host-local",
        ("static", _) => "write `addresses`, or change `type` to whereabouts",
        _ => "write `subnet`, or change `type` to static",
    };
    let finding = ipam.report(out, &WRONG_DIALECT, member.key_span, headline, note, help);
    if ipam.may_be_supplied {
        finding.at_most_warn();
    }
}

fn ignored(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    for keys in [SOURCES, OTHERS] {
        for (member, owner) in foreign(ipam, keys) {
            let (key, kind) = (&member.key, ipam.kind);
            let headline = format!("`{key}` is {}, which {kind} ignores", ipam.shown(member.value.span));
            let note = format!("it is a key of {owner}; the setting has no effect");
            out.config(&IGNORED, member.key_span, headline, note, format!("remove `{key}`, or change `type`"));
        }
    }
}

fn no_source(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let span = ipam.object.value.span;
    match ipam.kind {
        "host-local" if !ipam.may_be_supplied => {
            let note = "every pod that uses this network fails to start (\"no IP ranges specified\")";
            let help = "add a `subnet`, for example 192.168.10.0/24";
            ipam.report(out, &HOST_LOCAL_RANGE, span, "host-local has no range", note, help);
        }
        "host-local" => {
            let note = "pods fail to start unless the runtime passes `ipRanges`, which Multus does not";
            let help = "add a `subnet`, for example 192.168.10.0/24";
            out.config(&NO_ADDRESS, span, "host-local has no range", note, help);
        }
        "static" => {
            let note = "pods fail to start unless they pass an address in `cni-args`";
            let help = "add `addresses`, or declare \"capabilities\": {\"ips\": true} and let pods request `ips`";
            out.config(&NO_ADDRESS, span, "static has no `addresses`", note, help);
        }
        _ => {
            let headline = format!("{} has neither a `range` nor `ipRanges`", ipam.kind);
            let note = "pods get no address and fail to start, unless a file on the node has a range";
            out.config(&NO_ADDRESS, span, headline, note, "add a `range`, for example 192.168.10.0/24");
        }
    }
}
