//! The service's answers, asked without a socket: real models, a real database.

mod arrow;
mod bad_input;
mod batching;
mod certificates;
mod company;
mod fields;
mod jobs;
mod meaning;
mod models;
mod plausible;
mod playground;
mod postgres;
mod promises;
mod rows;
mod world;
