use serde_json::{Value, json};

use super::*;
use crate::policy::{Action, Policy, Rule, Subject, judge};
use crate::resources::Object;

fn is_denied_as(rule: &Rule, spec: &Value) -> bool {
    let mut json = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": { "name": "net", "namespace": "sriov-network-operator" },
        "spec": { "resourceName": "cx7" },
    });
    json["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let json = json.to_string();
    let object = Object::read(&json).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
    verdict.findings.iter().any(|finding| finding.rule == rule && finding.action == Action::Deny)
}

/// Injections in every spelling that a Go program accepts.
#[test]
fn detects_injection_in_every_spelling() {
    let list = |text: &str| json!({ "metaPlugins": text });
    for (spec, want) in [
        (json!({ "ipam": r#"{"type":"static"},"Type":"bridge","bridge":"br0""# }), true),
        (json!({ "ipam": r#"{},"\u0054ype":"bridge""# }), true),
        (json!({ "ipam": r#"{},"type":"bridge""# }), true),
        (json!({ "ipam": r#"{},"TYPE":null"# }), true),
        (json!({ "ipam": "{},\"\u{17f}poofch\u{212a}\":\"off\"", "spoofChk": "on" }), true),
        (json!({ "ipam": r#"{},"CNIVERSION":"0.3.1""# }), true),
        (json!({ "ipam": r#"{},"Name":"other""# }), true),
        (json!({ "ipam": r#"{},"VLAN":7"# }), true),
        (json!({ "capabilities": r#"{},"IPAM":{"type":"dhcp"}"# }), true),
        (json!({ "capabilities": r#"{},"ipam":{"type":"dhcp"}"# }), true),
        (json!({ "capabilities": r#"{},"Vlan":null"# }), true),
        (list(r#"{"type":"tuning"}],"Plugins":[{"type":"bridge"}"#), true),
        (list(r#"{"type":"tuning"}],"plugins":[{"type":"sriov"},{"type":"bridge"}"#), true),
        (list(r#"{"type":"tuning"}],"TYPE":"bridge","x":[{}"#), true),
        (list(r#"{"type":"tuning"}],"cniversion":"0.3.1","x":[{}"#), true),
        (json!({ "metaPlugins": r#"{"type":"tuning"}"#, "ipam": r#"{},"Name":"other""# }), true),
        (json!({ "metaPlugins": r#"{"type":"tuning"}"#, "ipam": r#"{},"tYpe":"bridge""# }), true),
        // A space in a text is part of it.
        (json!({ "capabilities": r#"{"mac":true},"spoofchk":"o n""#, "spoofChk": "on" }), true),
        // Two texts that inject together.
        (json!({ "capabilities": r#"{},"Type":"bridge""#, "ipam": r#"{},"Type":"bridge""# }), true),
        // Keys that the template does not set, or sets to the same value, are no injection.
        (json!({ "ipam": r#"{},"mtu":9000"# }), false),
        (json!({ "ipam": r#"{},"mtu":9000"#, "metaPlugins": r#"{"type":"tuning"}"# }), false),
        (json!({ "ipam": r#"{},"TYPE":"sriov""# }), false),
        (json!({ "ipam": r#"{"type":"static","Type":"dhcp"}"# }), false),
        (json!({ "metaPlugins": r#"{"type":"tuning","Type":"vrf"}"# }), false),
        (json!({}), false),
    ] {
        assert_eq!(is_denied_as(&RENDER_UNSAFE, &spec), want, "{spec}");
    }
}

/// The operator indents the config with four spaces per level: a small text must not become one that is too large to judge.
#[test]
fn indentation_cannot_hide_a_large_config() {
    let deep = format!("{}{}{}", "[".repeat(55), ["0"; 6000].join(","), "]".repeat(55));
    for ipam in [
        format!(r#"{{"type":"host-local","subnet":"nonsense","x":{deep}}}"#),
        format!(r#"{{"type":"static","x":{}}}"#, deep.replace("0,", "0,0,0,0,0,0,0,0,0,")),
    ] {
        assert!(is_denied_as(&RENDER_UNSAFE, &json!({ "ipam": ipam })), "{} bytes", ipam.len());
    }
}

/// Unquoted positions of the template accept any YAML, which can expand.
#[test]
fn yaml_in_unquoted_fields_is_denied_without_expansion() {
    let mut bomb = "[&a [x,x,x,x,x,x,x,x]".to_owned();
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f"), ("h", "g")] {
        bomb += &format!(",&{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]");
    }
    bomb.push(']');
    for namespace in [
        "&a kube-system",
        "*a",
        "!!str kube-system",
        "\"kube-system\"",
        "'kube-system'",
        "kube-system #x",
        "kube-system\n  labels: {a: b}",
        "{<<: &a {b: c}}",
        "|\n    kube-system",
        bomb.as_str(),
        &"[".repeat(100_000),
        &"{a: ".repeat(100_000),
        &"- ".repeat(100_000),
    ] {
        let spec = json!({ "networkNamespace": namespace });
        assert!(is_denied_as(&RENDER_UNSAFE, &spec), "{}", namespace.get(..40).unwrap_or(namespace));
    }
    for field in ["ipam", "capabilities", "metaPlugins"] {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let spec = json!({ field: deep });
        assert!(is_denied_as(&FRAGMENT, &spec), "{field}");
    }
}

/// A key that the template sets as well is no injection if it has the same value.
#[test]
fn the_same_value_again_is_no_injection() {
    let ipam = r#"{"type":"static","a":[1,null,true],"b":{"c":"d"}}"#;
    let with = |again: &str| json!({ "ipam": ipam, "capabilities": format!(r#"{{}},"ipam":{again}"#) });
    assert!(!is_denied_as(&RENDER_UNSAFE, &with(r#"{ "type": "static", "a": [1, null, true], "b": {"c": "d"} }"#)));
    for other in [
        r#"{"type":"static","a":[2,null,true],"b":{"c":"d"}}"#,
        r#"{"type":"static","a":[1,0,true],"b":{"c":"d"}}"#,
        r#"{"type":"static","a":[1,null,false],"b":{"c":"d"}}"#,
        r#"{"type":"static","a":[1,null,true,1],"b":{"c":"d"}}"#,
        r#"{"type":"static","a":[1,null,true],"b":{"c":"e"}}"#,
        r#"{"type":"static","a":[1,null,true],"b":{"e":"d"}}"#,
        r#"{"type":"static","a":[1,null,true],"b":{"c":"d","e":1}}"#,
    ] {
        assert!(is_denied_as(&RENDER_UNSAFE, &with(other)), "{other}");
    }
}
