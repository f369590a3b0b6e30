//! Plans as one JSON document, for programs: a stable contract. Keys are added, never renamed, moved or removed while `version` stays the
//! same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::audit::explain::{
    AddressPlan, ChainPlan, ConfigPlan, DevicePlan, InterfaceName, InterfacePlan, NadLabel, NodeFit, NodesPlan,
    PodPlan, RangePlan,
};
use crate::cli::doctor::show::FindingJson;
use crate::cni::arguments::Arguments;
use crate::json::write::to_json;
use crate::policy::SourcePlace;
use crate::resources::NetworkId;

/// The parts of the document, in their order: with many nodes it is much larger than what it is made from.
pub(super) fn parts(plans: &[PodPlan]) -> impl Iterator<Item = String> {
    let pod = |(number, plan)| {
        let comma = if number == 0 { "" } else { "," };
        comma.to_owned() + &to_json(&PlanJson::of(plan))
    };
    let (begin, end) = (r#"{"version":1,"pods":["#, "]}\n");
    std::iter::once(begin.to_owned()).chain(plans.iter().enumerate().map(pod)).chain([end.to_owned()])
}

#[derive(Serialize)]
struct PlanJson<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    source: Option<&'a str>,
    line: Option<usize>,
    state: &'static str,
    summary: String,
    selection: &'static str,
    interfaces: Vec<InterfaceJson<'a>>,
    left_out: usize,
    nodes: Option<NodesJson<'a>>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct InterfaceJson<'a> {
    name: Option<String>,
    is_requested: bool,
    state: &'static str,
    nad: SelectedNadJson<'a>,
    config: &'static str,
    plugins: Vec<PluginJson<'a>>,
    device: DeviceJson<'a>,
    vlan: Option<VlanJson<'a>>,
    partition: Option<&'a str>,
    mtu: Option<i64>,
    mac: Option<&'a str>,
    requested: RequestedJson<'a>,
    addresses: Vec<AddressesJson<'a>>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct SelectedNadJson<'a> {
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    found_by: &'static str,
    state: &'static str,
    reason: Option<&'a str>,
    network: Option<NetworkJson<'a>>,
    source: Option<&'a str>,
    line: Option<usize>,
}

#[derive(Serialize)]
struct NetworkJson<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct PluginJson<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    on: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct DeviceJson<'a> {
    from: &'static str,
    resource: Option<&'a str>,
    place: Option<u64>,
    requested: Option<u64>,
    device: Option<&'a str>,
}

#[derive(Serialize)]
struct VlanJson<'a> {
    id: Option<i64>,
    qos: Option<i64>,
    protocol: Option<&'a str>,
    trunk: &'a [String],
}

/// What the pod asks for, and which of it no plugin reads.
#[derive(Serialize)]
struct RequestedJson<'a> {
    ips: &'a [String],
    mac: Option<&'a str>,
    infiniband_guid: Option<&'a str>,
    default_route: Option<&'a [String]>,
    unread: Vec<&'static str>,
}

#[derive(Serialize)]
struct AddressesJson<'a> {
    plugin: &'a str,
    is_certain: bool,
    ranges: Vec<RangeJson<'a>>,
    fixed: Vec<FixedJson<'a>>,
    routes: Vec<RouteJson<'a>>,
    nameservers: &'a [String],
    search: &'a [String],
    /// How many ranges, addresses, routes and servers are left out.
    more: usize,
}

#[derive(Serialize)]
struct RangeJson<'a> {
    network: &'a str,
    first: Option<&'a str>,
    last: Option<&'a str>,
    gateway: Option<&'a str>,
    excluded: &'a [String],
}

#[derive(Serialize)]
struct FixedJson<'a> {
    address: &'a str,
    gateway: Option<&'a str>,
}

#[derive(Serialize)]
struct RouteJson<'a> {
    destination: &'a str,
    gateway: Option<&'a str>,
}

