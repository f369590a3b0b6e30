//! Alerts and dashboard, parsed by Prometheus' own parser.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cluster::bin;
use crate::install::printed;

/// Every expression of the monitoring manifests, as Prometheus gets it.
fn expressions() -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("expr").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| collect(value, found));
            }
            Value::Array(elements) => elements.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for object in printed(&["--monitoring"]) {
        collect(&object, &mut found);
        if let Some(dashboard) = object["data"]["nadmit.json"].as_str() {
            collect(&serde_json::from_str(dashboard).unwrap(), &mut found);
        }
    }
    // A variable that Grafana replaces.
    found.into_iter().map(|expression| expression.replace("$__rate_interval", "5m")).collect()
}

#[test]
fn prometheus_can_read_every_expression() {
    let read = |expressions: &[String]| {
        let mut command = Command::new(bin().join("promql"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all((expressions.join("\n") + "\n").as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let expressions = expressions();
    assert!(expressions.len() > 20, "{expressions:#?}");
    let out = read(&expressions);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let names = String::from_utf8(out.stdout).unwrap();
    assert_eq!(names.lines().count(), expressions.len());
    for (names, expression) in names.lines().zip(&expressions) {
        assert!(!names.is_empty() && names.split(' ').all(|name| name.starts_with("nadmit_")), "{expression}: {names}");
    }
    assert!(!read(&["sum by (x nadmit_y".to_owned()]).status.success());
}
