//! Networks of OVN-Kubernetes. Its controllers read the config from the NAD itself, not as Multus passes it on, and create no
//! network from one that they reject. A single config they decode from the text; of a list, the CNI library hands them a copy.

use std::net::IpAddr;
use std::str::FromStr;

use super::super::Action;
use super::super::finding::{Findings, Repair};
use super::super::ratchet::{JudgedObject, Ratchet};
use super::super::rule::rule;
use crate::cni::releases::Versions;
use crate::cni::schema::Reading;
use crate::cni::{CniObject, Config, OVN_PLUGIN, Plugin, edit, fold, readers};
use crate::json::{Span, Value};
use crate::resources::Nad;

rule! { NAD_NAME = "ovn/nad-name", Patch + repairs;
    wrong: "`netAttachDefName` is not the namespace and the name of the NAD.";
    why: "OVN-Kubernetes compares `netAttachDefName` with the NAD that it is written in. If they differ it rejects the NAD \
        (\"net-attach-def name is inconsistent with config\") and creates no network, and pods that use it fail to start. nadmit \
        writes the right name.";
    fix: "Write NAMESPACE/NAME of this NAD.";
}

rule! { CONFIG = "ovn/config", Deny;
    wrong: "OVN-Kubernetes rejects the config.";
    why: "OVN-Kubernetes creates no network for it, and pods that use it fail to start. Its controllers accept the topologies layer2, \
        layer3 and localnet; a `name` other than `default` and `ovn-kubernetes`; and neither `ipam` nor a second plugin, because \
        addresses come from `subnets`. A primary network of topology layer2 needs `subnets`; layer3 has no persistent addresses; \
        localnet has only the role secondary, and no `joinSubnet`. `reservedSubnets`, `infrastructureSubnets` and `defaultGatewayIPs` \
        are accepted only in layer2.";
    fix: "Change or remove the key that the message names.";
    releases: "OVN-Kubernetes reads `reservedSubnets`, `infrastructureSubnets` and `defaultGatewayIPs` from release 1.2 on: outside of \
        layer2 they are denied if the policy names such a release (`versions`), and a warning if it names none.";
}

const REJECTED: &str = "OVN-Kubernetes rejects the NAD and creates no network; every pod that uses it fails to start";

/// The rules on a NAD whose first plugin is that of OVN-Kubernetes.
pub(crate) fn check(nad: &Nad<'_>, config: &Config<'_>, out: &mut Findings<'_>) {
    let Some(view) = ControllerView::of(config) else { return };
    let plugin = &view.plugin();
    if let (true, Some(second)) = (config.is_list, config.plugins.get(1)) {
        let headline = format!("`{}` follows `{OVN_PLUGIN}` in the list", second.kind);
        out.config(&CONFIG, second.type_member.value.span, headline, REJECTED, "keep only the first plugin");
    }
    if let Some(ipam) = plugin.object.object_of("ipam")
        && let Some(kind) = ipam.str_of("type").filter(|kind| !kind.is_empty())
    {
        let span = ipam.value.span;
        let headline = format!("`ipam` of type {kind:?} is not supported");
        out.config(&CONFIG, span, headline, REJECTED, "remove `ipam`, and write `subnets` for addresses");
    }
    // Without a topology, the NAD is about the cluster's own network.
    let Some((topology, place)) = text(plugin, "topology") else { return };
    if !["layer2", "layer3", "localnet"].contains(&topology) {
        let headline = format!("`topology` is {topology:?}, which OVN-Kubernetes does not know");
        out.config(&CONFIG, place, headline, REJECTED, "write layer2, layer3 or localnet");
        return;
    }
    name(config, plugin, out);
    nad_name(nad, config, plugin, out);
    role(plugin, topology, out);
    keys(plugin, topology, out);
    subnets(plugin, topology, out);
}

/// A plugin of OVN-Kubernetes as its controllers decode it.
pub(in crate::policy) struct ControllerView<'d> {
    plugin: Plugin<'d>,
    /// The config, if the order in which a repeated key is decoded matters.
    decoded: Option<Value<'static>>,
}

impl<'d> ControllerView<'d> {
    /// That of a NAD; `None` if the controllers ignore it.
    pub(in crate::policy) fn of(config: &Config<'d>) -> Option<Self> {
        let plugin = *config.plugins.first()?;
        let kind = plugin.kind_in_text.filter(|_| !config.is_list).unwrap_or(plugin.kind);
        let is_text = !config.is_list && fold::repeats(plugin.written.value);
        let tables = [readers::plugin(OVN_PLUGIN).unwrap_or(readers::NOTHING), readers::COMMON];
        let decoded = is_text.then(|| fold::object(&tables, plugin.written.value, Reading::Text));
        (kind == OVN_PLUGIN).then_some(Self { plugin, decoded })
    }

