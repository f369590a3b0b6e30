//! x
pub mod cni;
pub mod output;
pub mod policy;
pub mod resources;
pub mod yaml;
