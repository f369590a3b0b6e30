//! The files under `deploy/` that are made from the objects: manifests for kustomize, and the chart.

use serde_json::{Value, json};

use super::clients::{self, Clients, DIRECTORY, admission_files};
use super::{Certificates, Home, NAME, Options, dashboard, hook, objects, set, yaml};

/// The first line of each of them.
const HEAD: &str = "# Made by `make generate` from src/deploy. Do not edit.\n";

/// All of them: the path under `deploy/`, and what is in it.
pub fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (directory, certificates) in [
        ("kustomize/base", Certificates::Own),
        ("kustomize/overlays/cert-manager", Certificates::CertManager),
        ("kustomize/overlays/openshift", Certificates::OpenShift),
    ] {
        let all = objects(&Options { certificates, ..Options::default() });
        kustomization(&mut files, directory, "Kustomization", &all);
    }
    for (directory, options) in [
        ("kustomize/components/monitoring", Options { monitoring: true, ..least() }),
        ("kustomize/components/dry-runs", Options { dry_runs: true, ..least() }),
    ] {
        kustomization(&mut files, directory, "Component", &added(&options));
    }
    let backstop = added(&Options { backstop: true, ..least() });
    component(&mut files, "without-backstop", &backstop.iter().map(removal).collect::<Vec<_>>());
    component(&mut files, "client-ca", &[client_ca()]);
    for (name, text) in admission_files(&Options::default().home, DIRECTORY) {
        files.push((format!("admission/{name}"), format!("{HEAD}{text}")));
    }
    files.push(("dashboard.json".to_owned(), dashboard::text()));
    files.extend(chart());
    files
}

/// Nothing that can be left out.
fn least() -> Options {
    Options { monitoring: false, backstop: false, dry_runs: false, clients: None, ..Options::default() }
}

/// What the options add to the least objects.
fn added(options: &Options) -> Vec<Value> {
    let Options { monitoring, backstop, dry_runs, clients, .. } = least();
    let usual = objects(&Options { monitoring, backstop, dry_runs, clients, ..options.clone() });
    objects(options).into_iter().filter(|object| !usual.contains(object)).collect()
}

const BASE: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT: &str = "kustomize.config.k8s.io/v1alpha1";

fn kustomization(files: &mut Vec<(String, String)>, directory: &str, kind: &str, objects: &[Value]) {
    let version = if kind == "Component" { COMPONENT } else { BASE };
    let own = json!({ "apiVersion": version, "kind": kind, "resources": ["nadmit.yaml"] });
    files.push((format!("{directory}/kustomization.yaml"), format!("{HEAD}{}", yaml::stream(&[own]))));
    files.push((format!("{directory}/nadmit.yaml"), format!("{HEAD}{}", yaml::stream(objects))));
}

/// A component that changes what is there.
fn component(files: &mut Vec<(String, String)>, name: &str, patches: &[Value]) {
    let own = json!({ "apiVersion": COMPONENT, "kind": "Component", "patches": patches });
    let path = format!("kustomize/components/{name}/kustomization.yaml");
    files.push((path, format!("{HEAD}{}", yaml::stream(&[own]))));
}

/// The patch that takes an object away.
fn removal(object: &Value) -> Value {
    let name = object.pointer("/metadata/name");
    let mut patch = json!({ "$patch": "delete", "metadata": { "name": name } });
    for key in ["apiVersion", "kind"] {
        set(&mut patch, key, object.get(key).cloned().unwrap_or_default());
    }
    json!({ "patch": yaml::stream(&[patch]) })
}

/// The patch that has the Deployment ask for client certificates; the ConfigMap with their CA is the user's to add.
fn client_ca() -> Value {
    let clients = Clients { ca: String::new(), name: None };
    let (volume, path) = clients::volume();
    let mount = json!({ "name": volume.get("name"), "mountPath": path, "readOnly": true });
    let add = |path: &str, value: Value| json!({ "op": "add", "path": format!("/spec/template/spec/{path}/-"), "value": value });
    let mut operations: Vec<Value> =
        clients.arguments().into_iter().map(|argument| add("containers/0/args", argument.into())).collect();
    operations.push(add("containers/0/volumeMounts", mount));
    operations.push(add("volumes", volume));
    json!({ "target": { "kind": "Deployment", "name": NAME }, "patch": format!("{:#}\n", Value::from(operations)) })
}

/// What stands for a value in the chart until it is rendered. They look like what they stand for, so that nothing is quoted.
const PLACES: [(&str, &str); 4] = [
    ("chart-namespace", ".Release.Namespace"),
    ("chart-image", ".Values.image"),
    ("chart-service", ".Values.service"),
    ("chart-client-name", ".Values.clientName"),
];
/// A number, and a text of several lines, cannot look like a name.
const REPLICAS: u32 = 987_654_321;
const POLICY: &str = "chart: policy\n";
const CLIENT_CA: &str = "chart: clientCa\n";

