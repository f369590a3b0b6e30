//! The node policies in a full scan. What they have in common was read before; here they are listed once more and judged one by one,
//! so that none of them stays in memory.

use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::cluster::client::collection::{ApiObject, ListPage};
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource};
use crate::cluster::leader::full_scan::FullScan;
use crate::cluster::leader::object_audit::{ScanSink, Scanned, describe_object};
use crate::cluster::leader::pods::pod_place;
use crate::cluster::leader::scan_scope::JudgedObjects;
use crate::resources::{NODE_POLICIES, Object, ObjectKey};
use crate::supervise::{contained, contained_async};

impl FullScan<'_> {
    /// Audits the node policies. Where they cannot be listed, the context has noted it.
    pub(super) async fn node_policies(
        &self,
        judged: &JudgedObjects,
        context: &AuditContext,
        sink: &mut impl ScanSink,
    ) -> Result<(), ApiError> {
        if context.node_policies.is_none() {
            return Ok(());
        }
        let path = match &self.scope.namespace {
            Some(namespace) => ApiPath::in_namespace(ApiResource::NODE_POLICIES, namespace)?,
            None => ApiPath::all(ApiResource::NODE_POLICIES),
        };
        let mut pages = ListPager::of(&path);
        while let Some(text) = pages.next(self.cluster).await? {
            let page = ListPage::read(&text)?;
            pages.after(&page);
            let is_judged = |text: &&&str| judged.has_text(ApiResource::NODE_POLICIES, text);
            sink.expect(page.objects.iter().filter(is_judged).count());
            for text in page.objects.iter().filter(is_judged) {
                self.node_policy(text, context, sink).await;
            }
        }
        Ok(())
    }

    async fn node_policy(&self, text: &str, context: &AuditContext, sink: &mut impl ScanSink) {
        let judged = async {
            let Some(stored) = contained(|| StoredObject::of(text)).ok().flatten() else { return };
            let Ok(Some(object)) = Object::read(&stored.text) else { return };
            let verdict = context.node_policy((&object, &stored.object_meta), self.policy);
            let (text, object_meta) = (&stored.text, &stored.object_meta);
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
