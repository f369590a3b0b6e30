//! Whose a NAD is, as a server says it that was registered and knows the networks by watching them.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::facts::knows_all;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::processes::wait;

const OWNER_REF: &str = "sriovnetwork.openshift.io/owner-ref";

/// A NAD that names an owner, and the namespace that it goes to.
fn owned(name: &str, owner: &str) -> Value {
    let mut nad = nad(name, r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    nad["metadata"]["namespace"] = "apps".into();
    nad["metadata"]["annotations"] = json!({ OWNER_REF: owner });
    nad
}

fn owner(kind: TestNetworkKind, name: &str) -> String {
    format!("{}.sriovnetwork.openshift.io/{OPERATOR}/{name}", kind.name())
}

/// Whether jane may write that, and what she is told.
fn apply(cluster: &TestCluster, object: &Value) -> (bool, String) {
    let out = cluster.kubectl("jane", &["apply", "--dry-run=server", "-f", "-"], &object.to_string());
    (out.status.success(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn forged_owner_is_denied_and_true_owner_is_silent() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    knows_all(cluster.nadmit());
    cluster.namespace("apps");
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));

    // Another network renders it: the operator would leave it alone.
    let forged = owned("net", &owner(TestNetworkKind::Sriov, "other"));
    let words = wait("a denial", || {
        let (is_stored, words) = apply(&cluster, &forged);
        (!is_stored).then_some(words)
    });
    assert!(
        words.contains("nad/forged-owner") && words.contains(&format!("SriovNetwork {OPERATOR}/net renders this NAD")),
        "{words}"
    );
    // So it is where it is changed later.
    let truly = owned("net", &owner(TestNetworkKind::Sriov, "net"));
    assert!(apply(&cluster, &truly).0);
    cluster.jane.create(&nads("apps"), &truly);
    let refused =
        cluster.jane.try_patch(&nad_at("apps", "net"), &json!({ "metadata": { "annotations": { OWNER_REF: "x" } } }));
    assert!(refused.unwrap_err().message.contains("nad/forged-owner"));

    // The true one: also of a network that no watch has told of yet, as it is read before anything is said.
    let (is_stored, words) = apply(&cluster, &truly);
    assert!(is_stored && !words.contains("nad/forged-owner"), "{words}");
    for number in 0..5 {
        let name = format!("new-{number}");
        cluster.jane.create(&TestNetworkKind::Ib.path(), &network(TestNetworkKind::Ib, &name, "apps", &json!({})));
        let (is_stored, words) = apply(&cluster, &owned(&name, &owner(TestNetworkKind::Ib, &name)));
        assert!(is_stored && !words.contains("nad/forged-owner"), "{words}");
    }

    // Nobody renders it: a restore brings the NADs first.
    let (is_stored, words) = apply(&cluster, &owned("early", &owner(TestNetworkKind::Sriov, "early")));
    assert!(is_stored && words.contains("nad/forged-owner") && words.contains("which does not exist"), "{words}");

    // A network that is gone denies nothing, however late the watch tells of it.
    cluster.jane.delete(&nad_at("apps", "net"));
    for number in 0..5 {
        let name = format!("gone-{number}");
        cluster
            .jane
            .create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, &name, "apps", &json!({})));
        cluster.jane.delete(&TestNetworkKind::Sriov.at(&name));
        let (is_stored, words) = apply(&cluster, &owned(&name, &owner(TestNetworkKind::Sriov, "other")));
        assert!(is_stored, "{words}");
    }
}
