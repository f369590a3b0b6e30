//! The operator renders a NAD without its resourceName, and nadmit repairs it: the repair must not be overwritten.

use serde_json::json;

use crate::cluster::TestCluster;
use crate::objects::{RESOURCE_NAME, TestNetworkKind, annotated, configured, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const COMPLETE: &str = "openshift.io/cx7";
const OTHER: &str = "openshift.io/other";

#[test]
fn without_nadmit_the_operator_overwrites_a_repair() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let watch = cluster.jane.watch(&nads("apps"));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));
    let made = watch.wait("net", |event| event.exists);
    assert_eq!(annotated(&made.object), None);

    for repair in 1..=3 {
        let before = watch.of("net").len();
        cluster
            .jane
            .patch(&nad_at("apps", "net"), &json!({ "metadata": { "annotations": { RESOURCE_NAME: COMPLETE } } }));
        let (repaired, overwritten) = wait("the operator", || {
            let events = watch.of("net").split_off(before);
            let at = events.iter().position(|event| annotated(&event.object).is_some())?;
            Some((events[at].at, events.get(at + 1)?.clone()))
        });
        assert_eq!(annotated(&overwritten.object), None, "the operator's own rendering again");
        println!("repair {repair}: overwritten after {:.1} ms", (overwritten.at - repaired).as_secs_f64() * 1000.0);
    }
}

#[test]
fn nad_is_complete_from_the_start_with_nadmit() {
    let cluster = TestCluster::with_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let watch = cluster.jane.watch(&nads("apps"));
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, "net", "apps", &json!({})));
    watch.wait("net", |event| event.exists);

    // A user removes the resourceName; that of the network is restored each time.
    for broken in [
        json!({ "metadata": { "annotations": { RESOURCE_NAME: null } } }),
        json!({ "metadata": { "annotations": { RESOURCE_NAME: OTHER } } }),
        json!({ "spec": { "config": r#"{"cniVersion":"1.0.0","name":"net","type":"sriov"}"# } }),
    ] {
        cluster.jane.patch(&nad_at("apps", "net"), &broken);
        cluster.jane.wait(&nad_at("apps", "net"), |nad| {
            annotated(nad) == Some(COMPLETE)
                && configured(nad).as_deref() == Some(COMPLETE)
                && nad["spec"]["config"].as_str().unwrap().contains("vlanQoS")
        });
    }
    for event in watch.of("net") {
        // Another name is a user's edit, until the operator reverts it.
        let is_named = [COMPLETE, OTHER].map(Some).contains(&annotated(&event.object));
        assert!(is_named, "the NAD was incomplete: {:#}", event.object);
    }
    assert_eq!(configured(&watch.of("net")[0].object).as_deref(), Some(COMPLETE));
}
