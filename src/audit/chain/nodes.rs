//! Nodes and node policies, as the API server and manifests have them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::resources::{Taint, name_of};

/// How many labels and resources of an object are kept: a tenant can write neither, but a file may hold anything.
const MAX_MEMBERS: usize = 256;

/// A SriovNetworkNodePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePolicy {
    /// Its name.
    pub name: String,
    /// `spec.resourceName`
    pub resource_name: String,
    /// The labels of the nodes that it is for.
    pub nodes: BTreeMap<String, String>,
    /// How many VFs of each device it makes.
    pub vfs: Option<i64>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// The allocatable devices by extended resource.
    pub allocatable: BTreeMap<String, u64>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints that keep pods away.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub is_unschedulable: bool,
}

impl NodePolicy {
    /// Reads one.
    pub fn of(policy: &Value) -> Self {
        Self {
            name: text(policy, "/metadata/name"),
            resource_name: text(policy, "/spec/resourceName"),
            nodes: texts(policy, "/spec/nodeSelector"),
            vfs: policy.pointer("/spec/numVfs").and_then(Value::as_i64),
        }
    }
}

impl ClusterNode {
    /// Reads one.
    pub fn of(node: &Value) -> Self {
        let allocatable = node.pointer("/status/allocatable").and_then(Value::as_object);
        // Extended resources are integers and have a domain.
        let counted = |(name, count): (&String, &Value)| {
            let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
            name.contains('/').then(|| (name_of(name).to_owned(), count))
        };
        Self {
            name: text(node, "/metadata/name"),
            allocatable: allocatable.into_iter().flatten().filter_map(counted).take(MAX_MEMBERS).collect(),
            labels: texts(node, "/metadata/labels"),
            taints: taints(node),
            is_unschedulable: node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)),
        }
    }
}

fn taints(node: &Value) -> Vec<Taint> {
    let all = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let taint = |taint: &Value| Taint {
        key: text(taint, "/key"),
        value: text(taint, "/value"),
        effect: text(taint, "/effect"),
    };
    all.map(taint)
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .take(MAX_MEMBERS)
        .collect()
}

fn text(object: &Value, pointer: &str) -> String {
    name_of(object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()).to_owned()
}

/// The texts of a map.
fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let members = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((name_of(key).to_owned(), name_of(value.as_str()?).to_owned()));
    members.filter_map(text).take(MAX_MEMBERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_nodes_and_policies() {
        let node = json!({ "metadata": { "name": "w1", "labels": { "rack": "1", "odd": 5 } }, "spec": { "unschedulable": true,
            "taints": [{ "key": "a", "effect": "NoSchedule" }, { "key": "b", "value": "c", "effect": "PreferNoSchedule" }, 5] },
            "status": { "allocatable": { "cpu": "4", "a.io/x": "2", "a.io/y": 3, "a.io/z": "1k" } } });
        let node = ClusterNode::of(&node);
        assert_eq!((node.name.as_str(), node.labels.len(), node.is_unschedulable), ("w1", 1, true));
        assert_eq!(node.taints.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:NoSchedule"]);
        assert_eq!(
            node.allocatable.into_iter().collect::<Vec<_>>(),
            [("a.io/x".to_owned(), 2), ("a.io/y".to_owned(), 3)]
        );
        let policy = json!({ "metadata": { "name": "p" }, "spec": { "resourceName": "cx7", "numVfs": 8, "nodeSelector": { "rack": "1" } } });
        let policy = NodePolicy::of(&policy);
        assert_eq!((policy.name.as_str(), policy.resource_name.as_str(), policy.vfs), ("p", "cx7", Some(8)));
        assert_eq!(policy.nodes.get("rack").map(String::as_str), Some("1"));
        assert_eq!((NodePolicy::of(&json!(5)), ClusterNode::of(&json!([]))), Default::default());
    }
}
