//! nadmit as pods: installed, rolled out, and called by the API server.

use serde_json::json;

use super::files::BUSYBOX;
use super::processes::is_ready;
use super::{on_a_node, timed};
use crate::objects::{nad, nads};

#[test]
fn nadmit_denies_as_a_pod_and_good_networks_get_attached() {
    on_a_node(|node| {
        let ((), time) = timed(|| node.install());
        println!("installed in {time:.1?}");
        let denied = node.cluster.jane.try_create(&nads("default"), &nad("bad", "not JSON")).unwrap_err();
        assert!(denied.message.contains("denied the request"), "{denied:?}");
        let config = json!({ "cniVersion": "1.0.0", "type": "macvlan", "master": "eth0", "ipam": { "type": "static",
            "addresses": [{ "address": "10.53.0.5/24" }] } });
        node.cluster.jane.create(&nads("default"), &nad("good", &config.to_string()));
        let pod = json!({ "metadata": { "name": "p", "annotations": { "k8s.v1.cni.cncf.io/networks": "good" } },
            "spec": { "containers": [{ "name": "c", "image": BUSYBOX }] } });
        node.cluster.admin.create("/api/v1/namespaces/default/pods", &pod);
        let pod = node.cluster.admin.wait("/api/v1/namespaces/default/pods/p", is_ready);
        let status = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"].as_str().unwrap();
        assert!(status.contains("10.53.0.5"), "{status}");
    });
}
