//! Tables.

use serde_json::{Value, json};

use super::*;
use crate::policy::{Facts, Policy};

fn build(objects: &[Value], end: impl FnOnce(&mut MapBuilder)) -> NetworkMap {
    let mut builder = MapBuilder::new(MapSource::Manifests, "openshift.io");
    for object in objects {
        let text = |key: &str| object[key].as_str().unwrap();
        let kind = MapKind::of(text("apiVersion"), text("kind")).unwrap();
        builder.add(kind, &object.to_string(), "");
    }
    end(&mut builder);
    builder.finish()
}

fn nad(name: &str, config: &Value) -> Value {
    json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": name, "namespace": "apps" },
        "spec": { "config": config.to_string() } })
}

fn with_ipam(name: &str, ipam: &Value) -> Value {
    nad(name, &json!({ "type": "macvlan", "ipam": ipam }))
}

fn network(name: &str, resource: &str) -> Value {
    json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork", "metadata": { "name": name, "namespace": "op" },
        "spec": { "resourceName": resource, "networkNamespace": "apps" } })
}

fn policy(name: &str, resource: &str, pfs: &[&str]) -> Value {
    json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": name, "namespace": "op" },
        "spec": { "resourceName": resource, "numVfs": 8, "nicSelector": { "pfNames": pfs } } })
}

fn pod(name: &str, networks: &str, requests: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "apps", "annotations": { "k8s.v1.cni.cncf.io/networks": networks } },
        "spec": { "nodeName": "w1", "containers": [{ "name": "c", "resources": { "requests": requests } }] } })
}

fn pool(name: &str, range: &str, offsets: &[&str]) -> Value {
    let allocations: serde_json::Map<String, Value> = offsets
        .iter()
        .map(|offset| ((*offset).to_owned(), json!({ "id": "x", "podref": "apps/p", "ifname": "net1" })))
        .collect();
    json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "IPPool", "metadata": { "name": name, "namespace": "kube-system" },
        "spec": { "range": range, "allocations": allocations } })
}

