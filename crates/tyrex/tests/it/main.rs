//! The library from outside, without Python: one program, since each one is linked by itself.

mod actionable;
mod actions;
mod advice;
mod audit;
mod bad_input;
mod calibration;
mod catalogue;
mod certificates;
mod change;
mod choices;
mod company;
mod contract;
mod coverage;
#[cfg(feature = "openapi")]
mod documents;
mod drafts;
mod encoding;
mod explain;
mod golden_encoding;
mod interval_certificates;
mod layering;
mod lipschitz;
mod measures;
mod misuse;
mod neighbourhood;
mod network;
mod paths;
mod portfolio;
mod promise;
mod promises;
mod recipe;
mod standardised;
mod support;
mod tables;
mod targeted;
mod training;
