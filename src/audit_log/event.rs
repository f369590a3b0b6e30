//! One audit event, borrowed from its line, with only the needed fields.
//!
//! The API server writes the fields in a fixed order: small ones that decide whether an event matters come first, objects last.
//! So most lines are skipped after a few hundred bytes; nothing else depends on the order.

use std::borrow::Cow;

use crate::audit_log::LogScope;
use crate::json::{Error, JsonReader, Problem};

/// A write that was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditEvent<'a> {
    /// The verb.
    pub verb: WriteVerb,
    /// The request URI with its query.
    pub uri: Cow<'a, str>,
    /// The user; the impersonated one, if any.
    pub user: Cow<'a, str>,
    /// The user agent.
    pub agent: Cow<'a, str>,
    /// The object.
    pub object: ObjectRef<'a>,
    /// The response code.
    pub code: u16,
    /// Who rejected it, derived from the response message.
    pub denied_by: DeniedBy,
    /// What the client sent.
    pub body: RequestBody<'a>,
    /// The resourceVersion of the object in the response; only at level RequestResponse.
    pub stored: Option<Cow<'a, str>>,
    /// Whether nadmit compared the client's precondition and would have denied a mismatch.
    pub is_guarded: bool,
    /// When the request came, in microseconds since 1970.
    pub received: i64,
    /// When it was answered.
    pub completed: i64,
}

/// The write verbs. Deletion overwrites nothing and is not one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteVerb {
    /// POST
    #[default]
    Create,
    /// PUT
    Update,
    /// PATCH of any kind, server-side apply among them
    Patch,
}

/// Who rejected a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeniedBy {
    /// An admission webhook.
    Webhook,
    /// An apply conflict with other field managers.
    Ownership,
    /// Another reason, or not rejected.
    #[default]
    Other,
}

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectRef<'a> {
    /// The API group; empty for the core.
    pub group: Cow<'a, str>,
    /// The resource, in the plural.
    pub resource: Cow<'a, str>,
    /// The subresource such as `status`; often empty.
    pub subresource: Cow<'a, str>,
    /// The namespace; empty where there is none.
    pub namespace: Cow<'a, str>,
    /// The name.
    pub name: Cow<'a, str>,
    /// The resourceVersion that a PUT stated; the server puts it here at every level.
    pub version: Option<Cow<'a, str>>,
}

/// The logged request body.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RequestBody<'a> {
    /// Not logged: the level is too low.
    #[default]
    Unknown,
    /// An object: complete, or the content of a merge patch or apply.
    Object {
        /// `metadata.resourceVersion`, unless it is empty.
        version: Option<Cow<'a, str>>,
        /// Whether it has apiVersion and kind, as an apply must.
        names_kind: bool,
    },
    /// The operations of a JSON patch.
    Operations {
        /// The resourceVersion that is tested, or put in for the server to compare.
        version: Option<Cow<'a, str>>,
        /// Whether another value is tested.
        tests: bool,
    },
}

impl<'a> AuditEvent<'a> {
    /// Parses a line; `None` if it is not a completed write in scope. Parsing stops as soon as that is known.
    pub fn read(line: &'a str, scope: &LogScope) -> Result<Option<Self>, Error> {
        let mut reader = JsonReader::new(line);
        let event = Self::next(&mut reader, scope)?;
        match event.is_some() && reader.at() != line.len() {
            true => Err(Error { offset: reader.at(), problem: Problem::Trailing }),
            false => Ok(event),
        }
    }

