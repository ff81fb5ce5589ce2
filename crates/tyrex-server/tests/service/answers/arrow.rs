//! Rows and answers as Arrow streams.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, StringViewArray, UInt16Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use axum::body::Body;
use serde_json::{Value, json};

use crate::answers::world::{Answer, World, request, world};

const ARROW: &str = "application/vnd.apache.arrow.stream";

fn stream(columns: Vec<(String, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

async fn post(world: &World, path: &str, body: Vec<u8>, accept: &str) -> Answer {
    let request = request("POST", path).header("content-type", ARROW).header("accept", accept);
    world.send(request.body(Body::from(body)).unwrap()).await
}

/// The rows as columns; numbers and texts in the types that `number` and `text` make.
fn columns(
    rows: &[(usize, Value)],
    number: impl Fn(Vec<f64>) -> ArrayRef,
    text: impl Fn(Vec<String>) -> ArrayRef,
) -> Vec<(String, ArrayRef)> {
    let names = rows[0].1.as_object().unwrap().keys();
    names
        .map(|name| {
            let cells: Vec<&Value> = rows.iter().map(|(_, row)| &row[name]).collect();
            let array = match cells[0] {
                Value::Number(_) => {
                    number(cells.iter().map(|cell| cell.as_f64().unwrap()).collect())
                }
                _ => text(cells.iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()),
            };
            (name.clone(), array)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_the_types_people_send_are_the_same_rows() {
    let (_folder, world) = world().await;
    let rows = world.rejected(6).await;
    let values: Vec<&Value> = rows.iter().map(|(_, row)| row).collect();
    let question = json!({"rows": values, "terms": {"samples": 100}});
    let expected = world.post("/v1/stability", &question).await.ok();
    type Number = fn(Vec<f64>) -> ArrayRef;
    type Text = fn(Vec<String>) -> ArrayRef;
    let numbers: [Number; 4] = [
        |cells| Arc::new(Float64Array::from(cells)),
        |cells| Arc::new(Int64Array::from_iter_values(cells.iter().map(|&cell| cell as i64))),
        |cells| Arc::new(Float32Array::from_iter_values(cells.iter().map(|&cell| cell as f32))),
        |cells| Arc::new(UInt16Array::from_iter_values(cells.iter().map(|&cell| cell as u16))),
    ];
    let texts: [Text; 4] = [
        |cells| Arc::new(StringArray::from(cells)),
        |cells| Arc::new(LargeStringArray::from(cells)),
        |cells| Arc::new(StringViewArray::from_iter_values(cells)),
        |cells| Arc::new(cells.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>()),
    ];
    for (number, text) in numbers.iter().zip(texts) {
        let body = stream(columns(&rows, number, text));
        let answer = post(&world, "/v1/stability?terms.samples=100", body, "*/*").await;
        assert_eq!(answer.ok(), expected);
    }
}

fn read(answer: &Answer) -> RecordBatch {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], ARROW);
    StreamReader::try_new(&answer.body[..], None).unwrap().next().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_as_the_command_line_writes_them() {
    let (_folder, world) = world().await;
    let rows = world.rejected(3).await;
    let mut sent = columns(
        &rows,
        |cells| Arc::new(Float64Array::from(cells)),
        |cells| Arc::new(StringArray::from(cells)),
    );
    let body = stream(sent.clone());
    let stability = read(&post(&world, "/v1/stability", body.clone(), ARROW).await);
    let names: Vec<String> =
        stability.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names[..6], ["row", "score", "mean", "relaxed_stability", "stability", "gamma"]);
    assert_eq!(stability["row"].as_primitive::<Int64Type>().values()[..], [0, 1, 2]);
    let survival = read(&post(&world, "/v1/survival", body.clone(), ARROW).await);
    assert_eq!(survival.num_columns(), 4 + crate::answers::world::MODELS);
    let certified = read(&post(&world, "/v1/certify", body, ARROW).await);
    assert_eq!(certified.num_rows(), 3);
    // Advice, recorded under a column of the stream.
    sent.push(("who".to_owned(), Arc::new(StringArray::from(vec!["a", "b", "c"]))));
    let path = "/v1/explain?samples=200&keep=age&keep=purpose&tau=0.7&record.subject_column=who\
        &record.holds_days=10&budget.steps=100000";
    let advice = read(&post(&world, path, stream(sent), ARROW).await);
    assert_eq!(advice.num_rows(), 3);
    for (row, (_, before)) in rows.iter().enumerate() {
        let age = advice["age"].as_primitive::<Int64Type>().value(row);
        assert_eq!(json!(age), before["age"]);
    }
    assert!(advice["score"].as_primitive::<Float64Type>().values().iter().all(|&s| s >= 0.5));
    let entries = world.get("/v1/ledger").await.ok();
    let subjects: Vec<&Value> =
        entries["entries"].as_array().unwrap().iter().map(|entry| &entry["subject"]).collect();
    assert_eq!(subjects, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_streams_are_refused_by_their_column() {
    let (_folder, world) = world().await;
    let rows = world.rejected(2).await;
    let whole = columns(
        &rows,
        |cells| Arc::new(Float64Array::from(cells)),
        |cells| Arc::new(StringArray::from(cells)),
    );
    let with = |name: &str, array: ArrayRef| {
        let mut columns = whole.clone();
        columns.retain(|(own, _)| own != name);
        columns.push((name.to_owned(), array));
        stream(columns)
    };
    let numbers = |cells: [f64; 2]| Arc::new(Float64Array::from(cells.to_vec())) as ArrayRef;
    let good = stream(whole.clone());
    let mut cases: Vec<(Vec<u8>, u16, &str)> = vec![
        (b"not arrow".to_vec(), 400, ""),
        (Vec::new(), 400, ""),
        (good[..good.len() / 2].to_vec(), 400, ""),
        (with("age", numbers([1.0, f64::INFINITY])), 422, "rows[1].age"),
        (with("age", numbers([f64::NAN, 1.0])), 422, "rows[0].age"),
        (with("age", numbers([20.5, 1.0])), 422, "rows[0].age"),
        (with("agee", numbers([20.0, 1.0])), 422, "rows.agee"),
        (with("age", Arc::new(arrow_array::Date32Array::from(vec![1, 2]))), 422, "rows.age"),
        (
            with("age", Arc::new(arrow_array::BinaryArray::from(vec![&b"x"[..], b"y"]))),
            422,
            "rows.age",
        ),
        (with("age", Arc::new(arrow_array::NullArray::new(2))), 422, "rows[0].age"),
        (stream(whole[1..].to_vec()), 422, ""),
        (with("age", Arc::new(Int8Array::from(vec![Some(30), None]))), 422, "rows[1].age"),
    ];
    // A dictionary that names one long text very often.
    let long = "x".repeat(1 << 20);
    let keys = Int32Array::from(vec![0; 1000]);
    let bomb = DictionaryArray::new(keys, Arc::new(StringArray::from(vec![long])));
    cases.push((stream(vec![("age".to_owned(), Arc::new(bomb))]), 400, ""));
    for (body, status, field) in cases {
        let answer = post(&world, "/v1/stability", body, "*/*").await;
        assert_eq!(answer.status, status, "{}", answer.text());
        if !field.is_empty() {
            assert_eq!(answer.json()["field"], field, "{}", answer.text());
        }
    }
    // Every byte of a stream may be wrong: that is never the service's fault.
    for place in (0..good.len()).step_by(7) {
        let mut broken = good.clone();
        broken[place] ^= 0xff;
        let answer = post(&world, "/v1/survival", broken, "*/*").await;
        assert!(answer.status.as_u16() < 500, "{place}: {}", answer.text());
    }
    let parameter = post(&world, "/v1/stability?terms.sampels=3", good, "*/*").await;
    assert_eq!(parameter.status, 422, "{}", parameter.text());
}
