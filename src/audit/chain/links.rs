//! Each link of the chain.

use super::{ChainContext, ChainStep, ClusterNode, FirstNames, Link, LinkHealth, Read, is_breaking, releases};
use crate::policy::{Finding, NamespaceState};
use crate::resources::{Nad, Object, RESOURCE_NAME};

/// All of them.
pub(super) fn steps(context: &ChainContext<'_>) -> Vec<ChainStep> {
    let mut steps = vec![network(context), rendering(context), namespace(context), operator(context), nad(context)];
    steps.extend(releases::step(&context.snapshot.programs, context.versions));
    steps.extend([resource_name(context), node_policy(context), pods(context)]);
    let of_network = context.of_network.iter().map(|finding| (link_of(finding.rule.id), finding));
    let of_nad = context.of_nad.iter().map(|finding| {
        let is_name = finding.rule.id.starts_with("nad/resource-name");
        (if is_name { Link::ResourceName } else { Link::Nad }, finding)
    });
    // Pods get their device through the annotation, so a missing name in the config does not matter then.
    let is_named = matches!(&context.snapshot.nad, Ok(Some(nad)) if annotated(nad).is_some());
    let is_taste = |finding: &Finding| is_named && finding.rule.id == "nad/resource-name-missing";
    for (link, finding) in of_network.chain(of_nad) {
        if let Some(step) = steps.iter_mut().find(|step| step.link == link) {
            step.add(finding.clone(), is_breaking(finding) && !is_taste(finding));
        }
    }
    steps
}

/// What a finding on the network is about.
pub(super) fn link_of(rule: &str) -> Link {
    match rule {
        "network/namespace-absent" | "network/moves-to-nowhere" => Link::Namespace,
        "network/wedged" => Link::Operator,
        "network/claimed" | "audit/nad-absent" | "audit/nad-drift" => Link::Nad,
        "audit/operator-silent" => Link::Operator,
        "audit/stuck-deletion" => Link::Network,
        "network/no-policy" => Link::NodePolicy,
        "network/fragment" | "network/render-unsafe" | "network/ambiguous-name" => Link::Rendering,
        rule if rule.starts_with("network/") => Link::Network,
        _ => Link::Rendering,
    }
}

