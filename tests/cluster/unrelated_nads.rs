//! Networks that nadmit does not judge, and writes while nadmit is down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{TestNetworkKind, annotated, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

/// Configs as users write them, with their white space and order. NAME is the name of the NAD.
const OTHERS: [(&str, &str); 4] = [
    (
        "macvlan",
        "{\n  \"cniVersion\": \"0.3.1\",\n  \"type\": \"macvlan\", \"master\": \"eth0\",  \"mode\": \"bridge\",\n  \"ipam\": {\"type\": \"dhcp\"}\n}\n",
    ),
    ("bridge", r#"{"name":"b","cniVersion":"1.0.0","plugins":[{"type":"bridge","bridge":"br0"},{"type":"tuning"}]}"#),
    (
        "ovn",
        r#"{"cniVersion":"1.0.0","name":"l2","type":"ovn-k8s-cni-overlay","topology":"layer2","netAttachDefName":"apps/NAME"}"#,
    ),
    ("none", ""),
];

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.retain(|key, _| ["name", "annotations", "labels", "finalizers"].contains(&key.as_str()));
    object
}

#[test]
fn unrelated_nads_are_unaffected_while_nadmit_is_down() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    cluster.namespace("apps");
    for state in ["up", "down"] {
        if state == "down" {
            cluster.kill_nadmit();
        }
        for (name, config) in OTHERS {
            let name = format!("{name}-{state}");
            let sent = nad(&name, &config.replace("NAME", &name));
            assert_eq!(bare(&cluster.jane.create(&nads("apps"), &sent)), sent, "{state}");
            let changed =
                cluster.jane.patch(&nad_at("apps", &name), &json!({ "metadata": { "labels": { "a": "b" } } }));
            assert_eq!(changed["spec"], sent["spec"], "{state}");
            cluster.jane.delete(&nad_at("apps", &name));
            cluster.jane.wait_deleted(&nad_at("apps", &name));
        }
    }
}

/// The name of the NAD in a config of OVN-Kubernetes is repaired; nothing depends on nadmit for it.
#[test]
fn name_in_an_ovn_config_is_repaired() {
    let mut cluster = TestCluster::start();
    cluster.deploy();
    let (_, config) = OTHERS.into_iter().find(|(name, _)| *name == "ovn").unwrap();
    let created = cluster.jane.create(&nads("default"), &nad("net", config));
    assert_eq!(created["spec"]["config"], config.replace("apps/NAME", "default/net"));
    // What another topology does not take is denied.
    let error = cluster.jane.try_create(&nads("default"), &nad("bad", &config.replace("layer2", "layer9")));
    assert!(error.unwrap_err().message.contains("ovn/config"));
    cluster.kill_nadmit();
    let stored = cluster.jane.create(&nads("default"), &nad("late", config));
    assert_eq!(stored["spec"]["config"], config);
}

#[test]
fn operator_retries_and_nothing_incomplete_is_stored_while_nadmit_is_down() {
    let mut cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "before", "apps", &json!({})));
    cluster.jane.wait(&nad_at("apps", "before"), |_| true);
    cluster.jane.create(&nads("apps"), &nad("own", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#));
    cluster.kill_nadmit();

    // Fail: a NAD with a device plugin is denied, whichever user writes it.
    let error = cluster.jane.try_create(&nads("apps"), &nad("late", r#"{"cniVersion":"1.0.0","type":"sriov"}"#));
    let error = error.unwrap_err();
    assert_eq!(error.code, 500);
    assert!(error.message.contains("nads.nadmit.io"), "{}", error.message);
    // Ignore: networks are accepted, good and bad, and the operator retries their NADs.
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "during", "apps", &json!({})));
    cluster.jane.create(
        &TestNetworkKind::Sriov.path(),
        &network(TestNetworkKind::Sriov, "bad", "apps", &json!({ "ipam": "no JSON" })),
    );
    wait("the operator's attempts", || (cluster.failures(TestNetworkKind::Sriov, "during") >= 3).then_some(()));
    assert!(cluster.jane.get(&nad_at("apps", "during")).is_none());
    // Everything can be deleted.
    for name in ["own", "before"] {
        cluster.jane.delete(&nad_at("apps", name));
    }
    cluster.jane.wait_deleted(&nad_at("apps", "own"));
    cluster.jane.delete(&TestNetworkKind::Sriov.at("before"));
    cluster.jane.wait_deleted(&TestNetworkKind::Sriov.at("before"));
    cluster.jane.delete(&TestNetworkKind::Sriov.at("bad"));
    cluster.jane.wait_deleted(&TestNetworkKind::Sriov.at("bad"));

    cluster.start_nadmit();
    let nad = cluster.jane.wait(&nad_at("apps", "during"), |_| true);
    assert_eq!(annotated(&nad), Some("openshift.io/cx7"));
}

/// A process that accepts connections and never responds: the API server gives up after the configured five seconds.
#[test]
fn hanging_nadmit_behaves_like_a_stopped_one() {
    let cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    cluster.nadmit().signal("STOP");
    let device = nad("late", r#"{"cniVersion":"1.0.0","type":"sriov"}"#);
    let began = Instant::now();
    let error = cluster.jane.try_create(&nads("apps"), &device).unwrap_err();
    assert!(began.elapsed() > Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(error.message.contains("failed calling webhook \"nads.nadmit.io\""), "{}", error.message);
    let (name, config) = OTHERS[0];
    cluster.jane.create(&nads("apps"), &nad(name, config));
    cluster.jane.delete(&nad_at("apps", name));
    cluster.jane.wait_deleted(&nad_at("apps", name));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "during", "apps", &json!({})));
    wait("an attempt of the operator", || (cluster.failures(TestNetworkKind::Sriov, "during") >= 1).then_some(()));
    assert!(cluster.jane.get(&nad_at("apps", "during")).is_none());

    cluster.nadmit().signal("CONT");
    let nad = cluster.jane.wait(&nad_at("apps", "during"), |_| true);
    assert_eq!(annotated(&nad), Some("openshift.io/cx7"));
}
