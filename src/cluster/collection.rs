//! Lists and watches as the API server writes them, taken apart without looking into the objects: whatever one of them holds, it
//! cannot spoil the others.

use std::borrow::Cow;

use super::Failed;
use crate::json::Reader;
use crate::resources::raw::Fields;

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The texts of its objects.
    pub(super) objects: Vec<&'a str>,
    /// What to ask for the next page with; empty on the last.
    pub(super) next: Cow<'a, str>,
    /// The state that the list shows, from which a watch goes on.
    pub(super) version: Cow<'a, str>,
}

impl<'a> Page<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, Failed> {
        let list = Fields::parse(text).map_err(|_| Failed::Unexpected)?;
        let meta = members(&list, "metadata").ok_or(Failed::Unexpected)?;
        let version = meta.text("resourceVersion").value().ok_or(Failed::Unexpected)?;
        let mut objects = Vec::new();
        // An empty list may be written as null.
        if let Some(items) = list.raw("items") {
            let each = |reader: &mut Reader<'a>| {
                objects.push(reader.skip()?);
                Ok(())
            };
            Reader::whole(items, |reader| reader.elements(each)).map_err(|_| Failed::Unexpected)?;
        }
        Ok(Self { objects, next: meta.text("continue").value().unwrap_or_default(), version })
    }
}

/// One line of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum Event<'a> {
    /// The text of an object that is new or has changed.
    There(&'a str),
    /// The text of an object as it was last.
    Gone(&'a str),
    /// Nothing has changed up to the version of this.
    Bookmark(&'a str),
    /// The watch cannot go on; the most frequent reason is that its start is too long ago.
    Ended(i64),
}

impl<'a> Event<'a> {
    pub(super) fn read(line: &'a str) -> Result<Self, Failed> {
        let event = Fields::parse(line).map_err(|_| Failed::Unexpected)?;
        let object = event.raw("object").ok_or(Failed::Unexpected)?;
        let kind = event.text("type").value().unwrap_or_default();
        match kind.as_ref() {
            "ADDED" | "MODIFIED" => Ok(Self::There(object)),
            "DELETED" => Ok(Self::Gone(object)),
            "BOOKMARK" => Ok(Self::Bookmark(object)),
            "ERROR" => {
                let status = Fields::parse(object).unwrap_or_default();
                Ok(Self::Ended(status.integer("code").value().unwrap_or_default()))
            }
            _ => Err(Failed::Unexpected),
        }
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id<'a> {
    /// Empty for what is in no namespace.
    pub(super) namespace: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
}

impl<'a> Id<'a> {
    /// `None` for an object that has no name, or is none.
    pub(super) fn of(object: &'a str) -> Option<Self> {
        let meta = members(&Fields::parse(object).ok()?, "metadata")?;
        let name = meta.text("name").value()?;
        Some(Self { namespace: meta.text("namespace").value().unwrap_or_default(), name })
    }

    /// The same for the object that a line of a watch is about.
    pub(super) fn of_event(line: &'a str) -> Option<Self> {
        Self::of(Fields::parse(line).ok()?.raw("object")?)
    }

    /// Both in one text, as the key of a map.
    pub(super) fn key(&self) -> Box<str> {
        key(&self.namespace, &self.name)
    }
}

/// A namespace and a name in one text. Neither can have a slash.
pub(super) fn key(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into_boxed_str()
}

/// The resourceVersion of an object.
pub(super) fn version(object: &str) -> Option<String> {
    let meta = members(&Fields::parse(object).ok()?, "metadata")?;
    meta.text("resourceVersion").value().map(Cow::into_owned)
}

/// The members of the object that a field holds.
pub(super) fn members<'a>(of: &Fields<'a>, field: &str) -> Option<Fields<'a>> {
    Fields::parse(of.raw(field)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart_whatever_is_in_it() {
        let text = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":3},
            "items":[{"metadata":{"name":"a"}},5,null,{"metadata":[]},{"metadata":{"name":"b","namespace":"s"},"spec":{"x":[[[]]]}}]}"#;
        let page = Page::read(text).unwrap();
        assert_eq!((page.objects.len(), page.next.as_ref(), page.version.as_ref()), (5, "next", "7"));
        let ids: Vec<_> = page.objects.iter().map(|object| Id::of(object).map(|id| id.key().into_string())).collect();
        assert_eq!(ids, [Some("/a".to_owned()), None, None, None, Some("s/b".to_owned())]);
        for empty in [r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, r#"{"metadata":{"resourceVersion":"7"}}"#]
        {
            let page = Page::read(empty).unwrap();
            assert!(page.objects.is_empty() && page.next.is_empty());
        }
        for bad in ["", "[]", "{}", r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"7"},"items":{}}"#] {
            assert!(Page::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_tells_what_happened() {
        let object = r#"{"metadata":{"name":"a","resourceVersion":"8"}}"#;
        let line = |kind: &str| format!(r#"{{"type":"{kind}","object":{object}}}"#);
        for (kind, want) in [
            ("ADDED", Event::There(object)),
            ("MODIFIED", Event::There(object)),
            ("DELETED", Event::Gone(object)),
            ("BOOKMARK", Event::Bookmark(object)),
        ] {
            assert_eq!(Event::read(&line(kind)).unwrap(), want);
        }
        assert_eq!(version(object).as_deref(), Some("8"));
        assert_eq!(version("{}"), None);
        let ended = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert_eq!(Event::read(ended).unwrap(), Event::Ended(410));
        assert_eq!(Event::read(r#"{"type":"ERROR","object":{}}"#).unwrap(), Event::Ended(0));
        for bad in ["", r#"{"type":"ADDED"}"#, r#"{"type":"NEWS","object":{}}"#, r#"{"type":"ADDED","object":{"#] {
            assert!(Event::read(bad).is_err(), "{bad}");
        }
    }
}
