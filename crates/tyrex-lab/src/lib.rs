//! The paper's experiments, and the report of their results.
//!
//! [`experiment`] runs what a TOML file describes and writes results; [`report`] makes a page of
//! results, beside the numbers the paper prints. The library and its Python package do without.

pub mod experiment;
pub mod report;
