//! The ledger in a SQLite file, and in PostgreSQL.

mod answers;
mod book;
mod common;
mod crash;
mod database;
mod forgetting;
mod postgres;
mod tampering;

/// The child process of crash tests: it does nothing unless the environment names a task.
#[test]
fn child() {
    common::crash::act_as_child();
}
