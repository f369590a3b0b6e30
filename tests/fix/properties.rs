//! Whatever style a manifest is written in, a fix changes only what is wrong.

use nadmit::json::LineIndex;
use nadmit::manifests::{Manifest, fixed};
use nadmit::policy::{Facts, Finding, Fix, Policy, Subject, judge};
use nadmit::resources::Object;
use nadmit::yaml::Documents;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::properties::settings;

/// A misspelled key, and what is meant.
const MISSPELLED: [(&str, &str); 3] = [("vlann", "vlan"), ("max-tx-rate", "max_tx_rate"), ("spofchk", "spoofchk")];
const ANNOTATION: &str = "k8s.v1.cni.cncf.io/resourceName";

/// The lines of a config, each member on its own.
fn config() -> impl Strategy<Value = Vec<String>> {
    let members = vec![
        "\"vlan\": 5",
        "\"vlann\": 5",
        "\"max_tx_rate\": 1000",
        "\"max-tx-rate\": 1000",
        "\"spofchk\": \"on\"",
        "\"x\": \"it's # no: comment\"",
        "\"y\": {\"a\": [1, \"\\\\ \\\"q\\\"\"]}",
        "\"z\": \"é 日本\"",
    ];
    (vec(select(members), 0..5), 0..6usize).prop_map(|(members, at)| {
        let mut distinct: Vec<&str> = Vec::new();
        for member in members {
            // Of two spellings of one key, none is misspelled for certain.
            let key = |member: &str| member.split(':').next().unwrap().replace(['-', '_'], "").replace("nn", "n");
            if !distinct.iter().any(|other| key(other) == key(member)) {
                distinct.push(member);
            }
        }
        distinct.insert(at.min(distinct.len()), "\"type\": \"sriov\"");
        distinct.insert(0, "\"cniVersion\": \"1.0.0\"");
        let last = distinct.len() - 1;
        let comma = |index: usize| if index == last { "" } else { "," };
        let members = distinct.iter().enumerate().map(|(index, member)| format!("{member}{}", comma(index)));
        ["{".to_owned()].into_iter().chain(members).chain(["}".to_owned()]).collect()
    })
}

/// The config as a scalar below a key that is indented by two.
fn scalar(style: usize, config: &[String]) -> String {
    let last = config.len() - 1;
    let indented = |depth: usize| {
        let inner = |index: usize| if index == 0 || index == last { 0 } else { depth };
        let lines = config.iter().enumerate().map(|(index, line)| format!("    {}{line}", " ".repeat(inner(index))));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (single, double) =
        (|text: String| text.replace('\'', "''"), |text: String| text.replace('\\', "\\\\").replace('"', "\\\""));
    match style {
        0 => format!("|\n{}", indented(2)),
        1 => format!("|-  # the config\n{}", indented(0)),
        2 => format!(">\n{}", indented(3)),
        3 => format!(">-\n{}", indented(0)),
        4 => format!("'{}'  # the config", single(config.join(" "))),
        5 => format!("'{}'", single(indented(2).trim_start().to_owned())),
        6 => format!("\"{}\"", double(config.join(""))),
        7 => format!("\"{}\"  # the config", double(indented(4).trim_start().to_owned())),
        _ => format!("\"{}\"", double(config.join("\n")).replace('\n', "\\n")),
    }
}

/// The metadata of a NAD in namespace apps, without the annotation.
fn metadata() -> impl Strategy<Value = &'static str> {
    select(vec![
        "metadata:\n  name: net  # the name\n  namespace: apps\n",
        "metadata:\n    # where\n    namespace: apps\n    labels:\n        a: b\n    name: net\n",
        "metadata:\n  labels: {a: b}\n  annotations:\n    # whose\n    owner: 'team'  # by chat\n  namespace: apps\n",
        "metadata:\n  annotations:\n    text: |\n      one\n      # no comment\n  namespace: \"apps\"\n",
        "metadata:\n  annotations: {}  # none\n  namespace: apps\n",
        "metadata:\n  annotations:\n  namespace: apps\n",
        "metadata:\n  annotations: ~ # none\n  namespace: apps\n",
        "metadata: {name: net, namespace: apps}  # short\n",
        "metadata: {\n  namespace: apps,  # where\n  annotations: {owner: team},\n}\n",
        "metadata: { \"namespace\": \"apps\", \"annotations\": null }\n",
    ])
}

