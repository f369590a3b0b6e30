//! Which nodes a pod may run on, as its spec says it.

use std::collections::BTreeMap;

use super::raw::{FieldValue, RawFields};
use super::{Toleration, Workload, name_of};

/// How many labels of a nodeSelector are compared.
const MAX_LABELS: usize = 64;
/// How many tolerations are compared.
const MAX_TOLERATIONS: usize = 64;

/// What a pod asks of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeConstraints {
    /// The node that it is for, or that it runs on.
    pub node: Option<String>,
    /// The labels that the node must have.
    pub labels: BTreeMap<String, String>,
    /// The taints that it tolerates.
    pub tolerations: Vec<Toleration>,
    /// Whether there are conditions that are not compared: a node affinity, or more labels or tolerations.
    pub has_others: bool,
}

impl Workload<'_> {
    /// What its pods ask of their nodes.
    pub fn node_constraints(&self) -> NodeConstraints {
        let end = "/metadata/annotations/";
        let template = self.annotation_pointer("");
        let value = |field: &str| {
            let template = template.strip_suffix(end).unwrap_or_default();
            self.value_at(&format!("{template}/spec/{field}")).into_owned()
        };
        let selector = value("nodeSelector");
        let selector = RawFields::parse(&selector).unwrap_or_default();
        let labels = selector.keys().take(MAX_LABELS).filter_map(|key| match selector.text(key) {
            FieldValue::Value(text) => Some((name_of(key).to_owned(), name_of(&text).to_owned())),
            FieldValue::Absent | FieldValue::Wrong(_) => None,
        });
        let node: Option<String> = serde_json::from_str(&value("nodeName")).ok();
        let affinity = value("affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
        let written = self.pod_spec().objects("tolerations").value().unwrap_or_default();
        let mut tolerations: Vec<_> = written.iter().take(MAX_TOLERATIONS).map(Toleration::read).collect();
        let constraints = Self::constraints(node, labels.collect(), selector.keys().count(), &affinity);
        let has_others = constraints.has_others || written.len() > tolerations.len();
        tolerations.extend(Toleration::added_to(self.kind));
        NodeConstraints { tolerations, has_others, ..constraints }
    }

    fn constraints(
        node: Option<String>,
        labels: BTreeMap<String, String>,
        given: usize,
        affinity: &str,
    ) -> NodeConstraints {
        let has_affinity = !affinity.is_empty() && affinity != "null";
        let has_others = has_affinity || labels.len() < given;
        let node = node.filter(|node| !node.is_empty());
        NodeConstraints { node, labels, tolerations: Vec::new(), has_others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Object;

    #[test]
    fn constraints_are_read_from_pods_and_templates() {
        let spec = r#"{"nodeName":"w1","nodeSelector":{"a":"b","c":"d"},"affinity":{"nodeAffinity":{}}}"#;
        let affinity = r#"{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}"#;
        let annotated = r#"{"k8s.v1.cni.cncf.io/networks":"net"}"#;
        let pod = |spec: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","annotations":{annotated}}},"spec":{spec}}}"#
            )
        };
        let deployment = |spec: &str| {
            format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"p"}},"spec":{{"template":{{"metadata":{{"annotations":{annotated}}},"spec":{spec}}}}}}}"#
            )
        };
        let labels = || [("a", "b"), ("c", "d")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let none = NodeConstraints::default;
        let whole = NodeConstraints { node: Some("w1".to_owned()), labels: labels(), ..none() };
        let other = NodeConstraints { has_others: true, ..none() };
        for (json, want) in [
            (pod(spec), whole.clone()),
            (deployment(spec), whole),
            (pod("{}"), NodeConstraints::default()),
            (pod(affinity), other.clone()),
            (deployment(affinity), other.clone()),
            (pod(r#"{"nodeSelector":{"a":5},"nodeName":""}"#), other),
        ] {
            let Ok(Some(Object::Workload(workload))) = Object::read(&json) else { panic!("{json}") };
            let found = NodeConstraints { tolerations: Vec::new(), ..workload.node_constraints() };
            assert_eq!(found, want, "{json}");
        }
        let tolerating = r#"{"tolerations":[{"key":"a","operator":"Exists"}]}"#;
        for (json, want) in [(pod("{}"), 2), (pod(tolerating), 3), (deployment(tolerating), 3)] {
            let Ok(Some(Object::Workload(workload))) = Object::read(&json) else { panic!("{json}") };
            assert_eq!(workload.node_constraints().tolerations.len(), want, "{json}");
        }
    }
}
