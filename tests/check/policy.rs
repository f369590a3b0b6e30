//! The policy of `nadmit check`.

use std::fs;

use super::{run, text};

#[test]
fn policy_errors_name_line_and_key() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("p.yaml");
    for (content, want) in [
        (
            "mode: enforce\nrules:\n  nad/resource-name-mising: warn\n",
            "line 3: `nad/resource-name-mising`: there is no such rule; did you mean `nad/resource-name-missing`?",
        ),
        ("rules:\n  sriov/vlan: patch\n", "line 2: `sriov/vlan`: this rule has no repair; use deny"),
        ("mode: loud\n", "line 1: `mode`: there is no such value as `loud`; the values are `enforce`, `audit`"),
        ("exempt:\n  user: [x]\n", "line 2: `exempt.user`: there is no such key; did you mean `users`?"),
        ("a: [\n", "line 1, column 4: did not find expected node content while parsing a flow node"),
        ("mode: audit\n---\nmode: audit\n", "line 3: a policy file has one document"),
        (
            "exceptions:\n- {rule: sriov/vlan, namespace: a, name: b, reason: x, expires: soon}\n",
            "line 2: `exceptions[0].expires`: ",
        ),
        (
            "exceptions:\n- {rule: sriov/vlan, namespace: a, name: b, reason: ' ', expires: 2030-01-01}\n",
            "line 2: `reason`: an exception needs a reason",
        ),
        (
            "namespaces:\n- names: [a]\n  defaultResourceName: cx7\n",
            "line 3: `defaultResourceName`: `cx7` has no domain",
        ),
    ] {
        fs::write(&policy, content).unwrap();
        let output = run(&["check", "--policy", policy.to_str().unwrap(), "-"]);
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("p.yaml") && error.contains(want), "{error}\nwanted: {want}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
