//! What a user may do, as the API server says it.
//!
//! Answers are kept for a short time, so that a writer that comes again and again costs one question; one that cannot be had is an
//! error, never a yes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Cluster, Failed, Written};
use crate::policy::Reference;
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP};

/// How long an answer is kept.
const LASTS: Duration = Duration::from_secs(10);
/// How many answers are kept.
const MOST: usize = 1024;
/// A question longer than this, by a user in very many groups, is asked each time.
const LONGEST: usize = 4096;

/// Something that a user may do or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'a> {
    verb: &'static str,
    group: &'static str,
    resource: &'a str,
    /// Empty: in all namespaces.
    namespace: &'a str,
    /// Empty: whatever it is called.
    name: &'a str,
}

impl<'a> Right<'a> {
    /// To create NADs in all namespaces: the operator needs it, and no tenant can grant it.
    pub(super) const RENDER: Right<'static> =
        Right { verb: "create", group: NAD_GROUP, resource: NADS, namespace: "", name: "" };

    /// To read what a finding would name.
    pub(super) fn to_read(reference: &'a Reference) -> Self {
        match reference {
            Reference::Network(id) => Self {
                verb: "get",
                group: NETWORK_GROUP,
                resource: id.kind.plural(),
                namespace: &id.namespace,
                name: &id.name,
            },
            Reference::NodePolicies => {
                let resource = "sriovnetworknodepolicies";
                Self { verb: "list", group: NETWORK_GROUP, resource, namespace: "", name: "" }
            }
        }
    }
}

/// A user, as the API server knows one.
#[derive(Clone, Debug)]
pub(super) struct User(Value);

impl User {
    /// As an AdmissionReview describes it; `None` where it describes none.
    pub(super) fn of_review(info: &str) -> Option<Self> {
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

    /// A ServiceAccount, with the groups that every one of them is in.
    pub(super) fn account(namespace: &str, name: &str) -> Self {
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

/// The answers of a short time.
#[derive(Debug, Default)]
pub(super) struct Rights(Mutex<HashMap<Box<str>, (Instant, bool)>>);

impl Rights {
    /// Whether a user may do something.
    pub(super) async fn may(&self, cluster: &Cluster, user: &User, right: &Right<'_>) -> Result<bool, Failed> {
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
        answers.get(question).filter(|(at, _)| now.duration_since(*at) < LASTS).map(|(_, answer)| *answer)
    }

    fn keep(&self, question: String, now: Instant, answer: bool) {
        if question.len() > LONGEST {
            return;
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST {
            answers.retain(|_, (at, _)| now.duration_since(*at) < LASTS);
        }
        if answers.len() >= MOST {
            answers.clear();
        }
        answers.insert(question.into(), (now, answer));
    }
}

impl Cluster {
    async fn is_allowed(&self, spec: Value) -> Result<bool, Failed> {
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec });
        match self.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await? {
            Written::Stored(answer) => {
                answer.pointer("/status/allowed").and_then(Value::as_bool).ok_or(Failed::Unexpected)
            }
            Written::Changed => Err(Failed::Unexpected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_for_a_short_time_and_not_without_end() {
        let (rights, start) = (Rights::default(), Instant::now());
        rights.keep("a".to_owned(), start, true);
        assert_eq!((rights.known("a", start), rights.known("b", start)), (Some(true), None));
        assert_eq!(rights.known("a", start + LASTS), None);
        for number in 0..3 * MOST {
            rights.keep(number.to_string(), start, false);
        }
        assert!(rights.0.lock().unwrap().len() <= MOST);
        rights.keep("x".repeat(LONGEST + 1), start, true);
        assert_eq!(rights.known(&"x".repeat(LONGEST + 1), start), None);
    }

    #[test]
    fn a_writer_is_asked_about_with_all_that_it_is() {
        let info = r#"{"username":"jane","uid":"7","groups":["a","b"],"extra":{"scopes":["x"]},"other":1}"#;
        let want = json!({ "user": "jane", "uid": "7", "groups": ["a", "b"], "extra": { "scopes": ["x"] } });
        assert_eq!(User::of_review(info).unwrap().0, want);
        assert_eq!(User::of_review(r#"{"username":"jane","groups":null}"#).unwrap().0, json!({ "user": "jane" }));
        for none in ["", "5", "{}", r#"{"username":""}"#, r#"{"username":5}"#, "[]"] {
            assert!(User::of_review(none).is_none(), "{none}");
        }
    }
}
