//! What is found in a cluster now, by object: for counts, and to know what is gone.

use std::collections::{BTreeMap, HashMap};

use crate::policy::Verdict;

/// A rule and what is done about it.
type Counted = (&'static str, &'static str);

/// The findings that stand. Objects without any are not among them.
#[derive(Debug, Default)]
pub struct Standing {
    objects: HashMap<Box<str>, Object>,
    counts: BTreeMap<Counted, usize>,
}

#[derive(Debug)]
struct Object {
    namespace: Box<str>,
    name: Box<str>,
    found: Vec<Counted>,
    /// Whether it was looked at since that was begun.
    is_current: bool,
}

impl Standing {
    /// Everything is about to be looked at.
    pub fn begin(&mut self) {
        self.objects.values_mut().for_each(|object| object.is_current = false);
    }

    /// Everything was looked at: what was not there is gone.
    pub fn finish(&mut self) {
        let gone: Vec<_> =
            self.objects.iter().filter(|(_, object)| !object.is_current).map(|(uid, _)| uid.clone()).collect();
        gone.iter().for_each(|uid| self.remove(uid));
    }

    /// One place is about to be looked at.
    pub fn leave(&mut self, namespace: &str, name: &str) {
        self.at(namespace, name).for_each(|(_, object)| object.is_current = false);
    }

    /// It was looked at: the objects that are gone from there.
    pub fn left(&mut self, namespace: &str, name: &str) -> Vec<Box<str>> {
        let gone = self.at(namespace, name).filter(|(_, object)| !object.is_current);
        let gone: Vec<Box<str>> = gone.map(|(uid, _)| uid.clone()).collect();
        gone.iter().for_each(|uid| self.remove(uid));
        gone
    }

    /// What was found in an object, which belongs to that place.
    pub fn stands(&mut self, uid: &str, (namespace, name): (&str, &str), verdict: &Verdict) {
        self.remove(uid);
        let found: Vec<Counted> =
            verdict.findings.iter().map(|finding| (finding.rule.id, finding.action.name())).collect();
        if found.is_empty() {
            return;
        }
        for counted in &found {
            *self.counts.entry(*counted).or_default() += 1;
        }
        let object = Object { namespace: namespace.into(), name: name.into(), found, is_current: true };
        self.objects.insert(uid.into(), object);
    }

    /// How many findings there are, by rule and by what is done about them.
    pub fn counts(&self) -> impl Iterator<Item = (Counted, usize)> {
        self.counts.iter().map(|(counted, count)| (*counted, *count))
    }

    /// How many objects have findings.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// How many objects have a finding of that rule.
    pub fn objects_with(&self, rule: &str) -> usize {
        self.spots_with(rule).count()
    }

    /// The places of the objects that have one.
    pub fn spots_with(&self, rule: &str) -> impl Iterator<Item = (Box<str>, Box<str>)> {
        let has = move |object: &&Object| object.found.iter().any(|(found, _)| *found == rule);
        self.objects.values().filter(has).map(|object| (object.namespace.clone(), object.name.clone()))
    }

    fn at(&mut self, namespace: &str, name: &str) -> impl Iterator<Item = (&Box<str>, &mut Object)> {
        self.objects.iter_mut().filter(move |(_, object)| *object.namespace == *namespace && *object.name == *name)
    }

    fn remove(&mut self, uid: &str) {
        for counted in self.objects.remove(uid).into_iter().flat_map(|object| object.found) {
            if let Some(count) = self.counts.get_mut(&counted) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&counted);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Facts, Policy, Subject, judge};
    use crate::resources::Object;

    fn verdict(config: &str) -> Verdict {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "n", "namespace": "s" }, "spec": { "config": config },
        })
        .to_string();
        judge(&Subject::manifest(&Object::read(&json).unwrap().unwrap()), &Facts::default(), &Policy::default())
    }

    #[test]
    fn counts_follow_what_stands() {
        let (bad, good) = (verdict("{"), verdict(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
        assert!(!bad.findings.is_empty() && good.findings.is_empty());
        let mut standing = Standing::default();
        standing.stands("a", ("s", "n"), &bad);
        standing.stands("a", ("s", "n"), &bad);
        standing.stands("b", ("s", "other"), &bad);
        assert_eq!(standing.counts().collect::<Vec<_>>(), [(("nad/config-not-json", "deny"), 2)]);
        assert_eq!((standing.objects(), standing.objects_with("nad/config-not-json")), (2, 2));
        standing.stands("a", ("s", "n"), &good);
        assert_eq!(standing.counts().collect::<Vec<_>>(), [(("nad/config-not-json", "deny"), 1)]);
        // One place is looked at, and its object is gone.
        standing.leave("s", "other");
        assert_eq!(standing.left("s", "other"), ["b".into()]);
        assert_eq!(standing.counts().count(), 0);
        // Everything is looked at, and one was not there.
        standing.stands("c", ("s", "c"), &bad);
        standing.stands("d", ("s", "d"), &bad);
        standing.begin();
        standing.stands("c", ("s", "c"), &bad);
        standing.finish();
        assert_eq!((standing.objects(), standing.spots_with("nad/config-not-json").count()), (1, 1));
    }
}
