//! After every write there is silence: nothing is written again, and nobody is woken.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::objects::{TestNetworkKind, annotated, configured, nad_at, nads, network, version};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const TOUCHES: usize = 10;

#[test]
fn with_a_faulty_template() {
    settles(&TestCluster::with_nadmit(OperatorTemplate::Faulty), OperatorTemplate::Faulty);
}

#[test]
fn with_the_upstream_template() {
    settles(&TestCluster::with_nadmit(OperatorTemplate::Upstream), OperatorTemplate::Upstream);
}

fn settles(cluster: &TestCluster, template: OperatorTemplate) {
    cluster.namespace("apps");
    let watch = cluster.jane.watch(&nads("apps"));
    let chained = json!({ "metaPlugins": r#"{"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}"# });
    for kind in TestNetworkKind::ALL {
        for (form, fields) in [("conf", json!({})), ("conflist", chained.clone())] {
            let name = format!("{}-{form}", kind.name().to_lowercase());
            let at = nad_at("apps", &name);
            cluster.jane.create(&kind.path(), &network(kind, &name, "apps", &fields));
            let made = watch.wait(&name, |event| event.is_there).object;
            check(kind, template, &made);
            calm(cluster, kind, &format!("{name}-made"));
            let stored = cluster.jane.get(&at).unwrap();

            // The operator looks again, and finds nothing to do.
            let (before, changes) = (cluster.reconciles(kind, &name), watch.of(&name).len());
            for touch in 1..=TOUCHES {
                cluster
                    .jane
                    .patch(&kind.at(&name), &json!({ "metadata": { "annotations": { "touch": touch.to_string() } } }));
                let looks = wait("a reconcile", || {
                    Some(cluster.reconciles(kind, &name) - before).filter(|looks| *looks >= touch)
                });
                assert!(looks <= 2 * touch, "{name}: {looks} reconciles for {touch} touches");
            }
            calm(cluster, kind, &format!("{name}-touched"));
            let touched = cluster.reconciles(kind, &name) - before;
            assert!(touched <= 2 * TOUCHES, "{name}: {touched} reconciles for {TOUCHES} touches");
            assert_eq!(version(&cluster.jane.get(&at).unwrap()), version(&stored), "{name}: nothing was stored");
            assert_eq!(watch.of(&name).len(), changes, "{name}: nobody was woken");

            // Someone else writes: the operator takes that back, and no more.
            let (before, conflicts) = (cluster.reconciles(kind, &name), cluster.conflicts(kind, &name));
            for edit in 1..=TOUCHES {
                cluster
                    .jane
                    .patch(&at, &json!({ "metadata": { "annotations": { "example.com/edit": edit.to_string() } } }));
                cluster.jane.wait(&at, |nad| nad["metadata"]["annotations"]["example.com/edit"].is_null());
            }
            calm(cluster, kind, &format!("{name}-edited"));
            let edited = cluster.reconciles(kind, &name) - before;
            // An edit that comes between the operator's look and its write makes it look again.
            let conflicts = cluster.conflicts(kind, &name) - conflicts;
            assert!(edited <= 2 * TOUCHES + conflicts, "{name}: {edited} reconciles for {TOUCHES} edits");
            let settled = cluster.jane.get(&at).unwrap();
            check(kind, template, &settled);
            assert_eq!(settled["spec"], stored["spec"]);
            assert_eq!(
                watch.of(&name).len(),
                changes + 2 * TOUCHES,
                "{name}: one write each of the editor and the operator"
            );

            let reconciles = cluster.reconciles(kind, &name);
            calm(cluster, kind, &format!("{name}-later"));
            assert_eq!(version(&cluster.jane.get(&at).unwrap()), version(&settled), "{name}: it stays");
            assert_eq!(watch.of(&name).len(), changes + 2 * TOUCHES, "{name}: silence");
            assert_eq!(cluster.reconciles(kind, &name), reconciles, "{name}: silence");
            println!("{template:?} {name}: {touched} reconciles for {TOUCHES} touches, {edited} for {TOUCHES} edits");
        }
    }
}

/// An OVS network may do without a device, so nothing is added to it; the others have both names.
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

/// Waits until the operator has done whatever it had to: it takes one network after the other, so when a new one is done with
/// three times over, all that was waiting is done.
pub fn calm(cluster: &TestCluster, kind: TestNetworkKind, name: &str) {
    for round in 0..3 {
        let name = format!("{name}-{round}");
        cluster.jane.create(&kind.path(), &network(kind, &name, "apps", &json!({})));
        cluster.jane.wait(&nad_at("apps", &name), |_| true);
        cluster.jane.delete(&kind.at(&name));
        cluster.jane.wait_gone(&kind.at(&name));
    }
}