    fn next(reader: &mut JsonReader<'a>, scope: &LogScope) -> Result<Option<Self>, Error> {
        let mut event = Self::default();
        let (mut has_verb, mut has_stage, mut has_object) = (false, false, false);
        let is_whole = reader.members_while(|reader, key| {
            match key {
                // A request in progress is logged again when it completes.
                "stage" => {
                    has_stage = true;
                    return Ok(matches!(reader.text()?.as_deref(), Some("ResponseComplete" | "Panic")));
                }
                "verb" => {
                    has_verb = true;
                    event.verb = match reader.text()?.as_deref() {
                        Some("create") => WriteVerb::Create,
                        Some("update") => WriteVerb::Update,
                        Some("patch") => WriteVerb::Patch,
                        _ => return Ok(false),
                    };
                }
                "requestURI" => event.uri = reader.text()?.unwrap_or_default(),
                "user" if event.user.is_empty() => event.user = user(reader)?,
                "impersonatedUser" => event.user = user(reader)?,
                "userAgent" => event.agent = reader.text()?.unwrap_or_default(),
                "objectRef" => {
                    event.object = ObjectRef::next(reader)?;
                    has_object = true;
                    return Ok(scope.covers(&event.object));
                }
                "responseStatus" => (event.code, event.denied_by) = answer(reader)?,
                "requestObject" => event.body = RequestBody::next(reader)?,
                "responseObject" => event.stored = ObjectHead::next(reader)?.version,
                "annotations" => event.is_guarded = is_guarded(reader)?,
                "requestReceivedTimestamp" => event.received = time(reader)?,
                "stageTimestamp" => event.completed = time(reader)?,
                _ => drop(reader.skip()?),
            }
            Ok(true)
        })?;
        Ok((is_whole && has_verb && has_stage && has_object).then_some(event))
    }

    /// An owned copy.
    pub fn into_owned(self) -> AuditEvent<'static> {
        AuditEvent {
            verb: self.verb,
            uri: owned(self.uri),
            user: owned(self.user),
            agent: owned(self.agent),
            object: self.object.into_owned(),
            code: self.code,
            denied_by: self.denied_by,
            body: self.body.into_owned(),
            stored: self.stored.map(owned),
            is_guarded: self.is_guarded,
            received: self.received,
            completed: self.completed,
        }
    }

    /// The resourceVersion that the client stated.
    pub fn stated(&self) -> Option<&str> {
        match &self.body {
            RequestBody::Object { version: Some(version), .. }
            | RequestBody::Operations { version: Some(version), .. } => Some(version),
            _ => self.object.version.as_deref(),
        }
    }

    /// A query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.uri.split_once('?')?;
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .find(|(key, _)| *key == name)
            .map(|(_, v)| v)
    }
}

impl<'a> ObjectRef<'a> {
    fn into_owned(self) -> ObjectRef<'static> {
        ObjectRef {
            group: owned(self.group),
            resource: owned(self.resource),
            subresource: owned(self.subresource),
            namespace: owned(self.namespace),
            name: owned(self.name),
            version: self.version.map(owned),
        }
    }

    fn next(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut object = Self::default();
        if_object(reader, |reader, key| {
            let text = reader.text()?;
            match key {
                "apiGroup" => object.group = text.unwrap_or_default(),
                "resource" => object.resource = text.unwrap_or_default(),
                "subresource" => object.subresource = text.unwrap_or_default(),
                "namespace" => object.namespace = text.unwrap_or_default(),
                "name" => object.name = text.unwrap_or_default(),
                "resourceVersion" => object.version = stated(text),
                _ => {}
            }
            Ok(())
        })?;
        Ok(object)
    }
}

impl<'a> RequestBody<'a> {
    fn into_owned(self) -> RequestBody<'static> {
        match self {
            Self::Unknown => RequestBody::Unknown,
            Self::Object { version, names_kind } => RequestBody::Object { version: version.map(owned), names_kind },
            Self::Operations { version, tests } => RequestBody::Operations { version: version.map(owned), tests },
        }
    }

    fn next(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        match reader.peek() {
            Some(b'{') => {
                let head = ObjectHead::next(reader)?;
                Ok(Self::Object { version: head.version, names_kind: head.has_api_version && head.has_kind })
            }
            Some(b'[') => {
                let (mut version, mut tests) = (None, false);
                reader.elements(|reader| operation(reader, &mut version, &mut tests))?;
                Ok(Self::Operations { version, tests })
            }
            _ => reader.skip().map(|_| Self::Unknown),
        }
    }
}

