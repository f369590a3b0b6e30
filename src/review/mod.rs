//! The AdmissionReview wire format: requests and responses.
//!
//! The types are our own and borrow from the body: the object is judged in place, and unneeded parts are skipped, not built.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod answer;
mod fallback;
mod messages;

use std::borrow::Cow;
use std::str::Utf8Error;

pub use answer::{AdmissionResponse, Decision, Outcome, answer};
pub use fallback::{AllowReason, Envelope, INTERNAL};

use crate::json::{self, JsonReader};
use crate::policy::{StatusWrite, Subject};
use crate::resources::Object;

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Repair; never deny.
    Mutate,
    /// Deny or warn about what will be stored; never repair.
    Validate,
    /// Deny or warn about a status write, before the client's own resourceVersion is lost; never repair.
    Status,
}

impl Endpoint {
    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Status => "status",
        }
    }
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// The name in metrics and logs.
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
    pub request: Request<'a>,
}

/// The request in a review.
#[derive(Debug)]
pub struct Request<'a> {
    /// Names this call; the answer repeats it.
    pub uid: Cow<'a, str>,
    /// The object's API group.
    pub group: Cow<'a, str>,
    /// The object's kind.
    pub kind: Cow<'a, str>,
    /// The object's name; empty while the server has still to generate one.
    pub name: Cow<'a, str>,
    /// The object's namespace.
    pub namespace: Cow<'a, str>,
    /// What is done to it.
    pub operation: Operation,
    /// The name the API server knows the writer by.
    pub user: Cow<'a, str>,
    /// The writer as the API server describes it, in JSON: with its groups and the rest, which few reviews need.
    pub user_info: &'a str,
    /// Whether nothing will be stored, whatever the answer.
    pub is_dry_run: bool,
    /// The API group of the resource that is written.
    resource_group: Cow<'a, str>,
    /// That resource, in the plural.
    resource: Cow<'a, str>,
    /// The part of the object that is written, `status` for one; empty for the object itself.
    sub_resource: Cow<'a, str>,
    /// The field manager, where the writer named one.
    manager: Cow<'a, str>,
    object: ReviewObject<'a>,
    old: ReviewObject<'a>,
    /// The text of both, for those who judge objects of any kind.
    texts: [Option<&'a str>; 2],
}

/// The object in a request.
#[derive(Debug, Default)]
enum ReviewObject<'a> {
    /// Absent or invalid.
    #[default]
    Unreadable,
    /// A kind without rules.
    OtherKind,
    /// A judged kind.
    Object(Box<Object<'a>>),
}

impl<'a> ReviewObject<'a> {
    /// What comes next, and its text.
    fn read(reader: &mut JsonReader<'a>) -> Result<(Self, Option<&'a str>), json::Error> {
        if reader.peek() != Some(b'{') {
            return reader.skip().map(|_| (Self::Unreadable, None));
        }
        let start = reader.at();
        let object = Object::read_next(reader)?;
        let carried = object.map_or(Self::OtherKind, |object| Self::Object(Box::new(object)));
        Ok((carried, Some(reader.text_from(start))))
    }
}

/// A request as far as it is read: any member may be missing, and the last of equal ones counts.
#[derive(Default)]
struct RequestParts<'a> {
    uid: Cow<'a, str>,
    group: Cow<'a, str>,
    kind: Cow<'a, str>,
    name: Cow<'a, str>,
    namespace: Cow<'a, str>,
    operation: Cow<'a, str>,
    user: Cow<'a, str>,
    user_info: &'a str,
    resource_group: Cow<'a, str>,
    resource: Cow<'a, str>,
    sub_resource: Cow<'a, str>,
    manager: Cow<'a, str>,
    is_dry_run: bool,
    object: ReviewObject<'a>,
    old: ReviewObject<'a>,
    texts: [Option<&'a str>; 2],
}

impl<'a> RequestParts<'a> {
    fn read(reader: &mut JsonReader<'a>) -> Result<Option<Self>, json::Error> {
        if reader.peek() != Some(b'{') {
            return reader.skip().map(|_| None);
        }
        let mut parts = Self::default();
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "uid" => parts.uid = reader.text()?.unwrap_or_default(),
                "kind" => [parts.group, parts.kind] = texts(reader, ["group", "kind"])?,
                "subResource" => parts.sub_resource = reader.text()?.unwrap_or_default(),
                "name" => parts.name = reader.text()?.unwrap_or_default(),
                "namespace" => parts.namespace = reader.text()?.unwrap_or_default(),
                "operation" => parts.operation = reader.text()?.unwrap_or_default(),
                "userInfo" => {
                    reader.peek();
                    let start = reader.at();
                    [parts.user] = texts(reader, ["username"])?;
                    parts.user_info = reader.text_from(start);
                }
                "resource" => [parts.resource_group, parts.resource] = texts(reader, ["group", "resource"])?,
                "options" => [parts.manager] = texts(reader, ["fieldManager"])?,
                "object" => (parts.object, parts.texts[0]) = ReviewObject::read(reader)?,
                "oldObject" => (parts.old, parts.texts[1]) = ReviewObject::read(reader)?,
                "dryRun" => parts.is_dry_run = reader.skip()? == "true",
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Some(parts))
    }
}

