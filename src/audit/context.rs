//! The context of an audit, and the facts it derives for each object.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::nad_writers::NadWriters;
use super::stored_object::{ObjectMeta, StoredObject, age};
use crate::policy::{
    ClaimIndex, FactLookup, Facts, Lookup, NadFact, NadSummary, NameVisibility, NamespaceState, NetworkFact,
    NodePolicyIndex, OperatorHealth, Operators, Policy, Prefix, Rewrites, StoredState, Subject, Verdict, judge,
};
use crate::resources::{Network, Object};

/// What is known about a cluster besides the judged object. What could not be read is unknown.
#[derive(Clone, Debug, Default)]
pub struct AuditContext {
    /// The time.
    pub now: Timestamp,
    /// The resource names that node policies offer.
    pub offered: Option<Arc<[String]>>,
    /// The node policies, and the PFs of the nodes as far as they could be read.
    pub node_policies: Option<Arc<NodePolicyIndex>>,
    /// The operators.
    pub operators: Operators,
    /// What may be named to readers of the findings.
    pub names: NameVisibility,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
    /// Whether the operator runs.
    pub is_operator_running: Option<bool>,
    /// The writers of rendered NADs, including the operator.
    pub writers: NadWriters,
    /// The claims of devices (DRA).
    pub device_claims: Arc<ClaimIndex>,
}

/// What an audit knows about one network besides its facts.
#[derive(Clone, Debug, Default)]
pub struct NetworkContext<'a> {
    /// The NAD at its target.
    pub nad: Lookup<&'a StoredObject>,
    /// How many networks wait for their NADs.
    pub waiting: usize,
    /// The dry-run denial of its NAD.
    pub denial: Option<&'a str>,
    /// How often it was written recently, if observed.
    pub rewrites: Option<Rewrites>,
}

