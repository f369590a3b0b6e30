//! Reviews as the API server sends them, and the answers it gets.

use serde_json::{Value, json};

use super::*;
use crate::policy::{Facts, Policy, judge, judge_status};

#[test]
fn a_patch_is_written_as_serde_writes_it() {
    let operations = [
        "[]",
        r#"[{"op":"add","path":"/metadata/annotations/a~1b","value":"c \" \u0001 é"}]"#,
        r#"[{"op":"add","path":"/metadata","value":{"annotations":{"a":"b"}}},{"op":"remove","path":"/x"}]"#,
        r#"[{"op":"replace","path":"/spec/config","value":"{\n}"},{"op":"copy","from":"/a","path":"/b"}]"#,
    ];
    for text in operations {
        let patch: Patch = serde_json::from_str(text).unwrap();
        assert_eq!(patch_text(&patch), to_json(&patch));
        assert_eq!(serde_json::from_str::<Patch>(&patch_text(&patch)).unwrap(), patch);
    }
}

fn nad(config: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "net", "namespace": "apps", "annotations": annotations},
        "spec": {"config": config.to_string()},
    })
}

/// A review of an object, with the rest of the request over it.
fn review(object: &Value, rest: &Value) -> String {
    let mut request = json!({
        "uid": "u-1", "operation": "CREATE", "name": "net", "namespace": "apps",
        "kind": {"group": "k8s.cni.cncf.io", "version": "v1", "kind": "NetworkAttachmentDefinition"},
        "userInfo": {"username": "jane"}, "object": object,
    });
    json_patch::merge(&mut request, rest);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// The whole answer to an object.
fn answer_to(object: &Value, endpoint: Endpoint, policy: &str) -> (Value, AdmissionResponse) {
    let body = review(object, &json!({}));
    let review = Review::read(body.as_bytes()).unwrap();
    let policy = Policy::parse(policy).unwrap();
    let outcome = match review.request.subject(endpoint) {
        Ok(subject) => ReviewOutcome::Judged(judge(&subject, &Facts::default(), &policy)),
        Err(reason) => ReviewOutcome::Nothing(reason, Mode::Enforce),
    };
    let answer = answer(&review, endpoint, &outcome);
    (serde_json::from_slice(&answer.body).unwrap(), answer)
}

fn good() -> Value {
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "sriov", "resourceName": "intel.com/vfs"});
    nad(&config, &json!({"k8s.v1.cni.cncf.io/resourceName": "intel.com/vfs"}))
}

/// Two values that are denied, and one that is warned of.
fn bad() -> Value {
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "sriov", "vlan": 5000, "vlanQoS": 9,
        "spoofchk": "of", "spoofchck": "on", "resourceName": "intel.com/vfs"});
    nad(&config, &json!({"k8s.v1.cni.cncf.io/resourceName": "intel.com/vfs"}))
}

/// The annotation is missing, and the config has the name.
fn incomplete() -> Value {
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "sriov", "resourceName": "intel.com/vfs"});
    nad(&config, &json!({}))
}

#[test]
fn valid_object_is_allowed_without_a_word() {
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let (body, answer) = answer_to(&good(), endpoint, "");
        let annotations = json!({"mode": "enforce", "decision": "allow", "rules": "", "would": ""});
        let want = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "u-1", "allowed": true, "auditAnnotations": annotations}});
        assert_eq!(body, want);
        assert_eq!((answer.decision.name(), answer.rules.as_str(), answer.would.as_str()), ("allow", "", ""));
    }
}

#[test]
fn denial_lists_each_cause() {
    let (body, answer) = answer_to(&bad(), Endpoint::Validate, "");
    assert_eq!(answer.decision, Decision::Deny);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
    // At /mutate nothing is denied, and no problem is reported twice.
    let (body, answer) = answer_to(&bad(), Endpoint::Mutate, "");
    assert_eq!((answer.decision, answer.rules.as_str()), (Decision::Allow, ""));
    assert_eq!(body.pointer("/response/warnings"), None);
}

#[test]
fn repair_is_a_patch_at_mutate_only() {
    let (body, answer) = answer_to(&incomplete(), Endpoint::Mutate, "");
    assert_eq!((answer.decision.name(), answer.rules.as_str()), ("patch", "nad/resource-name-missing=patch"));
    let encoded = body.pointer("/response/patch").and_then(Value::as_str).unwrap();
    let patch: Patch = serde_json::from_slice(&STANDARD.decode(encoded).unwrap()).unwrap();
    let mut repaired = incomplete();
    json_patch::patch(&mut repaired, &patch).unwrap();
    assert_eq!(repaired, good());
    assert_eq!(body.pointer("/response/patchType"), Some(&json!("JSONPatch")));
    let warnings: Vec<String> = serde_json::from_value(body.pointer("/response/warnings").cloned().unwrap()).unwrap();
    assert!(warnings.concat().contains("Repaired: it becomes  intel.com/vfs"), "{warnings:?}");
    // What reaches /validate like that was not repaired.
    let (body, answer) = answer_to(&incomplete(), Endpoint::Validate, "");
    assert_eq!(answer.decision, Decision::Deny);
    assert_eq!(body.pointer("/response/patch"), None);
}

