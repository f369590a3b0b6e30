//! The AdmissionReview on the wire: what the API server asks, and what it is answered.
//!
//! The types are our own and borrow from the body: the object is judged where it stands, and what nobody looks at is
//! skipped, not built.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod answer;
mod failed;
mod words;

use std::borrow::Cow;

pub use answer::{Answer, Decision, Outcome, answer};
pub use failed::{Envelope, INTERNAL, Spared};

use crate::json::{self, Reader};
use crate::policy::{StatusWrite, Subject};
use crate::resources::Object;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Repair; never deny.
    Mutate,
    /// Deny or warn about what will be stored; never repair.
    Validate,
    /// Deny or warn about a write to a status, of which the answer must be had before the client's own resourceVersion is lost;
    /// never repair.
    Status,
}

impl Endpoint {
    /// As metrics and logs spell it.
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
    /// It is not text.
    #[error("the body is not an AdmissionReview: it is not UTF-8 text")]
    NotText(#[from] std::str::Utf8Error),
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
    /// Nobody knows what is to be done to the object.
    #[error("the AdmissionReview is about the operation `{0}`, which is none")]
    Operation(String),
}

/// A review that was read.
#[derive(Debug)]
pub struct Review<'a> {
    version: Version,
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
    object: Carried<'a>,
    old: Carried<'a>,
    /// The text of both, for those who judge objects of any kind.
    texts: [Option<&'a str>; 2],
}

/// An object as it came.
#[derive(Debug, Default)]
enum Carried<'a> {
    /// There is none, or what is there is none.
    #[default]
    Unreadable,
    /// One of a kind that no rule looks at.
    OtherKind,
    /// One of ours.
    Object(Box<Object<'a>>),
}

impl<'a> Carried<'a> {
    /// What comes next, and its text.
    fn read(reader: &mut Reader<'a>) -> Result<(Self, Option<&'a str>), json::Error> {
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
struct Parts<'a> {
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
    object: Carried<'a>,
    old: Carried<'a>,
    texts: [Option<&'a str>; 2],
}

impl<'a> Parts<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, json::Error> {
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
                "object" => (parts.object, parts.texts[0]) = Carried::read(reader)?,
                "oldObject" => (parts.old, parts.texts[1]) = Carried::read(reader)?,
                "dryRun" => parts.is_dry_run = reader.skip()? == "true",
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Some(parts))
    }
}

/// Some strings of an object; empty where they are none.
fn texts<'a, const N: usize>(reader: &mut Reader<'a>, keys: [&str; N]) -> Result<[Cow<'a, str>; N], json::Error> {
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

impl<'a> Review<'a> {
    /// Reads a body, once from its beginning to its end.
    pub fn read(body: &'a [u8]) -> Result<Self, ReviewError> {
        let (mut api_version, mut kind, mut request) = (Cow::default(), Cow::default(), None);
        Reader::whole(std::str::from_utf8(body)?, |reader| {
            reader.members(|reader, key, _| {
                match key.as_ref() {
                    "apiVersion" => api_version = reader.text()?.unwrap_or_default(),
                    "kind" => kind = reader.text()?.unwrap_or_default(),
                    "request" => request = Parts::read(reader)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        let version = match (kind.as_ref(), api_version.as_ref()) {
            ("AdmissionReview", "admission.k8s.io/v1") => Version::V1,
            ("AdmissionReview", "admission.k8s.io/v1beta1") => Version::V1Beta1,
            _ => return Err(ReviewError::OtherKind { api_version: short(&api_version), kind: short(&kind) }),
        };
        let parts = request.filter(|request| !request.uid.is_empty()).ok_or(ReviewError::NoRequest)?;
        let operation = Operation::parse(&parts.operation);
        let operation = operation.ok_or_else(|| ReviewError::Operation(short(&parts.operation)))?;
        let Parts { uid, group, kind, name, namespace, user, is_dry_run, object, old, texts, .. } = parts;
        let Parts { user_info, resource_group, resource, sub_resource, manager, .. } = parts;
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
    /// What there is to judge. Deletions, parts of an object such as its status, and kinds that are not ours are none of our
    /// business; an object that cannot be read is said to be so.
    pub fn subject(&self, endpoint: Endpoint) -> Result<Subject<'_>, NoSubject> {
        if matches!(self.operation, Operation::Delete | Operation::Connect) || !self.sub_resource.is_empty() {
            return Err(NoSubject::NotJudged);
        }
        let object = match &self.object {
            Carried::Object(object) => object,
            Carried::OtherKind => return Err(NoSubject::OtherKind),
            Carried::Unreadable => return Err(NoSubject::Unreadable),
        };
        let old = match &self.old {
            Carried::Object(old) => Some(&**old),
            _ => None,
        };
        Ok(Subject { object, old, writer: Some(&self.user), is_final: endpoint == Endpoint::Validate })
    }
}

impl Request<'_> {
    /// The write to a status that there is to judge.
    pub fn status_write(&self) -> Result<StatusWrite<'_>, NoSubject> {
        if self.operation != Operation::Update || self.sub_resource != "status" {
            return Err(NoSubject::NotJudged);
        }
        let [Some(object), Some(old)] = self.texts else { return Err(NoSubject::Unreadable) };
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
        assert_eq!((request.uid.as_ref(), request.operation, request.is_dry_run), ("u-1", Operation::Create, false));
        let subject = request.subject(Endpoint::Mutate).unwrap();
        assert_eq!(subject.writer, Some("jane"));
        let info: serde_json::Value = serde_json::from_str(request.user_info).unwrap();
        assert_eq!(info, serde_json::json!({ "username": "jane", "groups": ["a"], "extra": { "x": ["y"] } }));
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
