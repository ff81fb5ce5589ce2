//! What tests of the ledger share.

#![allow(dead_code, reason = "every test uses a part of it")]

use serde_json::json;
use tyrex::data::Value;
use tyrex_server::ledger::{Document, NewPromise, Values};
use uuid::Uuid;

/// A promise to somebody.
pub(crate) fn promise(subject: &str, number: u32) -> NewPromise {
    let values = |income: f64| -> Values {
        [
            ("income".to_owned(), Value::Number(income)),
            ("housing".to_owned(), Value::Text("rent".to_owned())),
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
            certificate: Some(json!({"verdict": "certified", "score": 0.83})),
        },
        request: json!({"method": {"method": "trex-i"}, "seed": number}),
        model: format!("{:064x}", number % 3),
        holds_until: None,
    }
}
