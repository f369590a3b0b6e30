//! A rule as everyone else sees it: an id, a default, and why it is right.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// What is done about a finding. The order is that of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Nothing: the rule does not run.
    Off,
    /// It is recorded, and nobody is told.
    Audit,
    /// The writer is told.
    Warn,
    /// The object is repaired on its way; where the repair cannot be made, it is refused.
    Patch,
    /// The object is refused.
    Deny,
}

impl Action {
    /// As policy files and reports spell it.
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

            /// A bare `off` is false to YAML.
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
    /// What is done where no policy says otherwise.
    pub default: Action,
    /// Whether the rule knows a repair for some of its findings.
    pub repairs: bool,
    /// What it finds, in one line.
    pub finds: &'static str,
    /// What happens at run time and why the rule is right.
    pub why: &'static str,
    /// A manifest it finds.
    pub bad: &'static str,
    /// A manifest near that one which it lets pass.
    pub good: &'static str,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

/// Declares a rule. Its two examples are the test cases `bad` and `good` of that rule, so that what the reference shows is
/// what the tests run.
macro_rules! rule {
    ($name:ident = $id:literal, $default:ident $(+ $repairs:ident)?; $finds:literal; $why:literal) => {
        #[doc = $finds]
        pub(crate) static $name: $crate::policy::Rule = $crate::policy::Rule {
            id: $id,
            default: $crate::policy::Action::$default,
            repairs: false $(|| { let $repairs = true; $repairs })?,
            finds: $finds,
            why: $why,
            bad: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/", $id, "/bad/input.yaml")),
            good: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/", $id, "/good/input.yaml")),
        };
    };
}
pub(crate) use rule;