#[test]
fn ranges_have_their_size() {
    // (the IPAM section, the ids and sizes of its ranges)
    for (ipam, want) in [
        (json!({ "type": "whereabouts", "range": "10.0.0.0/24" }), vec![("whereabouts 10.0.0.0/24", Some(254))]),
        (json!({ "type": "whereabouts", "range": "10.0.0.9/24" }), vec![("whereabouts 10.0.0.0/24", Some(254))]),
        (
            json!({ "type": "whereabouts", "range": "10.0.0.10-10.0.0.19/24" }),
            vec![("whereabouts 10.0.0.0/24", Some(10))],
        ),
        (
            json!({ "type": "whereabouts", "range": "10.0.0.0/24", "range_start": "10.0.0.250", "exclude": ["10.0.0.252/31", "10.0.0.253", "10.9.0.0/24"] }),
            vec![("whereabouts 10.0.0.0/24", Some(3))],
        ),
        (
            json!({ "type": "whereabouts", "range": "10.0.0.0/24", "range_end": "10.9.0.1", "network_name": "red" }),
            vec![("whereabouts red 10.0.0.0/24", Some(254))],
        ),
        (
            json!({ "type": "whereabouts", "ipRanges": [{ "range": "10.0.0.0/30" }, { "range": "fd00::/64" }, { "range": "x" }] }),
            vec![("whereabouts 10.0.0.0/30", Some(2)), ("whereabouts fd00::/64", None)],
        ),
        (
            json!({ "type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.19", "gateway": "10.1.0.15" }),
            vec![("host-local 10.1.0.0/24 10.1.0.10-10.1.0.19", Some(9))],
        ),
        (
            json!({ "type": "host-local", "ranges": [[{ "subnet": "10.1.0.0/30" }], [{ "subnet": "10.2.0.0/30" }]] }),
            vec![
                ("host-local 10.1.0.0/30 10.1.0.1-10.1.0.2", Some(1)),
                ("host-local 10.2.0.0/30 10.2.0.1-10.2.0.2", Some(1)),
            ],
        ),
        (json!({ "type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.2.0.1" }), vec![]),
        (json!({ "type": "whereabouts", "range": "0.0.0.0/0" }), vec![("whereabouts 0.0.0.0/0", Some(0xffff_fffe))]),
        (json!({ "type": "whereabouts", "range": "::/0" }), vec![("whereabouts ::/0", None)]),
        (json!({ "type": "static", "addresses": [{ "address": "10.0.0.5/24" }] }), vec![]),
        (json!({ "type": "dhcp" }), vec![]),
    ] {
        let map = build(&[with_ipam("net", &ipam)], |_| ());
        let found: Vec<_> = map.ranges.iter().map(|range| (range.id.as_str(), range.size)).collect();
        assert_eq!(found, want, "{ipam}");
        let ids: Vec<_> = map.nads[0].ranges.iter().map(String::as_str).collect();
        assert_eq!(ids, want.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    }
}

#[test]
fn ip_pools_belong_to_ranges() {
    let plain = json!({ "type": "whereabouts", "range": "10.0.0.0/24" });
    let red = json!({ "type": "whereabouts", "range": "10.0.0.0/24", "network_name": "red" });
    let sliced =
        json!({ "type": "whereabouts", "range": "10.3.0.0/16", "network_name": "red", "node_slice_size": "/24" });
    let nads = [with_ipam("a", &plain), with_ipam("b", &red), with_ipam("c", &sliced), with_ipam("d", &plain)];
    let pools = [
        pool("10.0.0.0-24", "10.0.0.0/24", &["1", "2", "x", "-5"]),
        pool("red-10.0.0.0-24", "10.0.0.0/24", &["7"]),
        pool("red-w1-10.3.1.0-24", "10.3.1.0/24", &["1"]),
        pool("red-w2-10.3.2.0-24", "10.3.2.0/24", &["1", "2"]),
        pool("10.9.0.0-24", "10.9.0.0/24", &["3"]),
        pool("broken", "10.9", &["3"]),
    ];
    let all: Vec<_> = nads.iter().chain(&pools).cloned().collect();
    let map = build(&all, |map| map.knows_leases(true));
    let found: Vec<_> = map
        .ranges
        .iter()
        .map(|range| (range.id.as_str(), range.leases, range.used, range.pools.len(), range.nads.len()))
        .collect();
    let pool = LeaseSource::IpPool;
    let want = [
        ("whereabouts 10.0.0.0/24", pool, Some(3), 1, 2),
        ("whereabouts 10.9.0.0/24", pool, Some(1), 1, 0),
        ("whereabouts red 10.0.0.0/24", pool, Some(1), 1, 1),
        ("whereabouts red 10.3.0.0/16", pool, Some(3), 2, 1),
    ];
    assert_eq!(found, want);
    let addresses: Vec<_> = map.leases.iter().map(|lease| lease.address.as_str()).collect();
    assert!(addresses.contains(&"10.3.2.2") && addresses.contains(&"10.0.0.7"), "{addresses:?}");
    // Without all NADs, an IPPool may be that of one that is not on the map.
    let map = build(&all, |map| map.knows_leases(false));
    assert_eq!(map.ranges.len(), 3);
    // No IPPool is not the same as none that could be read.
    for (is_known, want) in [(true, (LeaseSource::NoIpPool, Some(0))), (false, (LeaseSource::Unknown, None))] {
        let map = build(&nads, |map| {
            if is_known {
                map.knows_leases(true);
            }
        });
        assert_eq!((map.ranges[0].leases, map.ranges[0].used), want);
    }
}

#[test]
fn reservations_of_other_ranges_are_counted() {
    let reservation = |name: &str| json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "OverlappingRangeIPReservation", "metadata": { "name": name } });
    let ranges = json!({ "type": "whereabouts", "ipRanges": [{ "range": "10.0.0.0/24" }, { "range": "fd00::/64" }] });
    let red = json!({ "type": "whereabouts", "range": "10.0.0.0/24", "network_name": "red-net" });
    let objects = [
        with_ipam("a", &ranges),
        with_ipam("b", &red),
        pool("10.0.0.0-24", "10.0.0.0/24", &["1"]),
        reservation("10.0.0.1"),
        reservation("10.0.0.200"),
        reservation("10.1.0.1"),
        reservation("fd00--5"),
        reservation("red-net-10.0.0.7"),
        reservation("blue-10.0.0.8"),
        reservation("nothing"),
    ];
    let map = build(&objects, |_| ());
    let found: Vec<_> = map.ranges.iter().map(|range| (range.id.as_str(), range.reserved_elsewhere)).collect();
    let want = [("whereabouts 10.0.0.0/24", 1), ("whereabouts fd00::/64", 1), ("whereabouts red-net 10.0.0.0/24", 1)];
    assert_eq!(found, want);
}

