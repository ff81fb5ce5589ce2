//! Model files in and out, against the real packages: models that they export or save are read
//! and scored, and a model that tyrex writes is evaluated by onnxruntime.

mod candidates;
mod files;
mod retrained;

use std::path::{Path, PathBuf};
use std::process::Command;

use rand::RngExt as _;
use serde::Deserialize;
use tyrex::data::schema::{Label, MissingPolicy, ModelInput};
use tyrex::data::{Column, Feature, FeatureKind, Row, Schema, Table, Value};
use tyrex::explain::{Explainer, Reference, UnlabelledRows};
use tyrex::model::files::{
    Core, Favourable, ImportOptions, InputBlock, InputCell, Inputs, ModelFile,
};
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex::model::{Activation, Dense, Mlp, Model, Output};
use tyrex::{Points, Seed};

/// The agreement that is promised, in probability: of networks, whose sums have another order than
/// onnxruntime's, and of trees.
const TOLERANCE: f64 = 1e-5;
const TOLERANCE_OF_TREES: f64 = 1e-6;

/// One model, its rows, and what onnxruntime says.
#[derive(Deserialize)]
struct Case {
    name: String,
    file: String,
    kind: String,
    operators: Vec<String>,
    output: Option<String>,
    favourable: Option<usize>,
    logits: bool,
    columns: Vec<Vec<RawCell>>,
    expected: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawCell {
    Number(f64),
    Text(String),
}

impl RawCell {
    fn cell(&self) -> InputCell<'_> {
        match self {
            Self::Number(number) => InputCell::Number(*number),
            Self::Text(text) if text == "nan" => InputCell::Number(f64::NAN),
            Self::Text(text) => InputCell::Text(text),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a script of `tests/onnx` in the test environment.
fn python(script: &str, arguments: &[&Path]) {
    let python =
        std::env::var_os("TYREX_PYTHON").map_or(root().join(".venv/bin/python"), PathBuf::from);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx").join(script);
    assert!(
        python.exists(),
        "no Python with the test packages at {}: run ./check",
        python.display()
    );
    let run = Command::new(&python).arg(&script).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{} failed:\n{errors}", script.display());
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is read with --nocapture")]
fn models_of_other_packages_score_like_onnxruntime() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("onnx-models");
    std::fs::create_dir_all(&folder).unwrap();
    python("make_models.py", &[&folder]);
    let cases = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    assert!(cases.len() >= 90, "only {} models were exported", cases.len());

    let mut failures = Vec::new();
    println!("| model file | becomes | operators | largest deviation |\n|---|---|---|---|");
    for case in &cases {
        match deviation(case, &folder) {
            Ok(deviation) => {
                println!(
                    "| {} | {} | {} | {deviation:.1e} |",
                    case.file,
                    case.kind,
                    case.operators.join(" ")
                );
                let most = if case.kind == "trees" { TOLERANCE_OF_TREES } else { TOLERANCE };
                if deviation.is_nan() || deviation > most {
                    failures.push(format!("{}: deviates by {deviation:e}", case.name));
                }
            }
            Err(problem) => failures.push(format!("{}: {problem}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The largest difference to onnxruntime over the rows of a case.
fn deviation(case: &Case, folder: &Path) -> Result<f64, String> {
    let options = ImportOptions {
        output: case.output.clone(),
        favourable: case.favourable.map(Favourable::Class),
        logits: case.logits,
    };
    let model = ModelFile::read(&folder.join(&case.file), &options).map_err(|e| e.to_string())?;
    let kind = match &model.core {
        Core::Mlp(_) => "mlp",
        Core::Trees(_) => "trees",
    };
    if kind != case.kind {
        return Err(format!("became {kind}, expected {}", case.kind));
    }
    // Without help, the same output is found wherever it needs no choice of class.
    let alone =
        ModelFile::read(&folder.join(&case.file), &ImportOptions { output: None, ..options });
    if alone.map_err(|e| e.to_string())? != model {
        return Err("another output was chosen without a name".into());
    }
    let rows = case.expected.len();
    let cells: Vec<Vec<InputCell>> = (0..rows)
        .map(|row| case.columns.iter().map(|column| column[row].cell()).collect())
        .collect();
    let points = model.encode(cells.iter().map(Vec::as_slice)).map_err(|e| e.to_string())?;
    let mut most = largest(&model.model().score(&points), &case.expected);
    let complete =
        cells.iter().flatten().all(|cell| !matches!(cell, InputCell::Number(x) if x.is_nan()));
    if complete {
        most = most.max(through_rows(&model, case, &cells)?);
    } else {
        most = most.max(through_missing(&model, case, &cells)?);
    }
    if let Ok(folded) = model.folded() {
        most = most.max(as_points(&folded, case, &cells));
    }
    Ok(most)
}

/// Raw columns: rows of a schema, encoded by the encoder that comes with the model.
fn through_rows(model: &ModelFile, case: &Case, cells: &[Vec<InputCell>]) -> Result<f64, String> {
    let schema = schema(model, cells);
    let encoder = model.encoder(&schema).map_err(|e| e.to_string())?;
    let values = |row: &Vec<InputCell>| row.iter().map(|&cell| value(cell)).collect();
    let rows: tyrex::Result<Vec<Row>> =
        cells.iter().map(|row| Row::new(&schema, values(row))).collect();
    let points = rows.and_then(|rows| encoder.encode_rows(&rows)).map_err(|e| e.to_string())?;
    Ok(largest(&model.model().score(&points), &case.expected))
}

/// Rows with missing cells that the model gets as they are: `missing = "pass"`.
fn through_missing(
    model: &ModelFile,
    case: &Case,
    cells: &[Vec<InputCell>],
) -> Result<f64, String> {
    let mut schema = schema(model, cells);
    schema.missing.policy = MissingPolicy::Pass;
    schema.model.input = ModelInput::Raw;
    let names = schema.features.iter().map(|feature| feature.name.as_str());
    let mut columns: Vec<Column> = names.map(Column::new).collect();
    for row in cells {
        for (column, cell) in columns.iter_mut().zip(row) {
            match cell {
                InputCell::Number(number) if number.is_nan() => column.push(""),
                InputCell::Number(number) => column.push_display(number),
                InputCell::Text(text) => column.push(text),
            }
        }
    }
    let table = Table::new("rows", columns).map_err(|e| e.to_string())?;
    let rows = UnlabelledRows::read(&schema, table).map_err(|e| e.to_string())?;
    let mut most = 0.0_f64;
    for rows in [rows.clone().without_scale(), rows] {
        let explainer = Explainer::with_model(Reference::Unlabelled(rows), model.clone());
        let explainer = explainer.map_err(|e| e.to_string())?;
        if explainer.points().as_slice().iter().any(|x| !x.is_finite()) {
            return Err("a coordinate of a row is not a number".to_owned());
        }
        most = most.max(largest(explainer.scores(), &case.expected));
    }
    Ok(most)
}

/// Columns as they are, or already encoded: the input matrix is the points.
fn as_points(folded: &Core, case: &Case, cells: &[Vec<InputCell>]) -> f64 {
    let number = |cell: &InputCell| match cell {
        InputCell::Number(number) => *number as f32,
        InputCell::Text(text) => panic!("`{text}` in a matrix of numbers"),
    };
    let values = cells.iter().flatten().map(number).collect();
    let points = Points::from_rows(case.columns.len(), values).unwrap();
    let scores = match folded {
        Core::Mlp(network) => network.score(&points),
        Core::Trees(trees) => trees.score(&points),
    };
    largest(&scores, &case.expected)
}

fn value(cell: InputCell) -> Value {
    match cell {
        InputCell::Number(number) => Value::Number(number),
        InputCell::Text(text) => Value::Text(text.into()),
    }
}

/// The schema that a person would write for the columns of the case.
fn schema(model: &ModelFile, cells: &[Vec<InputCell>]) -> Schema {
    let names: Vec<String> = match &model.inputs {
        Inputs::Matrix { columns } => (0..*columns).map(|i| format!("column {i}")).collect(),
        Inputs::Columns(columns) => columns.iter().map(|c| c.name.clone()).collect(),
    };
    let features = names.iter().enumerate().map(|(column, name)| {
        let of_levels =
            |b: &InputBlock| !matches!(b, InputBlock::Number { .. }) && b.column() == column;
        let kind = if model.preprocessing.iter().any(of_levels) {
            let mut levels: Vec<Value> = Vec::new();
            for row in cells {
                let level = value(row[column]);
                let is_missing = level.number().is_some_and(f64::is_nan);
                if !is_missing && !levels.contains(&level) {
                    levels.push(level);
                }
            }
            FeatureKind::Categorical { levels }
        } else {
            FeatureKind::Numeric
        };
        Feature::new(name, kind)
    });
    let label = Label {
        column: "label".into(),
        favourable: vec![Value::Number(1.0)],
        unfavourable: Vec::new(),
        missing: MissingPolicy::default(),
    };
    Schema::new(label, features.collect())
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is read with --nocapture")]
fn onnxruntime_scores_what_tyrex_writes() {
    let folder = tempfile::tempdir().unwrap();
    let activations = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.07 },
        Activation::Elu { alpha: 0.8 },
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Softplus,
        Activation::Silu,
    ];
    let outputs = [
        (1, Output::Sigmoid { favourable: true }),
        (1, Output::Sigmoid { favourable: false }),
        (2, Output::Softmax { favourable: 0 }),
        (4, Output::Softmax { favourable: 2 }),
    ];
    let points = random(Seed(7), 1000, 5, 2.0);
    let rows = folder.path().join("rows.json");
    std::fs::write(&rows, json_rows(points.as_slice(), 5)).unwrap();
    let mut written = Vec::new();
    for (index, activation) in activations.into_iter().enumerate() {
        let (classes, output) = outputs[index % outputs.len()];
        let network = network(Seed(index as u64), &[5, 16, 8, classes], activation, output);
        let file = folder.path().join(format!("{index}.onnx"));
        std::fs::write(&file, write(&network, &ExportMetadata::default())).unwrap();
        written.push((network, activation, file));
    }
    let answers = folder.path().join("answers.json");
    let mut arguments = vec![Path::new("--evaluate"), rows.as_path(), answers.as_path()];
    arguments.extend(written.iter().map(|(_, _, file)| file.as_path()));
    python("make_models.py", &arguments);
    let answers: Vec<Answer> =
        serde_json::from_str(&std::fs::read_to_string(&answers).unwrap()).unwrap();
    assert_eq!(answers.len(), written.len());
    println!("| written by tyrex | largest deviation of probability | of logits |\n|---|---|---|");
    for ((network, activation, _), answer) in written.iter().zip(answers) {
        let probability = largest(&network.score(&points), &answer.probability);
        let logits = largest(&network.logits(&points), &answer.logits.concat());
        println!("| {activation:?}, {:?} | {probability:.1e} | {logits:.1e} |", network.output());
        assert!(probability <= TOLERANCE, "{activation:?}: {probability}");
        assert!(logits <= 1e-4, "{activation:?}: logits differ by {logits}");
    }
}

/// The scores of onnxruntime for one model.
#[derive(Deserialize)]
struct Answer {
    probability: Vec<f64>,
    logits: Vec<Vec<f64>>,
}

fn largest(ours: &[f32], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let differences = ours.iter().zip(theirs).map(|(a, b)| (f64::from(*a) - b).abs());
    differences.fold(0.0, |most, d| if d.is_nan() || d > most { d } else { most })
}

fn json_rows(values: &[f32], dim: usize) -> String {
    serde_json::to_string(&values.chunks_exact(dim).collect::<Vec<_>>()).unwrap()
}

/// Points in a box around the origin.
fn random(seed: Seed, rows: usize, dim: usize, width: f32) -> Points {
    let mut rng = seed.derive("points").rng();
    let values = (0..rows * dim).map(|_| rng.random_range(-width..width)).collect();
    Points::from_rows(dim, values).unwrap()
}

/// A network with random weights of the size training would give them.
fn network(seed: Seed, sizes: &[usize], activation: Activation, output: Output) -> Mlp {
    let mut rng = seed.derive("weights").rng();
    let layers: Vec<Dense> = sizes
        .windows(2)
        .enumerate()
        .map(|(index, pair)| {
            let width = (3.0 / pair[0] as f32).sqrt();
            let last = index + 2 == sizes.len();
            Dense {
                weights: (0..pair[0] * pair[1]).map(|_| rng.random_range(-width..width)).collect(),
                bias: (0..pair[1]).map(|_| rng.random_range(-0.5..0.5)).collect(),
                activation: if last { Activation::Identity } else { activation },
            }
        })
        .collect();
    Mlp::new(sizes[0], &layers, output).unwrap()
}
