//! What an audit found, kept in the cluster: one report for each object about which there is something to say.
//!
//! Nothing is written that says what is there already, also not after a restart: a report is compared by its digest, which is of our
//! own fields alone. What is known of a report is its digest and its resourceVersion, so that ten thousand of them take little room.
//!
//! Others may write them too. A label or an annotation of theirs stays; what they change of ours is put right when
//! everything is looked at the next time, and not before: two who disagree about a report write it once per look, each. A report
//! that does not bear our label is somebody else's, whatever its name, and is left alone.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tracing::{debug, warn};

use super::collection::{Id, Page};
use super::owner::segment;
use super::pages::Pages;
use super::{Cluster, Failed, Written, meta_text, object};
use crate::output::report::{ABOUT, About, MANAGED_BY, ReportKind, digest, name, report};
use crate::policy::{Reports, Verdict};
use crate::telemetry::metrics::ReportWrites;

/// How many reports are read at once; none is larger than 64 KiB.
const PAGE: usize = 100;
/// How often a report is read again that somebody else writes at the same time.
const ATTEMPTS: usize = 4;

/// The one who keeps reports.
pub struct Reporter {
    cluster: Cluster,
    writes: ReportWrites,
    reports: Reports,
    /// The kind that is written; `None` where policy wants none, or the cluster has none.
    kind: Option<ReportKind>,
    /// The reports there are, by the UID of the object.
    known: HashMap<Box<str>, Known>,
}

/// What is known of a report.
struct Known {
    namespace: Box<str>,
    /// What it says.
    digest: Box<str>,
    version: Box<str>,
    /// Whether the object was judged since the last [`Reporter::load`].
    is_current: bool,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is as it should be, or there should be none and is none, or none can be kept here.
    Unchanged,
    /// It was written for the first time.
    Created,
    /// It was written again.
    Replaced,
    /// It was deleted.
    Deleted,
    /// Others write it all the time, or it is theirs; the next look at everything tries again.
    Contended,
}

impl Kept {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Unchanged => None,
            Self::Created => Some("created"),
            Self::Replaced => Some("replaced"),
            Self::Deleted => Some("deleted"),
            Self::Contended => Some("contended"),
        }
    }
}

impl Reporter {
    /// Nothing is known yet, and nothing kept: [`Self::load`] comes first.
    pub fn new(cluster: Cluster, writes: ReportWrites) -> Self {
        Self { cluster, writes, reports: Reports::Off, kind: None, known: HashMap::new() }
    }

    /// Looks at the reports there are, which comes before everything is judged: what others changed is known then. Those of
    /// another kind than the policy wants are deleted.
    pub async fn load(&mut self, reports: Reports) -> Result<(), Failed> {
        if self.reports != reports {
            (self.reports, self.kind) = (reports, None);
            self.known.clear();
        }
        for other in [Reports::Openreports, Reports::Wgpolicyk8s].into_iter().filter(|other| *other != reports) {
            if let Some(kind) = ReportKind::of(other) {
                for _ in 0..clear(&self.cluster, kind, &of_objects()).await? {
                    self.writes.count("deleted");
                }
            }
        }
        let Some(kind) = ReportKind::of(reports) else { return Ok(()) };
        let (address, selector) = (anywhere(kind), labelled(&of_objects()));
        let mut pages = Pages::of(&address, &selector).by(PAGE);
        let mut found = None;
        while let Some(text) = pages.next(&self.cluster).await? {
            let page = Page::read(&text)?;
            pages.after(&page);
            let found = found.get_or_insert_with(HashMap::new);
            for (uid, mut known) in page.objects.iter().filter_map(|stored| Known::of(&object(stored).ok()?)) {
                // What the server made of it is what was meant, as long as nobody else writes.
                if let Some(before) = self.known.remove(&uid).filter(|before| before.version == known.version) {
                    known.digest = before.digest;
                }
                found.insert(uid, known);
            }
        }
        let Some(found) = found else {
            if self.kind.take().is_some() {
                warn!(kind = kind.plural, "the cluster has this kind of reports no more; findings are not kept");
            }
            self.known.clear();
            return Ok(());
        };
        if self.kind.is_none() {
            debug!(kind = kind.plural, reports = found.len(), "findings are kept");
        }
        (self.kind, self.known) = (Some(kind), found);
        Ok(())
    }

    /// Keeps what was found in an object. Nothing is sent where nothing has changed.
    pub async fn keep(&mut self, about: &About<'_>, verdict: &Verdict) -> Result<Kept, Failed> {
        let Some(kind) = self.kind else { return Ok(Kept::Unchanged) };
        let kept = match report(self.reports, about, verdict) {
            Some(report) => self.write(kind, about, report).await,
            None => self.remove(kind, about.uid).await,
        };
        self.count(&kept);
        kept
    }

