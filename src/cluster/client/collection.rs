//! Lists and watch events, split without parsing the objects, so that one object cannot break the others.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::cluster::client::ApiError;
use crate::json::JsonReader;
use crate::resources::raw::RawFields;
use crate::resources::{Object, ObjectKey};

/// One page of a list.
#[derive(Debug)]
pub(in crate::cluster) struct ListPage<'a> {
    /// The texts of its objects.
    pub(in crate::cluster) objects: Vec<&'a str>,
    /// The continue token; empty on the last page.
    pub(in crate::cluster) next: Cow<'a, str>,
    /// The resourceVersion of the list, from which a watch continues.
    pub(in crate::cluster) version: Cow<'a, str>,
}

impl<'a> ListPage<'a> {
    pub(in crate::cluster) fn read(text: &'a str) -> Result<Self, ApiError> {
        let list = RawFields::parse(text).map_err(|_| ApiError::Unexpected)?;
        let meta = members(&list, "metadata").ok_or(ApiError::Unexpected)?;
        let version = meta.text("resourceVersion").value().ok_or(ApiError::Unexpected)?;
        let mut objects = Vec::new();
        // An empty list may be written as null.
        if let Some(items) = list.raw("items") {
            let each = |reader: &mut JsonReader<'a>| {
                objects.push(reader.skip()?);
                Ok(())
            };
            JsonReader::whole(items, |reader| reader.elements(each)).map_err(|_| ApiError::Unexpected)?;
        }
        Ok(Self { objects, next: meta.text("continue").value().unwrap_or_default(), version })
    }
}

/// An object as the API server sent it, parsed once for everyone who reads it.
#[derive(Debug)]
pub struct ApiObject<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its members, and those of its metadata.
    pub(in crate::cluster) fields: RawFields<'a>,
    pub(in crate::cluster) meta: RawFields<'a>,
    typed: OnceCell<Option<Object<'a>>>,
}

impl<'a> ApiObject<'a> {
    /// `None` for an object without a name, or invalid JSON.
    pub(in crate::cluster) fn read(text: &'a str) -> Option<Self> {
        Self::of(text, RawFields::parse(text).ok()?)
    }

    fn of(text: &'a str, fields: RawFields<'a>) -> Option<Self> {
        let meta = members(&fields, "metadata")?;
        let name = meta.text("name").value()?;
        let key = ObjectKey::new(&meta.text("namespace").value().unwrap_or_default(), &name);
        Some(Self { text, key, fields, meta, typed: OnceCell::new() })
    }

    /// The object, if it is of a kind that nadmit judges.
    pub(in crate::cluster) fn typed(&self) -> Option<&Object<'a>> {
        self.typed.get_or_init(|| Object::read(self.text).ok().flatten()).as_ref()
    }

    /// Its resourceVersion.
    pub(in crate::cluster) fn version(&self) -> Option<Cow<'a, str>> {
        self.meta.text("resourceVersion").value()
    }
}