    pub(in crate::policy) fn plugin(&self) -> Plugin<'_> {
        let object = self.decoded.as_ref().and_then(CniObject::of);
        object.map_or(self.plugin, |object| self.plugin.with_object(object))
    }

    /// The name of the network. That of a list is beside its plugins.
    pub(in crate::policy) fn name<'v>(config: &Config<'v>, plugin: &Plugin<'v>) -> Option<&'v Value<'v>> {
        let holder = if config.is_list { config.root } else { plugin.object };
        holder.value_of("name")
    }
}

/// Whether OVN-Kubernetes creates no network from a config, whatever others there are.
pub(in crate::policy) fn is_rejected(nad: &Nad<'_>, config: &Config<'_>) -> bool {
    let versions = Versions::default();
    let mut out = Findings::new(JudgedObject::Status, Some(config.document), Ratchet::Off, &versions);
    check(nad, config, &mut out);
    out.into_parts().0.iter().any(|found| found.rule == &CONFIG && found.ceiling == Action::Deny)
}

/// A text that is not empty, and where it is written.
fn text<'d>(plugin: &Plugin<'d>, key: &str) -> Option<(&'d str, Span)> {
    let value: &'d Value<'d> = plugin.object.value_of(key)?;
    Some((value.as_str().filter(|text| !text.is_empty())?, value.span))
}

fn name(config: &Config<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let value = ControllerView::name(config, plugin);
    let span = value.map_or(plugin.type_member.value.span, |value| value.span);
    let headline = match value.map(Value::as_str) {
        None | Some(Some("")) => "the network has no `name`".to_owned(),
        Some(Some(name @ ("default" | "ovn-kubernetes"))) => format!("`name` is {name:?}, which is reserved"),
        Some(_) => return,
    };
    out.config(&CONFIG, span, headline, REJECTED, "set `name` to the name of the network");
}

fn nad_name(nad: &Nad<'_>, config: &Config<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let (namespace, name) = (nad.meta.namespace.as_ref(), nad.meta.name.as_ref());
    let value = plugin.object.value_of("netAttachDefName");
    // A value of another type has a rule of its own.
    let Some(found) = value.map_or(Some(""), Value::as_str) else { return };
    let is_right = match (namespace, name) {
        // The API server generates the name.
        (_, "") => true,
        // A manifest may leave the namespace to whoever applies it.
        ("", name) => found.split_once('/').is_some_and(|(_, found)| found == name),
        (namespace, name) => found.split_once('/') == Some((namespace, name)),
    };
    if is_right {
        return;
    }
    let wanted = format!("{}/{name}", if namespace.is_empty() { "<namespace>" } else { namespace });
    let headline = match found {
        "" => format!("`netAttachDefName` is missing, expected {wanted:?}"),
        found => format!("`netAttachDefName` is {found:?}, expected {wanted:?}"),
    };
    let span = value.map_or(plugin.type_member.value.span, |value| value.span);
    if namespace.is_empty() {
        // At admission the namespace is known, and the name is repaired.
        let help = format!("write {wanted}, with the namespace that the NAD is applied to");
        out.config(&NAD_NAME, span, headline, REJECTED, help).at_most_warn();
    } else {
        let finding = out.config(&NAD_NAME, span, headline, REJECTED, format!("it becomes {wanted}"));
        let key = "netAttachDefName";
        let reading = if config.is_list { Reading::Copy } else { Reading::Text };
        let edit = match plugin.written.get_string(key, reading) {
            Some(read) => Some(edit::replace_string(read, &wanted)),
            None => edit::set_string(config.document, plugin.written, key, &wanted, plugin.type_member),
        };
        finding.with_repairs(edit.map(Repair::Config));
    }
}

fn role(plugin: &Plugin<'_>, topology: &str, out: &mut Findings<'_>) {
    let Some((role, span)) = text(plugin, "role") else { return };
    let headline = match (role, topology) {
        ("secondary", _) => return,
        (_, "localnet") => format!("`role` is {role:?}, but localnet is always secondary"),
        ("primary", "layer2") if text(plugin, "subnets").is_none() => {
            "a primary network of layer2 has no `subnets`".to_owned()
        }
        ("primary", _) => return,
        _ => format!("`role` is {role:?}, expected primary or secondary"),
    };
    let help = match topology {
        "localnet" => "remove `role`",
        _ if role == "primary" => "add `subnets`",
        _ => "write primary or secondary",
    };
    out.config(&CONFIG, span, headline, REJECTED, help);
}

