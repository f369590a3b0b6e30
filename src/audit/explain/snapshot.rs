//! A pod of a cluster, explained from what was read for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{KnownNodes, NadPlan, NadPlans, PodPlan, PodQuestion};
use crate::audit::chain::Read;
use crate::audit::context::AuditContext;
use crate::audit::pod::{OnlyClaims, PodNad};
use crate::policy::{
    ClaimFacts, ClaimIndex, FactLookup, Lookup, NadFact, NadSummary, Operators, PodPolicy, Policy, ResourceInjector,
};
use crate::resources::{Object, ObjectKey, Workload};

/// Everything read from the cluster for one pod.
#[derive(Clone, Debug)]
pub struct ExplainSnapshot {
    /// Which pod.
    pub key: ObjectKey,
    /// The pod as JSON.
    pub pod: String,
    /// The NADs that it selects, as JSON.
    pub nads: Vec<(ObjectKey, Read<Option<String>>)>,
    /// The operators.
    pub operators: Operators,
    /// The claims of devices (DRA).
    pub device_claims: Arc<ClaimIndex>,
    /// The nodes.
    pub nodes: KnownNodes,
}

/// The NADs of the pod, and the claims of devices.
struct PodLookup<'s> {
    claims: OnlyClaims<'s>,
    nads: &'s [(ObjectKey, Read<Option<String>>)],
}

impl FactLookup for PodLookup<'_> {
    fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        match self.nads.iter().find(|(known, _)| known == key) {
            Some((_, Ok(Some(text)))) => match Object::read(text) {
                Ok(Some(Object::Nad(nad))) => {
                    Lookup::Found(NadFact { owner: nad.meta.owner().cloned(), summary: NadSummary::of(&nad) })
                }
                _ => Lookup::Found(NadFact::default()),
            },
            Some((_, Ok(None))) => Lookup::Absent,
            Some((_, Err(_))) | None => Lookup::Unknown,
        }
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.claims.served_by_classes()
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        self.claims.claims(nad, resource_name)
    }
}

impl PodPlan {
    /// Explains a pod of a cluster. Its NADs are judged as `nadmit doctor pod` judges them, and the pod itself whatever the policy says about
    /// pods: this is what was asked.
    pub fn of_cluster(snapshot: &ExplainSnapshot, policy: &Policy, now: Timestamp) -> Self {
        let context = AuditContext { now, operators: snapshot.operators.clone(), ..AuditContext::default() };
        let lookup = PodLookup { claims: OnlyClaims(&snapshot.device_claims), nads: &snapshot.nads };
        let mut nads: NadPlans = BTreeMap::new();
        for (key, text) in snapshot.nads.clone() {
            let judged = PodNad::judged(key, text, &context, &lookup.claims, policy);
            let (key, plan) = plan(judged, &lookup, policy);
            nads.insert(key, plan);
        }
        let object = Object::read(&snapshot.pod).ok().flatten();
        let policy = Policy { pods: PodPolicy::Warn, ..policy.clone() };
        let findings = object.as_ref().map(|object| context.at_admission(object, &lookup, &policy).findings);
        let workload = Workload::read_pod(&snapshot.pod);
        Self::of(PodQuestion {
            workload: workload.as_ref(),
            kind: "Pod",
            namespace: snapshot.key.namespace().to_owned(),
            name: snapshot.key.name().to_owned(),
            place: None,
            findings: findings.unwrap_or_default(),
            // Whoever adds requests did so when the pod was created.
            injector: Some(ResourceInjector::None),
            nads: &nads,
            nodes: &snapshot.nodes,
        })
    }
}

fn plan(judged: PodNad, lookup: &PodLookup<'_>, policy: &Policy) -> (ObjectKey, Read<Option<NadPlan>>) {
    let PodNad { key, text, verdict } = judged;
    let plan = match (text, verdict) {
        (Err(missing), _) => Err(missing),
        (Ok(None), _) => Ok(None),
        (Ok(Some(_)), None) => Err("it cannot be read".to_owned()),
        (Ok(Some(text)), Some(verdict)) => {
            let plan = NadPlan::stored(&text, verdict, lookup, policy);
            plan.map(Some).ok_or_else(|| "it cannot be read".to_owned())
        }
    };
    (key, plan)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::chain::LinkHealth;
    use crate::audit::pod::{NetworkSelection, PodReport, PodSnapshot};

    /// `nadmit doctor pod` and `nadmit explain pod` read the same NADs, and find the same in them.
    #[test]
    fn nads_are_judged_as_doctor_judges_them() {
        let nad = |name: &str, config: &str| {
            let nad = json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": { "name": name, "namespace": "apps" }, "spec": { "config": config } });
            (ObjectKey::new("apps", name), Ok(Some(nad.to_string())))
        };
        let nads = vec![
            nad("a", r#"{"cniVersion":"1.0.0","type":"sriov"}"#),
            nad("b", r#"{"cniVersion":"1.0.0","type":"macvlan","mode":"l2","mtu":"x"}"#),
            nad("c", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#),
            nad("d", "{"),
            (ObjectKey::new("apps", "e"), Ok(None)),
            (ObjectKey::new("apps", "f"), Err("missing permission: x".to_owned())),
        ];
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "apps", "annotations": { "k8s.v1.cni.cncf.io/networks": "a,b,c,d,e,f" } } });
        let key = ObjectKey::new("apps", "p");
        let snapshot = ExplainSnapshot {
            key: key.clone(),
            pod: pod.to_string(),
            nads: nads.clone(),
            operators: Operators::Unknown,
            device_claims: Arc::default(),
            nodes: KnownNodes {
                nodes: Ok([].into()),
                policies: Ok(Vec::new()),
                served: [].into(),
                prefix: None,
                is_cluster: true,
            },
        };
        let (policy, now) = (Policy::default(), Timestamp::UNIX_EPOCH);
        let plan = PodPlan::of_cluster(&snapshot, &policy, now);
        let doctor = PodSnapshot {
            key,
            is_ready: false,
            is_deleting: false,
            events: Ok(Vec::new()),
            selection: NetworkSelection::Read { left_out: 0 },
            nads,
            operators: Operators::Unknown,
            device_claims: Arc::default(),
        };
        let doctor = PodReport::of(doctor, &policy, now);
        let rules = |findings: &[crate::policy::Finding]| {
            findings.iter().map(|found| (found.rule.id, found.action)).collect::<Vec<_>>()
        };
        assert_eq!(plan.interfaces.len(), doctor.nads.len());
        for (interface, nad) in plan.interfaces.iter().zip(&doctor.nads) {
            let found = interface.nad_plan().map(|nad| rules(&nad.findings)).unwrap_or_default();
            assert_eq!(found, rules(nad.findings()), "{}", nad.key);
        }
        use LinkHealth::{Broken, Good, Unknown};
        let states: Vec<_> = plan.interfaces.iter().map(|one| one.state).collect();
        assert_eq!(states, [Broken, Broken, Good, Broken, Broken, Unknown]);
        assert_eq!(plan.interfaces[4].findings[0].rule.id, "pod/nad-absent", "the pod is judged, too");
    }
}
