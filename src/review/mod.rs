//! The AdmissionReview on the wire: what the API server asks, and what it is answered.
//!
//! The types are our own and borrow from the body: the object is judged where it stands, and what nobody looks at is
//! skipped, not built.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod answer;
mod words;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use answer::{Decision, Outcome, answer};

use crate::policy::Subject;
use crate::resources::Object;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Repair; never deny.
    Mutate,
    /// Deny or warn about what will be stored; never repair.
    Validate,
}

impl Endpoint {
    /// As metrics and logs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are the API's")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    /// As metrics and logs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
        }
    }
}

/// The version of the review, which the answer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V1Beta1,
}

impl Version {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Why a body is no review. The API server then does as failurePolicy says.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is not JSON, or not of the review's shape.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is another kind of object.
    #[error("the body is a `{kind}` of `{api_version}`, not an AdmissionReview of admission.k8s.io/v1 or v1beta1")]
    OtherKind {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// There is nothing in it to answer.
    #[error("the AdmissionReview has no request with a uid")]
    NoRequest,
}

/// A review that was read.
#[derive(Debug)]
pub struct Review<'a> {
    version: Version,
    /// What is asked.
    pub request: Request<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

/// The request in a review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Names this call; the answer repeats it.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// What kind the object is.
    #[serde(borrow, default)]
    pub kind: Kind<'a>,
    /// The part of the object that is written, `status` for one; empty for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Cow<'a, str>,
    /// The object's name; empty while the server has still to generate one.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// The object's namespace.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// What is done to it.
    pub operation: Operation,
    /// Who does it.
    #[serde(borrow, default)]
    pub user_info: User<'a>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'a RawValue>,
    #[serde(default)]
    dry_run: Option<bool>,
}

/// The kind of an object.
#[derive(Debug, Default, Deserialize)]
pub struct Kind<'a> {
    /// Its API group.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// Its kind.
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// Who writes.
#[derive(Debug, Default, Deserialize)]
pub struct User<'a> {
    /// The name the API server knows the user by.
    #[serde(borrow, default)]
    pub username: Cow<'a, str>,
}

impl<'a> Review<'a> {
    /// Reads a body.
    pub fn read(body: &'a [u8]) -> Result<Self, ReviewError> {
        let envelope: Envelope<'a> = serde_json::from_slice(body)?;
        let version = match envelope.api_version.as_ref() {
            "admission.k8s.io/v1" => Version::V1,
            "admission.k8s.io/v1beta1" => Version::V1Beta1,
            _ => return Err(other_kind(&envelope)),
        };
        if envelope.kind != "AdmissionReview" {
            return Err(other_kind(&envelope));
        }
        let request = envelope.request.filter(|request| !request.uid.is_empty()).ok_or(ReviewError::NoRequest)?;
        Ok(Self { version, request })
    }
}

fn other_kind(envelope: &Envelope<'_>) -> ReviewError {
    let short = |text: &str| text.chars().take(100).collect();
    ReviewError::OtherKind { api_version: short(&envelope.api_version), kind: short(&envelope.kind) }
}

impl<'a> Request<'a> {
    /// Whether nothing will be stored, whatever the answer.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some(true)
    }

    /// What there is to judge. Deletions, parts of an object such as its status, and kinds that are not ours are none of our
    /// business; an object that cannot be read is said to be so.
    pub fn subject(&self, endpoint: Endpoint) -> Result<Subject<'_>, NoSubject> {
        if matches!(self.operation, Operation::Delete | Operation::Connect) || !self.sub_resource.is_empty() {
            return Err(NoSubject::NotJudged);
        }
        let read = |object: &'a RawValue| match Object::read(object.get()) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(NoSubject::OtherKind),
            Err(_) => Err(NoSubject::Unreadable),
        };
        let object = read(self.object.ok_or(NoSubject::Unreadable)?)?;
        let old = self.old_object.and_then(|old| read(old).ok());
        let is_final = endpoint == Endpoint::Validate;
        Ok(Subject { object, old, writer: Some(&self.user_info.username), is_final })
    }
}

/// Why there is nothing to judge in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSubject {
    /// Deletion, or a part of an object that no rule looks at.
    NotJudged,
    /// A kind that no rule looks at: the registration is wider than it should be.
    OtherKind,
    /// There is no object in the request, or what is there is none.
    Unreadable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_server_sends() {
        let body = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"k8s.cni.cncf.io",
            "version":"v1","kind":"NetworkAttachmentDefinition"},"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},
            "requestKind":{"group":"g","version":"v","kind":"k"},"name":"n","namespace":"s","operation":"CREATE","userInfo":{"username":"jane",
            "groups":["a"],"extra":{"x":["y"]}},"object":{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n"}},
            "oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions"}}}"#;
        let review = Review::read(body).unwrap();
        assert_eq!(review.version, Version::V1);
        let request = &review.request;
        assert_eq!((request.uid.as_ref(), request.operation, request.is_dry_run()), ("u-1", Operation::Create, false));
        let subject = request.subject(Endpoint::Mutate).unwrap();
        assert_eq!(subject.writer, Some("jane"));
        assert!(subject.old.is_none() && !subject.is_final);
    }

    #[test]
    fn refuses_what_is_no_review() {
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
            (
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"X"}}"#,
                "X",
            ),
        ] {
            let error = Review::read(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{body}: {error}");
        }
        assert!(Review::read(b"{\"kind\":\"\xff\"}").is_err());
    }

    #[test]
    fn what_is_not_judged() {
        let of = |rest: &str| {
            format!(
                r#"{{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{{"uid":"u",{rest}}}}}"#
            )
        };
        for (rest, want) in [
            (r#""operation":"DELETE","oldObject":{}"#, NoSubject::NotJudged),
            (r#""operation":"CONNECT""#, NoSubject::NotJudged),
            (r#""operation":"UPDATE","subResource":"status","object":{}"#, NoSubject::NotJudged),
            (r#""operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod"}"#, NoSubject::OtherKind),
            (r#""operation":"CREATE","object":5"#, NoSubject::Unreadable),
            (r#""operation":"CREATE","object":null"#, NoSubject::Unreadable),
            (r#""operation":"CREATE""#, NoSubject::Unreadable),
        ] {
            let body = of(rest);
            let review = Review::read(body.as_bytes()).unwrap();
            assert_eq!(review.version, Version::V1Beta1);
            assert_eq!(review.request.subject(Endpoint::Validate).unwrap_err(), want, "{rest}");
        }
    }
}
