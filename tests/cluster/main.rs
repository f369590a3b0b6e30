//! nadmit beside a real API server and the real operator, without mocks; README.md lists what runs.
//!
//! Each test starts its own [`cluster::TestCluster`] in about five seconds: no test can disturb another, and only the test decides what
//! the operator does. `make e2e` runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(unreachable_pub, missing_docs, reason = "this is a test binary")]

#[path = "../browser.rs"]
#[allow(dead_code, reason = "shared with the tests of the program alone")]
mod browser;
#[path = "../case/mod.rs"]
#[allow(dead_code, reason = "shared with the test of each case")]
mod case;
#[path = "../serve/certificates.rs"]
#[allow(dead_code, reason = "shared with the tests of the server alone")]
mod certificates;
#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "shared with the tests of the server alone")]
mod client;
#[path = "../serve/harness.rs"]
#[allow(dead_code, reason = "shared with the tests of the server alone")]
mod harness;
#[path = "../documentation/markdown.rs"]
#[allow(dead_code, reason = "shared with the tests of the documentation")]
mod markdown;
#[path = "../not_run.rs"]
mod not_run;
#[path = "../serve/stalled.rs"]
#[allow(dead_code, reason = "shared with the tests of the server alone")]
mod stalled;

mod api;
mod clock;
mod cluster;
mod control_plane;
mod objects;
mod operator;
mod processes;
mod replicas;
mod service;
mod times;
mod writers;

mod audit;
mod audit_events;
mod audit_log;
mod backstop;
mod backstop_and_judge;
mod chart;
mod chart_values;
mod clients;
mod completion;
mod contention;
mod continuous_audit;
mod convergence;
mod deletion;
mod denials;
mod device_claims;
mod doctor;
mod exempt;
mod explain;
mod facts;
mod failover;
mod flood;
mod forged;
mod gitops;
mod install;
mod kubectl;
mod kustomize;
mod large;
mod leaks;
mod lease;
mod lookalikes;
mod manifests;
mod map;
mod monitoring;
mod namespaces;
mod networks_against_each_other;
#[path = "../node/mod.rs"]
mod node;
mod node_policies;
mod owner;
mod ownership;
mod pods;
mod policy_config_map;
mod race;
mod registered;
mod release;
mod reports;
mod scale;
mod secret;
mod status;
mod storm;
mod subchart;
mod supervised;
mod tenant;
mod token;
mod unrelated_nads;
mod without_dns;
mod workflows;
