//! All the rules, and the order in which they run.

pub(crate) mod audit;
mod called_version;
pub(crate) mod cluster;
pub(crate) mod dra;
pub(crate) mod drift;
mod host_device;
pub(crate) mod host_file;
pub(crate) mod ib_sriov;
pub(crate) mod in_use;
pub(crate) mod ipam;
mod key_releases;
pub(crate) mod last_namespace;
pub(crate) mod link_type;
pub(crate) mod meta;
pub(crate) mod meta_tuning;
mod multus;
pub(crate) mod nad_config;
pub(crate) mod nad_device;
pub(crate) mod nad_keys;
mod neighbours;
pub(crate) mod network;
pub(crate) mod node_policy;
pub(crate) mod node_policy_pairs;
pub(crate) mod ovn;
pub(crate) mod ovn_names;
pub(crate) mod ovs;
pub(crate) mod plugin;
pub(crate) mod plugin_type;
pub(crate) mod pod;
mod pod_devices;
pub(crate) mod rendering;
pub(crate) mod sriov;
pub(crate) mod sriov_vlan;
pub(crate) mod status;

use super::finding::Findings;
use super::ratchet::{JudgedObject, Ratchet};
use super::resource_name::{self, ResourceNameCheck};
use super::scope::NamespaceScope;
use super::{Facts, Finding, MissingFact, Rule, Subject};
use crate::cni::{Config, Plugin};
use crate::json::Document;
use crate::resources::{Nad, Object};

/// Every rule, in the order of the reference.
pub static RULES: &[&Rule] = &[
    &nad_config::NOT_JSON,
    &nad_config::TOO_LARGE,
    &nad_config::NO_PLUGIN,
    &plugin_type::PLUGIN_TYPE,
    &plugin_type::UNKNOWN_PLUGIN,
    &nad_config::PLUGINS_IGNORED,
    &nad_config::CNI_VERSION,
    &nad_config::NETWORK_NAME,
    &nad_keys::CAPABILITIES,
    &nad_keys::FIELD_TYPE,
    &nad_keys::AMBIGUOUS_KEY,
    &nad_keys::UNKNOWN_KEY,
    &nad_config::DOTTED_NAME,
    &nad_config::SCHEMA,
    &nad_config::UNKNOWN_FIELD,
    &nad_device::MISSING,
    &nad_device::MALFORMED,
    &nad_device::MISMATCH,
    &nad_device::STATIC_DEVICE,
    &nad_device::FORGED_OWNER,
    &nad_device::OVERWRITES,
    &dra::VF_CONFIG,
    &dra::IGNORED,
    &dra::CONFLIST,
    &sriov_vlan::VLAN,
    &sriov_vlan::QOS,
    &sriov_vlan::PROTO,
    &sriov::MAC,
    &sriov::TX_RATE,
    &sriov::ON_OFF,
    &sriov::LINK_STATE,
    &sriov::LOG_LEVEL,
    &sriov::NO_EFFECT,
    &host_file::HOST_FILE,
    &ib_sriov::DHCP,
    &ib_sriov::GUID,
    &ib_sriov::LINK_STATE,
    &ib_sriov::RDMA_ISOLATION,
    &ovs::VLAN,
    &ovs::TRUNK,
    &ovs::OFPORT,
    &ovs::BRIDGE,
    &ovs::VLAN_IGNORED,
    &ovn::NAD_NAME,
    &ovn::CONFIG,
    &ovn_names::NAME_CONFLICT,
    &ovn_names::NAME_TAKEN,
    &ovn_names::SECOND_PRIMARY,
    &plugin::MACVLAN_MODE,
    &plugin::IPVLAN_MODE,
    &plugin::MAC,
    &plugin::MTU,
    &plugin::BRIDGE_VLAN,
    &plugin::BRIDGE_OPTIONS,
    &plugin::VLAN_MASTER,
    &plugin::VLAN_ID,
    &host_device::HOST_DEVICE,
    &meta::FIREWALL_VERSION,
    &meta::FIREWALL_POLICY,
    &meta::PORTMAP,
    &meta::CHAIN_ORDER,
    &meta::VRF,
    &meta::BANDWIDTH,
    &meta_tuning::TUNING,
    &meta::SBR,
    &ipam::HOST_LOCAL_RANGE,
    &ipam::STATIC_ADDRESS,
    &ipam::DHCP_OPTION,
    &ipam::WHEREABOUTS_RANGE,
    &ipam::ROUTE,
    &ipam::WRONG_DIALECT,
    &ipam::IGNORED,
    &ipam::NO_ADDRESS,
    &ipam::PER_NODE,
    &ipam::OVERLAP,
    &ipam::NODE_SLICE,
    &in_use::IN_USE,
    &pod::SELECTION,
    &pod::INTERFACE,
    &pod::NAMESPACE,
    &pod::NAD_ABSENT,
    &pod_devices::TOO_FEW,
    &pod_devices::NO_CAPABILITY,
    &pod::HOST_NETWORK,
    &network::RESOURCE_NAME,
    &network::TARGET_NAMESPACE,
    &network::NAMESPACE_ABSENT,
    &rendering::FRAGMENT,
    &rendering::RENDER_UNSAFE,
    &rendering::AMBIGUOUS_NAME,
    &network::CLAIMED,
    &network::NO_POLICY,
    &link_type::LINK_TYPE,
    &network::MTU,
    &last_namespace::WEDGED,
    &last_namespace::FORGED,
    &network::MOVES_TO_NOWHERE,
    &network::SCHEMA,
    &network::UNKNOWN_FIELD,
    &node_policy::RESOURCE_NAME,
    &node_policy::NO_NIC,
    &node_policy::VF_RANGE,
    &node_policy::COMBINATION,
    &node_policy_pairs::SAME_NAME_ONE_PF,
    &node_policy_pairs::OVERLAP,
    &node_policy_pairs::NUM_VFS,
    &node_policy_pairs::EXTERNALLY_MANAGED,
    &node_policy_pairs::SHARED_RESOURCE,
    &status::STALE,
    &status::CONTRADICTED,
    &status::REGRESSED,
    &status::UNVERSIONED,
    &status::TAKEOVER,
    &status::UNPROVEN,
    &status::AHEAD,
    &audit::NAD_ABSENT,
    &audit::NAD_DRIFT,
    &audit::NAD_INCOMPLETE,
    &audit::STUCK_DELETION,
    &audit::ORPHAN,
    &audit::HOT_OBJECT,
    &audit::OPERATOR_SILENT,
    &cluster::UNKNOWN,
];

