//! What the cluster would not say.

use super::super::Facts;
use super::super::finding::Findings;
use super::super::rule::rule;

rule! { UNKNOWN = "cluster/unknown", Audit;
"something that should be known of the cluster is not";
"The API server could not be asked, or nadmit may not ask it: what depends on the answer was not checked, and nothing was assumed instead. \
Where a repair cannot be made without it, the write is not judged at all, and the webhook's failurePolicy decides. The object itself may be as good \
as any, so that this is only recorded." }

pub(super) fn check(facts: &Facts, out: &mut Findings<'_>) {
    for what in &facts.unreachable {
        let message = format!("{what}: what depends on it was not checked");
        out.object(&UNKNOWN, "", message, "nadmit's log and its metric nadmit_cache_ready tell why");
    }
}
