//! What pods show: the bad examples of the rules, and other mistakes, attached to real pods. docs/errors.md is written by these
//! runs (`GENERATE=1 make node TEST=node::errors`) and compared with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nadmit::policy::pod_errors::{POD_ERRORS, PodError, without_preamble};
use nadmit::policy::rules::RULES;
use nadmit::policy::{Facts, Policy, Subject, judge};
use nadmit::resources::Object;
use serde_json::{Value, json};

use super::files::BUSYBOX;
use super::processes::is_ready;
use super::{Node, on_a_node};
use crate::install::read;
use crate::objects::{nad, nad_at, nads};
use crate::processes::wait;

pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// The families of the rules whose readers run on the node.
const FAMILIES: [&str; 4] = ["nad", "plugin", "meta", "ipam"];

/// Rules about how NADs and pods fit together, and about node slices, whose controller does not run here: one pod with one of these NADs
/// shows nothing of what they say.
const ABOUT_OTHERS: [&str; 4] = ["ipam/overlap", "ipam/per-node", "ipam/node-slice", "nad/in-use"];

/// Words in the rules that no pod on this node can show: those of sriov-cni, and of a plugin that is called with an old version.
const NOT_SHOWN: [&str; 2] = ["VF pci addr is required", "no valid IP addresses"];

/// The name of each NAD: only one exists at a time.
const NETWORK: &str = "network";

/// What became of a pod.
enum Outcome {
    Started,
    Failed(String),
}

impl Node {
    /// Creates a pod that is attached to a network.
    pub fn attach(&self, name: &str, network: &str) {
        let pod = json!({ "metadata": { "name": name, "annotations": { "k8s.v1.cni.cncf.io/networks": network } },
            "spec": { "containers": [{ "name": "c", "image": BUSYBOX }], "terminationGracePeriodSeconds": 1 } });
        self.cluster.admin.create(PODS, &pod);
    }

    /// The first Event about a pod with that reason.
    pub fn event(&self, pod: &str, reason: &str) -> Option<String> {
        let events = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}");
        let all = self.cluster.admin.get(&events)?;
        let event = all["items"].as_array()?.iter().find(|event| event["reason"] == reason)?;
        Some(event["message"].as_str()?.to_owned())
    }

    /// Waits until a pod has started, or says why it has not.
    fn outcome(&self, pod: &str) -> Outcome {
        wait(pod, || {
            if self.cluster.admin.get(&format!("{PODS}/{pod}")).is_some_and(|pod| is_ready(&pod)) {
                return Some(Outcome::Started);
            }
            self.event(pod, "FailedCreatePodSandBox").map(Outcome::Failed)
        })
    }
}

/// A NAD that a rule reports.
struct Mistake {
    rule: String,
    nad: Value,
}

