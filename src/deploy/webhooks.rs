//! The webhook configurations: which writes are reviewed, and what happens while nadmit is unavailable.

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::conditions::{
    changes, changes_or_wedged, device, may_patch, no_device, not_deleting_status, not_deletion_progress, ovn, wedged,
};
use super::pods::{annotated, changes_pods, no_collector};
use super::{EXCLUDED_NAMESPACE, EXEMPT, NAME, ServiceRef, cluster_metadata, labels, set};
use crate::policy::{FailurePolicy, Policy};
use crate::resources::{NAD_GROUP, NADS, NETWORK_GROUP, NODE_POLICIES, NetworkKind};

/// The entry for writes to statuses.
const STATUS: &str = "status";
/// The judged parts of a NAD.
const JUDGED_FIELDS: [&str; 3] = ["spec", "metadata.annotations", "metadata.ownerReferences"];
/// The entry for pods, and for what makes them.
const PODS: &str = "pods";
/// The entry for NADs that are deleted while pods use them.
const IN_USE: &str = "nads-in-use";
/// The longest the API server waits for an answer.
const TIMEOUT_SECONDS: u32 = 5;
/// The same where an answer can only warn: a pod must not wait for it.
const WARNING_TIMEOUT_SECONDS: u32 = 2;
const DELETION_TIMEOUT_SECONDS: u32 = 1;

/// The resources of both configurations, as in RBAC rules.
pub(super) const CONFIGURATIONS: [&str; 2] = [Phase::Mutating.resource(), Phase::Validating.resource()];

/// How the API server reaches nadmit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its Service.
    pub home: ServiceRef,
    /// Where replicas outside the Service network reach the Service, for example if it is an external name.
    pub at: Option<SocketAddr>,
    /// The token at the end of every path, which only the API server and nadmit know.
    pub token: Option<String>,
}

impl Address {
    /// The Service's name, as its certificate has it.
    pub fn name(&self) -> String {
        format!("{}.{}.svc", self.home.service, self.home.namespace)
    }

    /// A path, with the token.
    pub fn path(&self, path: &str) -> String {
        self.token.as_ref().map_or_else(|| path.to_owned(), |token| format!("{path}/{token}"))
    }

    /// The Service's port.
    pub fn port(&self) -> u16 {
        self.at.map_or(443, |at| at.port())
    }
}

/// One of the two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Mutation.
    Mutating,
    /// Validation.
    Validating,
}

impl Phase {
    /// Both, in the order of a request.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// The kind of its configuration.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The resource of its configuration, as in RBAC rules.
    pub(super) const fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }
}

/// The configuration of a phase as in the manifests: without the key `webhooks`, which nadmit fills in. No tool that applies the
/// manifest owns that key, so none removes it, and nadmit needs no permission to create configurations.
pub(super) fn empty_configuration(phase: Phase) -> Value {
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": phase.kind(), "metadata": cluster_metadata() })
}

