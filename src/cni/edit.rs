//! Sets one member of a JSON object without changing any other byte.
//!
//! `spec.config` is text that people diff and that the operator compares byte by byte, so it is never reformatted: the new member
//! copies the separators of its neighbours.

use super::CniObject;
use crate::json::write::json_string;
use crate::json::{Document, Member, Span, Value};

/// One replacement of a range of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    /// The bytes that go; an empty range inserts.
    pub span: Span,
    /// What comes in their place.
    pub text: String,
}

/// The edit that gives `object` the string member `key`: an existing one (in any spelling a Go reader accepts) gets the new
/// value, otherwise a new member is written after `anchor`. `None` if the object has that value already.
pub fn set_string(
    document: &Document<'_>,
    object: CniObject<'_>,
    key: &str,
    value: &str,
    anchor: &Member<'_>,
) -> Option<Edit> {
    let literal = json_string(value);
    if let Some(member) = object.get(key) {
        let same = member.value.as_str() == Some(value);
        return (!same).then_some(Edit { span: member.value.span, text: literal });
    }
    let separator = separator_beside(document.text, object, anchor);
    let colon = between(document.text, anchor.key_span.end, anchor.value.span.start);
    let text = [",", separator, &json_string(key), colon, &literal].concat();
    let end = anchor.value.span.end;
    Some(Edit { span: Span { start: end, end }, text })
}

/// The edit that gives a member another value.
pub fn replace_string(member: &Member<'_>, value: &str) -> Edit {
    Edit { span: member.value.span, text: json_string(value) }
}

/// The text with the edits made. They must not overlap, but the same one may come twice; their order does not matter.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.span.start);
    sorted.dedup();
    let mut result = String::with_capacity(text.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut from = 0;
    for edit in sorted {
        let range = edit.span.range();
        result.push_str(text.get(from..range.start).unwrap_or_default());
        result.push_str(&edit.text);
        from = range.end;
    }
    result.push_str(text.get(from..).unwrap_or_default());
    result
}

/// The separator between comma and key of the member after `anchor`, else before it, else the text after the opening bracket.
fn separator_beside<'t>(text: &'t str, object: CniObject<'_>, anchor: &Member<'_>) -> &'t str {
    let index = object.members.iter().position(|member| member.key_span == anchor.key_span).unwrap_or_default();
    let gap_before = |member: &Member<'_>, previous: &Value<'_>| {
        let gap = between(text, previous.span.end, member.key_span.start);
        gap.split_once(',').map_or(gap, |(_, after)| after)
    };
    if let Some(next) = object.members.get(index + 1) {
        return gap_before(next, &anchor.value);
    }
    if let Some(previous) = index.checked_sub(1).and_then(|index| object.members.get(index)) {
        return gap_before(anchor, &previous.value);
    }
    between(text, object.value.span.start + 1, anchor.key_span.start)
}

fn between(text: &str, start: u32, end: u32) -> &str {
    text.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::Config;

    fn edited(text: &str) -> String {
        let document = Document::parse(text).unwrap();
        let config = Config::of(&document).unwrap();
        let plugin = config.plugins.first().unwrap();
        let edit = set_string(&document, plugin.written, "resourceName", "a.io/b", plugin.type_member);
        apply(text, edit.as_slice())
    }

    #[test]
    fn keeps_the_style_of_the_document() {
        for (text, want) in [
            // One line, compact.
            (r#"{"type":"sriov"}"#, r#"{"type":"sriov","resourceName":"a.io/b"}"#),
            (r#"{"type":"sriov","vlan":1}"#, r#"{"type":"sriov","resourceName":"a.io/b","vlan":1}"#),
            // One line, spaced.
            (r#"{ "type": "sriov" }"#, r#"{ "type": "sriov", "resourceName": "a.io/b" }"#),
            (r#"{"name": "n", "type" : "sriov"}"#, r#"{"name": "n", "type" : "sriov", "resourceName" : "a.io/b"}"#),
            // The operator's four spaces, tabs, Windows line ends.
            (
                "{\n    \"type\": \"sriov\",\n    \"vlan\": 0\n}",
                "{\n    \"type\": \"sriov\",\n    \"resourceName\": \"a.io/b\",\n    \"vlan\": 0\n}",
            ),
            (
                "{\n\t\"name\": \"n\",\n\t\"type\": \"sriov\"\n}\n",
                "{\n\t\"name\": \"n\",\n\t\"type\": \"sriov\",\n\t\"resourceName\": \"a.io/b\"\n}\n",
            ),
            ("{\r\n  \"type\": \"sriov\"\r\n}", "{\r\n  \"type\": \"sriov\",\r\n  \"resourceName\": \"a.io/b\"\r\n}"),
            // A comma on a line of its own, a list, unusual spelling, escapes and other alphabets.
            (
                "{\"type\": \"sriov\"\n, \"vlan\": 1}",
                "{\"type\": \"sriov\", \"resourceName\": \"a.io/b\"\n, \"vlan\": 1}",
            ),
            (
                r#"{"plugins":[{"Type":"sriov"},{"type":"tuning"}]}"#,
                r#"{"plugins":[{"Type":"sriov","resourceName":"a.io/b"},{"type":"tuning"}]}"#,
            ),
            (
                r#"{"name":"\u00e9 é","type":"s\u0072iov","x":1.50}"#,
                r#"{"name":"\u00e9 é","type":"s\u0072iov","resourceName":"a.io/b","x":1.50}"#,
            ),
            // An existing member gets the value, wherever it is; a member with this value is not changed.
            (r#"{"resourcename": "old", "type":"sriov"}"#, r#"{"resourcename": "a.io/b", "type":"sriov"}"#),
            (r#"{"resourceName":null,"type":"sriov"}"#, r#"{"resourceName":"a.io/b","type":"sriov"}"#),
            (r#"{"type":"sriov","resourceName":"a.io\/b"}"#, r#"{"type":"sriov","resourceName":"a.io\/b"}"#),
        ] {
            assert_eq!(edited(text), want, "{text}");
            assert_eq!(edited(want), want, "it converges");
        }
    }

    #[test]
    fn edits_apply_in_any_order() {
        let edit = |start, end, text: &str| Edit { span: Span { start, end }, text: text.to_owned() };
        let edits = [edit(4, 4, "!"), edit(0, 1, "X")];
        assert_eq!(apply("abcdef", &edits), "Xbcd!ef");
    }
}
