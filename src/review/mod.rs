//! The AdmissionReview wire format: requests and responses.
//!
//! The types are our own and borrow from the body: the object is judged in place, and unneeded parts are skipped, not built.
//! kube's `AdmissionReview`, which owns all that it reads, took twice the time for a create, and four times for a large update.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod answer;
mod fallback;
mod messages;
mod request;

use std::borrow::Cow;
use std::str::Utf8Error;

pub use answer::{AdmissionResponse, Decision, ReviewOutcome, answer};
pub use fallback::{AllowReason, INTERNAL};
pub use request::{AdmissionRequest, Operation, SkipReason};

use crate::json::{self, JsonReader};

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Repair; never deny.
    Mutate,
    /// Deny or warn about what will be stored; never repair.
    Validate,
    /// Deny or warn about a status write, before the client's own resourceVersion is lost; never repair.
    Status,
    /// Warn about a pod, or about an object that makes pods; never deny.
    Pods,
    /// Warn that pods use a NAD that is deleted; never deny.
    InUse,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mutate, Self::Validate, Self::Status, Self::Pods, Self::InUse];

    /// The name in metrics and logs, and of its path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::InUse => "in-use",
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Status => "status",
        }
    }
}

/// The version of the review, which the answer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Why a body is not a review. failurePolicy then decides.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is not text.
    #[error("the body is not an AdmissionReview: it is not UTF-8 text")]
    NotText(#[from] Utf8Error),
    /// It is not JSON.
    #[error("the body is not an AdmissionReview: byte {}: {}", .0.offset, .0)]
    Unreadable(#[from] json::Error),
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
    /// The operation is unknown.
    #[error("the AdmissionReview has the unknown operation `{0}`")]
    Operation(String),
}

/// A review that was read.
#[derive(Debug)]
pub struct Review<'a> {
    version: ReviewVersion,
    /// What is asked.
    pub request: AdmissionRequest<'a>,
}

/// The text of a body. Only the slower check says where an invalid one is wrong.
fn utf8(body: &[u8]) -> Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(body).or_else(|_| std::str::from_utf8(body))
}

impl<'a> Review<'a> {
    /// Reads a body, once from its beginning to its end.
    pub fn read(body: &'a [u8]) -> Result<Self, ReviewError> {
        let (mut api_version, mut kind, mut request) = (Cow::default(), Cow::default(), None);
        let mut operation = Cow::default();
        JsonReader::whole(utf8(body)?, |reader| {
            reader.members(|reader, key, _| {
                match key.as_ref() {
                    "apiVersion" => api_version = reader.text()?.unwrap_or_default(),
                    "kind" => kind = reader.text()?.unwrap_or_default(),
                    "request" => request = AdmissionRequest::read(reader, &mut operation)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        let version = match (kind.as_ref(), api_version.as_ref()) {
            ("AdmissionReview", "admission.k8s.io/v1") => ReviewVersion::V1,
            ("AdmissionReview", "admission.k8s.io/v1beta1") => ReviewVersion::V1Beta1,
            _ => return Err(ReviewError::OtherKind { api_version: shortened(&api_version), kind: shortened(&kind) }),
        };
        let mut request = request.filter(|request| !request.uid.is_empty()).ok_or(ReviewError::NoRequest)?;
        request.operation =
            Operation::parse(&operation).ok_or_else(|| ReviewError::Operation(shortened(&operation)))?;
        Ok(Self { version, request })
    }
}

/// As much of a text as an error repeats.
fn shortened(text: &str) -> String {
    crate::visible::at_most(text, 100).to_owned()
}

#[cfg(test)]
mod tests;