impl ChainStep {
    pub(super) fn new(link: Link, state: LinkHealth, says: impl Into<String>) -> Self {
        Self { link, state, says: says.into(), help: None, findings: Vec::new() }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// What could not be read.
    pub(super) fn unread(link: Link, missing: &str) -> Self {
        Self::new(link, LinkHealth::Unknown, format!("unknown: {missing}"))
    }

    fn add(&mut self, finding: Finding, is_breaking: bool) {
        if is_breaking {
            self.state = LinkHealth::Broken;
        }
        // The finding is more specific.
        self.help = None;
        self.findings.push(finding);
    }
}

fn network(context: &ChainContext<'_>) -> ChainStep {
    let id = context.network.id();
    if context.network.meta.deleting {
        let step = ChainStep::new(Link::Network, LinkHealth::Broken, format!("{id} is being deleted"));
        return step.help("its finalizers must be removed first; the operator does that while it runs");
    }
    // The operator's condition is checked after our own findings.
    match &context.condition {
        Some(words) => {
            let state = if context.is_fresh { LinkHealth::Waiting } else { LinkHealth::Broken };
            ChainStep::new(Link::Network, state, format!("{id}; operator condition: {words}"))
        }
        None => ChainStep::new(Link::Network, LinkHealth::Good, id.to_string()),
    }
}

fn rendering(context: &ChainContext<'_>) -> ChainStep {
    match &context.rendered.fault {
        None => {
            let says = format!("renders to NAD {}, type {}", context.place(), context.network.kind.plugin());
            ChainStep::new(Link::Rendering, LinkHealth::Good, says)
        }
        Some(_) => ChainStep::new(Link::Rendering, LinkHealth::Broken, "the operator cannot render a NAD"),
    }
}

fn namespace(context: &ChainContext<'_>) -> ChainStep {
    let target = context.network.target_namespace();
    let broken = |says: String| {
        ChainStep::new(Link::Namespace, LinkHealth::Broken, says).help(format!("create namespace `{target}`"))
    };
    match &context.snapshot.namespace {
        Err(missing) => ChainStep::unread(Link::Namespace, missing),
        Ok(Some(NamespaceState::Active)) => {
            ChainStep::new(Link::Namespace, LinkHealth::Good, format!("{target} exists"))
        }
        Ok(Some(NamespaceState::Terminating)) => broken(format!("{target} is being deleted")),
        Ok(None) => broken(format!("{target} does not exist")),
    }
}

fn operator(context: &ChainContext<'_>) -> ChainStep {
    match &context.snapshot.operator {
        Err(missing) => ChainStep::unread(Link::Operator, missing),
        Ok(None) => {
            let says = "unknown: no Deployment uses an account that may create NADs in all namespaces; set operator.namespace in the policy";
            ChainStep::new(Link::Operator, LinkHealth::Unknown, says)
        }
        Ok(Some(operator)) if operator.available > 0 => {
            ChainStep::new(Link::Operator, LinkHealth::Good, format!("runs in {}", operator.namespace))
        }
        Ok(Some(operator)) => {
            let says = format!("no replica of {}/{} is ready", operator.namespace, operator.deployment);
            let help = format!("kubectl -n {} describe deployment {}", operator.namespace, operator.deployment);
            ChainStep::new(Link::Operator, LinkHealth::Broken, says).help(help)
        }
    }
}

fn nad(context: &ChainContext<'_>) -> ChainStep {
    let place = context.place();
    let text = match &context.snapshot.nad {
        Err(missing) => return ChainStep::unread(Link::Nad, missing),
        Ok(None) => return absent(context, &place),
        Ok(Some(text)) => text,
    };
    let Ok(Some(Object::Nad(nad))) = Object::read(text) else {
        return ChainStep::new(Link::Nad, LinkHealth::Broken, format!("{place} cannot be parsed"));
    };
    match nad.meta.owner() {
        Some(owner) if *owner != context.network.id() => {
            return ChainStep::new(Link::Nad, LinkHealth::Broken, format!("{place} belongs to {owner}"))
                .help("rename one of them, or change its target namespace");
        }
        None if !context.network.is_rendered_to_target() => {
            return ChainStep::new(
                Link::Nad,
                LinkHealth::Broken,
                format!("{place} was not rendered from this network"),
            )
            .help("delete it; the operator then creates the NAD of the network");
        }
        _ => {}
    }
    match &context.drift {
        Some(drift) => {
            let state = if context.is_fresh { LinkHealth::Waiting } else { LinkHealth::Broken };
            let says = format!("stale: {drift}");
            let help = "the operator has not rendered the latest change of the network; check its log";
            ChainStep::new(Link::Nad, state, says).help(help)
        }
        None => ChainStep::new(Link::Nad, LinkHealth::Good, format!("{place} exists, rendered from the network")),
    }
}

fn absent(context: &ChainContext<'_>, place: &str) -> ChainStep {
    let waits = |what: &str| {
        ChainStep::new(Link::Nad, LinkHealth::Waiting, format!("{place} does not exist yet: waiting for {what}"))
    };
    if context.rendered.fault.is_some() {
        return waits("a network that can be rendered");
    }
    if !matches!(context.snapshot.namespace, Ok(Some(NamespaceState::Active)) | Err(_)) {
        return waits("the namespace");
    }
    if matches!(&context.snapshot.operator, Ok(Some(operator)) if operator.available == 0) {
        return waits("the operator");
    }
    if context.is_fresh {
        return waits("the operator, within the grace period");
    }
    let says = format!("{place} does not exist, and the grace period of the operator is over");
    ChainStep::new(Link::Nad, LinkHealth::Broken, says)
        .help("search the operator's log for the name of the network; a restart makes it reconcile again")
}

fn resource_name(context: &ChainContext<'_>) -> ChainStep {
    let Ok(Some(text)) = &context.snapshot.nad else {
        return match &context.snapshot.nad {
            Err(missing) => ChainStep::unread(Link::ResourceName, missing),
            Ok(_) => ChainStep::new(Link::ResourceName, LinkHealth::Waiting, "there is no NAD yet"),
        };
    };
    match annotated(text) {
        Some(name) => ChainStep::new(Link::ResourceName, LinkHealth::Good, format!("{name}, by the NAD's annotation")),
        // The rules decide whether one is needed.
        None => ChainStep::new(Link::ResourceName, LinkHealth::Good, "the NAD has none"),
    }
}

fn annotated(nad: &str) -> Option<String> {
    match Object::read(nad) {
        Ok(Some(Object::Nad(Nad { meta, .. }))) => meta.annotation(RESOURCE_NAME).map(|name| name.into_owned()),
        _ => None,
    }
}

fn node_policy(context: &ChainContext<'_>) -> ChainStep {
    let resource = context.network.text("resourceName");
    let policies = match &context.snapshot.policies {
        Err(missing) => return ChainStep::unread(Link::NodePolicy, missing),
        Ok(policies) => policies.iter().filter(|policy| policy.resource_name == resource),
    };
    let names: Vec<&str> = policies.map(|policy| policy.name.as_str()).collect();
    if let (true, Some(served)) = (names.is_empty(), &context.served) {
        return ChainStep::new(Link::NodePolicy, LinkHealth::Good, format!("a DeviceClass serves `{served}` (DRA)"));
    }
    if names.is_empty() {
        return ChainStep::new(Link::NodePolicy, LinkHealth::Broken, format!("none offers `{resource}`"))
            .help(format!("add a SriovNetworkNodePolicy with resourceName: {resource}"));
    }
    let mut says = format!("{} offers `{resource}`", names.iter().copied().collect::<FirstNames<'_>>());
    let states = context.snapshot.states.as_deref().unwrap_or_default();
    let in_state = |wanted: &[&str]| states.iter().filter(|state| wanted.contains(&state.sync.as_str())).count();
    if let Some(failed) = states.iter().find(|state| state.sync == "Failed") {
        says += &format!("; {} of {} nodes failed to apply policies", in_state(&["Failed"]), states.len());
        says += &format!(" (node {}: {})", failed.node, failed.error);
    }
    let busy = in_state(&["InProgress"]);
    if busy > 0 {
        says += &format!("; {busy} of {} nodes are still applying it", states.len());
    }
    if let Err(missing) = &context.snapshot.states {
        says += &format!("; the state of the nodes is unknown: {missing}");
    }
    ChainStep::new(Link::NodePolicy, LinkHealth::Good, says)
}

fn pods(context: &ChainContext<'_>) -> ChainStep {
    let asked = match &context.snapshot.nad {
        Ok(Some(nad)) => annotated(nad),
        _ => context.resource.clone(),
    };
    let Some(resource) = asked else {
        return match context.network.kind.plugin() {
            // An OVS bridge needs no device.
            "ovs" => ChainStep::new(Link::Pods, LinkHealth::Good, "get a bridge port and no device"),
            _ => ChainStep::new(Link::Pods, LinkHealth::Waiting, "get no device: the NAD has no resourceName"),
        };
    };
    if context.served.as_ref() == Some(&resource) {
        let says = format!("pods that request `{resource}` get a claim for a device of its DeviceClass (DRA)");
        return ChainStep::new(Link::Pods, LinkHealth::Good, says);
    }
    let nodes = match offering(&context.snapshot.nodes, &resource) {
        Err(missing) => return ChainStep::unread(Link::Pods, missing),
        Ok(nodes) => nodes,
    };
    let all = context.snapshot.nodes.as_ref().map_or(0, Vec::len);
    if nodes.is_empty() {
        let step = ChainStep::new(
            Link::Pods,
            LinkHealth::Broken,
            format!("none of {all} nodes has `{resource}`: pods stay Pending"),
        );
        let states = context.snapshot.states.as_deref().unwrap_or_default();
        return match states.iter().any(|state| state.sync == "InProgress") {
            true => ChainStep { state: LinkHealth::Waiting, ..step },
            false => {
                step.help("check that the policy selects a node and its device, and that the device plugin runs there")
            }
        };
    }
    let names: Vec<&str> = nodes.iter().map(|(node, _)| node.name.as_str()).collect();
    let devices: u64 = nodes.iter().map(|(_, devices)| devices).sum();
    let has = if names.len() == 1 { "has" } else { "have" };
    let says = format!(
        "{} of {all} nodes {has} {devices} of `{resource}` ({}) for pods that request it and use {}",
        names.len(),
        names.iter().copied().collect::<FirstNames<'_>>(),
        context.place()
    );
    ChainStep::new(Link::Pods, LinkHealth::Good, says)
}

/// The nodes that have such devices, and how many.
fn offering<'n>(nodes: &'n Read<Vec<ClusterNode>>, resource: &str) -> Result<Vec<(&'n ClusterNode, u64)>, &'n str> {
    let nodes = nodes.as_ref().map_err(String::as_str)?;
    let devices = |node: &ClusterNode| node.allocatable.get(resource).copied().unwrap_or_default();
    Ok(nodes.iter().map(|node| (node, devices(node))).filter(|(_, devices)| *devices > 0).collect())
}