impl AuditContext {
    /// Judges a stored NAD.
    pub fn nad(
        &self,
        (object, object_meta): (&Object<'_>, &ObjectMeta),
        lookup: &dyn FactLookup,
        rewrites: Option<Rewrites>,
        policy: &Policy,
    ) -> Verdict {
        let stored = StoredState { rewrites, ..self.stored(object_meta) };
        let facts = Facts { stored: Some(Box::new(stored)), ..self.facts() };
        judge(&Subject::manifest(object), &facts.gather(object, lookup, policy), policy)
    }

    /// Judges a NAD as a review would, so that each repair is a finding of its own; or a pod, which is never repaired.
    pub fn at_admission(&self, object: &Object<'_>, lookup: &dyn FactLookup, policy: &Policy) -> Verdict {
        judge(&Subject::manifest(object), &self.facts().gather(object, lookup, policy), policy)
    }

    /// How long nobody wrote a network or its NAD: while either is still written, the state has not converged.
    pub fn unchanged_for(&self, network: &ObjectMeta, nad: &Lookup<&StoredObject>) -> Duration {
        let nad_written = match nad {
            Lookup::Found(nad) => nad.object_meta.written,
            Lookup::Absent | Lookup::Unknown => None,
        };
        age(self.now, network.written.max(nad_written))
    }

    /// Judges a stored network.
    pub fn network(
        &self,
        (object, network, object_meta): (&Object<'_>, &Network<'_>, &ObjectMeta),
        of: NetworkContext<'_>,
        lookup: &dyn FactLookup,
        policy: &Policy,
    ) -> Verdict {
        // The author of a network with a foreign target must learn nothing about that namespace.
        let is_foreign = policy.has_foreign_target(network, &self.facts());
        let nad = match of.nad {
            Lookup::Found(nad) if !is_foreign => Lookup::Found(nad.text.to_string()),
            Lookup::Absent if !is_foreign => Lookup::Absent,
            _ => Lookup::Unknown,
        };
        let stored = StoredState {
            unchanged_for: self.unchanged_for(object_meta, &of.nad),
            nad,
            condition: object_meta.condition.clone(),
            denial: of.denial.filter(|_| !is_foreign).map(str::to_owned),
            operator: self.operator(object_meta.written),
            waiting: of.waiting,
            rewrites: of.rewrites,
            ..self.stored(object_meta)
        };
        let facts = Facts { stored: Some(Box::new(stored)), ..self.facts() };
        judge(&Subject::manifest(object), &facts.gather(object, lookup, policy), policy)
    }

    /// Judges a stored node policy. No other object is made from it, so there is no grace period.
    pub fn node_policy(&self, (object, object_meta): (&Object<'_>, &ObjectMeta), policy: &Policy) -> Verdict {
        let facts = Facts { stored: Some(Box::new(self.stored(object_meta))), ..self.facts() };
        let lookup = OtherPolicies(self.node_policies.clone());
        judge(&Subject::manifest(object), &facts.gather(object, &lookup, policy), policy)
    }

    /// Whether a network without a NAD waits only for the operator, longer than the grace period.
    pub fn is_waiting(
        &self,
        network: &Network<'_>,
        object_meta: &ObjectMeta,
        namespace: &Lookup<NamespaceState>,
        policy: &Policy,
    ) -> bool {
        matches!(namespace, Lookup::Unknown | Lookup::Found(NamespaceState::Active))
            && !network.meta.deleting
            && !policy.has_foreign_target(network, &self.facts())
            && age(self.now, object_meta.written) >= policy.audit.grace()
    }

    /// The networks that the operator actually renders to a namespace, of those that target it.
    pub fn renderers(&self, networks: Vec<NetworkFact>, namespace: &str, policy: &Policy) -> Vec<NetworkFact> {
        let facts = self.facts();
        networks.into_iter().filter(|network| policy.may_render(network, namespace, &facts)).collect()
    }

    /// The facts that hold for every object.
    fn facts(&self) -> Facts {
        Facts {
            prefix: self.prefix.clone(),
            operators: self.operators.clone(),
            names: self.names.clone(),
            is_cluster: true,
            today: Some(Facts::date(self.now)),
            ..Facts::default()
        }
    }

    fn stored(&self, object_meta: &ObjectMeta) -> StoredState {
        StoredState {
            unchanged_for: age(self.now, object_meta.written),
            deleting_for: object_meta.deleted.map(|deleted| age(self.now, Some(deleted))),
            finalizers: object_meta.finalizers.clone(),
            ..StoredState::default()
        }
    }

    fn operator(&self, written: Option<Timestamp>) -> OperatorHealth {
        match self.is_operator_running {
            None => OperatorHealth::Unknown,
            Some(false) => OperatorHealth::NotRunning,
            // Timestamps have whole seconds: within the same second the order is unknown.
            Some(true) if self.writers.operator_last_wrote() > written => OperatorHealth::Active,
            Some(true) => OperatorHealth::Stalled,
        }
    }
}

/// The facts about a node policy.
struct OtherPolicies(Option<Arc<NodePolicyIndex>>);

impl FactLookup for OtherPolicies {
    fn node_policies(&self) -> Option<Arc<NodePolicyIndex>> {
        self.0.clone()
    }
}

impl StoredObject {
    /// Summarizes a NAD. One that cannot be read names no owner.
    pub fn nad_fact(&self) -> NadFact {
        match Object::read(&self.text) {
            Ok(Some(Object::Nad(nad))) => NadFact { owner: nad.meta.owner().cloned(), summary: NadSummary::of(&nad) },
            _ => NadFact::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::OperatorFact;

    /// The namespace exists, the NAD does not.
    struct AbsentNad;

    impl FactLookup for AbsentNad {
        fn nad(&self, _: &crate::resources::ObjectKey) -> Lookup<NadFact> {
            Lookup::Absent
        }

        fn namespace(&self, _: &str) -> Lookup<NamespaceState> {
            Lookup::Found(NamespaceState::Active)
        }
    }

    /// An operator that wrote another NAD since this object was written is at work.
    #[test]
    fn operator_is_active_if_it_wrote_since() {
        let at = |hour: u8| -> Timestamp { format!("2026-11-01T{hour:02}:00:00Z").parse().unwrap() };
        let nad = ObjectMeta {
            writers: [("sriov-network-operator".into(), at(5))].into_iter().collect(),
            ..ObjectMeta::default()
        };
        let mut context = AuditContext::default();
        context.writers.record_nad(&nad);
        assert_eq!(context.operator(Some(at(4))), OperatorHealth::Unknown);
        context.is_operator_running = Some(false);
        assert_eq!(context.operator(Some(at(4))), OperatorHealth::NotRunning);
        context.is_operator_running = Some(true);
        assert_eq!(context.operator(Some(at(4))), OperatorHealth::Active);
        assert_eq!(context.operator(Some(at(5))), OperatorHealth::Stalled, "in the same second");
        assert_eq!(context.operator(Some(at(6))), OperatorHealth::Stalled);
        assert_eq!(context.operator(None), OperatorHealth::Active);
    }

    /// A tenant's network that targets a victim's namespace: no dry run, and nothing about that namespace is reported.
    #[test]
    fn hides_everything_about_a_foreign_target() {
        let network = |namespace: &str| {
            format!(
                r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"net","namespace":"{namespace}",
                "uid":"u","creationTimestamp":"2026-11-01T00:00:00Z"}},"spec":{{"resourceName":"cx7","networkNamespace":"victim"}}}}"#
            )
        };
        let operator = OperatorFact { namespace: "op".to_owned(), ..OperatorFact::default() };
        let context = AuditContext {
            now: "2026-11-02T00:00:00Z".parse().unwrap(),
            operators: Operators::Known([operator].into()),
            names: NameVisibility::Own(Vec::new()),
            ..AuditContext::default()
        };
        let policy = Policy::default();
        let (op, tenant) = (network("op"), network("tenant"));
        let facts = [&op, &tenant].map(|text| match Object::read(text) {
            Ok(Some(Object::Network(network))) => NetworkFact::of(&network),
            _ => panic!("{text}"),
        });
        let here = context.renderers(facts.to_vec(), "victim", &policy);
        assert_eq!(here, facts[..1], "only the operator's own network counts for the victim's NAD");
        for (text, is_known) in [(&op, true), (&tenant, false)] {
            let stored = StoredObject::of(text).unwrap();
            let object = Object::read(&stored.text).unwrap().unwrap();
            let Object::Network(network) = &object else { panic!("{text}") };
            let namespace = Lookup::Found(NamespaceState::Active);
            assert_eq!(context.is_waiting(network, &stored.object_meta, &namespace, &policy), is_known, "{text}");
            for namespace in [Lookup::Absent, Lookup::Found(NamespaceState::Terminating)] {
                assert!(!context.is_waiting(network, &stored.object_meta, &namespace, &policy), "{text} {namespace:?}");
            }
            let of = NetworkContext { nad: Lookup::Absent, denial: Some("secret words"), ..NetworkContext::default() };
            let verdict = context.network((&object, network, &stored.object_meta), of, &AbsentNad, &policy);
            let rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
            assert_eq!(rules.contains(&"audit/nad-absent"), is_known, "{rules:?}");
            assert_eq!(rules.contains(&"network/target-namespace"), !is_known, "{rules:?}");
            assert_eq!(format!("{verdict:?}").contains("secret words"), is_known);
        }
    }

