//! Audit reports in the cluster: one report per object with findings.
//!
//! Unchanged reports are not written, also not after a restart: a report is compared by its digest, which covers only our own
//! fields. Only digest and resourceVersion are kept in memory, so that ten thousand reports need little of it.
//!
//! Other clients may write reports too. Their labels and annotations are kept; their changes to our fields are reverted at the
//! next full scan and not earlier, so two writers that disagree write once per scan each. A report without our label belongs to
//! somebody else, whatever its name, and is left unchanged.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tracing::{debug, warn};

use crate::cluster::client::collection::ListPage;
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult, meta_text, object};
use crate::output::report::{ABOUT, MANAGED_BY, OURS, ObjectReference, ReportKind, digest, name, report};
use crate::policy::{Reports, Verdict};
use crate::telemetry::metrics::ReportWrites;

/// How many reports are read per page; none is larger than 64 KiB.
const PAGE_SIZE: usize = 100;
/// How often a write is retried on conflict.
const MAX_ATTEMPTS: usize = 4;

/// Writes audit reports.
pub struct Reporter {
    cluster: Cluster,
    writes: ReportWrites,
    reports: Reports,
    /// The report kind; `None` if disabled by policy or not installed.
    kind: Option<ReportKind>,
    /// The existing reports, by the UID of the object.
    known: HashMap<Box<str>, KnownReport>,
}

/// The known state of a report.
struct KnownReport {
    namespace: Box<str>,
    /// Its digest.
    digest: Box<str>,
    version: Box<str>,
    /// Whether the object was judged since the last [`Reporter::load`].
    is_current: bool,
}

/// The result of writing a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportWrite {
    /// Unchanged, or no report is needed or possible.
    Unchanged,
    /// Created.
    Created,
    /// Replaced.
    Replaced,
    /// It was deleted.
    Deleted,
    /// Conflicting writes, or it belongs to somebody else; retried at the next full scan.
    Contended,
}

impl ReportWrite {
    /// Counts it, if anything was done.
    pub(super) fn count(self, writes: &ReportWrites) {
        match self {
            Self::Unchanged => {}
            Self::Created => writes.count("created"),
            Self::Replaced => writes.count("replaced"),
            Self::Deleted => writes.count("deleted"),
            Self::Contended => writes.count("contended"),
        }
    }
}

impl Reporter {
    /// Starts empty: call [`Self::load`] first.
    pub fn new(cluster: Cluster, writes: ReportWrites) -> Self {
        Self { cluster, writes, reports: Reports::Off, kind: None, known: HashMap::new() }
    }

    /// Loads the existing reports before a full scan, including changes by others. Reports of another kind than the policy's are
    /// deleted.
    pub async fn load(&mut self, reports: Reports) -> Result<(), ApiError> {
        if self.reports != reports {
            (self.reports, self.kind) = (reports, None);
            self.known.clear();
        }
        for kind in ReportKind::ALL.into_iter().filter(|kind| ReportKind::of(reports) != Some(*kind)) {
            for _ in 0..self.cluster.delete_labelled(ApiResource::report(kind), &OF_OBJECTS).await? {
                self.writes.count("deleted");
            }
        }
        let Some(kind) = ReportKind::of(reports) else { return Ok(()) };
        let path = ApiPath::all(ApiResource::report(kind)).labelled(&OF_OBJECTS);
        let mut pages = ListPager::of(&path).by(PAGE_SIZE);
        let mut found = None;
        while let Some(text) = pages.next(&self.cluster).await? {
            let page = ListPage::read(&text)?;
            pages.after(&page);
            let found = found.get_or_insert_with(HashMap::new);
            for (uid, mut known) in page.objects.iter().filter_map(|stored| KnownReport::of(&object(stored).ok()?)) {
                // The stored form counts as intended until somebody else writes it.
                if let Some(before) = self.known.remove(&uid).filter(|before| before.version == known.version) {
                    known.digest = before.digest;
                }
                found.insert(uid, known);
            }
        }
        let Some(found) = found else {
            if self.kind.take().is_some() {
                warn!(kind = kind.plural, "report kind is no longer installed; not writing reports");
            }
            self.known.clear();
            return Ok(());
        };
        if self.kind.is_none() {
            debug!(kind = kind.plural, reports = found.len(), "found reports of the audit");
        }
        (self.kind, self.known) = (Some(kind), found);
        Ok(())
    }

    /// Writes the report of an object, if it changed.
    pub async fn write_report(
        &mut self,
        about: &ObjectReference<'_>,
        verdict: &Verdict,
    ) -> Result<ReportWrite, ApiError> {
        let Some(kind) = self.kind else { return Ok(ReportWrite::Unchanged) };
        let kept = match report(self.reports, about, verdict) {
            Some(report) => self.write(kind, about, report).await,
            None => self.remove(kind, about.uid).await,
        };
        self.count(&kept);
        kept
    }

    /// Deletes reports of objects that no longer exist: those loaded by [`Self::load`] for which [`Self::write_report`] was not
    /// called since. Call it only after a complete scan. Returns how many were deleted.
    pub async fn delete_stale(&mut self) -> Result<usize, ApiError> {
        let Some(kind) = self.kind else { return Ok(0) };
        let gone: Vec<_> =
            self.known.iter().filter(|(_, known)| !known.is_current).map(|(uid, _)| uid.clone()).collect();
        for uid in &gone {
            let deleted = self.remove(kind, uid).await;
            self.count(&deleted);
            deleted?;
        }
        Ok(gone.len())
    }

    /// Forgets a deleted object: the garbage collector deletes its report.
    pub fn forget(&mut self, uid: &str) {
        self.known.remove(uid);
    }