#[test]
fn networks_meet_the_nads_they_render() {
    let stored = json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "a", "namespace": "apps", "annotations": { "sriovnetwork.openshift.io/owner-ref": "SriovNetwork.sriovnetwork.openshift.io/op/a" } },
        "spec": { "config": "{\"type\": \"sriov\", \"vlan\": 5}" } });
    let map = build(
        &[network("a", "cx7"), network("b", "cx7"), stored, nad("c", &json!({ "type": "bridge", "vlan": 0 }))],
        |_| (),
    );
    let found: Vec<_> = map
        .nads
        .iter()
        .map(|nad| {
            (
                nad.name.as_str(),
                nad.is_stored,
                nad.networks.len(),
                nad.resource.as_deref(),
                nad.vlan,
                nad.link.as_deref(),
            )
        })
        .collect();
    let want = [
        ("a", true, 1, None, Some(5), None),
        ("b", false, 1, Some("openshift.io/cx7"), None, None),
        ("c", true, 0, None, None, Some("bridge cni0")),
    ];
    assert_eq!(found, want);
    assert_eq!(map.networks[0].nad, "apps/a");
}

/// Whoever may create a network must not appear as the owner of a NAD elsewhere.
#[test]
fn networks_that_the_operator_ignores_render_nothing() {
    let from = |namespace: &str, name: &str| {
        let mut network = network(name, "cx7");
        network["metadata"]["namespace"] = json!(namespace);
        network["spec"]["ipam"] = json!(r#"{"type":"whereabouts","range":"10.0.0.0/24"}"#);
        network
    };
    let objects =
        [from("tenant", "a"), from("tenant", "ghost"), from("op", "b"), from("apps", "c"), nad("a", &json!({}))];
    let operator = |namespace: Option<&str>| {
        let facts = Facts { operator_namespace: namespace.map(str::to_owned), ..Facts::default() };
        let mut builder = MapBuilder::new(MapSource::Manifests, "p").with_operator(&Policy::default(), facts);
        objects.iter().for_each(|object| builder.add(MapKind::Judged, &object.to_string(), ""));
        builder.finish()
    };
    let map = operator(Some("op"));
    let networks: Vec<_> =
        map.networks.iter().map(|row| (row.name.as_str(), row.nad.as_str(), row.problem.is_some())).collect();
    let want = [("c", "apps/c", false), ("b", "apps/b", false), ("a", "", true), ("ghost", "", true)];
    assert_eq!(networks, want);
    let nads: Vec<_> = map.nads.iter().map(|row| (row.name.as_str(), row.is_stored, row.networks.len())).collect();
    assert_eq!(nads, [("a", true, 0), ("b", false, 1), ("c", false, 1)]);
    assert_eq!(map.ranges[0].nads.len(), 2, "{:?}", map.ranges);
    let namespaces: Vec<_> = map.namespaces.iter().map(|row| (row.name.as_str(), row.networks)).collect();
    assert_eq!(namespaces, [("apps", 2), ("tenant", 2)]);
    // Where it is not known which namespace is the operator's, every network may render a NAD.
    assert!(operator(None).networks.iter().all(|row| row.problem.is_none()));
}

#[test]
fn configs_that_say_nothing_have_a_reason() {
    let nad = |spec: Value| json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": "n" }, "spec": spec });
    for (spec, want) in [
        (json!({}), "it has no config: a file on each node has it"),
        (json!({ "config": "" }), "it has no config: a file on each node has it"),
        (json!({ "config": "x" }), "its config is not JSON"),
        (json!({ "config": "{}" }), "its config has no plugin"),
        (json!({ "config": "[]" }), "its config has no plugin"),
    ] {
        let map = build(&[nad(spec.clone())], |_| ());
        assert_eq!(map.nads[0].problem.as_deref(), Some(want), "{spec}");
    }
}

#[test]
fn resources_are_offered_and_requested() {
    let node = |name: &str, count: &str| {
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "status": { "allocatable": { "cpu": "8", "example.com/cx7": count, "example.com/other": "1", "hugepages.kubernetes.io/x": "3" } } })
    };
    let ended = {
        let mut ended = pod("ended", "a", &json!({ "example.com/cx7": "5" }));
        ended["status"] = json!({ "phase": "Succeeded" });
        ended
    };
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d", "namespace": "apps" }, "spec": { "replicas": 3, "template": {
        "metadata": { "annotations": { "k8s.v1.cni.cncf.io/networks": "a" } }, "spec": { "containers": [{ "resources": { "limits": { "example.com/cx7": 2 } } }] } } } });
    let mut agent = deployment.clone();
    (agent["kind"], agent["metadata"]["name"]) = (json!("DaemonSet"), json!("agent"));
    let objects = [
        policy("p", "cx7", &["ens1"]),
        network("a", "cx7"),
        node("w1", "4"),
        node("w2", "x"),
        pod("p", "a", &json!({ "example.com/cx7": "3", "example.com/gpu": "1" })),
        pod("gpu", "", &json!({ "example.com/gpu": "1" })),
        pod("plain", "", &json!({ "example.com/cx7": "1" })),
        ended,
        deployment,
        agent,
    ];
    let map = build(&objects, |_| ());
    let found: Vec<_> = map
        .resources
        .iter()
        .map(|row| (row.name.as_str(), row.policies.len(), row.allocatable, row.requested, row.requested_on_each_node))
        .collect();
    // The NAD is rendered with the assumed domain; the nodes have another one.
    assert_eq!(found, [("example.com/cx7", 1, Some(4), 10, 2), ("openshift.io/cx7", 1, Some(0), 0, 0)]);
    let of = &map.resources[0].nodes;
    assert_eq!((of[0].node.as_str(), of[0].allocatable, of[0].requested), ("w1", 4, 4));
    let users: Vec<_> = map.users.iter().map(|user| (user.name.as_str(), user.requests.len(), user.pods)).collect();
    assert_eq!(users, [("agent", 1, None), ("d", 1, Some(3)), ("p", 1, Some(1)), ("plain", 1, Some(1))]);
    // Without nodes, nothing is known of what they have.
    let map = build(&[network("a", "cx7")], |_| ());
    assert_eq!((map.resources[0].name.as_str(), map.resources[0].allocatable), ("openshift.io/cx7", None));
    assert_eq!(build(&[network("a", "cx7")], MapBuilder::knows_nodes).resources[0].allocatable, Some(0));
}

