//! Who may exempt a namespace: the label switches nadmit off for everything in it, so only somebody who may change nadmit's policy may
//! add it. Whoever may label their own namespace for other reasons is not affected.

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
    // Every other write to a namespace passes without a look at the writer's rights.
    let begins = format!("({}) && !(request.operation == 'UPDATE' && {})", exempts("object"), exempts("oldObject"));
    let may = format!(
        "authorizer.group('').resource('configmaps').namespace('{}').name('{POLICY}').check('update').allowed()",
        options.home.namespace
    );
    let message = format!(
        "the label {EXEMPT}=true switches nadmit off for this namespace; only somebody who may update nadmit's policy (the ConfigMap \
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
                    // Labels can be written through each of them.
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