#[derive(Serialize)]
struct NodesJson<'a> {
    state: &'static str,
    reason: Option<&'a str>,
    needs: Vec<NeedJson<'a>>,
    labels: &'a BTreeMap<String, String>,
    nad_labels: Vec<NadLabelJson<'a>>,
    node: Option<&'a str>,
    has_other_conditions: bool,
    nodes: Option<Vec<NodeJson<'a>>>,
}

#[derive(Serialize)]
struct NeedJson<'a> {
    resource: &'a str,
    count: Option<u64>,
    is_served: bool,
    policies: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct NadLabelJson<'a> {
    namespace: &'a str,
    name: &'a str,
    key: &'a str,
    value: &'a str,
    is_copied: Option<bool>,
}

#[derive(Serialize)]
struct NodeJson<'a> {
    name: &'a str,
    fits: Option<bool>,
    reasons: Vec<String>,
    doubts: Vec<String>,
}

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn placed(place: Option<&SourcePlace>) -> (Option<&str>, Option<usize>) {
    (place.map(|place| &*place.file), place.map(|place| place.line))
}

impl<'a> PlanJson<'a> {
    fn of(plan: &'a PodPlan) -> Self {
        let (source, line) = placed(plan.place.as_ref());
        Self {
            kind: plan.kind,
            namespace: &plan.namespace,
            name: &plan.name,
            source,
            line,
            state: plan.state().name(),
            summary: plan.summary(),
            selection: plan.selection.name(),
            interfaces: plan.interfaces.iter().map(InterfaceJson::of).collect(),
            left_out: plan.left_out,
            nodes: plan.nodes.as_ref().map(NodesJson::of),
            findings: plan.findings.iter().map(FindingJson::of).collect(),
        }
    }
}

impl<'a> InterfaceJson<'a> {
    fn of(interface: &'a InterfacePlan) -> Self {
        let nad = interface.nad_plan();
        let chain: Option<&ChainPlan> = nad.and_then(|nad| nad.config.chain());
        let requested = &interface.requested;
        Self {
            name: Some(interface.name.text()).filter(|_| !matches!(interface.name, InterfaceName::Machine(_))),
            is_requested: matches!(interface.name, InterfaceName::Requested(_)),
            state: interface.state.name(),
            nad: SelectedNadJson::of(interface),
            config: match nad.map(|nad| &nad.config) {
                Some(ConfigPlan::Read(_)) => "read",
                Some(ConfigPlan::OnNodes) => "on-nodes",
                Some(ConfigPlan::Unreadable) => "unreadable",
                None => "unknown",
            },
            plugins: chain.map_or_else(Vec::new, |chain| {
                let all = chain.plugins.first.iter();
                all.map(|plugin| PluginJson { kind: &plugin.kind, on: plugin.on.as_deref() }).collect()
            }),
            device: DeviceJson::of(&interface.device),
            vlan: chain.and_then(|chain| chain.vlan.as_ref()).map(|vlan| VlanJson {
                id: vlan.id,
                qos: vlan.qos,
                protocol: vlan.protocol.as_deref(),
                trunk: &vlan.trunk.first,
            }),
            partition: chain.and_then(|chain| chain.partition.as_deref()),
            mtu: chain.and_then(|chain| chain.mtu),
            mac: chain.and_then(|chain| chain.mac.as_deref()),
            requested: RequestedJson {
                ips: &requested.ips,
                mac: given(&requested.mac),
                infiniband_guid: given(&requested.guid),
                default_route: requested.default_route.as_deref(),
                unread: Arguments::ALL
                    .into_iter()
                    .filter(|one| interface.unread.has(*one))
                    .map(Arguments::key)
                    .collect(),
            },
            addresses: chain
                .map_or_else(Vec::new, |chain| chain.addresses.first.iter().map(AddressesJson::of).collect()),
            findings: interface.all_findings().map(FindingJson::of).collect(),
        }
    }
}

