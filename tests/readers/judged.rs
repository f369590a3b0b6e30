//! What nadmit finds in a network, and which of its denials the readers contradict.

use nadmit::cni::{readers as tables, same_key};
use nadmit::policy::{Action, Facts, Finding, Policy, Subject, judge};
use nadmit::resources::Object;
use serde_json::{Value, json};

use crate::oracle::{Answer, Question, Unfinished};

/// What nadmit found in a network.
#[derive(Clone, Debug)]
pub struct Judged {
    pub denials: Vec<ReaderDenial>,
    /// Whether it found nothing at all.
    pub is_clean: bool,
}

/// A finding for which the NAD is denied, or completed: it would not work as it is.
#[derive(Clone, Debug)]
pub struct ReaderDenial {
    pub rule: &'static str,
    /// The place in the config; `None` if it is about the NAD.
    place: Option<KeyPlace>,
}

/// The place of a finding in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPlace {
    /// The plugin, by its place in the list; `None` for what is beside the plugins.
    plugin: Option<usize>,
    /// The key of that plugin, or of the list.
    key: String,
}

/// The only findings that are fixed where nothing else is known of the cluster.
const COMPLETED: &[&str] = &["nad/resource-name-missing", "nad/resource-name-malformed"];

impl Judged {
    pub fn of(question: &Question) -> Self {
        let Question { config, name, resource, .. } = question;
        let annotations = resource.map_or(json!({}), |name| json!({"k8s.v1.cni.cncf.io/resourceName": name}));
        let nad = json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "namespace": "apps", "annotations": annotations},
            "spec": {"config": config},
        })
        .to_string();
        let object = Object::read(&nad).unwrap().unwrap();
        let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
        let parsed: Value = serde_json::from_str(config).unwrap_or_default();
        let denials = verdict.findings.iter().filter(|finding| is_denial(finding)).map(|finding| ReaderDenial {
            rule: finding.rule.id,
            place: finding.config.as_ref().map(|place| KeyPlace::of(&place.pointer, &parsed)),
        });
        Self { denials: denials.collect(), is_clean: verdict.findings.is_empty() }
    }

    /// The denial that the readers contradict: they have read what it is about, and accepted it.
    pub fn contradicted_by(&self, answer: &Answer, config: &str) -> Option<&ReaderDenial> {
        let config: Value = serde_json::from_str(config).unwrap_or_default();
        self.denials.iter().find(|denial| match answer {
            Answer::Refused(_) => false,
            Answer::Accepted(simulated) => !denial.is_about_simulated(simulated, &config),
            Answer::Unfinished(unfinished) => {
                !denial.is_about_simulated(&unfinished.simulated, &config) && denial.was_read(unfinished, &config)
            }
        })
    }
}

fn is_denial(finding: &Finding) -> bool {
    let is_completed = finding.action == Action::Patch && COMPLETED.contains(&finding.rule.id);
    finding.action == Action::Deny
        || (is_completed && finding.config.as_ref().is_none_or(|_| finding.pointer.is_empty()))
}

impl KeyPlace {
    fn of(pointer: &str, config: &Value) -> Self {
        let mut steps = pointer.split('/').skip(1);
        let mut next = || steps.next().unwrap_or_default();
        let key = next();
        if !key.eq_ignore_ascii_case("plugins") {
            return Self { plugin: (!is_list(config)).then_some(0), key: key.to_owned() };
        }
        let plugin = next().parse().ok();
        Self { plugin, key: if plugin.is_some() { next().to_owned() } else { key.to_owned() } }
    }

    fn has_key(&self, table: &[nadmit::cni::schema::Field]) -> bool {
        table.iter().any(|field| same_key(&self.key, field.key))
    }
}

fn is_list(config: &Value) -> bool {
    config.as_object().is_some_and(|members| members.keys().any(|key| key.eq_ignore_ascii_case("plugins")))
}

/// The kind of the plugin at that place of the list.
fn kind(config: &Value, index: usize) -> &str {
    let plugin = if is_list(config) { &config["plugins"][index] } else { config };
    let spelled = || plugin.as_object()?.iter().find(|(key, _)| same_key(key, "type"))?.1.as_str();
    plugin["type"].as_str().or_else(spelled).unwrap_or_default()
}

impl ReaderDenial {
    /// Whether it is about what a simulated plugin reads beside what all plugins read.
    fn is_about_simulated(&self, simulated: &[usize], config: &Value) -> bool {
        let Some(place) = &self.place else { return false };
        let Some(index) = place.plugin.filter(|index| simulated.contains(index)) else { return false };
        // The simulated plugin parses it.
        if self.rule == "sriov/mac" {
            return false;
        }
        let family = self.rule.split('/').next().unwrap_or_default();
        let is_own_key = tables::plugin(kind(config, index)).is_some_and(|table| place.has_key(table));
        matches!(family, "sriov" | "ib-sriov" | "ovs") || (is_own_key && place.key != "ipam")
    }

    /// Whether the plugins had read what it is about before one of them lacked something.
    fn was_read(&self, unfinished: &Unfinished, config: &Value) -> bool {
        let Some(place) = &self.place else { return false };
        // libcni and the plugins may see other lists where the key is repeated.
        let lists = config
            .as_object()
            .map_or(0, |members| members.keys().filter(|key| key.eq_ignore_ascii_case("plugins")).count());
        let Some(index) = place.plugin.filter(|_| lists <= 1) else {
            // Multus and libcni have read the whole. The version matters to each plugin.
            return lists <= 1 && !place.key.eq_ignore_ascii_case("cniVersion");
        };
        if place.key.eq_ignore_ascii_case("cniVersion") || index > unfinished.index {
            return false;
        }
        if index < unfinished.index {
            return true;
        }
        let may_be_of_ipam = ["ipam", "args", "runtimeConfig"].iter().any(|key| place.key.eq_ignore_ascii_case(key));
        let is_unchecked = unfinished.unchecked.iter().flatten().any(|key| key.eq_ignore_ascii_case(&place.key));
        match self.rule {
            "nad/capabilities" => true,
            _ if !unfinished.ran || may_be_of_ipam => false,
            "nad/field-type" => {
                let own = tables::plugin(kind(config, index)).unwrap_or(tables::NOTHING);
                place.has_key(own) || place.has_key(tables::COMMON)
            }
            rule => (rule.starts_with("plugin/") || rule.starts_with("meta/")) && !is_unchecked,
        }
    }
}