    /// Deletes the reports of objects that are gone: those that were there at the last [`Self::load`], and about whose objects
    /// nobody called [`Self::keep`] since. So it is called only where everything could be looked at. How many it deleted.
    pub async fn finish(&mut self) -> Result<usize, Failed> {
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

    /// An object is gone: its report goes with it, by the cluster's own garbage collector.
    pub fn forget(&mut self, uid: &str) {
        self.known.remove(uid);
    }

    fn count(&self, kept: &Result<Kept, Failed>) {
        if let Some(result) = kept.as_ref().map_or(Some("failed"), |kept| kept.name()) {
            self.writes.count(result);
        }
    }

    async fn write(&mut self, kind: ReportKind, about: &About<'_>, wanted: Value) -> Result<Kept, Failed> {
        let digest = digest(&wanted);
        if let Some(known) = self.known.get_mut(about.uid) {
            known.is_current = true;
            if *known.digest == *digest {
                return Ok(Kept::Unchanged);
            }
        }
        let (Some(namespace), Some(name)) = (segment(about.namespace), segment(&name(about.uid)).map(str::to_owned))
        else {
            return Ok(Kept::Unchanged);
        };
        let collection = collection(kind, namespace);
        let path = format!("{collection}/{name}");
        let mut is_known = self.known.contains_key(about.uid);
        for _ in 0..ATTEMPTS {
            // Where none is known, creating it tells whether there is one.
            let found = if is_known { self.cluster.read(&path).await? } else { None };
            let (written, kept) = match found {
                None => (self.cluster.create(&collection, &wanted).await?, Kept::Created),
                Some(found) if !is_ours(&found) => {
                    warn!(path, "somebody else keeps a report by this name");
                    return Ok(Kept::Contended);
                }
                Some(found) if self::digest(&found) == digest => {
                    self.learn(about, &digest, &found);
                    return Ok(Kept::Unchanged);
                }
                Some(found) => (self.cluster.replace(&path, &merged(found, &wanted)).await?, Kept::Replaced),
            };
            if let Written::Stored(stored) = written {
                self.learn(about, &digest, &stored);
                return Ok(kept);
            }
            is_known = true;
        }
        Ok(Kept::Contended)
    }

    /// Whatever the server made of it, this is what was meant.
    fn learn(&mut self, about: &About<'_>, digest: &str, stored: &Value) {
        let known = Known {
            namespace: about.namespace.into(),
            digest: digest.into(),
            version: meta_text(stored, "resourceVersion").into(),
            is_current: true,
        };
        self.known.insert(about.uid.into(), known);
    }

    async fn remove(&mut self, kind: ReportKind, uid: &str) -> Result<Kept, Failed> {
        let Some(known) = self.known.get(uid) else { return Ok(Kept::Unchanged) };
        if let (Some(namespace), Some(name)) = (segment(&known.namespace), segment(&name(uid))) {
            let path = format!("{}/{name}", collection(kind, namespace));
            if !self.cluster.delete_unchanged(&path, &known.version).await? {
                return Ok(Kept::Contended);
            }
        }
        self.known.remove(uid);
        Ok(Kept::Deleted)
    }
}

/// The address of all reports of a kind, wherever they are.
fn anywhere(kind: ReportKind) -> String {
    format!("/apis/{}/{}", kind.api_version, kind.plural)
}

fn labelled(labels: &str) -> String {
    format!("&labelSelector={labels}")
}

/// Deletes all reports with these labels; how many.
pub(super) async fn clear(cluster: &Cluster, kind: ReportKind, labels: &str) -> Result<usize, Failed> {
    let (address, selector) = (anywhere(kind), labelled(labels));
    let mut pages = Pages::of(&address, &selector).by(PAGE);
    let mut deleted = 0;
    while let Some(text) = pages.next(cluster).await? {
        let page = Page::read(&text)?;
        pages.after(&page);
        for id in page.objects.iter().filter_map(|stored| Id::of(stored)) {
            if let (Some(namespace), Some(name)) = (segment(&id.namespace), segment(&id.name)) {
                cluster.delete(&format!("{}/{name}", collection(kind, namespace))).await?;
                deleted += 1;
            }
        }
    }
    Ok(deleted)
}

impl Known {
    /// What is known of a stored report, and of which object it is.
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

/// The labels of all reports of ours, as a selector.
pub(super) fn of_ours() -> String {
    format!("{MANAGED_BY}%3Dnadmit")
}

/// The labels of those about objects.
fn of_objects() -> String {
    format!("{}%2C{ABOUT}%3Dobject", of_ours())
}

/// Where reports of a kind are.
pub(super) fn collection(kind: ReportKind, namespace: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/{}", kind.api_version, kind.plural)
}

/// Whether we made a report.
pub(super) fn is_ours(stored: &Value) -> bool {
    let label = stored.pointer("/metadata/labels").and_then(|labels| labels.get(MANAGED_BY));
    label.and_then(Value::as_str) == Some("nadmit")
}

/// A stored report that says what is wanted: all of it is ours but the metadata, of which our members are.
pub(super) fn merged(mut stored: Value, wanted: &Value) -> Value {
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
    fn what_others_add_to_a_report_stays() {
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
