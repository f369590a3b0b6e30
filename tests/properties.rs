//! Properties that hold for every input.

use nadmit::cni::edit::{apply, set_string};
use nadmit::cni::{CniObject as JsonObject, Config};
use nadmit::json::{Document as JsonDocument, LineIndex};
use nadmit::manifests::{Index, ManifestDocument, documents};
use nadmit::policy::{Facts, Lookup, NetworkFact, Policy, Prefix, ResourceName, Subject, Verdict, WriteTarget, judge};
use nadmit::resources::{NetworkId, NetworkKind, OWNER_REF, Object, RESOURCE_NAME, render};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

/// The same cases every time, so that no run fails by chance. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` select other cases.
pub fn settings() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 2000;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// White space as people and programs put it between tokens.
fn blanks() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", " ", "\n    ", "\n\t", "\r\n  ", "\n\n  "])
}

/// Keys and values as text, including unusual spellings.
fn member() -> impl Strategy<Value = (&'static str, &'static str)> {
    let keys = vec![
        "name",
        "cniVersion",
        "vlan",
        "VLAN",
        "Type",
        "ipam",
        "x",
        "\\u00e9",
        "resourcename",
        "deviceid",
        "trust",
        "é",
    ];
    let values = vec![
        "1",
        "100.0",
        "1e2",
        "\"on\"",
        "\"a\\u0022b\"",
        "null",
        "true",
        "{}",
        "[]",
        "{\"type\": \"static\"}",
        "\"sriov\"",
        "\"a.io/b\"",
        "\"\"",
        "[1, {\"a\": [null]}]",
        "\"日本\"",
    ];
    (select(keys), select(values))
}

/// An object with a `type` somewhere, in any style.
fn object(kinds: Vec<&'static str>) -> impl Strategy<Value = String> {
    (vec((member(), blanks(), blanks()), 0..5), select(kinds), 0..5usize, blanks(), blanks(), blanks()).prop_map(
        |(members, kind, at, before, colon, end)| {
            let mut parts: Vec<String> =
                members.iter().map(|((key, value), a, b)| format!("{a}\"{key}\":{b}{value}")).collect();
            parts.insert(at.min(parts.len()), format!("{before}\"type\":{colon}\"{kind}\""));
            format!("{{{}{end}}}", parts.join(","))
        },
    )
}

/// A config: a single one, a list, or no JSON at all.
fn config() -> impl Strategy<Value = String> {
    let kinds = vec!["sriov", "ib-sriov", "ovs", "tuning", "macvlan", "vrf", "bandwidth"];
    prop_oneof![
        5 => object(kinds.clone()),
        3 => (vec(object(kinds), 0..3), blanks()).prop_map(|(plugins, blank)| {
            format!("{{{blank}\"cniVersion\":\"1.0.0\",{blank}\"plugins\":[{}]}}", plugins.join(","))
        }),
        1 => ".{0,40}",
    ]
}

fn resource_name() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a.io/b",
        "openshift.io/cx7",
        "openshift.io/",
        "cx7",
        "",
        "openshift.io/openshift.io/x",
        "nvidia.com/b",
        "b c",
    ])
}

fn policy() -> impl Strategy<Value = Policy> {
    let write = select(vec![WriteTarget::Auto, WriteTarget::Both, WriteTarget::Annotation]);
    (write, option::of(select(vec!["openshift.io", "nvidia.com"]))).prop_map(|(write, prefix)| Policy {
        resource_name: ResourceName { write, prefix: prefix.map(ToOwned::to_owned) },
        device_plugins: vec!["macvlan".to_owned()],
        ..Policy::default()
    })
}

fn network_fact(resource_name: &str) -> NetworkFact {
    let id = NetworkId { kind: NetworkKind::Sriov, namespace: "op".to_owned(), name: "net".to_owned() };
    NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: resource_name.to_owned() }
}

fn facts() -> impl Strategy<Value = Facts> {
    let owner = option::of(select(vec!["cx7", "b", "", "x/y"]));
    (owner, any::<bool>(), option::of(select(vec!["openshift.io", "intel.com"])), any::<bool>()).prop_map(
        |(owner, named, prefix, assumed)| {
            let owner = owner.map(network_fact);
            Facts {
                named_owner: owner.clone().filter(|_| named).map_or(Lookup::Unknown, Lookup::Found),
                networks_here: owner.into_iter().collect(),
                prefix: prefix.map(|value| Prefix { value: value.to_owned(), assumed }),
                ..Facts::default()
            }
        },
    )
}

