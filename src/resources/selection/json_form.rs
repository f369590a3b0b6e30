//! The JSON form of the annotation: a list of objects, decoded by Go into a list of structs.

use std::ops::Range;

use super::addresses::{is_ip, is_ip_or_cidr};
use super::{ReadResult, SelectedNetwork, SelectionError};
use crate::cni::arguments::Arguments;
use crate::cni::mac::Mac;
use crate::cni::schema::{FieldTable, INT, Reading, STRINGS, Type, field, table};
use crate::cni::{CniObject, fold, same_key};
use crate::json::{Document, Error, Kind, Member, Problem, Value};

/// The keys of one element, as Multus decodes them.
pub(crate) const ELEMENT: &FieldTable = &table(&[
    field("name", Type::Str),
    field("namespace", Type::Str),
    field("ips", STRINGS),
    field("mac", Type::Str),
    field("infiniband-guid", Type::Str),
    field("interface", Type::Str),
    field("interfaceRequest", Type::Str),
    field("portMappings", Type::List(&Type::Pointer(&PORT))),
    field("bandwidth", Type::Pointer(&BANDWIDTH)),
    field("deviceID", Type::Str),
    field("cni-args", Type::Pointer(&Type::Map(&Type::Any))),
    field(ROUTE, Type::Pointer(&Type::List(&Type::Text))),
]);

const PORT: Type = Type::Object(&table(&[
    field("hostPort", INT),
    field("containerPort", INT),
    field("protocol", Type::Str),
    field("hostIP", Type::Str),
]));

const BANDWIDTH: Type = Type::Object(&table(&[
    field("ingressRate", INT),
    field("ingressBurst", INT),
    field("egressRate", INT),
    field("egressBurst", INT),
]));

const ROUTE: &str = "default-route";
/// The whole annotation.
const LIST: Type = Type::List(&Type::Pointer(&Type::Object(ELEMENT)));

const JSON_WORDS: &str = "failed to parse pod Network Attachment Selection Annotation JSON format";

pub(super) fn read(text: &str, namespace: &str) -> ReadResult {
    let document = match Document::parse(text) {
        Ok(document) => document,
        // A number of any size is fine to Go where no field takes it.
        Err(error) if error.problem.is_limit() || error.problem == Problem::HugeNumber => return Err(None),
        Err(error) => return Err(Some(no_json(text, error))),
    };
    if let Some(error) = undecodable(&document.root) {
        return Err(Some(error));
    }
    let elements = document.root.elements().unwrap_or_default();
    let networks: Result<Vec<_>, SelectionError> =
        elements.iter().map(|element| read_element(element, namespace)).collect();
    networks.map_err(Some)
}

/// A text that is not JSON.
fn no_json(text: &str, error: Error) -> SelectionError {
    let behind = text.get(error.offset..).unwrap_or_default();
    let end = error.offset + behind.chars().next().map_or(0, char::len_utf8);
    // Names in quotes between commas are the most frequent mix of both forms.
    let is_list = text.trim_start().starts_with('[');
    let help = if is_list {
        "correct the JSON: [{\"name\": \"net\"}]"
    } else {
        "write either names between commas, without quotes, or a JSON list: [{\"name\": \"net\"}]"
    };
    SelectionError {
        span: error.offset..end,
        problem: format!("the text is not JSON ({})", error.problem),
        words: JSON_WORDS,
        help: help.to_owned(),
    }
}

/// A value that Go cannot decode into its field.
fn undecodable(root: &Value<'_>) -> Option<SelectionError> {
    let wrong = |span: Range<usize>, problem: String, help: String| {
        Some(SelectionError { span, problem, words: JSON_WORDS, help })
    };
    let Some(elements) = root.elements() else {
        let problem = format!("the JSON is {}, expected a list of objects", root.describe());
        return wrong(root.span.range(), problem, "write a list: [{\"name\": \"net\"}]".to_owned());
    };
    if let Some(misfit) = LIST.misfit(root, Reading::Text) {
        let key = key_of(elements, misfit.value).map_or_else(|| "an element".to_owned(), |key| format!("`{key}`"));
        let problem = format!("{key} is {}, expected {}", misfit.value.shown(), misfit.expected);
        return wrong(misfit.value.span.range(), problem, format!("write {}", misfit.expected));
    }
    // Every spelling of the key is decoded, also where a later one replaces it.
    let routes = elements.iter().filter_map(CniObject::of).flat_map(|element| element.named(ROUTE).collect::<Vec<_>>());
    let addresses = routes.flat_map(|route| route.value.elements().unwrap_or_default());
    let bad = addresses.filter_map(|address| Some((address, address.as_str()?))).find(|(_, text)| {
        // Go decodes an empty text as no address.
        !text.is_empty() && !is_ip(text)
    });
    let (value, text) = bad?;
    wrong(
        value.span.range(),
        format!("`{ROUTE}` has {text:?}, expected an IP address"),
        "write an IP address".to_owned(),
    )
}

