//! Pods, and what makes them, are judged where the policy says so, and nothing else of them reaches nadmit.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::install::printed;
use crate::objects::{RESOURCE_NAME, nad, nad_at, nads};
use crate::processes::wait;
use crate::replicas::await_effect;

const PODS: &str = "/api/v1/namespaces/apps/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/apps/deployments";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nadmit";
const PLAIN: &str = r#"{"cniVersion":"1.0.0","type":"ipvlan","master":"eth0"}"#;
const DEVICE: &str = r#"{"cniVersion":"1.0.0","type":"sriov","vlan":5}"#;

fn template(networks: Option<&str>) -> Value {
    let annotations = networks.map_or(json!({}), |networks| json!({ "k8s.v1.cni.cncf.io/networks": networks }));
    json!({
        "metadata": { "labels": { "app": "web" }, "annotations": annotations },
        "spec": { "containers": [{ "name": "web", "image": "web" }] },
    })
}

fn pod(name: &str, networks: Option<&str>) -> Value {
    let mut pod = template(networks);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["namespace"] = json!("apps");
    pod
}

fn workload(kind: &str, name: &str, networks: Option<&str>) -> Value {
    let mut template = template(networks);
    let (group, spec) = match kind {
        "Job" | "CronJob" => {
            template["spec"]["restartPolicy"] = json!("Never");
            let job = json!({ "template": template });
            let cron = json!({ "schedule": "0 0 1 1 *", "jobTemplate": { "spec": job } });
            ("batch/v1", if kind == "Job" { job } else { cron })
        }
        _ => ("apps/v1", json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template })),
    };
    json!({ "apiVersion": group, "kind": kind, "metadata": { "name": name, "namespace": "apps" }, "spec": spec })
}

/// The warnings of kubectl when an object is created, as one text. The object is created in any case.
fn create(cluster: &TestCluster, object: &Value) -> String {
    warnings(cluster, &["create", "-f", "-"], &object.to_string())
}

fn warnings(cluster: &TestCluster, arguments: &[&str], input: &str) -> String {
    let out = cluster.kubectl("admin", arguments, input);
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{text}");
    text.lines().filter_map(|line| line.strip_prefix("Warning: ")).map(str::trim).collect::<Vec<_>>().join(" ")
}

