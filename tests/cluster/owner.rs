//! The network's word, and never yesterday's.

use serde_json::json;

use crate::api::Event;
use crate::cluster::{Cluster, Template};
use crate::objects::{Kind, annotated, configured, nads, network};

const CHANGES: usize = 100;

#[test]
fn a_new_resource_name_is_followed_and_an_old_one_never_comes_back() {
    for template in [Template::Faulty, Template::Upstream] {
        let cluster = Cluster::with_nadmit(template);
        cluster.namespace("apps");
        let watch = cluster.jane.watch(&nads("apps"));
        cluster
            .jane
            .create(&Kind::Sriov.path(), &network(Kind::Sriov, "net", "apps", &json!({ "resourceName": "r0" })));
        watch.wait("net", |event| event.is_there);
        let follow = |change: usize| {
            cluster.jane.patch(&Kind::Sriov.at("net"), &json!({ "spec": { "resourceName": format!("r{change}") } }));
        };
        let has = |event: &Event, change: usize| annotated(&event.object) == Some(&format!("openshift.io/r{change}"));
        // One after the other. A network's write wakes the operator once, and only a NAD that changes wakes it again: where one
        // write of the NAD has the new name, it came from the one reconcile there was.
        for change in 1..=CHANGES {
            let before = watch.of("net").len();
            follow(change);
            watch.wait("net", |event| has(event, change));
            let writes = watch.of("net").split_off(before);
            assert!(writes.len() == 1 && has(&writes[0], change), "{template:?}: {change}: {writes:#?}");
        }
        // And faster than the operator can follow.
        for change in CHANGES + 1..=2 * CHANGES {
            follow(change);
        }
        watch.wait("net", |event| has(event, 2 * CHANGES));
        let mut newest = 0;
        for event in watch.of("net") {
            let name = annotated(&event.object).expect("it is never without one");
            assert_eq!(configured(&event.object).as_deref(), Some(name), "both say the same");
            let number: usize = name.strip_prefix("openshift.io/r").unwrap().parse().unwrap();
            assert!(number >= newest, "{template:?}: {number} after {newest}");
            newest = number;
        }
        assert_eq!(newest, 2 * CHANGES);
    }
}