#[test]
fn pfs_are_those_of_nodes_or_else_of_policies() {
    let policies = [policy("a", "one", &["ens1#0-3", "ens2"]), policy("b", "two", &["ens1#4-7", "ens3#x"])];
    let partitions = |map: &NetworkMap| -> Vec<String> {
        let part = |part: &VfPartition| format!("{}-{} {} {}", part.from, part.to, part.resource, part.policy);
        let all = map.pfs.iter().map(|pf| (pf, pf.partitions.iter().map(part).collect::<Vec<_>>().join(", ")));
        all.map(|(pf, parts)| format!("{}/{}: {parts}", pf.node, pf.name)).collect()
    };
    assert_eq!(partitions(&build(&policies, |_| ())), ["/ens1: 0-3 one a, 4-7 two b", "/ens2: 0-7 one a"]);
    let state = json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": { "name": "w1", "namespace": "op" },
        "spec": { "interfaces": [
            { "pciAddress": "0000:3b:00.0", "name": "ens1", "numVfs": 8, "vfGroups": [
                { "resourceName": "two", "vfRange": "4-7", "policyName": "b" }, { "resourceName": "one", "vfRange": "0-3", "policyName": "a" }, { "vfRange": "x" }] },
            { "pciAddress": "0000:5e:00.0", "name": "gone", "numVfs": 2 }] },
        "status": { "interfaces": [{ "pciAddress": "0000:3b:00.0", "name": "ens1", "vendor": "15b3", "deviceID": "101d", "totalvfs": 16, "numVfs": 8 }] } });
    let map = build(&[policies.to_vec(), vec![state]].concat(), |_| ());
    assert_eq!(partitions(&map), ["w1/ens1: 0-3 one a, 4-7 two b", "w1/gone: "]);
    assert_eq!((map.pfs[0].device.as_str(), map.pfs[0].total_vfs), ("15b3:101d", Some(16)));
}

#[test]
fn names_are_cut_and_lists_are_bounded() {
    let long = "n".repeat(5000);
    let map =
        build(&[nad(&long, &json!({ "type": long, "vlan": 5 })), pod(&long, &"a,".repeat(2000), &json!({}))], |_| ());
    assert!(map.to_json().len() < 8000, "{} bytes", map.to_json().len());
    assert_eq!(map.users[0].networks.len(), MAX_PARTS);
    let mut builder = MapBuilder::new(MapSource::Manifests, "p");
    let one = pod("p", "a", &json!({})).to_string();
    let kind = MapKind::of("v1", "Pod").unwrap();
    for _ in 0..MAX_ROWS + 7 {
        builder.add(kind, &one, "");
    }
    assert_eq!(builder.finish().left_out.get("users"), Some(&7));
}

#[test]
fn namespaces_count_what_they_have() {
    let objects = [network("a", "cx7"), nad("b", &json!({ "type": "bridge" })), pod("p", "b", &json!({}))];
    let map = build(&objects, |_| ());
    let want = MapNamespace { name: "apps".to_owned(), nads: 2, networks: 1, users: 1, findings: 0 };
    assert_eq!(map.namespaces, [want]);
}
