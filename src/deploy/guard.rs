//! A backstop for the time nadmit is away, for those who let its webhooks fail open: the API server itself refuses a NAD with a
//! device plugin that names no resource.

use serde_json::{Value, json};

use super::conditions::{device, stays};
use super::webhooks::{everywhere_else, nads};
use super::{NAME, anywhere};
use crate::policy::Policy;
use crate::resources::RESOURCE_NAME;

/// The policy and its binding.
pub(super) fn objects() -> Vec<Value> {
    let message = format!(
        "a plugin in this NAD needs a device, and the annotation {RESOURCE_NAME} does not say which; pods would hang with \"VF pci \
         addr is required\""
    );
    let named = named("object");
    // Nobody is locked out of what was there before.
    let spoils = format!(
        "request.operation == 'CREATE' || !has(oldObject.spec) || object.spec != oldObject.spec || ({})",
        self::named("oldObject")
    );
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": anywhere(),
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": { "namespaceSelector": everywhere_else(), "resourceRules": [nads()] },
                "matchConditions": [
                    stays(),
                    device(&Policy::default()),
                    // A device that is fixed in the config needs no name.
                    { "name": "not-fixed", "expression": "!object.spec.config.lowerAscii().contains('deviceid')" },
                    { "name": "spoils", "expression": spoils },
                ],
                "validations": [{ "expression": named, "message": message, "reason": "Invalid" }],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": anywhere(),
            "spec": { "policyName": NAME, "validationActions": ["Deny"] },
        }),
    ]
}

/// Whether an object has the annotation.
fn named(object: &str) -> String {
    format!(
        "has({object}.metadata.annotations) && '{RESOURCE_NAME}' in {object}.metadata.annotations && \
         {object}.metadata.annotations['{RESOURCE_NAME}'] != ''"
    )
}
