//! Alerts and dashboard, parsed by Prometheus' own parser and evaluated by its engine.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use nadmit::telemetry::Metrics;
use nadmit::telemetry::registration::RegistrationProblem;
use serde_json::Value;

use crate::cluster::bin;
use crate::harness::run;
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

/// What an alert fires for, after Prometheus has scraped the metrics of these replicas: the labels and the value of each series.
pub fn firing(alert: &str, replicas: &[String]) -> Vec<String> {
    let objects = printed(&["--monitoring"]);
    let groups = objects.iter().filter_map(|object| object["spec"]["groups"].as_array()).flatten();
    let mut rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let rule = rules.find(|rule| rule["alert"] == alert).unwrap_or_else(|| panic!("there is no alert {alert}"));
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(bin().join("promql"));
    command.arg(rule["expr"].as_str().unwrap());
    for (number, text) in replicas.iter().enumerate() {
        let file = directory.path().join(number.to_string());
        fs::write(&file, text).unwrap();
        command.arg(file);
    }
    let out = run(command);
    assert!(out.status.success(), "{alert}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_alert_shows_why_nadmit_is_not_registered() {
    let replica = |problem: Option<RegistrationProblem>| {
        let metrics = Metrics::default();
        metrics.registered.set(problem);
        metrics.text()
    };
    let problems = |replicas: &[Option<RegistrationProblem>]| {
        let texts: Vec<String> = replicas.iter().map(|problem| replica(*problem)).collect();
        firing("NadmitRegistrationProblem", &texts)
    };
    for problem in RegistrationProblem::ALL {
        let shown = format!("{{problem=\"{}\"}} 1", problem.name());
        assert_eq!(problems(&[Some(problem)]), [shown.as_str()]);
        // Of a rollout, the new replica is not ready for a moment.
        let is_new = problem == RegistrationProblem::NotReady;
        assert_eq!(problems(&[None, Some(problem)]), if is_new { vec![] } else { vec![shown] });
    }
    assert_eq!(problems(&[None, None]), Vec::<String>::new());
    assert_eq!(
        firing("NadmitRegistrationProblem", &[Metrics::default().text()]),
        Vec::<String>::new(),
        "without --register"
    );
    let labels = printed(&["--monitoring"]).iter().map(ToString::to_string).collect::<String>();
    assert!(labels.contains("{{ $labels.problem }}"), "the alert does not show the reason");
}