    fn count(&self, kept: &Result<ReportWrite, ApiError>) {
        match kept {
            Ok(result) => result.count(&self.writes),
            Err(_) => self.writes.count("failed"),
        }
    }

    async fn write(
        &mut self,
        kind: ReportKind,
        about: &ObjectReference<'_>,
        wanted: Value,
    ) -> Result<ReportWrite, ApiError> {
        let digest = digest(&wanted);
        if let Some(known) = self.known.get_mut(about.uid) {
            known.is_current = true;
            if *known.digest == *digest {
                return Ok(ReportWrite::Unchanged);
            }
        }
        let is_known = self.known.contains_key(about.uid);
        match store_report(&self.cluster, (kind, about.namespace, &name(about.uid)), &wanted, is_known).await? {
            None => Ok(ReportWrite::Contended),
            Some((result, stored)) => {
                if result != ReportWrite::Contended {
                    self.record_stored(about, &digest, &stored);
                }
                Ok(result)
            }
        }
    }

    /// Records the stored report under the intended digest.
    fn record_stored(&mut self, about: &ObjectReference<'_>, digest: &str, stored: &Value) {
        let known = KnownReport {
            namespace: about.namespace.into(),
            digest: digest.into(),
            version: meta_text(stored, "resourceVersion").into(),
            is_current: true,
        };
        self.known.insert(about.uid.into(), known);
    }

    async fn remove(&mut self, kind: ReportKind, uid: &str) -> Result<ReportWrite, ApiError> {
        let Some(known) = self.known.get(uid) else { return Ok(ReportWrite::Unchanged) };
        let path = ApiPath::in_namespace(ApiResource::report(kind), &known.namespace)?.child(&name(uid))?;
        if !self.cluster.delete_unchanged(&path, &known.version).await? {
            return Ok(ReportWrite::Contended);
        }
        self.known.remove(uid);
        Ok(ReportWrite::Deleted)
    }
}

/// Creates a report, or replaces ours of that name where it differs. Returns what was done and what is stored now; `None` after
/// too many conflicts, or if the kind is not installed.
pub(super) async fn store_report(
    cluster: &Cluster,
    (kind, namespace, name): (ReportKind, &str, &str),
    wanted: &Value,
    mut may_exist: bool,
) -> Result<Option<(ReportWrite, Value)>, ApiError> {
    let collection = ApiPath::in_namespace(ApiResource::report(kind), namespace)?;
    let path = collection.clone().child(name)?;
    for _ in 0..MAX_ATTEMPTS {
        // If none is known, a create shows whether one exists.
        let found = if may_exist { cluster.read(&path).await? } else { None };
        let (written, result) = match found {
            None => (cluster.create(&collection, wanted).await?, ReportWrite::Created),
            Some(found) if !is_ours(&found) => {
                warn!(%path, "a report of this name belongs to somebody else");
                return Ok(Some((ReportWrite::Contended, found)));
            }
            Some(found) if digest(&found) == digest(wanted) => return Ok(Some((ReportWrite::Unchanged, found))),
            Some(found) => (cluster.replace(&path, &merged(found, wanted)).await?, ReportWrite::Replaced),
        };
        if let WriteResult::Stored(stored) = written {
            return Ok(Some((result, stored)));
        }
        may_exist = true;
    }
    Ok(None)
}

impl KnownReport {
    /// The known state of a stored report, and the UID of its object.
    fn of(stored: &Value) -> Option<(Box<str>, Self)> {
        let uid = meta_text(stored, "name").strip_prefix("nadmit-")?;
        let known = Self {
            namespace: meta_text(stored, "namespace").into(),
            digest: digest(stored).into(),
            version: meta_text(stored, "resourceVersion").into(),
            is_current: false,
        };
        Some((uid.into(), known))
    }
}

/// The labels of those about objects.
const OF_OBJECTS: [(&str, &str); 2] = [OURS, (ABOUT, "object")];

/// Whether we made a report.
fn is_ours(stored: &Value) -> bool {
    let label = stored.pointer("/metadata/labels").and_then(|labels| labels.get(MANAGED_BY));
    label.and_then(Value::as_str) == Some("nadmit")
}

/// The stored report with our content: everything but the metadata is ours, and our members of it.
fn merged(mut stored: Value, wanted: &Value) -> Value {
    let (Some(into), Some(wanted)) = (stored.as_object_mut(), wanted.as_object()) else { return stored };
    for (key, value) in wanted {
        match (key.as_str(), into.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            ("metadata", Some(metadata), Some(wanted)) => merge_metadata(metadata, wanted),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
    stored
}

fn merge_metadata(into: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    for (key, value) in wanted {
        match (key.as_str(), into.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            ("labels", Some(labels), Some(wanted)) => labels.extend(wanted.clone()),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn report_keeps_foreign_labels() {
        let stored = json!({
            "metadata": {
                "name": "nadmit-1", "resourceVersion": "7", "annotations": { "a": "b" },
                "labels": { "team": "x", ABOUT: "nothing" }, "ownerReferences": [],
            },
            "results": [{ "policy": "old" }, { "policy": "older" }],
            "scopeSelector": {},
        });
        let wanted = json!({
            "metadata": { "name": "nadmit-1", "labels": { ABOUT: "object" }, "ownerReferences": [{ "uid": "1" }] },
            "results": [{ "policy": "new" }],
            "scope": { "uid": "1" },
        });
        let want = json!({
            "metadata": {
                "name": "nadmit-1", "resourceVersion": "7", "annotations": { "a": "b" },
                "labels": { "team": "x", ABOUT: "object" }, "ownerReferences": [{ "uid": "1" }],
            },
            "results": [{ "policy": "new" }],
            "scope": { "uid": "1" },
            "scopeSelector": {},
        });
        assert_eq!(merged(stored, &wanted), want);
    }
}
