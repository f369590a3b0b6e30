//! The files under `deploy/` that are made from the objects: manifests for kustomize, and the chart.

use serde_json::{Value, json};

use super::{Certificates, Home, Options, dashboard, hook, objects, yaml};

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
        ("kustomize/components/monitoring", Options { monitoring: true, ..Options::default() }),
        ("kustomize/components/backstop", Options { backstop: true, ..Options::default() }),
    ] {
        kustomization(&mut files, directory, "Component", &added(&options));
    }
    files.push(("dashboard.json".to_owned(), dashboard::text()));
    files.extend(chart());
    files
}

/// What the options add to the usual objects.
fn added(options: &Options) -> Vec<Value> {
    let usual = objects(&Options { monitoring: false, backstop: false, ..options.clone() });
    objects(options).into_iter().filter(|object| !usual.contains(object)).collect()
}

fn kustomization(files: &mut Vec<(String, String)>, directory: &str, kind: &str, objects: &[Value]) {
    let version =
        if kind == "Component" { "kustomize.config.k8s.io/v1alpha1" } else { "kustomize.config.k8s.io/v1beta1" };
    let own = json!({ "apiVersion": version, "kind": kind, "resources": ["nadmit.yaml"] });
    files.push((format!("{directory}/kustomization.yaml"), format!("{HEAD}{}", yaml::stream(&[own]))));
    files.push((format!("{directory}/nadmit.yaml"), format!("{HEAD}{}", yaml::stream(objects))));
}

/// What stands for a value in the chart until it is rendered. They look like what they stand for, so that nothing is quoted.
const PLACES: [(&str, &str); 3] =
    [("chart-namespace", ".Release.Namespace"), ("chart-image", ".Values.image"), ("chart-service", ".Values.service")];
/// A number, and a text of several lines, cannot look like a name.
const REPLICAS: u32 = 987_654_321;
const POLICY: &str = "chart: policy\n";

fn chart() -> Vec<(String, String)> {
    let defaults = Options::default();
    let values = json!({
        "image": defaults.image,
        "service": defaults.home.service,
        "replicas": defaults.replicas,
        "certificates": Certificates::Own.name(),
        "monitoring": false,
        "backstop": false,
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
    for certificates in Certificates::ALL {
        let all = objects(&Options { certificates, ..places() });
        // The namespace is Helm's to make.
        let all: Vec<Value> = all.into_iter().filter(|object| object["kind"] != "Namespace").collect();
        let when = format!("eq .Values.certificates \"{}\"", certificates.name());
        files.push(template(certificates.name(), Some(&when), &all));
    }
    let monitoring = added(&Options { monitoring: true, ..places() });
    files.push(template("monitoring", Some(".Values.monitoring"), &monitoring));
    let backstop = added(&Options { backstop: true, ..places() });
    files.push(template("backstop", Some(".Values.backstop"), &backstop));
    files.push(template("uninstall", None, &hook::objects(&places())));
    files
}

fn places() -> Options {
    Options {
        home: Home { namespace: "chart-namespace".to_owned(), service: "chart-service".to_owned() },
        image: "chart-image".to_owned(),
        replicas: REPLICAS,
        policy: POLICY.to_owned(),
        ..Options::default()
    }
}

/// One template: the objects, with values for places, as long as that is chosen.
fn template(name: &str, when: Option<&str>, objects: &[Value]) -> (String, String) {
    // What is in braces already is not Helm's.
    let mut text = yaml::stream(objects).replace("{{", "{{ \"{{\" }}");
    for (place, value) in PLACES {
        // A name that stands alone may look like a number.
        text = text.replace(&format!(": {place}\n"), &format!(": {{{{ {value} | quote }}}}\n"));
        text = text.replace(place, &format!("{{{{ {value} }}}}"));
    }
    text = text.replace(&REPLICAS.to_string(), "{{ .Values.replicas }}");
    // The 2 has every line begin where it begins, also one that begins with spaces.
    text = text.replace(" |\n    chart: policy\n", " |2\n{{ .Values.policy | trimSuffix \"\\n\" | indent 4 }}\n");
    let text = match when {
        Some(when) => format!("{{{{- if {when} }}}}\n{text}{{{{- end }}}}\n"),
        None => text,
    };
    (format!("chart/templates/{name}.yaml"), format!("{HEAD}{text}"))
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
            "backstop": { "type": "boolean", "description": "Whether the API server refuses incomplete NADs while nadmit is away" },
            "policy": { "type": "string", "description": "The policy file" },
        },
        "required": ["image", "service", "replicas", "certificates", "policy"],
    })
}
