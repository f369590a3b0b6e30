//! The index of current findings by object, for metrics and to detect deleted objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::policy::Verdict;
use crate::resources::ObjectKey;

/// A rule id and an action.
type RuleAction = (&'static str, &'static str);

/// The current findings. Objects without findings are not included.
#[derive(Debug, Default)]
pub struct FindingIndex {
    /// By UID.
    objects: HashMap<Box<str>, IndexedObject>,
    /// The UIDs of the objects with each key.
    by_key: HashMap<ObjectKey, Vec<Box<str>>>,
    counts: BTreeMap<RuleAction, usize>,
    /// How many objects have a finding of each rule.
    objects_by_rule: HashMap<&'static str, usize>,
}

#[derive(Debug)]
struct IndexedObject {
    key: ObjectKey,
    found: Vec<RuleAction>,
    /// Whether it was seen in the current scan.
    is_current: bool,
}

impl FindingIndex {
    /// Starts a full scan.
    pub fn begin(&mut self) {
        self.objects.values_mut().for_each(|object| object.is_current = false);
    }

    /// Ends a full scan: objects that were not seen are removed.
    pub fn finish(&mut self) {
        let gone: Vec<_> =
            self.objects.iter().filter(|(_, object)| !object.is_current).map(|(uid, _)| uid.clone()).collect();
        gone.iter().for_each(|uid| self.remove(uid));
    }

    /// Starts the audit of one key.
    pub fn leave(&mut self, key: &ObjectKey) {
        for uid in self.by_key.get(key).into_iter().flatten() {
            if let Some(object) = self.objects.get_mut(uid) {
                object.is_current = false;
            }
        }
    }

    /// Ends the audit of one key; returns the deleted objects.
    pub fn left(&mut self, key: &ObjectKey) -> Vec<Box<str>> {
        let is_gone = |uid: &str| self.objects.get(uid).is_some_and(|object| !object.is_current);
        let gone: Vec<_> = self.by_key.get(key).into_iter().flatten().filter(|uid| is_gone(uid)).cloned().collect();
        gone.iter().for_each(|uid| self.remove(uid));
        gone
    }

    /// Sets the findings of an object with that key.
    pub fn set_findings(&mut self, uid: &str, key: &ObjectKey, verdict: &Verdict) {
        self.remove(uid);
        let found: Vec<RuleAction> =
            verdict.findings.iter().map(|finding| (finding.rule.id, finding.action.name())).collect();
        if found.is_empty() {
            return;
        }
        for counted in &found {
            *self.counts.entry(*counted).or_default() += 1;
        }
        for rule in rules(&found) {
            *self.objects_by_rule.entry(rule).or_default() += 1;
        }
        self.by_key.entry(key.clone()).or_default().push(uid.into());
        let object = IndexedObject { key: key.clone(), found, is_current: true };
        self.objects.insert(uid.into(), object);
    }

    /// The number of findings by rule and action.
    pub fn counts(&self) -> impl Iterator<Item = (RuleAction, usize)> {
        self.counts.iter().map(|(counted, count)| (*counted, *count))
    }

    /// How many objects have findings.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// How many objects have a finding of that rule.
    pub fn objects_with(&self, rule: &str) -> usize {
        self.objects_by_rule.get(rule).copied().unwrap_or_default()
    }

    /// The keys of objects with a finding of that rule.
    pub fn keys_with(&self, rule: &str) -> impl Iterator<Item = &ObjectKey> {
        let has = move |object: &&IndexedObject| object.found.iter().any(|(found, _)| *found == rule);
        self.objects.values().filter(has).map(|object| &object.key)
    }

    fn remove(&mut self, uid: &str) {
        let Some(object) = self.objects.remove(uid) else { return };
        if let Some(uids) = self.by_key.get_mut(&object.key) {
            uids.retain(|other| **other != *uid);
            if uids.is_empty() {
                self.by_key.remove(&object.key);
            }
        }
        for rule in rules(&object.found) {
            if let Some(count) = self.objects_by_rule.get_mut(rule) {
                *count -= 1;
            }
        }
        for counted in object.found {
            if let Some(count) = self.counts.get_mut(&counted) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&counted);
                }
            }
        }
    }
}

/// The rules of some findings, each once.
fn rules(found: &[RuleAction]) -> BTreeSet<&'static str> {
    found.iter().map(|(rule, _)| *rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Facts, Policy, Subject, judge};
    use crate::resources::Object;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("s", name)
    }

    fn verdict(config: &str) -> Verdict {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "n", "namespace": "s" }, "spec": { "config": config },
        })
        .to_string();
        judge(&Subject::manifest(&Object::read(&json).unwrap().unwrap()), &Facts::default(), &Policy::default())
    }

    #[test]
    fn counts_follow_the_indexed_findings() {
        let (bad, good) = (verdict("{"), verdict(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
        assert!(!bad.findings.is_empty() && good.findings.is_empty());
        let mut index = FindingIndex::default();
        index.set_findings("a", &key("n"), &bad);
        index.set_findings("a", &key("n"), &bad);
        index.set_findings("b", &key("other"), &bad);
        assert_eq!(index.counts().collect::<Vec<_>>(), [(("nad/config-not-json", "deny"), 2)]);
        assert_eq!((index.objects(), index.objects_with("nad/config-not-json")), (2, 2));
        index.set_findings("a", &key("n"), &good);
        assert_eq!(index.counts().collect::<Vec<_>>(), [(("nad/config-not-json", "deny"), 1)]);
        // One key is audited, and its object was deleted.
        index.leave(&key("other"));
        assert_eq!(index.left(&key("other")), ["b".into()]);
        assert_eq!(index.counts().count(), 0);
        // A full scan does not find one of the objects.
        index.set_findings("c", &key("c"), &bad);
        index.set_findings("d", &key("d"), &bad);
        index.begin();
        index.set_findings("c", &key("c"), &bad);
        index.finish();
        assert_eq!(index.objects(), 1);
        assert_eq!(index.keys_with("nad/config-not-json").collect::<Vec<_>>(), [&key("c")]);
        assert_eq!((index.objects_with("nad/config-not-json"), index.by_key.len()), (1, 1));
    }
}
