//! Admission control for SR-IOV networks on Kubernetes.
//!
//! One `judge` function, and entry points that differ only in how they gather facts and present verdicts:
//!
//! ```text
//!  manifests ── check ──┐
//!  a cluster ── audit ──┼──► facts ──► judge ──► Verdict ──► report, answer
//!  reviews   ── serve ──┘    (I/O)     (pure)                (pure)
//!
//!  either    ── doctor, explain, map ──► facts, verdicts ──► one network or pod, its interfaces, all networks
//!
//!  an audit log ── audit-log ──► writes ──► findings ──► report
//!                                (pure)
//! ```
//!
//! The modules, from the outside in. Dependencies point downwards only; those marked pure use no clock, no files, no network, no
//! environment and no `async`. Lints and tests enforce both.
//!
//! | module | content |
//! |---|---|
//! | [`cli`] | arguments and wiring |
//! | [`server`] | HTTPS: connections, limits, routes, reloading, shutdown |
//! | [`cluster`] | everything that talks to an API server: [`map`](cluster::map), [`leader`](cluster::leader), [`doctor`](cluster::doctor), [`identity`](cluster::identity), [`cache`](cluster::cache), [`client`](cluster::client) |
//! | [`audit`] | a cluster as it is stored: the context of an object, where a network's chain breaks, what a pod's interfaces will be, the map of the networks, write loops (pure) |
//! | [`audit_log`] | the API server's audit log: who wrote blindly, stale, without a change or in a loop (pure) |
//! | [`deploy`] | the manifests of nadmit, including its webhooks (pure) |
//! | [`supervise`] | supervision of background tasks |
//! | [`manifests`] | manifest files: finding, reading, indexing, fixing and rewriting them |
//! | [`tls`] | certificates: from files, for development, or from a self-managed CA that is rotated |
//! | [`telemetry`] | log lines and metrics |
//! | [`denials`] | denied writes of the last hour, and their report |
//! | [`output`] | verdicts as diagnostics, JSON, SARIF, JUnit; the rule reference (pure) |
//! | [`review`] | the AdmissionReview wire format; a verdict as its response (pure) |
//! | [`policy`] | the policy file, the facts, `judge`, the rules (pure) |
//! | [`resources`] | the NAD and the networks; rendering a network to its NAD (pure) |
//! | [`cni`] | the CNI config as Go programs decode it, and editing it without reformatting (pure) |
//! | `visible` | escaping untrusted text for people (pure) |
//! | [`yaml`] | YAML as kubectl reads it, with positions (pure) |
//! | [`json`] | JSON as Go reads it, with positions (pure) |

pub mod audit;
pub mod audit_log;
pub mod cli;
pub mod cluster;
pub mod cni;
pub mod denials;
pub mod deploy;
pub mod json;
pub mod manifests;
pub mod output;
pub mod policy;
pub mod resources;
pub mod review;
pub mod server;
pub mod supervise;
pub mod telemetry;
pub mod tls;
mod visible;
pub mod yaml;
