//! The networks that a pod asks for, as Multus reads them from its annotation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ObjectKey;

/// The annotation of a pod that lists its networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";

/// The NADs in the text of that annotation, each once, for a pod in that namespace: a JSON list, or names between commas. `None` if
/// it cannot be read.
pub fn selected_nads(text: &str, namespace: &str) -> Option<Vec<ObjectKey>> {
    let mut nads = listed_nads(text, namespace)?;
    let mut seen = BTreeSet::new();
    nads.retain(|nad| seen.insert(nad.clone()));
    Some(nads)
}

fn listed_nads(text: &str, namespace: &str) -> Option<Vec<ObjectKey>> {
    // How Multus tells the two forms apart.
    if text.contains(['[', '{', '"']) {
        let list: Vec<Value> = serde_json::from_str(text).ok()?;
        let key = |element: &Value| {
            let field = |name: &str| element.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            Some(ObjectKey::new(field("namespace").unwrap_or(namespace), field("name")?))
        };
        return list.iter().map(key).collect();
    }
    let key = |part: &str| {
        let network = part.split('@').next().unwrap_or_default().trim();
        match network.split_once('/') {
            Some((namespace, name)) => ObjectKey::new(namespace.trim(), name.trim()),
            None => ObjectKey::new(namespace, network),
        }
    };
    Some(text.split(',').map(key).filter(|key| !key.name().is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_annotation_are_read() {
        for (text, want) in [
            ("net", Some(&["apps/net"] as &[_])),
            ("a, other/b@eth5 ,c@x,a", Some(&["apps/a", "other/b", "apps/c"])),
            ("", Some(&[])),
            (" , ", Some(&[])),
            (
                r#"[{"name":"a"},{"name":"b","namespace":"other","interface":"x"},{"name":"a","namespace":"apps"}]"#,
                Some(&["apps/a", "other/b"]),
            ),
            (r#"[{"namespace":"z"}]"#, None),
            (r#"[{"name":"a""#, None),
            (r#"{"name":"a"}"#, None),
        ] {
            let found = selected_nads(text, "apps");
            let found: Option<Vec<String>> = found.map(|all| all.iter().map(ToString::to_string).collect());
            let want: Option<Vec<String>> = want.map(|all| all.iter().map(|key| (*key).to_owned()).collect());
            assert_eq!(found, want, "{text}");
        }
    }
}
