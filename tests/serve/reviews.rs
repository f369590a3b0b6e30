//! Reviews as the API server sends them, and responses read as strictly as it reads them.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nadmit::review::Endpoint;
use serde_json::{Value, json};

use super::client::{Client, HttpAnswer};

/// A NAD without resourceName annotation whose config has the name, so that it can be repaired.
pub const REPAIRABLE: &str = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps"},
    "spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"sriov\",\"resourceName\":\"openshift.io/cx7\"}"}}"#;
/// A NAD that is denied, because no repair is possible.
pub const DENIED: &str = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps"},
    "spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"sriov\"}"}}"#;
/// A NAD without mistakes.
pub const GOOD: &str = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps"},
    "spec":{"config":"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"bridge\"}"}}"#;

/// The versions of the review.
pub const V1: &str = "admission.k8s.io/v1";
pub const V1BETA1: &str = "admission.k8s.io/v1beta1";

/// A review from `examples/`.
pub fn example(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/examples/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The path of an endpoint.
pub fn path(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Mutate => "/mutate",
        Endpoint::Validate => "/validate",
        Endpoint::Status => "/status",
        Endpoint::Pods => "/pods",
        Endpoint::InUse => "/in-use",
    }
}

/// A review as the API server sends it.
#[derive(Clone, Debug)]
pub struct TestReview {
    pub version: &'static str,
    pub uid: String,
    pub operation: &'static str,
    pub sub_resource: String,
    pub user: String,
    /// JSON text, sent as it is.
    pub object: Option<String>,
    pub old: Option<String>,
    pub dry_run: bool,
}

impl TestReview {
    /// A user creates an object.
    pub fn create(object: &str) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            version: V1,
            uid: format!("705ab4f5-6393-11e8-b7cc-{:012x}", LAST.fetch_add(1, Ordering::Relaxed)),
            operation: "CREATE",
            sub_resource: String::new(),
            user: "jane".to_owned(),
            object: Some(object.to_owned()),
            old: None,
            dry_run: false,
        }
    }

    /// A user updates an object.
    pub fn update(old: &str, object: &str) -> Self {
        Self { operation: "UPDATE", old: Some(old.to_owned()), ..Self::create(object) }
    }

    /// A user deletes an object.
    pub fn delete(old: &str) -> Self {
        Self { operation: "DELETE", old: Some(old.to_owned()), object: None, ..Self::create("") }
    }

    pub fn by(self, user: &str) -> Self {
        Self { user: user.to_owned(), ..self }
    }

    /// The body of the request. The objects are inserted as text, so that nothing about them changes.
    pub fn body(&self) -> String {
        let text = self.object.as_ref().or(self.old.as_ref()).map_or("{}", String::as_str);
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = word("/apiVersion").split_once('/').unwrap_or(("", word("/apiVersion")));
        let kind = json!({ "group": group, "version": version, "kind": word("/kind") });
        let plural = match word("/kind") {
            "NetworkAttachmentDefinition" => "network-attachment-definitions".to_owned(),
            other => other.to_lowercase() + "s",
        };
        let resource = json!({ "group": group, "version": version, "resource": plural });
        let mut request = json!({
            "uid": self.uid, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": word("/metadata/name"), "namespace": word("/metadata/namespace"), "operation": self.operation,
            "userInfo": { "username": self.user, "uid": "5c5ae1f4", "groups": ["system:authenticated"] },
            "dryRun": self.dry_run,
            "options": { "apiVersion": "meta.k8s.io/v1", "kind": format!("{}Options", capital(self.operation)) },
        });
        if !self.sub_resource.is_empty() {
            request["subResource"] = json!(self.sub_resource);
            request["requestSubResource"] = json!(self.sub_resource);
        }
        let request = request.to_string();
        let null = || "null".to_owned();
        format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"{}","request":{},"object":{},"oldObject":{}}}}}"#,
            self.version,
            request.strip_suffix('}').unwrap(),
            self.object.clone().unwrap_or_else(null),
            self.old.clone().unwrap_or_else(null)
        )
    }

    /// Sends the review, and reads the response.
    pub async fn ask(&self, client: &mut Client, endpoint: Endpoint) -> Reply {
        let answer = client.post(&format!("{}?timeout=5s", path(endpoint)), self.body()).await.unwrap();
        Reply::read(&answer, self, endpoint)
    }
}

fn capital(operation: &str) -> String {
    let (first, rest) = operation.split_at(1);
    first.to_owned() + &rest.to_lowercase()
}

/// A response that the API server would accept.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub allowed: bool,
    /// The bytes of the JSON patch.
    pub patch: Option<Vec<u8>>,
    pub status: Value,
    pub warnings: Vec<String>,
    pub mode: String,
    pub decision: String,
    pub rules: String,
    pub would: String,
}

