//! A node: its processes, in the namespaces of one test.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{CGROUP, container, files};
use crate::cluster::{TestCluster, bin};
use crate::control_plane::Place;
use crate::processes::Process;

/// The name of the node.
pub const NAME: &str = "node-1";

/// A control plane with one node; its namespaces end with the test.
pub struct Node {
    // Dropped in this order. The kubelet must not see that containers end.
    _kubelet: Process,
    _proxy: Process,
    _scheduler: Process,
    _containerd: Process,
    pub cluster: TestCluster,
}

impl Node {
    /// Starts everything, and waits until the node is ready.
    pub fn start() -> Self {
        let address: Ipv4Addr = std::env::var("NADMIT_NODE_ADDRESS").unwrap().parse().unwrap();
        let bin = bin();
        // Its image store does not depend on the control plane.
        let runtime = Path::new("/run/node");
        fs::create_dir_all(runtime).unwrap();
        let config = files::containerd(runtime);
        fs::create_dir_all("/opt/cni").unwrap();
        std::os::unix::fs::symlink(bin.join("cni"), files::PLUGINS).unwrap();
        let mut command = Command::new("containerd");
        let containerd = Process::start("containerd", runtime, command.arg("--config").arg(config));
        let cluster = TestCluster::start_at(Place::Node(address), |_, _| ());
        let dir = cluster.directory().to_owned();
        container::import(&container::busybox_image(&dir));
        container::import(&image());
        let admin = format!("--kubeconfig={}/admin.kubeconfig", dir.display());
        let mut command = Command::new(bin.join("kube-scheduler"));
        let scheduler =
            Process::start("kube-scheduler", &dir, command.args([&admin, "--secure-port=0", "--leader-elect=false"]));
        let mut command = Command::new(bin.join("kube-proxy"));
        command
            .arg(format!("--config={}", files::kube_proxy(&dir).display()))
            .arg(format!("--hostname-override={NAME}"));
        let proxy = Process::start("kube-proxy", &dir, &mut command);
        let out = cluster.kubectl("admin", &["create", "-f", bin.join("crds-of-node").to_str().unwrap()], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        files::networks(&cluster.kubeconfig("admin"));
        let cgroup = std::env::var(CGROUP).unwrap();
        let mut command = Command::new(bin.join("kubelet"));
        command.arg(format!("--config={}", files::kubelet(&dir, &cgroup).display())).arg(&admin);
        command.arg(format!("--node-ip={address}")).arg(format!("--hostname-override={NAME}"));
        let kubelet = Process::start("kubelet", &dir, &mut command);
        let node = Self { _kubelet: kubelet, _proxy: proxy, _scheduler: scheduler, _containerd: containerd, cluster };
        node.cluster.admin.wait(&format!("/api/v1/nodes/{NAME}"), is_ready);
        node
    }
}

/// The archive that `make image` wrote.
fn image() -> PathBuf {
    PathBuf::from(std::env::var_os("NADMIT_IMAGE").expect("NADMIT_IMAGE: `make node` sets it"))
}

/// Whether a node or a pod has the condition Ready.
pub fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
