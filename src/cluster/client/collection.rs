//! Lists and watch events, split without parsing the objects, so that one object cannot break the others.

use std::borrow::Cow;

use crate::cluster::client::ApiError;
use crate::json::JsonReader;
use crate::resources::ObjectKey;
use crate::resources::raw::RawFields;

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

/// One line of a watch.
#[derive(Debug, PartialEq)]
pub(in crate::cluster) enum WatchEvent<'a> {
    /// The text of an added or modified object.
    Applied(&'a str),
    /// The last text of a deleted object.
    Deleted(&'a str),
    /// A bookmark.
    Bookmark(&'a str),
    /// An error; usually the resourceVersion has expired (410).
    Ended(i64),
}

impl<'a> WatchEvent<'a> {
    pub(in crate::cluster) fn read(line: &'a str) -> Result<Self, ApiError> {
        let event = RawFields::parse(line).map_err(|_| ApiError::Unexpected)?;
        let object = event.raw("object").ok_or(ApiError::Unexpected)?;
        let kind = event.text("type").value().unwrap_or_default();
        match kind.as_ref() {
            "ADDED" | "MODIFIED" => Ok(Self::Applied(object)),
            "DELETED" => Ok(Self::Deleted(object)),
            "BOOKMARK" => Ok(Self::Bookmark(object)),
            "ERROR" => {
                let status = RawFields::parse(object).unwrap_or_default();
                Ok(Self::Ended(status.integer("code").value().unwrap_or_default()))
            }
            _ => Err(ApiError::Unexpected),
        }
    }
}

/// The key of an object in a text; `None` for an object without a name, or invalid JSON.
pub(in crate::cluster) fn key_of(object: &str) -> Option<ObjectKey> {
    let meta = members(&RawFields::parse(object).ok()?, "metadata")?;
    let name = meta.text("name").value()?;
    Some(ObjectKey::new(&meta.text("namespace").value().unwrap_or_default(), &name))
}

/// The same for the object in a watch event.
pub(in crate::cluster) fn key_of_event(line: &str) -> Option<ObjectKey> {
    key_of(RawFields::parse(line).ok()?.raw("object")?)
}

/// The resourceVersion of an object.
pub(in crate::cluster) fn version(object: &str) -> Option<String> {
    let meta = members(&RawFields::parse(object).ok()?, "metadata")?;
    meta.text("resourceVersion").value().map(Cow::into_owned)
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
        let ids: Vec<_> = page.objects.iter().map(|object| key_of(object).map(|key| key.to_string())).collect();
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
        for (kind, want) in [
            ("ADDED", WatchEvent::Applied(object)),
            ("MODIFIED", WatchEvent::Applied(object)),
            ("DELETED", WatchEvent::Deleted(object)),
            ("BOOKMARK", WatchEvent::Bookmark(object)),
        ] {
            assert_eq!(WatchEvent::read(&line(kind)).unwrap(), want);
        }
        assert_eq!(version(object).as_deref(), Some("8"));
        assert_eq!(version("{}"), None);
        let ended = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert_eq!(WatchEvent::read(ended).unwrap(), WatchEvent::Ended(410));
        assert_eq!(WatchEvent::read(r#"{"type":"ERROR","object":{}}"#).unwrap(), WatchEvent::Ended(0));
        for bad in ["", r#"{"type":"ADDED"}"#, r#"{"type":"NEWS","object":{}}"#, r#"{"type":"ADDED","object":{"#] {
            assert!(WatchEvent::read(bad).is_err(), "{bad}");
        }
    }
}