/// The key of the member of an element that holds a value.
fn key_of<'v>(elements: &'v [Value<'_>], value: &Value<'_>) -> Option<&'v str> {
    let is_around = |one: &Value<'_>| one.span.start <= value.span.start && value.span.end <= one.span.end;
    let element = elements.iter().find(|element| is_around(element))?;
    element.members()?.iter().find(|member| is_around(&member.value)).map(|member| member.key.as_ref())
}

fn read_element(written: &Value<'_>, namespace: &str) -> Result<SelectedNetwork, SelectionError> {
    let span = written.span.range();
    if written.is_null() {
        let (problem, help) = ("an element of the list is null".to_owned(), "remove it".to_owned());
        return Err(SelectionError { span, problem, words: "invalid memory address or nil pointer dereference", help });
    }
    let folded = fold::repeats(written).then(|| fold::object(&[ELEMENT], written, Reading::Text));
    let value = folded.as_ref().unwrap_or(written);
    let get = |key: &str| last(value.members().unwrap_or_default(), key);
    let text = |key: &str| get(key).and_then(Value::as_str).unwrap_or_default();
    check_addresses(&get)?;
    let (name, given) = (text("name"), text("namespace"));
    let interface = [text("interface"), text("interfaceRequest")].into_iter().find(|name| !name.is_empty());
    Ok(SelectedNetwork {
        namespace: if given.is_empty() { namespace } else { given }.to_owned(),
        name: name.to_owned(),
        is_qualified: !given.is_empty(),
        interface: interface.unwrap_or_default().to_owned(),
        arguments: arguments(&get),
        span,
    })
}

/// The value of a field after decoding. Of several spellings `fold` has left one.
fn last<'v, 't>(members: &'v [Member<'t>], key: &str) -> Option<&'v Value<'t>> {
    let found = members.iter().rfind(|member| same_key(&member.key, key)).map(|member| &member.value);
    found.filter(|value| !value.is_null())
}

/// What Multus checks after decoding.
fn check_addresses<'v, 't: 'v>(get: &dyn Fn(&str) -> Option<&'v Value<'t>>) -> Result<(), SelectionError> {
    let hardware = [
        ("mac", "failed to mac", "write a MAC address such as 02:00:00:00:00:01"),
        ("infiniband-guid", "failed to validate infiniband GUID", "write a GUID such as 02:00:00:00:00:00:00:01"),
    ];
    for (key, words, help) in hardware {
        let Some(value) = get(key) else { continue };
        let Some(address) = value.as_str().filter(|address| !address.is_empty()) else { continue };
        if Mac::parse(address).is_none() {
            let problem = format!("`{key}` is {address:?}, which is not a hardware address");
            return Err(SelectionError { span: value.span.range(), problem, words, help: help.to_owned() });
        }
    }
    for value in get("ips").and_then(Value::elements).unwrap_or_default() {
        // A null leaves the empty string that was there.
        let address = value.as_str().unwrap_or_default();
        if is_ip_or_cidr(address) {
            continue;
        }
        let words = if address.contains('/') { "failed to parse CIDR" } else { "failed to parse IP address" };
        let problem = format!("`ips` has {address:?}, which is not an IP address");
        let help = "write an address, or an address with its prefix length: 192.168.10.5/24".to_owned();
        return Err(SelectionError { span: value.span.range(), problem, words, help });
    }
    Ok(())
}

/// What the element asks of the plugins.
fn arguments<'v, 't: 'v>(get: &dyn Fn(&str) -> Option<&'v Value<'t>>) -> Arguments {
    let is_given = |key: &str| match get(key).map(|value| &value.kind) {
        Some(Kind::String(text)) => !text.is_empty(),
        Some(Kind::Array(elements)) => !elements.is_empty(),
        Some(Kind::Object(_)) => true,
        _ => false,
    };
    Arguments::ALL.into_iter().filter(|one| is_given(one.key())).fold(Arguments::NONE, Arguments::with)
}
