//! The ledger in a SQLite file.

mod book;
#[path = "../common/mod.rs"]
mod common;
mod crash;
mod forgetting;
mod tampering;

/// What tests of crashes start: nothing, unless the environment names a task.
#[test]
fn child() {
    common::crash::act_as_child();
}
