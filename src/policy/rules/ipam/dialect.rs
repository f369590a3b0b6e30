//! Keys of other IPAM plugins in a section, and sections without a source of addresses.

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::{AddressSource, HOST_LOCAL_RANGE, Ipam};
use crate::cni::schema::find;
use crate::cni::{readers, same_key};
use crate::json::Member;

rule! { WRONG_DIALECT = "ipam/wrong-dialect", Deny;
    wrong: "The `ipam` section has the range keys of another IPAM plugin.";
    why: "Each IPAM plugin has its own keys for a range and ignores those of the others: host-local reads `subnet`, whereabouts reads \
        `range`, static reads `addresses`. With the wrong keys it has no address to hand out, and every pod fails with \"no IP ranges \
        specified\" or \"IPAM plugin returned missing IP config\".";
    fix: "Rename the keys to those of this plugin, or change `type` to the plugin that reads them.";
}

rule! { IGNORED = "ipam/ignored", Warn;
    wrong: "The IPAM plugin silently ignores a value.";
    why: "The network works, but not as written. whereabouts ignores a `range_start` or `range_end` outside of its range, an `exclude` \
        that has no range beside it, and addresses that a result of cniVersion 0.2.0 cannot hold. Every plugin ignores the keys of the \
        others, for example host-local an `exclude`, and dhcp its `routes`.";
    fix: "Correct the value so that it takes effect, or remove it.";
}

rule! { NO_ADDRESS = "ipam/no-address", Warn;
    wrong: "The `ipam` section has no address to hand out.";
    why: "Pods fail with \"IPAM plugin returned missing IP config\", unless the address comes from elsewhere: from the pod (for \
        static: capability `ips`, or `cni-args`), from the runtime (for host-local: capability `ipRanges`), or from a file on the node \
        (for whereabouts). static with the capability `ips` is made for that and is not reported.";
    fix: "Add the addresses: `addresses` for static, `subnet` for host-local, `range` for whereabouts.";
}

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
    let own = readers::ipam(ipam.kind).unwrap_or(readers::NOTHING);
    let is_foreign = move |member: &&Member<'_>| !member.value.is_null() && find(&[own], member).is_none();
    ipam.object.members.iter().filter(is_foreign).filter_map(move |member| {
        let (_, owner) = keys.iter().find(|(key, _)| same_key(&member.key, key))?;
        Some((member, *owner))
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