/// One line of a watch. The object of a change is `None` if it has no name.
#[derive(Debug)]
pub(in crate::cluster) enum WatchEvent<'a> {
    /// An added or modified object.
    Applied(Option<ApiObject<'a>>),
    /// A deleted object, as it was last.
    Deleted(Option<ApiObject<'a>>),
    /// A bookmark, with its resourceVersion.
    Bookmark(Option<Cow<'a, str>>),
    /// An error; usually the resourceVersion has expired (410).
    Ended(i64),
}

impl<'a> WatchEvent<'a> {
    pub(in crate::cluster) fn read(line: &'a str) -> Result<Self, ApiError> {
        let (mut kind, mut object) = (Cow::default(), None);
        let read = JsonReader::whole(line, |reader| {
            reader.members(|reader, key, _| {
                match key.as_ref() {
                    "type" => kind = reader.text()?.unwrap_or_default(),
                    "object" => {
                        let start = reader.at();
                        let fields = RawFields::read_object(reader)?;
                        object = Some((reader.text_from(start), fields));
                    }
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        });
        read.map_err(|_| ApiError::Unexpected)?;
        let (text, fields) = object.ok_or(ApiError::Unexpected)?;
        let fields = fields.unwrap_or_default();
        match kind.as_ref() {
            "ADDED" | "MODIFIED" => Ok(Self::Applied(ApiObject::of(text, fields))),
            "DELETED" => Ok(Self::Deleted(ApiObject::of(text, fields))),
            "BOOKMARK" => {
                Ok(Self::Bookmark(members(&fields, "metadata").and_then(|meta| meta.text("resourceVersion").value())))
            }
            "ERROR" => Ok(Self::Ended(fields.integer("code").value().unwrap_or_default())),
            _ => Err(ApiError::Unexpected),
        }
    }

    /// Which object it is about.
    pub(in crate::cluster) fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Applied(object) | Self::Deleted(object) => object.as_ref().map(|object| &object.key),
            Self::Bookmark(_) | Self::Ended(_) => None,
        }
    }
}

/// The members of the object that a field holds.
pub(in crate::cluster) fn members<'a>(of: &RawFields<'a>, field: &str) -> Option<RawFields<'a>> {
    RawFields::parse(of.raw(field)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_page_without_parsing_objects() {
        let text = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":3},
            "items":[{"metadata":{"name":"a"}},5,null,{"metadata":[]},{"metadata":{"name":"b","namespace":"s"},"spec":{"x":[[[]]]}}]}"#;
        let page = ListPage::read(text).unwrap();
        assert_eq!((page.objects.len(), page.next.as_ref(), page.version.as_ref()), (5, "next", "7"));
        let ids: Vec<_> =
            page.objects.iter().map(|object| ApiObject::read(object).map(|object| object.key.to_string())).collect();
        assert_eq!(ids, [Some("/a".to_owned()), None, None, None, Some("s/b".to_owned())]);
        for empty in [r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, r#"{"metadata":{"resourceVersion":"7"}}"#]
        {
            let page = ListPage::read(empty).unwrap();
            assert!(page.objects.is_empty() && page.next.is_empty());
        }
        for bad in ["", "[]", "{}", r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"7"},"items":{}}"#] {
            assert!(ListPage::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parses_each_watch_event_type() {
        let object = r#"{"metadata":{"name":"a","resourceVersion":"8"}}"#;
        let line = |kind: &str| format!(r#"{{"type":"{kind}","object":{object}}}"#);
        let about = |object: Option<ApiObject<'_>>| {
            let object = object.unwrap();
            (object.text.to_owned(), object.key.to_string(), object.version().unwrap().into_owned())
        };
        let want = (object.to_owned(), "/a".to_owned(), "8".to_owned());
        for kind in ["ADDED", "MODIFIED"] {
            let line = line(kind);
            let Ok(WatchEvent::Applied(found)) = WatchEvent::read(&line) else { panic!("{kind}") };
            assert_eq!(about(found), want);
        }
        let deleted = line("DELETED");
        let Ok(WatchEvent::Deleted(found)) = WatchEvent::read(&deleted) else { panic!("DELETED") };
        assert_eq!(about(found), want);
        let bookmark = line("BOOKMARK");
        assert!(matches!(WatchEvent::read(&bookmark), Ok(WatchEvent::Bookmark(Some(version))) if version == "8"));
        // One odd object does not end a watch.
        for odd in ["5", "{}", "[1]", r#"{"metadata":{}}"#] {
            let line = format!(r#"{{"object":{odd},"type":"ADDED"}}"#);
            assert!(matches!(WatchEvent::read(&line), Ok(WatchEvent::Applied(None))), "{odd}");
        }
        let ended = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(WatchEvent::read(ended), Ok(WatchEvent::Ended(410))));
        assert!(matches!(WatchEvent::read(r#"{"type":"ERROR","object":{}}"#), Ok(WatchEvent::Ended(0))));
        for bad in ["", r#"{"type":"ADDED"}"#, r#"{"type":"NEWS","object":{}}"#, r#"{"type":"ADDED","object":{"#] {
            assert!(WatchEvent::read(bad).is_err(), "{bad}");
        }
    }
}
