//! Facts about the cluster that could not be read.

use super::super::Facts;
use super::super::finding::Findings;
use super::super::rule::rule;

rule! { UNKNOWN = "cluster/unknown", Audit;
    wrong: "A fact about the cluster that rules depend on could not be read.";
    why: "The API server could not be reached, or nadmit lacks a permission. The rules that depend on the answer were not checked, and \
        nothing was assumed instead. If a fix needs the answer, the write is not judged, and the webhook's failurePolicy decides. The \
        object itself may be correct, so this is only recorded.";
    fix: "See nadmit's log and the metric `nadmit_cache_ready` for the reason, and check the permissions of its service account.";
}

pub(super) fn check(facts: &Facts, out: &mut Findings<'_>) {
    for what in &facts.unreachable {
        let note = "rules that depend on it were not checked";
        out.object(&UNKNOWN, "", what, note, "see nadmit's log and the metric nadmit_cache_ready");
    }
}
