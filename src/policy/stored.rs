//! What only an audit knows about an object: it is stored, and controllers had time to act on it.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::Lookup;

/// The state of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// How long it has not been written, except for its status.
    pub unchanged_for: Duration,
    /// How long its deletion has been pending.
    pub deleting_for: Option<Duration>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// For a network: the existing NAD at its target, as JSON.
    pub nad: Lookup<String>,
    /// For a network: the error in the operator's conditions.
    pub condition: Option<String>,
    /// For a network without a NAD: who denies the NAD, with the message.
    pub denial: Option<String>,
    /// The operator.
    pub operator: OperatorHealth,
    /// For a network without a NAD: how many networks wait for their NADs, including this one.
    pub waiting: usize,
    /// How often the object was written recently, if it was watched.
    pub rewrites: Option<Rewrites>,
}

/// The health of the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorHealth {
    /// Not known.
    #[default]
    Unknown,
    /// It is not running.
    NotRunning,
    /// It runs, and has written something since the object was last written.
    Active,
    /// It runs, but has written nothing since: it stopped reconciling.
    Stalled,
}

/// Recent writes of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrites {
    /// How often it was written.
    pub count: usize,
    /// The observed time, at most about a minute.
    pub within: Duration,
    /// The field managers that wrote it, by name.
    pub managers: Vec<String>,
    /// The fields that flip back to an earlier value, as JSON pointers.
    pub fields: Vec<String>,
    /// The fields that every effective write changed.
    pub always: Vec<String>,
}

/// How the cluster is audited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuditPolicy {
    /// How long controllers have to act, such as the operator to create a NAD, before a finding is reported.
    pub grace_seconds: u32,
    /// Objects that are written more often than this per minute are reported.
    pub writes_per_minute: u32,
    /// The interval between full scans. Changes are audited as they happen.
    pub rescan_seconds: u32,
    /// The kind of report objects.
    pub reports: Reports,
    /// Whether findings on a network are recorded as Events.
    pub events: bool,
}

impl Default for AuditPolicy {
    fn default() -> Self {
        Self {
            grace_seconds: 60,
            writes_per_minute: 10,
            rescan_seconds: 600,
            reports: Reports::default(),
            events: true,
        }
    }
}

impl AuditPolicy {
    /// The grace period for controllers.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds.into())
    }
}

/// A kind of report objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reports {
    /// `Report` of `openreports.io`, if installed.
    #[default]
    Openreports,
    /// `PolicyReport` of `wgpolicyk8s.io`, if installed.
    Wgpolicyk8s,
    /// None.
    Off,
}

impl<'de> Deserialize<'de> for Reports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReportsVisitor;
        impl Visitor<'_> for ReportsVisitor {
            type Value = Reports;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("openreports, wgpolicyk8s or off")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Reports, E> {
                match word {
                    "openreports" => Ok(Reports::Openreports),
                    "wgpolicyk8s" => Ok(Reports::Wgpolicyk8s),
                    "off" => Ok(Reports::Off),
                    _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }
            }

            /// YAML reads a bare `off` as false.
            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Reports, E> {
                if flag { Err(E::invalid_value(de::Unexpected::Bool(flag), &self)) } else { Ok(Reports::Off) }
            }
        }
        deserializer.deserialize_any(ReportsVisitor)
    }
}
