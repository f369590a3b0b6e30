use super::*;
use crate::yaml::Documents;

type Edits = Result<Vec<SourceEdit>, EditError>;

/// The text after the edits of its first document.
fn edited(source: &str, edit: impl Fn(&ObjectEditor<'_>) -> Edits) -> Result<String, EditError> {
    let root = Documents::new(source).next().unwrap().node.unwrap();
    edit(&ObjectEditor::new(source, &root)).map(|edits| apply(source, &edits).unwrap())
}

/// Each row in every kind of line break.
fn check(rows: &[(&str, Result<&str, EditError>)], edit: impl Fn(&ObjectEditor<'_>) -> Edits) {
    for (source, want) in rows {
        for line_break in ["\n", "\r\n"] {
            let source = source.replace('\n', line_break);
            let want = want.map(|want| want.replace('\n', line_break));
            assert_eq!(edited(&source, &edit), want, "{source:?}");
        }
    }
}

#[test]
fn a_string_is_set_in_blocks() {
    check(
        &[
            ("m:\n  name: x\n", Ok("m:\n  name: x\n  a:\n    k: v\n")),
            // At the end of a text without a line break, before a comment, behind one.
            ("m:\n  name: x", Ok("m:\n  name: x\n  a:\n    k: v")),
            ("m:\n  name: x # c\n  # d\n", Ok("m:\n  name: x # c\n  a:\n    k: v\n  # d\n")),
            // Behind the name wherever it stands, and as deep as the others.
            ("m:\n    name: x\n    z: 1\n", Ok("m:\n    name: x\n    a:\n        k: v\n    z: 1\n")),
            ("m:\n  z: 1\n", Ok("m:\n  z: 1\n  a:\n    k: v\n")),
            // Nothing is on a line of its own: in front.
            ("m:\n  z: |\n    t\n", Ok("m:\n  a:\n    k: v\n  z: |\n    t\n")),
            ("m:\n  z:\n  - 1\n", Ok("m:\n  a:\n    k: v\n  z:\n  - 1\n")),
            ("m:\n  z: 'a\n    b'\n", Ok("m:\n  a:\n    k: v\n  z: 'a\n    b'\n")),
            // What is there is changed, quoted as before.
            ("m:\n  a:\n    k: w # c\n", Ok("m:\n  a:\n    k: v # c\n")),
            ("m:\n  a:\n    k: 'w'\n", Ok("m:\n  a:\n    k: 'v'\n")),
            ("m:\n  a:\n    k: \"w\"\n", Ok("m:\n  a:\n    k: \"v\"\n")),
            ("m:\n  a:\n    k:\n", Ok("m:\n  a:\n    k: v\n")),
            ("m:\n  a:\n    k: |\n      w\n", Err(EditError::Scalar)),
            ("m:\n  a:\n    k: [w]\n", Err(EditError::Scalar)),
            ("m:\n  a:\n    z: w\n", Ok("m:\n  a:\n    z: w\n    k: v\n")),
            // Nothing becomes a mapping.
            ("m:\n  a:\n  z: 1\n", Ok("m:\n  a:\n    k: v\n  z: 1\n")),
            ("m:\n  a: # c\n  z: 1\n", Ok("m:\n  a: # c\n    k: v\n  z: 1\n")),
            ("m:\n  a: ~ # c\n", Ok("m:\n  a: # c\n    k: v\n")),
            ("m:\n", Ok("m:\n  a:\n    k: v\n")),
            ("kind: x\n", Ok("kind: x\nm:\n  a:\n    k: v\n")),
            ("m:\n  a: 5\n", Err(EditError::Mapping)),
            // What is shared stays.
            ("z: &z {k: 1}\nm:\n  a: *z\n", Err(EditError::Shared)),
            ("z: &z {a: {}}\nm:\n  <<: *z\n", Err(EditError::Shared)),
            ("z: &z\n  a: {}\nm: *z\n", Err(EditError::Shared)),
        ],
        |object| object.set(&["m", "a", "k"], "v", &["name", "kind"]),
    );
}

#[test]
fn a_string_is_set_in_braces() {
    check(
        &[
            ("m: {name: x}\n", Ok("m: {name: x, a: {k: v}}\n")),
            ("m: {name: x, z: 1} # c\n", Ok("m: {name: x, a: {k: v}, z: 1} # c\n")),
            ("m: { z: 1 }\n", Ok("m: { z: 1, a: {k: v} }\n")),
            ("m: {a: {}}\n", Ok("m: {a: {k: v}}\n")),
            ("m: {a: {z: w}}\n", Ok("m: {a: {z: w, k: v}}\n")),
            ("m: {a: {k: 'w'}}\n", Ok("m: {a: {k: 'v'}}\n")),
            ("m: {a: null, z: 1}\n", Ok("m: {a: {k: v}, z: 1}\n")),
            ("m: {a: , z: 1}\n", Ok("m: {a: {k: v}, z: 1}\n")),
            ("{\"m\": {\"name\": \"x\"}}", Ok("{\"m\": {\"name\": \"x\", \"a\": {\"k\": \"v\"}}}")),
            ("{\"m\":{\"name\":\"x\",\"z\":1}}", Ok("{\"m\":{\"name\":\"x\",\"a\":{\"k\":\"v\"},\"z\":1}}")),
            ("{\"m\":{\"a\":null}}", Ok("{\"m\":{\"a\":{\"k\":\"v\"}}}")),
            ("{\"m\": {\"a\": {}}}", Ok("{\"m\": {\"a\": {\"k\": \"v\"}}}")),
            (
                "{\n  \"m\": {\n    \"name\": \"x\"\n  }\n}\n",
                Ok("{\n  \"m\": {\n    \"name\": \"x\",\n    \"a\": {\n      \"k\": \"v\"\n    }\n  }\n}\n"),
            ),
            (
                "{\n\t\"m\": {\n\t\t\"name\": \"x\",\n\t\t\"z\": 1\n\t}\n}",
                Ok(
                    "{\n\t\"m\": {\n\t\t\"name\": \"x\",\n\t\t\"a\": {\n\t\t\t\"k\": \"v\"\n\t\t},\n\t\t\"z\": 1\n\t}\n}",
                ),
            ),
        ],
        |object| object.set(&["m", "a", "k"], "v", &["name"]),
    );
}

#[test]
fn an_entry_is_removed_with_its_line() {
    check(
        &[
            ("a:\n  k: v\n  z: 1\n", Ok("a:\n  z: 1\n")),
            ("a:\n  z: 1\n  k: v\n", Ok("a:\n  z: 1\n")),
            ("a:\n  z: 1\n  k: v", Ok("a:\n  z: 1")),
            // Comments stay.
            ("a:\n  # c\n  k: v # d\n  z: 1\n", Ok("a:\n  # c\n  # d\n  z: 1\n")),
            ("a: # c\n  k: v\nb: 1\n", Ok("a: {} # c\nb: 1\n")),
            ("a:\n  k: |\n    v\n  z: 1\n", Err(EditError::Mapping)),
            ("- 1\n", Err(EditError::Absent)),
            ("a: {k: v, z: 1}\n", Ok("a: {z: 1}\n")),
            ("a: {z: 1, k: v}\n", Ok("a: {z: 1}\n")),
            ("a: {k: v}\n", Ok("a: {}\n")),
            ("{\"a\": {\"k\": \"v\", \"z\": 1}}", Ok("{\"a\": {\"z\": 1}}")),
            ("b: &b {k: v}\na:\n  <<: *b\n", Err(EditError::Shared)),
            ("b: &b {y: v}\na:\n  <<: *b\n  k: v\n", Err(EditError::Shared)),
        ],
        |object| object.remove("/a/k"),
    );
}

#[test]
fn a_key_is_renamed_in_its_style() {
    check(
        &[
            ("a:\n  k: v # c\n", Ok("a:\n  new: v # c\n")),
            ("a: {'k': v}\n", Ok("a: {'new': v}\n")),
            ("{\"a\": {\"k\": 1}}", Ok("{\"a\": {\"new\": 1}}")),
            ("a:\n  k: v\n  new: w\n", Err(EditError::KeyExists)),
            ("a:\n  z: v\n", Err(EditError::Absent)),
            ("b: &b {k: v}\na: *b\n", Err(EditError::Shared)),
        ],
        |object| object.rename("/a/k", "new"),
    );
}

#[test]
fn a_string_replaces_any_scalar() {
    check(
        &[
            ("a: [{k: on}]\n", Ok("a: [{k: \"on\"}]\n")),
            ("a:\n- k: off # c\n", Ok("a:\n- k: \"on\" # c\n")),
            ("{\"a\": [{\"k\": true}]}", Ok("{\"a\": [{\"k\": \"on\"}]}")),
            ("a:\n- k: {}\n", Err(EditError::Scalar)),
            ("a:\n- k: &k On\n", Ok("a:\n- k: &k \"on\"\n")),
            ("b: &b {k: 1}\na:\n- *b\n", Err(EditError::Shared)),
        ],
        |object| object.set_text("/a/0/k", "on"),
    );
}

#[test]
fn parts_of_texts_are_edited_in_every_style() {
    // In each text `b` becomes `it's "c"`, and behind it a line is added.
    for (source, want) in [
        ("k: |\n  a b\n  z\n", Ok("k: |\n  a it's \"c\",\n  new\n  z\n")),
        ("k: |-\n\n    a\n      b\n", Ok("k: |-\n\n    a\n      it's \"c\",\n    new\n")),
        ("k: |2\n    a b\n", Ok("k: |2\n    a it's \"c\",\n  new\n")),
        // Without a line break at the end of the text.
        ("k: |\n  a b", Ok("k: |\n  a it's \"c\",\n  new")),
        ("k: \"a b\"\n", Ok("k: \"a it's \\\"c\\\",\\nnew\"\n")),
        ("{\"k\": \"a b\"}", Ok("{\"k\": \"a it's \\\"c\\\",\\nnew\"}")),
        ("k: 'a b'\n", Err(EditError::Scalar)),
        ("k: 5\n", Err(EditError::Absent)),
    ] {
        let edit = |object: &ObjectEditor<'_>| {
            let text = object.root.get("k").and_then(YamlNode::as_str).ok_or(EditError::Absent)?;
            let at = text.find('b').unwrap();
            let mut edits = object.edit_text("/k", at..at + 1, "it's \"c\"")?;
            edits.extend(object.edit_text("/k", at + 1..at + 1, ",\nnew")?);
            Ok(edits)
        };
        assert_eq!(edited(source, edit), want.map(ToOwned::to_owned), "{source:?}");
    }
}

/// A line break that is folded is a blank in the text, and a member has its own line where the others have.
#[test]
fn members_of_folded_texts_keep_to_their_lines() {
    for (source, want) in [
        ("k: '{\"a\": 1, \"b\": 2}'\n", "k: '{\"a\": 1, \"c\": \"it''s\", \"b\": 2}'\n"),
        ("k: '{\n    \"a\": 1,\n    \"b\": 2}'\n", "k: '{\n    \"a\": 1,\n    \"c\": \"it''s\",\n    \"b\": 2}'\n"),
        ("k: >\n  {\n  \"a\": 1\n  }\n", "k: >\n  {\n  \"a\": 1,\n  \"c\": \"it's\"\n  }\n"),
        ("k: \"{\n  \\\"a\\\": 1\n  }\"\n", "k: \"{\n  \\\"a\\\": 1,\n  \\\"c\\\": \\\"it's\\\"\n  }\"\n"),
        ("k: '{\n    \"x\": {\"a\": 1}}'\n", "k: '{\n    \"x\": {\"a\": 1,\n    \"c\": \"it''s\"}}'\n"),
    ] {
        let edit = |object: &ObjectEditor<'_>| {
            let at = object.root.get("k").and_then(YamlNode::as_str).unwrap().find('1').unwrap() + 1;
            object.edit_text("/k", at..at, ", \"c\": \"it's\"")
        };
        let got = edited(source, edit).unwrap();
        assert_eq!(got, want);
        let value = |text: &str| Documents::new(text).next().unwrap().node.unwrap().get("k").unwrap().to_json();
        assert!(value(&got).contains("1, \\\"c\\\": \\\"it's\\\""), "{}", value(&got));
    }
}

#[test]
fn a_place_beside_a_blank_is_not_certain() {
    let source = "k: 'a b '\n";
    for part in [0..2, 2..2, 1..3, 0..0, 4..4] {
        assert_eq!(
            edited(source, |object| object.edit_text("/k", part.clone(), "x")),
            Err(EditError::Scalar),
            "{part:?}"
        );
    }
}

#[test]
fn edits_are_made_in_any_order_and_never_overlap() {
    let edit = |range: Range<usize>, text: &str| SourceEdit { range, text: text.to_owned() };
    for (edits, want) in [
        (vec![edit(4..4, "!"), edit(0..1, "X")], Some("Xbcd!ef")),
        (vec![edit(0..1, "X"), edit(0..1, "X")], Some("Xbcdef")),
        (vec![edit(2..2, "1"), edit(2..2, "2")], Some("ab12cdef")),
        (vec![edit(0..3, ""), edit(2..4, "")], None),
        (vec![edit(5..9, "")], None),
        (vec![], Some("abcdef")),
    ] {
        assert_eq!(apply("abcdef", &edits).as_deref(), want, "{edits:?}");
    }
}
