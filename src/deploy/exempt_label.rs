//! Protects the exempt label: it disables nadmit for a whole namespace, so only users who may change nadmit's policy may add it.
//! Other label changes are not affected.

use serde_json::{Value, json};

use super::{EXEMPT, Options, POLICY, named};

/// The name of the policy and of its binding.
const LABEL: &str = "nadmit-exempt-label";

/// The ValidatingAdmissionPolicy and its binding.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    let exempts = |object: &str| {
        format!(
            "has({object}.metadata.labels) && '{EXEMPT}' in {object}.metadata.labels && {object}.metadata.labels['{EXEMPT}'] == 'true'"
        )
    };
    // Other writes to a namespace are accepted without a permission check.
    let begins = format!("({}) && !(request.operation == 'UPDATE' && {})", exempts("object"), exempts("oldObject"));
    let may = format!(
        "authorizer.group('').resource('configmaps').namespace('{}').name('{POLICY}').check('update').allowed()",
        options.home.namespace
    );
    let message = format!(
        "the label {EXEMPT}=true disables nadmit for this namespace; only users who may update nadmit's policy (the ConfigMap \
         {POLICY}) may add it"
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
