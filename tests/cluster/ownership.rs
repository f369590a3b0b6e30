//! The owner of a NAD, judged by a registered server that watches the networks.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::facts::knows_all;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::processes::wait;

const OWNER_REF: &str = "sriovnetwork.openshift.io/owner-ref";

/// A NAD with an owner and a namespace.
fn owned(name: &str, owner: &str) -> Value {
    let mut nad = nad(name, r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    nad["metadata"]["namespace"] = "apps".into();
    nad["metadata"]["annotations"] = json!({ OWNER_REF: owner });
    nad
}

fn owner(kind: TestNetworkKind, name: &str) -> String {
    format!("{}.sriovnetwork.openshift.io/{OPERATOR}/{name}", kind.name())
}

/// Whether jane may write an object, and the messages.
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

    // Another network renders it: the operator would not change it.
    let forged = owned("net", &owner(TestNetworkKind::Sriov, "other"));
    let messages = wait("a denial", || {
        let (is_stored, messages) = apply(&cluster, &forged);
        (!is_stored).then_some(messages)
    });
    assert!(
        messages.contains("nad/forged-owner")
            && messages.contains(&format!("SriovNetwork {OPERATOR}/net renders this NAD")),
        "{messages}"
    );
    // The same for a later update.
    let truly = owned("net", &owner(TestNetworkKind::Sriov, "net"));
    assert!(apply(&cluster, &truly).0);
    cluster.jane.create(&nads("apps"), &truly);
    let error =
        cluster.jane.try_patch(&nad_at("apps", "net"), &json!({ "metadata": { "annotations": { OWNER_REF: "x" } } }));
    assert!(error.unwrap_err().message.contains("nad/forged-owner"));

    // The true owner, even if the watch has not delivered the network yet, because nadmit reads it before it judges.
    let (is_stored, messages) = apply(&cluster, &truly);
    assert!(is_stored && !messages.contains("nad/forged-owner"), "{messages}");
    for number in 0..5 {
        let name = format!("new-{number}");
        cluster.jane.create(&TestNetworkKind::Ib.path(), &network(TestNetworkKind::Ib, &name, "apps", &json!({})));
        let (is_stored, messages) = apply(&cluster, &owned(&name, &owner(TestNetworkKind::Ib, &name)));
        assert!(is_stored && !messages.contains("nad/forged-owner"), "{messages}");
    }

    // No network renders it: a restore creates the NADs first.
    let (is_stored, messages) = apply(&cluster, &owned("early", &owner(TestNetworkKind::Sriov, "early")));
    assert!(
        is_stored && messages.contains("nad/forged-owner") && messages.contains("which does not exist"),
        "{messages}"
    );

    // A deleted network denies nothing, however late its watch event arrives.
    cluster.jane.delete(&nad_at("apps", "net"));
    for number in 0..5 {
        let name = format!("gone-{number}");
        cluster
            .jane
            .create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, &name, "apps", &json!({})));
        cluster.jane.delete(&TestNetworkKind::Sriov.at(&name));
        let (is_stored, messages) = apply(&cluster, &owned(&name, &owner(TestNetworkKind::Sriov, "other")));
        assert!(is_stored, "{messages}");
    }
}
