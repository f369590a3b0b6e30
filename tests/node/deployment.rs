//! The Deployment of nadmit on a node, and its pods.

use std::fs;

use serde_json::{Value, json};

use super::Node;
use super::processes::is_ready;
use crate::install::printed;
use crate::processes::wait;
use crate::replicas::await_effect;

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/nadmit/deployments/nadmit";
const PODS: &str = "/api/v1/namespaces/nadmit/pods";

impl Node {
    /// Installs nadmit, and waits until it is rolled out and called.
    pub fn install(&self) {
        let objects = printed(&[]);
        self.cluster.create_strictly(&objects, &[]);
        self.await_rollout();
        await_effect(&self.cluster.admin);
    }

    /// Waits until all replicas are of the current template and available, and no other pod is left.
    pub fn await_rollout(&self) {
        let is_done = |deployment: &Value| {
            let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
            deployment["metadata"]["generation"] == status["observedGeneration"]
                && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|number| status[number] == *wanted)
        };
        let deployment = self.cluster.admin.wait(DEPLOYMENT, is_done);
        let wanted = deployment["spec"]["replicas"].as_u64().unwrap();
        wait("the old pods to end", || (self.pods().len() as u64 == wanted).then_some(()));
    }

    /// Changes the Deployment, with a patch that merges the containers by their names.
    pub fn change(&self, patch: &Value) {
        let kind = "application/strategic-merge-patch+json";
        self.cluster.admin.send("PATCH", DEPLOYMENT, kind, Some(patch)).unwrap();
    }

    /// What `kubectl rollout restart` does.
    pub fn restart(&self, number: usize) {
        let annotations = json!({ "kubectl.kubernetes.io/restartedAt": number.to_string() });
        self.change(&json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }));
    }

    /// The pods of nadmit, also those that are ending.
    pub fn pods(&self) -> Vec<Value> {
        let list = self.cluster.admin.get(PODS).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The names of the pods that are ready.
    pub fn ready_pods(&self) -> Vec<String> {
        let ready =
            self.pods().into_iter().filter(|pod| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null());
        ready.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What `kubectl drain` sends. Whether the PodDisruptionBudget allowed it.
    pub fn evict(&self, pod: &str) -> bool {
        let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": pod, "namespace": "nadmit" } });
        match self.cluster.admin.try_create(&format!("{PODS}/{pod}/eviction"), &eviction) {
            Ok(_) => true,
            Err(error) if error.code == 429 => false,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Sets the memory that the container requests, and may use.
    pub fn limit_memory(&self, limit: &str) {
        let resources = json!({ "limits": { "memory": limit }, "requests": { "memory": limit } });
        let container = json!({ "name": "nadmit", "resources": resources });
        self.change(&json!({ "spec": { "template": { "spec": { "containers": [container] } } } }));
    }

    /// Whether a container was killed: by the kernel, while it started or later.
    pub fn has_failed_container(&self) -> bool {
        let pods = self.pods();
        let mut containers =
            pods.iter().flat_map(|pod| pod["status"]["containerStatuses"].as_array().into_iter().flatten());
        containers
            .any(|container| ["state", "lastState"].iter().any(|state| container[state]["terminated"].is_object()))
    }
}

/// The processes of nadmit in containers; all processes that are visible here are of this node.
pub fn servers() -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let mut ours: Vec<u32> = all
        .filter(|pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|text| text.starts_with(b"/nadmit\0serve\0"))
        })
        .collect();
    ours.sort_unstable();
    ours
}