fn nad() -> impl Strategy<Value = String> {
    (config(), option::of(option::of(resource_name())), any::<bool>()).prop_map(|(config, annotation, owned)| {
        let mut nad = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "net", "namespace": "apps"}, "spec": {"config": config},
        });
        if let Some(annotation) = annotation {
            let mut annotations = serde_json::Map::new();
            annotations.extend(annotation.map(|value| (RESOURCE_NAME.to_owned(), value.into())));
            if owned {
                annotations.insert(OWNER_REF.to_owned(), "SriovNetwork.sriovnetwork.openshift.io/op/net".into());
            }
            nad["metadata"]["annotations"] = annotations.into();
        }
        nad.to_string()
    })
}

fn judged(json: &str, writer: Option<&str>, facts: &Facts, policy: &Policy) -> Verdict {
    let object = Object::read(json).unwrap().unwrap();
    judge(&Subject { object: &object, old: None, writer, is_final: false }, facts, policy)
}

const OPERATOR: &str = "system:serviceaccount:openshift-sriov-network-operator:sriov-network-operator";

fn network() -> impl Strategy<Value = String> {
    let kind = select(vec!["SriovNetwork", "SriovIBNetwork", "OVSNetwork"]);
    let ipam = option::of(select(vec![
        "{}",
        r#"{"type": "dhcp"}"#,
        "{\"type\": \"host-local\",\n \"subnet\": \"10.0.0.1/24\"}",
        r#"{"type":"whereabouts","range":"10.0.0.0/24"}"#,
        r#"{"type": "static", "addresses": [{"address": "10.0. 0.1/24"}]}"#,
        "[]",
        "5",
        r#"{"type":"whereabouts","subnet":"10.0.0.0/24"}"#,
    ]));
    let capabilities = option::of(select(vec![r#"{"ips": true}"#, "{\n  \"mac\": true\n}", r#"{"foo": "bar"}"#]));
    let chain = option::of(select(vec![
        r#"{"type": "tuning", "sysctl": {"net.x": "1"}}"#,
        "{\"type\":\"vrf\"},\n{\"type\":\"rdma\"}",
        r#"{"type":"bandwidth","ingressRate":"1"}"#,
    ]));
    let numbers = (option::of(0..4096i64), option::of(0..8i64), option::of(0..20i64), option::of(0..20i64));
    (kind, ipam, capabilities, chain, numbers, option::of(select(vec!["on", "off"]))).prop_map(
        |(kind, ipam, capabilities, chain, (vlan, qos, min, max), trust)| {
            let mut spec = json!({"resourceName": "cx7"});
            let mut set = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    spec[key] = value;
                }
            };
            set("ipam", ipam.map(Into::into));
            set("capabilities", capabilities.map(Into::into));
            set("metaPlugins", chain.map(Into::into));
            match kind {
                "SriovNetwork" => {
                    set("vlan", vlan.filter(|vlan| *vlan < 4095).map(Into::into));
                    set("vlanQoS", qos.map(Into::into));
                    set("minTxRate", min.map(Into::into));
                    set("maxTxRate", max.map(Into::into));
                    set("trust", trust.map(Into::into));
                }
                "OVSNetwork" => {
                    set("vlan", vlan.map(Into::into));
                    set("mtu", min.map(Into::into));
                    set("bridge", trust.map(|_| "br1".into()));
                }
                _ => {}
            }
            json!({"apiVersion": "sriovnetwork.openshift.io/v1", "kind": kind, "metadata": {"name": "net", "namespace": "apps"}, "spec": spec})
                .to_string()
        },
    )
}

proptest! {
    #![proptest_config(settings())]

    /// The edit changes one member and no other byte.
    #[test]
    fn edit_changes_only_its_member(text in object(vec!["sriov", "ovs"]), value in ".{0,12}") {
        let document = JsonDocument::parse(&text).unwrap();
        let object = JsonObject::of(&document.root).unwrap();
        let anchor = object.get_exact("type").unwrap();
        let Some(edit) = set_string(&document, object, "resourceName", &value, anchor) else {
            prop_assert_eq!(object.str_of("resourceName"), Some(value.as_str()));
            return Ok(());
        };
        let edited = apply(&text, std::slice::from_ref(&edit));
        let range = edit.span.range();
        prop_assert_eq!(&edited[..range.start], &text[..range.start]);
        prop_assert_eq!(&edited[range.start + edit.text.len()..], &text[range.end..]);
        let again = JsonDocument::parse(&edited).unwrap();
        let after = JsonObject::of(&again.root).unwrap();
        prop_assert_eq!(after.str_of("resourceName"), Some(value.as_str()));
        let others = |object: JsonObject<'_>| object.members.iter().filter(|m| !nadmit::cni::same_key(&m.key, "resourceName")).count();
        prop_assert_eq!(others(object), others(after));
    }

    /// A repaired object needs no second repair, and equal input gives equal bytes.
    #[test]
    fn repair_converges(json in nad(), facts in facts(), policy in policy(), operator in any::<bool>()) {
        let writer = operator.then_some(OPERATOR);
        let verdict = judged(&json, writer, &facts, &policy);
        let same = judged(&json, writer, &facts, &policy);
        prop_assert_eq!(&verdict.patch, &same.patch);
        prop_assert_eq!(format!("{:?}", verdict.findings), format!("{:?}", same.findings));
        let mut value: Value = serde_json::from_str(&json).unwrap();
        json_patch::patch(&mut value, &verdict.patch).unwrap();
        let second = judged(&value.to_string(), writer, &facts, &policy);
        prop_assert!(second.patch.is_empty(), "{} then {}", verdict.patch, second.patch);
        for finding in second.findings.iter().filter(|finding| finding.rule.id.starts_with("nad/resource-name")) {
            let before = verdict.findings.iter().any(|old| old.rule == finding.rule && old.message == finding.message);
            prop_assert!(before || finding.action < nadmit::policy::Action::Patch, "a repair caused a finding: {}", finding.message);
        }
        for operation in &verdict.patch.0 {
            let path = operation.path().to_string();
            let allowed = path == "/spec/config" || path == "/metadata/annotations"
                || path == "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName";
            prop_assert!(allowed, "a patch of {path}");
        }
        if operator {
            prop_assert!(!verdict.denies(), "the operator was denied");
        }
    }

    /// An update that changes nothing is never denied, whatever the object.
    #[test]
    fn unchanged_objects_are_never_denied(json in nad(), facts in facts(), policy in policy()) {
        let object = Object::read(&json).unwrap().unwrap();
        let subject = Subject { old: Some(&object), object: &object, writer: Some("jane"), is_final: false };
        prop_assert!(!judge(&subject, &facts, &policy).denies());
    }

    /// A network is judged as the NAD it renders to.
    #[test]
    fn a_network_is_judged_by_its_rendering(json in network()) {
        let Object::Network(network) = Object::read(&json).unwrap().unwrap() else { unreachable!() };
        let rendered = render(&network, "openshift.io");
        let facts = Facts {
            named_owner: Lookup::Found(NetworkFact::of(&network)),
            prefix: Some(Prefix { value: "openshift.io".to_owned(), assumed: false }),
            ..Facts::default()
        };
        let policy = Policy::default();
        let rules = |verdict: &Verdict, skip: &[&str]| {
            let findings = verdict.findings.iter().filter(|finding| !skip.iter().any(|skip| finding.rule.id.starts_with(skip)));
            let mut rules: Vec<_> = findings.map(|f| (f.rule.id, f.action, f.message.clone())).collect();
            rules.sort();
            rules
        };
        let of_network = rules(&judged(&json, None, &facts, &policy), &["network/"]);
        let of_nad = rules(&judged(&rendered.nad_json().unwrap(), Some(OPERATOR), &facts, &policy), &["nad/resource-name"]);
        let of_nad: Vec<_> = of_nad.iter().map(|(rule, _, message)| (*rule, message.clone())).collect();
        let of_network: Vec<_> = of_network.iter().map(|(rule, _, message)| (*rule, message.clone())).collect();
        prop_assert_eq!(of_network, of_nad);
    }

    /// No text makes the readers panic.
    #[test]
    fn judging_never_panics(text in any_text(), facts in facts()) {
        if let Ok(document) = JsonDocument::parse(&text) {
            let _ = Config::of(&document);
        }
        let mut index = Index::default();
        let lines = LineIndex::of(&text);
        documents(&lines, &mut |document| {
            if let ManifestDocument::Manifest(manifest) = document {
                index.add(&manifest, "a.yaml", &lines);
                if let Ok(Some(object)) = Object::read(&manifest.node.to_json()) {
                    let _ = judge(&Subject::manifest(&object), &facts, &Policy::default());
                }
            }
        });
        let _ = Policy::parse(&text);
    }
}

/// Text that is nearly a manifest.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        select(vec![
            "apiVersion: k8s.cni.cncf.io/v1\n",
            "kind: NetworkAttachmentDefinition\n",
            "metadata:\n",
            "  name: x\n",
            "spec:\n",
            "  config: '",
            "'\n",
            "{",
            "}",
            "[",
            "]",
            "\"type\": \"sriov\"",
            ",",
            "\n---\n",
            "&a ",
            "*a",
            "<<: *a\n",
            "- ",
            "? ",
            "|\n",
            ">-\n",
            "\t",
            "%TAG ! x\n",
            "!!str ",
            "\"\\",
            "\\u",
            "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\n",
            "  ipam: ",
            "  resourceName: x\n",
            "#",
            ": ",
            "\r\n",
            "\u{85}",
            "...\n",
            "!<%",
        ])
        .prop_map(ToOwned::to_owned),
        ".{0,6}",
    ];
    vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}
