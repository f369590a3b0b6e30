//! The request in a review, read in place.

use std::borrow::Cow;

use super::Endpoint;
use crate::json::{self, JsonReader};
use crate::policy::{StatusWrite, Subject};
use crate::resources::Object;

/// What is done to the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's")]
pub enum Operation {
    /// None that the API has.
    #[default]
    Unknown,
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(super) fn parse(text: &str) -> Option<Self> {
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
            Self::Unknown => "unknown",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
        }
    }
}

/// The request in a review: any member may be missing, and the last of equal ones counts.
#[derive(Debug, Default)]
pub struct AdmissionRequest<'a> {
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
    pub(super) resource_group: Cow<'a, str>,
    /// That resource, in the plural.
    pub(super) resource: Cow<'a, str>,
    /// The part of the object that is written, `status` for one; empty for the object itself.
    pub(super) sub_resource: Cow<'a, str>,
    /// The field manager, where the writer named one.
    pub(super) manager: Cow<'a, str>,
    pub(super) object: ReviewObject<'a>,
    pub(super) old: ReviewObject<'a>,
    /// The text of both, for those who judge objects of any kind.
    pub(super) texts: [Option<&'a str>; 2],
}

/// The object in a request.
#[derive(Debug, Default)]
pub(super) enum ReviewObject<'a> {
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

impl<'a> AdmissionRequest<'a> {
    /// Reads a request, without its operation, whose text goes to `operation`.
    pub(super) fn read(reader: &mut JsonReader<'a>, operation: &mut Cow<'a, str>) -> Result<Option<Self>, json::Error> {
        if reader.peek() != Some(b'{') {
            return reader.skip().map(|_| None);
        }
        let mut request = Self::default();
        *operation = Cow::default();
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "uid" => request.uid = reader.text()?.unwrap_or_default(),
                "kind" => [request.group, request.kind] = texts(reader, ["group", "kind"])?,
                "subResource" => request.sub_resource = reader.text()?.unwrap_or_default(),
                "name" => request.name = reader.text()?.unwrap_or_default(),
                "namespace" => request.namespace = reader.text()?.unwrap_or_default(),
                "operation" => *operation = reader.text()?.unwrap_or_default(),
                "userInfo" => {
                    reader.peek();
                    let start = reader.at();
                    [request.user] = texts(reader, ["username"])?;
                    request.user_info = reader.text_from(start);
                }
                "resource" => [request.resource_group, request.resource] = texts(reader, ["group", "resource"])?,
                "options" => [request.manager] = texts(reader, ["fieldManager"])?,
                "object" => (request.object, request.texts[0]) = ReviewObject::read(reader)?,
                "oldObject" => (request.old, request.texts[1]) = ReviewObject::read(reader)?,
                "dryRun" => request.is_dry_run = reader.skip()? == "true",
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Some(request))
    }
}

impl AdmissionRequest<'_> {
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
        Ok(Subject { object, old, writer: Some(&self.user), is_final: endpoint != Endpoint::Mutate })
    }

    /// The object that is deleted.
    pub fn deleted(&self) -> Result<Subject<'_>, SkipReason> {
        match (&self.old, self.operation) {
            (ReviewObject::Object(object), Operation::Delete) if self.sub_resource.is_empty() => {
                Ok(Subject { object, old: None, writer: Some(&self.user), is_final: true })
            }
            (ReviewObject::OtherKind, Operation::Delete) => Err(SkipReason::OtherKind),
            _ => Err(SkipReason::NotJudged),
        }
    }

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
