mod nodes;

use serde_json::{Value, json};

use super::*;
use crate::audit::chain::{ClusterNode, NodePolicy, Read};
use crate::policy::{Facts, Policy, ResourceInjector, Subject, judge};
use crate::resources::Object;

/// A NAD with that config, and a resource if it is not empty.
fn nad(config: &str, resource: &str) -> NadPlan {
    let mut nad = json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "net", "namespace": "apps", "annotations": {} }, "spec": { "config": config } });
    if !resource.is_empty() {
        nad["metadata"]["annotations"] = json!({ "k8s.v1.cni.cncf.io/resourceName": resource });
    }
    let (text, policy) = (nad.to_string(), Policy::default());
    let object = Object::read(&text).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), &policy);
    NadPlan::stored(&text, verdict, &(), &policy).unwrap()
}

fn pod(networks: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "apps",
        "annotations": { "k8s.v1.cni.cncf.io/networks": networks } }, "spec": spec })
}

/// A pod whose only container requests these resources.
fn requesting(networks: &str, limits: &Value) -> Value {
    pod(networks, &json!({ "containers": [{ "name": "c", "resources": { "limits": limits } }] }))
}

fn known(nodes: Read<Vec<ClusterNode>>) -> KnownNodes {
    let nodes = nodes.map(Into::into);
    let policies =
        Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "x".to_owned(), ..NodePolicy::default() }]);
    KnownNodes { nodes, policies, served: [].into(), prefix: None, is_cluster: true }
}

struct PodCase {
    object: Value,
    nads: NadPlans,
    nodes: KnownNodes,
    injector: Option<ResourceInjector>,
}

impl PodCase {
    fn new(object: Value, nads: &[(&str, NadPlan)]) -> Self {
        let nads = nads.iter().map(|(name, nad)| (ObjectKey::new("apps", name), Ok(Some(nad.clone())))).collect();
        Self { object, nads, nodes: known(Ok(Vec::new())), injector: None }
    }

    fn plan(&self) -> PodPlan {
        let text = self.object.to_string();
        let object = Object::read(&text).unwrap();
        let workload = match &object {
            Some(Object::Workload(workload)) => Some(workload),
            _ => None,
        };
        let findings =
            object.as_ref().map(|object| judge(&Subject::manifest(object), &Facts::default(), &Policy::default()));
        PodPlan::of(PodQuestion {
            workload,
            kind: "Pod",
            namespace: "apps".to_owned(),
            name: "p".to_owned(),
            place: None,
            findings: findings.map(|verdict| verdict.findings).unwrap_or_default(),
            injector: self.injector,
            nads: &self.nads,
            nodes: &self.nodes,
        })
    }
}

const MACVLAN: &str = r#"{"cniVersion":"1.0.0","type":"macvlan"}"#;
const SRIOV: &str = r#"{"cniVersion":"1.0.0","type":"sriov"}"#;

/// The lines of an interface for a NAD, but the first.
fn lines(config: &str, resource: &str) -> Vec<String> {
    let case = PodCase::new(requesting("net", &json!({ "a.io/x": "1" })), &[("net", nad(config, resource))]);
    let plan = case.plan();
    plan.interfaces[0].lines().into_iter().skip(1).map(|(label, says)| format!("{label}: {says}")).collect()
}

