//! A node: its processes, on the machine of one test or on a second one beside it.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{CGROUP, container, enter, files};
use crate::cluster::{TestCluster, bin};
use crate::control_plane::ApiServerHost;
use crate::processes::{Process, wait};

/// A control plane with one node, or two; their namespaces end with the test.
pub struct Node {
    // Dropped in this order. The kubelet must not see that containers end.
    _processes: NodeProcesses,
    _scheduler: Process,
    pub cluster: TestCluster,
}

impl Node {
    /// Starts everything, and waits until the node is ready.
    pub fn start() -> Self {
        let address = std::env::var("NADMIT_NODE_ADDRESS").unwrap();
        let host = Host { process: None, address: address.parse().unwrap(), cgroup: std::env::var(CGROUP).unwrap() };
        // Its image store does not depend on the control plane.
        let containerd = host.containerd(Path::new("/run"));
        let cluster = TestCluster::start_at(ApiServerHost::Node(host.address), |_, _| ());
        let out = cluster.kubectl("admin", &["create", "-f", bin().join("crds-of-node").to_str().unwrap()], "");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let dir = cluster.directory();
        let mut command = Command::new(bin().join("kube-scheduler"));
        command.arg(admin(dir)).args(["--secure-port=0", "--leader-elect=false"]);
        let scheduler = Process::start("kube-scheduler", dir, &mut command);
        let processes = host.start("node-1", files::POD_NETWORKS[0], containerd, &cluster);
        Self { _processes: processes, _scheduler: scheduler, cluster }
    }

    /// Starts a second node, `node-2`, and waits until it is ready.
    pub fn start_second(&self) -> NodeProcesses {
        let dir = self.cluster.directory().join("node-2");
        fs::create_dir(&dir).unwrap();
        let mut command = enter();
        command.args(["--beside", "sh", "-c", "touch /run/is-prepared; exec sleep 2147483647"]);
        let machine = Process::start("machine", &dir, &mut command);
        // The first process in there is the child of `unshare`.
        let children = format!("/proc/{0}/task/{0}/children", machine.id());
        let first: u32 = wait("the second machine", || {
            let first = fs::read_to_string(&children).ok()?.trim().parse().ok()?;
            Path::new(&format!("/proc/{first}/root/run/is-prepared")).exists().then_some(first)
        });
        let cgroup = format!("{}/node-2", std::env::var(CGROUP).unwrap());
        let host = Host { process: Some((first, machine)), address: [192, 168, 78, 2].into(), cgroup };
        let containerd = host.containerd(&dir);
        host.start("node-2", files::POD_NETWORKS[1], containerd, &self.cluster)
    }
}

/// The processes of one node.
pub struct NodeProcesses {
    _kubelet: Process,
    _proxy: Process,
    _containerd: Process,
    _host: Host,
}

/// Where a node runs: on this machine, or in the namespaces of another process.
struct Host {
    /// Its id, and what ends it.
    process: Option<(u32, Process)>,
    address: Ipv4Addr,
    cgroup: String,
}

impl Host {
    /// A command that runs there.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some((process, _)) = &self.process else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={process}")).args(["--mount", "--net", "--pid", "--uts", "--ipc", "--"]);
        command.arg(program);
        command
    }

    /// Where its files are.
    fn root(&self) -> PathBuf {
        self.process.as_ref().map_or_else(|| PathBuf::from("/"), |(process, _)| format!("/proc/{process}/root").into())
    }

    fn containerd(&self, dir: &Path) -> Process {
        std::os::unix::fs::symlink(bin().join("cni"), self.root().join(files::PLUGINS.trim_start_matches('/')))
            .unwrap();
        Process::start("containerd", dir, self.command("containerd").arg("--config").arg(files::containerd(dir)))
    }

    /// Starts the rest, and waits until the node is ready.
    fn start(self, name: &str, pods: &str, containerd: Process, cluster: &TestCluster) -> NodeProcesses {
        let dir = cluster.directory();
        container::import(&self.root(), &container::busybox_image(&dir.join(format!("image-{name}"))));
        container::import(&self.root(), &image());
        let name_override = format!("--hostname-override={name}");
        let mut command = self.command(bin().join("kube-proxy"));
        command.arg(format!("--config={}", files::kube_proxy(dir, name).display())).arg(&name_override);
        let proxy = Process::start("kube-proxy", dir, &mut command);
        files::networks(&self.root(), pods, &cluster.kubeconfig("admin"));
        let mut command = self.command(bin().join("kubelet"));
        command.arg(format!("--config={}", files::kubelet(dir, name, &self.cgroup).display())).arg(admin(dir));
        command.arg(format!("--node-ip={}", self.address)).arg(&name_override);
        let kubelet = Process::start("kubelet", dir, &mut command);
        cluster.admin.wait(&format!("/api/v1/nodes/{name}"), is_ready);
        NodeProcesses { _kubelet: kubelet, _proxy: proxy, _containerd: containerd, _host: self }
    }
}

/// The argument for the rights of an administrator.
fn admin(dir: &Path) -> String {
    format!("--kubeconfig={}/admin.kubeconfig", dir.display())
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
