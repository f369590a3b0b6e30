//! Each link of the chain.

use serde_json::Value;

use super::{Around, Link, Node, Read, State, Step, has_rendered, is_grave};
use crate::policy::{Finding, NamespaceState};
use crate::resources::{Nad, Object, RESOURCE_NAME};

/// How many names are told of many.
const MOST_NAMES: usize = 3;

/// All of them.
pub(super) fn steps(around: &Around<'_>) -> Vec<Step> {
    let mut steps = vec![
        network(around),
        rendering(around),
        namespace(around),
        operator(around),
        nad(around),
        resource_name(around),
        node_policy(around),
        pods(around),
    ];
    let of_network = around.of_network.iter().map(|finding| (link_of(finding.rule.id), finding));
    let of_nad = around.of_nad.iter().map(|finding| {
        let is_name = finding.rule.id.starts_with("nad/resource-name");
        (if is_name { Link::ResourceName } else { Link::Nad }, finding)
    });
    // Pods get their device by the annotation: a config that lacks the name is a matter of taste then.
    let is_named = matches!(&around.sight.nad, Ok(Some(nad)) if annotated(nad).is_some());
    let is_taste = |finding: &Finding| is_named && finding.rule.id == "nad/resource-name-missing";
    for (link, finding) in of_network.chain(of_nad) {
        if let Some(step) = steps.iter_mut().find(|step| step.link == link) {
            step.take(finding.clone(), is_grave(finding) && !is_taste(finding));
        }
    }
    steps
}

/// What a finding on the network is about.
fn link_of(rule: &str) -> Link {
    match rule {
        "network/namespace-absent" | "network/moves-to-nowhere" => Link::Namespace,
        "network/wedged" => Link::Operator,
        "network/claimed" => Link::Nad,
        "network/no-policy" => Link::NodePolicy,
        "network/fragment" | "network/render-unsafe" | "network/ambiguous-name" => Link::Rendering,
        rule if rule.starts_with("network/") => Link::Network,
        _ => Link::Rendering,
    }
}

