//! The files under `deploy/` that are made from the objects: manifests for kustomize, and the chart.

use serde_json::{Value, json};

use super::{Certificates, Home, Options, objects, yaml};

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
const PLACES: [(&str, &str); 3] = [
    ("chart-namespace", "{{ .Release.Namespace }}"),
    ("chart-image", "{{ .Values.image }}"),
    ("chart-service", "{{ .Values.service }}"),
];
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
        files.push(template(certificates.name(), &when, &all));
    }
    let monitoring = added(&Options { monitoring: true, ..places() });
    files.push(template("monitoring", ".Values.monitoring", &monitoring));
    let backstop = added(&Options { backstop: true, ..places() });
    files.push(template("backstop", ".Values.backstop", &backstop));
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

/// One template: the objects, with values for places, as long as something is chosen.
fn template(name: &str, when: &str, objects: &[Value]) -> (String, String) {
    let mut text = yaml::stream(objects);
    for (place, value) in PLACES {
        text = text.replace(place, value);
    }
    text = text.replace(&REPLICAS.to_string(), "{{ .Values.replicas }}");
    text = text.replace("    chart: policy\n", "{{ .Values.policy | indent 4 }}\n");
    (format!("chart/templates/{name}.yaml"), format!("{HEAD}{{{{- if {when} }}}}\n{text}{{{{- end }}}}\n"))
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
            "monitoring": { "type": "boolean", "description": "Whether to make a ServiceMonitor and a PrometheusRule" },
            "backstop": { "type": "boolean", "description": "Whether the API server refuses incomplete NADs while nadmit is away" },
            "policy": { "type": "string", "description": "The policy file" },
        },
        "required": ["image", "service", "replicas", "certificates", "policy"],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::yaml::Documents;

    /// Renders a template as Helm does: plain substitution is all it needs.
    fn rendered(template: &str, options: &Options) -> Vec<Value> {
        let indented: String = options.policy.lines().map(|line| format!("    {line}\n")).collect();
        let text = template
            .replace("{{ .Release.Namespace }}", &options.home.namespace)
            .replace("{{ .Values.image }}", &options.image)
            .replace("{{ .Values.service }}", &options.home.service)
            .replace("{{ .Values.replicas }}", &options.replicas.to_string())
            .replace("{{ .Values.policy | indent 4 }}\n", &indented);
        let text: String =
            text.lines().filter(|line| !line.starts_with("{{- ")).map(|line| format!("{line}\n")).collect();
        assert!(!text.contains("{{"), "{text}");
        let read = |document: crate::yaml::Document| serde_json::from_str(&document.node.unwrap().to_json()).unwrap();
        Documents::new(&text).map(read).collect()
    }

    #[test]
    fn the_chart_renders_what_install_prints() {
        let files: BTreeMap<_, _> = files().into_iter().collect();
        for certificates in Certificates::ALL {
            let options = Options {
                home: Home { namespace: "here".to_owned(), service: "hooks".to_owned() },
                image: "example.com/nadmit@sha256:0".to_owned(),
                replicas: 3,
                certificates,
                policy: "mode: audit\n\nrules:\n  nad/unknown-key: off\n".to_owned(),
                monitoring: true,
                backstop: true,
            };
            let mut chart = Vec::new();
            for name in [certificates.name(), "monitoring", "backstop"] {
                chart.extend(rendered(&files[&format!("chart/templates/{name}.yaml")], &options));
            }
            let install: Vec<_> =
                objects(&options).into_iter().filter(|object| object["kind"] != "Namespace").collect();
            assert_eq!(chart, install, "{certificates:?}");
        }
    }
}
