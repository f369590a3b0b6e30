//! The rule on deleting a NAD that pods use.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::{Facts, NadUsers, Reference};
use crate::resources::Nad;

rule! { IN_USE = "nad/in-use", Warn;
    wrong: "A NAD is deleted while pods use it.";
    why: "Running pods keep their interfaces, but no pod that selects the NAD starts any more: a restart, a rolling update or a drained \
        node leaves it in ContainerCreating. When the running pods end, Multus detaches them by its own copy of the config, if the node \
        still has it. The deletion is never denied. nadmit knows the pods only where the policy says so (`pods`).";
    fix: "Delete the pods, or the selection in the objects that make them, before the NAD; or create the NAD again.";
}

/// The warning for whoever deletes a NAD. It names the pods of the NAD's namespace to those who may list them, and says that there are
/// others to those who may list pods everywhere. Anybody else learns only that pods use it.
pub(super) fn check(nad: &Nad<'_>, users: &NadUsers, facts: &Facts, out: &mut Findings<'_>) {
    if users.count == 0 && !users.has_others {
        return;
    }
    let namespace = nad.meta.namespace.as_ref();
    let sees_own = users.count > 0 && out.may_name(Reference::Pods(namespace.to_owned()), namespace, facts);
    let sees_others = users.has_others && out.may_name(Reference::AllPods, namespace, facts);
    let shown = users.pods.join(", ");
    let more = users.count.saturating_sub(users.pods.len());
    let here = match (users.count, more) {
        _ if !sees_own => None,
        (1, _) => Some(format!("pod {shown}")),
        (_, 0) => Some(format!("pods {shown}")),
        _ => Some(format!("pods {shown} and {more} more")),
    };
    let used = match (here, sees_others) {
        (None, false) => " by pods".to_owned(),
        (None, true) => ": pods of other namespaces".to_owned(),
        (Some(here), false) => format!(": {here}"),
        (Some(here), true) => format!(": {here}, and pods of other namespaces"),
    };
    let headline = format!("NAD `{}` is in use{used}", nad.meta.name);
    let note = "they keep their interfaces until they restart; then they hang in ContainerCreating";
    let help = "delete the pods or their selections, or create the NAD again";
    out.object(&IN_USE, "/metadata/name", headline, note, help);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{MissingFact, NameVisibility, Policy, Subject, judge};
    use crate::resources::Object;

    const NAD: &str = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps"}}"#;

    /// Whoever may delete a NAD learns of no pod that they may not list, in whatever namespace it is.
    #[test]
    fn pods_are_named_to_those_who_may_list_them() {
        let own = Reference::Pods("apps".to_owned());
        let both = [own.clone(), Reference::AllPods];
        let (one, others) = ((1, false), (0, true));
        for (users, allowed, want, asked) in [
            (one, NameVisibility::Own(Vec::new()), " by pods", &both[..1]),
            (one, NameVisibility::Own(vec![own.clone()]), ": pod web", &[]),
            (one, NameVisibility::Own(vec![Reference::Pods("other".to_owned())]), " by pods", &both[..1]),
            (others, NameVisibility::Own(vec![own.clone()]), " by pods", &both[1..]),
            (others, NameVisibility::Own(vec![Reference::AllPods]), ": pods of other namespaces", &[]),
            ((1, true), NameVisibility::Own(Vec::new()), " by pods", &both),
            ((1, true), NameVisibility::Own(vec![own]), ": pod web", &both[1..]),
            ((1, true), NameVisibility::All, ": pod web, and pods of other namespaces", &[]),
        ] {
            let object = Object::read(NAD).unwrap().unwrap();
            let subject = Subject { is_final: true, ..Subject::manifest(&object) };
            let pods = if users.0 > 0 { vec!["web".to_owned()] } else { Vec::new() };
            let users = NadUsers { pods, count: users.0, has_others: users.1 };
            let facts = Facts {
                is_cluster: true,
                users_at_deletion: Some(users.clone()),
                names: allowed.clone(),
                ..Facts::default()
            };
            let verdict = judge(&subject, &facts, &Policy::parse("pods: warn").unwrap());
            let found: Vec<_> = verdict.findings.iter().map(|finding| finding.message.as_str()).collect();
            assert_eq!(found, [format!("NAD `net` is in use{want}")], "{users:?} {allowed:?}");
            let missing = match verdict.missing_fact {
                Some(MissingFact::NameVisibility(missing)) => missing,
                _ => Vec::new(),
            };
            assert_eq!(missing, asked, "{users:?} {allowed:?}");
        }
    }
}
