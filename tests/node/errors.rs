//! What pods show: the bad examples of the rules, and other mistakes, attached to real pods. docs/errors.md is written by these
//! runs (`GENERATE=1 make node TEST=node::errors`) and compared with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nadmit::policy::pod_errors::{ErrorEvidence, POD_ERRORS, PodError, without_preamble};
use nadmit::policy::rules::RULES;
use nadmit::policy::{Action, Facts, Policy, Subject, judge};
use nadmit::resources::{DEFAULT_NETWORK, NETWORKS, Object, Selection};
use serde_json::{Value, json};

use super::errors_page::{self, Seen, without_error};
use super::files::BUSYBOX;
use super::processes::is_ready;
use super::{Node, on_a_node};
use crate::install::read;
use crate::objects::{nad, nad_at, nads};
use crate::processes::wait;

pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// The families of the rules whose readers run on the node.
const FAMILIES: [&str; 5] = ["nad", "plugin", "meta", "ipam", "pod"];

/// The name of the NAD of a mistake: only those of one mistake exist at a time.
const NETWORK: &str = "network";

/// A NAD with which nothing is wrong.
const GOOD: &str = r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0"}"#;

/// What became of a pod.
enum Outcome {
    Started,
    Failed(String),
    /// The API server does not store the NAD.
    Rejected,
}

impl Node {
    /// Creates a pod that is attached to a network.
    pub fn attach(&self, name: &str, network: &str) {
        self.create_pod(name, &json!({ NETWORKS: network }));
    }

    fn create_pod(&self, name: &str, annotations: &Value) {
        let pod = json!({ "metadata": { "name": name, "annotations": annotations },
            "spec": { "containers": [{ "name": "c", "image": BUSYBOX }], "terminationGracePeriodSeconds": 1 } });
        self.cluster.admin.create(PODS, &pod);
    }

    /// The first Event about a pod with that reason. What Multus reports of a busy API server is tried again, and no mistake.
    pub fn event(&self, pod: &str, reason: &str) -> Option<String> {
        let events = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}");
        let all = self.cluster.admin.get(&events)?;
        let all = all["items"].as_array()?.iter().filter(|event| event["reason"] == reason);
        let mut messages = all.filter_map(|event| event["message"].as_str());
        messages.find(|message| !message.contains("context deadline exceeded")).map(str::to_owned)
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

/// What a rule reports, or what is not on the node.
struct Mistake {
    rule: Option<String>,
    nads: Vec<Value>,
    /// The annotations of the pod.
    annotations: Value,
    /// Whether it is the bad example of the rule.
    is_example: bool,
}

/// A mistake as its reader gets it: the NADs, and the pod where that is what is wrong.
fn findings(nads: &[Value], annotations: &Value) -> Vec<(&'static str, String)> {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [] },
        "metadata": { "name": "p", "namespace": "default", "annotations": annotations } });
    let judged = |object: &Value| {
        let text = object.to_string();
        let Ok(Some(object)) = Object::read(&text) else { return Vec::new() };
        let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
        verdict.findings.into_iter().map(|finding| (finding.rule.id, finding.note)).collect()
    };
    nads.iter().chain([&pod]).flat_map(judged).collect()
}

/// The bad example of a rule, in the namespace `default`; `None` if it is about something else than a NAD or a pod.
fn example(rule: &nadmit::policy::Rule) -> Option<Mistake> {
    let of_kind = |kind: &str| read(rule.bad).into_iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let mut nads = of_kind("NetworkAttachmentDefinition");
    let annotations = match of_kind("Pod").first() {
        Some(pod) => pod["metadata"]["annotations"].clone(),
        None => {
            nads.truncate(1);
            nads.first_mut()?["metadata"] = json!({ "name": NETWORK });
            json!({ NETWORKS: NETWORK })
        }
    };
    // What a pod selects exists, unless the example has another NAD in its place.
    if nads.is_empty() {
        let selection = Selection::read(annotations[NETWORKS].as_str().unwrap_or_default(), "default");
        nads.extend(selection.networks().iter().map(|network| nad(&network.name, GOOD)));
    }
    for nad in &mut nads {
        nad["metadata"] = json!({ "name": nad["metadata"]["name"] });
    }
    Some(Mistake { rule: Some(rule.id.to_owned()), nads, annotations, is_example: true })
}