/// The rule with that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

/// The rule whose id is closest to an unknown id.
pub fn closest(id: &str) -> Option<&'static Rule> {
    super::similar::closest(id, RULES.iter().map(|rule| rule.id)).and_then(find)
}

/// The findings, the fact that was missing, and the ratchet after the run.
pub(crate) type RuleRun = (Vec<Finding>, Option<MissingFact>, Ratchet);

/// Runs every rule that concerns the subject. `operator`: whether the operator is the writer.
pub(crate) fn run(
    subject: &Subject<'_>,
    operator: bool,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    ratchet: Ratchet,
) -> RuleRun {
    match subject.object {
        Object::Nad(nad) => run_nad(nad, subject, operator, facts, scope, ratchet),
        Object::Network(network) => {
            let mut out = Findings::new(JudgedObject::Network(network), None, ratchet, &scope.policy.versions);
            if network::is_foreign(network, facts, scope) == Some(true) {
                network::check_foreign(network, subject, facts, scope, &mut out);
                rendering::check_foreign(network, scope, facts, &mut out);
                audit::check_any(facts, scope, &mut out);
            } else {
                network::check(network, subject, facts, scope, &mut out);
                link_type::check(network, facts, scope, &mut out);
                rendering::check(network, subject.writer.is_some(), scope, facts, &mut out);
                audit::check_network(network, facts, scope, &mut out);
                cluster::check(facts, &mut out);
            }
            out.into_parts_of(subject.is_final)
        }
        Object::Claim(claim) => {
            let mut out = Findings::new(JudgedObject::Claim(claim), None, ratchet, &scope.policy.versions);
            dra::check(claim, &mut out);
            out.into_parts_of(subject.is_final)
        }
        Object::NodePolicy(policy) => {
            let mut out = Findings::new(JudgedObject::NodePolicy(policy), None, ratchet, &scope.policy.versions);
            node_policy::check(policy, facts, &mut out);
            node_policy_pairs::check(policy, facts, &mut out);
            out.into_parts_of(subject.is_final)
        }
        Object::Workload(workload) => {
            let mut out = Findings::new(JudgedObject::Workload(workload), None, ratchet, &scope.policy.versions);
            pod::check(workload, facts, scope, &mut out);
            out.into_parts_of(subject.is_final)
        }
    }
}