/// The configuration of a phase. The bundle is PEM. All API server defaults are explicit, so that the stored object can be
/// compared.
pub fn configuration(phase: Phase, address: &Address, policy: &Policy, bundle: &str) -> Value {
    let entry = |name: &str, what: Value, failure: FailurePolicy, conditions: Value| {
        let (path, rules) = match phase {
            _ if name == STATUS => ("/status", what),
            _ if name == PODS => ("/pods", what),
            _ if name == IN_USE => ("/in-use", json!([what])),
            Phase::Mutating => ("/mutate", json!([what])),
            Phase::Validating => ("/validate", json!([what])),
        };
        let mut entry = json!({
            "name": format!("{name}.nadmit.io"),
            "clientConfig": client(address, path, bundle),
            "rules": rules,
            "failurePolicy": failure.name(),
            "matchConditions": conditions,
            "matchPolicy": "Equivalent",
            "namespaceSelector": namespace_selector(),
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": match name {
                PODS => WARNING_TIMEOUT_SECONDS,
                IN_USE => DELETION_TIMEOUT_SECONDS,
                _ => TIMEOUT_SECONDS,
            },
            "admissionReviewVersions": ["v1"],
        });
        if phase == Phase::Mutating {
            // Later changes of a status by others do not concern its writer.
            let again = if name == STATUS { "Never" } else { "IfNeeded" };
            set(&mut entry, "reinvocationPolicy", again.into());
        }
        entry
    };
    let failure = &policy.failure_policy;
    let or_ignore = |chosen: Option<FailurePolicy>| chosen.unwrap_or(FailurePolicy::Ignore);
    let webhooks = match phase {
        Phase::Mutating => {
            let mut entries = vec![
                entry("nads", nads(), policy.failure_of_repairs(), json!([not_deletion_progress(), device(policy)])),
                entry("ovn-nads", nads(), FailurePolicy::Ignore, json!([not_deletion_progress(), ovn()])),
                entry(
                    "networks",
                    networks(),
                    or_ignore(failure.mutate_networks),
                    json!([not_deletion_progress(), wedged()]),
                ),
            ];
            if !policy.status.resources.is_empty() {
                entries.push(entry(
                    STATUS,
                    statuses(policy),
                    or_ignore(failure.status),
                    json!([not_deleting_status(), may_patch()]),
                ));
            }
            entries
        }
        Phase::Validating => {
            let mut entries = vec![
                entry(
                    "nads",
                    nads(),
                    policy.failure_of_judgements(),
                    json!([not_deletion_progress(), changes(&JUDGED_FIELDS), device(policy)]),
                ),
                entry(
                    "other-nads",
                    nads(),
                    FailurePolicy::Ignore,
                    json!([not_deletion_progress(), changes(&JUDGED_FIELDS), no_device(policy)]),
                ),
                entry(
                    "networks",
                    networks(),
                    or_ignore(failure.validate_networks),
                    json!([not_deletion_progress(), changes_or_wedged()]),
                ),
                // Nothing about a node policy is more than a warning, so no failure may block one.
                entry(
                    "node-policies",
                    rule(NETWORK_GROUP, &[NODE_POLICIES]),
                    FailurePolicy::Ignore,
                    json!([not_deletion_progress(), changes(&["spec"])]),
                ),
            ];
            if policy.pods.is_on() {
                let conditions = json!([annotated(), changes_pods()]);
                entries.push(entry(PODS, super::pods::workloads(), FailurePolicy::Ignore, conditions));
                let conditions = json!([no_collector()]);
                entries.push(entry(IN_USE, super::pods::deleted_nads(), FailurePolicy::Ignore, conditions));
            }
            entries
        }
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": phase.kind(),
        "metadata": { "name": NAME, "labels": labels() },
        "webhooks": webhooks,
    })
}

/// The selector of reviewed namespaces: without `kube-system` and exempt namespaces.
pub(super) fn namespace_selector() -> Value {
    json!({ "matchExpressions": [
        { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [EXCLUDED_NAMESPACE] },
        { "key": EXEMPT, "operator": "NotIn", "values": ["true"] },
    ] })
}

/// Writes of NADs.
pub(super) fn nads() -> Value {
    rule(NAD_GROUP, &[NADS])
}

pub(super) fn networks() -> Value {
    rule(NETWORK_GROUP, &NetworkKind::ALL.map(NetworkKind::plural))
}

/// Writes to guarded statuses: in the mutating phase, because only there the client's own resourceVersion is visible.
fn statuses(policy: &Policy) -> Value {
    let rule = |(group, resources): (&str, Vec<&str>)| {
        let resources: Vec<String> = resources.iter().map(|resource| format!("{resource}/status")).collect();
        json!({
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["UPDATE"],
            "resources": resources,
            "scope": "*",
        })
    };
    policy.status.by_group().into_iter().map(rule).collect()
}

fn rule(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": "Namespaced",
    })
}

