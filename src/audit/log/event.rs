//! One event of the log, borrowed from its line, with no more than is needed.
//!
//! The API server writes the fields in a fixed order in which the small ones that tell whether an event matters come first, and the
//! objects last. So most lines are left after a few hundred bytes; nothing depends on the order but that.

use std::borrow::Cow;

use super::Scope;
use crate::json::{Error, Problem, Reader};

/// A write that was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// What was asked for.
    pub verb: Verb,
    /// The address, with what stands behind the question mark.
    pub uri: Cow<'a, str>,
    /// Who asked; where somebody acts for another one, that other one.
    pub user: Cow<'a, str>,
    /// The program that asked, in its own words.
    pub agent: Cow<'a, str>,
    /// What it was about.
    pub object: ObjectRef<'a>,
    /// The HTTP code of the answer.
    pub code: u16,
    /// Why it was refused, as far as the answer's words tell.
    pub refusal: Refusal,
    /// What the client sent.
    pub body: Body<'a>,
    /// The resourceVersion of the object in the answer; only at level RequestResponse.
    pub stored: Option<Cow<'a, str>>,
    /// Whether nadmit compared what the client stated in its own way, and would have refused it.
    pub is_guarded: bool,
    /// When the request came, in microseconds since 1970.
    pub received: i64,
    /// When it was answered.
    pub completed: i64,
}

/// The verbs that write. Deleting is none: nothing is overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// POST
    #[default]
    Create,
    /// PUT
    Update,
    /// PATCH of any kind, server-side apply among them
    Patch,
}

/// Who refused a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusal {
    /// An admission webhook.
    Webhook,
    /// The managers of fields that an apply wanted.
    Ownership,
    /// Somebody else, or nobody.
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
    /// `status`, or what else there is; often empty.
    pub subresource: Cow<'a, str>,
    /// The namespace; empty where there is none.
    pub namespace: Cow<'a, str>,
    /// The name.
    pub name: Cow<'a, str>,
    /// The resourceVersion that a PUT stated; the server puts it here at every level.
    pub version: Option<Cow<'a, str>>,
}

/// What the log has of the body of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body<'a> {
    /// Nothing: the level is too low.
    #[default]
    Unknown,
    /// An object: all of it, or what a merge patch or an apply says of it.
    Object {
        /// `metadata.resourceVersion`, unless it is empty.
        version: Option<Cow<'a, str>>,
        /// Whether it says what kind it is, as an apply must.
        names_kind: bool,
    },
    /// The operations of a JSON patch.
    Operations {
        /// The resourceVersion that is tested, or put in for the server to compare.
        version: Option<Cow<'a, str>>,
        /// Whether another value than that is tested.
        tests: bool,
    },
}

impl<'a> Event<'a> {
    /// Reads a line; `None` if it is no answered write that the scope is about. What stands behind the place where that is known is not
    /// looked at.
    pub fn read(line: &'a str, scope: &Scope) -> Result<Option<Self>, Error> {
        let mut reader = Reader::new(line);
        let event = Self::next(&mut reader, scope)?;
        match event.is_some() && reader.at() != line.len() {
            true => Err(Error { offset: reader.at(), problem: Problem::Trailing }),
            false => Ok(event),
        }
    }

