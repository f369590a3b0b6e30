//! The response to a review that panicked, built from as little of it as possible.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use super::{AdmissionRequest, Decision, Endpoint, Operation, Review, ReviewVersion};
use crate::policy::Mode;

/// The pseudo rule id in annotations, reports and messages if judging failed.
pub const INTERNAL: &str = "nadmit/internal";

/// Why a write that could not be judged is allowed nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowReason {
    /// Validation comes later, and judges what is stored.
    ValidatedLater,
    /// Deletions are never denied.
    Deleted,
    /// A denial can stop the operator from reconciling.
    Operator,
    /// The policy exempts the user or the namespace.
    Exempt,
    /// Nothing is denied in audit mode.
    AuditMode,
    /// Pods are never denied.
    Pod,
}

impl AllowReason {
    /// A warning travels in a header, and the API server drops a long one.
    fn words(self) -> &'static str {
        match self {
            Self::ValidatedLater => "not completed; validation decides",
            Self::Deleted => "allowed, as every deletion is",
            Self::Operator => "allowed unjudged for the operator",
            Self::Exempt => "allowed unjudged, the policy exempts it",
            Self::AuditMode => "allowed unjudged in audit mode",
            Self::Pod => "allowed, as every pod is",
        }
    }
}

/// The needed members of a review, parsed with serde, which shares no code with our parser.
#[derive(Deserialize)]
struct RawReview<'a> {
    #[serde(rename = "apiVersion", borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    request: RawRequest<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(default)]
    kind: RawKind,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(default)]
    user_info: RawUser,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Default, Deserialize)]
struct RawKind {
    #[serde(default)]
    kind: String,
}

#[derive(Default, Deserialize)]
struct RawUser {
    #[serde(default)]
    username: String,
}

impl<'a> Review<'a> {
    /// From a body that our own parser panicked on, without its objects; `None` if serde finds no review in it either.
    pub fn read_fallback(body: &'a [u8]) -> Option<Self> {
        let RawReview { api_version, request } = serde_json::from_slice(body).ok()?;
        let version = [ReviewVersion::V1, ReviewVersion::V1Beta1]
            .into_iter()
            .find(|version| version.api_version() == api_version)?;
        let request = AdmissionRequest {
            uid: request.uid,
            kind: request.kind.kind.into(),
            namespace: request.namespace,
            name: request.name,
            user: request.user_info.username.into(),
            operation: Operation::parse(&request.operation).unwrap_or_default(),
            is_dry_run: request.dry_run.unwrap_or_default(),
            ..AdmissionRequest::default()
        };
        Some(Self { version, request })
    }

    /// The response without a verdict: a denial, unless there is a reason to allow.
    pub fn answer_unjudged(
        &self,
        endpoint: Endpoint,
        mode: Mode,
        allow_reason: Option<AllowReason>,
    ) -> (Vec<u8>, Decision) {
        let decision = if allow_reason.is_some() { Decision::Allow } else { Decision::Deny };
        let would =
            if allow_reason == Some(AllowReason::AuditMode) { format!("{INTERNAL}=deny") } else { String::new() };
        let action = if allow_reason.is_some() { "warn" } else { "deny" };
        let mut response = json!({
            "uid": self.request.uid,
            "allowed": allow_reason.is_some(),
            "auditAnnotations": {
                "mode": mode.name(),
                "decision": decision.name(),
                "rules": format!("{INTERNAL}={action}"),
                "would": would,
            },
        });
        let (key, value) = match allow_reason {
            Some(allow_reason) => {
                let words = format!("{INTERNAL}: nadmit failed while judging this: {}", allow_reason.words());
                ("warnings", json!([words]))
            }
            None => (
                "status",
                json!({ "status": "Failure", "code": 500, "reason": "InternalError", "message": self.unjudged_denial(endpoint) }),
            ),
        };
        if let Some(response) = response.as_object_mut() {
            response.insert(key.to_owned(), value);
        }
        let version = self.version.api_version();
        let review = json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response });
        (review.to_string().into_bytes(), decision)
    }

    fn unjudged_denial(&self, endpoint: Endpoint) -> String {
        let what = if endpoint == Endpoint::Status { "this status write" } else { "this object" };
        format!(
            "{INTERNAL}: nadmit failed while judging {what}, and denies it so that nothing is stored unjudged. \
             note: this is a bug in nadmit; see its log for uid {}. \
             help: report it; until it is fixed, the policy can exempt the user or the namespace",
            self.request.uid
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const BODY: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a\"b","kind":{"group":"g","kind":"K"},
        "namespace":"n","name":"x","operation":"UPDATE","userInfo":{"username":"jane","groups":["a"]},"dryRun":true,"object":{"x":[1]}}}"#;

    #[test]
    fn fallback_parser_agrees_with_the_main_parser() {
        let compared = |review: &Review<'_>| {
            let AdmissionRequest { uid, kind, namespace, name, user, operation, is_dry_run, .. } = &review.request;
            let texts = [uid, kind, namespace, name, user].map(|text| text.clone().into_owned());
            (review.version, texts, *operation, *is_dry_run)
        };
        let ours = compared(&Review::read(BODY.as_bytes()).unwrap());
        assert_eq!(compared(&Review::read_fallback(BODY.as_bytes()).unwrap()), ours);
        assert_eq!(ours.1, ["a\"b", "K", "n", "x", "jane"]);
        assert_eq!((ours.2, ours.3), (Operation::Update, true));
        for body in ["", "{}", "[]", r#"{"apiVersion":"v1","request":{"uid":"x"}}"#] {
            assert!(Review::read_fallback(body.as_bytes()).is_none(), "{body}");
        }
    }

    #[test]
    fn denies_unless_an_allow_reason_applies() {
        let review = Review::read_fallback(BODY.as_bytes()).unwrap();
        let answer = |allow_reason| {
            let (body, decision) = review.answer_unjudged(Endpoint::Validate, Mode::Enforce, allow_reason);
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((&body["response"]["uid"], &body["kind"]), (&json!("a\"b"), &json!("AdmissionReview")));
            (body["response"].clone(), decision)
        };
        for (endpoint, want) in [(Endpoint::Validate, " this object,"), (Endpoint::Status, " this status write,")] {
            let words = review.unjudged_denial(endpoint);
            assert!(words.contains(want), "{words}");
        }
        let (denied, decision) = answer(None);
        assert_eq!((&denied["allowed"], decision), (&json!(false), Decision::Deny));
        assert!(denied["status"]["message"].as_str().unwrap().starts_with(INTERNAL), "{denied}");
        assert_eq!((&denied["status"]["code"], &denied["warnings"]), (&json!(500), &Value::Null));
        for (allow_reason, want) in [
            (AllowReason::ValidatedLater, "validation decides"),
            (AllowReason::Deleted, "as every deletion is"),
            (AllowReason::Operator, "for the operator"),
            (AllowReason::Exempt, "the policy exempts it"),
            (AllowReason::AuditMode, "in audit mode"),
            (AllowReason::Pod, "as every pod is"),
        ] {
            let (allowed, decision) = answer(Some(allow_reason));
            assert_eq!((&allowed["allowed"], decision), (&json!(true), Decision::Allow));
            assert_eq!((allowed["warnings"].as_array().unwrap().len(), &allowed["status"]), (1, &Value::Null));
            let is_reported = allowed["warnings"][0].as_str().unwrap().ends_with(want);
            assert!(is_reported, "{allowed}");
            let would = allowed["auditAnnotations"]["would"].as_str().unwrap();
            assert_eq!(would.ends_with("=deny"), allow_reason == AllowReason::AuditMode, "{allowed}");
        }
    }
}
