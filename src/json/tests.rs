use super::*;

#[test]
fn accepts_and_rejects_like_go() {
    use Problem::*;
    // (text, None if Go accepts it, else the error)
    let table: &[(&str, Option<Problem>)] = &[
        (r#"{"a":[1,-0.5e+3,true,false,null,"x"]}"#, None),
        ("\r\n\t {} \n", None),
        ("null", None),
        ("\u{1}{}", Some(BadValue)),
        ("{\u{b}}", Some(KeyExpected)),
        ("", Some(Blank)),
        (" \n", Some(Blank)),
        ("\u{feff}{}", Some(BadValue)),
        ("{} {}", Some(Trailing)),
        ("{}x", Some(Trailing)),
        (r#"{"a":1,}"#, Some(TrailingComma)),
        ("[1,]", Some(TrailingComma)),
        ("[1 2]", Some(CommaExpected)),
        ("{a:1}", Some(KeyExpected)),
        (r#"{"a" 1}"#, Some(ColonExpected)),
        (r#"{"a":"#, Some(Truncated)),
        (r#"{"a"#, Some(Truncated)),
        ("[01]", Some(CommaExpected)),
        ("[+1]", Some(BadValue)),
        ("[1.]", Some(BadNumber)),
        ("[.5]", Some(BadValue)),
        ("[1e]", Some(BadNumber)),
        ("[1e308]", None),
        ("[1e400]", Some(HugeNumber)),
        ("[NaN]", Some(BadValue)),
        ("[True]", Some(BadValue)),
        ("[nul]", Some(BadValue)),
        ("['a']", Some(BadValue)),
        ("[\"a\tb\"]", Some(ControlCharacter)),
        ("[\"a\nb\"]", Some(ControlCharacter)),
        (r#"["\x41"]"#, Some(BadEscape)),
        (r#"["\u12"]"#, Some(BadEscape)),
        (r#"["\u+123"]"#, Some(BadEscape)),
        (r#"["\"#, Some(BadEscape)),
        ("[\"\u{7f}\u{fffd}é\"]", None),
        ("// c\n{}", Some(BadValue)),
    ];
    for (text, want) in table {
        assert_eq!(Document::parse(text).err().map(|error| error.problem), *want, "{text:?}");
    }
}

#[test]
fn decodes_strings_as_go_does() {
    for (text, want) in [
        (r#""plain""#, "plain"),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""\u0041\u00e9\uD83D\uDE00""#, "Aé😀"),
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00x""#, "\u{fffd}x"),
        (r#""\ud800\ud800""#, "\u{fffd}\u{fffd}"),
        (r#""\udc00\udc00""#, "\u{fffd}\u{fffd}"),
        (r#""\ud800A""#, "\u{fffd}A"),
    ] {
        let document = Document::parse(text).unwrap();
        assert_eq!(document.root.as_str(), Some(want), "{text}");
    }
}

#[test]
fn numbers_are_integers_when_a_go_map_would_make_them_so() {
    for (text, want) in [
        ("100", Some(100)),
        ("100.0", Some(100)),
        ("1e2", Some(100)),
        ("-0", Some(0)),
        ("1.5", None),
        ("9007199254740993", Some(9_007_199_254_740_992)),
        ("9223372036854774784", Some(9_223_372_036_854_775_000)),
        ("9223372036854775807", None),
        ("1e30", None),
        ("\"100\"", None),
    ] {
        assert_eq!(Document::parse(text).unwrap().root.as_int(), want, "{text}");
    }
}

#[test]
fn every_escape_is_decoded() {
    let document = Document::parse(r#""\"\\\/\b\f\n\r\tA\u0041\u00e9\ud83d\ude00""#).unwrap();
    assert_eq!(document.root.as_str(), Some("\"\\/\u{8}\u{c}\n\r\tAA\u{e9}\u{1f600}"));
    for wrong in [r#""\a""#, r#""\u12""#, r#""\N""#, r#""\""#] {
        assert!(Document::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn limits_hold() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Document::parse(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(Document::parse(&deep(MAX_DEPTH + 1)).unwrap_err().problem, Problem::TooDeep);
    assert_eq!(Document::parse(&"[".repeat(100_000)).unwrap_err().problem, Problem::TooDeep);
    assert_eq!(Document::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().problem, Problem::TooLarge);
    assert!(Document::parse(&format!("{}5", " ".repeat(MAX_BYTES - 1))).is_ok());
}

/// The list itself is a value, too.
#[test]
fn a_config_holds_a_limited_number_of_values() {
    let list = |values: usize| format!("[{}]", vec!["0"; values - 1].join(","));
    assert!(Document::parse(&list(MAX_VALUES)).is_ok());
    let text = list(MAX_VALUES + 1);
    let error = Document::parse(&text).unwrap_err();
    assert_eq!((error.problem, error.offset), (Problem::TooMany, text.len() - 2));
    assert!(Document::parse_unbounded(&text, MAX_DEPTH).is_ok());
    let members = (0..MAX_VALUES).map(|n| format!("\"{n}\":{{}}")).collect::<Vec<_>>().join(",");
    assert_eq!(Document::parse(&format!("{{{members}}}")).unwrap_err().problem, Problem::TooMany);
}

#[test]
fn pointers_lead_to_keys_and_values() {
    let text = r#"{"a":1,"plugins":[{"type":"x"},{"a/b":{"~":[7]}}]}"#;
    let document = Document::parse(text).unwrap();
    for (needle, want) in [("\"type\"", "/plugins/0/type"), ("7", "/plugins/1/a~1b/~0/0"), ("1", "/a")] {
        let start = text.find(needle).unwrap() as u32;
        let span = Span { start, end: start + needle.len() as u32 };
        assert_eq!(document.pointer_to(span), want);
    }
    assert_eq!(document.pointer_to(document.root.span), "");
}

#[test]
fn lines_and_columns_count_from_one() {
    assert_eq!(line_column("ab\ncd", 0), (1, 1));
    assert_eq!(line_column("ab\ncd", 4), (2, 2));
    assert_eq!(line_column("é\néx", 5), (2, 2));
    let text = "a\né b\r\n\n日本\nx";
    let lines = LineIndex::of(text);
    for (offset, _) in text.char_indices() {
        assert_eq!(lines.at(offset), line_column(text, offset), "{offset}");
    }
}

#[test]
fn values_are_shown_and_described() {
    for (text, shown, described) in [
        ("true", "true", "a boolean"),
        ("false", "false", "a boolean"),
        ("1.50", "1.50", "a number"),
        (r#""a\"b""#, r#""a\"b""#, "a string"),
        ("null", "null", "null"),
        ("[1]", "a list", "a list"),
        ("{}", "an object", "an object"),
    ] {
        let document = Document::parse(text).unwrap();
        assert_eq!((document.root.shown().as_ref(), document.root.describe()), (shown, described), "{text}");
    }
}

/// A long number may leave the floats without an exponent.
#[test]
fn long_numbers_are_rejected_beyond_the_floats() {
    for (digits, want) in [(300, None), (308, None), (310, Some(Problem::HugeNumber))] {
        let text = "9".repeat(digits);
        assert_eq!(Document::parse(&text).err().map(|error| error.problem), want, "{digits}");
    }
}
