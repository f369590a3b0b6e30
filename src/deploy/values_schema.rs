//! The schema of the chart's values. Helm checks values with it before it renders anything. The policy's own schema is part of it, so
//! that a wrong policy is rejected there, too.

use serde_json::{Value, json};

use super::{CertificateSource, set};
use crate::policy::Policy;

/// The schema. It has the form of draft 7, which all versions of Helm 3 read.
pub(super) fn schema() -> Value {
    let (policy, definitions) = policy();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the nadmit chart",
        "definitions": definitions,
        "type": "object",
        "additionalProperties": false,
        // With `--set KEY=null` these would be missing, and the templates need them.
        "required": ["image", "replicas", "certificates", "service", "monitoring"],
        "properties": {
            "global": { "type": "object", "description": "Helm passes it to every subchart. It is not used." },
            "enabled": {
                "type": "boolean",
                "description": "For the `condition` of a chart that depends on this one. It is not used here.",
            },
            "image": image(),
            "imagePullSecrets": {
                "type": "array",
                "description": "The Secrets with which nodes pull the image",
                "items": object(&["name"], json!({ "name": text("The name of the Secret") })),
            },
            "replicas": { "type": "integer", "minimum": 1, "description": "The number of replicas" },
            "policy": policy,
            "certificates": {
                "enum": CertificateSource::ALL.map(CertificateSource::name),
                "description": "Where the serving certificate comes from",
            },
            "clientCa": text("The CA (PEM) of required client certificates"),
            "clientName": text("The name that must be in the client certificate"),
            "backstop": flag("Whether the API server itself denies incomplete NADs and template injection while nadmit is down"),
            "dryRuns": flag("Whether nadmit may create NADs, used only for dry runs that show who denies a missing NAD"),
            "service": service(),
            "serviceAccount": object(&["create"], json!({
                "create": flag("Whether the chart creates it"),
                "name": name("Its name", true),
                "annotations": texts("Annotations of the ServiceAccount"),
            })),
            "resources": any_object("The resources of the container"),
            "nodeSelector": texts("Labels of the nodes that pods may run on"),
            "tolerations": objects("Taints that pods tolerate"),
            "affinity": any_object("The affinity of the replicas"),
            "topologySpreadConstraints": objects("How the replicas are spread"),
            "priorityClassName": text("The PriorityClass of the pods"),
            "podAnnotations": texts("Annotations of all pods"),
            "podLabels": texts("More labels of all pods"),
            "extraArgs": {
                "type": "array",
                "description": "More arguments of `nadmit serve`",
                "items": { "type": "string", "pattern": "^--" },
            },
            "extraEnv": extra_env(),
            "monitoring": monitoring(),
            "uninstallHook": object(&["enabled"], json!({ "enabled": flag("Whether the Job runs") })),
        },
    })
}

/// The policy: an object, or the text of a policy file. Returns its schema, and the definitions that it refers to.
fn policy() -> (Value, Value) {
    let text = Policy::schema().to_string().replace("\"#/$defs/", "\"#/definitions/");
    let mut policy: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut definitions = policy.get("$defs").cloned().unwrap_or_default();
    if let Value::Object(members) = &mut policy {
        for key in ["$schema", "$defs", "title"] {
            members.remove(key);
        }
    }
    set(&mut policy, "type", json!(["object", "string"]));
    set(&mut policy, "description", "The policy: an object with its keys, or the text of a policy file".into());
    for name in ["Action", "Reports"] {
        let one_of = definitions.pointer_mut(&format!("/{name}/oneOf")).and_then(Value::as_array_mut);
        one_of.into_iter().for_each(|one_of| {
            one_of.push(json!({ "const": false, "description": "`off`: without quotes, YAML reads it as false." }));
        });
    }
    (policy, definitions)
}

fn image() -> Value {
    let mut image = object(
        &["repository"],
        json!({
            "registry": text("The registry; the default of the nodes if it is empty"),
            "repository": { "type": "string", "minLength": 1, "description": "The repository" },
            "tag": { "type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$", "description": "The tag; the appVersion of the chart if it is empty" },
            "digest": { "type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$", "description": "The digest, which takes the place of the tag" },
            "pullPolicy": { "enum": ["", "Always", "IfNotPresent", "Never"], "description": "When a node pulls the image" },
        }),
    );
    or_former(&mut image, "string");
    image
}

fn service() -> Value {
    let mut service = object(
        &["name"],
        json!({
            "name": name("The name of the Service that the API server calls", false),
            "annotations": texts("Annotations of the Service"),
        }),
    );
    or_former(&mut service, "string");
    service
}

fn extra_env() -> Value {
    let mut variable = object(
        &["name"],
        json!({
            "name": { "type": "string", "minLength": 1, "description": "The name" },
            "value": text("The value"),
            "valueFrom": any_object("Where the value comes from"),
        }),
    );
    set(&mut variable, "description", "An environment variable".into());
    json!({ "type": "array", "description": "Environment variables of `nadmit serve`", "items": variable })
}

fn monitoring() -> Value {
    let enabled = || flag("Whether it is created");
    let labels = || texts("Labels");
    let mut monitoring = object(
        &["metricsService", "serviceMonitor", "prometheusRule", "dashboard"],
        json!({
            "metricsService": object(&["enabled"], json!({ "enabled": enabled(), "annotations": texts("Its annotations") })),
            "serviceMonitor": object(&["enabled", "interval"], json!({
                "enabled": enabled(),
                "labels": labels(),
                "interval": { "type": "string", "pattern": "^([0-9]+(ms|[smhdwy]))+$", "description": "How often Prometheus reads the metrics" },
            })),
            "prometheusRule": object(&["enabled"], json!({ "enabled": enabled(), "labels": labels() })),
            "dashboard": object(&["enabled"], json!({ "enabled": enabled(), "labels": labels() })),
        }),
    );
    or_former(&mut monitoring, "boolean");
    monitoring
}

/// Also accepts the type that a value had in the chart of nadmit 0.1.0: the templates then say what to write instead, which a schema cannot.
fn or_former(schema: &mut Value, former: &str) {
    set(schema, "type", json!(["object", former]));
}

fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": false, "required": required });
    set(&mut schema, "properties", properties);
    schema
}

fn any_object(description: &str) -> Value {
    json!({ "type": "object", "description": description })
}

fn objects(description: &str) -> Value {
    json!({ "type": "array", "description": description, "items": { "type": "object" } })
}

fn texts(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": { "type": "string" } })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// A name of an object.
fn name(description: &str, may_be_empty: bool) -> Value {
    let pattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let pattern = if may_be_empty { format!("^({pattern})?$") } else { format!("^{pattern}$") };
    json!({ "type": "string", "pattern": pattern, "maxLength": 63, "description": description })
}
