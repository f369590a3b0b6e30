//! The patterns of the backstop against the judge: they deny only what the judge denies, and miss nothing that matters.

use nadmit::policy::{Action, Facts, Policy, Subject, judge};
use nadmit::resources::Object;
use serde_json::{Value, json};

use crate::backstop::OPEN;
use crate::cluster::TestCluster;
use crate::objects::{TestNetworkKind, nad, nads, network};
use crate::registered::{odd, of_the_cases};

/// The rules that deny an object, with the facts that the judge has without a cluster.
fn denying(object: &Value, policy: &Policy) -> Vec<&'static str> {
    let text = object.to_string();
    let Ok(Some(read)) = Object::read(&text) else { return Vec::new() };
    let subject = Subject { object: &read, old: None, writer: Some("jane"), is_final: true };
    let verdict = judge(&subject, &Facts::default(), policy);
    verdict.findings.iter().filter(|finding| finding.action == Action::Deny).map(|finding| finding.rule.id).collect()
}

/// Configs that the patterns may judge differently from the judge, without a loss.
fn is_beyond_patterns(config: &str) -> bool {
    let deepest = config.chars().scan(0_i32, |depth, character| {
        *depth += match character {
            '{' | '[' => 1,
            '}' | ']' => -1,
            _ => 0,
        };
        Some(*depth)
    });
    // A repeated key, brackets that are nested too deeply, and more text than the patterns support.
    let folded = config.to_lowercase();
    folded.matches("\"type\"").count() > 1 && !folded.contains("plugins")
        || deepest.max().unwrap_or_default() > 7
        || config.len() > 5_000
}

#[test]
fn backstop_and_judge_agree_on_incomplete_nads() {
    let mut cluster = TestCluster::start();
    let plugins = "devicePlugins: [my-sriov, \"a'b/c\\\\d\"]\n";
    cluster.leave_only_the_backstop(plugins);
    let policy = Policy::parse(&format!("{OPEN}{plugins}")).unwrap();
    let mut seen = [0, 0];
    for spec in of_the_cases().into_iter().chain(odd()) {
        let Some(config) = spec["config"].as_str().filter(|config| !is_beyond_patterns(config)) else { continue };
        let mut object = nad("one", config);
        object["metadata"]["namespace"] = json!("default");
        let wanted = denying(&object, &policy);
        let error = cluster.jane.try_create(&format!("{}?dryRun=All", nads("default")), &object).err();
        let is_denied = match &error {
            Some(error) => {
                assert!(error.message.contains("ValidatingAdmissionPolicy 'nadmit'"), "{config}: {error:?}");
                true
            }
            None => false,
        };
        let is_missing = wanted.contains(&"nad/resource-name-missing");
        // If another rule denies it anyway, the patterns may see a plugin where there is none.
        let is_same = is_denied == is_missing || (is_denied && !wanted.is_empty());
        assert!(is_same, "{config}: backstop {is_denied}, judge {wanted:?}");
        seen[usize::from(is_denied)] += 1;
    }
    println!("{seen:?}");
    assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
}

#[test]
fn backstop_and_judge_agree_on_injection() {
    let mut cluster = TestCluster::start();
    cluster.leave_only_the_backstop("");
    let policy = Policy::default();
    // Each value, and whether it changes the object that the operator creates: then it must be denied.
    let bare = [
        ("cx7", false),
        ("cx 7", false),
        ("cx7\nspec: {}", true),
        ("cx7\n---\nkind: Pod", true),
        ("cx7\r\n    a: b", true),
        ("cx7\r    a: b", true),
        ("cx7\u{85}    a: b", true),
        ("cx7\u{2028}    a: b", true),
        ("cx7\u{2029}    a: b", true),
        ("cx7: b", true),
        ("cx7:\tb", true),
        ("cx7:", true),
        ("cx7 # b", true),
        ("cx7\t# b", true),
        ("cx7 ", true),
        ("cx7\u{7}", true),
        ("cx7\u{9b}", true),
        ("cx7:b", false),
        ("cx7#b", false),
        ("cx7'b", false),
        ("cx7\"b", false),
        ("cx7{b}", false),
        ("cx7, b", false),
        ("cx7\tb", false),
    ];
    let first = [
        ("\"kube-system\"", true),
        ("'kube-system'", true),
        ("!!str kube-system", true),
        ("&a kube-system", true),
        ("*a", true),
        ("|", true),
        (">", true),
        ("%a", true),
        ("@a", true),
        ("`a", true),
        (" kube-system", true),
        ("-kube-system", false),
        ("?kube-system", false),
        ("~a", false),
    ];
    let quoted = [
        (r#"{"type":"static"}"#, false),
        (r#"{"type":"it''s"}"#, false),
        (r#"{"type":"it's"}"#, true),
        (r#"{"type":"it'''s"}"#, true),
        ("{\"type\":\"a\"}'\nkind: Pod\nx: '{}", true),
        ("{\"type\":\n\n\"a: b # c\"}", false),
    ];
    let dashes = [("{\"type\":\"a\"}\n---\n", true), ("{\"type\":\"a\"}\n- --", false), ("{\"type\":\"---\"}", false)];
    let text = [
        ("/var/log/x", false),
        ("a b", false),
        (r#"x","type":"bridge"#, true),
        (r#"x\\","type":"bridge"#, true),
        (r#"x\"y"#, false),
        ("x'\nkind: Pod", true),
        ("x\n---\n", true),
    ];
    let mut fields: Vec<(&str, &str, bool, &[TestNetworkKind])> = Vec::new();
    for (field, tables, kinds) in [
        ("resourceName", &[&bare[..]][..], &TestNetworkKind::ALL[..]),
        ("networkNamespace", &[&bare[..], &first], &TestNetworkKind::ALL),
        ("ipam", &[&quoted[..]], &TestNetworkKind::ALL),
        ("capabilities", &[&quoted[..], &dashes], &TestNetworkKind::ALL),
        ("metaPlugins", &[&quoted[..], &dashes], &TestNetworkKind::ALL),
        ("logFile", &[&text[..]], &[TestNetworkKind::Sriov]),
        ("bridge", &[&text[..]], &[TestNetworkKind::Ovs]),
        ("interfaceType", &[&text[..]], &[TestNetworkKind::Ovs]),
    ] {
        let rows = tables.iter().flat_map(|table| table.iter());
        fields.extend(rows.map(|(value, is_unsafe)| (field, *value, *is_unsafe, kinds)));
    }
    for (field, value, is_unsafe, kinds) in fields {
        for kind in kinds {
            let object = network(*kind, "net", "apps", &json!({ field: value }));
            let error = cluster.jane.try_create(&format!("{}?dryRun=All", kind.path()), &object).err();
            let is_denied = error.as_ref().is_some_and(|error| {
                assert!(error.message.contains("nadmit-template-injection"), "{field} {value:?}: {error:?}");
                assert!(error.message.contains(field), "{field} {value:?}: {error:?}");
                true
            });
            let wanted = denying(&object, &policy);
            assert_eq!(is_denied, is_unsafe, "{kind:?} {field}: {value:?}: {wanted:?}");
            if is_denied {
                assert!(wanted.contains(&"network/render-unsafe"), "{kind:?} {field}: {value:?}: {wanted:?}");
            }
        }
    }
}