/// Keys that a topology does not support.
fn keys(plugin: &Plugin<'_>, topology: &str, out: &mut Findings<'_>) {
    let mut reject = |key: &str, span| {
        let headline = format!("`{key}` is not supported in the topology {topology}");
        out.config(&CONFIG, span, headline, REJECTED, format!("remove `{key}`"));
    };
    if topology == "layer3" && plugin.object.is_true("allowPersistentIPs") {
        let span =
            plugin.object.value_of("allowPersistentIPs").map_or(plugin.type_member.value.span, |value| value.span);
        reject("allowPersistentIPs", span);
    }
    if let (true, Some((_, span))) = (topology == "localnet", text(plugin, "joinSubnet")) {
        reject("joinSubnet", span);
    }
    if topology != "layer2" {
        for key in ["reservedSubnets", "infrastructureSubnets", "defaultGatewayIPs"] {
            if let Some((_, span)) = text(plugin, key) {
                reject(key, span);
            }
        }
    }
}

/// Each subnet is a network, in layer3 with the length of the part that a node gets.
fn subnets(plugin: &Plugin<'_>, topology: &str, out: &mut Findings<'_>) {
    for key in ["subnets", "excludeSubnets"] {
        let Some((list, span)) = text(plugin, key).filter(|(list, _)| !list.trim().is_empty()) else { continue };
        let has_host_length = key == "subnets" && topology == "layer3";
        // Layer3 networks exclude nothing, and the key is not read.
        if key == "excludeSubnets" && topology == "layer3" {
            continue;
        }
        if let Some(wrong) = list.split(',').map(str::trim).find(|subnet| !is_subnet(subnet, has_host_length)) {
            let headline = format!("`{key}` has {wrong:?}, which is not a subnet");
            let help = match has_host_length {
                true => "write subnets as in 10.128.0.0/16/24, separated by commas",
                false => "write subnets as in 10.100.0.0/24, separated by commas",
            };
            out.config(&CONFIG, span, headline, REJECTED, help);
        }
    }
}

