//! Rules on status writes. `policy::status` classifies the write; this module reports it.

use crate::policy::finding::Findings;
use crate::policy::rule::rule;
use crate::policy::status::{Evidence, GenerationIssue};
use crate::policy::{Class, PRECONDITION_PREFIX};

rule!(STALE = "status/stale", Deny;
    "a status that was computed from an older version of the object";
    "The object has been written since the writer read it. The status would erase what another writer, or another reconcile of the same one, decided in the meantime. The API server rejects it too; the response is 409 Conflict, so that a client's retry-on-conflict reads and decides again.");

rule!(CONTRADICTED = "status/contradicted", Deny;
    "a status write whose stated precondition does not hold";
    "A patch or a server-side apply may state in the annotation if-resource-version.nadmit.io/MANAGER which resourceVersion the writer \
     read. It is not the stored one: somebody wrote in between. The response is 409 Conflict, as for a PUT. The annotation is never stored, because a status write changes no metadata.");

rule!(REGRESSED = "status/regressed", Deny;
    "an `observedGeneration` that goes back, in the status or in a condition";
    "The status says that it was computed from an older spec than the status it replaces: a slow reconcile ends after a faster one. \
     Whoever waits for the newer generation would see its result disappear. A value equal to the object's own generation is never denied, nor one that corrects a number that was too high. If the write states the version it read, this is only a warning.");

rule!(UNVERSIONED = "status/unversioned", Deny;
    "a status written by PUT without a resourceVersion";
    "Such a write overwrites whatever is stored. For custom resources the API server rejects it too. The response is 422, because a retry changes nothing: the writer must send the object that it read.");

rule!(TAKEOVER = "status/takeover", Audit;
    "a server-side apply that changes a field which another field manager set";
    "Without force the API server would have rejected it as a conflict; with force the other manager loses the field without being informed, and most likely writes it back. Denied if the policy makes the resource strict, except for the users listed as owners, each with its field manager: a manager name alone is the client's choice.");

rule!(UNPROVEN = "status/unproven", Audit;
    "a status write that does not prove it was computed from the object it overwrites";
    "A merge patch or a JSON patch without a precondition is applied to whatever is stored: two reconcilers that read the same object both write, and the second erases what the first decided. At admission it looks exactly like a PUT that the API server compares, so it is only recorded, and denied if the policy makes the resource strict. There, a server-side apply that changes a value of its own manager is unproven too: two reconciles of one controller are one manager.");

rule!(AHEAD = "status/ahead", Warn;
    "an `observedGeneration` that is larger than the object's generation";
    "No writer can have seen a spec that does not exist yet. A restore or a copy from another cluster writes this; whoever waits for a generation then treats an outdated status as current.");

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