#[test]
fn each_plugin_says_what_it_makes() {
    for (members, want) in [
        (
            r#""type":"sriov","vlan":100,"vlanQoS":3,"vlanProto":"802.1ad","mac":"02:00:00:00:00:01","mtu":9000"#,
            &[
                "plugins: sriov",
                "device: number 1 of 1 of a.io/x",
                "VLAN: 100, QoS 3, 802.1ad",
                "MAC: 02:00:00:00:00:01, for every pod",
            ] as &[_],
        ),
        (r#""type":"sriov","vlan":0,"vlanQoS":0"#, &["plugins: sriov", "device: number 1 of 1 of a.io/x"]),
        (
            r#""type":"ib-sriov","pkey":"0x8001""#,
            &["plugins: ib-sriov", "device: number 1 of 1 of a.io/x", "partition: 0x8001"],
        ),
        (
            r#""type":"ovs","bridge":"br1","vlan":7,"mtu":1400,"trunk":[{"id":5},{"minID":10,"maxID":20}]"#,
            &[
                "plugins: ovs on bridge br1",
                "device: number 1 of 1 of a.io/x",
                "VLAN: 7, trunk of 5, 10-20",
                "MTU: 1400",
            ],
        ),
        (
            r#""type":"bridge","bridge":"br1","vlanTrunk":[{"id":5}]"#,
            &["plugins: bridge on bridge br1", "device: number 1 of 1 of a.io/x", "VLAN: trunk of 5"],
        ),
        (
            r#""type":"vlan","master":"eth1","vlanId":9"#,
            &["plugins: vlan on eth1", "device: number 1 of 1 of a.io/x", "VLAN: 9"],
        ),
        (r#""type":"host-device""#, &["plugins: host-device", "device: number 1 of 1 of a.io/x"]),
        (
            r#""plugins":[{"type":"macvlan","master":"eth1","mtu":1400,"mac":"02:00:00:00:00:01"},{"type":"tuning","mtu":9000,"mac":"02:00:00:00:00:02"}]"#,
            &[
                "plugins: macvlan on eth1, tuning",
                "device: number 1 of 1 of a.io/x",
                "MTU: 9000",
                "MAC: 02:00:00:00:00:02, for every pod",
            ],
        ),
        (
            r#""type":"multus","delegates":[{"type":"sriov","vlan":5},{"type":"tuning"}]"#,
            &["plugins: multus, sriov, tuning", "device: number 1 of 1 of a.io/x", "VLAN: 5"],
        ),
        // What Multus reads, in whatever case it is written.
        (r#""Type":"sriov","VLAN":100"#, &["plugins: sriov", "device: number 1 of 1 of a.io/x", "VLAN: 100"]),
    ] {
        let mut want: Vec<String> = want.iter().map(ToString::to_string).collect();
        want.push("addresses: none: no plugin hands out any".to_owned());
        assert_eq!(lines(&format!(r#"{{"cniVersion":"1.0.0",{members}}}"#), "a.io/x"), want, "{members}");
    }
    for (config, want) in [
        ("", "plugins: unknown: the config is a file on the node"),
        ("{", "plugins: unknown: the config cannot be read"),
        ("null", "plugins: unknown: the config cannot be read"),
        (r#"{"plugins":[]}"#, "plugins: unknown: the config cannot be read"),
    ] {
        assert_eq!(lines(config, ""), [want, "device: unknown"], "{config}");
    }
}

#[test]
fn each_ipam_plugin_says_where_addresses_come_from() {
    for (ipam, want) in [
        (
            r#""type":"host-local","subnet":"10.0.0.0/24","rangeStart":"10.0.0.5","rangeEnd":"10.0.0.9","gateway":"10.0.0.1","routes":[{"dst":"0.0.0.0/0"},{"dst":"10.9.0.0/16","gw":"10.0.0.2"}]"#,
            &[
                "addresses: host-local: from 10.0.0.0/24 (10.0.0.5 to 10.0.0.9)",
                "gateway: 10.0.0.1",
                "routes: 0.0.0.0/0, 10.9.0.0/16 via 10.0.0.2",
            ] as &[_],
        ),
        (
            r#""type":"host-local","ranges":[[{"subnet":"10.0.0.0/24"}],[{"subnet":"fd00::/64","rangeEnd":"fd00::9"}]]"#,
            &["addresses: host-local: from 10.0.0.0/24, fd00::/64 (up to fd00::9)"],
        ),
        (
            r#""type":"whereabouts","range":"10.0.0.5-10.0.0.9/24","exclude":["10.0.0.7"],"gateway":"10.0.0.1","ipRanges":[{"range":"fd00::/64"}],"dns":{"nameservers":["10.0.0.53"],"search":["a.b"]}"#,
            &[
                "addresses: whereabouts: from 10.0.0.5-10.0.0.9/24 without 10.0.0.7, fd00::/64",
                "gateway: 10.0.0.1",
                "DNS: 10.0.0.53; search a.b",
            ],
        ),
        (
            r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.0.0.1"},{"address":"fd00::5/64"}]"#,
            &["addresses: static: 10.0.0.5/24, fd00::5/64", "gateway: 10.0.0.1"],
        ),
        (r#""type":"dhcp","routes":[{"dst":"0.0.0.0/0"}]"#, &["addresses: by DHCP"]),
        (r#""type":"my-ipam","subnet":"10.0.0.0/24""#, &["addresses: my-ipam: states none"]),
        ("", &["addresses: none: no plugin hands out any"]),
    ] {
        let found = lines(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","ipam":{{{ipam}}}}}"#), "");
        assert_eq!(found[2..], *want, "{ipam}");
    }
    // tuning never runs one, and of an unknown plugin it is not certain.
    let of = |kind: &str| lines(&format!(r#"{{"cniVersion":"1.0.0","type":"{kind}","ipam":{{"type":"dhcp"}}}}"#), "");
    assert_eq!(of("tuning").last().unwrap(), "addresses: none: no plugin hands out any");
    assert_eq!(of("my-plugin").last().unwrap(), "addresses: by DHCP (if the plugin runs it)");
    let ovn = r#"{"cniVersion":"1.0.0","type":"ovn-k8s-cni-overlay","topology":"layer2","subnets":"10.0.0.0/24, fd00::/64","excludeSubnets":"10.0.0.0/28","vlanID":5,"netAttachDefName":"apps/net","name":"n"}"#;
    assert_eq!(
        lines(ovn, ""),
        [
            "plugins: ovn-k8s-cni-overlay on layer2 network",
            "device: none",
            "VLAN: 5",
            "addresses: ovn-kubernetes: from 10.0.0.0/24 without 10.0.0.0/28, fd00::/64 without 10.0.0.0/28"
        ]
    );
    let many: Vec<_> = (0..40).map(|number| format!(r#"{{"address":"10.0.{number}.5/24"}}"#)).collect();
    let many =
        lines(&format!(r#"{{"type":"macvlan","ipam":{{"type":"static","addresses":[{}]}}}}"#, many.join(",")), "");
    assert!(many[2].ends_with(", 10.0.15.5/24 and 24 more"), "{many:?}");
}

/// The device of each interface.
fn devices(plan: &PodPlan) -> Vec<String> {
    let device = |interface: &InterfacePlan| match &interface.device {
        DevicePlan::Pool { resource, place, requested } => format!("{resource} {place}/{requested:?}"),
        other => other.name().to_owned(),
    };
    plan.interfaces.iter().map(device).collect()
}

#[test]
fn devices_are_taken_in_the_order_of_the_networks() {
    let sriov = nad(SRIOV, "a.io/x");
    let fixed = nad(r#"{"cniVersion":"1.0.0","type":"sriov","deviceID":"0000:03:02.0"}"#, "");
    let fallback = nad(r#"{"cniVersion":"1.0.0","type":"sriov","deviceID":"0000:03:02.0"}"#, "a.io/x");
    let macvlan = nad(MACVLAN, "a.io/x");
    let nads = [
        ("s", sriov),
        ("o", nad(SRIOV, "a.io/y")),
        ("f", fixed),
        ("b", fallback),
        ("m", macvlan),
        ("n", nad(SRIOV, "")),
        ("h", nad(r#"{"cniVersion":"1.0.0","type":"host-device","device":"eth5"}"#, "")),
    ];
    for (networks, limits, want) in [
        (
            "s,o,s",
            json!({ "a.io/x": "2", "a.io/y": "1" }),
            &["a.io/x 1/Some(2)", "a.io/y 1/Some(1)", "a.io/x 2/Some(2)"] as &[_],
        ),
        ("s,s", json!({ "a.io/x": "1" }), &["a.io/x 1/Some(1)", "too-few"]),
        ("s", json!({}), &["too-few"]),
        // Multus hands a device to whatever names the resource, also where its plugin ignores it.
        ("m,s", json!({ "a.io/x": "1" }), &["a.io/x 1/Some(1)", "too-few"]),
        ("m", json!({}), &["none"]),
        ("f,b,s", json!({}), &["fixed", "fixed", "too-few"]),
        ("b", json!({ "a.io/x": "1" }), &["a.io/x 1/Some(1)"]),
        ("n,h", json!({}), &["missing", "fixed"]),
        ("s", json!({ "a.io/x": "1k" }), &["a.io/x 1/None"]),
    ] {
        assert_eq!(devices(&PodCase::new(requesting(networks, &limits), &nads).plan()), want, "{networks} {limits}");
    }
    let mut claiming = pod("s", &json!({ "resourceClaims": [{ "name": "c" }] }));
    assert_eq!(devices(&PodCase::new(claiming.clone(), &nads).plan()), ["a.io/x 1/None"]);
    // The default network is looked up by itself.
    claiming = requesting("s", &json!({ "a.io/x": "1" }));
    claiming["metadata"]["annotations"]["v1.multus-cni.io/default-network"] = json!("apps/s");
    let plan = PodCase::new(claiming, &nads).plan();
    assert_eq!(devices(&plan), ["a.io/x 1/Some(1)", "a.io/x 1/Some(1)"]);
    assert_eq!(
        (plan.interfaces[0].name.clone(), plan.interfaces[0].found_by),
        (InterfaceName::Default, FoundBy::NamedNamespace)
    );
}

/// Too few devices are certain once nothing adds requests any more.
#[test]
fn a_missing_device_counts_when_it_is_certain() {
    for (nad, limits, is_final, want) in [
        (nad(SRIOV, "a.io/x"), json!({ "a.io/x": "1" }), true, LinkHealth::Good),
        (nad(SRIOV, "a.io/x"), json!({}), true, LinkHealth::Broken),
        (nad(SRIOV, "a.io/x"), json!({}), false, LinkHealth::Unknown),
        (nad(SRIOV, ""), json!({}), true, LinkHealth::Broken),
        (nad("", ""), json!({}), true, LinkHealth::Unknown),
        (nad(MACVLAN, ""), json!({}), true, LinkHealth::Good),
        (nad(r#"{"cniVersion":"1.0.0","type":"macvlan","mode":"l2"}"#, ""), json!({}), true, LinkHealth::Broken),
    ] {
        let injector = is_final.then_some(ResourceInjector::None);
        let case = PodCase { injector, ..PodCase::new(requesting("net", &limits), &[("net", nad.clone())]) };
        assert_eq!(case.plan().interfaces[0].state, want, "{nad:?} {is_final}");
    }
}

#[test]
fn interfaces_are_named_as_multus_names_them() {
    let nads = [("net", nad(MACVLAN, ""))];
    let names = |object: Value| -> Vec<String> {
        PodCase::new(object, &nads).plan().interfaces.iter().map(|one| one.name.text()).collect()
    };
    assert_eq!(names(pod("net, net@x, other/net", &json!({}))), ["net1", "x", "net3"]);
    assert_eq!(names(pod(r#"[{"name":"net","interface":"y"},{"name":"net"}]"#, &json!({}))), ["y", "net2"]);
    let machine = json!({ "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": "m", "namespace": "apps" },
        "spec": { "template": { "spec": { "networks": [{ "name": "a", "pod": {} }, { "name": "b", "multus": { "networkName": "net" } }] } } } });
    let plan = PodCase::new(machine, &nads).plan();
    assert_eq!((plan.selection, plan.interfaces[0].name.clone()), (SelectionForm::Machine, InterfaceName::Machine(1)));
}

#[test]
fn nads_are_found_by_their_rule() {
    let case = PodCase::new(pod("net,other/net,gone,", &json!({})), &[("net", nad(MACVLAN, ""))]);
    let mut case = PodCase { nads: case.nads.clone(), ..case };
    case.nads.insert(ObjectKey::new("other", "net"), Err("missing permission: x".to_owned()));
    case.nads.insert(ObjectKey::new("apps", "gone"), Ok(None));
    let plan = case.plan();
    let found: Vec<_> = plan.interfaces.iter().map(|one| (one.lines()[0].1.clone(), one.state)).collect();
    assert_eq!(
        found,
        [
            ("apps/net, in the pod's namespace".to_owned(), LinkHealth::Good),
            (
                "other/net, in the namespace that the pod names, is unknown: missing permission: x".to_owned(),
                LinkHealth::Unknown
            ),
            ("apps/gone, in the pod's namespace, does not exist".to_owned(), LinkHealth::Broken),
            ("the selection names none".to_owned(), LinkHealth::Broken),
        ]
    );
    assert_eq!(plan.interfaces[3].findings[0].rule.id, "pod/selection");
    assert_eq!(plan.summary(), "cannot start: net3, net4");
}

#[test]
fn the_default_network_is_one_nad() {
    let with = |text: &str| {
        let mut object = pod("", &json!({}));
        object["metadata"]["annotations"] = json!({ "v1.multus-cni.io/default-network": text });
        let mut case = PodCase::new(object, &[]);
        case.nads.insert(ObjectKey::new("kube-system", "net"), Ok(None));
        case.nads.insert(ObjectKey::new("apps", "net"), Ok(None));
        let plan = case.plan();
        (plan.interfaces[0].state, plan.interfaces[0].lines()[0].1.clone())
    };
    for (text, state, words) in [
        // Multus may be configured with another namespace.
        (
            "net",
            LinkHealth::Unknown,
            "kube-system/net, in the namespace of Multus, is unknown: it is not in kube-system",
        ),
        ("apps/net", LinkHealth::Broken, "apps/net, in the namespace that the pod names, does not exist"),
        ("", LinkHealth::Broken, "the selection names none"),
        ("a,b", LinkHealth::Broken, "the selection names none"),
        ("a/b/c", LinkHealth::Broken, "the selection names none"),
    ] {
        let (found, line) = with(text);
        assert!(found == state && line.starts_with(words), "{text}: {found:?} {line}");
    }
}

#[test]
fn what_no_plugin_reads_is_reported() {
    let networks = r#"[{"name":"net","ips":["10.0.0.5/24"],"mac":"02:00:00:00:00:01"}]"#;
    let case = PodCase::new(pod(networks, &json!({})), &[("net", nad(MACVLAN, ""))]);
    let lines = case.plan().interfaces[0].lines();
    assert!(lines.contains(&("MAC", "02:00:00:00:00:01, asked for by the pod".to_owned())), "{lines:?}");
    assert!(lines.contains(&("requested", "10.0.0.5/24: asked for, but no plugin reads it".to_owned())), "{lines:?}");
}

#[test]
fn pods_without_networks_and_with_unreadable_ones() {
    for (object, selection, state, words) in [
        (json!({ "apiVersion": "v1", "kind": "Pod" }), SelectionForm::Absent, LinkHealth::Good, "selects no networks"),
        (
            pod("a@b@c", &json!({})),
            SelectionForm::Unreadable,
            LinkHealth::Broken,
            "cannot start: its annotation cannot be read",
        ),
        (
            pod("net", &json!({ "hostNetwork": true })),
            SelectionForm::HostNetwork,
            LinkHealth::Good,
            "uses the network of its node",
        ),
        (pod("[]", &json!({})), SelectionForm::Json, LinkHealth::Good, "can start"),
    ] {
        let plan = PodCase::new(object, &[]).plan();
        assert_eq!((plan.selection, plan.state()), (selection, state));
        assert!(plan.summary().starts_with(words), "{}", plan.summary());
    }
    let many = pod(&vec!["net"; MAX_INTERFACES + 5].join(","), &json!({}));
    let plan = PodCase::new(many, &[("net", nad(MACVLAN, ""))]).plan();
    assert_eq!((plan.interfaces.len(), plan.left_out, plan.state()), (MAX_INTERFACES, 5, LinkHealth::Unknown));
}