#[test]
fn audit_mode_allows_and_says_what_it_would_do() {
    let (body, answer) = answer_to(&bad(), Endpoint::Validate, "mode: audit");
    assert_eq!(answer.decision, Decision::Allow);
    assert!(answer.would.contains("sriov/vlan=deny"), "{}", answer.would);
    assert!(answer.rules.contains("sriov/vlan=warn") || answer.rules.contains("sriov/vlan=audit"), "{}", answer.rules);
    assert_eq!(body.pointer("/response/auditAnnotations/mode"), Some(&json!("audit")));
    assert_eq!(body.pointer("/response/auditAnnotations/would"), Some(&json!(answer.would)));
}

/// One entry per rule, action and reason, however often and in whatever order they come.
#[test]
fn rules_are_listed_once() {
    let finding = crate::output::testing::finding;
    let excused = |rule| Finding { because: Some(ExcuseReason::Ratchet), ..finding(rule, Action::Warn, "m") };
    let verdict = |findings| Verdict {
        mode: Mode::Enforce,
        findings,
        patch: Patch::default(),
        would_patch: Patch::default(),
        missing_fact: None,
        written_by_operator: false,
        is_incomplete: false,
    };
    let outcome = ReviewOutcome::Judged(verdict(vec![
        finding("sriov/vlan", Action::Deny, "m"),
        excused("sriov/on-off"),
        finding("sriov/vlan", Action::Deny, "another"),
        finding("sriov/on-off", Action::Warn, "m"),
    ]));
    assert_eq!(outcome.rules(Endpoint::Validate), "sriov/vlan=deny,sriov/on-off=warn(ratchet),sriov/on-off=warn");
    assert_eq!(outcome.rules(Endpoint::Mutate), "");
    assert_eq!(outcome.status(), None);
    // The operator reads no warnings.
    assert_eq!(warnings_for(&outcome, Endpoint::Validate).len(), 2);
    let ReviewOutcome::Judged(verdict) = outcome else { unreachable!() };
    let of_operator = ReviewOutcome::Judged(Verdict { written_by_operator: true, ..verdict });
    assert!(warnings_for(&of_operator, Endpoint::Validate).is_empty());
}

#[test]
fn unjudged_object_is_allowed_with_a_warning_at_validate() {
    for (object, words) in [
        (json!({"apiVersion": "v1", "kind": "Pod"}), "does not judge objects of this kind"),
        (json!(5), "could not read the object"),
    ] {
        let (body, answer) = answer_to(&object, Endpoint::Validate, "");
        assert_eq!((answer.decision, body.pointer("/response/allowed")), (Decision::Allow, Some(&json!(true))));
        let warning = body.pointer("/response/warnings/0").and_then(Value::as_str).unwrap();
        assert!(warning.contains(words), "{warning}");
        let (body, _) = answer_to(&object, Endpoint::Mutate, "");
        assert_eq!(body.pointer("/response/warnings"), None);
    }
}

/// A write to a status that is based on an old version: clients read again and retry after `Conflict`.
#[test]
fn stale_status_write_is_a_conflict() {
    let state = |version: &str, sync: &str| {
        json!({
            "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState",
            "metadata": {"name": "b", "namespace": "sriov", "resourceVersion": version},
            "status": {"syncStatus": sync},
        })
    };
    let of_status = |version: &str| {
        let rest = json!({
            "operation": "UPDATE", "subResource": "status", "name": "b", "namespace": "sriov",
            "kind": {"group": "sriovnetwork.openshift.io", "version": "v1", "kind": "SriovNetworkNodeState"},
            "resource": {"group": "sriovnetwork.openshift.io", "version": "v1", "resource": "sriovnetworknodestates"},
            "oldObject": state("7", "Succeeded"), "options": {"fieldManager": "curl"},
        });
        let body = review(&state(version, "Failed"), &rest);
        let review = Review::read(body.as_bytes()).unwrap();
        let write = review.request.status_write().unwrap();
        assert_eq!(
            (write.resource, write.kind, write.name, write.namespace),
            ("sriovnetworknodestates", "SriovNetworkNodeState", "b", "sriov")
        );
        assert_eq!((write.group, write.user, write.manager), ("sriovnetwork.openshift.io", "jane", "curl"));
        let policy =
            Policy::parse("status: {resources: {sriovnetwork.openshift.io/sriovnetworknodestates: {}}}").unwrap();
        let verdict = judge_status(&write, &Facts::default(), &policy).unwrap();
        let answer = answer(&review, Endpoint::Status, &ReviewOutcome::Status(verdict));
        (serde_json::from_slice::<Value>(&answer.body).unwrap(), answer)
    };
    let (body, answer) = of_status("6");
    assert_eq!(answer.decision, Decision::Deny);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
    let (body, answer) = of_status("7");
    assert_eq!(answer.decision, Decision::Allow);
    assert_eq!(body.pointer("/response/auditAnnotations/class"), Some(&json!("unproven")));
    assert_eq!(body.pointer("/response/auditAnnotations/manager"), Some(&json!("curl")));
}

#[test]
fn only_updates_of_a_status_are_status_writes() {
    for (rest, want) in [
        (json!({"operation": "CREATE", "subResource": "status"}), SkipReason::NotJudged),
        (json!({"operation": "UPDATE"}), SkipReason::NotJudged),
        (json!({"operation": "UPDATE", "subResource": "scale"}), SkipReason::NotJudged),
        (json!({"operation": "UPDATE", "subResource": "status"}), SkipReason::Unreadable),
    ] {
        let body = review(&json!({}), &rest);
        let review = Review::read(body.as_bytes()).unwrap();
        assert_eq!(review.request.status_write().unwrap_err(), want, "{rest}");
    }
}
