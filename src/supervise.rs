//! Supervision of background tasks: none ends without being noticed.
//!
//! ```text
//!  serving task    certificates, caches, policy, registration  ── ends ──► logged ──► the process shuts down
//!  restarted task  lease, audit, completion, reports           ── ends ──► logged ──► started again after a pause
//! ```
//!
//! A serving task is one without which this replica would sooner or later give wrong answers, or none: another replica takes over
//! and Kubernetes starts a new one. A restarted task is one that reviews do not need, so they are answered all the while.
//!
//! An object must not be able to stop a task in every replica: whoever judges or parses objects in a task does so inside
//! [`contained`] or [`contained_async`], and skips the object that panics.
//!
//! tokio's `JoinSet` reports how a task ended; what that means for readiness, metrics and the process is decided here.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::telemetry::tasks::TaskMetrics;

/// A panic that was caught, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {0}")]
pub struct Panicked(String);

impl Panicked {
    fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_else(|| "without a message".to_owned()))
    }
}

/// Runs code that may panic. State it modifies must not be used after a panic.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked::of(&*payload))
}

/// The same, for a future.
pub async fn contained_async<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| Panicked::of(&*payload))
}

/// How a task ended unexpectedly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum TaskEnd {
    #[error("the task returned")]
    Returned,
    #[error("it {0}")]
    Panicked(#[from] Panicked),
}

/// A serving task ended, so that this process must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("background task `{task}` ended unexpectedly: {cause}")]
pub struct Failure {
    task: &'static str,
    cause: TaskEnd,
}

/// How long restarted tasks wait.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// After the first unexpected end; twice as long after each further one.
    pub first: Duration,
    /// At most.
    pub longest: Duration,
    /// How long a task must run before it counts as up again and its failures are reset.
    pub steady: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        let [first, longest, steady] = [1, 300, 30].map(Duration::from_secs);
        Self { first, longest, steady }
    }
}

/// Starts background tasks and handles their end.
#[derive(Clone, Debug, Default)]
pub struct Supervisor(Arc<SupervisorState>);

#[derive(Debug, Default)]
struct SupervisorState {
    metrics: TaskMetrics,
    pauses: Pauses,
    /// The first serving task that ended.
    failure: watch::Sender<Option<Failure>>,
    /// Tasks may end from now on.
    stopping: CancellationToken,
}

impl Supervisor {
    /// With the metrics that show which tasks run.
    pub fn new(metrics: &TaskMetrics, pauses: Pauses) -> Self {
        Self(Arc::new(SupervisorState { metrics: metrics.clone(), pauses, ..SupervisorState::default() }))
    }

    /// Starts a task whose unexpected end ends the process.
    pub fn serving(&self, task: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.guarded(task, work));
    }

    /// The same as a future, for callers that also wait for the end of the task.
    pub fn guarded(
        &self,
        task: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.0);
        shared.metrics.set_up(task, true);
        async move {
            let cause = shared.end_of(work).await;
            if let Some(cause) = shared.unexpected(task, cause) {
                error!(task, %cause, "background task ended unexpectedly; shutting down");
                shared.failure.send_if_modified(|failure| {
                    let is_first = failure.is_none();
                    failure.get_or_insert(Failure { task, cause });
                    is_first
                });
            }
        }
    }

    /// Starts a task that is started again, after a growing pause, whenever it ends before [`Self::stop`].
    pub fn restarted<W>(&self, task: &'static str, start: impl Fn() -> W + Send + Sync + 'static) -> JoinHandle<()>
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            shared.metrics.set_up(task, true);
            let mut failures = 0;
            loop {
                let mut work = pin!(shared.end_of(async { start().await }));
                let cause = tokio::select! {
                    cause = &mut work => cause,
                    () = sleep(shared.pauses.steady), if failures > 0 => {
                        failures = 0;
                        shared.metrics.set_up(task, true);
                        info!(task, "background task runs again");
                        work.await
                    }
                };
                let Some(cause) = shared.unexpected(task, cause) else { return };
                let pause = shared.pauses.first.saturating_mul(1 << failures.min(16)).min(shared.pauses.longest);
                failures += 1;
                error!(task, %cause, seconds = pause.as_secs_f32(), "background task ended unexpectedly; restarting it");
                tokio::select! {
                    () = sleep(pause) => {}
                    () = shared.stopping.cancelled() => return,
                }
            }
        })
    }

    /// Counts an object that made a task panic.
    pub fn skipped(&self, task: &'static str) {
        self.0.metrics.panicked(task);
    }

    /// Tasks may end from now on.
    pub fn stop(&self) {
        self.0.stopping.cancel();
    }

    /// The serving task that ended, if one did.
    pub fn failure(&self) -> Option<Failure> {
        self.0.failure.borrow().clone()
    }

    /// Waits until a serving task ends unexpectedly.
    pub async fn failed(&self) {
        // The sender lives as long as this.
        let _ = self.0.failure.subscribe().wait_for(Option::is_some).await;
    }
}

