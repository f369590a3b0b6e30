//! Protects the exempt label: it takes the webhooks away from a whole namespace, so only users who may do that in their configuration
//! may add it. Other label changes are not affected.

use serde_json::{Value, json};

use super::webhooks::Phase;
use super::{EXEMPT, NAME, named};

/// The name of the policy and of its binding.
const LABEL: &str = "nadmit-exempt-label";

/// The ValidatingAdmissionPolicy and its binding. Neither depends on an option: a wrong namespace in the expression would ask for a
/// permission that anybody may have.
pub(super) fn objects() -> Vec<Value> {
    let exempts = |object: &str| {
        format!(
            "has({object}.metadata.labels) && '{EXEMPT}' in {object}.metadata.labels && {object}.metadata.labels['{EXEMPT}'] == 'true'"
        )
    };
    // Other writes to a namespace are accepted without a permission check.
    let begins = format!("({}) && !(request.operation == 'UPDATE' && {})", exempts("object"), exempts("oldObject"));
    let may = format!(
        "authorizer.group('admissionregistration.k8s.io').resource('{}').name('{NAME}').check('update').allowed()",
        Phase::Validating.resource()
    );
    let message = format!(
        "the label {EXEMPT}=true disables nadmit for this namespace; only users who may update nadmit's {} may add it",
        Phase::Validating.kind()
    );
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": named(LABEL),
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    // Labels can be changed through each of these resources.
                    "resources": ["namespaces", "namespaces/status", "namespaces/finalize"],
                }] },
                "matchConditions": [{ "name": "begins-to-exempt", "expression": begins }],
                "validations": [{ "expression": may, "message": message, "reason": "Forbidden" }],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": named(LABEL),
            "spec": { "policyName": LABEL, "validationActions": ["Deny"] },
        }),
    ]
}
