//! The ledger of promises, and its database.
//!
//! [`database`] is a SQLite file or PostgreSQL; [`ledger`] is the append-only chain of promises in
//! it. The service keeps its own tables in the same database.

pub mod database;
pub mod ledger;
