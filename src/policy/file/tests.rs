//! What a policy file may say, and how a wrong one is reported.

use super::*;
use crate::policy::Reports;

fn error(text: &str) -> String {
    Policy::parse(text).unwrap_err().to_string()
}

#[test]
fn empty_file_is_the_default_policy() {
    for text in ["", "# nothing\n", "---\n", "{}", "null"] {
        assert_eq!(Policy::parse(text).unwrap(), Policy::default(), "{text:?}");
    }
    assert_eq!(Policy::default().mode_in("apps"), Mode::Enforce);
}

/// YAML reads it as false.
#[test]
fn off_needs_no_quotes() {
    for off in ["off", "'off'", "false"] {
        let policy = Policy::parse(&format!("rules: {{nad/unknown-key: {off}}}\naudit: {{reports: {off}}}\n")).unwrap();
        assert_eq!((policy.rules["nad/unknown-key"], policy.audit.reports), (Action::Off, Reports::Off), "{off}");
    }
}

#[test]
fn wrong_files_are_reported_with_their_line() {
    // (file, error)
    let table = [
        ("mode: audit\nrules: [\n", "line 2, column 8: did not find expected node content"),
        ("rules: [a\n", "line 1, column 8: did not find expected ',' or ']'"),
        ("rule: {}\n", "line 1: `rule`: there is no such key; did you mean `rules`?"),
        ("mode: audit\n---\nmode: audit\n", "line 3: a policy file has one document"),
        ("\nmood: audit\n", "line 2: `mood`: there is no such key; `nadmit schema` lists them"),
        ("mode: audit\nstatus: {strict: 1}\n", "line 2: `status.strict`: there is no such key; "),
        ("mode: loud\n", "line 1: `mode`: there is no such value as `loud`; the values are `enforce`, `audit`"),
        ("mode: enfroce\n", "line 1: `mode`: there is no such value as `enfroce`; did you mean `enforce`?"),
        (
            "audit: {reports: on}\n",
            "line 1: `audit.reports`: invalid value: boolean `true`, expected openreports, wgpolicyk8s or off",
        ),
        (
            "rules: {nad/schema: loud}\n",
            "line 1: `rules.nad/schema`: invalid value: string \"loud\", expected deny, patch, warn, audit or off",
        ),
        (
            "versions:\n  sriov-cni: 2.10\n",
            "line 2: `versions.sriov-cni`: a release is written in quotes, as in \"2.10\"; found 2.1",
        ),
        (
            "versions: {sriov-cni: 'new'}\n",
            "line 1: `versions.sriov-cni`: \"new\" is not a release; write it as in \"2.10\"",
        ),
        ("versions: {sriov: '2.10'}\n", "line 1: `versions.sriov`: expected one of cni-plugins, sriov-cni, "),
        (
            "rules:\n  sriov/vlan: deny\n  sriov/vlna: deny\n",
            "line 3: `sriov/vlna`: there is no such rule; did you mean `sriov/vlan`?",
        ),
        ("rules: {x: deny}", "line 1: `x`: there is no such rule; `nadmit rules` lists them"),
        ("rules:\n  sriov/vlan: patch\n", "line 2: `sriov/vlan`: this rule has no repair; use deny"),
        (
            "namespaces:\n- names: [a]\n- names: [b]\n  rules:\n    sriov/vlan: patch\n",
            "line 5: `sriov/vlan`: this rule has no repair; use deny",
        ),
        ("namespaces:\n- names: [a]\n  defaultResourceName: 'a b'\n", "line 3: `defaultResourceName`: `a b` "),
        ("status:\n  resources:\n    plans: {}\n", "line 3: `plans`: "),
        (
            "exceptions:\n- rule: sriov/vlna\n  namespace: a\n  name: b\n  reason: c\n  expires: 2026-11-01\n",
            "line 2: `rule`: there is no such rule; did you mean `sriov/vlan`?",
        ),
        (
            "exceptions:\n- rule: sriov/vlan\n  namespace: a\n  name: b\n  reason: ' '\n  expires: 2026-11-01\n",
            "line 5: `reason`: an exception needs a reason",
        ),
        (
            "exceptions:\n- rule: sriov/vlan\n  namespace: a\n  name: b\n  reason: c\n  expires: tomorrow\n",
            "line 6: `exceptions[0].expires`: ",
        ),
    ];
    for (text, want) in table {
        let found = error(text);
        assert!(found.starts_with(want), "{text}\n  expected {want}\n  found {found}");
        assert!(!found.contains(" at line "), "the position in our JSON says nothing to the reader: {found}");
    }
}

/// Whether a rule denies in a namespace: by the mode, its action there, and the exemptions.
#[test]
fn rules_deny_where_the_policy_says_so() {
    let denies = |text: &str, rule: &str, namespace: &str| {
        Policy::parse(text).unwrap().denies(rules::find(rule).unwrap(), namespace)
    };
    assert!(denies("", "sriov/vlan", "apps"));
    assert!(denies("", "nad/resource-name-missing", "apps"), "a repair that cannot be made denies");
    assert!(!denies("", "nad/unknown-key", "apps"), "it only warns");
    assert!(denies("rules: {nad/unknown-key: deny}", "nad/unknown-key", "apps"));
    assert!(!denies("rules: {sriov/vlan: warn}", "sriov/vlan", "apps"));
    assert!(!denies("mode: audit", "sriov/vlan", "apps"));
    let lab = "namespaces: [{names: ['lab-*'], mode: audit}]";
    assert!(denies(lab, "sriov/vlan", "apps") && !denies(lab, "sriov/vlan", "lab-1"));
    let lab = Policy::parse(lab).unwrap();
    assert_eq!([lab.mode_in("apps"), lab.mode_in("lab-1")], [Mode::Enforce, Mode::Audit]);
    let exempt = "exempt: {namespaces: [kube-system]}";
    assert!(denies(exempt, "sriov/vlan", "apps") && !denies(exempt, "sriov/vlan", "kube-system"));
}

#[test]
fn exemptions_are_exact_or_a_prefix() {
    let policy = Policy::parse("exempt: {users: [jane, 'ci-*'], namespaces: [lab]}").unwrap();
    for (user, namespace, want) in [
        ("jane", "apps", true),
        ("janet", "apps", false),
        ("ci-1", "apps", true),
        ("ci-", "apps", true),
        ("ci", "apps", false),
        ("bob", "lab", true),
        ("bob", "lab-2", false),
    ] {
        assert_eq!(policy.is_exempt(user, namespace), want, "{user} in {namespace}");
    }
}

#[test]
fn names_are_those_of_the_file() {
    let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    for level in levels {
        let text = serde_json::to_string(&level).unwrap();
        assert_eq!(text, format!("\"{}\"", level.name()));
    }
    for mode in [Mode::Enforce, Mode::Audit] {
        assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{}\"", mode.name()));
    }
    let kinds: Vec<_> = Policy::default().device_kinds().map(str::to_owned).collect();
    assert_eq!(kinds, ["sriov", "ib-sriov"]);
    assert!(is_default_operator_namespace("sriov-network-operator") && !is_default_operator_namespace("apps"));
}

#[test]
fn schema_names_every_key() {
    let schema = Policy::schema();
    let keys = schema.pointer("/properties").unwrap().as_object().unwrap();
    for key in ["mode", "rules", "namespaces", "exempt", "exceptions", "dra", "draMode", "versions", "status"] {
        assert!(keys.contains_key(key), "{key}");
    }
}