fn client(address: &Address, path: &str, bundle: &str) -> Value {
    let ServiceRef { namespace, service } = &address.home;
    json!({
        "caBundle": BASE64_STANDARD.encode(bundle),
        "service": { "namespace": namespace, "name": service, "path": address.path(path), "port": address.port() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(policy: &str) -> Vec<(Phase, Value)> {
        let policy = Policy::parse(policy).unwrap();
        let home = ServiceRef { namespace: "n".to_owned(), service: "s".to_owned() };
        let address = Address { home, at: None, token: Some("t".to_owned()) };
        let of = |phase| configuration(phase, &address, &policy, "PEM")["webhooks"].as_array().unwrap().clone();
        Phase::ALL.iter().flat_map(|phase| of(*phase).into_iter().map(|entry| (*phase, entry))).collect()
    }

    #[test]
    fn every_webhook_entry_has_the_required_settings() {
        for (phase, entry) in entries("{}") {
            let rule = &entry["rules"][0];
            let is_status = entry["name"] == "status.nadmit.io";
            let (operations, part) =
                if is_status { (json!(["UPDATE"]), "/status") } else { (json!(["CREATE", "UPDATE"]), "") };
            assert_eq!(rule["operations"], operations);
            let resources = rule["resources"].as_array().unwrap();
            let is_plain = |resource: &Value| {
                let name = resource.as_str().unwrap().strip_suffix(part).unwrap();
                !name.contains(['*', '/'])
            };
            assert!(resources.iter().all(is_plain), "{rule}");
            assert_eq!(
                entry["matchConditions"][0],
                if is_status { not_deleting_status() } else { not_deletion_progress() }
            );
            assert_eq!((&entry["matchPolicy"], &entry["sideEffects"]), (&json!("Equivalent"), &json!("None")));
            assert!(entry["timeoutSeconds"].as_u64().unwrap() <= 5);
            assert_eq!(entry["reinvocationPolicy"] == "IfNeeded", phase == Phase::Mutating && !is_status);
            assert_eq!(entry["clientConfig"]["caBundle"], "UEVN");
            assert!(entry["clientConfig"]["service"]["path"].as_str().unwrap().ends_with("/t"));
            assert!(entry["namespaceSelector"].to_string().contains("kube-system"));
            assert!(entry["namespaceSelector"].to_string().contains(EXEMPT));
        }
    }

    #[test]
    fn only_reviews_of_device_nads_fail_closed() {
        let failing = |policy: &str| {
            let fails = entries(policy).into_iter().filter(|(_, entry)| entry["failurePolicy"] == "Fail");
            fails.map(|(phase, entry)| format!("{phase:?} {}", entry["name"].as_str().unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(failing("{}"), ["Mutating nads.nadmit.io", "Validating nads.nadmit.io"]);
        assert_eq!(failing("mode: audit"), [] as [&str; 0]);
        let all = "{mutateNads: Fail, validateNads: Fail, mutateNetworks: Fail, validateNetworks: Fail, status: Fail}";
        let fails = failing(&format!("failurePolicy: {all}"));
        assert_eq!(fails.len(), 5);
        assert!(!fails.iter().any(|name| name.contains("other") || name.contains("node-policies")), "{fails:?}");
    }

    #[test]
    fn status_webhook_follows_the_policy() {
        let of = |policy: &str| {
            let mut entries = entries(policy).into_iter().filter(|(_, entry)| entry["name"] == "status.nadmit.io");
            entries.next().map(|(phase, entry)| {
                assert_eq!((phase, &entry["clientConfig"]["service"]["path"]), (Phase::Mutating, &json!("/status/t")));
                assert!(entry["matchConditions"].to_string().contains("check('patch').allowed()"));
                entry["rules"].clone()
            })
        };
        assert_eq!(of("{}").unwrap()[0]["resources"].as_array().unwrap().len(), 7);
        let two = of("status: {resources: {b.io/plans: {}, a.io/x: {}, b.io/notes: {}}}").unwrap();
        assert_eq!((&two[0]["apiGroups"], &two[0]["resources"]), (&json!(["a.io"]), &json!(["x/status"])));
        assert_eq!(
            (&two[1]["apiGroups"], &two[1]["resources"]),
            (&json!(["b.io"]), &json!(["notes/status", "plans/status"]))
        );
        assert_eq!(of("status: {resources: {}}"), None);
    }
}
