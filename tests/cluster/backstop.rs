//! The backstop: while nadmit is down and its webhooks fail open, the API server itself denies part of what nadmit's policy denies.

use serde_json::{Value, json};

use crate::api::{Api, ApiRejection};
use crate::cluster::TestCluster;
use crate::objects::{OPERATOR, RESOURCE_NAME, TestNetworkKind, annotated, nad, nad_at, nads, network, version};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const INCOMPLETE: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5}"#;
/// NADs pass unjudged while nadmit is down, so that only the backstop denies them.
pub const OPEN: &str = "failurePolicy: {mutateNads: Ignore}\n";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// The error, if the backstop denies an incomplete NAD.
fn denied(user: &Api, namespace: &str, nad: &Value) -> Option<ApiRejection> {
    let error = user.try_create(&format!("{}?dryRun=All", nads(namespace)), nad).err();
    error.filter(|error| error.message.contains("ValidatingAdmissionPolicy 'nadmit'"))
}

impl TestCluster {
    /// Deploys nadmit until the backstop is in force, and kills nadmit.
    pub fn leave_only_the_backstop(&mut self, policy: &str) {
        self.deploy_with(&format!("{OPEN}{policy}"));
        wait("the backstop", || denied(&self.jane, "default", &nad("probe", INCOMPLETE)));
        self.kill_nadmit();
    }

    /// The output of kubectl for a dry-run creation of a NAD, and whether it succeeds.
    fn kubectl_create(&self, namespace: &str, nad: &Value) -> (bool, String) {
        let create = ["create", "--dry-run=server", "--namespace", namespace, "-f", "-"];
        let out = self.kubectl("jane", &create, &nad.to_string());
        (out.status.success(), String::from_utf8(out.stderr).unwrap())
    }
}

fn named(mut nad: Value, name: &str) -> Value {
    nad["metadata"]["annotations"] = json!({ RESOURCE_NAME: name });
    nad
}

