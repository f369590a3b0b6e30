//! What only an audit knows of an object: it is not on its way, it stands in the cluster, and others had time to act on it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Lookup;

/// An object as it stands in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// How long nobody has written it, statuses aside.
    pub unchanged_for: Duration,
    /// How long it has been waiting to go away.
    pub deleting_for: Option<Duration>,
    /// Who must let go of it first.
    pub finalizers: Vec<String>,
    /// For a network: the NAD that stands where it renders to, as JSON.
    pub nad: Lookup<String>,
    /// For a network: what its operator says is wrong with it, in its conditions.
    pub condition: Option<String>,
    /// For a network without a NAD: who refuses the NAD, and in which words.
    pub refused: Option<String>,
    /// The operator.
    pub operator: OperatorLife,
    /// For a network without a NAD: how many networks wait for theirs, this one included.
    pub waiting: usize,
    /// How often the object was written lately, where somebody watched.
    pub rewrites: Option<Rewrites>,
}

/// Whether the operator does its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorLife {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It does not run.
    Gone,
    /// It runs, and has written something since the object was last written.
    Works,
    /// It runs, and has written nothing since.
    Silent,
}

/// An object that is written again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrites {
    /// How often it was written.
    pub count: usize,
    /// In which time: as long as somebody watched, at most the last minute or so.
    pub within: Duration,
    /// The field managers that wrote it, by name; two of them fight where they take turns.
    pub managers: Vec<String>,
    /// The fields that go back to an earlier value, as JSON pointers, by name.
    pub fields: Vec<String>,
    /// The fields that each of the writes changed that changed anything, whether they went back or not.
    pub always: Vec<String>,
}

/// How the cluster is audited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Audit {
    /// How long others have to do their part, such as the operator to make a NAD, before it is reported that they did not.
    pub grace_seconds: u32,
    /// An object that is written more often than this in a minute is reported.
    pub writes_per_minute: u32,
    /// How long after a look at everything comes the next. Changes are looked at as they come.
    pub rescan_seconds: u32,
    /// As which kind of object findings are kept.
    pub reports: Reports,
    /// Whether the author of a network is told by Events what to mend.
    pub events: bool,
}

impl Default for Audit {
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

impl Audit {
    /// How long others have to do their part.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds.into())
    }
}

/// A kind of object for findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reports {
    /// `Report` of `openreports.io`, where the cluster has it.
    #[default]
    Openreports,
    /// `PolicyReport` of `wgpolicyk8s.io`, where the cluster has it.
    Wgpolicyk8s,
    /// None.
    Off,
}
