//! The part of the policy file about statuses.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};

use super::super::Policy;
use super::super::file::matches_any;
use crate::resources::NETWORK_GROUP;

/// The operator's field manager. It restores its fields by force after somebody edited them.
const OPERATOR: &str = "sriov-network-operator";
/// The operator's kinds that have a status of their own.
const SRIOV: [&str; 7] = [
    "sriovnetworks",
    "sriovibnetworks",
    "ovsnetworks",
    "sriovnetworknodestates",
    "sriovnetworknodepolicies",
    "sriovnetworkpoolconfigs",
    "sriovoperatorconfigs",
];

/// Resources whose status is guarded against writers that overwrite each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GuardedStatus {
    /// The guarded resources, as `group/resource`: custom resources with a status subresource. Left out, those of the SR-IOV
    /// network operator; an empty map guards none.
    pub resources: BTreeMap<String, Guarded>,
}

/// How the status of a resource is guarded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Guarded {
    /// Whether every write must prove that it was computed from what it overwrites: findings of `status/takeover` and
    /// `status/unproven` are denied, unless `rules` says otherwise.
    pub strict: bool,
    /// Who may take fields from other managers by server-side apply, even if this is strict.
    pub owners: Vec<Owner>,
}

/// A writer that may take fields from other managers: a user, and the field manager it writes as. A manager name alone is the
/// client's choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(with = "OwnerForm")]
pub struct Owner {
    /// The field manager.
    pub manager: String,
    /// The user name as the API server knows it: `system:serviceaccount:apps:planner`. A trailing `*` matches any suffix. By
    /// default, the SR-IOV network operator's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The forms of an owner in a policy file.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "for the schema")]
enum OwnerForm {
    /// A field manager, of the SR-IOV network operator's user.
    Manager(String),
    /// A field manager of a user.
    Both(UserOwner),
}

/// A field manager of a user.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UserOwner {
    /// The field manager.
    manager: String,
    /// The user name as the API server knows it: `system:serviceaccount:apps:planner`. A trailing `*` matches any suffix. By
    /// default, the SR-IOV network operator's user.
    #[serde(default)]
    user: Option<String>,
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Owner;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an owner: `{user: system:serviceaccount:apps:planner, manager: planner}`")
            }

            fn visit_str<E: de::Error>(self, manager: &str) -> Result<Owner, E> {
                Ok(Owner { manager: manager.to_owned(), user: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Owner, A::Error> {
                let UserOwner { manager, user } = UserOwner::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Owner { manager, user })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Guarded {
    /// Whether a user may take fields from others as that manager.
    pub(super) fn is_owner(&self, user: &str, is_operator: bool, manager: &str) -> bool {
        let is_user = |owner: &Owner| match &owner.user {
            Some(pattern) => matches_any(std::slice::from_ref(pattern), user),
            None => is_operator,
        };
        self.owners.iter().any(|owner| owner.manager == manager && is_user(owner))
    }
}

impl Default for Guarded {
    fn default() -> Self {
        Self { strict: false, owners: vec![Owner { manager: OPERATOR.to_owned(), user: None }] }
    }
}

impl Default for GuardedStatus {
    fn default() -> Self {
        let guarded = |resource: &str| (format!("{NETWORK_GROUP}/{resource}"), Guarded::default());
        Self { resources: SRIOV.into_iter().map(guarded).collect() }
    }
}

impl GuardedStatus {
    /// How a resource is guarded, if it is.
    pub fn of(&self, group: &str, resource: &str) -> Option<&Guarded> {
        self.resources.get(&format!("{group}/{resource}"))
    }

    /// The guarded resources by their groups.
    pub fn by_group(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for (group, resource) in self.resources.keys().filter_map(|key| key.split_once('/')) {
            groups.entry(group).or_default().push(resource);
        }
        groups
    }

    /// The first key that names no resource, and what is wrong with it.
    pub(crate) fn wrong_key(&self) -> Option<(&str, &'static str)> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        let is_group = |text: &str| text.split('.').all(is_name);
        self.resources.keys().find_map(|key| {
            let problem = match key.split_once('/') {
                None => "write group/resource, for example example.com/plans",
                Some((_, resource)) if resource.contains('/') => {
                    "write group/resource, without version and without /status"
                }
                Some((group, resource)) if !is_group(group) || !is_name(resource) => {
                    "write group/resource, the resource in the plural, as in an API path"
                }
                Some(_) => return None,
            };
            Some((key.as_str(), problem))
        })
    }
}

impl Policy {
    /// Valid settings that are probably mistakes.
    pub fn warnings(&self) -> Vec<String> {
        let key = format!("{NETWORK_GROUP}/sriovnetworknodestates");
        let is_strict = self.status.resources.get(&key).is_some_and(|guarded| guarded.strict);
        let warning = format!(
            "`status.resources` makes `{key}` strict: the operator's node daemon writes that status with an unconditional merge patch, \
             which is then denied, and nodes are no longer configured; exempt its user, or remove the entry"
        );
        let mut warnings: Vec<String> = is_strict.then_some(warning).into_iter().collect();
        for (key, guarded) in &self.status.resources {
            let nobody = guarded.owners.iter().filter(|owner| owner.user.is_none() && owner.manager != OPERATOR);
            warnings.extend(nobody.map(|Owner { manager, .. }| {
                format!(
                    "`status.resources` lists the owner `{manager}` of `{key}` without a user: any client can use that name, and only the \
                     SR-IOV network operator's user is accepted; write `{{user: …, manager: {manager}}}`"
                )
            }));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_kinds_are_guarded_by_default() {
        let policy = Policy::parse("{}").unwrap();
        assert!(!policy.status.of(NETWORK_GROUP, "sriovnetworks").unwrap().strict);
        assert!(policy.status.of(NETWORK_GROUP, "pods").is_none() && policy.warnings().is_empty());
        assert_eq!(policy.status.by_group()[NETWORK_GROUP].len(), SRIOV.len());
        assert!(Policy::parse("status: {resources: {}}").unwrap().status.resources.is_empty());
    }

    #[test]
    fn resources_are_chosen_by_group_and_name() {
        let policy = "status: {resources: {example.com/plans: {strict: true, owners: [{manager: planner, user: jo}]}, b.io/c: {}}}";
        let status = Policy::parse(policy).unwrap().status;
        let plans = status.of("example.com", "plans").unwrap();
        assert!(plans.strict && plans.owners == [Owner { manager: "planner".to_owned(), user: Some("jo".to_owned()) }]);
        assert_eq!(status.of("b.io", "c").unwrap().owners, [Owner { manager: OPERATOR.to_owned(), user: None }]);
        assert!(status.of(NETWORK_GROUP, "sriovnetworks").is_none());
        for key in [
            "plans",
            "example.com/v1/plans",
            "example.com/plans/status",
            "/pods",
            "example.com/",
            "a/Plans",
            "a..b/c",
            "*/*",
        ] {
            let error = Policy::parse(&format!("status: {{resources: {{\"{key}\": {{}}}}}}")).unwrap_err().to_string();
            assert!(error.contains("write group/resource"), "{key}: {error}");
        }
    }

    #[test]
    fn an_owner_is_a_user_and_a_manager() {
        let of = |owners: &str| {
            let text = format!("status: {{resources: {{example.com/plans: {{owners: {owners}}}}}}}");
            Policy::parse(&text)
                .map(|policy| (policy.warnings().len(), policy.status.resources["example.com/plans"].clone()))
        };
        for (owners, user, is_operator, want) in [
            ("[{user: jo, manager: planner}]", "jo", false, true),
            ("[{user: jo, manager: planner}]", "joe", false, false),
            ("[{user: jo*, manager: planner}]", "joe", false, true),
            ("[{user: jo, manager: other}]", "jo", false, false),
            ("[{user: jo, manager: planner}]", "operator", true, false),
            // Files with a manager only are accepted, and trust only the operator.
            ("[planner]", "jo", false, false),
            ("[planner]", "operator", true, true),
            ("[{manager: planner}]", "operator", true, true),
            ("[]", "operator", true, false),
        ] {
            let (_, guarded) = of(owners).unwrap();
            assert_eq!(guarded.is_owner(user, is_operator, "planner"), want, "{owners} {user}");
        }
        assert_eq!([of("[planner]"), of("[sriov-network-operator]")].map(|read| read.unwrap().0), [1, 0]);
        for (owners, want) in
            [("[{user: jo}]", "missing field `manager`"), ("[5]", "an owner"), ("[{users: jo}]", "users")]
        {
            let error = of(owners).unwrap_err().to_string();
            assert!(error.contains(want), "{owners}: {error}");
        }
    }

    #[test]
    fn strict_node_states_are_warned_about() {
        for (strict, want) in [("true", 1), ("false", 0)] {
            let text =
                format!("status: {{resources: {{{NETWORK_GROUP}/sriovnetworknodestates: {{strict: {strict}}}}}}}");
            assert_eq!(Policy::parse(&text).unwrap().warnings().len(), want, "{text}");
        }
    }

    #[test]
    fn a_wrong_key_gets_a_suggestion() {
        for (key, want) in [
            ("example.com/plans", None),
            ("plans", Some("for example example.com/plans")),
            ("example.com/v1/plans", Some("without version and without /status")),
            ("example.com/plans/status", Some("without version and without /status")),
            ("example.com/Plan", Some("as in an API path")),
            ("Example.com/plans", Some("as in an API path")),
        ] {
            let status = GuardedStatus { resources: [(key.to_owned(), Guarded::default())].into() };
            let found = status.wrong_key().map(|(_, words)| words);
            assert_eq!(found.is_some(), want.is_some(), "{key}");
            assert!(found.unwrap_or_default().ends_with(want.unwrap_or_default()), "{key} {found:?}");
        }
    }
}
