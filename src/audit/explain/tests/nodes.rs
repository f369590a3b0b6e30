//! The nodes of a pod.

use super::*;

#[test]
fn nodes_are_compared_with_what_the_pod_needs() {
    let node = |name: &str, count: Option<u64>, labels: &[(&str, &str)]| ClusterNode {
        name: name.to_owned(),
        allocatable: count.map(|count| ("a.io/x".to_owned(), count)).into_iter().collect(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        is_unschedulable: name == "cordoned",
        ..ClusterNode::default()
    };
    let spec = |more: Value| {
        let mut spec = json!({ "containers": [{ "resources": { "limits": { "a.io/x": "2" } } }] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pod("net", &spec)
    };
    let nads = [("net", nad(SRIOV, "a.io/x"))];
    let all = vec![
        node("a", Some(2), &[("r", "1")]),
        node("b", Some(1), &[("r", "2")]),
        node("c", None, &[]),
        node("cordoned", Some(8), &[]),
    ];
    for (object, nodes, state, want) in [
        (
            spec(json!({})),
            Ok(all.clone()),
            LinkHealth::Good,
            &[
                "1 of 4 can run it: a",
                "b: it has 1 of a.io/x, and the pod needs 2",
                "c: it has no a.io/x",
                "cordoned: it is cordoned",
            ] as &[_],
        ),
        (
            spec(json!({ "nodeSelector": { "r": "2" } })),
            Ok(all.clone()),
            LinkHealth::Broken,
            &[
                "0 of 4 can run it",
                "a: its label r is 1, not 2",
                "b: it has 1 of a.io/x, and the pod needs 2",
                "c: it has no label r=2; it has no a.io/x",
                "cordoned: it is cordoned; it has no label r=2",
            ],
        ),
        (
            spec(json!({ "nodeName": "a" })),
            Ok(all[..2].to_vec()),
            LinkHealth::Good,
            &["1 of 2 can run it: a", "b: the pod is for node a; it has 1 of a.io/x, and the pod needs 2"],
        ),
        (
            spec(json!({})),
            Err("missing permission: list nodes".to_owned()),
            LinkHealth::Unknown,
            &["unknown: missing permission: list nodes"],
        ),
        (
            pod("net", &json!({})),
            Ok(all[1..3].to_vec()),
            LinkHealth::Good,
            &["1 of 2 can run it: b", "c: it has no a.io/x"],
        ),
    ] {
        let case = PodCase { nodes: known(nodes), ..PodCase::new(object.clone(), &nads) };
        let plan = case.plan().nodes.unwrap();
        let lines: Vec<String> = plan
            .lines()
            .into_iter()
            .filter(|(label, _)| matches!(*label, "nodes" | ""))
            .map(|(_, says)| says)
            .collect();
        assert_eq!(
            lines.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
            want.iter().copied().collect(),
            "{object}"
        );
        assert_eq!(plan.state, state, "{object}");
    }
    let affinity = json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {} } } });
    let case = PodCase { nodes: known(Ok(all.clone())), ..PodCase::new(spec(affinity.clone()), &nads) };
    let plan = case.plan().nodes.unwrap();
    assert_eq!(plan.state, LinkHealth::Unknown);
    let says: Vec<_> = plan.lines().into_iter().map(|(_, says)| says).collect();
    assert!(says.contains(&"0 of 4 can run it".to_owned()), "{says:?}");
    assert!(says.iter().any(|says| says.starts_with("a: perhaps: the pod has conditions")), "{says:?}");
    // A pod that runs on its node has passed all conditions.
    let mut placed = spec(affinity);
    placed["spec"]["nodeName"] = json!("a");
    let case = PodCase { nodes: known(Ok(all)), ..PodCase::new(placed, &nads) };
    assert_eq!(case.plan().nodes.unwrap().state, LinkHealth::Good);
}

fn node(name: &str, spec: &Value, labels: &Value) -> ClusterNode {
    ClusterNode::of(&json!({ "metadata": { "name": name, "labels": labels }, "spec": spec }))
}

/// The lines about the nodes themselves.
fn node_lines(case: &PodCase) -> Vec<String> {
    let lines = case.plan().nodes.unwrap().lines();
    lines.into_iter().filter(|(label, _)| matches!(*label, "nodes" | "" | "labels")).map(|(_, says)| says).collect()
}

