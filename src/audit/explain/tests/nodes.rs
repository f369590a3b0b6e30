//! The nodes of a pod.

use super::*;

#[test]
fn nodes_are_compared_with_what_the_pod_needs() {
    let node = |name: &str, count: Option<u64>, labels: &[(&str, &str)]| ClusterNode {
        name: name.to_owned(),
        allocatable: count.map(|count| ("a.io/x".to_owned(), count)).into_iter().collect(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        is_unschedulable: name == "cordoned",
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
    let case = PodCase { nodes: known(Ok(all)), ..PodCase::new(spec(affinity), &nads) };
    assert_eq!(case.plan().nodes.unwrap().state, LinkHealth::Unknown);
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
        nodes: Ok(vec![node("a", "e810"), node("b", "x710")]),
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