/// Some strings of an object; empty where they are none.
fn texts<'a, const N: usize>(reader: &mut JsonReader<'a>, keys: [&str; N]) -> Result<[Cow<'a, str>; N], json::Error> {
    let mut found = [const { Cow::Borrowed("") }; N];
    if reader.peek() != Some(b'{') {
        return reader.skip().map(|_| found);
    }
    reader.members(|reader, key, _| {
        match keys.iter().zip(&mut found).find(|(wanted, _)| key == **wanted) {
            Some((_, text)) => *text = reader.text()?.unwrap_or_default(),
            None => drop(reader.skip()?),
        }
        Ok(())
    })?;
    Ok(found)
}

/// The text of a body. Only the slower check says where an invalid one is wrong.
fn utf8(body: &[u8]) -> Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(body).or_else(|_| std::str::from_utf8(body))
}

impl<'a> Review<'a> {
    /// Reads a body, once from its beginning to its end.
    pub fn read(body: &'a [u8]) -> Result<Self, ReviewError> {
        let (mut api_version, mut kind, mut request) = (Cow::default(), Cow::default(), None);
        JsonReader::whole(utf8(body)?, |reader| {
            reader.members(|reader, key, _| {
                match key.as_ref() {
                    "apiVersion" => api_version = reader.text()?.unwrap_or_default(),
                    "kind" => kind = reader.text()?.unwrap_or_default(),
                    "request" => request = RequestParts::read(reader)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        let version = match (kind.as_ref(), api_version.as_ref()) {
            ("AdmissionReview", "admission.k8s.io/v1") => ReviewVersion::V1,
            ("AdmissionReview", "admission.k8s.io/v1beta1") => ReviewVersion::V1Beta1,
            _ => return Err(ReviewError::OtherKind { api_version: short(&api_version), kind: short(&kind) }),
        };
        let parts = request.filter(|request| !request.uid.is_empty()).ok_or(ReviewError::NoRequest)?;
        let operation = Operation::parse(&parts.operation);
        let operation = operation.ok_or_else(|| ReviewError::Operation(short(&parts.operation)))?;
        let RequestParts { uid, group, kind, name, namespace, user, is_dry_run, object, old, texts, .. } = parts;
        let RequestParts { user_info, resource_group, resource, sub_resource, manager, .. } = parts;
        let request = Request {
            uid,
            group,
            kind,
            name,
            namespace,
            operation,
            user,
            user_info,
            is_dry_run,
            resource_group,
            resource,
            sub_resource,
            manager,
            object,
            old,
            texts,
        };
        Ok(Self { version, request })
    }
}

/// Enough of a text that may be of any length.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

impl<'a> Request<'a> {
    /// The subject to judge. Deletions, subresources such as status, and other kinds have none; an unreadable object is an error.
    pub fn subject(&self, endpoint: Endpoint) -> Result<Subject<'_>, SkipReason> {
        if matches!(self.operation, Operation::Delete | Operation::Connect) || !self.sub_resource.is_empty() {
            return Err(SkipReason::NotJudged);
        }
        let object = match &self.object {
            ReviewObject::Object(object) => object,
            ReviewObject::OtherKind => return Err(SkipReason::OtherKind),
            ReviewObject::Unreadable => return Err(SkipReason::Unreadable),
        };
        let old = match &self.old {
            ReviewObject::Object(old) => Some(&**old),
            _ => None,
        };
        Ok(Subject { object, old, writer: Some(&self.user), is_final: endpoint == Endpoint::Validate })
    }
}

impl Request<'_> {
    /// The write to a status that there is to judge.
    pub fn status_write(&self) -> Result<StatusWrite<'_>, SkipReason> {
        if self.operation != Operation::Update || self.sub_resource != "status" {
            return Err(SkipReason::NotJudged);
        }
        let [Some(object), Some(old)] = self.texts else { return Err(SkipReason::Unreadable) };
        Ok(StatusWrite {
            group: &self.resource_group,
            resource: &self.resource,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
            user: &self.user,
            manager: &self.manager,
            object,
            old,
        })
    }
}

/// Why a request is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A deletion, or a subresource without rules.
    NotJudged,
    /// A kind without rules: the registration is too broad.
    OtherKind,
    /// The request has no valid object.
    Unreadable,
}

#[cfg(test)]
mod tests;
