//! The files that containerd, the kubelet, kube-proxy and Multus read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

/// The socket of containerd, in the node's own /run.
pub const SOCKET: &str = "/run/containerd.sock";

/// The image of every pod's first process, and of the pods that the tests attach to networks.
pub const BUSYBOX: &str = "docker.io/library/busybox:node";

/// Writes a file and returns its path.
fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The usual places of the plugins and of their configs.
pub const PLUGINS: &str = "/opt/cni/bin";
const CONFIGS: &str = "/etc/cni/net.d";

/// The networks of the pods on each node; `enter` adds the routes between them.
pub const POD_NETWORKS: [&str; 2] = ["10.88.0.0/16", "10.89.0.0/16"];

/// containerd.
pub fn containerd(dir: &Path) -> PathBuf {
    // Where root lacks CAP_SYS_RESOURCE, no container starts without `restrict_oom_score_adj`.
    let text = format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{BUSYBOX}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{CONFIGS}"
"#
    );
    write(dir, "containerd.toml", &text)
}

/// The kubelet of a node, with all pods in that cgroup.
pub fn kubelet(dir: &Path, node: &str, cgroup: &str) -> PathBuf {
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "resolvConf": "",
        // Some pods of node::errors stay in Terminating.
        "maxPods": 250,
        // Nobody answers there, and nothing needs it.
        "clusterDNS": ["10.0.0.10"],
        // The disk and the memory of the machine are not the node's.
        "evictionHard": { "memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%" },
        "imageGCHighThresholdPercent": 100,
    });
    write(dir, &format!("kubelet-{node}.json"), &config.to_string())
}

/// The kube-proxy of a node. The limits of connections are of the whole machine.
pub fn kube_proxy(dir: &Path, node: &str) -> PathBuf {
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": { "kubeconfig": dir.join("admin.kubeconfig") },
        "clusterCIDR": "10.88.0.0/15",
        "oomScoreAdj": 0,
        "iptables": { "minSyncPeriod": "0s" },
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
            "udpTimeout": "0s", "udpStreamTimeout": "0s",
        },
    });
    write(dir, &format!("kube-proxy-{node}.json"), &config.to_string())
}

/// Multus, in front of a bridge for all pods; it and whereabouts use the given kubeconfig. `root` is where the node has its files.
pub fn networks(root: &Path, pods: &str, kubeconfig: &Path) {
    let bridge = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
        "ipam": { "type": "host-local", "ranges": [[{ "subnet": pods }]], "routes": [{ "dst": "0.0.0.0/0" }] },
    });
    let multus = json!({
        "cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus", "kubeconfig": kubeconfig, "delegates": [bridge],
    });
    let whereabouts = json!({ "datastore": "kubernetes", "kubernetes": { "kubeconfig": kubeconfig } });
    let configs = root.join(CONFIGS.trim_start_matches('/'));
    let directory = configs.join("whereabouts.d");
    fs::create_dir_all(&directory).unwrap();
    write(&directory, "whereabouts.conf", &whereabouts.to_string());
    // The node is ready as soon as this is there.
    write(&configs, "00-multus.conf", &multus.to_string());
}
