//! `nadmit doctor pod`.

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::show::FindingJson;
use super::{DoctorOptions, DoctorOutputFormat, namespace_of};
use crate::audit::chain::LinkHealth;
use crate::audit::pod::{ExplainedError, NetworkSelection, PodNad, PodReport, STUCK};
use crate::cli::connection::block_on;
use crate::cli::{EXIT_CLEAN, EXIT_DENIED, print, stored};
use crate::output::{Format, Human, JudgedDocument};
use crate::resources::{Object, ObjectKey};
use crate::visible;

/// Show why a pod does not start, or is stuck in Terminating: the rule that explains its Events, the line in the NAD, and the fix
///
/// Exit code 0: the pod is ready. 1: it is not. 2: wrong arguments, there is no such pod, or the cluster cannot be reached.
#[derive(Debug, Args)]
pub(super) struct DoctorPod {
    /// The pod
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pod: PodArg,
    /// The namespace of the pod [default: that of the context]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    options: DoctorOptions,
}

/// A pod as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PodArg {
    namespace: Option<String>,
    name: String,
}

impl std::str::FromStr for PodArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split('/').collect::<Vec<_>>().as_slice() {
            [name] => (None, (*name).to_owned()),
            [namespace, name] if !namespace.is_empty() => (Some((*namespace).to_owned()), (*name).to_owned()),
            _ => return Err("write NAME or NAMESPACE/NAME".to_owned()),
        };
        if name.is_empty() { Err("write NAME or NAMESPACE/NAME".to_owned()) } else { Ok(Self { namespace, name }) }
    }
}

impl DoctorPod {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let policy = self.options.policy.read()?;
        let report = block_on(async {
            let cluster = self.options.connection.connect().await?;
            let namespace = self.namespace.as_deref().filter(|name| !name.is_empty());
            let namespace = namespace_of(self.pod.namespace.as_deref(), namespace)?;
            let pod = ObjectKey::new(namespace.unwrap_or_else(|| cluster.default_namespace()), &self.pod.name);
            let snapshot = cluster.pod_snapshot(&pod, &policy).await?;
            let snapshot = snapshot.with_context(|| format!("pod {pod} does not exist"))?;
            Ok(PodReport::of(snapshot, &policy, jiff::Timestamp::now()))
        })?;
        print(&match self.options.output {
            DoctorOutputFormat::Human => human(&report, self.options.colours.is_on()),
            DoctorOutputFormat::Json => json(&report),
        })?;
        Ok(if report.state == LinkHealth::Good { EXIT_CLEAN } else { EXIT_DENIED })
    }
}

/// The report as text: the errors, then the findings in the NADs as `nadmit check` shows them.
fn human(report: &PodReport, has_colours: bool) -> String {
    let mut text = format!("pod {} {}\n\n", visible::line(&report.key.to_string()), report.summary);
    let mut line = |words: &str| {
        text += &visible::line(words);
        text.push('\n');
    };
    match &report.errors {
        Err(missing) => line(&format!("its Events are unknown: {missing}")),
        Ok(errors) if errors.is_empty() => line("it has no warnings"),
        Ok(errors) => errors.iter().for_each(|error| line(&in_words(error))),
    }
    match report.selection {
        NetworkSelection::Unreadable => line(
            "its annotation k8s.v1.cni.cncf.io/networks cannot be read: write NAMESPACE/NAME between commas, or a JSON list",
        ),
        NetworkSelection::Read { .. } if report.nads.is_empty() => {
            line("it asks for no networks: it has no annotation k8s.v1.cni.cncf.io/networks");
        }
        NetworkSelection::Read { left_out: 0 } => {}
        NetworkSelection::Read { left_out } => line(&format!("{left_out} more NADs that it asks for were not read")),
    }
    for nad in &report.nads {
        match &nad.text {
            Err(missing) => line(&format!("NAD {} is unknown: {missing}", nad.key)),
            Ok(None) => {
                line(&format!("NAD {} does not exist: create it, or correct the annotation of the pod", nad.key));
            }
            Ok(Some(_)) if nad.verdict.is_none() => line(&format!("NAD {} cannot be judged", nad.key)),
            Ok(Some(_)) if nad.findings().is_empty() => line(&format!("NAD {} has no findings", nad.key)),
            Ok(Some(_)) => {}
        }
    }
    for error in report.unexplained() {
        line(&without_finding(error));
    }
    if report.summary == STUCK {
        line(
            "the plugins also fail when they remove the network: the pod terminates once the NAD is corrected or deleted",
        );
    }
    text.push('\n');
    let format = Human::new(has_colours, false);
    for nad in ordered(report) {
        shown(nad, |judged| text += &format.document(judged));
    }
    text
}