/// The bad examples of the rules, and the other mistakes.
fn mistakes() -> Vec<Mistake> {
    let mut all = Vec::new();
    for rule in RULES {
        if !FAMILIES.contains(&rule.id.split('/').next().unwrap()) || ABOUT_OTHERS.contains(&rule.id) {
            continue;
        }
        for nad in read(rule.bad).into_iter().filter(|object| object["kind"] == "NetworkAttachmentDefinition") {
            all.push(Mistake { rule: rule.id.to_owned(), nad });
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/errors.yaml");
    for other in read(&fs::read_to_string(file).unwrap()) {
        let (rule, nad) = (other["rule"].as_str().unwrap(), nad(NETWORK, other["config"].as_str().unwrap()));
        let text = nad.to_string();
        let object = Object::read(&text).unwrap().unwrap();
        let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
        assert!(verdict.findings.iter().any(|finding| finding.rule.id == rule), "{rule}: {nad}\n{verdict:#?}");
        all.push(Mistake { rule: rule.to_owned(), nad });
    }
    all
}

/// The config with a device that the node has in place of one that it does not have: IPAM and the plugins behind it are read alike.
fn on_this_node(config: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(config) else { return config.to_owned() };
    let change = |plugin: &mut Value| {
        if plugin["type"] == "sriov" {
            plugin["type"] = json!("macvlan");
        }
        if plugin["type"] == "macvlan" {
            plugin["master"] = json!("eth0");
        }
    };
    change(&mut value);
    value["plugins"].as_array_mut().into_iter().flatten().for_each(change);
    if value["plugins"].is_null() {
        value.as_object_mut().unwrap().remove("plugins");
    }
    value.to_string()
}

/// The error as the page shows it: without the sandbox, and without names that differ from run to run.
fn stable(message: &str) -> String {
    let message = without_preamble(message);
    let message = message.split("\\n").next().unwrap();
    let message = message.split(" / bytes: ").next().unwrap();
    let mut words = Vec::new();
    for word in message.split(' ') {
        words.push(if word.starts_with("(\"veth") { "(\"veth…\")" } else { word });
    }
    words.join(" ")
}

/// The page: each error once, with the rules whose mistakes show it.
fn page(seen: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut page = fs::read_to_string(page_path()).unwrap_or_default();
    let (head, _) = page.split_once("\n| the pod shows |").expect("docs/errors.md has a table");
    page = format!("{head}\n| the pod shows | found by |\n|---|---|\n");
    for (message, rules) in seen {
        let link = |rule: &String| {
            let (family, _) = rule.split_once('/').expect("a rule has a family");
            format!("[{rule}](rules/{family}.md#{})", rule.replace('/', ""))
        };
        let rules: Vec<String> = rules.iter().map(link).collect();
        page += &format!("| `{}` | {} |\n", message.replace('|', "\\|"), rules.join(", "));
    }
    page
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md")
}

/// The words of others that a rule quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).filter(|words| words.contains(' ')).collect()
}

#[test]
fn pods_show_what_the_rules_say() {
    on_a_node(|node| {
        let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let (mut all, mut problems, mut shown) = (String::new(), Vec::new(), BTreeSet::new());
        for (index, Mistake { rule, mut nad }) in mistakes().into_iter().enumerate() {
            let pod = format!("{}-{index}", rule.replace('/', "-"));
            nad["metadata"] = json!({ "name": NETWORK });
            if let Some(config) = nad["spec"]["config"].as_str() {
                nad["spec"]["config"] = json!(on_this_node(config));
            }
            // The API server itself rejects what does not fit the schema.
            if node.cluster.admin.try_create(&nads("default"), &nad).is_err() {
                continue;
            }
            node.attach(&pod, NETWORK);
            let outcome = node.outcome(&pod);
            node.cluster.admin.delete(&nad_at("default", NETWORK));
            node.cluster.admin.delete(&format!("{PODS}/{pod}"));
            // There is no DHCP server here, and what only sriov-cni rejects starts with another device.
            let Outcome::Failed(message) = outcome else { continue };
            if message.contains("error dialing DHCP daemon") {
                continue;
            }
            println!("{rule}: {}", stable(&message));
            let row = POD_ERRORS.iter().find(|error| error.is_in(without_preamble(&message)));
            shown.extend(row.and_then(|row| Some((row.words, *row.rules.iter().find(|id| **id == rule)?))));
            let explained: Vec<&str> = PodError::explain(without_preamble(&message)).map(|rule| rule.id).collect();
            if !explained.contains(&rule.as_str()) {
                problems.push(format!("{rule}: {message}\nis explained by {explained:?}"));
            }
            seen.entry(stable(&message)).or_default().insert(rule);
            all += &message;
        }
        for rule in RULES.iter().filter(|rule| seen.values().any(|rules| rules.contains(rule.id))) {
            for words in quoted(rule.why).into_iter().filter(|words| !NOT_SHOWN.contains(words)) {
                let parts: Vec<&str> = words.split("...").collect();
                if !parts.iter().all(|part| all.contains(part.trim())) {
                    problems.push(format!("{}: no pod shows {words:?}", rule.id));
                }
            }
        }
        for error in POD_ERRORS {
            for rule in error.rules.iter().filter(|rule| !shown.contains(&(error.words, **rule))) {
                problems.push(format!("{rule}: no pod shows {:?}", error.words));
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        assert!(seen.len() > 40, "{seen:#?}");
        let page = page(&seen);
        if std::env::var_os("GENERATE").is_some() {
            fs::write(page_path(), &page).unwrap();
        }
        assert_eq!(fs::read_to_string(page_path()).unwrap(), page, "run GENERATE=1 make node TEST=node::errors");
    });
}
