//! The encodings of two data sets against numbers computed with numpy.
//!
//! `golden/make_encoding.py` made the files and says where the rows come from.
//! `ctg_excerpt.csv` is an excerpt of UCI Cardiotocography (doi 10.24432/C51S4N, CC BY 4.0).

use tyrex::data::schema::{FitOn, Label, MissingPolicy, Scaling};
use tyrex::data::{Dataset, Feature, FeatureKind, Schema, Table, Value};

use crate::support::golden;

/// Every encoded number is within 1e-6 of the one computed with numpy.
fn compare(data: &Dataset, name: &str) {
    let expected = Table::read(&golden(name)).unwrap();
    assert_eq!(data.encoder().dim(), expected.columns().len());
    assert_eq!(data.points().len(), expected.rows());
    for (index, column) in expected.columns().iter().enumerate() {
        for (point, cell) in data.points().rows().zip(column.cells()) {
            let expected: f64 = cell.parse().unwrap();
            let got = f64::from(point[index]);
            assert!((got - expected).abs() < 1e-6, "column {index}: {got}, expected {expected}");
        }
    }
    for (row, point) in data.rows().iter().zip(data.points().rows()) {
        assert_eq!(data.encoder().decode(point), *row);
    }
}

#[test]
fn ctg_is_scaled_by_one_minimum_and_maximum() {
    let table = Table::read(&golden("ctg_excerpt.csv")).unwrap();
    let step = |name: &str| match name {
        "AC" | "FM" | "UC" | "DL" | "DS" | "DP" => Some(0.001),
        "MSTV" | "MLTV" => Some(0.1),
        _ => None,
    };
    let names = table.columns().iter().map(tyrex::data::Column::name);
    let features = names
        .filter(|name| *name != "NSP")
        .map(|name| {
            let step = step(name);
            let kind = if step.is_some() { FeatureKind::Numeric } else { FeatureKind::Integer };
            Feature { step, ..Feature::new(name, kind) }
        })
        .collect();
    let label = Label {
        column: "NSP".to_owned(),
        favourable: vec![Value::Number(1.0)],
        unfavourable: Vec::new(),
        missing: MissingPolicy::Reject,
    };
    let mut schema = Schema::new(label, features);
    schema.scaling.method = Scaling::MatrixMinMax;
    schema.scaling.fit = FitOn::All;
    let data = Dataset::load(&schema, table).unwrap();
    assert_eq!(data.encoder().dim(), 21);
    compare(&data, "ctg_encoded.csv");
}

#[test]
fn heloc_has_21_scaled_and_18_one_hot_columns() {
    let schema = Schema::read(&golden("heloc_shape.toml")).unwrap();
    let table = Table::read(&golden("heloc_shape.csv")).unwrap();
    let data = Dataset::load(&schema, table).unwrap();
    assert_eq!(data.encoder().dim(), 39);
    assert_eq!(data.encoder().columns()[21], "MaxDelq2PublicRecLast12M=-9");
    compare(&data, "heloc_encoded.csv");
}