/// How many reviews an endpoint has answered.
fn reviews(cluster: &TestCluster, endpoint: &str) -> f64 {
    let start = format!("nadmit_reviews_total{{endpoint=\"{endpoint}\"");
    let metrics = cluster.nadmit().metrics_text();
    let counts = metrics.lines().filter(|line| line.starts_with(&start));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// Gives nadmit the right that `nadmit install` grants with a policy that judges pods.
pub fn allow_pods(cluster: &TestCluster) {
    let policy = cluster.directory().join("pods.yaml");
    fs::write(&policy, "pods: warn\n").unwrap();
    let usual = printed(&[]);
    let with_pods = printed(&["--policy", policy.to_str().unwrap()]);
    let is_added = |object: &Value| object["kind"] != "ConfigMap" && !usual.contains(object);
    let added: Vec<Value> = with_pods.into_iter().filter(is_added).collect();
    assert_eq!(added.len(), 2, "{added:#?}");
    cluster.create_strictly(&added, &[]);
    wait("the pods", || (cluster.nadmit().metric("nadmit_cache_ready{kind=\"Pod\"}") == 1.0).then_some(()));
}

fn entries(cluster: &TestCluster) -> Vec<String> {
    let webhooks = cluster.admin.get(VALIDATING).unwrap()["webhooks"].as_array().unwrap().clone();
    webhooks.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// A cluster in which the policy judges pods, and nadmit may read them.
fn cluster(policy: &str) -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.deploy_with(policy);
    cluster.namespace("apps");
    cluster
}

#[test]
fn writers_are_warned_and_nothing_else_reaches_nadmit() {
    let cluster = cluster("pods: warn");
    assert!(
        ["pods.nadmit.io", "nads-in-use.nadmit.io"].iter().all(|name| entries(&cluster).contains(&(*name).to_owned()))
    );
    // Without the right to read pods, only what needs none of them is judged, and nadmit says what it lacks.
    wait("the missing right", || {
        cluster.nadmit().log_text().contains("cannot list resource \\\"pods\\\"").then_some(())
    });
    let found = create(&cluster, &pod("first", Some("a/b/c")));
    assert!(found.contains("(pod/selection)") && found.contains("failed at '/'"), "{found}");

    cluster.admin.create(&nads("apps"), &nad("net", PLAIN));
    let mut device = nad("device", DEVICE);
    device["metadata"]["annotations"] = json!({ RESOURCE_NAME: "openshift.io/cx7" });
    cluster.admin.create(&nads("apps"), &device);
    wait("both NADs", || {
        (cluster.nadmit().metric("nadmit_cache_objects{kind=\"NetworkAttachmentDefinition\"}") == 2.0).then_some(())
    });
    let before = reviews(&cluster, "pods");
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"] {
        assert_eq!(create(&cluster, &workload(kind, "plain", None)), "", "{kind}");
        assert_eq!(create(&cluster, &workload(kind, "good", Some("net"))), "", "{kind}");
        let found = create(&cluster, &workload(kind, "bad", Some("net@eth0, nett")));
        for rule in ["pod/interface", "pod/nad-absent"] {
            assert!(found.contains(rule), "{kind}: {found}");
        }
        assert!(found.contains("did you mean `net`?") || !found.contains("did you mean"), "{found}");
    }
    assert_eq!(create(&cluster, &pod("plain", None)), "");
    assert_eq!(reviews(&cluster, "pods") - before, 10.0, "those that select networks, and no other");
    let found = create(&cluster, &pod("devices", Some("device")));
    assert!(found.contains("pod/too-few-devices") && found.contains("requests 0 devices"), "{found}");

    // Scaling makes no other pods; another template does.
    let before = reviews(&cluster, "pods");
    let good = format!("{DEPLOYMENTS}/good");
    cluster.admin.patch(&good, &json!({ "spec": { "replicas": 3 }, "metadata": { "annotations": { "a": "b" } } }));
    let pod_at = format!("{PODS}/devices");
    cluster.admin.patch(&pod_at, &json!({ "metadata": { "labels": { "a": "b" } } }));
    assert_eq!(reviews(&cluster, "pods"), before);
    let annotations = json!({ "k8s.v1.cni.cncf.io/networks": "a@b@c" });
    cluster.admin.patch(&good, &json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }));
    assert_eq!(reviews(&cluster, "pods"), before + 1.0);

    // Only recorded, and then not at all.
    cluster.set_policy("pods: audit");
    wait("no warning", || {
        let dry =
            warnings(&cluster, &["create", "--dry-run=server", "-f", "-"], &pod("dry", Some("a/b/c")).to_string());
        dry.is_empty().then_some(())
    });
    wait("the record", || cluster.nadmit().log_text().contains("pod/selection=audit").then_some(()));
    cluster.set_policy("{}");
    wait("no entries", || (entries(&cluster).len() == 4).then_some(()));
}

/// KubeVirt's kind, as far as the API server needs it.
fn machines() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "virtualmachines.kubevirt.io" },
        "spec": {
            "group": "kubevirt.io",
            "scope": "Namespaced",
            "names": { "kind": "VirtualMachine", "plural": "virtualmachines", "singular": "virtualmachine" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

#[test]
fn virtual_machines_are_judged_by_their_networks() {
    let cluster = cluster("pods: warn");
    cluster.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &machines());
    allow_pods(&cluster);
    cluster.admin.create(&nads("apps"), &nad("storage", PLAIN));
    let machine = |name: &str, network: &str| {
        json!({ "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": name, "namespace": "apps" },
            "spec": { "template": { "spec": { "networks": [{ "name": "data", "multus": { "networkName": network } }] } } } })
    };
    wait("the warning", || {
        let dry = ["create", "--dry-run=server", "-f", "-"];
        warnings(&cluster, &dry, &machine("bad", "a/b/c").to_string()).contains("pod/selection").then_some(())
    });
    assert_eq!(create(&cluster, &machine("good", "storage")), "");
    let found = create(&cluster, &machine("absent", "storag"));
    assert!(found.contains("pod/nad-absent") && found.contains("did you mean `storage`?"), "{found}");
}

