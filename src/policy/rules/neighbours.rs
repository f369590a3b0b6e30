//! The rules on two NADs that do not fit together. Each reports the oldest of the others, so that a finding does not change while more
//! are added.

use super::super::finding::Findings;
use super::super::{Facts, MissingFact, NeighbourFact, NetworkUse, OvnAcceptance, Reference, RelatedObject};
use super::{ipam, ovn_names};
use crate::cni::Config;
use crate::resources::{Nad, ObjectKey};

/// A NAD, and what is known of others.
pub(super) struct NeighbourCheck<'c> {
    pub(super) config: &'c Config<'c>,
    pub(super) summary: NetworkUse,
    key: ObjectKey,
    /// The namespace of those who read the findings.
    reader: &'c str,
    /// Whether it is being written, and so is the later one.
    is_write: bool,
    facts: &'c Facts,
}

/// The rules on a NAD, or on the one that a network renders; `reader` is the namespace of the judged object.
pub(super) fn check(
    nad: &Nad<'_>,
    config: &Config<'_>,
    (reader, is_write): (&str, bool),
    facts: &Facts,
    out: &mut Findings<'_>,
) {
    if facts.neighbours.is_empty() {
        return;
    }
    let summary = NetworkUse::of_config(nad, config);
    let about = NeighbourCheck { config, summary, key: nad.meta.key(), reader, is_write, facts };
    ovn_names::check(&about, out);
    ipam::node_slice::check(&about, out);
    ipam::overlap::check(&about, out);
}