impl Reply {
    /// Reads a response; panics if the API server would reject, lose or misread any of it.
    pub fn read(answer: &HttpAnswer, question: &TestReview, endpoint: Endpoint) -> Self {
        let context = || format!("{question:?}\n{answer:?}");
        assert_eq!(answer.status, 200, "{}", context());
        assert_eq!(answer.header("content-type"), "application/json");
        let review = answer.json();
        assert_eq!(keys(&review), ["apiVersion", "kind", "response"]);
        assert_eq!((&review["apiVersion"], &review["kind"]), (&json!(question.version), &json!("AdmissionReview")));
        let response = &review["response"];
        assert_eq!(response["uid"], question.uid, "{}", context());
        for key in keys(response) {
            let known = ["uid", "allowed", "status", "patch", "patchType", "auditAnnotations", "warnings"];
            assert!(known.contains(&key.as_str()), "{key}");
        }
        let allowed = response["allowed"].as_bool().unwrap();
        let patch = patch(response, question, endpoint);
        assert_eq!(
            response.get("status").is_some(),
            !allowed,
            "a status comes with a denial, and only then: {}",
            context()
        );
        assert!(allowed || endpoint != Endpoint::Mutate, "/mutate never denies: {}", context());
        if !allowed {
            check_status(&response["status"]);
        }
        let annotations = &response["auditAnnotations"];
        let mut known = keys(annotations);
        known.retain(|key| endpoint != Endpoint::Status || !matches!(key.as_str(), "class" | "manager"));
        assert_eq!(known, ["decision", "mode", "rules", "would"], "{}", context());
        let annotation = |key: &str| annotations[key].as_str().unwrap().to_owned();
        let reply = Self {
            allowed,
            patch,
            status: response["status"].clone(),
            warnings: warnings(response),
            mode: annotation("mode"),
            decision: annotation("decision"),
            rules: annotation("rules"),
            would: annotation("would"),
        };
        assert!(["enforce", "audit"].contains(&reply.mode.as_str()), "{}", reply.mode);
        let decision = match (allowed, &reply.patch) {
            (false, _) => "deny",
            (true, Some(_)) => "patch",
            (true, None) => "allow",
        };
        assert_eq!(reply.decision, decision, "{}", context());
        reply
    }

    /// The object with the patch applied, as JSON text.
    pub fn applied_to(&self, object: &str) -> String {
        let Some(patch) = &self.patch else { return object.to_owned() };
        let patch: json_patch::Patch = serde_json::from_slice(patch).unwrap();
        let mut value: Value = serde_json::from_str(object).unwrap();
        json_patch::patch(&mut value, &patch).unwrap_or_else(|error| panic!("{error}: {patch} on {object}"));
        value.to_string()
    }

    /// The entries of `rules`: `rule=action`, none repeated.
    pub fn rule_list(&self) -> Vec<&str> {
        self.rules.split(',').filter(|word| !word.is_empty()).collect()
    }

    /// The causes of a denial: message and field.
    pub fn causes(&self) -> Vec<(&str, &str)> {
        let causes = self.status.pointer("/details/causes").and_then(Value::as_array);
        causes.map_or_else(Vec::new, |causes| {
            causes.iter().map(|cause| (cause["message"].as_str().unwrap(), cause["field"].as_str().unwrap())).collect()
        })
    }
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap_or_else(|| panic!("not an object: {value}")).keys().cloned().collect()
}

/// A patch comes with its type, and only where one is allowed; otherwise the API server fails the request.
fn patch(response: &Value, question: &TestReview, endpoint: Endpoint) -> Option<Vec<u8>> {
    let Some(patch) = response.get("patch") else {
        assert!(response.get("patchType").is_none(), "a type without a patch: {response}");
        return None;
    };
    assert_eq!(response["patchType"], "JSONPatch");
    assert_eq!(endpoint, Endpoint::Mutate, "a validating webhook has no patch");
    assert_ne!(question.operation, "DELETE");
    let bytes = STANDARD.decode(patch.as_str().expect("the patch is not base64")).unwrap();
    let operations: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
    assert!(!operations.is_empty(), "an empty patch is no patch");
    for operation in &operations {
        let path = operation["path"].as_str().unwrap();
        let is_ours = path == "/spec/config" || path == "/metadata" || path.starts_with("/metadata/annotations");
        assert!(is_ours, "a patch of {path}");
    }
    Some(bytes)
}

/// The client sees code, reason and causes unchanged.
fn check_status(status: &Value) {
    assert_eq!(status["status"], "Failure");
    let kind = (status["code"].as_u64().unwrap(), status["reason"].as_str().unwrap());
    assert!([(422, "Invalid"), (409, "Conflict"), (500, "InternalError")].contains(&kind), "{status}");
    assert!(!status["message"].as_str().unwrap().is_empty());
    if kind.0 == 500 {
        return;
    }
    let causes = status["details"]["causes"].as_array().unwrap();
    assert!(!causes.is_empty());
    for cause in causes {
        assert_eq!(keys(cause), ["field", "message", "reason"]);
        assert_eq!(cause["reason"], "FieldValueInvalid");
        assert!(!cause["message"].as_str().unwrap().chars().any(char::is_control), "{cause}");
    }
}

/// Warnings are sent in a header of limited size, and the API server silently drops those that do not fit.
fn warnings(response: &Value) -> Vec<String> {
    let Some(list) = response.get("warnings") else { return Vec::new() };
    let list: Vec<String> = serde_json::from_value(list.clone()).unwrap();
    assert!(!list.is_empty());
    for warning in &list {
        assert!(warning.chars().count() <= 120, "{warning}");
        assert!(!warning.chars().any(char::is_control), "{warning:?}");
        assert!(!warning.starts_with("Warning:") && !warning.trim().is_empty(), "{warning}");
    }
    assert!(list.iter().map(|warning| warning.chars().count()).sum::<usize>() <= 4096 - 256, "{list:?}");
    list
}
