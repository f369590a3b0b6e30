//! The audit of one stored object, with what is known of the objects that belong to it. The full scan and the continuous audit
//! differ only in where the facts come from.

use std::future::Future;
use std::sync::Arc;

use crate::audit::context::{AuditContext, NetworkContext};
use crate::audit::stored_object::{ObjectMeta, StoredObject};
use crate::cluster::client::collection::ApiObject;
use crate::policy::{
    ClaimFacts, FactLookup, Lookup, MAX_RENDERERS, NadFact, NamespaceState, NeighbourFact, NetworkCoverage,
    NetworkFact, NetworkUse, NodePolicyIndex, Policy, Rewrites, Verdict,
};
use crate::resources::{Network, NetworkId, Object, ObjectKey};
use crate::supervise::{Panicked, contained, contained_async};

/// An audited object.
pub struct Scanned<'a> {
    /// The object, as JSON, without its managedFields.
    pub text: &'a str,
    /// The parsed object.
    pub object: &'a Object<'a>,
    /// Its metadata.
    pub object_meta: &'a ObjectMeta,
    /// For a NAD: whether a network renders it, or may do so where not all networks are known.
    pub is_rendered: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// Receives the results of an audit.
pub trait ScanSink: Send {
    /// More objects will be audited.
    fn expect(&mut self, objects: usize);

    /// How often an object was written recently, if observed.
    fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites>;

    /// An object was audited.
    fn scanned(&mut self, scanned: Scanned<'_>) -> impl Future<Output = ()> + Send;

    /// Judging an object panicked; it was skipped.
    fn skipped(&mut self, object: &str, panicked: &Panicked);
}

/// Facts about other objects than the audited one: from the lists of a full scan, or from the caches.
pub(in crate::cluster) trait AuditLookup: Sync {
    /// How many of the networks are known.
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Complete
    }

    /// A network.
    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact>;

    /// A namespace.
    fn namespace(&self, name: &str) -> Lookup<NamespaceState>;

    /// Whether there is a NAD.
    fn nad(&self, key: &ObjectKey) -> Lookup<()>;

    /// Whether a NAD that is not known in a namespace does not exist.
    fn knows_nads_in(&self, _namespace: &str) -> bool {
        true
    }

    /// The claims of the devices of a NAD; `None` if only the context of the audit has them.
    fn claims(&self, _nad: &ObjectKey, _resource_name: Option<&str>) -> Option<ClaimFacts> {
        None
    }

    /// The NADs that matter to one with this key and summary.
    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>>;

    /// The extended resources that DeviceClasses serve; `None` if only the context of the audit has them.
    fn served_by_classes(&self) -> Option<Arc<[String]>> {
        None
    }
}

/// Audits objects, one by one.
pub(in crate::cluster) struct ObjectAudit<'a, L> {
    pub(in crate::cluster) context: &'a AuditContext,
    pub(in crate::cluster) policy: &'a Policy,
    pub(in crate::cluster) lookup: &'a L,
}

/// What is stored under the key of a NAD.
#[derive(Clone, Copy)]
pub(in crate::cluster) struct NadSlot<'a> {
    /// The NAD, if it exists.
    pub(in crate::cluster) nad: Option<&'a StoredObject>,
    /// The networks that the operator renders there.
    pub(in crate::cluster) renderers: &'a [NetworkFact],
}

/// The facts about an object at a slot.
struct SlotLookup<'a, L> {
    slot: NadSlot<'a>,
    context: &'a AuditContext,
    lookup: &'a L,
}

impl<L: AuditLookup> FactLookup for SlotLookup<'_, L> {
    fn coverage(&self) -> NetworkCoverage {
        self.lookup.coverage()
    }

    fn networks_at(&self, _: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        self.slot.renderers.iter().filter(|network| renders(network)).take(MAX_RENDERERS).cloned().collect()
    }

    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        self.lookup.network(id)
    }

    fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        match self.slot.nad {
            Some(nad) => Lookup::Found(nad.nad_fact()),
            None if self.lookup.knows_nads_in(key.namespace()) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    fn last_nad(&self, key: &ObjectKey) -> Lookup<()> {
        self.lookup.nad(key)
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        self.lookup.namespace(name)
    }

    fn offered(&self) -> Option<Arc<[String]>> {
        self.context.offered.clone()
    }

    fn node_policies(&self) -> Option<Arc<NodePolicyIndex>> {
        self.context.node_policies.clone()
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.lookup.served_by_classes().unwrap_or_else(|| self.context.device_claims.served())
    }

    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        self.lookup.neighbours(nad, own)
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        let found = self.lookup.claims(nad, resource_name);
        found.unwrap_or_else(|| self.context.device_claims.facts(nad, resource_name))
    }
}

