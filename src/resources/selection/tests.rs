use super::*;

/// `namespace/name@interface` of each element, or the words of Multus.
fn read(text: &str) -> Result<Vec<String>, String> {
    let element = |network: &SelectedNetwork| match network.interface.as_str() {
        "" => format!("{}/{}", network.namespace, network.name),
        interface => format!("{}/{}@{interface}", network.namespace, network.name),
    };
    match Selection::read(text, "apps") {
        Selection::Read(networks) => Ok(networks.iter().map(element).collect()),
        Selection::Wrong(error) => Err(format!("{}: {}", error.words, text.get(error.span).unwrap())),
        Selection::Unknown => Err("unknown".to_owned()),
    }
}

#[test]
fn both_forms_of_the_annotation_are_read() {
    for (text, want) in [
        ("net", &["apps/net"] as &[_]),
        ("a, other/b@eth5 ,c@x,a", &["apps/a", "other/b@eth5", "apps/c@x", "apps/a"]),
        (" other / b @ net1", &["other/b@net1"]),
        ("", &[]),
        (" , ", &["apps/", "apps/"]),
        ("a,", &["apps/a", "apps/"]),
        ("@eth1", &["apps/@eth1"]),
        (
            r#"[{"name":"a"},{"name":"b","namespace":"other","interface":"x"},{"name":"c","interfaceRequest":"y"}]"#,
            &["apps/a", "other/b@x", "apps/c@y"],
        ),
        (r#"[{"NAME":"a","name":null,"Namespace":"o"}]"#, &["o/a"]),
        (r#"[{"name":"a.b_C"}]"#, &["apps/a.b_C"]),
        (r#"[{"namespace":"z"}]"#, &["z/"]),
        ("[]", &[]),
        (r#"[{"name":"a","x":{"any":1},"default-route":["",null,"10.0.0.1"]}]"#, &["apps/a"]),
    ] {
        assert_eq!(read(text).unwrap(), want, "{text}");
    }
}

#[test]
fn errors_have_the_words_of_multus_and_their_place() {
    for (text, want) in [
        ("ok, a/b/c", "Invalid network object (failed at '/'): a/b/c"),
        ("a@b@c", "Invalid network object (failed at '@'): a@b@c"),
        ("a@b/c", "one or more items did not match comma-delimited format: a@b/c"),
        ("Net", "one or more items did not match comma-delimited format: Net"),
        ("storage.v1", "one or more items did not match comma-delimited format: storage.v1"),
        ("-a", "one or more items did not match comma-delimited format: -a"),
        ("net@sixteen-letters-", "Failed to parse interface name: net@sixteen-letters-"),
        ("net@a b", "Failed to parse interface name: net@a b"),
        (r#"[{"name":"a""#, "failed to parse pod Network Attachment Selection Annotation JSON format: "),
        (r#"[{"name":"a",}]"#, "failed to parse pod Network Attachment Selection Annotation JSON format: }"),
        (
            r#"{"name":"a"}"#,
            "failed to parse pod Network Attachment Selection Annotation JSON format: {\"name\":\"a\"}",
        ),
        (r#"["a"]"#, "failed to parse pod Network Attachment Selection Annotation JSON format: \"a\""),
        (r#"[{"name":5}]"#, "failed to parse pod Network Attachment Selection Annotation JSON format: 5"),
        (
            r#"[{"name":"a","ips":"10.0.0.1"}]"#,
            "failed to parse pod Network Attachment Selection Annotation JSON format: \"10.0.0.1\"",
        ),
        (
            r#"[{"default-route":["x"],"default-route":null}]"#,
            "failed to parse pod Network Attachment Selection Annotation JSON format: \"x\"",
        ),
        (r#"[{"mac":"02:00"}]"#, "failed to mac: \"02:00\""),
        (r#"[{"infiniband-guid":"x"}]"#, "failed to validate infiniband GUID: \"x\""),
        (r#"[{"ips":["10.0.0.1/24","10.0.0.300"]}]"#, "failed to parse IP address: \"10.0.0.300\""),
        (r#"[{"ips":["10.0.0.1/99"]}]"#, "failed to parse CIDR: \"10.0.0.1/99\""),
        (r#"[{"ips":[null]}]"#, "failed to parse IP address: null"),
        ("[null]", "invalid memory address or nil pointer dereference: null"),
    ] {
        assert_eq!(read(text).unwrap_err(), want, "{text}");
    }
    assert_eq!(read(&format!("[{}{}]", "[".repeat(100), "]".repeat(100))).unwrap_err(), "unknown");
}

#[test]
fn arguments_are_those_that_multus_passes_on() {
    for (element, want) in [
        ("{}", Arguments::NONE),
        (r#"{"ips":[],"mac":"","bandwidth":null}"#, Arguments::NONE),
        (r#"{"ips":["10.0.0.1"],"mac":"02:00:00:00:00:01"}"#, Arguments::IPS.with(Arguments::MAC)),
        (r#"{"bandwidth":{},"portMappings":[{}]}"#, Arguments::BANDWIDTH.with(Arguments::PORTS)),
        (r#"{"infiniband-guid":"02:00:00:00:00:00:00:01"}"#, Arguments::GUID),
    ] {
        let selection = Selection::read(&format!("[{element}]"), "apps");
        assert_eq!(selection.networks()[0].arguments, want, "{element}");
    }
}

#[test]
fn each_nad_is_listed_once() {
    let found = selected_nads("b,a,b,other/b,", "apps").unwrap();
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["apps/b", "apps/a", "other/b"]);
    assert_eq!(selected_nads("a@b@c", "apps"), None);
}