    /// An exception holds until its last day, also in an audit.
    #[test]
    fn exceptions_end_in_an_audit_too() {
        let policy = "exceptions: [{rule: sriov/vlan, namespace: apps, name: net, reason: lab, expires: 2026-11-01}]";
        let policy = Policy::parse(policy).unwrap();
        let text = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps",
            "annotations":{"k8s.v1.cni.cncf.io/resourceName":"a.io/b"}},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"type\":\"sriov\",\"vlan\":5000}"}}"#;
        let stored = StoredObject::of(text).unwrap();
        let object = Object::read(&stored.text).unwrap().unwrap();
        for (now, denies) in [("2026-11-01T23:00:00Z", false), ("2026-11-02T00:00:00Z", true)] {
            let context = AuditContext { now: now.parse().unwrap(), ..AuditContext::default() };
            let verdict = context.nad((&object, &stored.object_meta), &(), None, &policy);
            assert_eq!(verdict.denies(), denies, "{now}: {:?}", verdict.findings);
        }
    }

    #[test]
    fn stored_state_has_the_age_and_what_blocks_the_deletion() {
        let at = |hour: u8| -> Timestamp { format!("2026-11-01T{hour:02}:00:00Z").parse().unwrap() };
        let context = AuditContext { now: at(9), ..AuditContext::default() };
        let object_meta = ObjectMeta {
            written: Some(at(7)),
            deleted: Some(at(8)),
            finalizers: vec!["a.io/b".to_owned()],
            ..ObjectMeta::default()
        };
        let stored = context.stored(&object_meta);
        let hours = |hours: u64| std::time::Duration::from_secs(hours * 3600);
        assert_eq!((stored.unchanged_for, stored.deleting_for), (hours(2), Some(hours(1))));
        assert_eq!(stored.finalizers, ["a.io/b"]);
        assert_eq!(context.stored(&ObjectMeta::default()).deleting_for, None);
    }

    /// Where no operator is known, any other namespace may be a victim's.
    #[test]
    fn hides_the_target_while_no_operator_is_known() {
        let text = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{"name":"net","namespace":"tenant",
            "uid":"u","creationTimestamp":"2026-11-01T00:00:00Z"},"spec":{"resourceName":"cx7","networkNamespace":"victim"}}"#;
        let stored = StoredObject::of(text).unwrap();
        let object = Object::read(&stored.text).unwrap().unwrap();
        let Object::Network(network) = &object else { panic!("{text}") };
        for (names, is_reported) in [(NameVisibility::All, true), (NameVisibility::Own(Vec::new()), false)] {
            let context =
                AuditContext { now: "2026-11-02T00:00:00Z".parse().unwrap(), names, ..AuditContext::default() };
            let of = NetworkContext { nad: Lookup::Absent, ..NetworkContext::default() };
            let verdict = context.network((&object, network, &stored.object_meta), of, &AbsentNad, &Policy::default());
            let is_absent = verdict.findings.iter().any(|finding| finding.rule.id == "audit/nad-absent");
            assert_eq!(is_absent, is_reported, "{:?}", verdict.findings);
        }
    }

    /// What is known about the operator and about the writes of a network reaches the rules.
    #[test]
    fn a_network_is_judged_with_what_was_observed() {
        let text = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{"name":"net","namespace":"apps",
            "uid":"u","creationTimestamp":"2026-11-01T00:00:00Z"},"spec":{"resourceName":"cx7"}}"#;
        let stored = StoredObject::of(text).unwrap();
        let object = Object::read(&stored.text).unwrap().unwrap();
        let Object::Network(network) = &object else { panic!("{text}") };
        let now = "2026-11-02T00:00:00Z".parse().unwrap();
        let often = || Some(Rewrites { count: 1000, ..Rewrites::default() });
        for (is_running, waiting, rewrites, want, reason) in [
            (false, 1, None, &["audit/nad-absent"] as &[_], "the operator is not running"),
            (true, 1, often(), &["audit/hot-object", "audit/nad-absent"], "the operator runs, and has written nothing"),
            (
                true,
                2,
                None,
                &["audit/nad-absent", "audit/operator-silent"],
                "the operator runs, and has written nothing",
            ),
        ] {
            let context = AuditContext { now, is_operator_running: Some(is_running), ..AuditContext::default() };
            let of = NetworkContext { nad: Lookup::Absent, rewrites, waiting, ..NetworkContext::default() };
            let verdict = context.network((&object, network, &stored.object_meta), of, &AbsentNad, &Policy::default());
            let mut rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
            rules.sort_unstable();
            assert_eq!(rules, want, "{is_running} {waiting}");
            assert!(format!("{verdict:?}").contains(reason), "{verdict:?}");
        }
    }

    #[test]
    fn a_nad_is_judged_with_how_often_it_was_written() {
        let text = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps",
            "annotations":{"k8s.v1.cni.cncf.io/resourceName":"a.io/b"}},"spec":{"config":"{\"cniVersion\":\"1.0.0\",\"type\":\"sriov\"}"}}"#;
        let stored = StoredObject::of(text).unwrap();
        let object = Object::read(&stored.text).unwrap().unwrap();
        for (rewrites, is_hot) in [(None, false), (Some(Rewrites { count: 1000, ..Rewrites::default() }), true)] {
            let context = AuditContext::default();
            let verdict = context.nad((&object, &stored.object_meta), &(), rewrites, &Policy::default());
            let rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
            assert_eq!(rules.contains(&"audit/hot-object"), is_hot, "{rules:?}");
        }
    }
}
