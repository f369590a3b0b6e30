//! The node policies in a full scan. They are listed with the audit context, which compares them with each other, and judged one by one
//! when everything else is known.

use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource};
use crate::cluster::leader::deferred::{DeferredObject, TextBudget};
use crate::cluster::leader::full_scan::FullScan;
use crate::cluster::leader::object_audit::{ScanSink, Scanned, describe_object};
use crate::cluster::leader::pods::pod_place;
use crate::cluster::leader::scan_scope::JudgedObjects;
use crate::resources::{NODE_POLICIES, Object, ObjectKey};
use crate::supervise::{Panicked, contained, contained_async};

/// The listed node policies that are judged.
#[derive(Default)]
pub(super) struct DeferredPolicies {
    policies: Vec<DeferredObject>,
    budget: TextBudget,
    /// Those that made reading panic, with the message.
    skipped: Vec<(String, Panicked)>,
}

impl DeferredPolicies {
    /// Adds a policy as it was listed, if it is judged.
    pub(super) fn add(&mut self, text: &str, judged: &JudgedObjects) {
        if !judged.has_text(ApiResource::NODE_POLICIES, text) {
            return;
        }
        match contained(|| StoredObject::of(text).zip(ApiObject::read(text).map(|object| object.key))) {
            Ok(Some((stored, key))) => {
                self.policies.push(DeferredObject::node_policy(&key, stored, &mut self.budget));
            }
            Ok(None) => {}
            Err(panicked) => self.skipped.push((describe_object(text), panicked)),
        }
    }
}

impl FullScan<'_> {
    /// Audits the node policies. Where they cannot be listed, the context has noted it.
    pub(super) async fn node_policies(
        &self,
        deferred: DeferredPolicies,
        context: &AuditContext,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        if context.node_policies.is_none() {
            return Ok(());
        }
        sink.expect(deferred.policies.len());
        deferred.skipped.iter().for_each(|(object, panicked)| sink.skipped(object, panicked));
        for policy in deferred.policies {
            if let Some(stored) = policy.into_loaded(self.cluster).await? {
                self.node_policy(&stored, context, sink).await;
            }
        }
        Ok(())
    }

    async fn node_policy(&self, stored: &StoredObject, context: &AuditContext, sink: &mut impl ScanSink) {
        let StoredObject { text, object_meta } = stored;
        let judged = async {
            let Ok(Some(object)) = Object::read(text) else { return };
            let verdict = context.node_policy((&object, object_meta), self.policy);
            sink.scanned(Scanned { text, object: &object, object_meta, is_rendered: false, verdict }).await;
        };
        if let Err(panicked) = contained_async(judged).await {
            sink.skipped(&describe_object(text), &panicked);
        }
    }
}

/// The key of an object in the index of findings: that of its NAD, with which it is audited again. Those of node policies and of pods
/// must not be the key of any NAD.
pub(super) fn index_key(object: &Object<'_>) -> ObjectKey {
    match object {
        Object::NodePolicy(policy) => ObjectKey::new(NODE_POLICIES, &policy.meta.key().to_string()),
        Object::Workload(_) => pod_place(&object.key()),
        _ => object.nad_key(),
    }
}

/// The selected node policies, as far as they may be listed.
pub(super) async fn selected_policies(
    cluster: &crate::cluster::client::Cluster,
    namespace: Option<&str>,
    selector: &str,
) -> Result<Vec<ObjectKey>, ApiError> {
    let path = match namespace {
        Some(namespace) => ApiPath::in_namespace(ApiResource::NODE_POLICIES, namespace)?,
        None => ApiPath::all(ApiResource::NODE_POLICIES),
    };
    let mut keys = Vec::new();
    let add = |text: &str| keys.extend(ApiObject::read(text).map(|object| object.key));
    match cluster.for_each_object(&path.selected(selector), add).await {
        Err(failed) if failed.is_forbidden() => Ok(Vec::new()),
        listed => listed.map(|_| keys),
    }
}
