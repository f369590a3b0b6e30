//! The networks that a pod asks for, as Multus reads them from its annotation.

use serde_json::Value;

use super::ObjectKey;

/// The annotation of a pod that lists its networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";

/// The NADs in the text of that annotation, for a pod in that namespace: a JSON list, or names between commas.
pub fn selected_nads(text: &str, namespace: &str) -> Vec<ObjectKey> {
    // How Multus tells the two forms apart.
    if text.contains(['[', '{', '"']) {
        let list: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        let key = |element: &Value| {
            let field = |name: &str| element.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            Some(ObjectKey::new(field("namespace").unwrap_or(namespace), field("name")?))
        };
        return list.iter().filter_map(key).collect();
    }
    let key = |part: &str| {
        let network = part.split('@').next().unwrap_or_default().trim();
        match network.split_once('/') {
            Some((namespace, name)) => ObjectKey::new(namespace.trim(), name.trim()),
            None => ObjectKey::new(namespace, network),
        }
    };
    text.split(',').map(key).filter(|key| !key.name().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_annotation_are_read() {
        for (text, want) in [
            ("net", &["apps/net"] as &[_]),
            ("a, other/b@eth5 ,c@x", &["apps/a", "other/b", "apps/c"]),
            ("", &[]),
            (" , ", &[]),
            (
                r#"[{"name":"a"},{"name":"b","namespace":"other","interface":"x"},{"namespace":"z"}]"#,
                &["apps/a", "other/b"],
            ),
            (r#"[{"name":"a""#, &[]),
            (r#"{"name":"a"}"#, &[]),
        ] {
            let found: Vec<String> = selected_nads(text, "apps").iter().map(ToString::to_string).collect();
            assert_eq!(found, want, "{text}");
        }
    }
}
