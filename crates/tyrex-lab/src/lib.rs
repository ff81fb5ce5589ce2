//! The paper's experiments, and the report of their results.
//!
//! [`experiment`] runs the experiments of a TOML file and writes results; [`report`] writes a page
//! of results beside the paper's numbers. The library and its Python package do not depend on it.

pub mod experiment;
pub mod report;