#[test]
fn backstop_denies_only_incomplete_nads() {
    let mut cluster = TestCluster::start();
    let old = nad_at("default", "old");
    cluster.jane.create(&nads("default"), &nad("old", INCOMPLETE));
    cluster.leave_only_the_backstop("leaveIncomplete: true\ndevicePlugins: [my-sriov]\n");

    let plugins = r#"{"cniVersion":"1.0.0","plugins":[{"type":"tuning"},{"type":"ib-sriov"}]}"#;
    let fixed = r#"{"cniVersion":"1.0.0","plugins":[{"type":"sriov","deviceID":"0000:03:02.0"},{"type":"tuning"}]}"#;
    for (what, nad, passes) in [
        ("incomplete", nad("a", INCOMPLETE), false),
        ("incomplete, in a list", nad("a", plugins), false),
        ("a plugin that the policy adds", nad("a", r#"{"type":"my-sriov"}"#), false),
        ("another spelling", nad("a", r#"{"Type":"s\u0072iov"}"#), false),
        (
            "a name in the config, which Multus does not read",
            nad("a", r#"{"type":"sriov","resourceName":"a.io/b"}"#),
            false,
        ),
        ("an empty name", named(nad("a", INCOMPLETE), ""), false),
        ("complete", named(nad("a", INCOMPLETE), "a.io/b"), true),
        ("a fixed device", nad("a", r#"{"type":"sriov","deviceID":"0000:03:02.0"}"#), true),
        ("a fixed device, in a list", nad("a", fixed), true),
        ("no fixed device", nad("a", r#"{"type":"sriov","deviceID":""}"#), false),
        ("a device in some other text", nad("a", r#"{"type":"sriov","logFile":"/deviceid"}"#), false),
        ("a device in some other key", nad("a", r#"{"type":"sriov","mydeviceID":"x"}"#), false),
        ("a device in another object", nad("a", r#"{"type":"sriov","args":{"deviceID":"0000:03:02.0"}}"#), false),
        (
            "a device of another plugin",
            nad("a", r#"{"plugins":[{"type":"sriov"},{"type":"sriov","deviceID":"0000:03:02.0"}]}"#),
            false,
        ),
        ("a device in a text of JSON", nad("a", r#"{"type":"sriov","x":"{\"deviceID\":\"x\"}"}"#), false),
        ("longer than the patterns support", nad("a", &padded(500_000)), false),
        ("nearly as long as the patterns support", nad("a", &padded(6_000)), false),
        ("long, with a device in some other text", nad("a", &long(r#""type":"sriov","y":"deviceID""#)), false),
        ("long, with an empty device", nad("a", &long(r#""type":"s\u0072iov","deviceID":"""#)), false),
        ("long, with a fixed device", nad("a", &long(r#""type":"sriov","deviceID":"0000:03:02.0""#)), true),
        ("long, of another plugin with such a name", nad("a", &long(r#""type":"macvlan","name":"sriov""#)), true),
        ("nested deeper than the patterns support", nad("a", &nested(r#""type":"sriov""#)), false),
        ("nested as deep, of another plugin", nad("a", &nested(r#""type":"macvlan""#)), true),
        ("another plugin", nad("a", r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0"}"#), true),
        ("a type in another object", nad("a", r#"{"type":"macvlan","args":{"type":"sriov"}}"#), true),
        ("no config", nad("a", ""), true),
        ("not JSON", nad("a", "sriov"), true),
        (
            "no spec",
            json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": "a" } }),
            true,
        ),
    ] {
        let made = cluster.jane.try_create(&format!("{}?dryRun=All", nads("default")), &nad);
        match made {
            Ok(_) => assert!(passes, "{what}: it was accepted"),
            Err(error) => assert!(!passes && error.message.contains(RESOURCE_NAME), "{what}: {error:?}"),
        }
    }

    // A NAD that was incomplete before may be changed in other fields, by all users.
    let finalizers = json!({ "metadata": { "finalizers": ["example.com/wait"], "labels": { "a": "b" } } });
    cluster.jane.patch(&old, &finalizers);
    let other = json!({ "spec": { "config": INCOMPLETE.replace('5', "6") } });
    cluster.jane.patch(&old, &other);
    let stored = cluster.admin.get(&old).unwrap();
    let operator = cluster.user("operator");
    let unchanged = operator.send("PUT", &old, "application/json", Some(&stored)).unwrap();
    assert_eq!(version(&unchanged), version(&stored));
    // It can be deleted, even with finalizers.
    cluster.jane.delete(&old);
    cluster.jane.patch(&old, &json!({ "metadata": { "labels": { "a": "d" } } }));
    cluster.jane.patch(&old, &json!({ "metadata": { "finalizers": null } }));
    cluster.jane.wait_deleted(&old);

    // A complete NAD must stay complete.
    let good = nad_at("default", "good");
    cluster.jane.create(&nads("default"), &named(nad("good", INCOMPLETE), "a.io/b"));
    cluster.jane.patch(&good, &other);
    let without = json!({ "metadata": { "annotations": { RESOURCE_NAME: null } } });
    assert!(cluster.jane.try_patch(&good, &without).is_err());
    cluster.jane.delete(&good);
    cluster.jane.wait_deleted(&good);

    // The exempt label of the namespace turns the backstop off.
    let labels = json!({ "nadmit.io/exempt": "true" });
    cluster.admin.create("/api/v1/namespaces", &json!({ "metadata": { "name": "free", "labels": labels } }));
    cluster.jane.create(&nads("free"), &nad("a", INCOMPLETE));
    cluster.admin.create(&nads("kube-system"), &nad("a", INCOMPLETE));
    // Without the registration there is no parameter, and nothing is denied.
    cluster.admin.delete("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit");
    wait("no parameter", || {
        cluster.jane.try_create(&format!("{}?dryRun=All", nads("default")), &nad("a", INCOMPLETE)).ok()
    });
}

fn padded(length: usize) -> String {
    format!(r#"{{"type":"sriov","pad":"{}"}}"#, "x".repeat(length))
}

/// A config with these members that is too long for the exact patterns.
fn long(members: &str) -> String {
    format!(r#"{{"pad":"{}",{members}}}"#, "x".repeat(20_000))
}

/// A config with these members after a value that is nested too deeply for the exact patterns.
fn nested(members: &str) -> String {
    format!(r#"{{"x":{}{},{members}}}"#, "[".repeat(20), "]".repeat(20))
}

/// The backstop denies only where nadmit's policy denies.
#[test]
fn backstop_follows_the_policy() {
    const POLICY: &str = "
namespaces:
- {names: [lab*], mode: audit}
- {names: [lab-strict], mode: enforce}
- {names: [claims], dra: allow}
- {names: [mild], rules: {nad/resource-name-missing: warn, network/render-unsafe: warn}}
exempt: {users: [\"system:serviceaccount:apps:*\"], namespaces: [free]}
exceptions:
- {rule: nad/resource-name-missing, namespace: apps, name: legacy, reason: r, expires: 2999-01-01}
- {rule: nad/resource-name-missing, namespace: apps, name: expired, reason: r, expires: 2020-01-01}
- {rule: network/render-unsafe, kind: SriovNetwork, namespace: apps, name: legacy, reason: r, expires: 2999-01-01}
";
    let mut cluster = TestCluster::start();
    for namespace in ["apps", "lab", "lab-2", "lab-strict", "claims", "mild", "free"] {
        cluster.namespace(namespace);
    }
    cluster.leave_only_the_backstop(POLICY);
    let incomplete = nad("net", INCOMPLETE);
    let networks = |namespace: &str, kind: TestNetworkKind| kind.path().replace(OPERATOR, namespace) + "?dryRun=All";
    let injected = |kind: TestNetworkKind, name: &str| {
        let mut network = network(kind, name, "x", &json!({ "resourceName": "a\n    b: c" }));
        network["metadata"]["namespace"].take();
        network["spec"]["networkNamespace"].take();
        network
    };
    for (namespace, nads, nets) in [
        ("apps", true, true),
        ("lab", false, false),
        ("lab-2", false, false),
        ("lab-strict", true, true),
        ("claims", false, true),
        ("mild", false, false),
        ("free", false, false),
    ] {
        assert_eq!(denied(&cluster.jane, namespace, &incomplete).is_some(), nads, "a NAD in {namespace}");
        for kind in TestNetworkKind::ALL {
            let made = cluster.jane.try_create(&networks(namespace, kind), &injected(kind, "net"));
            assert_eq!(made.is_err(), nets, "{kind:?} in {namespace}: {made:?}");
        }
    }
    // An exempt user, and an exception.
    assert!(denied(&cluster.user("robot"), "apps", &incomplete).is_none());
    assert!(denied(&cluster.jane, "apps", &nad("legacy", INCOMPLETE)).is_none());
    assert!(denied(&cluster.jane, "apps", &nad("expired", INCOMPLETE)).is_some());
    cluster.user("robot").create(&networks("apps", TestNetworkKind::Sriov), &injected(TestNetworkKind::Sriov, "net"));
    cluster.jane.create(&networks("apps", TestNetworkKind::Sriov), &injected(TestNetworkKind::Sriov, "legacy"));
    assert!(
        cluster
            .jane
            .try_create(&networks("apps", TestNetworkKind::Ovs), &injected(TestNetworkKind::Ovs, "legacy"))
            .is_err()
    );

    // Where pods may claim their devices, the policy warns, and the backstop denies nothing.
    let (is_made, output) = cluster.kubectl_create("claims", &incomplete);
    assert!(is_made && output.contains("Warning") && output.contains("DRA"), "{output}");
    assert_eq!(cluster.kubectl_create("claims", &named(nad("net", INCOMPLETE), "a.io/b")), (true, String::new()));

    // The backstop follows changes of the policy and of the DeviceClasses; the admission policies themselves are never written.
    let policies = |api: &Api| {
        let list = api.get(POLICIES).unwrap();
        list["items"].as_array().unwrap().iter().map(|policy| version(policy).to_owned()).collect::<Vec<_>>()
    };
    let before = policies(&cluster.admin);
    cluster.start_nadmit();
    cluster.set_policy(&format!("{OPEN}mode: audit\nnamespaces: [{{names: [lab], mode: enforce}}]"));
    wait("the other policy", || denied(&cluster.jane, "apps", &incomplete).is_none().then_some(()));
    wait("the other policy", || denied(&cluster.jane, "lab", &incomplete));
    if cluster.has_device_claims() {
        let class = json!({ "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "vfs" }, "spec": {
            "selectors": [{ "cel": { "expression": "device.driver == 'sriovnetwork.k8snetworkplumbingwg.io'" } }] } });
        cluster.admin.create("/apis/resource.k8s.io/v1/deviceclasses", &class);
        wait("the DeviceClass", || denied(&cluster.jane, "lab", &incomplete).is_none().then_some(()));
        cluster.kill_nadmit();
        wait("a warning", || {
            let (is_made, output) = cluster.kubectl_create("lab", &incomplete);
            (is_made && output.contains("nadmit-incomplete-nads-warn")).then_some(())
        });
        cluster.start_nadmit();
        cluster.admin.delete("/apis/resource.k8s.io/v1/deviceclasses/vfs");
        wait("no DeviceClass", || denied(&cluster.jane, "lab", &incomplete));
    }
    assert_eq!(policies(&cluster.admin), before);
}

/// By default the webhook itself fails closed, and the author of an incomplete NAD gets nadmit's message. The backstop still denies
/// injection.
#[test]
fn backstop_denies_injection_while_nadmit_is_down() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let error = cluster.jane.try_create(&nads("default"), &nad("net", INCOMPLETE)).unwrap_err();
    assert!(error.message.contains("the sriov plugin needs a device"), "{}", error.message);
    cluster.kill_nadmit();
    let error = cluster.jane.try_create(&nads("default"), &nad("net", INCOMPLETE)).unwrap_err();
    assert!(error.message.contains("failed calling webhook"), "{}", error.message);

    let stored = network(TestNetworkKind::Sriov, "net", "apps", &json!({}));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &stored);
    let path = TestNetworkKind::Sriov.at("net");
    for spec in [
        json!({ "resourceName": "cx7\nspec: {}" }),
        json!({ "networkNamespace": "kube-system\n  labels:\n    a: b" }),
        json!({ "networkNamespace": "\"kube-system\"" }),
        json!({ "metaPlugins": "{\"type\":\"tuning\"}]}'\n---\nkind: Pod\nx: '" }),
        // An expression that exceeds its cost limit is an error, which would accept the write.
        json!({ "resourceName": format!("cx7\n---\nkind: Pod\n---\n#{}", "a".repeat(600_000)) }),
        json!({ "networkNamespace": format!("kube-system\n#{}", "a".repeat(600_000)) }),
    ] {
        let error = cluster.jane.try_patch(&path, &json!({ "spec": spec })).unwrap_err();
        assert!(error.message.contains("nadmit-template-injection"), "{spec}: {}", error.message);
        let made = network(TestNetworkKind::Sriov, "other", "apps", &spec);
        let error = cluster.jane.try_create(&TestNetworkKind::Sriov.path(), &made).unwrap_err();
        assert!(error.message.contains("nadmit-template-injection"), "{spec}: {}", error.message);
    }
    cluster.jane.patch(&path, &json!({ "spec": { "vlan": 7, "ipam": "{\"type\": \"static\",\n \"x\": \"it''s\"}" } }));
}

/// An existing network can be written as long as its unsafe text stays unchanged.
#[test]
fn backstop_judges_only_changed_values() {
    let mut cluster = TestCluster::start();
    let unsafe_text = "cx7 # as it was";
    cluster.jane.create(
        &TestNetworkKind::Sriov.path(),
        &network(TestNetworkKind::Sriov, "net", "apps", &json!({ "resourceName": unsafe_text })),
    );
    cluster.leave_only_the_backstop("");
    let path = TestNetworkKind::Sriov.at("net");
    cluster.jane.patch(&path, &json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "vlan": 7 } }));
    cluster.jane.patch(&path, &json!({ "metadata": { "finalizers": ["example.com/wait"] } }));
    assert!(cluster.jane.try_patch(&path, &json!({ "spec": { "resourceName": "cx7 # as it is" } })).is_err());
    cluster.jane.delete(&path);
    cluster.jane.patch(&path, &json!({ "metadata": { "finalizers": null } }));
    cluster.jane.wait_deleted(&path);
}

/// nadmit repairs a NAD before the backstop sees it: while nadmit runs, the backstop has no effect.
#[test]
fn backstop_accepts_what_nadmit_repairs() {
    let mut cluster = TestCluster::start();
    cluster.deploy_with(OPEN);
    cluster.start_operator(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));
    let is_complete = |nad: &Value| annotated(nad) == Some("openshift.io/cx7");
    cluster.admin.wait(&nad_at("apps", "net"), is_complete);

    // nadmit is down and its webhook fails open: the operator's faulty NAD is denied, and created when nadmit is back.
    cluster.kill_nadmit();
    wait("the backstop alone", || denied(&cluster.jane, "apps", &nad("probe", INCOMPLETE)));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "late", "apps", &json!({})));
    wait("the operator's attempt", || {
        let log = cluster.operator_log();
        log.iter().any(|line| line.to_string().contains("ValidatingAdmissionPolicy")).then_some(())
    });
    assert!(cluster.admin.get(&nad_at("apps", "late")).is_none());
    cluster.start_nadmit();
    cluster.admin.wait(&nad_at("apps", "late"), is_complete);
}
