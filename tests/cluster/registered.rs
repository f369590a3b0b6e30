//! nadmit registers its webhooks, and restores the registration after changes.

use std::time::{Duration, Instant};

use nadmit::cni::Config;
use nadmit::json::Document;
use nadmit::yaml::Documents;
use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster::TestCluster;
use crate::objects::{LAST_NAMESPACE, TestNetworkKind, annotated, nad, nads, network, version};
use crate::processes::wait;
use crate::replicas::await_effect;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// How long a registration may be wrong: replicas check it every second.
const RESTORED: Duration = Duration::from_secs(10);

fn at(collection: &str) -> String {
    format!("{collection}/nadmit")
}

#[test]
fn registers_when_reachable_and_restores_changes() {
    let mut cluster = TestCluster::start();
    let first = cluster.start_supplied();
    // The Service has no endpoints: a registration now would block every write.
    wait("the probe", || cluster.nadmit().log_text().contains("nadmit is not reachable yet").then_some(()));
    let is_filled = |collection| cluster.admin.get(&at(collection)).unwrap()["webhooks"].is_array();
    assert!(!is_filled(MUTATING) && !is_filled(VALIDATING));
    cluster.join_service(first);
    let second = cluster.start_supplied();
    cluster.join_service(second);
    await_effect(&cluster.admin);
    let good = [MUTATING, VALIDATING].map(|collection| cluster.admin.get(&at(collection)).unwrap());
    let is_fixed = |good: &Value| {
        let webhooks = good["webhooks"].clone();
        move |now: &Value| now["webhooks"] == webhooks
    };
    // Each of these checks the other configuration, too, and must not change it.
    let vandalism = [
        json!({ "webhooks": null }),
        json!({ "webhooks": [good[1]["webhooks"][0]] }),
        patched(&good[1], "/webhooks/1/clientConfig/caBundle", json!("QUJD")),
        patched(&good[1], "/webhooks/0/failurePolicy", json!("Fail")),
        patched(&good[1], "/webhooks/2/objectSelector", json!({ "matchLabels": { "a": "b" } })),
        patched(&good[1], "/webhooks/0/matchConditions", json!([])),
        json!({ "metadata": { "annotations": null }, "webhooks": [] }),
    ];
    let mut longest = Duration::ZERO;
    for change in vandalism {
        cluster.admin.patch(&at(VALIDATING), &change);
        let changed = Instant::now();
        let fixed = cluster.admin.wait(&at(VALIDATING), is_fixed(&good[1]));
        longest = longest.max(changed.elapsed());
        assert_eq!(fixed["metadata"]["annotations"], good[1]["metadata"]["annotations"], "{change}");
    }
    // Version 0.1.0 set an owner, with which the configuration would be deleted.
    let role = cluster.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/nadmit").unwrap();
    let owner = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "nadmit",
        "uid": role["metadata"]["uid"] });
    cluster.admin.patch(&at(VALIDATING), &json!({ "metadata": { "ownerReferences": [owner] } }));
    cluster.admin.wait(&at(VALIDATING), |now| now["metadata"]["ownerReferences"].is_null());
    println!("fixed within {longest:.1?}");
    assert!(longest < RESTORED, "{longest:?}");
    assert_eq!(
        version(&cluster.admin.get(&at(MUTATING)).unwrap()),
        version(&good[0]),
        "the configuration was written without a change"
    );

    // Another CA is not nadmit's.
    let other = patched(&good[0], "/webhooks/0/clientConfig/caBundle", json!(base64(&stranger())));
    cluster.admin.patch(&at(MUTATING), &other);
    cluster.admin.wait(&at(MUTATING), is_fixed(&good[0]));
    await_effect(&cluster.admin);

    // A policy with another device plugin changes the match conditions.
    let mine = nad("mine", r#"{"cniVersion":"1.0.0","type":"my-sriov","resourceName":"probe.io/x"}"#);
    let dry_run = format!("{}?dryRun=All", nads("default"));
    assert_eq!(annotated(&cluster.jane.try_create(&dry_run, &mine).unwrap()), None);
    cluster.set_policy("devicePlugins: [my-sriov]\n");
    wait("the other plugin", || {
        let made = cluster.jane.try_create(&dry_run, &mine).ok();
        made.filter(|nad| annotated(nad) == Some("probe.io/x"))
    });
}

/// The webhooks of a configuration with one change.
fn patched(configuration: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = json!({ "webhooks": configuration["webhooks"] });
    *changed.pointer_mut(pointer).unwrap() = value;
    changed
}

fn stranger() -> String {
    crate::certificates::TestAuthority::new("a stranger").pem()
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}

