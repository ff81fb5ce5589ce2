//! The service and the page that give advice and look after it.
//!
//! The library `tyrex` computes, `tyrex-ledger` remembers. This crate shares the machine between
//! many clients (`engine`) and speaks HTTP (`routes` and what stands around them).

pub mod access;
mod app;
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
