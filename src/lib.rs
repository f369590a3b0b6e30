//! x
pub mod cli;
pub mod cni;
pub mod manifests;
pub mod output;
pub mod policy;
pub mod resources;
pub mod yaml;
