use super::*;

fn all(text: &str) -> Vec<String> {
    Documents::new(text)
        .map(|document| match document.node {
            Ok(node) => format!("{} {}", document.line, node.to_json()),
            Err(error) => format!("{} ! {}", document.line, error.problem),
        })
        .collect()
}

#[test]
fn reads_documents_as_json() {
    for (text, want) in [
        ("a: 1\nb: [x, y, 'y', 0644, 1.5, ~]\n", &[r#"1 {"a":1,"b":["x",true,"y",420,1.5,null]}"#] as &[_]),
        ("# only a comment\n", &[]),
        ("---\na: 1\n---\n# c\nb: 2\n...\n", &[r#"2 {"a":1}"#, r#"5 {"b":2}"#]),
        ("{\n\t\"a\": \"\\u00e9\\n\",\n\t\"b\": [true]\n}", &[r#"1 {"a":"é\n","b":[true]}"#]),
        ("a: &a {k: 1, l: 2}\nb: {<<: *a, l: 3}\n", &[r#"1 {"a":{"k":1,"l":2},"b":{"l":3,"k":1}}"#]),
        ("1: a\ntrue: b\n", &[r#"1 {"1":"a","true":"b"}"#]),
        ("a: !!str 5\nb: !!int \"5\"\nc: ! 5\nd: !x 5\n", &[r#"1 {"a":"5","b":5,"c":"5","d":"5"}"#]),
        ("a: 1e3\nb: 1.5\n", &[r#"1 {"a":1000,"b":1.5}"#]),
        (
            "a: 1\n--- # c\nb: 2\n--- {c: 3}\n----\n",
            &[r#"1 {"a":1}"#, r#"3 {"b":2}"#, "4 ! did not find expected <document start>"],
        ),
        ("a: 1\n---\n\u{feff}b: 2\n", &[r#"1 {"a":1}"#, r#"3 {"b":2}"#]),
    ] {
        assert_eq!(all(text), want, "{text:?}");
    }
}

#[test]
fn broken_document_does_not_hide_the_others() {
    let documents = all("a: 1\n---\nb: [1\n---\nc: 3\n");
    assert_eq!(documents.len(), 3, "{documents:?}");
    assert_eq!(documents.first().unwrap(), r#"1 {"a":1}"#);
    assert!(documents.get(1).unwrap().contains('!'), "{documents:?}");
    assert_eq!(documents.last().unwrap(), r#"5 {"c":3}"#);
}

/// Texts that make the parser itself panic; some of them are known upstream and not fixed yet.
#[test]
fn a_panic_of_the_parser_is_an_error_of_that_document() {
    for text in ["[!,", "[!a,]", "{!a,}", "a: ''|\n 0", "- [!a, b]\n", "a: [!!,x]"] {
        let documents = all(&format!("{text}\n---\nb: 2\n"));
        assert!(documents.first().unwrap().contains('!'), "{text}: {documents:?}");
        assert_eq!(documents.last().unwrap().split_once(' ').unwrap().1, r#"{"b":2}"#, "{text}");
    }
}

#[test]
fn request_yaml_has_narrower_limits() {
    let bomb = format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(100), "*a,".repeat(1000));
    for (text, want) in
        [(bomb.as_str(), "anchors are not allowed"), (&format!("[{}]", "0,".repeat(5000)), "more than 4096 values")]
    {
        assert!(Documents::new(text).all(|document| document.node.is_ok()));
        let problem = Documents::small(text).next().unwrap().node.unwrap_err().problem;
        assert!(problem.contains(want), "{problem}");
    }
}

#[test]
fn limits_hold() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f")] {
        bomb += &format!("{name}: &{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]\n");
    }
    for (text, want) in [
        (bomb.as_str(), "aliases expand"),
        (&format!("a: &a {}\nb: [{}]\n", "x".repeat(20_000), "*a,".repeat(50_000)), "aliases expand"),
        (&"[".repeat(100_000), "nested deeper"),
        (&"- ".repeat(200), "nested deeper"),
        ("a: &a [*a]\n", "alias"),
        ("a: 1\na: 2\n", "duplicate key"),
        ("a: .inf\n", "cannot be represented in JSON"),
        ("<<: x\n", "requires a mapping"),
        ("~: x\n", "a key must be"),
        ("-x\n  f: g\n", "mapping values are not allowed"),
    ] {
        let documents = all(text);
        let first = documents.first().unwrap();
        assert!(first.contains(want), "{first}");
    }
}
