//! Promises in files of answers, recorded by one process.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use tyrex::Overwrite;
use tyrex::data::{Column, Table};
use tyrex_ledger::ledger::{AnswerFiles, Error, Filter, Ledger, NewPromise, RecordedAnswers, Uuid};

use crate::book::ledger;
use crate::common::promise;

const NAMES: [&str; 7] =
    ["customer", "status", "parameters", "model", "holds_until", "promise", "salt"];

/// The answers to these people; every third has no advice, and every fifth row is an error.
fn answers(numbers: impl Iterator<Item = u32>) -> Table {
    let mut columns = NAMES.map(Column::new);
    for number in numbers {
        let promise = promise(&format!("person {number}"), number);
        let mut parameters = promise.request.clone();
        parameters["meaning"] = json!({"label": "credit"});
        parameters["searched"] = json!([]);
        let status = match number {
            number if number % 3 == 0 => "not_found",
            number if number % 5 == 0 => "error",
            _ => "found",
        };
        let found = |text: String| if status == "found" { text } else { String::new() };
        let cells = [
            promise.subject.clone(),
            status.to_owned(),
            parameters.to_string(),
            promise.model.clone(),
            found("2099-01-02T03:04:05Z".to_owned()),
            found(serde_json::to_string(&promise.document).unwrap()),
            found("5a17".repeat(16)),
        ];
        columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
    }
    Table::new("answers", columns.to_vec()).unwrap()
}

fn write(folder: &Path, name: &str, table: &Table) -> PathBuf {
    let path = folder.join(name);
    table.write(&path, Overwrite::Refuse).unwrap();
    path
}

async fn recorded(ledger: &Ledger, files: &[&PathBuf]) -> RecordedAnswers {
    let answers = AnswerFiles::check(files, "customer").unwrap();
    ledger.record_answers(&answers, |_| ControlFlow::Continue(())).await.unwrap()
}

async fn ids(ledger: &Ledger) -> BTreeSet<Uuid> {
    let entries = ledger.list(&Filter::default()).await.unwrap();
    entries.into_iter().map(|entry| entry.id).collect()
}

#[tokio::test]
async fn parts_are_recorded_in_any_order_and_once() {
    let folder = tempfile::tempdir().unwrap();
    // Two parts overlap, as those of a task that was run twice.
    let parts = [
        write(folder.path(), "a.parquet", &answers(0..40)),
        write(folder.path(), "b.csv", &answers(30..70)),
        write(folder.path(), "c.jsonl", &answers(70..100)),
    ];
    let [a, b, c] = &parts;
    let ledger = ledger(&folder).await;
    let first = recorded(&ledger, &[c, a]).await;
    let promised = |from: u32, to: u32| {
        (from..to).filter(|number| number % 3 != 0 && number % 5 != 0).count() as u64
    };
    assert_eq!(first.recorded, promised(0, 40) + promised(70, 100));
    assert_eq!((first.answers, first.already), (70, 0));
    assert_eq!(first.without, 70 - first.recorded);
    let second = recorded(&ledger, &[b, a, b, c]).await;
    assert_eq!(second.recorded, promised(40, 70));
    assert_eq!(second.already, first.recorded + promised(30, 40) + promised(30, 70));
    let verification = ledger.verify(None).await.unwrap();
    assert!(verification.is_sound());
    assert_eq!(verification.promises, promised(0, 100));

    // Another order gives the same promises.
    let other = tempfile::tempdir().unwrap();
    let other = self::ledger(&other).await;
    recorded(&other, &[a, b, c]).await;
    assert_eq!(ids(&ledger).await, ids(&other).await);

    let entries = ledger.open_promises().await.unwrap();
    let own = entries.iter().find(|entry| entry.given().unwrap().subject == "person 31").unwrap();
    let expected = promise("person 31", 31);
    let promised = own.promise().unwrap();
    assert_eq!(promised.request, expected.request);
    assert_eq!(promised.model, expected.model);
    assert_eq!(promised.holds_until.unwrap().to_string(), "2099-01-02T03:04:05Z");
    assert_eq!(own.given().unwrap().document, expected.document);
    assert_eq!(own.id.get_version_num(), 8);
}

#[tokio::test]
async fn every_page_of_open_promises_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let part = write(folder.path(), "many.parquet", &answers(0..20_000));
    let all = recorded(&ledger, &[&part]).await;
    assert!(all.recorded > 8192);
    let mut sequences = Vec::new();
    ledger.each_open_promise(|entry| sequences.push(entry.sequence)).await.unwrap();
    assert_eq!(sequences, (1..=all.recorded).collect::<Vec<_>>());
}

#[test]
fn the_id_depends_on_all_that_was_promised() {
    let whole = answers(1..2);
    let id = |table: &Table| NewPromise::of_answers(table, "customer").unwrap()[0].id;
    let own = id(&whole);
    assert_eq!(own, id(&answers(1..2)));
    let edited = |name: &str, text: &str| {
        let columns = whole.columns().iter().map(|column| {
            let mut other = Column::new(column.name());
            other.push(if column.name() == name { text } else { column.cell(0) });
            other
        });
        Table::new("answers", columns.collect()).unwrap()
    };
    let document = serde_json::to_string(&promise("person 1", 2).document).unwrap();
    for (name, text) in [
        ("customer", "person 2"),
        ("parameters", r#"{"seed": 1}"#),
        ("model", "another"),
        ("holds_until", ""),
        ("holds_until", "2099-01-02T03:04:06Z"),
        ("promise", &document),
        ("salt", &"5a18".repeat(16)),
    ] {
        assert_ne!(own, id(&edited(name, text)), "{name} {text}");
    }
    for (name, text, words) in [
        ("status", "broken", "expected found, or not_found or error without a promise"),
        ("status", "not_found", "expected found, or not_found or error without a promise"),
        ("promise", "", "since there is advice"),
        ("promise", "{", "a JSON document"),
        ("parameters", "[]", "a JSON document"),
        ("holds_until", "tomorrow", "a time, or nothing"),
        ("customer", " ", "it is empty"),
        ("salt", "5a17", "at least 32 random characters"),
    ] {
        let error = NewPromise::of_answers(&edited(name, text), "customer").unwrap_err();
        assert!(error.to_string().contains(words), "{name} {text}: {error}");
        assert!(matches!(error, Error::Library(_)));
    }
    let error = NewPromise::of_answers(&whole, "client").unwrap_err().to_string();
    assert!(error.contains("no column `client`"), "{error}");
    let columns = whole.columns().iter().filter(|column| column.name() != "promise").cloned();
    let without = Table::new("answers", columns.collect()).unwrap();
    let error = NewPromise::of_answers(&without, "customer").unwrap_err().to_string();
    assert!(error.contains("promises=True"), "{error}");
}
