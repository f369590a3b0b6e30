//! The network's word, and never yesterday's.

use serde_json::json;

use crate::cluster::{Cluster, Template};
use crate::objects::{Kind, annotated, configured, nad_at, nads, network};

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
        for change in 1..=CHANGES {
            cluster.jane.patch(&Kind::Sriov.at("net"), &json!({ "spec": { "resourceName": format!("r{change}") } }));
            // Half of them while the operator is still busy with the one before.
            if change % 2 == 0 {
                let want = format!("openshift.io/r{change}");
                cluster.jane.wait(&nad_at("apps", "net"), |nad| annotated(nad) == Some(&want));
            }
        }
        let last = format!("openshift.io/r{CHANGES}");
        watch.wait("net", |event| annotated(&event.object) == Some(&last));
        let mut newest = 0;
        for event in watch.of("net") {
            let name = annotated(&event.object).expect("it is never without one");
            assert_eq!(configured(&event.object).as_deref(), Some(name), "both say the same");
            let number: usize = name.strip_prefix("openshift.io/r").unwrap().parse().unwrap();
            assert!(number >= newest, "{template:?}: {number} after {newest}");
            newest = number;
        }
        assert_eq!(newest, CHANGES);
    }
}