/// One operation of a JSON patch: does it test something, or put a resourceVersion in?
fn operation<'a>(
    reader: &mut JsonReader<'a>,
    version: &mut Option<Cow<'a, str>>,
    tests: &mut bool,
) -> Result<(), Error> {
    let (mut op, mut path, mut value) = (Cow::default(), Cow::default(), "");
    if_object(reader, |reader, key| {
        match key {
            "op" => op = reader.text()?.unwrap_or_default(),
            "path" => path = reader.text()?.unwrap_or_default(),
            "value" => value = reader.skip()?,
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    let found = match path.as_ref() {
        "/metadata/resourceVersion" => stated(JsonReader::new(value).text().ok().flatten()),
        "/metadata" => VersionOnly::next(&mut JsonReader::new(value)).ok().and_then(|metadata| metadata.version),
        "" => ObjectHead::next(&mut JsonReader::new(value)).ok().and_then(|head| head.version),
        _ => None,
    };
    match op.as_ref() {
        "test" | "add" | "replace" if found.is_some() => *version = found,
        "test" => *tests = true,
        // A version copied from elsewhere in the object is compared too, but its value is unknown.
        "copy" | "move" if path.starts_with("/metadata") => *tests = true,
        _ => {}
    }
    Ok(())
}

/// The needed fields of an object.
#[derive(Default)]
struct ObjectHead<'a> {
    has_api_version: bool,
    has_kind: bool,
    version: Option<Cow<'a, str>>,
}

impl<'a> ObjectHead<'a> {
    fn next(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut head = Self::default();
        if_object(reader, |reader, key| {
            match key {
                "metadata" => head.version = VersionOnly::next(reader)?.version,
                "apiVersion" => head.has_api_version = reader.text()?.is_some(),
                "kind" => head.has_kind = reader.text()?.is_some(),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(head)
    }
}

struct VersionOnly<'a> {
    version: Option<Cow<'a, str>>,
}

impl<'a> VersionOnly<'a> {
    fn next(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut version = None;
        if_object(reader, |reader, key| {
            match key {
                "resourceVersion" => version = stated(reader.text()?),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Self { version })
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// An empty resourceVersion states nothing.
fn stated(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

fn user<'a>(reader: &mut JsonReader<'a>) -> Result<Cow<'a, str>, Error> {
    let mut name = Cow::default();
    if_object(reader, |reader, key| {
        match key {
            "username" => name = reader.text()?.unwrap_or_default(),
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    Ok(name)
}

/// Whether nadmit's status webhook compared the client's precondition and would have denied a mismatch. In audit mode it denies
/// nothing: a write that it classified as guarded may then be stale nevertheless.
fn is_guarded(reader: &mut JsonReader<'_>) -> Result<bool, Error> {
    let (mut is_shown, mut is_enforced) = (false, false);
    if_object(reader, |reader, key| {
        match key {
            "status.nadmit.io/class" => is_shown = reader.text()?.as_deref() == Some("guarded"),
            "status.nadmit.io/mode" => is_enforced = reader.text()?.as_deref() == Some("enforce"),
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    Ok(is_shown && is_enforced)
}

/// The response code, and who rejected.
fn answer(reader: &mut JsonReader<'_>) -> Result<(u16, DeniedBy), Error> {
    let (mut code, mut denied_by) = (0, DeniedBy::Other);
    if_object(reader, |reader, key| {
        match key {
            "code" => code = reader.skip()?.parse().unwrap_or_default(),
            "message" => {
                denied_by = match reader.text()? {
                    Some(text) if text.starts_with("admission webhook ") => DeniedBy::Webhook,
                    Some(text) if text.starts_with("Apply failed with ") => DeniedBy::Ownership,
                    _ => DeniedBy::Other,
                }
            }
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    Ok((code, denied_by))
}

/// A timestamp in microseconds; zero if invalid.
fn time(reader: &mut JsonReader<'_>) -> Result<i64, Error> {
    let text = reader.text()?.unwrap_or_default();
    Ok(text.parse().map_or(0, jiff::Timestamp::as_microsecond))
}

/// The members of what comes next, if it is an object.
fn if_object<'a>(
    reader: &mut JsonReader<'a>,
    mut each: impl FnMut(&mut JsonReader<'a>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    match reader.peek() {
        Some(b'{') => reader.members(|reader, key, _| each(reader, &key)),
        _ => reader.skip().map(drop),
    }
}
