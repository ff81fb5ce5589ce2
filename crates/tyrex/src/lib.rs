//! Counterfactual explanations that still hold after the model is retrained.
//!
//! The modules stand in the order of the mathematics, and a module may use only
//! modules above it (`tests/it/layering.rs` checks that).
//!
//! Train a network, and ask how stable its answer is around two points:
//!
//! ```
//! use tyrex::data::moons::moons;
//! use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
//! use tyrex::model::{Examples, TrainParams, train};
//! use tyrex::{Points, Seed};
//!
//! # fn main() -> tyrex::Result<()> {
//! let sample = moons(200, 0.1, Seed(0))?;
//! let coordinates = sample.iter().flat_map(|p| [p.x1 as f32, p.x2 as f32]).collect();
//! let points = Points::from_rows(2, coordinates)?;
//! let labels: Vec<u32> = sample.iter().map(|p| u32::from(!p.lower)).collect();
//! let params = TrainParams { hidden: vec![32, 32], ..TrainParams::default() };
//! let network = train(Examples::new(&points, &labels), &params, Seed(0))?.network;
//!
//! let cloud = Neighbourhood::draw(Sampling::MonteCarlo, 2, 1000, 0.1, Seed(1))?;
//! let stability = Gauge::new(RelaxedStability {}, &network, &cloud)?;
//! // On the upper moon, and in the gap between the two.
//! let readings = stability.read(&Points::from_rows(2, vec![0.0, 1.0, 0.5, 0.25])?);
//! assert!(readings[0].value > readings[1].value);
//! # Ok(())
//! # }
//! ```

pub mod error;
pub mod file;
#[cfg(feature = "openapi")]
mod openapi;
pub mod seed;

mod catalogue;

#[macro_use]
pub mod choice;

pub mod points;

pub mod data;

pub mod action;

pub mod model;

pub mod neighbourhood;

pub mod lipschitz;

pub mod measure;

pub mod statistics;

pub mod certificate;

pub mod change;

pub mod counterfactual;

pub mod metric;

pub mod calibrate;

pub mod explain;

pub mod report;

pub use error::{Error, Result};
pub use explain::Explainer;
pub use file::Overwrite;
pub use points::{Point, Points};
pub use seed::Seed;
