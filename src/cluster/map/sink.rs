//! The findings of a scan.

use crate::audit::map::{MAX_ROWS, MapFinding, findings_of};
use crate::cluster::leader::object_audit::{ScanSink, Scanned};
use crate::policy::Rewrites;
use crate::resources::ObjectKey;
use crate::supervise::Panicked;

/// Keeps the findings of a scan, as a map has them.
#[derive(Debug, Default)]
pub(super) struct FindingSink(Vec<MapFinding>);

impl FindingSink {
    pub(super) fn into_findings(self) -> Vec<MapFinding> {
        self.0
    }
}

impl ScanSink for FindingSink {
    fn expect(&mut self, _: usize) {}

    fn rewrites(&self, _: &'static str, _: &ObjectKey) -> Option<Rewrites> {
        None
    }

    async fn scanned(&mut self, scanned: Scanned<'_>) {
        // One more than a map has, so that it says that some were left out.
        let remaining = (MAX_ROWS + 1).saturating_sub(self.0.len());
        self.0.extend(findings_of(scanned.object, &scanned.verdict).into_iter().take(remaining));
    }

    /// The object is on the map all the same.
    fn skipped(&mut self, _: &str, _: &Panicked) {}
}
