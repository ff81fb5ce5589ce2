//! Promises in files of answers, recorded by one process.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use tyrex::Overwrite;
use tyrex::data::{Column, Table};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{
    AnswerFiles, Closing, Error, Filter, Ledger, NewPromise, RecordedAnswers, Status, Uuid,
};

use crate::book::ledger;
use crate::common::postgres::Server;
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
        ("holds_until", "tomorrow", "a time, or an empty cell"),
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

#[tokio::test]
async fn folders_of_engines_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let night = folder.path().join("answers/night=2026-11-19");
    std::fs::create_dir_all(&night).unwrap();
    std::fs::create_dir_all(folder.path().join("answers/_temporary")).unwrap();
    write(&night, "part-0.parquet", &answers(0..40));
    write(&folder.path().join("answers"), "part-1.parquet", &answers(40..70));
    write(&folder.path().join("answers/_temporary"), "part-2.parquet", &answers(70..80));
    write(&night, ".part-3.parquet", &answers(80..90));
    std::fs::write(folder.path().join("answers/_SUCCESS"), "").unwrap();
    let own = AnswerFiles::check(&[folder.path().join("answers")], "customer").unwrap();
    assert_eq!((own.files().len(), own.rows()), (2, Some(70)));
    let ledger = ledger(&folder).await;
    let all = ledger.record_answers(&own, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!(all.answers, 70);
    let error = AnswerFiles::check(&[&night], "client").unwrap_err().to_string();
    assert!(error.contains("no column `client`"), "{error}");
    let error = AnswerFiles::check(&[folder.path().join("answers/none.parquet")], "customer");
    assert!(matches!(error, Err(Error::Library(tyrex::Error::Io { .. }))), "{error:?}");
    let empty = tempfile::tempdir().unwrap();
    let error = AnswerFiles::check(&[empty.path()], "customer").unwrap_err().to_string();
    assert!(error.contains("found no file"), "{error}");
}

#[tokio::test]
async fn work_that_is_stopped_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let part = write(folder.path(), "many.parquet", &answers(0..20_000));
    let own = AnswerFiles::check(&[&part], "customer").unwrap();
    let ledger = ledger(&folder).await;
    let first = ledger.record_answers(&own, |_| ControlFlow::Break(())).await.unwrap();
    assert!(first.answers < 20_000 && first.recorded > 0);
    assert_eq!(ledger.head().await.unwrap().count, first.recorded);
    let rest = ledger.record_answers(&own, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!((rest.answers, rest.already), (20_000, first.recorded));
    assert!(ledger.verify(None).await.unwrap().is_sound());
}

#[test]
fn a_column_that_is_repeated_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.csv");
    let text = String::from_utf8(answers(1..3).to_csv()).unwrap();
    // Every line gets the subject twice.
    let twice = |line: &str| format!("{},{line}\n", line.split(',').next().unwrap());
    std::fs::write(&path, text.lines().map(twice).collect::<String>()).unwrap();
    let error = AnswerFiles::check(&[&path], "customer").unwrap_err().to_string();
    assert!(error.contains("several columns `customer`"), "{error}");
}

#[tokio::test]
async fn open_promises_are_those_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let mut promises: Vec<NewPromise> =
        (0..600).map(|number| promise(&format!("person {number}"), number)).collect();
    for each in promises.iter_mut().step_by(7) {
        each.holds_until = Some("2020-01-02T03:04:05Z".parse().unwrap());
    }
    ledger.record(&promises).await.unwrap();
    for each in promises.iter().step_by(5) {
        ledger.close(each.id, Closing::Fulfilled).await.unwrap();
    }
    for number in (0..600).step_by(11) {
        ledger.forget(&format!("person {number}")).await.unwrap();
    }
    let open = Filter { status: Some(Status::Open), ..Filter::default() };
    let open = ledger.list(&open).await.unwrap();
    let expected = (0..600).filter(|number| [5, 7, 11].iter().all(|by| number % by != 0));
    assert_eq!(open.len(), expected.count());
    assert_eq!(ledger.open_promises().await.unwrap(), open);
}

#[tokio::test]
async fn a_promise_that_comes_twice_at_once_is_recorded_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let mut promises: Vec<NewPromise> =
        (0..700).map(|number| promise(&format!("person {number}"), number)).collect();
    // Near, and in another statement.
    promises.push(promises[699].clone());
    promises.push(promises[3].clone());
    let recorded = ledger.record(&promises).await.unwrap();
    let already: Vec<bool> = recorded.iter().map(|each| each.already).collect();
    assert_eq!(already, [vec![false; 700], vec![true; 2]].concat());
    assert_eq!((recorded[700].sequence, recorded[701].sequence), (700, 4));
    assert_eq!(recorded[701].hash, recorded[3].hash);
    let mut other = promise("somebody", 1);
    other.id = Uuid::from_u128(7);
    let mut same = promise("somebody else", 1);
    same.id = other.id;
    let error = ledger.record(&[other, same]).await.unwrap_err();
    assert!(matches!(error, Error::Taken(_)), "{error}");
    let verification = ledger.verify(None).await.unwrap();
    assert!(verification.is_sound() && verification.entries == 700);
}

#[test]
fn answers_are_recorded_in_postgres() {
    let Some(server) = Server::of("answers_are_recorded_in_postgres") else { return };
    let work = async {
        let folder = tempfile::tempdir().unwrap();
        let parts = [
            write(folder.path(), "a.parquet", &answers(0..900)),
            write(folder.path(), "b.parquet", &answers(800..1500)),
        ];
        let url = server.database("tyrex_answers").await;
        let ledger = Ledger::new(Database::open(&url).await.unwrap());
        let first = recorded(&ledger, &[&parts[0], &parts[1]]).await;
        let again = recorded(&ledger, &[&parts[1], &parts[0]]).await;
        assert_eq!((again.recorded, again.already), (0, first.recorded + first.already));
        let verification = ledger.verify(None).await.unwrap();
        assert!(verification.is_sound() && verification.promises == first.recorded);
        // The same promises as in a file.
        let file = self::ledger(&folder).await;
        recorded(&file, &[&parts[0], &parts[1]]).await;
        assert_eq!(ids(&ledger).await, ids(&file).await);
        assert_eq!(ledger.open_promises().await.unwrap().len() as u64, first.recorded);
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}
