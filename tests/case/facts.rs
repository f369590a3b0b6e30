//! What a case knows besides its manifests: `admission.yaml`, or the facts beside an example.

use std::time::Duration;

use nadmit::policy::{
    Facts, Lookup, NadFact, NadSummary, NadUsers, NamespaceState, NetworkFact, OperatorHealth, Prefix, Rewrites,
    SelectedNad, StoredState,
};
use nadmit::resources::{NetworkId, NetworkKind, ObjectKey};
use serde::Deserialize;
use serde_json::Value;

/// The facts that only an admission request has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Admission {
    pub(super) user: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) sub_resource: Option<String>,
    pub(super) old: Option<Value>,
    pub(super) facts: CaseFacts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CaseFacts {
    named_owner: Option<Value>,
    networks_here: Vec<CaseNetwork>,
    nad_here: Option<Value>,
    last_nad: Option<String>,
    target_namespace: Option<String>,
    prefix: Option<String>,
    operator_namespace: Option<String>,
    unreachable: Vec<String>,
    pub(super) stored: Option<CaseStored>,
    users: Option<CaseUsers>,
    is_cluster: bool,
    selected: Vec<CaseSelected>,
}

/// The pods that use a NAD when it is deleted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseUsers {
    pods: Vec<String>,
    count: usize,
    #[serde(default)]
    has_others: bool,
}

/// A NAD that a pod selects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CaseSelected {
    namespace: String,
    name: String,
    /// The resource of its devices.
    #[serde(default)]
    resource_name: Option<String>,
    #[serde(default)]
    is_absent: bool,
    #[serde(default)]
    similar: Option<String>,
}

/// The facts that only an audit has; times are in seconds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CaseStored {
    unchanged_for: u64,
    deleting_for: Option<u64>,
    finalizers: Vec<String>,
    nad: Option<Value>,
    condition: Option<String>,
    denied: Option<String>,
    operator: Option<String>,
    waiting: usize,
    rewrites: Option<CaseRewrites>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseRewrites {
    count: usize,
    within: u64,
    managers: Vec<String>,
    fields: Vec<String>,
    #[serde(default)]
    always: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CaseNetwork {
    kind: String,
    namespace: String,
    name: String,
    network_namespace: Option<String>,
    resource_name: String,
}

impl CaseFacts {
    pub(super) fn add_to(&self, facts: &mut Facts) {
        let network = |network: &CaseNetwork| {
            let id = NetworkId {
                kind: NetworkKind::from_kind(&network.kind).unwrap(),
                namespace: network.namespace.clone(),
                name: network.name.clone(),
            };
            let target_namespace = network.network_namespace.clone().unwrap_or_else(|| network.namespace.clone());
            NetworkFact { id, target_namespace, resource_name: network.resource_name.clone() }
        };
        facts.networks_here.extend(self.networks_here.iter().map(network));
        match &self.named_owner {
            Some(Value::String(word)) if word == "absent" => facts.named_owner = Lookup::Absent,
            Some(Value::String(word)) if word == "unknown" => facts.named_owner = Lookup::Unknown,
            Some(other) => facts.named_owner = Lookup::Found(network(&serde_json::from_value(other.clone()).unwrap())),
            None => {}
        }
        match &self.nad_here {
            Some(Value::String(word)) if word == "absent" => facts.nad_here = Lookup::Absent,
            Some(nad) => {
                let owner = nad.get("owner").and_then(Value::as_str).and_then(NetworkId::parse);
                facts.nad_here = Lookup::Found(NadFact { owner, ..NadFact::default() });
            }
            None => {}
        }
        match self.last_nad.as_deref() {
            Some("absent") => facts.last_nad = Lookup::Absent,
            Some("found") => facts.last_nad = Lookup::Found(()),
            Some(other) => panic!("unknown value: {other}"),
            None => {}
        }
        match self.target_namespace.as_deref() {
            Some("absent") => facts.target_namespace = Lookup::Absent,
            Some("active") => facts.target_namespace = Lookup::Found(NamespaceState::Active),
            Some("terminating") => facts.target_namespace = Lookup::Found(NamespaceState::Terminating),
            Some(other) => panic!("unknown state: {other}"),
            None => {}
        }
        if let Some(value) = &self.prefix {
            facts.prefix = Some(Prefix { value: value.clone(), assumed: false });
        }
        facts.is_cluster |= self.is_cluster;
        facts.users_at_deletion = self.users.as_ref().map(|users| NadUsers {
            pods: users.pods.clone(),
            count: users.count,
            has_others: users.has_others,
        });
        for CaseSelected { namespace, name, resource_name, is_absent, similar } in &self.selected {
            let resource_name = resource_name.as_deref().map(Into::into);
            let plugins = Box::new(["sriov".into()]);
            let summary = NadSummary { resource_name, plugins, ..NadSummary::default() };
            let nad = if *is_absent { Lookup::Absent } else { Lookup::Found(summary) };
            facts.selected.insert(ObjectKey::new(namespace, name), SelectedNad { nad, similar: similar.clone() });
        }
        facts.unreachable.extend(self.unreachable.iter().cloned());
        facts.stored = self.stored.as_ref().map(|stored| Box::new(stored.fact()));
        if self.operator_namespace.is_some() {
            facts.operator_namespace.clone_from(&self.operator_namespace);
        }
    }
}

impl CaseStored {
    fn fact(&self) -> StoredState {
        StoredState {
            unchanged_for: Duration::from_secs(self.unchanged_for),
            deleting_for: self.deleting_for.map(Duration::from_secs),
            finalizers: self.finalizers.clone(),
            nad: match &self.nad {
                None => Lookup::Unknown,
                Some(Value::String(word)) if word == "absent" => Lookup::Absent,
                Some(nad) => Lookup::Found(nad.to_string()),
            },
            condition: self.condition.clone(),
            denial: self.denied.clone(),
            operator: match self.operator.as_deref() {
                None => OperatorHealth::Unknown,
                Some("not-running") => OperatorHealth::NotRunning,
                Some("active") => OperatorHealth::Active,
                Some("stalled") => OperatorHealth::Stalled,
                Some(other) => panic!("unknown operator state: {other}"),
            },
            waiting: self.waiting,
            rewrites: self.rewrites.as_ref().map(|rewrites| Rewrites {
                count: rewrites.count,
                within: Duration::from_secs(rewrites.within),
                managers: rewrites.managers.clone(),
                always: rewrites.always.clone(),
                fields: rewrites.fields.clone(),
            }),
        }
    }
}