fn run_nad(
    nad: &Nad<'_>,
    subject: &Subject<'_>,
    operator: bool,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    ratchet: Ratchet,
) -> RuleRun {
    if let Some(users) = &facts.users_at_deletion {
        let mut out = Findings::new(JudgedObject::Nad(nad), None, ratchet, &scope.policy.versions);
        in_use::check(nad, users, facts, &mut out);
        return out.into_parts_of(subject.is_final);
    }
    let text = nad.config.as_deref().unwrap_or_default();
    let document = Document::parse(text);
    let mut out = Findings::new(JudgedObject::Nad(nad), document.as_ref().ok(), ratchet, &scope.policy.versions);
    nad_config::check_object(nad, &mut out);
    match &document {
        // Absent or empty: Multus reads a file on the node, which nadmit cannot see.
        _ if text.is_empty() => {}
        Err(error) => nad_config::unreadable(text, *error, &mut out),
        Ok(document) => match Config::of(document) {
            None => nad_config::not_an_object(&document.root, &mut out),
            Some(config) => {
                check_config(nad, &config, &mut out);
                let reader = (nad.meta.namespace.as_ref(), subject.writer.is_some());
                neighbours::check(nad, &config, reader, facts, &mut out);
                host_device::check_host_devices(nad, &config, scope, &mut out);
                resource_name::check(&ResourceNameCheck { nad, config: &config, facts, scope, operator }, &mut out);
            }
        },
    }
    nad_device::check_owner(nad, subject, facts, scope, operator, &mut out);
    audit::check_nad(nad, facts, scope, &mut out);
    cluster::check(facts, &mut out);
    out.into_parts_of(subject.is_final)
}

/// The rules that need only the config, so that they also run on a network's rendering.
fn check_config(nad: &Nad<'_>, config: &Config<'_>, out: &mut Findings<'_>) {
    check_chain(nad, config, out);
    for other in &config.others {
        if other.is_same_text(config) {
            other.plugins.iter().for_each(|plugin| check_as_other(nad, plugin, out));
        } else {
            check_chain(nad, other, out);
        }
    }
    multus::check(config, out);
    ovn::check(nad, config, out);
    ipam::per_node::check(nad, config, out);
    ipam::node_slice::check_name(config, out);
}

fn check_chain(nad: &Nad<'_>, config: &Config<'_>, out: &mut Findings<'_>) {
    nad_config::check(config, out);
    nad_keys::check(config, out);
    config.plugins.iter().for_each(|plugin| check_plugin(nad, plugin, out));
    ib_sriov::check_chain(config, out);
    meta::check(config, out);
    ipam::check(config, out);
}

fn check_plugin(nad: &Nad<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    match plugin.kind {
        "sriov" => {
            sriov_vlan::check(plugin, out);
            sriov::check(plugin, out);
        }
        "ib-sriov" => ib_sriov::check(plugin, out),
        "ovs" => ovs::check(nad, plugin, out),
        _ => plugin::check(plugin, out),
    }
    host_file::check(plugin, out);
}

/// The rules on a config that was already judged for another program: only what this one decodes besides.
fn check_as_other(nad: &Nad<'_>, plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    nad_keys::check_own_types(plugin, out);
    check_plugin(nad, plugin, out);
}

#[cfg(test)]
pub(crate) mod testing {
    //! Helpers for the table tests of the rules.

    use super::*;
    use crate::policy::{Policy, Verdict, judge};

    /// `rule action pointer` of every finding in a config, judged in an otherwise complete NAD.
    pub(crate) fn found(config: &str) -> Vec<String> {
        found_in(config, &with_device(), "")
    }

    /// The same where the policy names these releases: `multus: "4.2"`.
    pub(crate) fn found_with_versions(config: &str, versions: &str) -> Vec<String> {
        found_in(config, &with_device(), &format!("versions: {{{versions}}}"))
    }

    /// The same for a NAD without a device.
    pub(crate) fn found_without_device(config: &str) -> Vec<String> {
        found_in(config, &serde_json::json!({}), "")
    }

    fn with_device() -> serde_json::Value {
        serde_json::json!({"k8s.v1.cni.cncf.io/resourceName": "a.io/b"})
    }

    /// How to fix each of the findings.
    pub(crate) fn helps(config: &str) -> Vec<String> {
        judged(config, &with_device(), "").findings.into_iter().map(|finding| finding.help).collect()
    }

    fn found_in(config: &str, annotations: &serde_json::Value, policy: &str) -> Vec<String> {
        let line = |finding: &Finding| {
            let pointer = finding.config.as_ref().map_or(finding.pointer.as_str(), |place| place.pointer.as_str());
            format!("{} {} {pointer}", finding.rule.id, finding.action.name())
        };
        judged(config, annotations, policy).findings.iter().map(line).collect()
    }

    fn judged(config: &str, annotations: &serde_json::Value, policy: &str) -> Verdict {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "net", "namespace": "apps", "annotations": annotations},
            "spec": {"config": config},
        })
        .to_string();
        let object = Object::read(&json).unwrap().unwrap();
        judge(&Subject::manifest(&object), &Facts::default(), &Policy::parse(policy).unwrap())
    }
}
