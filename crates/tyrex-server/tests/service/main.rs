//! The service over real sockets: what it answers to good clients, and to bad ones.

mod access;
mod answers;
mod browsers;
#[path = "../../../tyrex-ledger/tests/ledger/common/mod.rs"]
mod common;
mod defaults;
mod ending;
mod limits;
mod models;
mod paths;
mod promise;
mod protocol;
mod roles;
mod support;
mod tls;