/// The bad examples of the rules, and the other mistakes.
fn mistakes() -> Vec<Mistake> {
    let untried: BTreeSet<String> =
        without_error().into_iter().filter(|one| one.instead == "untried").map(|one| one.rule).collect();
    let is_tried = |id: &str| FAMILIES.contains(&id.split('/').next().unwrap()) && !untried.contains(id);
    let mut all: Vec<Mistake> =
        RULES.iter().filter(|rule| is_tried(rule.id)).filter_map(|rule| example(rule)).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/errors.yaml");
    for other in read(&fs::read_to_string(file).unwrap()) {
        let mut annotations = json!({ NETWORKS: other["networks"].as_str().unwrap_or(NETWORK) });
        if let Some(network) = other["default-network"].as_str() {
            annotations[DEFAULT_NETWORK] = json!(network);
        }
        let nads = vec![nad(NETWORK, other["config"].as_str().unwrap_or(GOOD))];
        let rule = other["rule"].as_str().map(str::to_owned);
        all.push(Mistake { rule, nads, annotations, is_example: false });
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
        words.push(match word {
            word if word.starts_with("(\"veth") => "(\"veth…\")",
            // An address in the memory of the plugin.
            word if word.starts_with("{Interface:0x") => "{Interface:…",
            word => word,
        });
    }
    words.join(" ")
}

/// The words of others that a text quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2).filter(|words| words.contains(' '))
}

/// Whether the words are known otherwise than from a pod.
fn is_known_otherwise(rule: &str, words: &str) -> bool {
    let mut rows =
        POD_ERRORS.iter().filter(|error| error.evidence != ErrorEvidence::Pod && error.rules.contains(&rule));
    rows.any(|error| error.words.contains(words))
}

impl Node {
    /// Attaches a mistake to a pod, and removes both again.
    fn attempt(&self, pod: &str, mistake: &Mistake) -> Outcome {
        let mut stored = Vec::new();
        let mut is_rejected = false;
        for nad in &mistake.nads {
            let mut nad = nad.clone();
            if let Some(config) = nad["spec"]["config"].as_str() {
                nad["spec"]["config"] = json!(on_this_node(config));
            }
            match self.cluster.admin.try_create(&nads("default"), &nad) {
                Ok(_) => stored.push(nad_at("default", nad["metadata"]["name"].as_str().unwrap())),
                Err(_) => is_rejected = true,
            }
        }
        let outcome = if is_rejected {
            Outcome::Rejected
        } else {
            self.create_pod(pod, &mistake.annotations);
            self.outcome(pod)
        };
        stored.iter().for_each(|nad| self.cluster.admin.delete(nad));
        if !is_rejected {
            self.cluster.admin.delete(&format!("{PODS}/{pod}"));
        }
        outcome
    }
}

