//! The operator of a cluster: its templates, start and stop, and its log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::{PREFIX, TestCluster};
use crate::objects::{OPERATOR, TestNetworkKind};
use crate::processes::{Process, wait};

/// The templates that the operator renders NADs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorTemplate {
    /// The upstream templates.
    Upstream,
    /// The same without the resourceName.
    Faulty,
    /// The same with a VLAN that changes each time: the operator sees its own write, renders again, and writes again.
    Restless,
}

impl TestCluster {
    pub fn start_operator(&mut self, template: OperatorTemplate) {
        let bindata = self.bin.join("bindata");
        let templates = match template {
            OperatorTemplate::Upstream => bindata.join("upstream"),
            OperatorTemplate::Faulty => bindata.join("faulty"),
            OperatorTemplate::Restless => restless(&bindata.join("upstream"), self.directory.path()),
        };
        let mut command = Command::new(self.bin.join("operator"));
        command.env("RESOURCE_PREFIX", PREFIX).arg(format!("--namespace={OPERATOR}"));
        command.arg(format!("--kubeconfig={}", self.kubeconfig("operator").display()));
        command.arg(format!("--bindata={}", templates.display()));
        let mut operator = Process::start("operator", self.directory.path(), &mut command);
        wait("the operator", || {
            operator.check();
            (operator.log().matches("Starting workers").count() == 3).then_some(())
        });
        self.operator = Some(operator);
    }

    /// Ends the operator with SIGTERM, as a kubelet does, and returns its log.
    pub fn end_operator(&mut self) -> String {
        self.operator.take().unwrap().end()
    }

    /// Kills the operator, and sets the status of its Deployment.
    pub fn stop_operator(&mut self) {
        self.operator = None;
        self.operator_is_available(0);
    }

    /// Sets the number of available pods in the status of the operator's Deployment.
    pub fn operator_is_available(&self, pods: u32) {
        let path = format!("/apis/apps/v1/namespaces/{OPERATOR}/deployments/sriov-network-operator/status");
        let status = json!({ "replicas": pods, "readyReplicas": pods, "availableReplicas": pods });
        self.admin.patch(&path, &json!({ "status": status }));
    }

    /// The operator's log.
    pub fn operator_log(&self) -> Vec<Value> {
        let log = self.operator.as_ref().unwrap().log();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The operator's error messages that contain a text.
    pub fn operator_errors(&self, about: &str) -> Vec<String> {
        let log = self.operator.as_ref().unwrap().log();
        let is_one = |line: &&str| line.contains(r#""level":"error""#) && line.contains(about);
        log.lines().filter(is_one).map(str::to_owned).collect()
    }

    /// How often the operator reconciled a network.
    pub fn reconciles(&self, kind: TestNetworkKind, name: &str) -> usize {
        self.count(kind, name, "Reconciling")
    }

    /// How often the operator failed on a network.
    pub fn failures(&self, kind: TestNetworkKind, name: &str) -> usize {
        self.count(kind, name, "Reconciler error")
    }

    /// How often the operator waited for the namespace of a network.
    pub fn waits_for_namespace(&self, kind: TestNetworkKind, name: &str) -> usize {
        self.count(kind, name, "Target namespace doesn't exist")
    }

    /// How often the operator's write of a NAD got a conflict.
    pub fn conflicts(&self, kind: TestNetworkKind, name: &str) -> usize {
        let is_conflict = |line: &&Value| line["error"].as_str().unwrap_or_default().contains("has been modified");
        let log = self.operator_log();
        of(&log, kind, name, "Couldn't update NetworkAttachmentDefinition").filter(is_conflict).count()
    }

    fn count(&self, kind: TestNetworkKind, name: &str, prefix: &str) -> usize {
        of(&self.operator_log(), kind, name, prefix).count()
    }
}

/// The operator's log lines about a network that start with a text.
fn of<'l>(log: &'l [Value], kind: TestNetworkKind, name: &'l str, prefix: &'l str) -> impl Iterator<Item = &'l Value> {
    log.iter().filter(move |line| {
        let text = line["msg"].as_str().unwrap_or_default();
        text.starts_with(prefix) && line["controllerKind"] == kind.name() && line["name"] == name
    })
}

/// Creates templates in that directory, one of which never converges.
fn restless(upstream: &Path, directory: &Path) -> PathBuf {
    let templates = directory.join("restless");
    for file in ["ovs/ovs-cni-config.yaml", "sriov/sriov-cni-config.yaml"] {
        let file = Path::new("manifests/cni-config").join(file);
        let template = fs::read_to_string(upstream.join(&file)).unwrap();
        fs::create_dir_all(templates.join(&file).parent().unwrap()).unwrap();
        fs::write(templates.join(&file), template.replace("{{.SriovCniVlan}}", "{{randInt 1 4000}}")).unwrap();
    }
    templates
}