impl<'a> SelectedNadJson<'a> {
    fn of(interface: &'a InterfacePlan) -> Self {
        let nad = interface.nad_plan();
        let (source, line) = placed(nad.and_then(|nad| nad.place.as_ref()));
        let network =
            |id: &'a NetworkId| NetworkJson { kind: id.kind.name(), namespace: &id.namespace, name: &id.name };
        Self {
            namespace: interface.nad.as_ref().map(|key| key.namespace()),
            name: interface.nad.as_ref().map(|key| key.name()),
            found_by: interface.found_by.name(),
            state: match &interface.plan {
                Ok(Some(_)) => "found",
                Ok(None) => "absent",
                Err(_) => "unknown",
            },
            reason: interface.plan.as_ref().err().map(String::as_str),
            network: nad.and_then(|nad| nad.network.as_ref()).map(network),
            source,
            line,
        }
    }
}

impl<'a> DeviceJson<'a> {
    fn of(device: &'a DevicePlan) -> Self {
        let json = DeviceJson { from: device.name(), ..Self::default() };
        match device {
            DevicePlan::Pool { resource, place, requested } => {
                Self { resource: Some(resource), place: Some(*place), requested: *requested, ..json }
            }
            DevicePlan::Short { resource, place, requested } => {
                Self { resource: Some(resource), place: Some(*place), requested: Some(*requested), ..json }
            }
            DevicePlan::Fixed(device) => Self { device: Some(device), ..json },
            _ => json,
        }
    }
}

impl<'a> AddressesJson<'a> {
    fn of(plan: &'a AddressPlan) -> Self {
        let range = |range: &'a RangePlan| RangeJson {
            network: &range.network,
            first: range.first.as_deref(),
            last: range.last.as_deref(),
            gateway: range.gateway.as_deref(),
            excluded: &range.excluded.first,
        };
        let fixed = plan.fixed.first.iter();
        let routes = plan.routes.first.iter();
        Self {
            plugin: &plan.plugin,
            is_certain: plan.is_certain,
            ranges: plan.ranges.first.iter().map(range).collect(),
            fixed: fixed.map(|one| FixedJson { address: &one.address, gateway: one.gateway.as_deref() }).collect(),
            routes: routes
                .map(|route| RouteJson { destination: &route.destination, gateway: route.gateway.as_deref() })
                .collect(),
            nameservers: &plan.nameservers.first,
            search: &plan.search.first,
            more: [plan.ranges.more, plan.fixed.more, plan.routes.more, plan.nameservers.more, plan.search.more]
                .iter()
                .sum(),
        }
    }
}

impl<'a> NodesJson<'a> {
    fn of(plan: &'a NodesPlan) -> Self {
        let need = |need: &'a crate::audit::explain::ResourceNeed| NeedJson {
            resource: &need.resource,
            count: need.count,
            is_served: need.is_served,
            policies: need.policies.as_ref().ok().map(|all| all.iter().map(|policy| policy.name.as_str()).collect()),
        };
        let one = |node: NodeFit<'a>| NodeJson {
            name: node.name,
            fits: node.fits(),
            reasons: node.reasons,
            doubts: node.doubts,
        };
        let (nodes, reason) = match plan.fits() {
            Ok(nodes) => (Some(nodes.map(one).collect()), None),
            Err(reason) => (None, Some(reason)),
        };
        let label = |label: &'a NadLabel| NadLabelJson {
            namespace: label.nad.namespace(),
            name: label.nad.name(),
            key: &label.key,
            value: &label.value,
            is_copied: label.is_copied,
        };
        Self {
            state: plan.state.name(),
            reason,
            needs: plan.needs.iter().map(need).collect(),
            labels: &plan.labels,
            nad_labels: plan.nad_labels.iter().map(label).collect(),
            node: plan.node.as_deref(),
            has_other_conditions: plan.has_others,
            nodes,
        }
    }
}
