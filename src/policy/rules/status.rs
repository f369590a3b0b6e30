//! Rules on status writes. `policy::status` classifies the write; this module reports it.

use crate::policy::finding::Findings;
use crate::policy::rule::rule;
use crate::policy::status::{Evidence, GenerationIssue};
use crate::policy::{Class, PRECONDITION_PREFIX};

rule! { STALE = "status/stale", Deny;
    wrong: "A status write was computed from an older version of the object.";
    why: "The object was written after the writer had read it. The status would erase what another writer, or another reconcile of the \
        same one, decided in the meantime. The response is 409 Conflict, as from the API server itself, so that a client's \
        retry-on-conflict reads the object and decides again.";
    fix: "Read the object again, decide again, and write again, as retry.RetryOnConflict does.";
}

rule! { CONTRADICTED = "status/contradicted", Deny;
    wrong: "A status write states a resourceVersion that is not the stored one.";
    why: "In a patch or a server-side apply, the annotation `if-resource-version.nadmit.io/MANAGER` states the resourceVersion that \
        the writer read. If another one is stored, somebody has written in between, and the write would erase that. The response is \
        409 Conflict, as for a PUT. The annotation is never stored, because a status write changes no metadata.";
    fix: "Read the object again, decide again, and state the resourceVersion that you read.";
}

rule! { REGRESSED = "status/regressed", Deny;
    wrong: "An `observedGeneration` goes back, in the status or in a condition.";
    why: "The new status says that it was computed from an older spec than the status that it replaces: a slow reconcile ends after a \
        faster one. A client that waits for the newer generation would see its result disappear. The response is 409 Conflict. A value \
        that equals the object's own generation is never denied, and neither is one that corrects a number which was too high. If the \
        write states the version that it was computed from, this is a warning.";
    fix: "Read the object again, and reconcile the generation that it has now.";
}

rule! { UNVERSIONED = "status/unversioned", Deny;
    wrong: "A status is written by PUT without a resourceVersion.";
    why: "Such a write overwrites whatever is stored. For custom resources the API server rejects it too. The response is 422, because \
        a retry changes nothing: the writer itself must be changed.";
    fix: "Send the object as it was read, with its resourceVersion (client.Status().Update, Api::replace_status).";
}

rule! { TAKEOVER = "status/takeover", Audit;
    wrong: "A server-side apply changes a status field that another field manager set.";
    why: "Without force, the API server rejects this as a conflict. With force, the other manager loses its value without being \
        informed, and most likely writes it again. It is only recorded, unless the policy makes the resource `strict`: then it is \
        denied, except for the `owners` that the policy lists. An owner is a user together with a field manager, because a client can \
        choose any manager name.";
    fix: "Apply without force, and on a conflict read again; or state the resourceVersion that you read, in the annotation \
        `if-resource-version.nadmit.io/MANAGER`.";
}

rule! { UNPROVEN = "status/unproven", Audit;
    wrong: "Nothing proves that a status was computed from the object that it overwrites.";
    why: "A merge patch or a JSON patch without a precondition is applied to whatever is stored: two reconcilers read the same object, \
        both write, and the second erases what the first decided. At admission such a patch looks exactly like a PUT, which the API \
        server compares by itself. So it is only recorded, unless the policy makes the resource `strict`: then it is denied, and so is \
        a server-side apply that changes a value of its own manager, because two reconciles of one controller are one manager.";
    fix: "State the resourceVersion that you read, in the annotation `if-resource-version.nadmit.io/MANAGER`; or write by PUT as a \
        user who may not patch the status.";
}

rule! { AHEAD = "status/ahead", Warn;
    wrong: "An `observedGeneration` is larger than the object's generation.";
    why: "No writer can have seen a spec that does not exist yet; the number comes from a backup or from another cluster. A client \
        that waits for a generation then takes an outdated status for a current one.";
    fix: "Write the metadata.generation of the object that was reconciled.";
}

const ERASES: &str = "the write would erase what was written since";

