//! Files that are generated from the code are current. `make generate` writes them by running these tests.

use std::fs;
use std::path::Path;

use nadmit::output::{reference, release_table};
use nadmit::policy::Policy;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a file with what it should contain; with `GENERATE=1`, which `make generate` sets, it is written instead.
fn is_current(file: &str, want: &str) {
    let path = root().join(file);
    if std::env::var_os("GENERATE").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, want).unwrap();
        return;
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == want, "{file} is not what the code generates; run `make generate`");
}

#[test]
fn the_rule_reference_is_current() {
    is_current("docs/rules.md", &reference::markdown());
}

#[test]
fn the_releases_are_current() {
    is_current("docs/releases.md", &release_table::markdown());
}

#[test]
fn the_policy_schema_is_current() {
    is_current("docs/policy.schema.json", &format!("{:#}\n", Policy::schema()));
}

#[test]
fn the_manifests_and_the_chart_are_current() {
    let files = nadmit::deploy::files::files();
    assert!(files.len() > 15, "only {} files", files.len());
    for (path, text) in files {
        is_current(&format!("deploy/{path}"), &text);
    }
}

/// The README shows the policy file that the tests read, and that file has every key of the schema.
#[test]
fn the_policy_example_shows_every_key() {
    let example = fs::read_to_string(root().join("examples/policy.yaml")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(
        readme.contains(&format!("```yaml\n{example}```\n")),
        "README.md shows another policy than examples/policy.yaml"
    );
    let policy = Policy::parse(&example).unwrap();
    let shown = serde_json::to_value(&policy).unwrap();
    let schema = Policy::schema();
    let mut checked = 0;
    let mut check = |properties: &serde_json::Value, values: Vec<&serde_json::Value>| {
        for key in properties.as_object().unwrap().keys() {
            let is_shown = values.iter().any(|value| {
                value.get(key).is_some_and(|value| {
                    !value.is_null() && *value != serde_json::json!([]) && *value != serde_json::json!({})
                })
            });
            assert!(is_shown, "examples/policy.yaml does not show `{key}`");
            checked += 1;
        }
    };
    check(&schema["properties"], vec![&shown]);
    let all = |key: &str| shown[key].as_array().unwrap().iter().collect::<Vec<_>>();
    check(&schema["$defs"]["NamespacePolicy"]["properties"], all("namespaces"));
    check(&schema["$defs"]["Exception"]["properties"], all("exceptions"));
    check(&schema["$defs"]["Exempt"]["properties"], vec![&shown["exempt"]]);
    check(&schema["$defs"]["OperatorPolicy"]["properties"], vec![&shown["operator"]]);
    check(&schema["$defs"]["ResourceName"]["properties"], vec![&shown["resourceName"]]);
    check(&schema["$defs"]["FailurePolicies"]["properties"], vec![&shown["failurePolicy"]]);
    assert!(checked > 20, "only {checked} keys");
}
