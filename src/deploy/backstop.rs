//! The backstop: what the API server itself denies, also while nadmit is down and its webhooks fail open. Incomplete NADs and template
//! injection are denied, and nothing else.
//!
//! The policies are static. What depends on nadmit's policy (modes, exemptions, exceptions, plugins) comes as a parameter: annotations
//! of nadmit's ValidatingWebhookConfiguration, which the API server watches anyway. Without that object or without its annotations
//! nothing is denied.

mod nads;
mod networks;
mod parameters;

use serde_json::{Value, json};

use super::conditions::not_deletion_progress;
use super::webhooks::{Phase, namespace_selector};
use super::{NAME, named};
pub use parameters::Parameters;
use parameters::{EXCEPTIONS, USERS};

/// The policies and their bindings.
pub(super) fn objects() -> Vec<Value> {
    [nads::denied(), nads::warned(), networks::denied()].into_iter().flat_map(Backstop::objects).collect()
}

/// A ValidatingAdmissionPolicy and its binding.
struct Backstop {
    /// The name of both.
    name: String,
    /// The matched resources.
    rule: Value,
    /// The parameter with the verdicts by namespace.
    verdicts: &'static str,
    /// The verdicts with which it applies, as a list in CEL.
    applies_to: String,
    /// More conditions.
    conditions: Vec<Value>,
    variables: Vec<Value>,
    validations: Vec<Value>,
    /// The validation actions.
    actions: &'static [&'static str],
}

impl Backstop {
    fn objects(self) -> [Value; 2] {
        let applies = format!("{} && {} in {}", given(self.verdicts), verdict(self.verdicts), self.applies_to);
        let mut conditions = vec![
            not_deletion_progress(),
            json!({ "name": "applies", "expression": applies }),
            json!({ "name": "no-exempt-user", "expression": no_exempt_user() }),
            json!({ "name": "no-exception", "expression": no_exception() }),
        ];
        conditions.extend(self.conditions);
        let mut policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": named(&self.name),
            "spec": {
                "failurePolicy": "Ignore",
                "paramKind": { "apiVersion": "admissionregistration.k8s.io/v1", "kind": Phase::Validating.kind() },
                "matchConstraints": { "namespaceSelector": namespace_selector(), "resourceRules": [self.rule] },
                "matchConditions": conditions,
                "validations": self.validations,
            },
        });
        if let (false, Some(spec)) = (self.variables.is_empty(), policy.get_mut("spec")) {
            super::set(spec, "variables", self.variables.into());
        }
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": named(&self.name),
            "spec": {
                "policyName": self.name,
                "paramRef": { "name": NAME, "parameterNotFoundAction": "Allow" },
                "validationActions": self.actions,
            },
        });
        [policy, binding]
    }
}

/// The lines of a parameter, in CEL.
fn lines(parameter: &str) -> String {
    format!("params.metadata.annotations['{parameter}'].split('\\n')")
}

/// Whether a parameter exists, in CEL.
fn given(parameter: &str) -> String {
    format!("has(params.metadata.annotations) && '{parameter}' in params.metadata.annotations")
}

/// The verdict on the namespace of the request, in CEL: the first line that matches it decides.
fn verdict(parameter: &str) -> String {
    format!(
        "{}.filter(line, line.endsWith('*') ? request.namespace.startsWith(line.substring(line.indexOf(':') + 1, line.size() - 1)) : \
         line.substring(line.indexOf(':') + 1) == request.namespace)[0].split(':')[0]",
        lines(parameter)
    )
}

fn no_exempt_user() -> String {
    format!(
        "!({}) || !{}.exists(user, user.endsWith('*') ? request.userInfo.username.startsWith(user.substring(0, user.size() - 1)) : \
         user == request.userInfo.username)",
        given(USERS),
        lines(USERS)
    )
}

fn no_exception() -> String {
    format!(
        "!({}) || !((request.resource.resource + ' ' + request.namespace + '/' + object.metadata.name) in {})",
        given(EXCEPTIONS),
        lines(EXCEPTIONS)
    )
}