    fn next(reader: &mut Reader<'a>, scope: &Scope) -> Result<Option<Self>, Error> {
        let mut event = Self::default();
        let (mut has_verb, mut has_stage, mut has_object) = (false, false, false);
        let is_whole = reader.members_while(|reader, key| {
            match key {
                // What is still under way comes again when it is done.
                "stage" => {
                    has_stage = true;
                    return Ok(matches!(reader.text()?.as_deref(), Some("ResponseComplete" | "Panic")));
                }
                "verb" => {
                    has_verb = true;
                    event.verb = match reader.text()?.as_deref() {
                        Some("create") => Verb::Create,
                        Some("update") => Verb::Update,
                        Some("patch") => Verb::Patch,
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
                "responseStatus" => (event.code, event.refusal) = answer(reader)?,
                "requestObject" => event.body = Body::next(reader)?,
                "responseObject" => event.stored = Head::next(reader)?.version,
                "annotations" => event.is_guarded = is_guarded(reader)?,
                "requestReceivedTimestamp" => event.received = time(reader)?,
                "stageTimestamp" => event.completed = time(reader)?,
                _ => drop(reader.skip()?),
            }
            Ok(true)
        })?;
        Ok((is_whole && has_verb && has_stage && has_object).then_some(event))
    }

    /// The same, borrowed from nothing.
    pub fn into_owned(self) -> Event<'static> {
        Event {
            verb: self.verb,
            uri: owned(self.uri),
            user: owned(self.user),
            agent: owned(self.agent),
            object: self.object.into_owned(),
            code: self.code,
            refusal: self.refusal,
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
            Body::Object { version: Some(version), .. } | Body::Operations { version: Some(version), .. } => {
                Some(version)
            }
            _ => self.object.version.as_deref(),
        }
    }

    /// Whether the address has a parameter, and what it says.
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

    fn next(reader: &mut Reader<'a>) -> Result<Self, Error> {
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

impl<'a> Body<'a> {
    fn into_owned(self) -> Body<'static> {
        match self {
            Self::Unknown => Body::Unknown,
            Self::Object { version, names_kind } => Body::Object { version: version.map(owned), names_kind },
            Self::Operations { version, tests } => Body::Operations { version: version.map(owned), tests },
        }
    }

    fn next(reader: &mut Reader<'a>) -> Result<Self, Error> {
        match reader.peek() {
            Some(b'{') => {
                let head = Head::next(reader)?;
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
fn operation<'a>(reader: &mut Reader<'a>, version: &mut Option<Cow<'a, str>>, tests: &mut bool) -> Result<(), Error> {
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
        "/metadata/resourceVersion" => stated(Reader::new(value).text().ok().flatten()),
        "/metadata" => Metadata::next(&mut Reader::new(value)).ok().and_then(|metadata| metadata.version),
        "" => Head::next(&mut Reader::new(value)).ok().and_then(|head| head.version),
        _ => None,
    };
    match op.as_ref() {
        "test" | "add" | "replace" if found.is_some() => *version = found,
        "test" => *tests = true,
        // A version that was taken from elsewhere in the object is compared too; with what, nobody knows.
        "copy" | "move" if path.starts_with("/metadata") => *tests = true,
        _ => {}
    }
    Ok(())
}

/// What is looked at in an object.
#[derive(Default)]
struct Head<'a> {
    has_api_version: bool,
    has_kind: bool,
    version: Option<Cow<'a, str>>,
}

impl<'a> Head<'a> {
    fn next(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut head = Self::default();
        if_object(reader, |reader, key| {
            match key {
                "metadata" => head.version = Metadata::next(reader)?.version,
                "apiVersion" => head.has_api_version = reader.text()?.is_some(),
                "kind" => head.has_kind = reader.text()?.is_some(),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(head)
    }
}

struct Metadata<'a> {
    version: Option<Cow<'a, str>>,
}

impl<'a> Metadata<'a> {
    fn next(reader: &mut Reader<'a>) -> Result<Self, Error> {
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

fn user<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Error> {
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

/// Whether the status webhook of nadmit says that it was shown what the write was computed from. In audit mode it refuses nothing, and
/// what it says of a first try need not hold for the one that was stored.
fn is_guarded(reader: &mut Reader<'_>) -> Result<bool, Error> {
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

/// The code, and who refused.
fn answer(reader: &mut Reader<'_>) -> Result<(u16, Refusal), Error> {
    let (mut code, mut refusal) = (0, Refusal::Other);
    if_object(reader, |reader, key| {
        match key {
            "code" => code = reader.skip()?.parse().unwrap_or_default(),
            "message" => {
                refusal = match reader.text()? {
                    Some(text) if text.starts_with("admission webhook ") => Refusal::Webhook,
                    Some(text) if text.starts_with("Apply failed with ") => Refusal::Ownership,
                    _ => Refusal::Other,
                }
            }
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    Ok((code, refusal))
}

/// A moment in microseconds; zero if it is none.
fn time(reader: &mut Reader<'_>) -> Result<i64, Error> {
    let text = reader.text()?.unwrap_or_default();
    Ok(text.parse().map_or(0, jiff::Timestamp::as_microsecond))
}

/// The members of what comes next, if it is an object.
fn if_object<'a>(
    reader: &mut Reader<'a>,
    mut each: impl FnMut(&mut Reader<'a>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    match reader.peek() {
        Some(b'{') => reader.members(|reader, key, _| each(reader, &key)),
        _ => reader.skip().map(drop),
    }
}
