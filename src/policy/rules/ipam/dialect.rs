//! What an IPAM section says in words its plugin does not know, and what it does not say at all.

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::{HOST_LOCAL_RANGE, Ipam, Source};
use crate::cni::{readers, same_key};
use crate::json::Member;

rule! { WRONG_DIALECT = "ipam/wrong-dialect", Deny;
"the keys of one IPAM plugin in the section of another, so that no range is left";
"Each IPAM plugin has words of its own for a range, and ignores those of the others: host-local reads `subnet`, whereabouts reads `range`, static reads `addresses`. \
With the wrong ones it has nothing to hand out, and every pod fails with \"no IP ranges specified\" or \"IPAM plugin returned missing IP config\"." }

rule! { IGNORED = "ipam/ignored", Warn;
"a value that the IPAM plugin drops without a word";
"The network works, but not as written: whereabouts drops a `range_start` or `range_end` that does not lie in its range, an `exclude` without a range of its own, and \
what cniVersion 0.2.0 has no room for; every plugin ignores the keys of the others, for instance `exclude` in host-local or `routes` in dhcp." }

rule! { NO_ADDRESS = "ipam/no-address", Warn;
"an IPAM section that can hand out no address by itself";
"Pods fail with \"IPAM plugin returned missing IP config\" unless something else brings an address: the pod (capability `ips` with static, or `cni-args`), the runtime \
(capability `ipRanges` with host-local), or a file on the node (whereabouts). static with the capability `ips` is made for that, and not found." }

/// The keys that say where addresses come from, in any of the dialects, and who reads them.
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

/// The other keys that mean something in one of them.
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

/// The rules on what is missing, and on what is there for somebody else.
pub(super) fn check(ipam: &Ipam<'_>, source: Source, out: &mut Findings<'_>) {
    let works_without = ipam.kind == "static" && ipam.is_supplied;
    if source == Source::Given || works_without {
        ignored(ipam, out);
    } else if let Some((member, owner)) = foreign(ipam, SOURCES).next() {
        wrong_dialect(ipam, member, owner, out);
    } else {
        nothing(ipam, out);
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
    let message = format!(
        "`{}` is {}, which {owner} would read: {kind} ignores it, has no address to hand out, and fails every pod",
        member.key,
        ipam.shown(member.value.span)
    );
    let help = match (kind, owner) {
        ("host-local", "whereabouts") => "write `subnet`, `rangeStart`, `rangeEnd`, or change `type` to whereabouts",
        ("whereabouts", "host-local") => "write `range`, `range_start`, `range_end`, or change `type` to host-local",
        ("static", "host-local") => "write `addresses`, or change `type` to host-local",
        ("static", _) => "write `addresses`, or change `type` to whereabouts",
        _ => "write `subnet`, or change `type` to static",
    };
    let finding = ipam.refuse(out, &WRONG_DIALECT, member.key_span, message, help);
    if ipam.is_supplied {
        finding.at_most_warn();
    }
}

fn ignored(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    for keys in [SOURCES, OTHERS] {
        for (member, owner) in foreign(ipam, keys) {
            let message = format!(
                "`{}` is {}, which {} ignores: it is a key of {owner}",
                member.key,
                ipam.shown(member.value.span),
                ipam.kind
            );
            out.config(&IGNORED, member.key_span, message, "take it away, or change `type`");
        }
    }
}

fn nothing(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let span = ipam.object.value.span;
    match ipam.kind {
        "host-local" if !ipam.is_supplied => {
            let message = "host-local has no range: it fails every pod with \"no IP ranges specified\"".to_owned();
            let help = "add a `subnet`: for instance 192.168.10.0/24";
            ipam.refuse(out, &HOST_LOCAL_RANGE, span, message, help);
        }
        "host-local" => {
            let message =
                "host-local has no range: pods fail unless the runtime passes `ipRanges`, which Multus does not";
            out.config(&NO_ADDRESS, span, message, "add a `subnet`: for instance 192.168.10.0/24");
        }
        "static" => {
            let message = "static has no `addresses`: pods fail unless they bring an address in `cni-args`";
            let help = "add `addresses`, or declare \"capabilities\": {\"ips\": true} and let pods ask for `ips`";
            out.config(&NO_ADDRESS, span, message, help);
        }
        _ => {
            let message = format!(
                "{} has neither a `range` nor `ipRanges`: pods get no address and fail, unless a file on the node has one",
                ipam.kind
            );
            out.config(&NO_ADDRESS, span, message, "add a `range`: for instance 192.168.10.0/24");
        }
    }
}
