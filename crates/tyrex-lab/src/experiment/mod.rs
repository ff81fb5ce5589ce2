//! Experiments: tables and figures as data in, results as data out.
//!
//! A [`Suite`] is a list of [`Experiment`]s read from TOML. [`run()`] trains the models they need,
//! searches, evaluates, and stores every finished piece in a folder: an interrupted run continues
//! where it stopped, and its results have the same bits as those of an uninterrupted run.

mod calibration;
mod certificates;
mod check;
mod comparison;
mod contender;
mod histograms;
mod lines;
mod moons;
mod progress;
pub mod result;
mod run;
mod setup;
mod spec;
mod store;
mod tables;

pub use contender::{Choice, Contender, Entrant, Threshold};
pub use moons::{bounds as map_bounds, grid as map_grid};
pub use progress::{Progress, Watch};
pub use result::Results;
pub use run::{RESULTS, TIMINGS, read_timings, run};
pub use spec::{
    CalibrationTask, CertificatesTask, ComparisonTask, Experiment, HistogramsTask, MoonsTask,
    Suite, Task, World,
};