/// How a network waits for its NAD.
#[derive(Clone, Copy, Default)]
pub(in crate::cluster) struct Waiting<'a> {
    /// How many networks wait.
    pub(in crate::cluster) networks: usize,
    /// Who denies the NAD of this one.
    pub(in crate::cluster) denied: Option<&'a str>,
}

impl<L: AuditLookup> ObjectAudit<'_, L> {
    fn at<'s>(&'s self, slot: NadSlot<'s>) -> SlotLookup<'s, L> {
        SlotLookup { slot, context: self.context, lookup: self.lookup }
    }

    /// Audits the NAD of a slot, if there is one.
    pub(in crate::cluster) async fn nad(&self, slot: NadSlot<'_>, sink: &mut impl ScanSink) {
        let Some(nad) = slot.nad else { return };
        let judged = async {
            let Ok(Some(object)) = Object::read(&nad.text) else { return };
            let rewrites = sink.rewrites(object.kind(), &object.key());
            let verdict = self.context.nad((&object, &nad.object_meta), &self.at(slot), rewrites, self.policy);
            // Where not all networks are known, the network that the NAD names may be one of the others.
            let may_be_owned = self.lookup.coverage() != NetworkCoverage::Complete && object.meta().owner().is_some();
            let is_rendered = !slot.renderers.is_empty() || may_be_owned;
            sink.scanned(Scanned {
                text: &nad.text,
                object: &object,
                object_meta: &nad.object_meta,
                is_rendered,
                verdict,
            })
            .await;
        };
        if let Err(panicked) = contained_async(judged).await {
            sink.skipped(&describe_object(&nad.text), &panicked);
        }
    }

    /// Audits a network that renders to a slot.
    pub(in crate::cluster) async fn network(
        &self,
        stored: &StoredObject,
        slot: NadSlot<'_>,
        waiting: Waiting<'_>,
        sink: &mut impl ScanSink,
    ) {
        let judged = async {
            let Ok(Some(object)) = Object::read(&stored.text) else { return };
            let Object::Network(network) = &object else { return };
            let of = NetworkContext {
                nad: match slot.nad {
                    Some(nad) => Lookup::Found(nad),
                    None if self.lookup.knows_nads_in(&network.target_namespace()) => Lookup::Absent,
                    None => Lookup::Unknown,
                },
                waiting: waiting.networks,
                denial: waiting.denied,
                rewrites: sink.rewrites(object.kind(), &object.key()),
            };
            let about = (&object, network, &stored.object_meta);
            let verdict = self.context.network(about, of, &self.at(slot), self.policy);
            let (text, object_meta) = (&stored.text, &stored.object_meta);
            sink.scanned(Scanned { text, object: &object, object_meta, is_rendered: false, verdict }).await;
        };
        if let Err(panicked) = contained_async(judged).await {
            sink.skipped(&describe_object(&stored.text), &panicked);
        }
    }

    /// Whether a network without a NAD waits only for the operator, longer than the grace period.
    pub(in crate::cluster) fn is_waiting(&self, stored: &StoredObject) -> bool {
        let waits = |network: &Network<'_>| {
            let namespace = self.lookup.namespace(&network.target_namespace());
            self.lookup.knows_nads_in(&network.target_namespace())
                && self.context.is_waiting(network, &stored.object_meta, &namespace, self.policy)
        };
        match Object::read(&stored.text) {
            Ok(Some(Object::Network(network))) => waits(&network),
            _ => false,
        }
    }
}

/// Kind and name of an object that may be unreadable.
pub(in crate::cluster) fn describe_object(text: &str) -> String {
    let read = || {
        let object = ApiObject::read(text)?;
        Some(format!("{} {}", object.fields.text("kind").value()?, object.key))
    };
    contained(read).ok().flatten().unwrap_or_else(|| "an object without a name".to_owned())
}

/// The networks at one key that the operator renders there.
pub(in crate::cluster) fn renderers_at(
    at: &[StoredObject],
    context: &AuditContext,
    policy: &Policy,
) -> Vec<NetworkFact> {
    renderers(at.iter().filter_map(|network| network_fact(&network.text)).collect(), context, policy)
}

/// Those of some networks with the same target that the operator renders there.
pub(in crate::cluster) fn renderers(
    facts: Vec<NetworkFact>,
    context: &AuditContext,
    policy: &Policy,
) -> Vec<NetworkFact> {
    let target = facts.first().map(|fact| fact.target_namespace.clone()).unwrap_or_default();
    context.renderers(facts, &target, policy)
}

/// Summarizes a network.
pub(in crate::cluster) fn network_fact(text: &str) -> Option<NetworkFact> {
    match Object::read(text) {
        Ok(Some(Object::Network(network))) => Some(NetworkFact::of(&network)),
        _ => None,
    }
}