/// What is seen in the pods of all mistakes.
#[derive(Default)]
struct Seeing {
    page: Seen,
    /// The rows of the table, with each rule whose mistake showed it.
    rows: BTreeSet<(&'static str, Option<String>)>,
    /// The rules whose bad example starts, because another plugin stands in for one that needs hardware.
    replaced: BTreeSet<String>,
    problems: Vec<String>,
}

impl Seeing {
    /// Notes what became of a mistake.
    fn note(&mut self, mistake: &Mistake, outcome: &Outcome) {
        let rule = mistake.rule.as_deref();
        let name = rule.unwrap_or("no rule");
        // Plugins that need hardware were replaced, and start.
        let instead = without_error().into_iter().find(|one| rule == Some(&one.rule)).map(|one| one.instead);
        let row = match outcome {
            Outcome::Failed(message) => PodError::of(without_preamble(message)),
            Outcome::Started | Outcome::Rejected => None,
        };
        let is_explained = row.is_some_and(|row| rule.is_none_or(|rule| row.rules.contains(&rule)));
        let is_expected = match (instead.as_deref().filter(|_| mistake.is_example), outcome) {
            (Some("starts" | "hardware"), Outcome::Started) | (Some("rejected"), Outcome::Rejected) => true,
            (Some("fails"), Outcome::Failed(_)) => !is_explained,
            (Some(_), _) => false,
            (None, Outcome::Failed(_)) => is_explained,
            // Rules that only warn are about more than what fails.
            (None, _) => mistake.is_example && rule.is_some_and(is_only_warned_of),
        };
        let is_replaced =
            mistake.is_example && matches!(outcome, Outcome::Started) && instead.is_none() && needs_hardware(mistake);
        if is_replaced {
            self.replaced.extend(mistake.rule.clone().filter(|rule| !is_only_warned_of(rule)));
        } else if !is_expected {
            let shown = match outcome {
                Outcome::Started => "the pod starts",
                Outcome::Rejected => "the API server rejects the NAD",
                Outcome::Failed(message) => message,
            };
            self.problems
                .push(format!("{name}: {:?} {}: {shown}\nis explained by {row:?}", mistake.nads, mistake.annotations));
        }
        let (Outcome::Failed(message), Some(row), true) = (outcome, row, is_explained) else { return };
        println!("{name}: {}", stable(message));
        self.rows.insert((row.words, mistake.rule.clone()));
        self.page.entry(stable(message)).or_default().extend(mistake.rule.clone());
        for (finding, note) in findings(&mistake.nads, &mistake.annotations) {
            for words in
                quoted(&note).filter(|_| rule == Some(finding)).filter(|words| !is_known_otherwise(finding, words))
            {
                if !words.split("...").flat_map(|part| part.split('…')).all(|part| message.contains(part.trim())) {
                    self.problems.push(format!("{finding}: the note quotes {words:?}, and the pod shows {message}"));
                }
            }
        }
    }
}

/// Whether a plugin of it is replaced by one that the node can run.
fn needs_hardware(mistake: &Mistake) -> bool {
    let config = |nad: &Value| nad["spec"]["config"].as_str().is_some_and(|config| config.contains("\"sriov\""));
    mistake.nads.iter().any(config)
}

/// Whether the rule does no more than warn.
fn is_only_warned_of(id: &str) -> bool {
    RULES.iter().any(|rule| rule.id == id && rule.default < Action::Patch)
}

#[test]
fn pods_show_what_the_rules_say() {
    on_a_node(|node| {
        let mut seeing = Seeing::default();
        for (index, mistake) in mistakes().iter().enumerate() {
            let pod = format!("{}-{index}", mistake.rule.as_deref().unwrap_or("none").replace('/', "-"));
            seeing.note(mistake, &node.attempt(&pod, mistake));
        }
        let Seeing { page: seen, rows, replaced, mut problems } = seeing;
        // Another mistake of the same rule shows its error.
        for rule in replaced.iter().filter(|rule| !seen.values().any(|rules| rules.contains(*rule))) {
            problems.push(format!("{rule}: the pod of its example starts, and no other mistake shows it"));
        }
        let all: String = seen.keys().cloned().collect();
        for rule in RULES.iter().filter(|rule| seen.values().any(|rules| rules.contains(rule.id))) {
            for words in quoted(rule.why).filter(|words| !is_known_otherwise(rule.id, words)) {
                let parts: Vec<&str> = words.split("...").collect();
                if !parts.iter().all(|part| all.contains(part.trim())) {
                    problems.push(format!("{}: no pod shows {words:?}", rule.id));
                }
            }
        }
        for error in POD_ERRORS {
            let is_shown = |rule: Option<&str>| rows.contains(&(error.words, rule.map(str::to_owned)));
            if error.evidence != ErrorEvidence::Pod {
                let is_seen = rows.iter().any(|(words, _)| *words == error.words);
                problems.extend(is_seen.then(|| format!("a pod shows {:?}: say so in the table", error.words)));
                continue;
            }
            for rule in error.rules.iter().filter(|rule| !is_shown(Some(rule))) {
                problems.push(format!("{rule}: no pod shows {:?}", error.words));
            }
            if error.rules.is_empty() && !is_shown(None) {
                problems.push(format!("no pod shows {:?}", error.words));
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        assert!(seen.len() > 60, "{seen:#?}");
        let path = errors_page::path();
        let page = errors_page::with_seen(&fs::read_to_string(&path).unwrap(), &seen);
        if std::env::var_os("GENERATE").is_some() {
            fs::write(&path, &page).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), page, "run GENERATE=1 make node TEST=node::errors");
    });
}