impl SupervisorState {
    async fn end_of(&self, work: impl Future<Output = ()>) -> TaskEnd {
        match contained_async(work).await {
            Ok(()) => TaskEnd::Returned,
            Err(panicked) => panicked.into(),
        }
    }

    /// How a task ended, unless it was stopped.
    fn unexpected(&self, task: &'static str, cause: TaskEnd) -> Option<TaskEnd> {
        self.metrics.set_up(task, false);
        if let TaskEnd::Panicked(_) = &cause {
            self.metrics.panicked(task);
        }
        (!self.stopping.is_cancelled()).then_some(cause)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::telemetry::Metrics;

    const PAUSES: Pauses = Pauses {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(4),
        steady: Duration::from_millis(20),
    };

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let patience = Duration::from_secs(30);
        let poll = async {
            while !is_so() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(patience, poll).await.unwrap_or_else(|_| panic!("timed out waiting for {what}"));
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn serving_task_failure_is_recorded() {
        run(async {
            // (the task, the reported failure)
            let table: [(fn(), &str); 3] = [
                (|| panic!("poison {}", 7), "background task `t` ended unexpectedly: it panicked: poison 7"),
                (|| std::panic::panic_any(5), "background task `t` ended unexpectedly: it panicked: without a message"),
                (|| {}, "background task `t` ended unexpectedly: the task returned"),
            ];
            for (work, want) in table {
                let metrics = Metrics::default();
                let supervisor = Supervisor::new(&metrics.tasks, PAUSES);
                supervisor.serving("other", pending());
                assert_eq!(supervisor.failure(), None);
                supervisor.serving("t", async move { work() });
                supervisor.failed().await;
                assert_eq!(supervisor.failure().unwrap().to_string(), want);
                let text = metrics.text();
                assert!(text.contains("nadmit_task_up{task=\"t\"} 0\n"), "{text}");
                assert!(text.contains("nadmit_task_up{task=\"other\"} 1\n"), "{text}");
            }
        });
    }

    #[test]
    fn tasks_may_end_after_stop() {
        run(async {
            let supervisor = Supervisor::default();
            supervisor.stop();
            tokio::spawn(supervisor.guarded("t", async {})).await.unwrap();
            supervisor.restarted("r", || async {}).await.unwrap();
            assert_eq!(supervisor.failure(), None);
        });
    }

    #[test]
    fn a_restarted_task_is_down_until_it_has_run_for_a_while() {
        run(async {
            let metrics = Metrics::default();
            let supervisor = Supervisor::new(&metrics.tasks, PAUSES);
            let starts = Arc::new(AtomicUsize::new(0));
            let (goes_on, may_go_on) = watch::channel(false);
            let counted = Arc::clone(&starts);
            supervisor.restarted("t", move || {
                let (number, mut may_go_on) = (counted.fetch_add(1, Ordering::SeqCst), may_go_on.clone());
                async move {
                    if number < 3 {
                        panic!("start {number}");
                    }
                    let _ = may_go_on.wait_for(|may| *may).await;
                }
            });
            let is = |up: u8| metrics.text().contains(&format!("nadmit_task_up{{task=\"t\"}} {up}\n"));
            until("it is down", || is(0)).await;
            until("it is up again", || is(1)).await;
            assert_eq!(starts.load(Ordering::SeqCst), 4);
            assert!(metrics.text().contains("nadmit_task_panics_total{task=\"t\"} 3\n"), "{}", metrics.text());
            // A task that returns is restarted.
            goes_on.send_replace(true);
            until("it is started again", || starts.load(Ordering::SeqCst) > 4).await;
            assert_eq!(supervisor.failure(), None, "the server keeps running");
        });
    }

    #[test]
    fn contained_returns_the_panic() {
        assert_eq!(contained(|| 5), Ok(5));
        let panicked = contained(|| -> u8 { panic!("at {}", "x") }).unwrap_err();
        assert_eq!(panicked.to_string(), "panicked: at x");
        run(async {
            assert_eq!(contained_async(async { 5 }).await, Ok(5));
            let panicked = contained_async(async {
                tokio::task::yield_now().await;
                panic!("later")
            })
            .await;
            assert_eq!(panicked, Err::<(), _>(Panicked("later".to_owned())));
        });
    }
}