/// Reports the findings for a write of that class.
pub(crate) fn check(class: Class, evidence: &Evidence, out: &mut Findings<'_>) {
    let Evidence { sent, stored, .. } = evidence;
    let manager = if evidence.manager.is_empty() { "MANAGER" } else { &evidence.manager };
    match class {
        Class::Stale => {
            let headline = format!("status was computed from resourceVersion {sent}, but {stored} is stored");
            let help = "read the object again, decide again, and write again, as retry.RetryOnConflict does";
            out.object(&STALE, "/metadata/resourceVersion", headline, ERASES, help);
        }
        Class::Contradicted => {
            let (key, stated) = evidence.stated.clone().unwrap_or_default();
            let headline = format!("precondition states resourceVersion `{stated}`, but {stored} is stored");
            let help = "read the object again, decide again, and state the resourceVersion of what was read";
            let pointer = format!("/metadata/annotations/{}", crate::json::escape(&key));
            out.object(&CONTRADICTED, pointer, headline, ERASES, help);
        }
        Class::Unversioned => {
            let headline = "status PUT without a resourceVersion";
            let note = "it overwrites whatever status is stored";
            let help =
                "send the object as it was read, with its resourceVersion: client.Status().Update, Api::replace_status";
            out.object(&UNVERSIONED, "/metadata/resourceVersion", headline, note, help);
        }
        Class::Takeover => {
            let (pointer, field, owner) = place(evidence);
            let headline = format!("server-side apply with force by `{manager}` takes {field}{owner}");
            let note = "the other manager loses its value and is not informed";
            let help = format!(
                "apply without force and read again on conflict, or state what was read: \
                 the annotation {PRECONDITION_PREFIX}{manager} with the object's resourceVersion, in what is applied"
            );
            out.object(&TAKEOVER, pointer, headline, note, help);
        }
        Class::Unproven => {
            let (pointer, field, owner) = place(evidence);
            let (headline, note) = if evidence.is_apply {
                (
                    format!("server-side apply by `{manager}` changes {field} without a precondition"),
                    "another reconcile under the same manager may just have set the value that is replaced",
                )
            } else {
                (
                    format!("the write changes {field}{owner} without a precondition"),
                    "nothing proves that the writer read what it overwrites; values that others wrote since are erased",
                )
            };
            let help = format!(
                "state what was read: the annotation {PRECONDITION_PREFIX}{manager} with the object's resourceVersion, in the patch; or \
                 write by PUT (client.Status().Update) as a user who may not patch the status"
            );
            out.object(&UNPROVEN, pointer, headline, note, help);
        }
        Class::Regressed | Class::Guarded | Class::ServerLag | Class::Unchanged | Class::OwnedApply => {}
    }
    for GenerationIssue { pointer, words, old, new } in &evidence.back {
        let old = old.unwrap_or_default();
        let headline = format!("`{words}` goes back from {old} to {new}");
        let note = "the status of an older spec would replace that of a newer one";
        let help = "read the object again, and reconcile the generation that it has now";
        let finding = out.object(&REGRESSED, pointer.clone(), headline, note, help);
        // The writer knows what it overwrites; reading again would not help.
        if class == Class::Guarded {
            finding.at_most_warn();
        }
    }
    for GenerationIssue { pointer, words, new, .. } in &evidence.ahead {
        let headline = format!("`{words}` is {new}, above the generation of the object");
        let note = "the status was not computed from this object's spec";
        let help = "write the metadata.generation of the object that was reconciled";
        out.object(&AHEAD, pointer.clone(), headline, note, help);
    }
}

/// The field a finding is about: its pointer, its name, and its previous owner.
fn place(evidence: &Evidence) -> (String, String, String) {
    let Some(field) = &evidence.field else { return ("/status".to_owned(), "`status`".to_owned(), String::new()) };
    let more = match field.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let owner = field.owner.as_ref().map(|owner| format!(" of `{owner}`")).unwrap_or_default();
    (field.pointer.clone(), format!("`{}`{more}", field.words), owner)
}
