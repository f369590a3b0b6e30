//! Ratcheting: an update is not denied for what the stored object would have been denied for.
//!
//! A finding is excused only by a denial of the stored object with the same rule, the same semantic place, the same complete
//! value and the same headline and note, and each denial excuses one finding. Warnings of the stored object excuse nothing: a
//! mistake must not be moved from where it warns to where it denies.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use super::{Finding, Rule, rules};
use crate::cni::CniObject;
use crate::json::{Document, Kind, PathStep, Span, Value};
use crate::resources::{DeviceClaim, Nad, Network, NetworkNodePolicy, Workload};

/// The rules that no earlier finding excuses: every other injected text, owner or namespace is a new attack. An unchanged spec still
/// excuses an injection (`judge`).
const NEVER_EXCUSED: [&Rule; 3] =
    [&rules::rendering::RENDER_UNSAFE, &rules::nad_device::FORGED_OWNER, &rules::last_namespace::FORGED];

/// How findings of the stored object are used.
#[derive(Debug, Default)]
pub(crate) enum Ratchet {
    /// Not at all: there is no stored object, or it is not judged yet.
    #[default]
    Off,
    /// The stored object is judged, and what may deny is recorded.
    Recording(Recorded),
    /// The new object is judged, and what was recorded excuses.
    Excusing(Excused),
}

/// The findings of the stored object that may deny, all of them.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Uses random keys, so that nobody can prepare colliding values.
    hashing: RandomState,
    findings: Vec<(&'static Rule, bool, u64)>,
}

/// The denials of the stored object, with their counts.
#[derive(Debug)]
pub(crate) struct Excused {
    hashing: RandomState,
    /// The rules with excused findings; others need no comparison.
    rules: HashSet<&'static str>,
    left: HashMap<u64, usize>,
}

impl Recorded {
    /// Those that deny, given what is done about a rule's findings with repairs and without.
    pub(crate) fn denied(self, denies: impl Fn(&'static Rule, bool) -> bool) -> Excused {
        let (mut left, mut rules) = (HashMap::new(), HashSet::new());
        for (rule, has_repairs, identity) in self.findings {
            if denies(rule, has_repairs) {
                rules.insert(rule.id);
                *left.entry(identity).or_default() += 1;
            }
        }
        Excused { hashing: self.hashing, rules, left }
    }
}

impl Ratchet {
    /// Records a finding that may deny, or checks whether it is excused.
    pub(super) fn excuses(&mut self, finding: &Finding, about: &FindingLocation<'_>) -> bool {
        if NEVER_EXCUSED.contains(&finding.rule) {
            return false;
        }
        match self {
            Self::Off => false,
            Self::Recording(recorded) => {
                let identity = about.identity(finding, &recorded.hashing);
                recorded.findings.push((finding.rule, !finding.repairs.is_empty(), identity));
                false
            }
            Self::Excusing(excused) if !excused.rules.contains(finding.rule.id) => false,
            Self::Excusing(excused) => {
                let identity = about.identity(finding, &excused.hashing);
                match excused.left.get_mut(&identity) {
                    Some(left) if *left > 0 => {
                        *left -= 1;
                        true
                    }
                    _ => false,
                }
            }
        }
    }
}

/// The object that is judged, in which the values of findings are found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JudgedObject<'d> {
    Nad(&'d Nad<'d>),
    Network(&'d Network<'d>),
    Claim(&'d DeviceClaim<'d>),
    NodePolicy(&'d NetworkNodePolicy<'d>),
    Workload(&'d Workload<'d>),
    /// A status write, in which nothing is excused by what was there before.
    Status,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct FindingLocation<'f> {
    pub(super) judged: JudgedObject<'f>,
    pub(super) document: Option<&'f Document<'f>>,
    /// The value or key in the document, for a finding about the config.
    pub(super) span: Option<Span>,
}

