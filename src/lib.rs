//! x
pub mod cni;
pub mod resources;
pub mod yaml;
