//! The variable part of the backstop: what nadmit derives from the policy in force and writes into annotations of its
//! ValidatingWebhookConfiguration, which the static policies take as their parameter.
//!
//! The policies themselves are never rewritten, so that GitOps tools that ship them have nothing to revert.

use std::fmt::Write;

use jiff::civil::Date;

use super::super::conditions::spelled;
use crate::policy::rules::nad_device::{MALFORMED, MISSING};
use crate::policy::rules::rendering::RENDER_UNSAFE;
use crate::policy::{Dra, FailurePolicy, Policy, Rule};
use crate::resources::{NADS, NetworkKind};

/// The verdicts on incomplete NADs, by namespace.
pub(super) const NAD_VERDICTS: &str = "backstop.nadmit.io/nads";
/// The verdicts on template injection, by namespace.
pub(super) const NETWORK_VERDICTS: &str = "backstop.nadmit.io/networks";
/// The users that are never denied anything, one per line.
pub(super) const USERS: &str = "backstop.nadmit.io/exempt-users";
/// The objects that an exception of the policy names: `<resource> <namespace>/<name>`, one per line.
pub(super) const EXCEPTIONS: &str = "backstop.nadmit.io/exceptions";
/// The plugins that need a device, one per line.
pub(super) const PLUGINS: &str = "backstop.nadmit.io/device-plugins";
/// The same as a regular expression that matches each of them in every spelling that JSON allows.
pub(super) const PLUGIN_PATTERN: &str = "backstop.nadmit.io/device-plugin-pattern";

/// All annotations of an object together may have 256 KiB; a write with more would fail, and nadmit would not be registered.
const MAX_BYTES: usize = 128 * 1024;

/// The annotations that hold the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Key and value of each.
    pub annotations: Vec<(&'static str, String)>,
    /// False where the policy has more than fits: then the backstop denies nothing.
    pub fits: bool,
}

impl Parameters {
    /// The parameters for a policy. `has_dra_driver`: whether the cluster has a DeviceClass of the SR-IOV DRA driver.
    pub fn of(policy: &Policy, today: Date, has_dra_driver: bool) -> Self {
        let nads = |namespace: &str| nad_verdict(policy, namespace, has_dra_driver);
        let networks = |namespace: &str| network_verdict(policy, namespace);
        let users = policy.exempt.users.iter().filter(|user| !user.contains('\n')).cloned();
        let kinds: Vec<&str> = policy.device_kinds().filter(|kind| !kind.contains('\n')).collect();
        let pattern: Vec<String> = kinds.iter().map(|kind| spelled(kind, false)).collect();
        let annotations = vec![
            (NAD_VERDICTS, verdicts(policy, nads)),
            (NETWORK_VERDICTS, verdicts(policy, networks)),
            (USERS, users.collect::<Vec<_>>().join("\n")),
            (EXCEPTIONS, exceptions(policy, today).join("\n")),
            (PLUGINS, kinds.join("\n")),
            (PLUGIN_PATTERN, pattern.join("|")),
        ];
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        let fits = size <= MAX_BYTES;
        let nothing =
            |key| (key, if [NAD_VERDICTS, NETWORK_VERDICTS].contains(&key) { "pass:*" } else { "" }.to_owned());
        let annotations =
            if fits { annotations } else { annotations.into_iter().map(|(key, _)| nothing(key)).collect() };
        Self { annotations, fits }
    }
}

/// The verdict on an incomplete NAD in a namespace.
///
/// If the webhook that completes NADs fails closed, the API server denies every NAD with a device plugin while nadmit is down,
/// and nadmit judges, counts and explains them while it is up: the backstop is then not needed.
fn nad_verdict(policy: &Policy, namespace: &str, has_dra_driver: bool) -> &'static str {
    if policy.failure_of_repairs() == FailurePolicy::Fail || !policy.denies(&MISSING, namespace) {
        return "pass";
    }
    match policy.scope(namespace).dra() {
        Dra::Allow => "warn",
        Dra::Auto if has_dra_driver => "warn",
        // An empty annotation violates another rule, which may be disabled.
        _ if policy.denies(&MALFORMED, namespace) => "deny",
        _ => "deny-absent",
    }
}

