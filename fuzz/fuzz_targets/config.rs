//! Any text as `spec.config`: nothing panics, and a repair converges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::policy::{Facts, Lookup, NetworkFact, Policy, Prefix, Subject, Verdict, judge};
use nadmit::resources::{NetworkId, NetworkKind, Object};

fn facts() -> Facts {
    let id = NetworkId { kind: NetworkKind::Sriov, namespace: "op".to_owned(), name: "net".to_owned() };
    let owner = NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "cx7".to_owned() };
    Facts {
        named_owner: Lookup::Found(owner),
        prefix: Some(Prefix { value: "openshift.io".to_owned(), assumed: false }),
        ..Facts::default()
    }
}

fn judged(json: &str) -> Verdict {
    let object = Object::read(json).expect("JSON").expect("a NAD");
    judge(&Subject::manifest(&object), &facts(), &Policy::default())
}

fuzz_target!(|config: &str| {
    let mut nad = serde_json::json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "net", "namespace": "apps"},
        "spec": {"config": config},
    });
    let first = judged(&nad.to_string());
    json_patch::patch(&mut nad, &first.patch).expect("the patch applies");
    let second = judged(&nad.to_string());
    assert!(second.patch.is_empty(), "a second repair: {} then {}", first.patch, second.patch);
});