/// While nadmit is down, exactly the NADs with a device plugin are denied, as the judge reads them.
#[test]
fn only_device_nads_require_nadmit() {
    let mut cluster = TestCluster::start();
    cluster.deploy_with("devicePlugins: [my-sriov, \"a'b/c\\\\d\"]\n");
    cluster.kill_nadmit();
    let dry_run = format!("{}?dryRun=All", nads("default"));
    let mut seen = [0, 0];
    for spec in of_the_cases().into_iter().chain(odd()) {
        let mut object = nad("one", "");
        match &spec {
            Value::Null => drop(object.as_object_mut().unwrap().remove("spec")),
            spec => object["spec"] = spec.clone(),
        }
        let error = cluster.jane.try_create(&dry_run, &object).err();
        let is_asked = error.as_ref().is_some_and(|error| error.message.contains("failed calling webhook"));
        // Errors of the schema do not concern nadmit; a match condition that cannot be evaluated would.
        assert!(
            error.as_ref().is_none_or(|error| is_asked || error.message.contains("is invalid")),
            "{spec}: {error:?}"
        );
        let config = spec["config"].as_str().unwrap_or_default();
        if has_device(config) {
            assert!(is_asked, "stored without a call of nadmit: {config}");
            seen[0] += 1;
        } else if !mentions_device(config) {
            assert!(!is_asked, "denied without a device plugin: {config}");
            seen[1] += 1;
        }
    }
    println!("{seen:?}");
    assert!(seen[0] > 100 && seen[1] > 50, "{seen:?}");

    // Networks are accepted, even those that nadmit would repair.
    for (kind, last) in
        [(TestNetworkKind::Sriov, None), (TestNetworkKind::Ib, Some("")), (TestNetworkKind::Ovs, Some("gone"))]
    {
        let mut network = network(kind, "net", "default", &json!({}));
        if let Some(last) = last {
            network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: last });
        }
        cluster.jane.create(&format!("{}?dryRun=All", kind.path()), &network);
    }
    // And so is everything in an exempt namespace.
    let sriov = nad("one", r#"{"cniVersion":"1.0.0","type":"sriov"}"#);
    cluster.admin.create(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "free", "labels": { "nadmit.io/exempt": "true" } } }),
    );
    cluster.jane.create(&nads("free"), &sriov);
    cluster.admin.create(&nads("kube-system"), &sriov);
    assert!(cluster.jane.try_create(&nads("default"), &sriov).is_err());
}

/// Waits until the API server's cache of a collection is current: a patch is first applied to the cached object, and admission is
/// called for the result, which may seem to change more.
fn await_cache(api: &Api, collection: &str) {
    let versions = |query: &str| {
        let list = api.get(&format!("{collection}{query}")).unwrap();
        list["items"].as_array().unwrap().iter().map(|item| version(item).to_owned()).collect::<Vec<_>>()
    };
    wait("the cache", || (versions("?resourceVersion=0") == versions("")).then_some(()));
}