impl FindingLocation<'_> {
    fn identity(&self, finding: &Finding, hashing: &RandomState) -> u64 {
        let mut hasher = hashing.build_hasher();
        // Headline and note name what the value is compared with; they are not truncated yet.
        (finding.rule.id, &finding.message, &finding.note).hash(&mut hasher);
        match (self.document, self.span) {
            (Some(document), Some(span)) => in_config(document, span, &mut hasher),
            _ => {
                let value = match self.judged {
                    JudgedObject::Nad(nad) => nad.value_at(&finding.pointer),
                    JudgedObject::Network(network) => network.value_at(&finding.pointer),
                    JudgedObject::Claim(claim) => claim.value_at(&finding.pointer),
                    JudgedObject::NodePolicy(policy) => policy.value_at(&finding.pointer),
                    JudgedObject::Workload(workload) => workload.value_at(&finding.pointer),
                    JudgedObject::Status => return hasher.finish(),
                };
                // A missing annotation is reported at the metadata if there are no annotations.
                let place = finding.pointer.strip_suffix("/annotations").unwrap_or(&finding.pointer);
                place.split('/').map(without_number).for_each(|token| token.hash(&mut hasher));
                value.hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// Removing an element from a list shifts the following ones, so indexes are not part of the identity.
fn without_number(token: &str) -> &str {
    if token.bytes().all(|byte| byte.is_ascii_digit()) { "" } else { token }
}

/// The keys of the network itself, at the top of a list or beside those of a single plugin.
const OF_NETWORK: [&str; 4] = ["cniVersion", "cniVersions", "name", "disableCheck"];

/// Hashes the semantic place and the whole value: the plugin type, the keys on the path, and the value. The index of the plugin
/// in its list does not count, nor whether there is a list.
fn in_config(document: &Document<'_>, span: Span, hasher: &mut impl Hasher) {
    let path = document.path_to(span);
    let (plugin, path) = match path.as_slice() {
        [PathStep::Member(list), PathStep::Element(_, plugin), rest @ ..] if list.key == "plugins" => {
            (Some(*plugin), rest)
        }
        [PathStep::Member(own) | PathStep::Key(own), ..] if OF_NETWORK.contains(&own.key.as_ref()) => {
            (None, path.as_slice())
        }
        whole => (Some(&document.root), whole),
    };
    let kind = plugin.and_then(CniObject::of).and_then(|plugin| plugin.str_of("type"));
    kind.unwrap_or_default().hash(hasher);
    let mut value = plugin.unwrap_or(&document.root);
    for step in path {
        match step {
            PathStep::Element(_, element) => {
                "".hash(hasher);
                value = element;
            }
            PathStep::Member(member) => {
                member.key.hash(hasher);
                value = &member.value;
            }
            // For a wrong key, its value does not count.
            PathStep::Key(member) => return ("key", &member.key).hash(hasher),
        }
    }
    if value.span == span {
        hash_value(value, hasher);
    } else {
        document.text.get(span.range()).hash(hasher);
    }
}

/// Hashes the value without whitespace: reformatting a config changes nothing.
fn hash_value(value: &Value<'_>, hasher: &mut impl Hasher) {
    std::mem::discriminant(&value.kind).hash(hasher);
    match &value.kind {
        Kind::Null => {}
        Kind::Bool(flag) => flag.hash(hasher),
        Kind::Number(text) => text.hash(hasher),
        Kind::String(text) => text.hash(hasher),
        Kind::Array(elements) => {
            elements.len().hash(hasher);
            elements.iter().for_each(|element| hash_value(element, hasher));
        }
        Kind::Object(members) => {
            members.len().hash(hasher);
            for member in members {
                member.key.hash(hasher);
                hash_value(&member.value, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Action, Facts, Policy, Subject, Verdict, judge};
    use crate::resources::Object;

    fn nad(routes: &str) -> String {
        sriov(&format!(r#""ipam":{{"type":"static","addresses":[{{"address":"10.0.0.1/24"}}],"routes":[{routes}]}}"#))
    }

    fn sriov(members: &str) -> String {
        let config = format!(r#"{{"cniVersion":"1.0.0","type":"sriov",{members}}}"#);
        serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "net", "namespace": "apps", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "a.io/b"}},
            "spec": {"config": config},
        })
        .to_string()
    }

    fn updated(old: &str, new: &str) -> Verdict {
        updated_at(true, old, new)
    }

    fn updated_at(is_final: bool, old: &str, new: &str) -> Verdict {
        let [old, new] = [old, new].map(|json| Object::read(json).unwrap().unwrap());
        let subject = Subject { object: &new, old: Some(&old), writer: Some("jane"), is_final };
        judge(&subject, &Facts::default(), &Policy::default())
    }

    /// Two values count as different even if their headlines look the same.
    #[test]
    fn identity_is_the_whole_value_and_what_it_is_compared_with() {
        let long = |end: &str| format!(r#""link_state":"{}{end}{}""#, "x".repeat(300), "y".repeat(300));
        let rates = |min: u32, max: u32| format!(r#""min_tx_rate":{min},"max_tx_rate":{max}"#);
        let ranges = |end: u8| {
            format!(
                r#""ipam":{{"type":"host-local","ranges":[[{{"subnet":"10.0.0.0/24","rangeEnd":"10.0.0.{end}"}}],[{{"subnet":"10.0.0.0/24"}}]]}}"#
            )
        };
        let unrelated = r#""vlan":5,"#;
        for (old, new, is_denied) in [
            (long("a"), long("a"), false),
            (long("a"), format!("{unrelated}{}", long("a")), false),
            (long("a"), long("b"), true),
            (rates(200, 100), rates(200, 100), false),
            (rates(200, 100), rates(200, 50), true),
            (rates(200, 100), rates(300, 100), true),
            (ranges(50), ranges(50), false),
            (ranges(50), ranges(60), true),
        ] {
            let verdict = updated(&sriov(&old), &sriov(&new));
            assert_eq!(verdict.denies(), is_denied, "{old} -> {new}: {:?}", verdict.findings);
        }
    }

    /// The one new denial is found among any number of findings, and the verdict stays short.
    #[test]
    fn finds_one_new_denial_among_many_excused() {
        let bad: String = (0..20_000).map(|number| format!(r#"{{"dst":"bad{number}"}},"#)).collect();
        let nulls = "null,".repeat(20_000);
        let good = r#"{"dst":"0.0.0.0/0"}"#;
        let old = nad(&format!("{nulls}{bad}{good}"));
        for (new, want) in [
            (nad(&format!("{nulls}{bad}null")), None),
            (nad(&format!("{bad}{nulls}{good},{good}")), None),
            (nad(&format!(r#"{nulls}{bad}{{"dst":"new"}}"#)), Some("/ipam/routes/40000/dst")),
            (nad(&format!(r#"{nulls}{bad}{{"dst":"bad7"}}"#)), Some("/ipam/routes/40000/dst")),
        ] {
            let verdict = updated(&old, &new);
            let denied = verdict.findings.iter().filter(|finding| finding.action == Action::Deny);
            let denied: Vec<_> = denied.map(|finding| finding.config.as_ref().unwrap().pointer.as_str()).collect();
            assert_eq!(denied, Vec::from_iter(want));
            assert!(verdict.findings.len() <= 17, "{}", verdict.findings.len());
        }
    }

    /// A value keeps its identity when it is reformatted, and has another one when any part of it changes.
    #[test]
    fn every_part_of_a_value_counts_and_whitespace_does_not() {
        let of = |value: &str| sriov(&format!(r#""vlan":{value}"#));
        let stored = of(r#"{"a":[1,true,null,"x"],"b":{}}"#);
        assert!(!updated(&stored, &of(r#"{ "a": [1, true,  null, "x"], "b": { } }"#)).denies());
        for changed in [
            r#"{"a":[2,true,null,"x"],"b":{}}"#,
            r#"{"a":[1,false,null,"x"],"b":{}}"#,
            r#"{"a":[1,true,0,"x"],"b":{}}"#,
            r#"{"a":[1,true,null,"y"],"b":{}}"#,
            r#"{"a":[1,true,null,"x",1],"b":{}}"#,
            r#"{"a":[1,true,null,"x"],"c":{}}"#,
            r#"{"a":[1,true,null,"x"],"b":[]}"#,
            r#"{"a":[1,true,null,"x"]}"#,
        ] {
            assert!(updated(&stored, &of(changed)).denies(), "{changed}");
        }
    }

    /// A value moves within its list, and with its plugin, without becoming a new one; between two keys it does not.
    #[test]
    fn a_denial_is_recognised_at_another_index_but_not_under_another_key() {
        let bad = r#"{"dst":"bad"}"#;
        let good = r#"{"dst":"0.0.0.0/0"}"#;
        assert!(!updated(&nad(bad), &nad(&format!("{good},{bad}"))).denies());
        assert!(updated(&sriov(r#""min_tx_rate":-1"#), &sriov(r#""max_tx_rate":-1"#)).denies());
        assert!(!updated(&sriov(r#""min_tx_rate":-1"#), &sriov(r#""trust":"on","min_tx_rate":-1"#)).denies());
        // The name is of the network, whichever plugin it has.
        let named = |kind: &str| sriov(r#""name":"-a""#).replace("sriov", kind);
        assert!(!updated(&named("macvlan"), &named("ipvlan")).denies());
        let ovs = |key: &str| sriov(&format!(r#""{key}":[{{"id":"x"}}]"#)).replace("sriov", "ovs");
        assert!(!updated(&ovs("trunk"), &ovs("trunk").replace("a.io/b", "a.io/c")).denies());
        assert!(updated(&ovs("trunk"), &ovs("Trunk")).denies());
    }

    /// A rule that can repair denies what it cannot, before the repairs as well as after them.
    #[test]
    fn a_denial_without_a_repair_is_excused_at_every_stage() {
        let nameless =
            |vlan: u8| sriov(&format!(r#""vlan":{vlan}"#)).replace("k8s.v1.cni.cncf.io/resourceName", "other");
        for is_final in [false, true] {
            let verdict = updated_at(is_final, &nameless(5), &nameless(6));
            let actions: Vec<_> = verdict.findings.iter().map(|found| (found.rule.id, found.action)).collect();
            assert_eq!(actions, [("nad/resource-name-missing", Action::Warn)], "{is_final}");
        }
    }

    #[test]
    fn only_an_index_is_left_out_of_a_place() {
        for (token, want) in [("0", ""), ("42", ""), ("a1", "a1"), ("1a", "1a"), ("spec", "spec")] {
            assert_eq!(super::without_number(token), want);
        }
    }
}
