use super::*;

#[test]
fn reads_reviews_as_the_api_server_sends_them() {
    let body = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"k8s.cni.cncf.io",
        "version":"v1","kind":"NetworkAttachmentDefinition"},"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},
        "requestKind":{"group":"g","version":"v","kind":"k"},"name":"n","namespace":"s","operation":"CREATE","userInfo":{"username":"jane",
        "groups":["a"],"extra":{"x":["y"]}},"object":{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n"}},
        "oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions"}}}"#;
    let review = Review::read(body).unwrap();
    assert_eq!(review.version, ReviewVersion::V1);
    let request = &review.request;
    assert_eq!((request.uid.as_ref(), request.operation, request.is_dry_run), ("u-1", Operation::Create, false));
    let subject = request.subject(Endpoint::Mutate).unwrap();
    assert_eq!(subject.writer, Some("jane"));
    let info: serde_json::Value = serde_json::from_str(request.user_info).unwrap();
    assert_eq!(info, serde_json::json!({ "username": "jane", "groups": ["a"], "extra": { "x": ["y"] } }));
    assert!(subject.old.is_none() && !subject.is_final);
}

#[test]
fn rejects_bodies_that_are_not_reviews() {
    for (body, words) in [
        ("", "not an AdmissionReview"),
        ("{", "not an AdmissionReview"),
        ("[]", "not an AdmissionReview"),
        ("\u{0}", "not an AdmissionReview"),
        (r#"{"apiVersion":"v1","kind":"Pod"}"#, "a `Pod` of `v1`"),
        (r#"{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}"#, "`admission.k8s.io/v2`"),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "no request"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"","operation":"CREATE"}}"#,
            "no request",
        ),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"X"}}"#, "X"),
    ] {
        let error = Review::read(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{body}: {error}");
    }
    assert!(Review::read(b"{\"kind\":\"\xff\"}").is_err());
}

#[test]
fn skips_requests_without_a_subject() {
    let of = |rest: &str| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{{"uid":"u",{rest}}}}}"#
        )
    };
    for (rest, want) in [
        (r#""operation":"DELETE","oldObject":{}"#, SkipReason::NotJudged),
        (r#""operation":"CONNECT""#, SkipReason::NotJudged),
        (r#""operation":"UPDATE","subResource":"status","object":{}"#, SkipReason::NotJudged),
        (r#""operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod"}"#, SkipReason::OtherKind),
        (r#""operation":"CREATE","object":5"#, SkipReason::Unreadable),
        (r#""operation":"CREATE","object":null"#, SkipReason::Unreadable),
        (r#""operation":"CREATE""#, SkipReason::Unreadable),
    ] {
        let body = of(rest);
        let review = Review::read(body.as_bytes()).unwrap();
        assert_eq!(review.version, ReviewVersion::V1Beta1);
        assert_eq!(review.request.subject(Endpoint::Validate).unwrap_err(), want, "{rest}");
    }
}

#[test]
fn endpoints_have_the_names_of_their_paths() {
    let names = [Endpoint::Mutate, Endpoint::Validate, Endpoint::Status].map(Endpoint::name);
    assert_eq!(names, ["mutate", "validate", "status"]);
}

#[test]
fn operations_have_names_for_metrics() {
    for (text, name) in [("CREATE", "create"), ("UPDATE", "update"), ("DELETE", "delete"), ("CONNECT", "connect")] {
        assert_eq!(Operation::parse(text).map(Operation::name), Some(name));
    }
    assert_eq!((Operation::parse("create"), Operation::Unknown.name()), (None, "unknown"));
}

/// Without the old object, the same denial would be a new one.
#[test]
fn the_subject_has_the_old_object() {
    let nad = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"s"},"spec":{"config":"{}"}}"#;
    let review = |old: &str| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"k8s.cni.cncf.io","version":"v1","kind":"NetworkAttachmentDefinition"}},"operation":"UPDATE","userInfo":{{"username":"jane"}},"object":{nad},"oldObject":{old}}}}}"#
        )
    };
    for (old, want) in [(nad, true), ("null", false)] {
        let text = review(old);
        let review = Review::read(text.as_bytes()).unwrap();
        let subject = review.request.subject(Endpoint::Validate).unwrap();
        assert_eq!((subject.old.is_some(), subject.writer, subject.is_final), (want, Some("jane"), true));
        assert!(!review.request.subject(Endpoint::Mutate).unwrap().is_final);
    }
}