#[test]
fn taints_keep_pods_away_that_do_not_tolerate_them() {
    let plane = json!({ "taints": [{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }] });
    let gone = json!({ "taints": [{ "key": "out", "value": "of-service", "effect": "NoExecute" }] });
    let cordoned = json!({ "unschedulable": true, "taints": [{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }] });
    let soft = json!({ "taints": [{ "key": "a", "effect": "PreferNoSchedule" }] });
    let late = json!({ "taints": [{ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" }] });
    let nodes =
        [("cp1", plane), ("gone", gone), ("quiet", cordoned), ("soft", soft), ("late", late), ("w1", json!({}))]
            .map(|(name, spec)| node(name, &spec, &json!({})));
    let nads = [("net", nad(MACVLAN, ""))];
    for (spec, want) in [
        (
            json!({}),
            &[
                "3 of 6 can run it: soft, late, w1",
                "quiet: it is cordoned",
                "cp1: the pod does not tolerate its taint node-role.kubernetes.io/control-plane:NoSchedule",
                "gone: the pod does not tolerate its taint out=of-service:NoExecute",
            ] as &[_],
        ),
        (json!({ "tolerations": [{ "operator": "Exists" }] }), &["6 of 6 can run it: cp1, gone, quiet and 3 more"]),
        (
            json!({ "tolerations": [{ "key": "out", "operator": "Lt", "value": "5" }] }),
            &[
                "3 of 6 can run it: soft, late, w1",
                "quiet: it is cordoned",
                "gone: perhaps: it is not known whether the pod tolerates its taint out=of-service:NoExecute",
                "cp1: the pod does not tolerate its taint node-role.kubernetes.io/control-plane:NoSchedule",
            ],
        ),
    ] {
        let case = PodCase { nodes: known(Ok(nodes.to_vec())), ..PodCase::new(pod("net", &spec), &nads) };
        assert_eq!(node_lines(&case), want, "{spec}");
    }
    // The scheduler has no say in a pod that names its node.
    for (name, state) in [("cp1", LinkHealth::Good), ("quiet", LinkHealth::Good), ("gone", LinkHealth::Broken)] {
        let case = PodCase::new(pod("net", &json!({ "nodeName": name })), &nads);
        let plan = PodCase { nodes: known(Ok(nodes.to_vec())), ..case }.plan();
        assert_eq!(plan.nodes.unwrap().state, state, "{name}");
    }
}

/// network-resources-injector copies the label of a NAD, if it runs, and if there is a resource to request.
#[test]
fn labels_of_nads_count_where_they_are_copied() {
    let with_label = |config: &str, resource: &str| NadPlan {
        node_label: Some(("rack".to_owned(), "1".to_owned())),
        ..nad(config, resource)
    };
    let nodes = || {
        let labelled = [("a", json!({ "rack": "1" })), ("b", json!({}))];
        labelled.map(|(name, labels)| node(name, &json!({}), &labels)).to_vec()
    };
    let copied = "network-resources-injector";
    for (resource, injector, want) in [
        (
            "a.io/x",
            None,
            vec![
                format!("perhaps rack=1: {copied}, if it runs, copies it from NAD apps/net"),
                "1 of 2 can run it: a".to_owned(),
                format!("b: perhaps: it has no label rack=1, which {copied}, if it runs, copies from NAD apps/net"),
            ],
        ),
        (
            "a.io/x",
            Some(ResourceInjector::Missing),
            vec![
                format!("rack=1, which {copied} copies from NAD apps/net"),
                "1 of 2 can run it: a".to_owned(),
                format!("b: it has no label rack=1, which {copied} copies from NAD apps/net"),
            ],
        ),
        ("a.io/x", Some(ResourceInjector::None), vec!["2 of 2 can run it: a, b".to_owned()]),
        (
            "",
            None,
            vec![
                format!("not rack=1 of NAD apps/net: {copied} copies it only if a network of the pod names a resource"),
                "2 of 2 can run it: a, b".to_owned(),
            ],
        ),
    ] {
        let case = PodCase::new(pod("net", &json!({})), &[("net", with_label(MACVLAN, resource))]);
        let case = PodCase { nodes: known(Ok(nodes())), injector, ..case };
        assert_eq!(node_lines(&case), want, "{resource} {injector:?}");
    }
}

/// A selector by the name of the node gives each of the others a reason of its own.
#[test]
fn reasons_are_listed_up_to_a_number() {
    let nodes: Vec<_> = (0..300)
        .map(|number| node(&format!("w{number}"), &json!({}), &json!({ "host": number.to_string() })))
        .collect();
    let case = PodCase::new(pod("net", &json!({ "nodeSelector": { "host": "7" } })), &[("net", nad(MACVLAN, ""))]);
    let lines = node_lines(&PodCase { nodes: known(Ok(nodes)), ..case });
    assert_eq!(
        (lines.len(), lines[1].as_str(), lines.last().unwrap().as_str()),
        (11, "1 of 300 can run it: w7", "291 more for other reasons")
    );
}

/// Manifests of nodes rarely say what device plugins report: then the node policies count.
#[test]
fn without_a_cluster_node_policies_say_what_nodes_offer() {
    let node = |name: &str, label: &str| ClusterNode {
        name: name.to_owned(),
        labels: [("nic".to_owned(), label.to_owned())].into(),
        ..ClusterNode::default()
    };
    let policy = NodePolicy {
        name: "p".to_owned(),
        resource_name: "x".to_owned(),
        nodes: [("nic".to_owned(), "e810".to_owned())].into(),
        vfs: Some(8),
    };
    let case = PodCase::new(requesting("net", &json!({ "a.io/x": "1" })), &[("net", nad(SRIOV, "a.io/x"))]);
    let nodes = KnownNodes {
        nodes: Ok([node("a", "e810"), node("b", "x710")].into()),
        policies: Ok(vec![policy]),
        served: [].into(),
        prefix: Some("a.io".to_owned()),
        is_cluster: false,
    };
    let plan = PodCase { nodes: nodes.clone(), ..case }.plan().nodes.unwrap();
    assert_eq!(plan.state, LinkHealth::Unknown);
    assert_eq!(
        plan.lines(),
        [
            ("needs", "1 of a.io/x: offered by p on nodes with nic=e810".to_owned()),
            ("nodes", "0 of 2 can run it".to_owned()),
            ("", "b: no node policy that is for it offers a.io/x".to_owned()),
            ("", "a: perhaps: its devices are not known".to_owned()),
        ]
    );
    let case = PodCase::new(requesting("net", &json!({ "a.io/x": "1" })), &[("net", nad(SRIOV, "a.io/x"))]);
    let other = KnownNodes { prefix: Some("b.io".to_owned()), ..nodes };
    let plan = PodCase { nodes: other, ..case }.plan().nodes.unwrap();
    assert_eq!(plan.lines()[0].1, "1 of a.io/x: no node policy offers it");
}
