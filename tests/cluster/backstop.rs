//! The backstop: the API server itself refuses an incomplete NAD while nadmit is away, and never anything else.

use nadmit::deploy::yaml;
use serde_json::{Value, json};

use crate::api::{Api, Refused};
use crate::cluster::Cluster;
use crate::install::printed;
use crate::objects::{Kind, RESOURCE_NAME, annotated, nad, nad_at, nads, network};
use crate::operator::Template;
use crate::processes::wait;

const INCOMPLETE: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5}"#;

/// What only the backstop adds, in force.
fn put_up(cluster: &Cluster) {
    let usual = printed(&[]);
    let added: Vec<Value> = printed(&["--backstop"]).into_iter().filter(|object| !usual.contains(object)).collect();
    assert_eq!(added.len(), 2, "{}", yaml::stream(&added));
    cluster.create_strictly(&added, &[]);
    let dry_run = format!("{}?dryRun=All", nads("default"));
    wait("the backstop", || refused_by_it(&cluster.admin, &dry_run));
}

/// Whether it is the backstop that refuses an incomplete NAD, which nobody can repair.
fn refused_by_it(user: &Api, path: &str) -> Option<Refused> {
    let refused = user.try_create(path, &nad("probe", INCOMPLETE)).err();
    refused.filter(|refused| refused.message.contains("ValidatingAdmissionPolicy"))
}

fn named(mut nad: Value, name: &str) -> Value {
    nad["metadata"]["annotations"] = json!({ RESOURCE_NAME: name });
    nad
}

#[test]
fn it_refuses_only_what_is_incomplete() {
    let cluster = Cluster::start();
    let old = nad_at("default", "old");
    cluster.jane.create(&nads("default"), &nad("old", INCOMPLETE));
    put_up(&cluster);

    let plugins = r#"{"cniVersion":"1.0.0","plugins":[{"type":"tuning"},{"type":"ib-sriov"}]}"#;
    for (what, nad, passes) in [
        ("incomplete", nad("a", INCOMPLETE), false),
        ("incomplete, in a list", nad("a", plugins), false),
        (
            "a name in the config, which Multus does not read",
            nad("a", r#"{"type":"sriov","resourceName":"a.io/b"}"#),
            false,
        ),
        ("an empty name", named(nad("a", INCOMPLETE), ""), false),
        ("complete", named(nad("a", INCOMPLETE), "a.io/b"), true),
        ("a fixed device", nad("a", r#"{"type":"sriov","deviceID":"0000:03:02.0"}"#), true),
        ("another plugin", nad("a", r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0"}"#), true),
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
            Ok(_) => assert!(passes, "{what}: it passed"),
            Err(refused) => assert!(!passes && refused.message.contains(RESOURCE_NAME), "{what}: {refused:?}"),
        }
    }

    // What was there before can be written, as long as it is not made into something else.
    let finalizers = json!({ "metadata": { "finalizers": ["example.com/wait"], "labels": { "a": "b" } } });
    cluster.jane.patch(&old, &finalizers);
    cluster.jane.patch(&old, &json!({ "metadata": { "labels": { "a": "c" } } }));
    let other = json!({ "spec": { "config": INCOMPLETE.replace('5', "6") } });
    assert!(cluster.jane.try_patch(&old, &other).is_err());
    // And it can go, whatever holds it.
    cluster.jane.delete(&old);
    cluster.jane.patch(&old, &json!({ "metadata": { "labels": { "a": "d" } } }));
    cluster.jane.patch(&old, &json!({ "metadata": { "finalizers": null } }));
    cluster.jane.wait_gone(&old);

    // What is complete stays so.
    let good = nad_at("default", "good");
    cluster.jane.create(&nads("default"), &named(nad("good", INCOMPLETE), "a.io/b"));
    cluster.jane.patch(&good, &other);
    let without = json!({ "metadata": { "annotations": { RESOURCE_NAME: null } } });
    assert!(cluster.jane.try_patch(&good, &without).is_err());
    cluster.jane.delete(&good);
    cluster.jane.wait_gone(&good);

    // The emergency brake.
    let labels = json!({ "nadmit.io/exempt": "true" });
    cluster.admin.create("/api/v1/namespaces", &json!({ "metadata": { "name": "free", "labels": labels } }));
    cluster.jane.create(&nads("free"), &nad("a", INCOMPLETE));
    cluster.admin.create(&nads("kube-system"), &nad("a", INCOMPLETE));
}

/// Repairs come before it is asked: while nadmit is there, nobody notices it.
#[test]
fn it_lets_pass_what_nadmit_repairs() {
    let mut cluster = Cluster::start();
    cluster.deploy_with("failurePolicy: {mutateNads: Ignore}");
    cluster.start_operator(Template::Faulty);
    put_up(&cluster);
    cluster.namespace("apps");
    cluster.jane.create(&Kind::Sriov.path(), &network(Kind::Sriov, "net", "apps", &json!({})));
    let is_complete = |nad: &Value| annotated(nad) == Some("openshift.io/cx7");
    cluster.admin.wait(&nad_at("apps", "net"), is_complete);

    // Away, with a webhook that fails open: the operator's faulty NAD does not get in, and comes when nadmit does.
    let dry_run = format!("{}?dryRun=All", nads("apps"));
    cluster.kill_nadmit();
    wait("the backstop alone", || refused_by_it(&cluster.jane, &dry_run));
    cluster.jane.create(&Kind::Sriov.path(), &network(Kind::Sriov, "late", "apps", &json!({})));
    wait("the operator's attempt", || {
        let log = cluster.operator_log();
        log.iter().any(|line| line.to_string().contains("ValidatingAdmissionPolicy")).then_some(())
    });
    assert!(cluster.admin.get(&nad_at("apps", "late")).is_none());
    cluster.start_nadmit();
    cluster.admin.wait(&nad_at("apps", "late"), is_complete);
}
