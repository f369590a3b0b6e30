//! Taints of nodes, and the tolerations of pods.

use super::raw::RawFields;
use super::{WorkloadKind, name_of};

/// The taint of a node that is cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A taint of a node that keeps pods away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// A toleration of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
}

impl Toleration {
    pub(super) fn read(fields: &RawFields<'_>) -> Self {
        let text = |key| name_of(&fields.text(key).value().unwrap_or_default()).to_owned();
        Self { key: text("key"), operator: text("operator"), value: text("value"), effect: text("effect") }
    }

    fn always(key: &str, effect: &str) -> Self {
        let text = |text: &str| text.to_owned();
        Self { key: text(key), operator: text("Exists"), value: String::new(), effect: text(effect) }
    }

    /// Those that Kubernetes adds to every pod, and to those of a DaemonSet.
    pub(super) fn added_to(kind: WorkloadKind) -> Vec<Self> {
        let mut added: Vec<_> = ["not-ready", "unreachable"]
            .map(|name| Self::always(&format!("node.kubernetes.io/{name}"), "NoExecute"))
            .into();
        if kind == WorkloadKind::DaemonSet {
            let pressures = ["disk-pressure", "memory-pressure", "pid-pressure"];
            added.extend(pressures.map(|name| Self::always(&format!("node.kubernetes.io/{name}"), "NoSchedule")));
            added.push(Self::always(UNSCHEDULABLE, "NoSchedule"));
        }
        added
    }

    /// Whether it tolerates a taint; `None` if it compares in a way that nadmit does not know.
    pub fn tolerates(&self, taint: &Taint) -> Option<bool> {
        let is_for = |own: &str, of_taint: &str| own.is_empty() || own == of_taint;
        if !is_for(&self.effect, &taint.effect) || !is_for(&self.key, &taint.key) {
            return Some(false);
        }
        match self.operator.as_str() {
            "" | "Equal" => Some(self.value == taint.value),
            "Exists" => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_match_as_in_kubernetes() {
        let taint = Taint { key: "a".to_owned(), value: "b".to_owned(), effect: "NoSchedule".to_owned() };
        for (json, want) in [
            (r#"{"key":"a","value":"b"}"#, Some(true)),
            (r#"{"key":"a","operator":"Equal","value":"b","effect":"NoSchedule"}"#, Some(true)),
            (r#"{"key":"a","value":"c"}"#, Some(false)),
            (r#"{"key":"a","operator":"Exists"}"#, Some(true)),
            (r#"{"operator":"Exists"}"#, Some(true)),
            (r#"{"key":"b","operator":"Exists"}"#, Some(false)),
            (r#"{"key":"a","operator":"Exists","effect":"NoExecute"}"#, Some(false)),
            (r#"{"key":"a","operator":"Gt","value":"5"}"#, None),
            (r#"{"key":5}"#, Some(false)),
        ] {
            let toleration = Toleration::read(&RawFields::parse(json).unwrap());
            assert_eq!(toleration.tolerates(&taint), want, "{json}");
        }
        assert_eq!(taint.to_string(), "a=b:NoSchedule");
    }
}