/// `FailedCreatePodSandBox (5 times): invalid range set …`
fn in_words(error: &ExplainedError) -> String {
    let times = if error.count == 1 { "once".to_owned() } else { format!("{} times", error.count) };
    format!("{} ({times}): {}", error.reason, error.message)
}

/// What is known about an error whose cause no NAD of the pod has.
fn without_finding(error: &ExplainedError) -> String {
    let message = &error.message;
    // Rules on pods look at the pod, not at its NADs.
    let of_the_pod = error.rules.iter().find(|rule| rule.id.starts_with("pod/"));
    match (error.rules.as_slice(), error.cause, of_the_pod) {
        (_, Some(cause), _) => format!("`{message}`: {cause}"),
        (_, None, Some(rule)) => format!("`{message}` is about the pod ({}): {}", rule.id, rule.fix),
        ([], ..) => format!("no rule explains `{message}`"),
        ([rule, ..], ..) => format!(
            "`{message}` is what {} reports, but no NAD of the pod has it now: it may have been changed since",
            rule.id
        ),
    }
}

/// Calls `show` with a NAD and its findings, if there is one.
fn shown(nad: &PodNad, show: impl FnMut(&JudgedDocument<'_>)) {
    let (Ok(Some(text)), Some(verdict)) = (&nad.text, &nad.verdict) else { return };
    if let Ok(Some(object)) = Object::read(text) {
        stored::judged(text, &object, verdict, show);
    }
}

/// The NADs, those with a finding that explains an error first.
fn ordered(report: &PodReport) -> Vec<&PodNad> {
    let mut nads: Vec<&PodNad> = report.nads.iter().collect();
    let explains = |nad: &PodNad| nad.findings().iter().any(|finding| report.is_explained_by(finding.rule));
    nads.sort_by_key(|nad| !explains(nad));
    nads
}

fn json(report: &PodReport) -> String {
    let nad = |nad: &PodNad| NadJson {
        namespace: nad.key.namespace().to_owned(),
        name: nad.key.name().to_owned(),
        state: match &nad.text {
            Ok(Some(_)) => "found",
            Ok(None) => "absent",
            Err(_) => "unknown",
        },
        findings: findings(report, nad),
    };
    let error = |error: &ExplainedError| ErrorJson {
        reason: error.reason.clone(),
        message: error.message.clone(),
        count: error.count,
        rules: error.rules.iter().map(|rule| rule.id).collect(),
        cause: error.cause,
    };
    let document = PodJson {
        version: 1,
        namespace: report.key.namespace(),
        name: report.key.name(),
        state: report.state.name(),
        errors: report.errors.as_ref().ok().map(|errors| errors.iter().map(error).collect()),
        nads: report.nads.iter().map(nad).collect(),
    };
    crate::json::write::to_json(&document) + "\n"
}

/// The findings of a NAD with their lines.
fn findings(report: &PodReport, nad: &PodNad) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    shown(nad, |judged| {
        for located in &judged.findings {
            let mut value = serde_json::to_value(FindingJson::of(located.finding)).unwrap_or_default();
            if let Some(members) = value.as_object_mut() {
                members.insert("line".to_owned(), located.line.into());
                members.insert("explains".to_owned(), report.is_explained_by(located.finding.rule).into());
            }
            found.push(value);
        }
    });
    found
}

#[derive(Serialize)]
struct PodJson<'a> {
    version: u8,
    namespace: &'a str,
    name: &'a str,
    state: &'static str,
    errors: Option<Vec<ErrorJson>>,
    nads: Vec<NadJson>,
}

#[derive(Serialize)]
struct ErrorJson {
    reason: String,
    message: String,
    count: u64,
    rules: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

#[derive(Serialize)]
struct NadJson {
    namespace: String,
    name: String,
    state: &'static str,
    findings: Vec<serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::audit::pod::{PodEvent, PodSnapshot};
    use crate::policy::{Operators, Policy};

