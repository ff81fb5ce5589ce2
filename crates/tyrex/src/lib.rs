//! Counterfactual explanations that stay valid after the model is retrained.
//!
//! A model rejects an applicant. A counterfactual explanation is the smallest change of the row
//! that the model accepts. After retraining such a row is often rejected again. The T-Rex methods
//! of this crate return rows around which the score is stable, and a certificate states with
//! which probability the advice survives a change of the model, and under which assumptions.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tyrex::data::catalogue::{Catalogue, Direction, Variant};
//! use tyrex::explain::{Ask, Explainer, Part};
//! use tyrex::{Seed, model::TrainParams};
//!
//! # fn main() -> tyrex::Result<()> {
//! let german = Catalogue::new(None).load("german", Variant::Product, Direction::Favourable)?;
//! let params = TrainParams { epochs: 20, ..TrainParams::default() };
//! let explainer = Explainer::train(german, &params, Seed(0), |_| ControlFlow::Continue(()))?;
//! let rejected = explainer.applicants().rejected(Part::Test);
//! let ask = Ask { models: Some(5), ..Ask::default() };
//! let answer = explainer.answer(&rejected[..1], &ask, None, |_| ControlFlow::Continue(()))?;
//! println!("{}", answer.advice[0].sentence());
//! println!("{}", answer.certificates[0].as_ref().map_or("no advice".into(), |c| c.sentence()));
//! # assert_eq!(answer.advice.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//!
//! - Mathematics: [`points`], [`data`], [`action`], [`model`], [`neighbourhood`], [`lipschitz`],
//!   [`measure`] and [`statistics`] hold rows and points, the rules for changes, models, and
//!   measures of stability with their gradients.
//! - Searches and certificates: [`certificate`], [`change`], [`counterfactual`], [`metric`],
//!   [`plausibility`] and [`calibrate`] hold the methods, retrained models, bounds, how usual a point
//!   is among accepted ones, and the choice of the threshold.
//! - Explain: [`explain`] and [`report`] hold [`Explainer`] and [`Ask`](explain::Ask), which the
//!   command line, the HTTP service and the Python package call, and the reports they write.
//!
//! A module uses only modules that are declared above it in `lib.rs`; `tests/it/layering.rs`
//! checks that.
//!
//! # Methods
//!
//! `x` is the rejected point, `x'` the answer, `m` the score, `R^` the relaxed stability: the mean
//! over neighbours `x_i` of `m(x_i) - |m(x) - m(x_i)|`. `nn` and `trex-nn` take
//! every model, `roar` and `elastic-net` need gradients, and the others take models with gradients
//! and trees.
//!
//! | name | answer |
//! |---|---|
//! | `trex-e` | the closest point that retrained models accept in their lower tail; the default where models can be retrained |
//! | `trex-o` | the closest point with `R^(x') >= tau`; the default elsewhere |
//! | `trex-i` | a counterfactual, moved until `R^(x') >= tau` (Algorithm 1 of the paper) |
//! | `trex-nn` | the nearest reference row with `R^ >= tau` (Algorithm 2); the default for black boxes |
//! | `min-cost` | the closest point with `m(x') >= 0.5` |
//! | `margin` | the closest point with `m(x') >= s` |
//! | `nn` | the nearest reference row with `m >= 0.5` |
//! | `sns` | a counterfactual, moved up the path integral of `m` (Black et al.) |
//! | `roar` | the closest point that every model in a box of parameters accepts (Upadhyay et al.) |
//! | `elastic-net` | the base counterfactual of the authors' released code |

pub mod error;
pub mod fields;
pub mod file;
#[cfg(feature = "openapi")]
mod openapi;
pub mod seed;

mod catalogue;

#[macro_use]
pub mod choice;

pub mod points;

mod auc;

pub mod data;

pub mod action;

pub mod model;

pub mod neighbourhood;

pub mod lipschitz;

pub mod measure;

pub mod statistics;

pub mod plausibility;

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

/// The Rust example of README.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
