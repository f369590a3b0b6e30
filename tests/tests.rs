//! The tests that look at nadmit from outside. One binary, so that it links once.

mod cases;
mod check;
mod properties;
mod purity;