    fn report(config: &str, message: &str) -> PodReport {
        let nad = serde_json::json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps", "uid": "u" }, "spec": { "config": config } });
        let snapshot = PodSnapshot {
            key: ObjectKey::new("apps", "p"),
            is_ready: false,
            is_deleting: true,
            selection: NetworkSelection::Read { left_out: 3 },
            events: Ok(vec![PodEvent { reason: "FailedKillPod".to_owned(), message: message.to_owned(), count: 3 }]),
            nads: vec![
                (ObjectKey::new("apps", "net"), Ok(Some(nad.to_string()))),
                (ObjectKey::new("apps", "gone"), Ok(None)),
            ],
            operators: Operators::Unknown,
            device_claims: Arc::default(),
        };
        PodReport::of(snapshot, &Policy::default(), jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_report_names_the_error_the_line_and_the_fix() {
        let config = "{\n  \"cniVersion\": \"1.0.0\",\n  \"type\": \"macvlan\",\n  \"mode\": \"l2\"\n}\n";
        let report = report(config, "unknown macvlan mode: \"l2\"\u{1b}[2J");
        insta::assert_snapshot!(human(&report, false));
        insta::assert_snapshot!(json(&report));
    }

    #[test]
    fn an_error_without_a_finding_is_reported() {
        let good = r#"{"cniVersion":"1.0.0","type":"macvlan"}"#;
        let text = human(&report(good, "unknown macvlan mode: \"l2\""), false);
        assert!(text.contains("but no NAD of the pod has it now"), "{text}");
        let text = human(&report(good, "something else"), false);
        assert!(text.contains("no rule explains `something else`"), "{text}");
    }

    /// What no NAD can show is said, too: what is not on the node, and what the pod asks for.
    #[test]
    fn causes_outside_of_the_nad_are_named() {
        let good = r#"{"cniVersion":"1.0.0","type":"macvlan"}"#;
        for (message, want) in [
            ("failed to find plugin \"macvlan\" in path [/opt/cni/bin]", "the plugin is not installed on the node"),
            (
                "error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: no such file or directory",
                "start `dhcp daemon` there",
            ),
            ("Link not found", "the node does not have an interface that the config names"),
            ("LoadConf(): VF pci addr is required", "Multus gave the plugin no device"),
            ("deviceID is required", "Multus gave the plugin no device"),
            (
                "parsePodNetworkAnnotation: failed to mac: address x: invalid MAC address",
                "is about the pod (pod/selection): Write ",
            ),
            (
                "cannot find a network-attachment-definition (x) in namespace (apps)",
                "is about the pod (pod/nad-absent): Correct ",
            ),
        ] {
            let report = report(good, message);
            let text = human(&report, false);
            assert!(text.contains(want) && !text.contains("it may have been changed since"), "{message}: {text}");
            assert_eq!(json(&report).contains("\"cause\""), !want.contains("about the pod"), "{message}");
        }
        // A finding in the NAD explains it better.
        let text =
            human(&report(r#"{"cniVersion":"1.0.0","type":"sriov"}"#, "LoadConf(): VF pci addr is required"), false);
        assert!(text.contains("[nad/resource-name-missing]") && !text.contains("Multus gave"), "{text}");
        let text = human(
            &report(r#"{"cniVersion":"1.0.0","type":"macvaln"}"#, "failed to find plugin \"macvaln\" in path []"),
            false,
        );
        assert!(text.contains("[nad/unknown-plugin]") && !text.contains("not installed on the node:"), "{text}");
    }

    /// Errors of plugins that need hardware, as they were recorded.
    #[test]
    fn errors_of_plugins_that_need_hardware_are_explained() {
        for (config, message, rule) in [
            (
                r#""type":"sriov","vlan":4095"#,
                "LoadConf(): vlan id 4095 invalid: value must be in the range 0-4094",
                "sriov/vlan",
            ),
            (
                r#""type":"sriov","vlan":5,"vlanQoS":8"#,
                "LoadConf(): vlan QoS PCP 8 invalid: value must be in the range 0-7",
                "sriov/vlan-qos",
            ),
            (r#""type":"sriov","link_state":"on""#, "LoadConf(): invalid link_state value: on", "sriov/link-state"),
            (r#""type":"ib-sriov","link_state":"on""#, "invalid link_state value: on", "ib-sriov/link-state"),
            (
                r#""type":"ovs","bridge":true"#,
                "failed to load netconf: json: cannot unmarshal bool into Go struct field NetConf.bridge of type string",
                "nad/field-type",
            ),
            (r#""type":"ovs""#, "failed to get bridge name", "ovs/bridge"),
        ] {
            let text = human(&report(&format!(r#"{{"cniVersion":"1.0.0",{config}}}"#), message), false);
            assert!(text.contains(&format!("[{rule}]")) && !text.contains("no rule explains"), "{rule}: {text}");
        }
    }

    #[test]
    fn a_pod_has_a_name_and_may_have_a_namespace() {
        let pod =
            |namespace: Option<&str>| Ok(PodArg { namespace: namespace.map(str::to_owned), name: "p".to_owned() });
        assert_eq!(("apps/p".parse(), "p".parse()), (pod(Some("apps")), pod(None)));
        for bad in ["/p", "apps/", "a/b/c", ""] {
            assert!(bad.parse::<PodArg>().is_err(), "{bad}");
        }
    }
}
