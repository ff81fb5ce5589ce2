//! The fuzz targets, in one program: TYREX_FUZZ names the one to run.

#![no_main]

mod ask;
mod ensemble;
mod ledger;
mod loans;
mod models;
mod schema;
mod service;
mod tables;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// A target reads bytes. A panic, a hang or too much memory is a finding.
type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 14] = [
    ("ask", ask::read),
    ("catboost", models::read),
    ("csv", tables::csv),
    ("ensemble", ensemble::read),
    ("jsonl", tables::json_lines),
    ("ledger", ledger::read),
    ("lightgbm", models::read),
    ("onnx", models::read),
    ("parquet", tables::parquet),
    ("schema", schema::read),
    ("scorecard", models::read),
    ("service", service::answer),
    ("ubjson", models::read),
    ("xgboost", models::read),
];

fn chosen() -> Target {
    let name = std::env::var("TYREX_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(own, _)| *own == name);
    found.unwrap_or_else(|| panic!("TYREX_FUZZ={name}: there is no such target")).1
}

fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(chosen)(data);
});
