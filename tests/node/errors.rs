//! What a pod shows when it uses the bad example of a rule.

use serde_json::{Value, json};

use super::files::BUSYBOX;
use super::processes::is_ready;
use super::{Node, on_a_node};
use crate::install::read;
use crate::objects::{nad_at, nads};
use crate::processes::wait;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The families of the rules whose readers run on the node.
const FAMILIES: [&str; 4] = ["nad", "plugin", "meta", "ipam"];

/// What became of a pod.
enum Outcome {
    Started,
    Failed(String),
}

impl Node {
    /// Creates a pod that is attached to a network.
    fn attach(&self, name: &str, network: &str) {
        let pod = json!({ "metadata": { "name": name, "annotations": { "k8s.v1.cni.cncf.io/networks": network } },
            "spec": { "containers": [{ "name": "c", "image": BUSYBOX }], "terminationGracePeriodSeconds": 0 } });
        self.cluster.admin.create(PODS, &pod);
    }

    /// Waits until a pod has started, or says why it has not.
    fn outcome(&self, name: &str) -> Outcome {
        let events = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}");
        wait(name, || {
            if self.cluster.admin.get(&format!("{PODS}/{name}")).is_some_and(|pod| is_ready(&pod)) {
                return Some(Outcome::Started);
            }
            let all = self.cluster.admin.get(&events)?;
            let failed = |event: &&Value| event["reason"] == "FailedCreatePodSandBox";
            let event = all["items"].as_array()?.iter().find(failed)?;
            Some(Outcome::Failed(event["message"].as_str()?.to_owned()))
        })
    }
}

#[test]
fn pods_say_what_the_rules_say() {
    on_a_node(|node| {
        let rules: Vec<_> = nadmit::policy::rules::RULES
            .iter()
            .filter(|rule| FAMILIES.contains(&rule.id.split('/').next().unwrap()))
            .collect();
        for rule in rules {
            for (index, mut object) in read(rule.bad).into_iter().enumerate() {
                if object["kind"] != "NetworkAttachmentDefinition" {
                    continue;
                }
                let name = format!("{}-{index}", rule.id.replace('/', "-"));
                let own = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                object["metadata"] = json!({ "name": name, "annotations": object["metadata"]["annotations"] });
                if let Err(error) = node.cluster.admin.try_create(&nads("default"), &object) {
                    println!("{} | not stored: {}", rule.id, error.message);
                    continue;
                }
                node.attach(&name, &name);
                match node.outcome(&name) {
                    Outcome::Started => println!("{} | {own} | started | {}", rule.id, object["spec"]["config"]),
                    Outcome::Failed(message) => println!("{} | {own} | {message}", rule.id),
                }
                node.cluster.admin.delete(&nad_at("default", &name));
                node.cluster.admin.delete(&format!("{PODS}/{name}"));
            }
        }
    });
}