/// The API server calls nadmit for controllers only if a judged field changes, and for users each time.
#[test]
fn unchanged_controller_writes_skip_validation() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("apps");
    let robot = cluster.user("robot");
    let asked = |what: &str, write: &dyn Fn()| {
        let count = || cluster.nadmit().metric("nadmit_review_duration_seconds_count{endpoint=\"validate\"}");
        let before = count();
        write();
        println!("{what}: {}", count() - before);
        count() > before
    };
    let map = cluster.admin.create("/api/v1/namespaces/apps/configmaps", &json!({ "metadata": { "name": "x" } }));
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": map["metadata"]["uid"] });
    let config = |vlan: u32| format!(r#"{{"cniVersion":"1.0.0","type":"sriov","vlan":{vlan}}}"#);
    let mut made = nad("net", &config(5));
    made["metadata"]["annotations"] = json!({ "k8s.v1.cni.cncf.io/resourceName": "openshift.io/cx7" });
    let network = network(TestNetworkKind::Sriov, "net", "apps", &json!({ "vlan": 5 }));
    let networks = TestNetworkKind::Sriov.path();
    // The last namespace exists and has a NAD of this name, so that nadmit has nothing to fix.
    cluster.namespace("before");
    cluster.admin.create(&nads("before"), &nad("net", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#));
    let specs = |vlan: u32| [json!({ "config": config(vlan) }), json!({ "vlan": vlan })];
    for (number, (collection, object)) in [(nads("apps"), made), (networks, network)].into_iter().enumerate() {
        let is_nad = number == 0;
        let path = format!("{collection}/net");
        assert!(asked("create", &|| drop(robot.create(&collection, &object))));
        let label = |value: &str| json!({ "metadata": { "labels": { "a": value } } });
        for (change, is_asked) in [
            (label("b"), false),
            (json!({ "metadata": { "annotations": { "a": "b" } } }), is_nad),
            (json!({ "metadata": { "ownerReferences": [owner] } }), is_nad),
            (json!({ "metadata": { "finalizers": ["a.io/b"] } }), false),
            (json!({ "metadata": { "finalizers": null } }), false),
            (json!({ "spec": specs(6)[number] }), true),
            (json!({ "spec": specs(6)[number] }), false),
            // A network whose last namespace is not its target is sent to nadmit, whatever is written.
            (json!({ "metadata": { "annotations": { LAST_NAMESPACE: "before" } } }), true),
            (label("d"), !is_nad),
        ] {
            await_cache(&cluster.admin, &collection);
            assert_eq!(asked(&change.to_string(), &|| drop(robot.patch(&path, &change))), is_asked, "{path} {change}");
        }
        assert!(asked("a write by a user", &|| drop(cluster.jane.patch(&path, &label("c")))));
    }
    // A large object is compared, too: a condition that exceeds its cost limit would accept it without nadmit.
    let large = |end: char| {
        let pad = "a".repeat(600_000);
        json!({ "spec": { "config": format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","pad":"{pad}{end}"}}"#) } })
    };
    let path = format!("{}/net", nads("apps"));
    for (end, is_asked) in [('b', true), ('c', true), ('c', false)] {
        await_cache(&cluster.admin, &nads("apps"));
        assert_eq!(asked("a large config", &|| drop(robot.patch(&path, &large(end)))), is_asked, "{end}");
    }
    // A bad value is still denied.
    let bad = json!({ "spec": { "config": "not JSON" } });
    let error = robot.try_patch(&path, &bad).unwrap_err();
    assert!(error.message.contains("denied the request"), "{error:?}");
}

const KINDS: [&str; 4] = ["sriov", "ib-sriov", "my-sriov", r"a'b/c\d"];

/// Whether the judge sees a plugin that needs a device.
fn has_device(config: &str) -> bool {
    let Ok(document) = Document::parse(config) else { return false };
    let Some(config) = Config::of(&document) else { return false };
    // Multus may read another type from the text than the plugin from its copy.
    let kinds = config.plugins.iter().flat_map(|plugin| [Some(plugin.kind), plugin.kind_in_text]).flatten();
    kinds.into_iter().any(|kind| KINDS.contains(&kind))
}

/// Whether the text contains such a type anywhere: the match condition cannot know more.
fn mentions_device(config: &str) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Object(members) => members.iter().any(|(key, value)| {
                let is_kind = value.as_str().is_some_and(|kind| KINDS.contains(&kind));
                key.eq_ignore_ascii_case("type") && is_kind || within(value)
            }),
            Value::Array(elements) => elements.iter().any(within),
            _ => false,
        }
    }
    match serde_json::from_str(config) {
        // This reader keeps only the last of equal keys.
        Ok(value) => within(&value) || config.matches("ype").count() > 1 && config.contains("sriov"),
        Err(_) => config.contains("sriov"),
    }
}

/// The spec of every NAD in the cases.
pub fn of_the_cases() -> Vec<Value> {
    let mut specs = Vec::new();
    for case in crate::case::all() {
        for document in Documents::new(&case.input) {
            let Ok(node) = document.node else { continue };
            let Ok(object) = serde_json::from_str::<Value>(&node.to_json()) else { continue };
            if object["kind"] == "NetworkAttachmentDefinition" {
                specs.push(object["spec"].clone());
            }
        }
    }
    specs
}

pub fn odd() -> Vec<Value> {
    let long = "x".repeat(400_000);
    let configs = [
        r#"{"type":"s\u0072iov"}"#,
        r#"{"type":"\u0073\u0072\u0069\u006F\u0076"}"#,
        r#"{"type":"\u0073\u0072\u0069\u006f\u0076"}"#,
        r#"{"\u0074ype":"sriov"}"#,
        r#"{"\u0054\u0059\u0050\u0045":"ib\u002Dsriov"}"#,
        r#"{"TyPe":"sriov"}"#,
        r#"{"Type":"SRIOV"}"#,
        r#"{"type":"bridge","Type":"sriov","name":"n"}"#,
        r#"{"type":null,"plugins":[{"TYPE":"ib-sriov"}]}"#,
        "{\"type\"\n\t\r :\n\t\r \"sriov\"}",
        r#"{"plugins":[{"type":"tuning"},{"type":"my-sriov"}]}"#,
        r#"{"type":"a'b/c\\d"}"#,
        r#"{"type":"a'b\/c\u005cd"}"#,
        r#"{"type":"macvlan","name":"sriov"}"#,
        r#"{"type":"macvlan","name":"sriov-type"}"#,
        r#"{"type":"macvlan","description":"\"type\":\"sriov\""}"#,
        r#"{"type":"macvlan","description":"caf\u00e9 s\u0072iov"}"#,
        r#"{"type":"ovs","bridge":"br","deviceID":"0000:00:00.1"}"#,
        "",
        "not JSON",
        "[]",
        "null",
        "\u{0}",
    ];
    let mut odd: Vec<Value> = configs.iter().map(|config| json!({ "config": config })).collect();
    odd.push(json!({ "config": format!(r#"{{"type":"sriov","x":"{long}"}}"#) }));
    odd.push(json!({ "config": format!(r#"{{"x":"{long}","type":"\u0073riov"}}"#) }));
    odd.push(json!({ "config": format!(r#"{{"type":"macvlan","x":"{long}"}}"#) }));
    odd.extend([
        Value::Null,
        json!({}),
        json!({ "config": null }),
        json!({ "config": 5 }),
        json!({ "config": { "type": "sriov" } }),
    ]);
    odd.extend([json!([]), json!("text"), json!(5)]);
    odd
}