/// Whoever may delete NADs, and may not list pods, learns only that there are some.
#[test]
fn pods_that_use_a_nad_are_named_to_those_who_may_list_them() {
    let cluster = cluster("pods: warn");
    allow_pods(&cluster);
    for name in ["one", "two", "far"] {
        cluster.admin.create(&nads("apps"), &nad(name, PLAIN));
    }
    cluster.namespace("other");
    cluster.admin.create(PODS, &pod("web-0", Some("one,two")));
    let mut far = pod("far-0", Some("apps/one,apps/far"));
    far["metadata"]["namespace"] = json!("other");
    cluster.admin.create("/api/v1/namespaces/other/pods", &far);
    let rules = |name: &str, group: &str, resource: &str, verbs: &[&str]| {
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/apps";
        let meta = json!({ "name": name, "namespace": "apps" });
        cluster.admin.create(
            &format!("{roles}/roles"),
            &json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta,
                "rules": [{ "apiGroups": [group], "resources": [resource], "verbs": verbs }] }),
        );
        cluster.admin.create(
            &format!("{roles}/rolebindings"),
            &json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
                "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "deleter" }] }),
        );
    };
    rules("nads", "k8s.cni.cncf.io", "network-attachment-definitions", &["get", "list", "watch", "delete"]);
    wait("both pods", || (cluster.nadmit().metric("nadmit_cache_objects{kind=\"Pod\"}") == 2.0).then_some(()));
    let delete = |name: &str, mode: &str| {
        let nads = "network-attachment-definitions";
        warnings(&cluster, &["delete", nads, name, "--namespace", "apps", "--wait=false", "--as=deleter", mode], "")
    };
    for name in ["one", "far"] {
        let found = delete(name, "--dry-run=none");
        assert!(found.contains(&format!("NAD `{name}` is in use by pods: they keep")), "{found}");
        assert!(!found.contains("web-0") && !found.contains("other"), "{found}");
    }
    rules("pods", "", "pods", &["list"]);
    // That it was not allowed is cached for ten seconds.
    wait("the name of the pod", || {
        delete("two", "--dry-run=server").contains("NAD `two` is in use: pod web-0: they keep").then_some(())
    });
}

#[test]
fn nads_in_use_and_reports_of_pods() {
    let cluster = cluster("pods: warn\naudit: {graceSeconds: 2}");
    allow_pods(&cluster);
    cluster.admin.create(&nads("apps"), &nad("net", PLAIN));
    for name in ["web-0", "web-1"] {
        cluster.admin.create(PODS, &pod(name, Some("net")));
    }
    let waiting = cluster.admin.create(PODS, &pod("waiting", Some("later")));
    let uid = waiting["metadata"]["uid"].as_str().unwrap();
    let report = format!("/apis/openreports.io/v1alpha1/namespaces/apps/reports/nadmit-{uid}");
    let found = wait("the report", || cluster.admin.get(&report));
    assert_eq!(found["results"][0]["rule"], "pod/nad-absent", "{found:#}");
    assert!(found["results"][0]["message"].as_str().unwrap().contains("`later`, which does not exist"), "{found:#}");
    // It clears when the NAD exists, and comes back when the NAD is deleted, without a full scan.
    cluster.admin.create(&nads("apps"), &nad("later", PLAIN));
    cluster.admin.wait_deleted(&report);

    let delete =
        |name: &str| warnings(&cluster, &["delete", "network-attachment-definitions", name, "--namespace", "apps"], "");
    let found = delete("later");
    assert!(found.contains("NAD `later` is in use: pod waiting: they keep"), "{found}");
    wait("the report again", || cluster.admin.get(&report));
    let found = delete("net");
    assert!(found.contains("NAD `net` is in use: pods web-0, web-1: they keep"), "{found}");
    assert_eq!(cluster.admin.get(&nad_at("apps", "net")), None);
    // Nobody uses it any more.
    cluster.admin.create(&nads("apps"), &nad("net", PLAIN));
    for name in ["web-0", "web-1"] {
        cluster.admin.delete(&format!("{PODS}/{name}?gracePeriodSeconds=0"));
    }
    wait("no pods", || (cluster.nadmit().metric("nadmit_cache_objects{kind=\"Pod\"}") == 1.0).then_some(()));
    assert_eq!(delete("net"), "");
    // A namespace that goes takes its NADs with it: its controller gets no review. The controllers of the tests are the administrator.
    await_effect(&cluster.admin);
    cluster.admin.create(&nads("apps"), &nad("net", PLAIN));
    let before = reviews(&cluster, "in-use");
    let controller = "--as=system:serviceaccount:kube-system:namespace-controller";
    let net = ["delete", "network-attachment-definitions", "net", "--namespace", "apps", controller];
    assert_eq!(warnings(&cluster, &net, ""), "");
    assert_eq!(cluster.admin.get(&nad_at("apps", "net")), None);
    assert_eq!(reviews(&cluster, "in-use"), before);
}
