//! Common parts of the tests.

#![allow(dead_code, reason = "every test uses a part of it")]

pub(crate) mod crash;
pub(crate) mod postgres;

use serde_json::json;
use tyrex::data::Value;
use tyrex_ledger::ledger::{Document, NewPromise, Uuid, Values};

/// A promise to a subject.
pub(crate) fn promise(subject: &str, number: u32) -> NewPromise {
    let values = |income: f64| -> Values {
        [
            ("income".to_owned(), Value::Number(income)),
            ("housing".to_owned(), Value::Text(format!("housing of {subject}"))),
            ("age".to_owned(), Value::Missing),
        ]
        .into_iter()
        .collect()
    };
    NewPromise {
        id: Uuid::now_v7(),
        subject: subject.to_owned(),
        document: Document {
            factual: values(f64::from(number) + 0.1),
            advised: values(f64::from(number) + 1000.7),
            score: 0.83,
            stability: Some(0.1 + 0.2),
            cost_l1: Some(1.0 / 3.0),
            cost_l2: None,
            meaning: None,
            promised: None,
            certificate: Some(json!({"verdict": "certified", "score": 0.83})),
        },
        request: json!({"method": {"method": "trex-i"}, "seed": number}),
        model: format!("{:064x}", number % 3),
        holds_until: None,
    }
}

/// Numbers that look random, the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Says something about a test, past the harness, which keeps what passing tests print.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Keeps what a test has counted, for the documentation.
pub(crate) fn keep_counts(name: &str, text: &str) {
    say(&format!("{name}: {text}"));
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.txt"));
    std::fs::write(file, format!("{text}\n")).unwrap();
}