fn network_verdict(policy: &Policy, namespace: &str) -> &'static str {
    let is_closed = policy.failure_policy.validate_networks == Some(FailurePolicy::Fail);
    if policy.denies(&RENDER_UNSAFE, namespace) && !is_closed { "deny" } else { "pass" }
}

/// One line `<verdict>:<pattern>` for each pattern of namespaces that the policy names. The first line that matches a namespace
/// decides: names stand before patterns, and longer patterns before shorter ones.
fn verdicts(policy: &Policy, of: impl Fn(&str) -> &'static str) -> String {
    let named = policy.namespaces.iter().flat_map(|entry| &entry.names).chain(&policy.exempt.namespaces);
    let can_match = |pattern: &&str| {
        let start = pattern.strip_suffix('*').unwrap_or(pattern);
        start.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let mut patterns: Vec<&str> = named.map(String::as_str).filter(can_match).chain(["*"]).collect();
    patterns.sort_unstable_by_key(|pattern| (pattern.ends_with('*'), std::cmp::Reverse(pattern.len()), *pattern));
    patterns.dedup();
    let mut lines = String::new();
    for pattern in patterns {
        let verdict = match pattern.strip_suffix('*') {
            // A namespace that begins like this, and that no longer pattern and no name matches.
            Some(start) => of(&format!("{start}\0")),
            None => of(pattern),
        };
        let separator = if lines.is_empty() { "" } else { "\n" };
        let _ = write!(lines, "{separator}{verdict}:{pattern}");
    }
    lines
}

/// The exceptions that hold today. While nadmit is down they do not expire: CEL has no current date.
fn exceptions(policy: &Policy, today: Date) -> Vec<String> {
    let mut lines = Vec::new();
    for exception in policy.exceptions.iter().filter(|exception| today <= exception.expires) {
        let is_of = |rule: &Rule| exception.rule == rule.id;
        let covers = |kind: &str| exception.kind.as_deref().is_none_or(|only| only == kind);
        let mut resources: Vec<&str> = Vec::new();
        if is_of(&MISSING) && covers("NetworkAttachmentDefinition") {
            resources.push(NADS);
        }
        if is_of(&RENDER_UNSAFE) {
            resources.extend(NetworkKind::ALL.into_iter().filter(|kind| covers(kind.name())).map(NetworkKind::plural));
        }
        let place = format!("{}/{}", exception.namespace, exception.name);
        if !place.contains(char::is_whitespace) {
            lines.extend(resources.into_iter().map(|resource| format!("{resource} {place}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: &str, has_dra_driver: bool) -> Parameters {
        Parameters::of(&Policy::parse(policy).unwrap(), jiff::civil::date(2026, 11, 17), has_dra_driver)
    }

    fn value<'p>(parameters: &'p Parameters, key: &str) -> &'p str {
        &parameters.annotations.iter().find(|(known, _)| *known == key).unwrap().1
    }

    /// The verdict that the admission policies read from the lines.
    fn read<'v>(lines: &'v str, namespace: &str) -> &'v str {
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => namespace.starts_with(start),
            None => pattern == namespace,
        };
        let mut lines = lines.lines().map(|line| line.split_once(':').unwrap());
        lines.find(|(_, pattern)| matches(pattern)).unwrap().0
    }

    const OPEN: &str = "failurePolicy: {mutateNads: Ignore}\n";

    #[test]
    fn backstop_denies_only_where_the_rule_denies() {
        let policy = format!(
            "{OPEN}namespaces:
- {{names: [lab*], mode: audit}}
- {{names: [lab-strict*, lab], mode: enforce}}
- {{names: [claims], dra: allow}}
- {{names: [devices], dra: deny}}
- {{names: [mild, lab-mild], rules: {{nad/resource-name-missing: warn, network/render-unsafe: audit}}}}
- {{names: [empty], rules: {{nad/resource-name-malformed: warn}}}}
exempt: {{namespaces: [free, \"free-*\"]}}
"
        );
        for has_dra_driver in [false, true] {
            let parameters = of(&policy, has_dra_driver);
            let usual = if has_dra_driver { "warn" } else { "deny" };
            for (namespace, nads, networks) in [
                ("apps", usual, "deny"),
                ("lab", usual, "deny"),
                ("labs", "pass", "pass"),
                ("lab-strict", usual, "deny"),
                ("lab-strict-2", usual, "deny"),
                ("lab-mild", "pass", "pass"),
                ("claims", "warn", "deny"),
                ("devices", "deny", "deny"),
                ("mild", "pass", "pass"),
                ("empty", if has_dra_driver { "warn" } else { "deny-absent" }, "deny"),
                ("free", "pass", "pass"),
                ("free-1", "pass", "pass"),
                ("freed", usual, "deny"),
            ] {
                assert_eq!(read(value(&parameters, NAD_VERDICTS), namespace), nads, "{namespace} {has_dra_driver}");
                assert_eq!(read(value(&parameters, NETWORK_VERDICTS), namespace), networks, "{namespace}");
            }
        }
    }

    /// The lines give the same verdict as the policy, for all its patterns.
    #[test]
    fn parameter_lines_match_the_policy() {
        let names = ["a", "a*", "ab", "ab*", "abc*", "b*", "*", "c-"];
        let policies = names.iter().flat_map(|first| names.iter().map(move |second| (first, second)));
        for (first, second) in policies {
            let text = format!(
                "{OPEN}namespaces: [{{names: [{first:?}], mode: audit}}, {{names: [{second:?}], mode: enforce}}]\nexempt: {{namespaces: [abd]}}"
            );
            let policy = Policy::parse(&text).unwrap();
            let lines = value(&of(&text, false), NAD_VERDICTS).to_owned();
            for namespace in ["a", "ab", "abc", "abcd", "abd", "b", "ba", "c", "x", "a-b"] {
                let denies = policy.denies(&MISSING, namespace);
                assert_eq!(read(&lines, namespace) == "deny", denies, "{namespace}: {text}\n{lines}");
            }
        }
    }

    #[test]
    fn backstop_passes_where_the_webhook_fails_closed() {
        assert_eq!(value(&of("{}", false), NAD_VERDICTS), "pass:*");
        assert_eq!(value(&of("{}", false), NETWORK_VERDICTS), "deny:*");
        assert_eq!(value(&of(OPEN, false), NAD_VERDICTS), "deny:*");
        assert_eq!(value(&of("failurePolicy: {validateNetworks: Fail}", false), NETWORK_VERDICTS), "pass:*");
        assert_eq!(value(&of("mode: audit", false), NAD_VERDICTS), "pass:*");
    }

    #[test]
    fn exceptions_hold_until_they_expire() {
        let exception = |rule: &str, more: &str, expires: &str| {
            format!("- {{rule: {rule}, namespace: legacy, name: old, reason: r, expires: {expires}{more}}}\n")
        };
        let all = [
            exception("nad/resource-name-missing", "", "2026-11-17"),
            exception("nad/resource-name-missing", ", kind: SriovNetwork", "2027-01-01"),
            exception("network/render-unsafe", ", kind: OVSNetwork", "2027-01-01"),
            exception("network/render-unsafe", ", kind: SriovNetwork", "2026-11-16"),
            exception("sriov/vlan", "", "2027-01-01"),
        ];
        let parameters = of(&format!("exceptions:\n{}", all.concat()), false);
        assert_eq!(value(&parameters, EXCEPTIONS), "network-attachment-definitions legacy/old\novsnetworks legacy/old");
    }

    #[test]
    fn too_many_parameters_disable_the_backstop() {
        let parameters =
            of("{devicePlugins: [my-sriov], exempt: {users: [\"system:serviceaccount:backup:*\", a b]}}", false);
        assert_eq!(value(&parameters, PLUGINS), "sriov\nib-sriov\nmy-sriov");
        assert_eq!(value(&parameters, USERS), "system:serviceaccount:backup:*\na b");
        assert!(parameters.fits);
        let names: Vec<String> = (0..10_000).map(|number| format!("namespace-{number}")).collect();
        let parameters = of(&format!("{OPEN}namespaces: [{{names: [{}], mode: audit}}]", names.join(", ")), false);
        assert!(!parameters.fits);
        assert_eq!(value(&parameters, NAD_VERDICTS), "pass:*");
        assert_eq!(value(&parameters, NETWORK_VERDICTS), "pass:*");
    }
}
