//! Metrics of the registration: whether nadmit is registered, and why not.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::gauges::LateGauge;
use super::metrics::KindLabels;

/// Why nadmit is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationProblem {
    /// The replica is not ready, or does not know its CA bundle yet.
    NotReady,
    /// nadmit cannot reach itself through its Service.
    Unreachable,
    /// A webhook configuration was deleted.
    Deleted,
    /// A request to the API server failed.
    Api,
    /// Others wrote the configurations at the same time.
    Conflict,
    /// The API server did not answer in time.
    Late,
    /// The task that registers has ended.
    Stopped,
}

impl RegistrationProblem {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::NotReady, Self::Unreachable, Self::Deleted, Self::Api, Self::Conflict, Self::Late, Self::Stopped];

    /// The value of the label.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotReady => "not_ready",
            Self::Unreachable => "unreachable",
            Self::Deleted => "deleted",
            Self::Api => "api",
            Self::Conflict => "conflict",
            Self::Late => "late",
            Self::Stopped => "stopped",
        }
    }

    /// The same for people. The log has the details, which are not for every client of the server.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotReady => "not_ready: the replica has not become ready yet",
            Self::Unreachable => "unreachable: nadmit cannot connect to itself through its Service; see the log",
            Self::Deleted => "deleted: a webhook configuration was deleted; apply nadmit's manifests again",
            Self::Api => "api: a request to the API server failed; see the log",
            Self::Conflict => "conflict: the webhook configurations are written by others at the same time",
            Self::Late => "late: the API server did not answer in time",
            Self::Stopped => "stopped: the registration task has ended",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProblemLabels {
    problem: &'static str,
}

/// Registration metrics. Not exposed without --register.
#[derive(Clone, Debug, Default)]
pub struct Registered {
    is_registered: LateGauge,
    problems: Family<ProblemLabels, Gauge>,
    /// The last state: `None` without --register.
    state: Arc<Mutex<Option<Result<(), RegistrationProblem>>>>,
    configurations: Family<KindLabels, Gauge>,
    exempt_namespaces: LateGauge,
}

impl Registered {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "registered",
            "1 while both webhook configurations are correct, 0 while they are not or cannot be checked",
            self.is_registered.clone(),
        );
        registry.register(
            "registration_problem",
            "1 for the reason why nadmit is not registered, 0 for all others",
            self.problems.clone(),
        );
        registry.register(
            "webhook_configurations",
            "1 while a webhook configuration exists, 0 after it was deleted",
            self.configurations.clone(),
        );
        registry.register(
            "exempt_namespaces",
            "Namespaces that are exempt by the label nadmit.io/exempt=true",
            self.exempt_namespaces.clone(),
        );
    }

    /// What prevents the registration now; `None` if nadmit is registered.
    pub fn set(&self, problem: Option<RegistrationProblem>) {
        self.is_registered.set(problem.is_none().into());
        for known in RegistrationProblem::ALL {
            let labels = ProblemLabels { problem: known.name() };
            self.problems.get_or_create(&labels).set((problem == Some(known)).into());
        }
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem.map_or(Ok(()), Err));
    }

    /// Whether nadmit is registered; `None` if it does not register itself.
    pub fn state(&self) -> Option<Result<(), RegistrationProblem>> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a webhook configuration exists.
    pub fn configuration(&self, kind: &'static str, is_there: bool) {
        self.configurations.get_or_create(&KindLabels { kind }).set(is_there.into());
    }

    /// How many namespaces are exempt by their label.
    pub fn exempt_namespaces(&self, count: usize) {
        self.exempt_namespaces.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn exactly_the_current_problem_is_shown() {
        let metrics = Metrics::default();
        assert!(!metrics.text().contains("nadmit_registration_problem{"), "without --register");
        let shown = || {
            let text = metrics.text();
            let ones = text.lines().filter(|line| line.starts_with("nadmit_registration_problem{"));
            let ones: Vec<_> = ones.filter(|line| line.ends_with("} 1")).map(str::to_owned).collect();
            (text.contains("nadmit_registered 1\n"), ones)
        };
        for problem in RegistrationProblem::ALL {
            metrics.registered.set(Some(problem));
            let want = format!("nadmit_registration_problem{{problem=\"{}\"}} 1", problem.name());
            assert_eq!(shown(), (false, vec![want]));
            assert!(problem.sentence().starts_with(&format!("{}: ", problem.name())));
            assert_eq!(metrics.registered.state(), Some(Err(problem)));
        }
        metrics.registered.set(None);
        assert_eq!((shown(), metrics.registered.state()), ((true, Vec::new()), Some(Ok(()))));
    }
}
