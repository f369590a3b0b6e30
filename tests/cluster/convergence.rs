//! After every write the system converges: nothing is written again, and no watch event is sent.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{TestNetworkKind, annotated, configured, nad_at, nads, network, version};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const TOUCHES: usize = 10;

#[test]
fn with_a_faulty_template() {
    assert_converges(&TestCluster::with_nadmit(OperatorTemplate::Faulty), OperatorTemplate::Faulty);
}

#[test]
fn with_the_upstream_template() {
    assert_converges(&TestCluster::with_nadmit(OperatorTemplate::Upstream), OperatorTemplate::Upstream);
}

fn assert_converges(cluster: &TestCluster, template: OperatorTemplate) {
    cluster.namespace("apps");
    let watch = cluster.jane.watch(&nads("apps"));
    let chained = json!({ "metaPlugins": r#"{"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}"# });
    for kind in TestNetworkKind::ALL {
        for (form, fields) in [("conf", json!({})), ("conflist", chained.clone())] {
            let name = format!("{}-{form}", kind.name().to_lowercase());
            let at = nad_at("apps", &name);
            cluster.jane.create(&kind.path(), &network(kind, &name, "apps", &fields));
            let made = watch.wait(&name, |event| event.exists).object;
            check(kind, template, &made);
            wait_until_idle(cluster, kind, &format!("{name}-made"));
            let stored = cluster.jane.get(&at).unwrap();

            // The operator reconciles again, and changes nothing.
            let (before, changes) = (cluster.reconciles(kind, &name), watch.of(&name).len());
            for touch in 1..=TOUCHES {
                cluster
                    .jane
                    .patch(&kind.at(&name), &json!({ "metadata": { "annotations": { "touch": touch.to_string() } } }));
                let reconciles = wait("a reconcile", || {
                    Some(cluster.reconciles(kind, &name) - before).filter(|count| *count >= touch)
                });
                assert!(reconciles <= 2 * touch, "{name}: {reconciles} reconciles for {touch} touches");
            }
            wait_until_idle(cluster, kind, &format!("{name}-touched"));
            let touched = cluster.reconciles(kind, &name) - before;
            assert!(touched <= 2 * TOUCHES, "{name}: {touched} reconciles for {TOUCHES} touches");
            assert_eq!(version(&cluster.jane.get(&at).unwrap()), version(&stored), "{name}: nothing is stored");
            assert_eq!(watch.of(&name).len(), changes, "{name}: no watch event is sent");

            // Another user edits the NAD: the operator reverts the edit, and writes nothing else.
            let (before, conflicts) = (cluster.reconciles(kind, &name), cluster.conflicts(kind, &name));
            for edit in 1..=TOUCHES {
                cluster
                    .jane
                    .patch(&at, &json!({ "metadata": { "annotations": { "example.com/edit": edit.to_string() } } }));
                cluster.jane.wait(&at, |nad| nad["metadata"]["annotations"]["example.com/edit"].is_null());
            }
            wait_until_idle(cluster, kind, &format!("{name}-edited"));
            let edited = cluster.reconciles(kind, &name) - before;
            // An edit between the operator's read and its write makes it reconcile again.
            let conflicts = cluster.conflicts(kind, &name) - conflicts;
            assert!(edited <= 2 * TOUCHES + conflicts, "{name}: {edited} reconciles for {TOUCHES} edits");
            let converged = cluster.jane.get(&at).unwrap();
            check(kind, template, &converged);
            assert_eq!(converged["spec"], stored["spec"]);
            assert_eq!(
                watch.of(&name).len(),
                changes + 2 * TOUCHES,
                "{name}: one write each of the editor and the operator"
            );

            let reconciles = cluster.reconciles(kind, &name);
            wait_until_idle(cluster, kind, &format!("{name}-later"));
            assert_eq!(
                version(&cluster.jane.get(&at).unwrap()),
                version(&converged),
                "{name}: the NAD is not written again"
            );
            assert_eq!(watch.of(&name).len(), changes + 2 * TOUCHES, "{name}: no watch event is sent");
            assert_eq!(cluster.reconciles(kind, &name), reconciles, "{name}: the operator does not reconcile again");
            println!("{template:?} {name}: {touched} reconciles for {TOUCHES} touches, {edited} for {TOUCHES} edits");
        }
    }
}

/// An OVS network may have no device, so nothing is added to its NAD; the NADs of other kinds have both names.
fn check(kind: TestNetworkKind, template: OperatorTemplate, nad: &Value) {
    let complete = Some("openshift.io/cx7");
    match (kind, template) {
        (TestNetworkKind::Ovs, OperatorTemplate::Faulty) => {
            assert_eq!((annotated(nad), configured(nad)), (None, None), "{nad:#}");
        }
        (TestNetworkKind::Ovs, OperatorTemplate::Upstream) => {
            assert_eq!((annotated(nad), configured(nad)), (complete, None), "{nad:#}");
        }
        _ => assert_eq!((annotated(nad), configured(nad).as_deref()), (complete, complete), "{nad:#}"),
    }
}

/// Waits until the operator is idle: it reconciles one network after the other, so when it has created and deleted a new network
/// three times, everything that was queued before is done.
pub fn wait_until_idle(cluster: &TestCluster, kind: TestNetworkKind, name: &str) {
    for round in 0..3 {
        let name = format!("{name}-{round}");
        cluster.jane.create(&kind.path(), &network(kind, &name, "apps", &json!({})));
        cluster.jane.wait(&nad_at("apps", &name), |_| true);
        cluster.jane.delete(&kind.at(&name));
        cluster.jane.wait_deleted(&kind.at(&name));
    }
}
