//! What keeps a promise after it was given: the ledger of issued advice, and the service and
//! page that give advice and look after it.
//!
//! The library `tyrex` does the thinking. This crate remembers (`ledger`), shares the machine
//! between many who ask (`engine`) and speaks HTTP (`routes` and what stands around them).

pub mod access;
pub mod config;
pub mod database;
pub mod engine;
mod extract;
pub mod ledger;
mod limits;
mod log;
mod metrics;
mod openapi;
mod page;
mod problem;
mod routes;
mod rows;
pub mod serve;
pub mod state;
mod tls;
