//! A rule: its id, its default action, and its documentation.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// The action for a finding, ordered by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Nothing: the rule does not run.
    Off,
    /// Only recorded.
    Audit,
    /// The writer gets a warning.
    Warn,
    /// The object is repaired; if that is not possible, it is denied.
    Patch,
    /// The object is denied.
    Deny,
}

impl Action {
    /// The name in policy files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Patch => "patch",
            Self::Deny => "deny",
        }
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = Action;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("deny, patch, warn, audit or off")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Action, E> {
                let all = [Action::Off, Action::Audit, Action::Warn, Action::Patch, Action::Deny];
                let found = all.into_iter().find(|action| action.name() == word);
                found.ok_or_else(|| E::invalid_value(de::Unexpected::Str(word), &self))
            }

            /// YAML reads a bare `off` as false.
            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Action, E> {
                if flag { Err(E::invalid_value(de::Unexpected::Bool(flag), &self)) } else { Ok(Action::Off) }
            }
        }
        deserializer.deserialize_any(Word)
    }
}

/// One rule. All of them are listed in [`super::rules::RULES`].
#[derive(Debug)]
pub struct Rule {
    /// The stable id, `family/what-is-wrong`.
    pub id: &'static str,
    /// The default action.
    pub default: Action,
    /// Whether its findings are at most warnings for objects of a cluster ([`Facts::is_cluster`](super::Facts)): `nadmit check` denies,
    /// before anything is applied.
    pub warns_in_cluster: bool,
    /// Whether the rule can repair some of its findings.
    pub repairs: bool,
    /// What is wrong, as one sentence that fits on a line.
    pub wrong: &'static str,
    /// What happens at run time, and why.
    pub why: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// What depends on the releases in use, and how; empty if nothing does.
    pub releases: &'static str,
    /// A manifest it reports.
    pub bad: &'static str,
    /// A similar manifest that it accepts.
    pub good: &'static str,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

/// Declares a rule. Its two examples, `examples/<rule>/bad.yaml` and `good.yaml`, are also the cases `bad` and `good` of that rule,
/// so that what the reference shows is what the tests run. `Deny in check` is at most a warning in a cluster.
macro_rules! rule {
    (
        $name:ident = $id:literal, $default:ident $(+ $repairs:ident)? $(in $check:ident)?;
        wrong: $wrong:literal;
        why: $why:literal;
        fix: $fix:literal;
        $(releases: $releases:literal;)?
    ) => {
        #[doc = $wrong]
        pub(crate) static $name: $crate::policy::Rule = $crate::policy::Rule {
            id: $id,
            default: $crate::policy::Action::$default,
            warns_in_cluster: false $(|| { let $check = true; $check })?,
            repairs: false $(|| { let $repairs = true; $repairs })?,
            wrong: $wrong,
            why: $why,
            fix: $fix,
            releases: concat!($($releases)?),
            bad: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy/rules/examples/", $id, "/bad.yaml")),
            good: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy/rules/examples/", $id, "/good.yaml")),
        };
    };
}
pub(crate) use rule;
