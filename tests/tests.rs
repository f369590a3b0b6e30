//! The tests of nadmit's public interface. One binary, so that it links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(unreachable_pub, missing_docs, reason = "this is a test binary")]

mod action;
mod address;
mod audit_log;
mod browser;
#[allow(dead_code, reason = "shared with the test of each case")]
mod case;
mod check;
mod commands;
mod doctor;
mod documentation;
#[path = "node/errors_page.rs"]
#[allow(dead_code, reason = "shared with the tests on a node")]
mod errors_page;
mod explain;
mod explain_page;
mod fix;
mod generated;
mod hostile;
mod layers;
mod map;
mod map_page;
mod neighbours;
mod not_run;
mod package;
mod page;
mod pod_errors;
mod properties;
mod purity;
mod release;
mod scripts;
mod serve;
mod supply_chain;
mod workflows;