fn chart() -> Vec<(String, String)> {
    let defaults = Options::default();
    let values = json!({
        "image": defaults.image,
        "service": defaults.home.service,
        "replicas": defaults.replicas,
        "certificates": Certificates::Own.name(),
        "monitoring": defaults.monitoring,
        "backstop": defaults.backstop,
        "dryRuns": defaults.dry_runs,
        "clientCa": "",
        "clientName": "",
        "policy": defaults.policy,
    });
    let version = env!("CARGO_PKG_VERSION");
    let about = json!({
        "apiVersion": "v2",
        "name": "nadmit",
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.33.0-0",
    });
    let mut files = vec![
        ("chart/Chart.yaml".to_owned(), format!("{HEAD}{}", yaml::stream(&[about]))),
        ("chart/values.yaml".to_owned(), format!("{HEAD}{}", yaml::stream(&[values]))),
        ("chart/values.schema.json".to_owned(), format!("{:#}\n", schema())),
    ];
    let clients = Clients { ca: CLIENT_CA.to_owned(), name: Some("chart-client-name".to_owned()) };
    let client_ca = clients.object(&places());
    for certificates in Certificates::ALL {
        let template = |clients: Option<Clients>| {
            let mut all = objects(&Options { certificates, clients, ..places() });
            // The namespace is Helm's to make, and the CA of the callers has a file of its own.
            all.retain(|object| object["kind"] != "Namespace" && *object != client_ca);
            filled(&all)
        };
        let text = either(&template(None), &template(Some(clients.clone())), ".Values.clientCa");
        let when = format!("eq .Values.certificates \"{}\"", certificates.name());
        files.push(file(certificates.name(), Some(&when), &text));
    }
    for (name, options) in [
        ("monitoring", Options { monitoring: true, ..places() }),
        ("backstop", Options { backstop: true, ..places() }),
        ("dryRuns", Options { dry_runs: true, ..places() }),
    ] {
        files.push(file(name, Some(&format!(".Values.{name}")), &filled(&added(&options))));
    }
    files.push(file("client-ca", Some(".Values.clientCa"), &filled(&[client_ca])));
    files.push(file("uninstall", None, &filled(&hook::objects(&places()))));
    files
}

fn places() -> Options {
    Options {
        home: Home { namespace: "chart-namespace".to_owned(), service: "chart-service".to_owned() },
        image: "chart-image".to_owned(),
        replicas: REPLICAS,
        policy: POLICY.to_owned(),
        ..least()
    }
}

/// The objects as the text of a template, with values for places.
fn filled(objects: &[Value]) -> String {
    // What is in braces already is not Helm's.
    let mut text = yaml::stream(objects).replace("{{", "{{ \"{{\" }}");
    for (place, value) in PLACES {
        // A name that stands alone may look like a number.
        text = text.replace(&format!(": {place}\n"), &format!(": {{{{ {value} | quote }}}}\n"));
        text = text.replace(place, &format!("{{{{ {value} }}}}"));
    }
    text = text.replace(&REPLICAS.to_string(), "{{ .Values.replicas }}");
    for name in ["policy", "clientCa"] {
        // The 2 has every line begin where it begins, also one that begins with spaces.
        let value = format!(" |2\n{{{{ .Values.{name} | trimSuffix \"\\n\" | indent 4 }}}}\n");
        text = text.replace(&format!(" |\n    chart: {name}\n"), &value);
    }
    text
}

/// One text where a value is empty, and the other, which has more lines, where it is not.
fn either(without: &str, with: &str, value: &str) -> String {
    let mut text = String::new();
    let mut common = without.lines().peekable();
    let mut is_more = false;
    for line in with.lines() {
        let is_common = common.next_if_eq(&line).is_some();
        if is_common == is_more {
            is_more = !is_common;
            text += &if is_more { format!("{{{{- if {value} }}}}\n") } else { "{{- end }}\n".to_owned() };
        }
        // A name may be left out even then.
        text += &if line.contains("--client-name=") {
            format!("{{{{- if .Values.clientName }}}}\n{line}\n{{{{- end }}}}\n")
        } else {
            format!("{line}\n")
        };
    }
    text + if is_more { "{{- end }}\n" } else { "" }
}

/// One file of the chart, as long as that is chosen.
fn file(name: &str, when: Option<&str>, text: &str) -> (String, String) {
    let text = match when {
        Some(when) => format!("{{{{- if {when} }}}}\n{text}{{{{- end }}}}\n"),
        None => text.to_owned(),
    };
    (format!("chart/templates/{}.yaml", name.replace("dryRuns", "dry-runs")), format!("{HEAD}{text}"))
}

fn schema() -> Value {
    let name = json!({ "type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63 });
    let names = Certificates::ALL.map(Certificates::name);
    json!({
        "$schema": "https://json-schema.org/draft-07/schema#",
        "title": "Values of the nadmit chart",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "global": { "type": "object" },
            "image": { "type": "string", "minLength": 1, "description": "The image, with its tag or digest" },
            "service": name,
            "replicas": { "type": "integer", "minimum": 1, "description": "How many replicas" },
            "certificates": { "enum": names, "description": "Who makes the serving certificate" },
            "monitoring": { "type": "boolean", "description": "Whether to make a ServiceMonitor, a PrometheusRule and a Grafana dashboard" },
            "backstop": { "type": "boolean", "description": "Whether the API server itself denies incomplete NADs and template injection while nadmit is down" },
            "dryRuns": { "type": "boolean", "description": "Whether nadmit may create NADs, by dry runs alone, to report who denies one that does not come" },
            "clientCa": { "type": "string", "description": "The CA, PEM, whose client certificates callers must show; empty: none" },
            "clientName": { "type": "string", "description": "The name that must be in the client certificate; empty: any" },
            "policy": { "type": "string", "description": "The policy file" },
        },
        "required": ["image", "service", "replicas", "certificates", "policy"],
    })
}