fn is_subnet(text: &str, has_host_length: bool) -> bool {
    let mut parts = text.split('/');
    let (Some(address), Some(length)) = (parts.next(), parts.next()) else { return false };
    let Ok(address) = IpAddr::from_str(address) else { return false };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let Some(length) = number(length).filter(|length| *length <= bits) else { return false };
    let (host, rest) = (parts.next(), parts.next());
    if rest.is_some() || (host.is_some() && !has_host_length) {
        return false;
    }
    if !has_host_length {
        return true;
    }
    let Some(host) = host.map_or(Some(if address.is_ipv4() { 24 } else { 64 }), number) else { return false };
    host > length && if address.is_ipv4() { host <= 32 } else { host == 64 }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules::testing::found_without_device;
    use crate::policy::{Facts, Policy, Subject, judge};
    use crate::resources::Object;

    fn of(members: &str) -> Vec<String> {
        found_without_device(&format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"{OVN_PLUGIN}","netAttachDefName":"apps/net",{members}}}"#
        ))
    }

    #[test]
    fn configs_that_the_controllers_reject() {
        let table: &[(&str, &[&str])] = &[
            (r#""topology":"layer2""#, &[]),
            (r#""topology":"layer2","subnets":"10.100.0.0/24, fd00::/64","role":"primary""#, &[]),
            (r#""topology":"layer3","subnets":"10.128.0.0/16/24""#, &[]),
            (r#""topology":"layer3","subnets":"10.128.0.0/16""#, &[]),
            (r#""topology":"localnet","vlanID":10,"allowPersistentIPs":true,"role":"secondary""#, &[]),
            (r#""topology":"Layer2""#, &["ovn/config deny /topology"]),
            (r#""topology":"layer2","role":"primary""#, &["ovn/config deny /role"]),
            (r#""topology":"layer2","role":"other""#, &["ovn/config deny /role"]),
            (r#""topology":"localnet","role":"primary""#, &["ovn/config deny /role"]),
            (r#""topology":"localnet","joinSubnet":"100.65.0.0/16""#, &["ovn/config deny /joinSubnet"]),
            (r#""topology":"layer3","allowPersistentIPs":true"#, &["ovn/config deny /allowPersistentIPs"]),
            (r#""topology":"layer3","reservedSubnets":"10.0.0.0/24""#, &["ovn/config warn /reservedSubnets"]),
            (r#""topology":"layer2","subnets":"10.100.0.0""#, &["ovn/config deny /subnets"]),
            (r#""topology":"layer2","subnets":"10.100.0.0/16/24""#, &["ovn/config deny /subnets"]),
            (r#""topology":"layer2","excludeSubnets":"x""#, &["ovn/config deny /excludeSubnets"]),
            (r#""topology":"layer2","ipam":{"type":"dhcp"}"#, &["ovn/config deny /ipam"]),
            (r#""topology":"layer2","ipam":{}"#, &[]),
            (r#""role":"anything""#, &[]),
        ];
        for (members, want) in table {
            assert_eq!(of(members), *want, "{members}");
        }
    }

    /// A single config is decoded in the order of its text, a plugin of a list in sorted order; the plugin itself always reads the latter.
    #[test]
    fn repeated_keys_as_the_controllers_decode_them() {
        let single = |members: &str| {
            let mut found = of(members);
            found.retain(|finding| finding.starts_with("ovn/"));
            found
        };
        let table: &[(&str, &[&str])] = &[
            (r#""topology":"layer9","Topology":"layer2""#, &[]),
            (r#""Topology":"layer2","topology":"layer9""#, &["ovn/config deny /topology"]),
            (r#""topology":"layer2","Topology":"layer9""#, &["ovn/config deny /Topology"]),
            (r#""topology":"layer2","Topology":null"#, &[]),
            (r#""topology":"layer2","Name":"default""#, &["ovn/config deny /Name"]),
            (r#""topology":"layer2","ipam":{"type":"dhcp"},"IPAM":{"type":""}"#, &[]),
            (r#""topology":"layer2","IPAM":{},"ipam":{"type":"dhcp"}"#, &["ovn/config deny /ipam"]),
            (r#""topology":"layer2","NetAttachDefName":"x/y""#, &["ovn/nad-name patch /NetAttachDefName"]),
            (r#""topology":"layer9","Type":"macvlan""#, &[]),
        ];
        for (members, want) in table {
            assert_eq!(single(members), *want, "{members}");
        }
        let list = found_without_device(&format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","plugins":[{{"type":"{OVN_PLUGIN}","netAttachDefName":"apps/net","topology":"layer9","Topology":"layer2"}}]}}"#
        ));
        assert!(list.contains(&"ovn/config deny /plugins/0/topology".to_owned()), "{list:?}");
    }

    #[test]
    fn name_and_chain() {
        let list = |name: &str, second: &str| {
            found_without_device(&format!(
                r#"{{"cniVersion":"1.0.0",{name}"plugins":[{{"type":"{OVN_PLUGIN}","topology":"layer2","netAttachDefName":"apps/net"}}{second}]}}"#
            ))
        };
        assert_eq!(list(r#""name":"blue","#, ""), Vec::<String>::new());
        assert_eq!(list("", ""), ["ovn/config deny /plugins/0/type"]);
        for reserved in ["default", "ovn-kubernetes"] {
            assert_eq!(list(&format!(r#""name":"{reserved}","#), ""), ["ovn/config deny /name"]);
        }
        assert_eq!(list(r#""name":"blue","#, r#",{"type":"tuning"}"#), ["ovn/config deny /plugins/1/type"]);
    }

    #[test]
    fn name_of_the_nad_is_repaired() {
        let of = |members: &str| {
            found_without_device(&format!(
                r#"{{"cniVersion":"1.0.0","name":"blue","type":"{OVN_PLUGIN}","topology":"layer2"{members}}}"#
            ))
        };
        assert_eq!(of(""), ["ovn/nad-name patch /type"]);
        assert_eq!(of(r#","netAttachDefName":"other/net""#), ["ovn/nad-name patch /netAttachDefName"]);
        assert_eq!(of(r#","netAttachDefName":"apps/net""#), Vec::<String>::new());
    }

    /// In a manifest without a namespace only the name can be compared, and nothing is denied that admission repairs.
    #[test]
    fn without_a_namespace_the_name_is_only_a_warning() {
        for (written, want) in [("", Some(Action::Warn)), ("x/other", Some(Action::Warn)), ("x/net", None)] {
            let config = serde_json::json!({
                "cniVersion": "1.0.0", "name": "blue", "type": OVN_PLUGIN, "topology": "layer2", "netAttachDefName": written,
            });
            let json = serde_json::json!({
                "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "net"}, "spec": {"config": config.to_string()},
            })
            .to_string();
            let object = Object::read(&json).unwrap().unwrap();
            let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
            let found = verdict.findings.iter().find(|finding| finding.rule == &NAD_NAME);
            assert_eq!(found.map(|finding| finding.action), want, "{written:?}");
        }
    }

    #[test]
    fn subnets_as_the_controllers_read_them() {
        for (text, layer2, layer3) in [
            ("10.0.0.0/16", true, true),
            ("10.0.0.0/24", true, false),
            ("10.0.0.0/16/24", false, true),
            ("10.0.0.0/16/16", false, false),
            ("10.0.0.0/16/33", false, false),
            ("fd00::/48/64", false, true),
            ("fd00::/48/65", false, false),
            ("fd00::/64", true, false),
            ("10.0.0.0/33", false, false),
            ("10.0.0.0/+8", false, false),
            ("10.0.0.0", false, false),
            ("10.0.0.0/8/16/24", false, false),
            ("010.0.0.0/8", false, false),
        ] {
            assert_eq!((is_subnet(text, false), is_subnet(text, true)), (layer2, layer3), "{text}");
        }
    }
}
