//! Log lines and metrics.

mod audits;
pub mod gauges;
mod json;
mod lines;
mod logs;
pub mod metrics;
mod panics;
pub mod policy;
pub mod registration;
pub mod tasks;

pub use logs::{Filter, LogError, LogFormat, Logs};
pub use metrics::Metrics;
pub use panics::report_panics;
