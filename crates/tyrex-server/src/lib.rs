//! The HTTP service and the web page.
//!
//! The library `tyrex` computes, `tyrex-ledger` stores. This crate schedules the work of many
//! clients (`engine`) and implements HTTP (`routes` and the modules around it).

pub mod access;
mod app;
mod ask;
pub mod config;
mod connection;
pub mod engine;
mod extract;
mod guard;
mod limits;
pub mod log;
mod metrics;
mod openapi;
mod page;
mod problem;
mod results;
mod routes;
mod rows;
pub mod serve;
mod state;
mod tls;

pub use app::app;
pub use state::AppState;
