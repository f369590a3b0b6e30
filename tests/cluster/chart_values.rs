//! The values of the chart: what each of them changes, and which are rejected before anything is rendered.

use std::collections::BTreeSet;
use std::fs;

use nadmit::policy::{Mode, Policy};
use serde_json::{Value, json};

use crate::harness::run;
use crate::install::read;
use crate::manifests::{helm, rendered, root, stdout};

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// The objects of the chart with one value.
fn with(key: &str, value: &Value) -> Vec<Value> {
    // A dot in a key of the value's own must not begin another key.
    read(&stdout(rendered(&["--set-json", &format!("{key}={value}")])))
}

fn object<'o>(objects: &'o [Value], kind: &str, name: &str) -> Option<&'o Value> {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// The keys of the values, from their schema: `image.registry`.
fn keys(schema: &Value, path: &str, out: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().unwrap() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if inner["properties"].is_object() && path != "policy" {
            keys(inner, &path, out);
        } else {
            out.insert(path);
        }
    }
}

#[test]
fn each_value_changes_what_it_says() {
    let anti = json!({ "nodeAffinity": {} });
    let env = json!([{ "name": "NADMIT_LOG_FORMAT", "value": "text" }]);
    let toleration = json!([{ "key": "infra", "operator": "Exists" }]);
    let spread = json!([{ "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" }]);
    let secrets = json!([{ "name": "pull" }]);
    let digest = format!("sha256:{}", "a".repeat(64));
    let (pod, container) = (|rest: &str| format!("{POD}{rest}"), |rest: &str| format!("{CONTAINER}{rest}"));
    // (key, value, kind, name, place, what is there then)
    let rows: Vec<(&str, Value, &str, &str, String, Value)> = vec![
        (
            "image.registry",
            json!("r.example:5000"),
            "Deployment",
            "nadmit",
            container("/image"),
            json!(format!("r.example:5000/nadmit:{}", env!("CARGO_PKG_VERSION"))),
        ),
        (
            "image.registry",
            json!("r.example"),
            "Job",
            "nadmit-uninstall",
            container("/image"),
            json!(format!("r.example/nadmit:{}", env!("CARGO_PKG_VERSION"))),
        ),
        (
            "image.repository",
            json!("net/nadmit"),
            "Deployment",
            "nadmit",
            container("/image"),
            json!(format!("net/nadmit:{}", env!("CARGO_PKG_VERSION"))),
        ),
        ("image.tag", json!("v2"), "Deployment", "nadmit", container("/image"), json!("nadmit:v2")),
        ("image.digest", json!(digest), "Deployment", "nadmit", container("/image"), json!(format!("nadmit@{digest}"))),
        ("image.pullPolicy", json!("Always"), "Deployment", "nadmit", container("/imagePullPolicy"), json!("Always")),
        (
            "image.pullPolicy",
            json!("Never"),
            "Pod",
            "nadmit-test",
            "/spec/containers/0/imagePullPolicy".to_owned(),
            json!("Never"),
        ),
        ("imagePullSecrets", secrets.clone(), "Deployment", "nadmit", pod("/imagePullSecrets"), secrets.clone()),
        ("imagePullSecrets", secrets.clone(), "Job", "nadmit-uninstall", pod("/imagePullSecrets"), secrets),
        ("replicas", json!(3), "Deployment", "nadmit", "/spec/replicas".to_owned(), json!(3)),
        (
            "policy.mode",
            json!("audit"),
            "ConfigMap",
            "nadmit-policy",
            "/data/policy.yaml".to_owned(),
            json!("mode: audit\n"),
        ),
        (
            "policy.failurePolicy.mutateNads",
            json!("Ignore"),
            "ConfigMap",
            "nadmit-policy",
            "/data/policy.yaml".to_owned(),
            json!("failurePolicy:\n  mutateNads: Ignore\n"),
        ),
        (
            "policy.audit.rescanSeconds",
            json!(1_000_000),
            "ConfigMap",
            "nadmit-policy",
            "/data/policy.yaml".to_owned(),
            json!("audit:\n  rescanSeconds: 1000000\n"),
        ),
        (
            "certificates",
            json!("secret"),
            "Deployment",
            "nadmit",
            pod("/volumes/0/secret/secretName"),
            json!("nadmit-tls"),
        ),
        ("clientCa", json!("PEM\n"), "ConfigMap", "nadmit-client-ca", "/data/ca.crt".to_owned(), json!("PEM\n")),
        (
            "backstop",
            json!(true),
            "ValidatingAdmissionPolicy",
            "nadmit-template-injection",
            "/spec/failurePolicy".to_owned(),
            json!("Ignore"),
        ),
        ("dryRuns", json!(true), "ClusterRole", "nadmit-dry-runs", "/rules/0/verbs".to_owned(), json!(["create"])),
        ("service.name", json!("hooks"), "Service", "hooks", "/spec/ports/0/port".to_owned(), json!(443)),
        ("service.name", json!("hooks"), "Deployment", "nadmit", container("/args/4"), json!("--service=hooks")),
        ("service.name", json!("hooks"), "Role", "nadmit", "/rules/5/resourceNames".to_owned(), json!(["hooks"])),
        (
            "service.annotations",
            json!({ "a.b/c": "d" }),
            "Service",
            "nadmit",
            "/metadata/annotations".to_owned(),
            json!({ "a.b/c": "d" }),
        ),
        ("serviceAccount.name", json!("other"), "ServiceAccount", "other", "/metadata/name".to_owned(), json!("other")),
        ("serviceAccount.name", json!("other"), "Deployment", "nadmit", pod("/serviceAccountName"), json!("other")),
        (
            "serviceAccount.name",
            json!("other"),
            "ClusterRoleBinding",
            "nadmit",
            "/subjects/0/name".to_owned(),
            json!("other"),
        ),
        ("serviceAccount.name", json!("other"), "RoleBinding", "nadmit", "/subjects/0/name".to_owned(), json!("other")),
        (
            "serviceAccount.name",
            json!("other"),
            "FlowSchema",
            "nadmit",
            "/spec/rules/0/subjects/0/serviceAccount/name".to_owned(),
            json!("other"),
        ),
        (
            "serviceAccount.annotations",
            json!({ "a": "b" }),
            "ServiceAccount",
            "nadmit",
            "/metadata/annotations".to_owned(),
            json!({ "a": "b" }),
        ),
        (
            "resources.limits.memory",
            json!("256Mi"),
            "Deployment",
            "nadmit",
            container("/resources"),
            json!({ "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "256Mi" } }),
        ),
        (
            "nodeSelector",
            json!({ "node-role.kubernetes.io/infra": "" }),
            "Deployment",
            "nadmit",
            pod("/nodeSelector"),
            json!({ "node-role.kubernetes.io/infra": "" }),
        ),
        (
            "nodeSelector",
            json!({ "disk": "ssd" }),
            "Job",
            "nadmit-uninstall",
            pod("/nodeSelector"),
            json!({ "disk": "ssd" }),
        ),
        ("tolerations", toleration.clone(), "Deployment", "nadmit", pod("/tolerations"), toleration.clone()),
        ("tolerations", toleration.clone(), "Pod", "nadmit-test", "/spec/tolerations".to_owned(), toleration),
        ("affinity", anti, "Deployment", "nadmit", pod("/affinity/nodeAffinity"), json!({})),
        (
            "topologySpreadConstraints",
            spread.clone(),
            "Deployment",
            "nadmit",
            pod("/topologySpreadConstraints"),
            spread,
        ),
        ("priorityClassName", json!("mine"), "Deployment", "nadmit", pod("/priorityClassName"), json!("mine")),
        ("priorityClassName", json!("mine"), "Job", "nadmit-uninstall", pod("/priorityClassName"), json!("mine")),
        (
            "podAnnotations",
            json!({ "a": "b" }),
            "Deployment",
            "nadmit",
            "/spec/template/metadata/annotations".to_owned(),
            json!({ "a": "b" }),
        ),
        (
            "podAnnotations",
            json!({ "a": "b" }),
            "Job",
            "nadmit-uninstall",
            "/spec/template/metadata/annotations".to_owned(),
            json!({ "a": "b" }),
        ),
        (
            "podAnnotations",
            json!({ "helm.sh/hook": "b" }),
            "Pod",
            "nadmit-test",
            "/metadata/annotations/helm.sh~1hook".to_owned(),
            json!("test"),
        ),
        (
            "podLabels",
            json!({ "a": "b" }),
            "Deployment",
            "nadmit",
            "/spec/template/metadata/labels/a".to_owned(),
            json!("b"),
        ),
        (
            "podLabels",
            json!({ "app.kubernetes.io/name": "b" }),
            "Deployment",
            "nadmit",
            "/spec/template/metadata/labels/app.kubernetes.io~1name".to_owned(),
            json!("nadmit"),
        ),
        (
            "extraArgs",
            json!(["--log-level=debug"]),
            "Deployment",
            "nadmit",
            container("/args/7"),
            json!("--log-level=debug"),
        ),
        ("extraEnv", env.clone(), "Deployment", "nadmit", container("/env"), env),
        (
            "monitoring.metricsService.annotations",
            json!({ "a": "b" }),
            "Service",
            "nadmit-metrics",
            "/metadata/annotations".to_owned(),
            json!({ "a": "b" }),
        ),
        (
            "monitoring.serviceMonitor",
            json!({ "enabled": true, "labels": { "release": "p" } }),
            "ServiceMonitor",
            "nadmit",
            "/metadata/labels/release".to_owned(),
            json!("p"),
        ),
        (
            "monitoring.serviceMonitor",
            json!({ "enabled": true, "interval": "1m30s" }),
            "ServiceMonitor",
            "nadmit",
            "/spec/endpoints/0/interval".to_owned(),
            json!("1m30s"),
        ),
        (
            "monitoring.prometheusRule",
            json!({ "enabled": true, "labels": { "release": "p" } }),
            "PrometheusRule",
            "nadmit",
            "/metadata/labels/release".to_owned(),
            json!("p"),
        ),
        (
            "monitoring.dashboard",
            json!({ "enabled": true, "labels": { "grafana_dashboard": null, "board": "1" } }),
            "ConfigMap",
            "nadmit-dashboard",
            "/metadata/labels/board".to_owned(),
            json!("1"),
        ),
    ];
    let mut checked: BTreeSet<&str> = BTreeSet::new();
    for (key, value, kind, name, place, wanted) in &rows {
        let objects = with(key, value);
        let object = object(&objects, kind, name).unwrap_or_else(|| panic!("{key}={value}: no {kind} {name}"));
        assert_eq!(object.pointer(place), Some(wanted), "{key}={value}: {object:#}");
        checked.insert(key);
    }
    // And those that leave an object out.
    for (key, kind, name) in [
        ("backstop", "ValidatingAdmissionPolicy", "nadmit"),
        ("serviceAccount.create", "ServiceAccount", "nadmit"),
        ("monitoring.metricsService.enabled", "Service", "nadmit-metrics"),
        ("uninstallHook.enabled", "Job", "nadmit-uninstall"),
    ] {
        assert!(object(&with(key, &json!(true)), kind, name).is_some(), "{key}");
        assert!(object(&with(key, &json!(false)), kind, name).is_none(), "{key}");
        checked.insert(key);
    }
    // What belongs to the whole chart, and to the client certificates that `manifests.rs` compares.
    checked.extend(["global", "enabled", "clientName"]);
    let schema = fs::read_to_string(root("deploy/chart/values.schema.json")).unwrap();
    let mut all = BTreeSet::new();
    keys(&serde_json::from_str(&schema).unwrap(), "", &mut all);
    let is_checked = |key: &&String| {
        checked
            .iter()
            .any(|row| row == key || row.starts_with(&format!("{key}.")) || key.starts_with(&format!("{row}.")))
    };
    let missing: Vec<_> = all.iter().filter(|key| !is_checked(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(all.len() > 35, "{all:?}");
}

/// A bare `off` is false in values, as it is in a policy file; both mean the same.
#[test]
fn policy_as_values_is_the_policy_as_a_file() {
    let home = tempfile::tempdir().unwrap();
    let example = fs::read_to_string(root("examples/policy.yaml")).unwrap();
    let off = "mode: audit\nrules: {nad/unknown-key: off}\naudit: {reports: off}\n";
    for text in [&example, off, "{}\n"] {
        let values = home.path().join("values.yaml");
        fs::write(&values, format!("policy:\n  {}", text.trim_end().replace('\n', "\n  "))).unwrap();
        let objects = read(&stdout(rendered(&["--values", values.to_str().unwrap()])));
        let stored = object(&objects, "ConfigMap", "nadmit-policy").unwrap();
        let stored = Policy::parse(stored["data"]["policy.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(stored, Policy::parse(text).unwrap(), "{text}");
    }
    assert_eq!(Policy::parse(off).unwrap().mode, Mode::Audit);
}

#[test]
fn wrong_values_are_rejected() {
    let home = tempfile::tempdir().unwrap();
    let chart = root("deploy/chart");
    let out = run(helm(home.path(), &["lint", "--strict", chart.to_str().unwrap()]));
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    // (values, what the error names)
    for (values, named) in [
        ("replicas=0", "/replicas"),
        ("replicas=many", "/replicas"),
        ("replica=3", "replica"),
        ("certificates=mine", "/certificates"),
        ("backstop=1", "/backstop"),
        ("dryRuns=perhaps", "/dryRuns"),
        ("clientCa=5", "/clientCa"),
        ("service.name=Not_A_Name", "/service/name"),
        ("image=null", "image"),
        ("image.repository=", "/image/repository"),
        ("image.tag=a b", "/image/tag"),
        ("image.digest=abc", "/image/digest"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("extraArgs={serve}", "/extraArgs/0"),
        ("monitoring.serviceMonitor.interval=often", "/monitoring/serviceMonitor/interval"),
        ("monitoring.serviceMonitors.enabled=true", "serviceMonitors"),
        ("policy.mode=loud", "/policy/mode"),
        ("policy.mood=audit", "mood"),
        ("policy.rules.nad/unknown-key=loud", "/policy/rules/nad~1unknown-key"),
        ("policy.audit.rescanSeconds=-1", "/policy/audit/rescanSeconds"),
        ("policy.failurePolicy.mutateNads=Maybe", "/policy/failurePolicy/mutateNads"),
        ("policy=5", "/policy"),
        // What the templates reject, with what to write instead.
        (
            "image=nadmit:0.1.0",
            "set image.repository, and image.tag or image.digest. In an upgrade, use --reset-then-reuse-values",
        ),
        ("service=hooks", "set service.name"),
        ("monitoring=true", "set monitoring.serviceMonitor.enabled"),
        ("clientName=x", "clientName needs clientCa"),
        (
            "monitoring.metricsService.enabled=false,monitoring.serviceMonitor.enabled=true",
            "set monitoring.metricsService.enabled=true",
        ),
        ("policy=mode: [", "policy is a text that is not a YAML object"),
        ("policy=- a", "policy is a text that is not a YAML object"),
    ] {
        let out = rendered(&["--set", values]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && stderr.contains(named), "{values}: {stderr}");
    }
}