impl NeighbourCheck<'_> {
    /// The other NADs, the oldest first.
    pub(super) fn neighbours(&self) -> impl Iterator<Item = &NeighbourFact> {
        self.facts.neighbours.iter().map(AsRef::as_ref).filter(|other| other.key != self.key)
    }

    /// Those that were there before.
    pub(super) fn earlier(&self) -> impl Iterator<Item = &NeighbourFact> {
        self.neighbours().filter(|other| self.is_write || other.is_before(&self.key, &self.summary))
    }

    /// Whether another NAD certainly has the same namespace.
    pub(super) fn is_in_same_namespace(&self, other: &NeighbourFact) -> bool {
        !self.key.namespace().is_empty() && other.key.namespace() == self.key.namespace()
    }

    /// Whether another NAD of the namespace is certainly there beside this one, so that this one may be denied. What a cache knows may be
    /// outdated: all those that `matter` are then read live before a write is denied. An audit denies nothing.
    pub(super) fn is_certain(
        &self,
        other: &NeighbourFact,
        matter: &dyn Fn(&NeighbourFact) -> bool,
        out: &mut Findings<'_>,
    ) -> bool {
        if !self.is_in_same_namespace(other) || self.facts.certain_neighbours.contains(&other.key) {
            return self.is_in_same_namespace(other);
        }
        if self.facts.is_cluster && self.is_write {
            let others = self.earlier().filter(|other| self.is_in_same_namespace(other) && matter(other));
            out.request(MissingFact::Neighbours { nads: others.map(|other| other.key.clone()).collect() });
        }
        false
    }

    /// Whether OVN-Kubernetes has accepted another NAD; of a manifest, whether every cluster accepts it.
    pub(super) fn is_accepted(&self, other: &NeighbourFact) -> bool {
        match other.summary.acceptance {
            OvnAcceptance::Annotated => true,
            OvnAcceptance::Expected => !self.facts.is_cluster,
            OvnAcceptance::Unknown => false,
        }
    }

    /// Another NAD in words, and as an object if the reader may know it.
    pub(super) fn named(
        &self,
        other: &NeighbourFact,
        relation: &str,
        out: &mut Findings<'_>,
    ) -> (String, Option<RelatedObject>) {
        let reference = match &other.network {
            Some(network) => Reference::Network(network.clone()),
            None => Reference::Nad(other.key.clone()),
        };
        if !out.may_name(reference, self.reader, self.facts) {
            return ("another NAD in this cluster".to_owned(), None);
        }
        match &other.network {
            Some(id) => (id.to_string(), Some(RelatedObject::new(id.kind.name(), id.key(), relation))),
            None => {
                let object = RelatedObject::new("NetworkAttachmentDefinition", other.key.clone(), relation);
                (format!("NAD {}", other.key.to_string().trim_start_matches('/')), Some(object))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::{
        Action, Facts, MissingFact, NameVisibility, NeighbourFact, NetworkUse, Policy, Reference, Subject, Verdict,
        judge,
    };
    use crate::resources::{Object, ObjectKey};

    fn nad(namespace: &str, name: &str, config: &str) -> String {
        serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name, "namespace": namespace }, "spec": { "config": config },
        })
        .to_string()
    }

    /// A NAD that OVN-Kubernetes has accepted.
    fn ovn(namespace: &str, name: &str, rest: &str) -> String {
        let config = format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"ovn-k8s-cni-overlay","netAttachDefName":"{namespace}/{name}",{rest}}}"#
        );
        let annotations =
            r#""metadata":{"annotations":{"k8s.ovn.org/network-id":"5","k8s.ovn.org/network-name":"blue"},"#;
        nad(namespace, name, &config).replacen(r#""metadata":{"#, annotations, 1)
    }

    fn neighbour(json: &str) -> Arc<NeighbourFact> {
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("{json}") };
        Arc::new(NeighbourFact { key: nad.meta.key(), network: None, summary: NetworkUse::of(&nad) })
    }

    /// The verdict about a write, where these other NADs are stored and were read for it.
    fn written(old: Option<&str>, new: &str, others: &[String], names: NameVisibility) -> Verdict {
        written_after(true, old, new, others, names)
    }

    fn written_after(is_read: bool, old: Option<&str>, new: &str, others: &[String], names: NameVisibility) -> Verdict {
        let neighbours: Vec<_> = others.iter().map(|json| neighbour(json)).collect();
        let facts = Facts {
            certain_neighbours: neighbours.iter().filter(|_| is_read).map(|other| other.key.clone()).collect(),
            neighbours,
            names,
            is_cluster: true,
            ..Facts::default()
        };
        let old = old.map(|json| Object::read(json).unwrap().unwrap());
        let object = Object::read(new).unwrap().unwrap();
        let subject = Subject { object: &object, old: old.as_ref(), writer: Some("jane"), is_final: true };
        judge(&subject, &facts, &Policy::parse("versions: {whereabouts: '0.9'}").unwrap())
    }

    fn found(verdict: &Verdict) -> Vec<(&'static str, Action)> {
        verdict.findings.iter().map(|finding| (finding.rule.id, finding.action)).collect()
    }

    /// A tenant who creates a NAD with the name of somebody else's network keeps nobody in another namespace from writing.
    #[test]
    fn a_name_taken_in_another_namespace_denies_nothing() {
        let taken = ovn("tenant", "squat", r#""topology":"layer3""#);
        let own = ovn("apps", "blue", r#""topology":"layer2""#);
        assert_eq!(
            found(&written(None, &own, std::slice::from_ref(&taken), NameVisibility::Own(Vec::new()))),
            [("ovn/name-taken", Action::Warn)]
        );
        // Whoever may write in the namespace can keep its name, as they can delete its NADs.
        let near = ovn("apps", "other", r#""topology":"layer3""#);
        assert_eq!(
            found(&written(None, &own, &[taken, near], NameVisibility::All)),
            [("ovn/name-conflict", Action::Deny)]
        );
        let slices = |namespace: &str, name: &str, size: &str| {
            nad(
                namespace,
                name,
                &format!(
                    r#"{{"cniVersion":"1.0.0","name":"n","type":"macvlan","ipam":{{"type":"whereabouts","range":"10.0.0.0/16","network_name":"x","node_slice_size":"{size}"}}}}"#
                ),
            )
        };
        let own = slices("apps", "net", "/24");
        for (namespace, want) in [("tenant", Action::Warn), ("apps", Action::Deny)] {
            let verdict = written(None, &own, &[slices(namespace, "squat", "/25")], NameVisibility::All);
            assert_eq!(found(&verdict), [("ipam/node-slice", want)], "{namespace}");
        }
    }

    /// A conflict that is stored already warns, whatever else of the NAD changes; a new one is denied.
    #[test]
    fn an_update_keeps_the_conflict_that_is_stored() {
        let other = [ovn("apps", "first", r#""topology":"layer2","mtu":1300"#)];
        let with = |mtu: u16| ovn("apps", "second", &format!(r#""topology":"layer2","mtu":{mtu}"#));
        let actions = |old: &str, new: &str| found(&written(Some(old), new, &other, NameVisibility::All));
        assert_eq!(actions(&with(1400), &with(1500)), [("ovn/name-conflict", Action::Warn)]);
        assert_eq!(actions(&with(1400), &with(1400)), [("ovn/name-conflict", Action::Warn)]);
        assert_eq!(actions(&with(1300), &with(1400)), [("ovn/name-conflict", Action::Deny)]);
        assert_eq!(actions(&with(1400), &with(1300)), []);
        let red = with(1400).replace("blue", "red");
        assert_eq!(actions(&red, &with(1400)), [("ovn/name-conflict", Action::Deny)]);
    }

    /// What the caches know may be gone: nothing is denied before it was read again. What OVN-Kubernetes may have rejected denies nothing.
    #[test]
    fn only_what_is_certain_denies() {
        let all = || NameVisibility::All;
        let role = r#""topology":"layer2","subnets":"10.0.0.0/24","role":"primary""#;
        let red = |json: String| json.replace("blue", "red");
        let slices = |name: &str, size: &str| {
            let ipam = format!(
                r#"{{"type":"whereabouts","range":"10.0.0.0/16","network_name":"x","node_slice_size":"{size}"}}"#
            );
            nad("apps", name, &format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"macvlan","ipam":{ipam}}}"#))
        };
        for (rule, first, second) in [
            (
                "ovn/name-conflict",
                ovn("apps", "a", r#""topology":"layer2""#),
                ovn("apps", "b", r#""topology":"layer3""#),
            ),
            ("ovn/second-primary", ovn("apps", "a", role), red(ovn("apps", "b", role))),
            ("ipam/node-slice", slices("a", "/24"), slices("b", "/25")),
        ] {
            let others = std::slice::from_ref(&first);
            let unread = written_after(false, None, &second, others, all());
            assert_eq!(found(&unread), [(rule, Action::Warn)]);
            let nads = vec![ObjectKey::new("apps", "a")];
            assert_eq!(unread.missing_fact, Some(MissingFact::Neighbours { nads }), "{rule}");
            let read = written(None, &second, others, all());
            assert_eq!((found(&read), read.missing_fact), (vec![(rule, Action::Deny)], None));
            if rule.starts_with("ovn/") {
                for (from, to) in [("network-id", "other"), (r#"network-name":"blue""#, r#"network-name":"old""#)] {
                    let verdict = written_after(false, None, &second, &[first.replace(from, to)], all());
                    assert_eq!((found(&verdict), verdict.missing_fact), (vec![(rule, Action::Warn)], None));
                }
            }
        }
    }

    /// One that OVN-Kubernetes has accepted denies, though an older one may be rejected.
    #[test]
    fn one_that_is_accepted_goes_before_older_ones() {
        let rejected = ovn("apps", "a", r#""topology":"layer3""#).replace("network-id", "other");
        let accepted = ovn("apps", "b", r#""topology":"layer3""#);
        let own = ovn("apps", "c", r#""topology":"layer2""#);
        let verdict = written(None, &own, &[rejected, accepted], NameVisibility::All);
        assert_eq!(found(&verdict), [("ovn/name-conflict", Action::Deny)]);
        assert!(verdict.findings[0].sentence().contains("apps/b"), "{verdict:?}");
    }

    /// GitOps creates the NAD of the new name before it deletes that of the old one.
    #[test]
    fn renaming_the_primary_network_warns() {
        let role = r#""topology":"layer2","subnets":"10.0.0.0/24","role":"primary""#;
        let (old, new) = (ovn("apps", "old", role), ovn("apps", "renamed", role));
        let verdict = written(None, &new, std::slice::from_ref(&old), NameVisibility::All);
        assert_eq!((found(&verdict), verdict.missing_fact), (vec![("ovn/second-primary", Action::Warn)], None));
    }

    /// What another namespace has is named only to those who may read it, and its config is not described to others.
    #[test]
    fn others_are_named_to_those_who_may_read_them() {
        let (taken, own) =
            (ovn("tenant", "squat", r#""topology":"layer3""#), ovn("apps", "blue", r#""topology":"layer2""#));
        let reference = Reference::Nad(ObjectKey::new("tenant", "squat"));
        let vlan = |namespace: &str, name: &str, range: &str| {
            nad(
                namespace,
                name,
                &format!(
                    r#"{{"cniVersion":"1.0.0","name":"{name}","type":"vlan","master":"eth1","vlanId":5,"ipam":{{"type":"whereabouts","range":"{range}","network_name":"{name}"}}}}"#
                ),
            )
        };
        for (names, is_named) in [
            (NameVisibility::Own(Vec::new()), false),
            (NameVisibility::Own(vec![reference.clone()]), true),
            (NameVisibility::All, true),
        ] {
            let verdict = written(None, &own, std::slice::from_ref(&taken), names.clone());
            let [finding] = &*verdict.findings else { panic!("{verdict:?}") };
            let text = format!("{} {}", finding.sentence(), finding.help);
            assert_eq!(
                (text.contains("squat"), text.contains("topology"), finding.related.len() == 1),
                (is_named, is_named, is_named),
                "{text}"
            );
            assert_eq!(text.contains("another NAD in this cluster"), !is_named, "{text}");
            let asked = matches!(&verdict.missing_fact, Some(MissingFact::NameVisibility(hidden)) if hidden.as_slice() == std::slice::from_ref(&reference));
            assert_eq!(asked, !is_named);
            let overlap = written(
                None,
                &vlan("apps", "own", "10.0.0.0/24"),
                &[vlan("tenant", "squat", "10.0.0.77-10.0.0.78/24")],
                names,
            );
            let [finding] = &*overlap.findings else { panic!("{overlap:?}") };
            assert_eq!(
                (finding.sentence().contains("squat"), finding.sentence().contains("10.0.0.77")),
                (is_named, is_named),
                "{}",
                finding.sentence()
            );
        }
    }
}