impl Step {
    fn new(link: Link, state: State, says: impl Into<String>) -> Self {
        Self { link, state, says: says.into(), help: None, findings: Vec::new() }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// What could not be read.
    fn unread(link: Link, missing: &str) -> Self {
        Self::new(link, State::Unknown, format!("not known: {missing}"))
    }

    fn take(&mut self, finding: Finding, is_grave: bool) {
        if is_grave {
            self.state = State::Broken;
        }
        // The finding says it better.
        self.help = None;
        self.findings.push(finding);
    }
}

fn network(around: &Around<'_>) -> Step {
    let id = around.network.id();
    if around.network.meta.deleting {
        let step = Step::new(Link::Network, State::Broken, format!("{id} is being deleted"));
        return step.help("its finalizers must come off first: the operator does that, if it runs");
    }
    // The operator's own word comes after what is in our hands to know.
    match complaint(around.sight.network.as_deref().unwrap_or_default()) {
        Some(words) => {
            let state = if around.is_fresh { State::Waiting } else { State::Broken };
            Step::new(Link::Network, state, format!("{id}; the operator says: {words}"))
        }
        None => Step::new(Link::Network, State::Good, id.to_string()),
    }
}

/// What the operator says is wrong, in a condition.
fn complaint(network: &str) -> Option<String> {
    let network: Value = serde_json::from_str(network).ok()?;
    let conditions = network.pointer("/status/conditions")?.as_array()?;
    let text = |condition: &Value, key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ready = conditions.iter().find(|condition| text(condition, "type") == "Ready")?;
    (text(ready, "status") == "False").then(|| format!("{}: {}", text(ready, "reason"), text(ready, "message")))
}

fn rendering(around: &Around<'_>) -> Step {
    match &around.rendered.nad {
        Some(_) => {
            let says = format!("renders to NAD {}, type {}", around.place(), around.network.kind.plugin());
            Step::new(Link::Rendering, State::Good, says)
        }
        None => Step::new(Link::Rendering, State::Broken, "the operator cannot make a NAD of it"),
    }
}

fn namespace(around: &Around<'_>) -> Step {
    let target = around.network.target_namespace();
    let broken =
        |says: String| Step::new(Link::Namespace, State::Broken, says).help(format!("create namespace `{target}`"));
    match &around.sight.namespace {
        Err(missing) => Step::unread(Link::Namespace, missing),
        Ok(Some(NamespaceState::Active)) => Step::new(Link::Namespace, State::Good, format!("{target} is there")),
        Ok(Some(NamespaceState::Terminating)) => broken(format!("{target} is being deleted")),
        Ok(None) => broken(format!("{target} does not exist")),
    }
}

fn operator(around: &Around<'_>) -> Step {
    match &around.sight.operator {
        Err(missing) => Step::unread(Link::Operator, missing),
        Ok(None) => {
            let says = "not known: nothing runs with an account that may create NADs in all namespaces; the policy's operator.namespace says where it is";
            Step::new(Link::Operator, State::Unknown, says)
        }
        Ok(Some(operator)) if operator.available > 0 => {
            Step::new(Link::Operator, State::Good, format!("runs in {}", operator.namespace))
        }
        Ok(Some(operator)) => {
            let says = format!("no replica of {}/{} is ready", operator.namespace, operator.deployment);
            let help = format!("kubectl -n {} describe deployment {}", operator.namespace, operator.deployment);
            Step::new(Link::Operator, State::Broken, says).help(help)
        }
    }
}

fn nad(around: &Around<'_>) -> Step {
    let place = around.place();
    let text = match &around.sight.nad {
        Err(missing) => return Step::unread(Link::Nad, missing),
        Ok(None) => return absent(around, &place),
        Ok(Some(text)) => text,
    };
    let Ok(Some(Object::Nad(nad))) = Object::read(text) else {
        return Step::new(Link::Nad, State::Broken, format!("{place} cannot be read"));
    };
    match nad.meta.owner() {
        Some(owner) if owner != around.network.id() => {
            return Step::new(Link::Nad, State::Broken, format!("{place} belongs to {owner}"))
                .help("give one of them another name, or another target namespace");
        }
        None if !has_rendered(&around.network) => {
            return Step::new(Link::Nad, State::Broken, format!("{place} was not made from this network"))
                .help("delete it: the operator makes the network's own");
        }
        _ => {}
    }
    let meant = serde_json::from_str(&around.rendered.config).unwrap_or_default();
    let stored = serde_json::from_str(nad.config.as_deref().unwrap_or_default()).unwrap_or_default();
    match contradiction(&meant, &stored, &mut String::new()) {
        Some((at, meant, stored)) => {
            let state = if around.is_fresh { State::Waiting } else { State::Broken };
            let says = format!("{place} is out of date: {at} is {stored}, and the network says {meant}");
            let help = "the operator has not rendered the network's last change: look into its log";
            Step::new(Link::Nad, state, says).help(help)
        }
        None => Step::new(Link::Nad, State::Good, format!("{place} is there, made from the network")),
    }
}

fn absent(around: &Around<'_>, place: &str) -> Step {
    let waits = |what: &str| Step::new(Link::Nad, State::Waiting, format!("{place} is not there: it waits for {what}"));
    if around.rendered.nad.is_none() {
        return waits("a network that can be rendered");
    }
    if !matches!(around.sight.namespace, Ok(Some(NamespaceState::Active)) | Err(_)) {
        return waits("the namespace");
    }
    if matches!(&around.sight.operator, Ok(Some(operator)) if operator.available == 0) {
        return waits("the operator");
    }
    if around.is_fresh {
        return waits("the operator, which still has time");
    }
    let says = format!("{place} is not there, and the operator has had time to make it");
    Step::new(Link::Nad, State::Broken, says)
        .help("look into the operator's log for the name of the network; restarting it makes it look again")
}

/// A value that both have and that differs. What only one has may be another version's way to write a default.
fn contradiction(meant: &Value, stored: &Value, at: &mut String) -> Option<(String, String, String)> {
    let length = at.len();
    match (meant, stored) {
        (Value::Object(meant), Value::Object(stored)) => meant.iter().find_map(|(key, meant)| {
            at.push('/');
            at.push_str(key);
            let found = stored.get(key).and_then(|stored| contradiction(meant, stored, at));
            at.truncate(length);
            found
        }),
        (Value::Array(meant), Value::Array(stored)) if meant.len() == stored.len() => {
            meant.iter().zip(stored).enumerate().find_map(|(number, (meant, stored))| {
                at.push('/');
                at.push_str(&number.to_string());
                let found = contradiction(meant, stored, at);
                at.truncate(length);
                found
            })
        }
        _ if meant == stored => None,
        _ => Some((at.clone(), meant.to_string(), stored.to_string())),
    }
}

fn resource_name(around: &Around<'_>) -> Step {
    let Ok(Some(text)) = &around.sight.nad else {
        return match &around.sight.nad {
            Err(missing) => Step::unread(Link::ResourceName, missing),
            Ok(_) => Step::new(Link::ResourceName, State::Waiting, "there is no NAD to have one"),
        };
    };
    match annotated(text) {
        Some(name) => Step::new(Link::ResourceName, State::Good, format!("{name}, by the NAD's annotation")),
        // Whether one is needed is the judgement's word.
        None => Step::new(Link::ResourceName, State::Good, "the NAD has none"),
    }
}

fn annotated(nad: &str) -> Option<String> {
    match Object::read(nad) {
        Ok(Some(Object::Nad(Nad { meta, .. }))) => meta.annotation(RESOURCE_NAME).map(|name| name.into_owned()),
        _ => None,
    }
}

fn node_policy(around: &Around<'_>) -> Step {
    let resource = around.network.text("resourceName");
    let policies = match &around.sight.policies {
        Err(missing) => return Step::unread(Link::NodePolicy, missing),
        Ok(policies) => policies.iter().filter(|policy| policy.resource_name == resource),
    };
    let names: Vec<&str> = policies.map(|policy| policy.name.as_str()).collect();
    if names.is_empty() {
        return Step::new(Link::NodePolicy, State::Broken, format!("none offers `{resource}`"))
            .help(format!("add a SriovNetworkNodePolicy with resourceName: {resource}"));
    }
    let mut says = format!("{} offers `{resource}`", some(&names));
    let states = around.sight.states.as_deref().unwrap_or_default();
    let in_state = |wanted: &[&str]| states.iter().filter(|state| wanted.contains(&state.sync.as_str())).count();
    if let Some(failed) = states.iter().find(|state| state.sync == "Failed") {
        says += &format!("; {} of {} nodes failed to apply policies", in_state(&["Failed"]), states.len());
        says += &format!(" (node {}: {})", failed.node, failed.error);
    }
    let busy = in_state(&["InProgress"]);
    if busy > 0 {
        says += &format!("; {busy} of {} nodes are busy with it", states.len());
    }
    if let Err(missing) = &around.sight.states {
        says += &format!("; how far the nodes are is not known: {missing}");
    }
    Step::new(Link::NodePolicy, State::Good, says)
}

fn pods(around: &Around<'_>) -> Step {
    let asked = match &around.sight.nad {
        Ok(Some(nad)) => annotated(nad),
        _ => around.resource.clone(),
    };
    let Some(resource) = asked else {
        return match around.network.kind.plugin() {
            // A bridge needs no device.
            "ovs" => Step::new(Link::Pods, State::Good, "get a port of a bridge, and no device"),
            _ => Step::new(Link::Pods, State::Waiting, "get no device: the NAD has no resourceName"),
        };
    };
    let nodes = match offering(&around.sight.nodes, &resource) {
        Err(missing) => return Step::unread(Link::Pods, missing),
        Ok(nodes) => nodes,
    };
    let all = around.sight.nodes.as_ref().map_or(0, Vec::len);
    if nodes.is_empty() {
        let step =
            Step::new(Link::Pods, State::Broken, format!("none of {all} nodes has `{resource}`: pods stay Pending"));
        let states = around.sight.states.as_deref().unwrap_or_default();
        return match states.iter().any(|state| state.sync == "InProgress") {
            true => Step { state: State::Waiting, ..step },
            false => step.help("does the policy select a node and its device? Is a pod of the device plugin there?"),
        };
    }
    let names: Vec<&str> = nodes.iter().map(|(node, _)| node.name.as_str()).collect();
    let devices: u64 = nodes.iter().map(|(_, devices)| devices).sum();
    let has = if names.len() == 1 { "has" } else { "have" };
    let says = format!(
        "{} of {all} nodes {has} {devices} of `{resource}` ({}) for pods that ask for one and name {}",
        names.len(),
        some(&names),
        around.place()
    );
    Step::new(Link::Pods, State::Good, says)
}

/// The nodes that have such devices, and how many.
fn offering<'n>(nodes: &'n Read<Vec<Node>>, resource: &str) -> Result<Vec<(&'n Node, u64)>, &'n str> {
    let nodes = nodes.as_ref().map_err(String::as_str)?;
    let devices = |node: &Node| node.allocatable.get(resource).copied().unwrap_or_default();
    Ok(nodes.iter().map(|node| (node, devices(node))).filter(|(_, devices)| *devices > 0).collect())
}

/// The first of some names.
fn some(names: &[&str]) -> String {
    let mut text = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMES {
        text += &format!(" and {} more", names.len() - MOST_NAMES);
    }
    text
}
