//! Permission checks (SubjectAccessReview) with a short-lived cache.
//!
//! Results are cached briefly, so that a frequent writer costs one request; a failed check is an error, never a yes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult};
use crate::policy::Reference;
use crate::resources::{DRA_DRIVER, NAD_GROUP, NADS, NETWORK_GROUP};

/// How long a result is cached.
const ANSWER_LIFETIME: Duration = Duration::from_secs(10);
/// How many results are cached.
const MAX_ANSWERS: usize = 1024;
/// Longer requests (users with very many groups) are not cached.
const MAX_QUESTION_BYTES: usize = 4096;

/// A permission.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct Permission<'a> {
    verb: &'static str,
    group: &'static str,
    resource: &'a str,
    /// Empty means all namespaces.
    namespace: &'a str,
    /// Empty means any name.
    name: &'a str,
}

impl<'a> Permission<'a> {
    /// To create NADs in all namespaces: the operator needs it, and no tenant can grant it.
    pub(in crate::cluster) const RENDER: Permission<'static> =
        Permission { verb: "create", group: NAD_GROUP, resource: NADS, namespace: "", name: "" };

    /// To list pods in all namespaces.
    const LIST_PODS: Permission<'static> =
        Permission { verb: "list", group: "", resource: "pods", namespace: "", name: "" };

    /// To read what a finding would name.
    pub(in crate::cluster) fn to_read(reference: &'a Reference) -> Self {
        match reference {
            Reference::Network(id) => Self {
                verb: "get",
                group: NETWORK_GROUP,
                resource: id.kind.plural(),
                namespace: &id.namespace,
                name: &id.name,
            },
            Reference::Nad(key) => {
                Self { verb: "get", group: NAD_GROUP, resource: NADS, namespace: key.namespace(), name: key.name() }
            }
            Reference::NodePolicies => {
                let resource = ApiResource::NODE_POLICIES.plural();
                Self { verb: "list", group: NETWORK_GROUP, resource, namespace: "", name: "" }
            }
            Reference::Pods(namespace) => Self { namespace, ..Self::LIST_PODS },
            Reference::AllPods => Self::LIST_PODS,
            Reference::DeviceAttributes => {
                let resource = ApiResource::DEVICE_ATTRIBUTES.plural();
                Self { verb: "list", group: DRA_DRIVER, resource, namespace: "", name: "" }
            }
        }
    }
}

/// UserInfo info for an access review.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct UserInfo(Value);

impl UserInfo {
    /// From an AdmissionReview; `None` if it has none.
    pub(in crate::cluster) fn of_review(info: &str) -> Option<Self> {
        let mut info: Value = serde_json::from_str(info).ok()?;
        let name = info.get("username").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let mut spec = json!({ "user": name });
        for key in ["uid", "groups", "extra"] {
            if let (Some(value), Some(spec)) =
                (info.get_mut(key).filter(|value| !value.is_null()), spec.as_object_mut())
            {
                spec.insert(key.to_owned(), value.take());
            }
        }
        Some(Self(spec))
    }

    /// A ServiceAccount, with its implicit groups.
    pub(in crate::cluster) fn account(namespace: &str, name: &str) -> Self {
        Self(json!({
            "user": format!("system:serviceaccount:{namespace}:{name}"),
            "groups": [
                "system:serviceaccounts",
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ],
        }))
    }
}

/// The cached results.
#[derive(Debug, Default)]
pub(in crate::cluster) struct PermissionCache(Mutex<HashMap<Box<str>, (Instant, bool)>>);

impl PermissionCache {
    /// Whether a user may do something.
    pub(in crate::cluster) async fn may(
        &self,
        cluster: &Cluster,
        user: &UserInfo,
        right: &Permission<'_>,
    ) -> Result<bool, ApiError> {
        let mut spec = user.0.clone();
        let attributes = json!({
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "namespace": right.namespace,
            "name": right.name,
        });
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("resourceAttributes".to_owned(), attributes);
        }
        let question = spec.to_string();
        if let Some(answer) = self.known(&question, Instant::now()) {
            return Ok(answer);
        }
        let answer = cluster.is_allowed(spec).await?;
        self.keep(question, Instant::now(), answer);
        Ok(answer)
    }

    fn known(&self, question: &str, now: Instant) -> Option<bool> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(question).filter(|(at, _)| now.duration_since(*at) < ANSWER_LIFETIME).map(|(_, answer)| *answer)
    }

    fn keep(&self, question: String, now: Instant, answer: bool) {
        if question.len() > MAX_QUESTION_BYTES {
            return;
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, (at, _)| now.duration_since(*at) < ANSWER_LIFETIME);
        }
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(question.into(), (now, answer));
    }
}

impl Cluster {
    async fn is_allowed(&self, spec: Value) -> Result<bool, ApiError> {
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec });
        match self.create(&ApiPath::all(ApiResource::ACCESS_REVIEWS), &review).await? {
            WriteResult::Stored(answer) => {
                answer.pointer("/status/allowed").and_then(Value::as_bool).ok_or(ApiError::Unexpected)
            }
            WriteResult::Changed => Err(ApiError::Unexpected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_cache_expires_and_is_bounded() {
        let (permissions, start) = (PermissionCache::default(), Instant::now());
        permissions.keep("a".to_owned(), start, true);
        assert_eq!((permissions.known("a", start), permissions.known("b", start)), (Some(true), None));
        assert_eq!(permissions.known("a", start + ANSWER_LIFETIME), None);
        for number in 0..3 * MAX_ANSWERS {
            permissions.keep(number.to_string(), start, false);
        }
        assert!(permissions.0.lock().unwrap().len() <= MAX_ANSWERS);
        permissions.keep("x".repeat(MAX_QUESTION_BYTES + 1), start, true);
        assert_eq!(permissions.known(&"x".repeat(MAX_QUESTION_BYTES + 1), start), None);
    }

    #[test]
    fn access_review_carries_groups_and_extra() {
        let info = r#"{"username":"jane","uid":"7","groups":["a","b"],"extra":{"scopes":["x"]},"other":1}"#;
        let want = json!({ "user": "jane", "uid": "7", "groups": ["a", "b"], "extra": { "scopes": ["x"] } });
        assert_eq!(UserInfo::of_review(info).unwrap().0, want);
        assert_eq!(UserInfo::of_review(r#"{"username":"jane","groups":null}"#).unwrap().0, json!({ "user": "jane" }));
        for none in ["", "5", "{}", r#"{"username":""}"#, r#"{"username":5}"#, "[]"] {
            assert!(UserInfo::of_review(none).is_none(), "{none}");
        }
    }
}
