//! The releases of the programs that read a NAD, as the images of DaemonSets show them.

use serde_json::Value;

use super::{ChainStep, Link, LinkHealth, Read};
use crate::cni::releases::{Program, Release, Versions};

/// A program that a DaemonSet installs on the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    /// The program.
    pub program: Program,
    /// Its release.
    pub release: Release,
    /// Namespace and name of the DaemonSet.
    pub daemon_set: String,
}

impl InstalledProgram {
    /// The programs that a DaemonSet installs; those whose image has no release in its tag are left out.
    pub fn of(daemon_set: &Value) -> Vec<Self> {
        let text = |pointer: &str| daemon_set.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        let containers = ["/spec/template/spec/initContainers", "/spec/template/spec/containers"];
        let containers = containers.iter().filter_map(|pointer| daemon_set.pointer(pointer)?.as_array()).flatten();
        let images = containers.filter_map(|container| container.get("image")?.as_str());
        let mut found: Vec<Self> = images
            .filter_map(of_image)
            .map(|(program, release)| Self { program, release, daemon_set: name.clone() })
            .collect();
        found.dedup();
        found
    }
}

/// The program in an image, and its release: `ghcr.io/k8snetworkplumbingwg/sriov-cni:v2.8.0`.
fn of_image(image: &str) -> Option<(Program, Release)> {
    let image = image.split('@').next()?;
    let (name, tag) = image.rsplit('/').next()?.split_once(':')?;
    let name = name.strip_prefix("hardened-").unwrap_or(name);
    let program = match name.strip_suffix("-plugin").unwrap_or(name) {
        "cni-plugins" | "containernetworking-plugins" => Program::CniPlugins,
        "sriov-cni" => Program::SriovCni,
        "ib-sriov-cni" => Program::IbSriovCni,
        "ovs-cni" => Program::OvsCni,
        "rdma-cni" => Program::RdmaCni,
        "bond-cni" => Program::BondCni,
        "whereabouts" | "whereabouts-cni" | "whereabouts-ipam-cni" => Program::Whereabouts,
        "multus" | "multus-cni" => Program::Multus,
        _ => return None,
    };
    Some((program, Release::parse(tag)?))
}

/// The step that compares them with those that the policy names; `None` if no image shows a release.
pub(super) fn step(programs: &Read<Vec<InstalledProgram>>, policy: &Versions) -> Option<ChainStep> {
    let programs = match programs {
        Ok(programs) => programs,
        Err(missing) => return Some(ChainStep::unread(Link::Releases, missing)),
    };
    // The oldest one counts.
    let oldest = |program: Program| programs.iter().filter(|one| one.program == program).min_by_key(|one| one.release);
    let found: Vec<&InstalledProgram> = Program::all().filter_map(oldest).collect();
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> = found.iter().map(|one| format!("{} {}", one.program.name(), one.release)).collect();
    let step =
        ChainStep::new(Link::Releases, LinkHealth::Good, format!("{}, by images of DaemonSets", shown.join(", ")));
    let differs = found.iter().find_map(|one| {
        let named = policy.get(one.program).filter(|named| !named.agrees(one.release))?;
        Some(format!(
            "the policy names {} {named}, but an image of DaemonSet {} is {}: check what the nodes run, and name the oldest in `versions`",
            one.program.name(),
            one.daemon_set,
            one.release,
        ))
    });
    if let Some(help) = differs {
        return Some(step.help(help));
    }
    let missing: Vec<String> = found
        .iter()
        .filter(|one| policy.get(one.program).is_none())
        .map(|one| format!("{}: \"{}\"", one.program.name(), one.release.without_patch()))
        .collect();
    if missing.is_empty() {
        return Some(step);
    }
    Some(
        step.help(format!(
            "the policy can name them, and nadmit judges by them: `versions: {{{}}}`",
            missing.join(", ")
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_show_programs_and_releases() {
        for (image, want) in [
            ("ghcr.io/k8snetworkplumbingwg/sriov-cni:v2.8.0", Some("sriov-cni 2.8.0")),
            ("ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.3-thick", Some("multus 4.2.3")),
            ("rancher/hardened-cni-plugins:v1.6.2-build20250306", Some("cni-plugins 1.6.2")),
            ("quay.io/kubevirt/ovs-cni-plugin:v0.38.2", Some("ovs-cni 0.38.2")),
            ("registry.local:5000/whereabouts:v0.8.0@sha256:0123", Some("whereabouts 0.8.0")),
            ("ib-sriov-cni:v1.3.0", Some("ib-sriov-cni 1.3.0")),
            ("containernetworking-plugins:v1.7.1", Some("cni-plugins 1.7.1")),
            ("rdma-cni:v1.3.0", Some("rdma-cni 1.3.0")),
            ("bond-cni:v1.0", Some("bond-cni 1.0")),
            ("whereabouts-cni:v0.8.0", Some("whereabouts 0.8.0")),
            ("multus:v4.1.0", Some("multus 4.1.0")),
            ("ghcr.io/k8snetworkplumbingwg/multus-dynamic-networks-controller:v0.3.7", None),
            ("ghcr.io/k8snetworkplumbingwg/sriov-cni:latest", None),
            ("ghcr.io/k8snetworkplumbingwg/sriov-cni@sha256:0123", None),
            ("registry.local:5000/sriov-cni", None),
            ("", None),
        ] {
            let found = of_image(image).map(|(program, release)| format!("{} {release}", program.name()));
            assert_eq!(found.as_deref(), want, "{image}");
        }
    }

    #[test]
    fn the_policy_is_compared_with_the_oldest_release() {
        let daemon_set = |name: &str, image: &str| {
            serde_json::json!({
                "metadata": {"namespace": "sriov", "name": name},
                "spec": {"template": {"spec": {"initContainers": [{"image": image}], "containers": [{"image": "other:v1.0"}]}}},
            })
        };
        let sets = [daemon_set("new", "sriov-cni:v2.10.0"), daemon_set("old", "sriov-cni:v2.9.1")];
        let programs: Read<Vec<_>> = Ok(sets.iter().flat_map(InstalledProgram::of).collect());
        let step_of = |policy: &str| {
            let step = step(&programs, &serde_json::from_str(policy).unwrap()).unwrap();
            (step.says, step.help)
        };
        let says = "sriov-cni 2.9.1, by images of DaemonSets";
        let help = "the policy can name them, and nadmit judges by them: `versions: {sriov-cni: \"2.9\"}`";
        assert_eq!(step_of("{}"), (says.to_owned(), Some(help.to_owned())));
        assert_eq!(step_of(r#"{"sriov-cni":"2.9"}"#), (says.to_owned(), None));
        let help = "the policy names sriov-cni 2.10, but an image of DaemonSet sriov/old is 2.9.1: check what the nodes run, and name the oldest in `versions`";
        assert_eq!(step_of(r#"{"sriov-cni":"2.10"}"#), (says.to_owned(), Some(help.to_owned())));

        assert!(step(&Ok(Vec::new()), &Versions::default()).is_none());
        let unread = step(&Err("missing permission: list daemonsets".to_owned()), &Versions::default()).unwrap();
        assert_eq!(unread.state, LinkHealth::Unknown);
    }
}
