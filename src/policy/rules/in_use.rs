//! The rule on deleting a NAD that pods use.

use super::super::NadUsers;
use super::super::finding::Findings;
use super::super::rule::rule;
use crate::resources::Nad;

rule! { IN_USE = "nad/in-use", Warn;
    wrong: "A NAD is deleted while pods use it.";
    why: "Running pods keep their interfaces, but no pod that selects the NAD starts any more: a restart, a rolling update or a drained \
        node leaves it in ContainerCreating. When the running pods end, Multus detaches them by its own copy of the config, if the node \
        still has it. The deletion is never denied. nadmit knows the pods only where the policy says so (`pods`).";
    fix: "Delete the pods, or the selection in the objects that make them, before the NAD; or create the NAD again.";
}

/// The warning for whoever deletes a NAD.
pub(super) fn check(nad: &Nad<'_>, users: &NadUsers, out: &mut Findings<'_>) {
    let shown = users.pods.join(", ");
    let more = users.count.saturating_sub(users.pods.len());
    let here = match (users.count, more) {
        (0, _) => String::new(),
        (1, _) => format!("pod {shown}"),
        (_, 0) => format!("pods {shown}"),
        _ => format!("pods {shown} and {more} more"),
    };
    let users = match (here.as_str(), users.has_others) {
        ("", false) => return,
        ("", true) => "pods of other namespaces".to_owned(),
        (_, false) => here,
        (_, true) => format!("{here}, and pods of other namespaces"),
    };
    let headline = format!("NAD `{}` is in use: {users}", nad.meta.name);
    let note = "they keep their interfaces until they restart; then they hang in ContainerCreating";
    let help = "delete the pods or their selections, or create the NAD again";
    out.object(&IN_USE, "/metadata/name", headline, note, help);
}
