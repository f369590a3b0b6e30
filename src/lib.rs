//! Admission control for SR-IOV networks on Kubernetes.
//!
//! One judgement, and doors that differ only in how they gather facts and show verdicts:
//!
//! ```text
//!  manifests ── check ──┐
//!  a cluster ── audit ──┼──► facts ──► judge ──► Verdict ──► report, answer
//!  reviews   ── serve ──┘    (I/O)     (pure)                (pure)
//! ```
//!
//! The rooms, from the door inwards. Dependencies point downwards only; those marked pure know no clock, no network, no
//! environment and no `async`, and a lint and a test keep it so.
//!
//! | room | what is in it |
//! |---|---|
//! | [`cli`] | arguments and wiring |
//! | [`server`] | HTTPS: connections, limits, routes, files that change, the end |
//! | [`cluster`] | everything that talks to an API server: what is known of the cluster, who owns a NAD, certificates, registration, the Lease, audits and their reports |
//! | [`audit`] | a cluster as it is stored: what stands around an object, where a network's chain breaks, who rewrites what; the API server's audit log (pure, but for finding the files of a log) |
//! | [`supervise`] | background tasks: none ends unnoticed |
//! | [`tls`] | certificates: from files, made for development, or of a CA of our own that is rotated |
//! | [`telemetry`] | log lines and metrics |
//! | [`manifests`] | files: finding and reading them, what they say about each other |
//! | [`deploy`] | the objects that nadmit consists of in a cluster, its webhooks among them (pure) |
//! | [`output`] | verdicts as diagnostics, JSON, SARIF, JUnit; the rule reference (pure) |
//! | [`review`] | the AdmissionReview on the wire; a verdict as its answer (pure) |
//! | [`policy`] | the policy file, the facts, `judge`, the rules (pure) |
//! | [`resources`] | the NAD and the networks; rendering a network to its NAD (pure) |
//! | [`cni`] | the CNI document as Go programs read it, and editing it byte by byte (pure) |
//! | `visible` | text from outside, shown to people (pure) |
//! | [`yaml`] | YAML as kubectl reads it, with positions (pure) |
//! | [`json`] | JSON as Go reads it, with positions (pure) |

pub mod audit;
pub mod cli;
pub mod cluster;
pub mod cni;
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