fn manifest() -> impl Strategy<Value = String> {
    (metadata(), config(), 0..10usize, any::<bool>()).prop_map(|(metadata, config, style, is_last)| {
        let head = "# A NAD.\napiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n";
        if style == 9 {
            let object = serde_json::json!({
                "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "net", "namespace": "apps"}, "spec": {"config": config.join("\n")},
            });
            return if is_last { format!("{object:#}\n") } else { format!("{object}\n") };
        }
        let spec = format!("spec:\n  # what the plugin reads\n  config: {}\n", scalar(style, &config));
        if is_last { format!("{head}{spec}  # behind it\n{metadata}") } else { format!("{head}{metadata}{spec}") }
    })
}

fn file() -> impl Strategy<Value = String> {
    (vec(manifest(), 1..4), any::<bool>(), any::<bool>()).prop_map(|(manifests, has_carriage_returns, has_end)| {
        let text = manifests.join("---\n");
        let text = if has_end { text } else { text.trim_end().to_owned() };
        if has_carriage_returns { text.replace('\n', "\r\n") } else { text }
    })
}

fn fixes(policy: &Policy, manifest: &Manifest) -> Vec<Fix> {
    let json = manifest.node.to_json();
    let object = Object::read(&json).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), policy);
    verdict.findings.iter().filter_map(Finding::fix).collect()
}

/// The documents of a text, without what may be fixed in them.
fn rest(text: &str) -> Vec<Value> {
    let documents = Documents::new(text).map(|document| {
        let mut object: Value = serde_json::from_str(&document.node.unwrap().to_json()).unwrap();
        let metadata = object["metadata"].as_object_mut().unwrap();
        let annotations = metadata.remove("annotations").unwrap_or_default();
        let mut annotations = annotations.as_object().cloned().unwrap_or_default();
        annotations.remove(ANNOTATION);
        metadata.insert("annotations".to_owned(), annotations.into());
        let mut config: Value = serde_json::from_str(object["spec"]["config"].as_str().unwrap()).unwrap();
        let members = config.as_object_mut().unwrap();
        members.remove("resourceName");
        for (key, meant) in MISSPELLED {
            if let Some(value) = members.remove(key) {
                members.insert(meant.to_owned(), value);
            }
        }
        object["spec"]["config"] = config;
        object
    });
    documents.collect()
}

/// The text with the misspelled keys as they are meant.
fn spelled(text: &str) -> String {
    MISSPELLED.iter().fold(text.to_owned(), |text, (key, meant)| text.replace(key, meant))
}

fn is_subsequence(short: &str, long: &str) -> bool {
    let mut characters = long.chars();
    short.chars().all(|wanted| characters.any(|character| character == wanted))
}

fn many() -> ProptestConfig {
    let mut config = settings();
    // Each case parses its text some twenty times.
    config.cases = config.cases.min(1000);
    config
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn only_what_is_wrong_changes(before in file()) {
        let policy = Policy::parse(
            "{namespaces: [{names: [apps], defaultResourceName: a.io/b}], resourceName: {write: both}}",
        ).unwrap();
        let mut text = before.clone();
        let mut is_done = false;
        for _ in 0..4 {
            let result = fixed(&LineIndex::of(&text), &mut |manifest| fixes(&policy, manifest));
            prop_assert!(result.declined.is_empty(), "{:?}\n{}", result.declined, text);
            match result.text {
                Some(new) => text = new,
                None => {
                    is_done = true;
                    break;
                }
            }
        }
        prop_assert!(is_done, "it does not converge: {}", text);
        // What is fixed is not found again, and nothing else became different.
        fixed(&LineIndex::of(&text), &mut |manifest| {
            assert!(fixes(&policy, manifest).is_empty(), "{text}");
            Vec::new()
        });
        prop_assert_eq!(rest(&before), rest(&text), "{}", text);
        for document in Documents::new(&text) {
            let node = document.node.unwrap();
            let annotation = node.follow("/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName");
            prop_assert!(annotation.2 && annotation.0.as_str() == Some("a.io/b"), "{}", text);
        }
        // Every byte of the text is still there, in its order: comments, blanks, quotes, line breaks.
        let kept = spelled(&before).replace(" ~ #", " #").replace("null", "");
        prop_assert!(is_subsequence(&kept, &text), "{}\n{}", before, text);
        prop_assert_eq!(before.matches('#').count(), text.matches('#').count());
        prop_assert_eq!(before.ends_with('\n'), text.ends_with('\n'));
        prop_assert_eq!(text.contains("\r\n"), before.contains("\r\n"));
        prop_assert!(!before.contains("\r\n") || !text.replace("\r\n", "").contains('\n'), "{}", text);
    }
}
