//! The label that exempts a namespace: only users who may change nadmit's registration may add it, and all other namespace writes are
//! unaffected.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::processes::wait;

const NAMESPACES: &str = "/api/v1/namespaces";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn namespace(name: &str, exempt: Option<&str>) -> Value {
    let labels = exempt.map_or(json!({}), |value| json!({ "nadmit.io/exempt": value }));
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

impl TestCluster {
    /// Grants a rule to a user, in the whole cluster.
    fn grant_rule(&self, user: &str, name: &str, rule: &Value) {
        let metadata = json!({ "name": name });
        self.admin.create(&format!("{RBAC}/clusterroles"), &json!({ "metadata": metadata, "rules": [rule] }));
        let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
        let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user });
        let bound = json!({ "metadata": metadata, "roleRef": reference, "subjects": [subject] });
        self.admin.create(&format!("{RBAC}/clusterrolebindings"), &bound);
    }
}

#[test]
fn exempt_label_requires_registration_permission() {
    let mut cluster = TestCluster::start();
    let all = ["namespaces", "namespaces/status", "namespaces/finalize"];
    for user in ["jane", "putter"] {
        let rule = json!({ "apiGroups": [""], "resources": all, "verbs": ["*"] });
        cluster.grant_rule(user, &format!("namespaces-{user}"), &rule);
    }
    let registration = json!({ "apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
        "resourceNames": ["nadmit"], "verbs": ["update"] });
    cluster.grant_rule("putter", "registration", &registration);
    let putter = cluster.user("putter");
    let label = |value: Option<&str>| json!({ "metadata": { "labels": { "nadmit.io/exempt": value } } });
    let at = |name: &str| format!("{NAMESPACES}/{name}");
    let is_denied = |what: &str, made: Result<Value, crate::api::ApiRejection>| {
        let error = made.expect_err(what);
        assert!(error.message.contains("nadmit-exempt-label"), "{what}: {}", error.message);
    };
    // Admission policies and RBAC take effect some time after they are stored.
    wait("the rights", || cluster.jane.try_create(NAMESPACES, &namespace("apps", None)).ok());
    wait("the policy", || cluster.jane.try_patch(&format!("{}?dryRun=All", at("apps")), &label(Some("true"))).err());

    is_denied("create", cluster.jane.try_create(NAMESPACES, &namespace("free", Some("true"))));
    is_denied("patch", cluster.jane.try_patch(&at("apps"), &label(Some("true"))));
    for part in ["status", "finalize"] {
        let mut stored = cluster.jane.get(&at("apps")).unwrap();
        stored["metadata"]["labels"]["nadmit.io/exempt"] = json!("true");
        let path = format!("{}/{part}", at("apps"));
        let written = cluster.jane.send("PUT", &path, "application/json", Some(&stored));
        is_denied(part, written);
    }
    assert!(cluster.jane.get(&at("apps")).unwrap()["metadata"]["labels"]["nadmit.io/exempt"].is_null());

    // A user who may change the registration may add the label.
    cluster.start_nadmit();
    wait("the metric", || (cluster.nadmit().metric("nadmit_exempt_namespaces") == 0.0).then_some(()));
    putter.patch(&at("apps"), &label(Some("true")));
    putter.create(NAMESPACES, &namespace("free", Some("true")));
    wait("the metric", || (cluster.nadmit().metric("nadmit_exempt_namespaces") == 2.0).then_some(()));

    // No other write is denied, even to an exempt namespace.
    for (name, change) in [
        ("apps", json!({ "metadata": { "labels": { "a": "b" } } })),
        ("apps", json!({ "metadata": { "annotations": { "a": "b" }, "finalizers": ["example.com/wait"] } })),
        ("apps", json!({ "metadata": { "finalizers": null } })),
        ("apps", label(Some("true"))),
        ("apps", label(Some("false"))),
        ("free", label(None)),
        ("free", json!({ "metadata": { "labels": null } })),
    ] {
        cluster.jane.patch(&at(name), &change);
    }
    is_denied("again", cluster.jane.try_patch(&at("apps"), &label(Some("true"))));
    cluster.jane.create(NAMESPACES, &namespace("more", Some("false")));
    wait("the metric", || (cluster.nadmit().metric("nadmit_exempt_namespaces") == 0.0).then_some(()));
    putter.patch(&at("apps"), &label(Some("true")));
    cluster.jane.delete(&at("apps"));
    cluster.jane.wait_deleted(&at("apps"));
}
