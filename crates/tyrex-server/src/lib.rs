//! What keeps a promise after it was given: the ledger of issued advice, and the service and
//! page that give advice and look after it.
//!
//! The library `tyrex` does the thinking. This crate remembers (`ledger`), shares the machine
//! between many who ask (`engine`) and speaks HTTP (`routes` and what stands around them).

pub mod access;
mod app;
mod ask;
pub mod config;
mod connection;
pub mod database;
pub mod engine;
mod extract;
mod guard;
mod hex;
pub mod ledger;
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
