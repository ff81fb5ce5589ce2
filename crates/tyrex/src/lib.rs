//! Counterfactual explanations that still hold after the model is retrained.
//!
//! The modules stand in the order of the mathematics, and a module may use only
//! modules above it (`tests/layering.rs` checks that).

pub mod error;
pub mod file;
pub mod seed;

pub mod points;

pub mod data;

pub mod model;

pub mod measure;

pub mod lipschitz;

pub mod explain;

pub use error::{Error, Result};
pub use explain::Explainer;
pub use file::Overwrite;
pub use points::{Point, Points};
pub use seed::Seed;
