//! The structs that nadmit mirrors, the values that nadmit reads into them, and a common notation to compare both.

use nadmit::cni::schema::{Field, INT, Reading, Type, UINT32, field, find, first_error, table};
use nadmit::cni::{fold, readers as tables};
use nadmit::json::{Document, Kind, Value as Node, integer_of_float};
use serde_json::{Value, json};

use crate::decoder::Decoded;

/// A struct that a program decodes a config into.
pub struct GoReader {
    pub name: String,
    pub number: usize,
    pub holds: Type,
    pub reading: Reading,
}

/// Every struct that nadmit mirrors.
pub fn readers() -> Vec<GoReader> {
    let common = || tables::COMMON.iter();
    let mut readers = vec![
        ("the config as Multus reads it".to_owned(), fields(common()), Reading::Text),
        ("the list as Multus reads it".to_owned(), fields(common().chain(tables::LIST.iter())), Reading::Text),
        ("an unknown plugin".to_owned(), fields(common()), Reading::Copy),
    ];
    for (name, own) in tables::KNOWN {
        // A key of the plugin itself replaces a common key of the same name.
        let others = common().filter(|field| own.iter().all(|known| known.key != field.key));
        readers.push(((*name).to_owned(), fields(own.iter().chain(others)), Reading::Copy));
    }
    for (name, ..) in tables::IPAM {
        let section = field("ipam", *tables::ipam_type(name));
        readers.push(((*name).to_owned(), vec![section, field("name", Type::Str)], Reading::Copy));
    }
    let readers = readers.into_iter().enumerate();
    readers
        .map(|(number, (name, fields, reading))| {
            let fields = Box::leak(Box::new(table(fields.leak())));
            GoReader { name, number, holds: Type::Object(fields), reading }
        })
        .collect()
}

fn fields<'f>(from: impl Iterator<Item = &'f Field>) -> Vec<Field> {
    from.map(|known| field(known.key, known.holds)).collect()
}

/// The description of a type for the Go program.
pub fn describe(holds: &Type) -> Value {
    let kind = |kind: &str| json!({"kind": kind});
    let of = |kind: &str, inner: &Type| json!({"kind": kind, "of": describe(inner)});
    match holds {
        Type::Any => kind("any"),
        Type::Str => kind("string"),
        Type::Bool => kind("bool"),
        Type::Int(0, max) if *max == int_bounds(&UINT32).1 => kind("uint32"),
        Type::Int(0, _) => kind("uint"),
        Type::Int(min, max) if (*min, *max) == int_bounds(&INT) => kind("int"),
        Type::Int(..) => panic!("{holds:?} is not a Go type"),
        Type::Text => kind("text"),
        Type::Network => kind("network"),
        Type::List(inner) => of("list", inner),
        Type::Map(inner) => of("map", inner),
        Type::Pointer(inner) => of("pointer", inner),
        Type::Fresh(inner) => of("fresh", inner),
        Type::Object(fields) => {
            let fields = fields.iter().map(|field| json!({"key": field.key, "type": describe(&field.holds)}));
            json!({"kind": "object", "fields": fields.collect::<Value>()})
        }
    }
}

fn int_bounds(holds: &Type) -> (i128, i128) {
    if let Type::Int(min, max) = holds { (*min, *max) } else { (0, 0) }
}

impl GoReader {
    /// A config as nadmit reads it.
    pub fn read(&self, config: &str) -> Decoded {
        let document = match Document::parse(config) {
            Ok(document) => document,
            Err(error) => return Decoded::Error(error.to_string()),
        };
        let (Type::Object(fields), Some(members)) = (&self.holds, document.root.members()) else {
            panic!("{config} is not an object");
        };
        if let Some(misfit) = first_error(&[fields], members, self.reading) {
            return Decoded::Error(format!("{:?} should be {}", misfit.value.kind, misfit.expected));
        }
        let folded = show(&self.holds, Some(&fold::object(&[fields], &document.root, self.reading)));
        if !fold::repeats(&document.root) {
            let plain = show(&self.holds, Some(&document.root));
            assert_eq!(plain, folded, "without repeated keys there is nothing to fold: {config}");
        }
        Decoded::Value(folded)
    }
}

/// A value in the notation of the Go program.
fn show(holds: &Type, value: Option<&Node<'_>>) -> Value {
    let value = value.filter(|value| !value.is_null());
    match (holds, value.map(|value| &value.kind)) {
        (Type::Object(fields), kind) => {
            let members = if let Some(Kind::Object(members)) = kind { members.as_slice() } else { &[] };
            let mut object: serde_json::Map<_, _> =
                fields.iter().map(|field| (field.key.to_owned(), show(&field.holds, None))).collect();
            for member in members {
                if let Some(found) = find(&[fields], member) {
                    object.insert(found.field.key.to_owned(), show(&found.field.holds, Some(&member.value)));
                }
            }
            Value::Object(object)
        }
        (Type::Fresh(of), _) => show(of, value),
        (Type::Pointer(to), Some(_)) => show(to, value),
        (Type::Str | Type::Network, Some(Kind::String(text))) => json!(text),
        (Type::Str | Type::Network, _) => json!(""),
        (Type::Text, Some(Kind::String(text))) if !text.is_empty() => json!(text),
        (Type::Bool, kind) => json!(kind == Some(&Kind::Bool(true))),
        (Type::Int(..), Some(Kind::Number(text))) => {
            json!(integer_of_float(text.parse().unwrap()).unwrap().to_string())
        }
        (Type::Int(..), _) => json!("0"),
        (Type::List(of), Some(Kind::Array(elements))) => {
            elements.iter().map(|element| show(of, Some(element))).collect()
        }
        (Type::Map(of), Some(Kind::Object(members))) => {
            let entries = members.iter().map(|member| (member.key.to_string(), show(of, Some(&member.value))));
            Value::Object(entries.collect())
        }
        (Type::Any, Some(_)) => any(value.unwrap()),
        _ => Value::Null,
    }
}

fn any(value: &Node<'_>) -> Value {
    match &value.kind {
        Kind::Null => Value::Null,
        Kind::Bool(flag) => json!(flag),
        Kind::Number(text) => json!(format!("float {:016x}", text.parse::<f64>().unwrap().to_bits())),
        Kind::String(text) => json!(text),
        Kind::Array(elements) => elements.iter().map(any).collect(),
        // The last of equal keys counts.
        Kind::Object(members) => members.iter().map(|member| (member.key.to_string(), any(&member.value))).collect(),
    }
}
