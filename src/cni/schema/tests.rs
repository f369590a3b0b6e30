use super::*;

#[test]
fn types_are_described_as_people_say_them() {
    const NUMBERS: Type = Type::List(&UINT);
    for (of, want) in [
        (Type::Any, "a value"),
        (Type::Str, "a string"),
        (Type::Bool, "true or false, without quotes"),
        (UINT, "a whole number, not negative, without quotes"),
        (INT, "a whole number, without quotes"),
        (UINT32, "a whole number from 0 to 4294967295, without quotes"),
        (STRINGS, "a list, each element a string"),
        (NUMBERS, "a list, each element a whole number, not negative, without quotes"),
        (Type::Map(&Type::Any), "an object"),
        (Type::Map(&Type::Str), "an object, each value a string"),
        (Type::Pointer(&Type::Str), "a string"),
    ] {
        assert_eq!(of.describe(), want);
    }
}

#[test]
fn errors_include_quiet_fields() {
    const FIELDS: &FieldTable =
        &table(&[field("a", Type::Str), field("b", Type::Str).quiet(), field("n", UINT), field("i", INT)]);
    let misfits = |json: &str, reading| {
        let document = crate::json::Document::parse(json).unwrap();
        let members = document.root.members().unwrap();
        let shown = |misfit: Option<Misfit<'_>>| misfit.map(|misfit| misfit.value.shown().into_owned());
        let (reported, any) = (first_misfit(&[FIELDS], members, reading), first_error(&[FIELDS], members, reading));
        (shown(reported), shown(any))
    };
    let some = |text: &str| Some(text.to_owned());
    for (json, text, copy) in [
        (r#"{"a":"x","b":"y"}"#, (None, None), (None, None)),
        (r#"{"b":1}"#, (None, some("1")), (None, some("1"))),
        (r#"{"b":1,"a":2}"#, (some("2"), some("1")), (some("2"), some("2"))),
        // Of exact duplicates the copy has only the last.
        (r#"{"a":1,"a":"x"}"#, (some("1"), some("1")), (None, None)),
        // A negative zero is no unsigned number.
        (r#"{"n":-0}"#, (some("-0"), some("-0")), (some("-0"), some("-0"))),
        (r#"{"i":-0}"#, (None, None), (None, None)),
        (r#"{"n":0}"#, (None, None), (None, None)),
        (r#"{"i":-5}"#, (None, None), (None, None)),
        (r#"{"n":1.0}"#, (some("1.0"), some("1.0")), (None, None)),
    ] {
        assert_eq!(misfits(json, Reading::Text), text, "{json}");
        assert_eq!(misfits(json, Reading::Copy), copy, "{json}");
    }
}
