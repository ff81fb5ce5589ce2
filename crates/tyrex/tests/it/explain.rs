//! The façade: training, writing, reading back, and what an imported model takes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::schema::Split;
use tyrex::data::{Column, Dataset, Encoder, Row, Schema, Table, Value};
use tyrex::explain::{
    AdviceFile, AdviceRows, Explainer, Part, Reference, Request, UnlabelledRows, embedded_schema,
    import,
};
use tyrex::model::files::{
    Category, Cell, Core, ImportOptions, InputBlock, InputColumn, InputKind, Inputs, ModelFile,
};
use tyrex::model::train::OutputLayer;
use tyrex::model::trees::Comparison;
use tyrex::model::{Fingerprint, Mlp, Model, TrainParams};
use tyrex::{Error, Points, Seed};

use crate::support::{advise, branch, forest, german, leaf};

fn trained(seed: u64) -> Explainer {
    let params = TrainParams { hidden: vec![16], epochs: 10, ..TrainParams::paper() };
    Explainer::train(german(), &params, Seed(seed), |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn training_beats_always_saying_good_and_counts_agree() {
    let explainer = trained(0);
    let [train, test] = explainer.performances()[..] else { panic!("two parts") };
    assert_eq!((train.rows, test.rows), (670, 330));
    let good = |part| {
        let rows = explainer.reference().part(part);
        let favourable = |row: &&usize| explainer.reference().is_favourable(**row) == Some(true);
        rows.iter().filter(favourable).count() as f64 / rows.len() as f64
    };
    assert!(train.accuracy.unwrap() > good(Part::Train), "{train:?}");
    assert!(test.accuracy.unwrap() > good(Part::Test), "{test:?}");

    let rejected = explainer.applicants().rejected(Part::Test);
    assert_eq!(rejected.len(), test.rejected);
    assert!(rejected.iter().all(|each| each.score < 0.5));
    let wrong = rejected.iter().filter(|each| each.favourable == Some(true)).count();
    let accepted_bad = explainer
        .reference()
        .part(Part::Test)
        .into_iter()
        .filter(|&row| explainer.scores()[row] >= 0.5)
        .filter(|&row| explainer.reference().is_favourable(row) == Some(false))
        .count();
    let accuracy = 1.0 - (wrong + accepted_bad) as f64 / 330.0;
    assert!((accuracy - test.accuracy.unwrap()).abs() < 1e-12);
}

#[test]
fn watching_can_end_the_training() {
    let params = TrainParams { hidden: vec![4], epochs: 50, ..TrainParams::paper() };
    let explainer = Explainer::train(german(), &params, Seed(0), |report| {
        if report.epoch == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(explainer.training().unwrap().history.len(), 3);
}

#[test]
fn a_softmax_must_fit_the_labels_of_a_data_set() {
    let train = |classes, favourable| {
        let output = OutputLayer::Softmax { classes, favourable };
        let params = TrainParams { hidden: vec![4], epochs: 1, output, ..TrainParams::paper() };
        Explainer::train(german(), &params, Seed(0), |_| ControlFlow::Continue(()))
    };
    assert!(train(2, 1).is_ok());
    assert!(matches!(train(2, 0), Err(Error::Param { name: "output", .. })));
    assert!(matches!(train(3, 1), Err(Error::Param { name: "output", .. })));
}

#[test]
fn a_written_model_comes_back_with_its_schema_and_gives_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("german.onnx");
    let explainer = trained(0);
    std::fs::write(&path, explainer.to_onnx().unwrap()).unwrap();

    let model = ModelFile::read(&path, &ImportOptions::default()).unwrap();
    let schema = embedded_schema(&model).unwrap().unwrap();
    // Applicants without labels: the label column is missing.
    let dataset = german();
    let columns = dataset.table().columns();
    let unlabelled = columns.iter().filter(|column| column.name() != "class").cloned().collect();
    let table = Table::new("applicants.csv", unlabelled).unwrap();
    let data = Reference::read(&schema, table).unwrap();
    assert!(!data.has_labels());
    let model = import(&path, &schema, &ImportOptions::default()).unwrap();
    let read = Explainer::with_model(data, model).unwrap();
    assert_eq!(read.fingerprint(), explainer.fingerprint());
    assert_eq!(read.scores(), explainer.scores());
    assert_eq!(read.score(explainer.reference().rows()).unwrap(), explainer.scores());
    assert_eq!(read.performances().len(), 1);
    assert_eq!(read.performances()[0].accuracy, None);
}

#[test]
fn the_same_seed_gives_the_same_model_and_another_seed_another() {
    let fingerprint = |seed| trained(seed).fingerprint();
    assert_eq!(fingerprint(3), fingerprint(3));
    assert_ne!(fingerprint(3), fingerprint(4));
}

/// Two features; housing has a level order of its own.
const SCHEMA: &str = include_str!("../schemas/raw.toml");

const ROWS: &str = "\
income,housing,paid,part
10,rent,no,train
20,own,yes,train
-3.5,own,no,train
40,rent,yes,train
";

/// The same for a model that takes our encoding; a column names its training rows.
fn encoded_schema() -> String {
    SCHEMA.replace("[model]\ninput = \"raw\"", "[split]\ncolumn = \"part\"")
}

fn rows(schema: &Schema) -> Reference {
    let table = Table::from_csv(Path::new("rows.csv"), ROWS.as_bytes()).unwrap();
    Reference::read(schema, table).unwrap()
}

/// A linear model with the given inputs and what is done to them.
fn linear(inputs: Inputs, preprocessing: Vec<InputBlock>) -> ModelFile {
    let dim: usize = preprocessing.iter().map(InputBlock::width).sum();
    let weights = (0..dim).map(|column| 0.25 * (column as f32 + 1.0)).collect();
    let mlp = Mlp::linear(weights, -0.5).unwrap();
    ModelFile {
        inputs,
        preprocessing,
        core: Core::Mlp(mlp),
        output: "probability".into(),
        classes: 2,
        favourable: 1,
        labels: None,
        metadata: BTreeMap::new(),
    }
}

fn column(name: &str, kind: InputKind) -> InputColumn {
    InputColumn { name: name.into(), kind }
}

fn number(column: usize, scale: f64, shift: f64) -> InputBlock {
    InputBlock::Number { column, missing: None, scale, shift }
}

fn one_hot(column: usize, categories: &[&str]) -> InputBlock {
    let categories = categories.iter().map(|&text| Category::Text(text.into())).collect();
    InputBlock::OneHot { column, categories }
}

#[test]
fn a_raw_model_sees_what_its_own_preprocessing_makes() {
    // The model has its columns in another order than the schema, by name.
    let inputs = Inputs::Columns(vec![
        column("housing", InputKind::Text),
        column("income", InputKind::Number),
    ]);
    let model = linear(inputs, vec![one_hot(0, &["own", "rent"]), number(1, 0.5, 2.0)]);
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let scaled = Explainer::with_model(rows(&schema), model.clone()).unwrap();
    let explainer = scaled.on_scale(None).unwrap();

    let cells: Vec<Vec<Cell>> = explainer
        .reference()
        .rows()
        .iter()
        .map(|row| match row.values() {
            [Value::Number(income), Value::Text(housing)] => {
                vec![Cell::Text(housing), Cell::Number(*income)]
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let points = model.encode(cells.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(explainer.points(), &points);
    assert_eq!(explainer.scores(), model.model().score(&points));
    // And back: every point is the row it came from.
    for (index, row) in explainer.reference().rows().iter().enumerate() {
        assert_eq!(&explainer.encoder().decode(points.row(index)), row);
    }
}

#[test]
fn a_model_may_have_one_column_for_two_levels() {
    let inputs = Inputs::Columns(vec![
        column("income", InputKind::Number),
        column("housing", InputKind::Text),
    ]);
    let model = linear(inputs, vec![number(0, 1.0, 0.0), one_hot(1, &["rent"])]);
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let scaled = Explainer::with_model(rows(&schema), model).unwrap();
    let explainer = scaled.on_scale(None).unwrap();
    let column: Vec<f32> = explainer.points().rows().map(|point| point[1]).collect();
    assert_eq!(column, [1.0, 0.0, 0.0, 1.0]);
    for (row, point) in explainer.reference().rows().iter().zip(explainer.points().rows()) {
        assert_eq!(&explainer.encoder().decode(point), row);
    }
}

#[test]
fn scaling_inside_the_model_goes_behind_our_encoding() {
    let schema = Schema::from_toml(&encoded_schema()).unwrap();
    let steps = vec![number(0, 2.0, -1.0), number(1, 0.5, 0.25), number(2, -3.0, 1.0)];
    let model = linear(Inputs::Matrix { columns: 3 }, steps);
    let explainer = Explainer::with_model(rows(&schema), model).unwrap();
    let Reference::Labelled(dataset) = explainer.reference() else { panic!("labelled") };
    for (ours, theirs) in dataset.points().rows().zip(explainer.points().rows()) {
        let expected = [2.0 * ours[0] - 1.0, 0.5 * ours[1] + 0.25, -3.0 * ours[2] + 1.0];
        for (expected, got) in expected.iter().zip(theirs) {
            assert!((expected - got).abs() < 1e-6, "{expected} {got}");
        }
    }
}

#[test]
fn models_that_do_not_fit_the_schema_are_refused_in_words() {
    let matrix = |columns| Inputs::Matrix { columns };
    let plain = |columns: usize| (0..columns).map(|column| number(column, 1.0, 0.0)).collect();
    let named = |names: &[&str]| {
        Inputs::Columns(names.iter().map(|name| column(name, InputKind::Number)).collect())
    };
    let encoded = encoded_schema();
    let cases: [(&str, &str, ModelFile, &[&str]); 8] = [
        (
            "encoded, too many inputs",
            &encoded,
            linear(matrix(5), plain(5)),
            &["expected 3, got 5", "`income`", "rent"],
        ),
        (
            "raw, too few inputs",
            SCHEMA,
            linear(matrix(1), plain(1)),
            &["expected 2, got 1", "`income`", "`housing`"],
        ),
        (
            "raw, an unknown column",
            SCHEMA,
            linear(named(&["income", "houses"]), plain(2)),
            &["`houses`", "is an input of the model but no feature"],
        ),
        (
            "raw, a feature the model never reads",
            SCHEMA,
            linear(named(&["income"]), plain(1)),
            &["`housing`", "is not encoded"],
        ),
        (
            "raw, text taken as a number",
            SCHEMA,
            linear(named(&["income", "housing"]), plain(2)),
            &["`housing`", "levels are text"],
        ),
        (
            "raw, a level the model does not know",
            SCHEMA,
            linear(
                named(&["income", "housing"]),
                vec![number(0, 1.0, 0.0), one_hot(1, &["own", "free"])],
            ),
            &["`housing`", "does not know the level `rent`"],
        ),
        (
            "a column scaled to nothing",
            SCHEMA,
            linear(
                named(&["income", "housing"]),
                vec![number(0, 0.0, 1.0), one_hot(1, &["own", "rent"])],
            ),
            &["`income`", "nothing of it is left"],
        ),
        (
            "encoded, but the model encodes itself",
            &encoded,
            linear(
                named(&["a", "b", "c"]),
                vec![number(0, 1.0, 0.0), one_hot(1, &["own", "rent"]), number(2, 1.0, 0.0)],
            ),
            &["encodes column 1 itself", "input = \"raw\""],
        ),
    ];
    for (name, schema, model, pieces) in cases {
        let schema = Schema::from_toml(schema).unwrap();
        let error = Explainer::with_model(rows(&schema), model).unwrap_err().to_string();
        for piece in pieces {
            assert!(error.contains(piece), "{name}: {error}");
        }
    }
}

fn applicants(schema: &Schema, csv: &str) -> Result<Reference, Error> {
    let table = Table::from_csv(Path::new("new.csv"), csv.as_bytes())?;
    UnlabelledRows::read(schema, table).map(Reference::Unlabelled)
}

#[test]
fn scaling_cannot_be_fitted_on_applicants() {
    let steps = (0..3).map(|column| number(column, 1.0, 0.0)).collect();
    let model = linear(Inputs::Matrix { columns: 3 }, steps);
    let encoded = SCHEMA.replace("\"raw\"", "\"encoded\"");
    let fraction = format!("{encoded}[split]\nfraction = 0.5\nseed = 0\n");
    let no_part = ROWS.replace("part", "other");
    for (name, schema, csv) in [
        ("no labels", &encoded, "income,housing\n1,own\n"),
        ("labels", &encoded, ROWS),
        ("labels and a split drawn here", &fraction, ROWS),
        ("the column of the split is not there", &encoded_schema(), &no_part),
    ] {
        let schema = Schema::from_toml(schema).unwrap();
        let data = applicants(&schema, csv).unwrap();
        let error = Explainer::with_model(data, model.clone()).unwrap_err().to_string();
        assert!(error.contains("`income`") && error.contains("`[split]`"), "{name}: {error}");
    }
    let schema = Schema::from_toml(&encoded).unwrap();
    assert!(Explainer::with_model(rows(&schema), model.clone()).is_err(), "a data set");
    // Training rows that are named fit the scaling, whatever the other rows are.
    let schema = Schema::from_toml(&encoded_schema()).unwrap();
    let more = format!("{ROWS}1000,own,,test\n");
    let more = Explainer::with_model(applicants(&schema, &more).unwrap(), model.clone()).unwrap();
    let dataset = Explainer::with_model(rows(&schema), model).unwrap();
    assert_eq!(more.encoder(), dataset.encoder());
    assert_eq!(more.scores()[..4], *dataset.scores());
}

/// For each row, whether its label is favourable.
type Labels = &'static [Option<bool>];

#[test]
fn applicants_need_neither_labels_nor_two_classes() {
    let schema =
        SCHEMA.replace("favourable = \"yes\"", "favourable = \"yes\"\nunfavourable = \"no\"");
    let schema = Schema::from_toml(&schema).unwrap();
    let inputs = Inputs::Columns(vec![
        column("income", InputKind::Number),
        column("housing", InputKind::Text),
    ]);
    let model = linear(inputs, vec![number(0, 1.0, 0.0), one_hot(1, &["own", "rent"])]);
    let cases: [(&str, &str, Labels, Option<f64>); 5] = [
        ("no label column", "income,housing\n-9,own\n", &[None], None),
        ("one row", "income,housing,paid\n-9,own,no\n", &[Some(false)], Some(1.0)),
        (
            "one class",
            "income,housing,paid\n-9,own,no\n-8,rent,no\n",
            &[Some(false), Some(false)],
            Some(1.0),
        ),
        (
            "empty and unknown labels",
            "income,housing,paid\n-9,own,yes\n-8,rent,\n-7,own,pending\n",
            &[Some(true), None, None],
            Some(0.0),
        ),
        ("empty labels only", "income,housing,paid\n-9,own,\n-8,rent,?\n", &[None, None], None),
    ];
    for (name, csv, favourable, accuracy) in cases {
        let data = applicants(&schema, csv).unwrap();
        let explainer = Explainer::with_model(data, model.clone()).unwrap();
        let rejected = explainer.applicants().rejected(explainer.reference().applicants());
        let labels: Vec<Option<bool>> = rejected.iter().map(|each| each.favourable).collect();
        assert_eq!(labels, favourable, "{name}");
        assert!(rejected.iter().all(|each| each.label.is_some() == each.favourable.is_some()));
        assert_eq!(explainer.performances()[0].accuracy, accuracy, "{name}");
    }
}

#[test]
fn rows_without_a_label_are_no_training_rows_and_do_not_move_the_split() {
    let text = SCHEMA.replace("[model]", "[split]\nfraction = 0.5\nseed = 3\n[model]");
    let schema = Schema::from_toml(&text).unwrap();
    let dataset = (0..20)
        .map(|seed| {
            let mut schema = schema.clone();
            schema.split = Split::Fraction { train: 0.5, seed };
            let table = Table::from_csv(Path::new("rows.csv"), ROWS.as_bytes()).unwrap();
            (schema.clone(), Dataset::load(&schema, table))
        })
        .find_map(|(schema, dataset)| Some((schema, dataset.ok()?)));
    let (schema, dataset) = dataset.expect("a seed that leaves both classes to train on");
    let more = applicants(&schema, &format!("{ROWS}7,own,,new\n")).unwrap();
    assert_eq!(more.part(Part::Train), dataset.train());
    assert_eq!(more.part(Part::Test), [dataset.test(), &[4]].concat());
}

#[test]
fn a_score_that_is_no_number_is_an_error_that_names_the_row() {
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let branch = branch(0, Comparison::LessOrEqual, 15.0, 1);
    // Each leaf is finite; their sum is not.
    let tree = vec![branch, leaf(0.25), leaf(f32::MAX)];
    let trees = forest(3, &[tree.clone(), tree]);
    let inputs = Inputs::Columns(vec![
        column("income", InputKind::Number),
        column("housing", InputKind::Text),
    ]);
    let steps = vec![number(0, 1.0, 0.0), one_hot(1, &["own", "rent"])];
    let model = ModelFile { core: Core::Trees(trees), ..linear(inputs, steps) };
    let error = Explainer::with_model(rows(&schema), model).unwrap_err().to_string();
    assert!(error.contains("rows.csv, row 1, is inf"), "{error}");
}

fn request(method: &str) -> Request {
    Request::new(method, Protocol::Product, Norm::L1, Seed(3)).unwrap()
}

#[test]
fn advice_becomes_a_table_under_the_names_of_the_features() {
    let explainer = trained(0);
    let rows = &explainer.applicants().rejected(Part::Test)[..4];
    let request = request("trex-o");
    let go_on = |_| ControlFlow::Continue(());
    let advice = advise(&explainer, &request, rows, go_on).unwrap();
    let table = AdviceFile::new(&explainer, &request).table(&advice, None).unwrap();
    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
    assert_eq!(names[..4], ["row", "status", "reason", "checking_status"]);
    assert_eq!(names[names.len() - 3..], ["model", "seed", "format_version"]);
    let cell = |column: &str, line: usize| table.column(column).unwrap().cell(line).to_owned();
    let file = german();
    for (line, each) in advice.iter().enumerate() {
        assert_eq!(cell("row", line), each.applicant.row.to_string());
        assert_eq!(cell("model", line), explainer.fingerprint().as_str());
        let Some(advised) = &each.advised else {
            assert_eq!(
                (cell("status", line).as_str(), cell("purpose", line).as_str()),
                ("not_found", "")
            );
            continue;
        };
        assert_eq!(cell("status", line), "found");
        assert_eq!(cell("changed", line), each.changes.len().to_string());
        // Other features keep the values of the file.
        for feature in &explainer.schema().features {
            let before =
                file.table().column(&feature.name).unwrap().cell(each.applicant.row).to_owned();
            let changed = each.changes.iter().any(|change| change.feature == feature.name);
            assert_eq!(cell(&feature.name, line) != before, changed, "{}", feature.name);
        }
        // The score is that of the row, read anew.
        let score = explainer.score(std::slice::from_ref(advised)).unwrap()[0];
        assert_eq!(cell("score", line), score.to_string());
        assert!(score >= 0.5 && each.stability.unwrap() >= 0.8);
    }
    assert!(advice.iter().any(|each| each.advised.is_some()));
}

#[test]
fn other_rows_of_the_same_schema_are_explained_as_the_own_ones_are() {
    let explainer = trained(0);
    let own = &explainer.applicants().rejected(Part::Test)[..3];
    // The file again, shuffled and without its label, as a table of applicants.
    let file = german();
    let order: Vec<usize> = own.iter().rev().map(|each| each.row).collect();
    let columns = file.table().columns().iter().rev();
    let columns = columns.filter(|column| column.name() != explainer.schema().label.column);
    let columns = columns.map(|column| {
        let mut shuffled = Column::new(column.name());
        for &row in &order {
            shuffled.push(column.cell(row));
        }
        shuffled
    });
    let table = Table::new("applicants", columns.collect()).unwrap();
    let others = explainer.applicants().read(&table).unwrap();
    let request = request("trex-o");
    let go_on = |_| ControlFlow::Continue(());
    let of_own = advise(&explainer, &request, own, go_on).unwrap();
    let of_others = advise(&explainer, &request, &others, go_on).unwrap();
    for (own, other) in of_own.iter().zip(of_others.iter().rev()) {
        assert_eq!(own.outcome.answer, other.outcome.answer);
        assert_eq!(own.changes, other.changes);
        assert_eq!(own.applicant.point, other.applicant.point);
        assert!(own.applicant.label.is_some() && other.applicant.label.is_none());
    }
    let bad = Table::from_csv(Path::new("x.csv"), b"duration\n3\n").unwrap();
    assert!(matches!(explainer.applicants().read(&bad), Err(Error::Table { .. })));
}

/// A network that only answers: no gradients, no weights to look at.
#[derive(Debug)]
struct Opaque(Mlp);

impl Model for Opaque {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        self.0.score_into(points, scores);
    }
}

#[test]
fn a_black_box_is_explained_by_its_answers_alone() {
    let known = trained(0);
    let network = known.model().network().unwrap().clone();
    let make = |dim: usize| {
        move |encoder: &Encoder| {
            assert_eq!(encoder.dim(), dim);
            Ok(Arc::new(Opaque(network)) as Arc<dyn Model>)
        }
    };
    let opaque =
        Explainer::with_black_box(known.reference().clone(), make(known.encoder().dim())).unwrap();
    assert_eq!(opaque.scores(), known.scores());
    assert_ne!(opaque.fingerprint(), known.fingerprint());
    assert_eq!(opaque.fingerprint(), opaque.clone().fingerprint());
    let go_on = |_| ControlFlow::Continue(());
    let rows = &known.applicants().rejected(Part::Test)[..3];
    let [seen, unseen] = [&known, &opaque]
        .map(|explainer| advise(explainer, &request("trex-nn"), rows, go_on).unwrap());
    for (seen, unseen) in seen.iter().zip(&unseen) {
        assert_eq!(seen.changes, unseen.changes);
    }
    let error = advise(&opaque, &request("trex-i"), rows, go_on).unwrap_err().to_string();
    assert!(error.contains("trex-i needs gradients"), "{error}");
    let error = opaque.retraining().params().unwrap_err().to_string();
    assert!(error.contains("black boxes"), "{error}");
}

/// A network whose fingerprint counts how often it is computed.
#[derive(Debug)]
struct Counted {
    network: Mlp,
    asked: Arc<AtomicUsize>,
}

impl Model for Counted {
    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        self.network.score_into(points, scores);
    }

    fn identity(&self) -> Option<Fingerprint> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.network.identity()
    }
}

#[test]
fn a_fingerprint_is_computed_once() {
    let known = trained(0);
    let asked = Arc::new(AtomicUsize::new(0));
    let network = known.model().network().unwrap().clone();
    let model = Counted { network, asked: Arc::clone(&asked) };
    let own =
        Explainer::with_black_box(known.reference().clone(), |_| Ok(Arc::new(model))).unwrap();
    let rows = &own.applicants().rejected(Part::Test)[..3];
    let request = request("trex-nn");
    let advice = advise(&own, &request, rows, |_| ControlFlow::Continue(())).unwrap();
    for _ in 0..3 {
        AdviceFile::new(&own, &request).table(&advice, None).unwrap();
        assert_eq!(own.clone().fingerprint(), known.fingerprint());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn overrides_bind_the_search_and_are_refused_by_name() {
    let explainer = trained(0);
    let rows = &explainer.applicants().rejected(Part::Test)[..6];
    let go_on = |_| ControlFlow::Continue(());
    let mut request = request("min-cost");
    request.overrides.vary = Some(vec!["duration".to_owned(), "credit_amount".to_owned()]);
    for advice in advise(&explainer, &request, rows, go_on).unwrap() {
        let names: Vec<&str> =
            advice.changes.iter().map(|change| change.feature.as_str()).collect();
        assert!(names.iter().all(|name| ["duration", "credit_amount"].contains(name)), "{names:?}");
    }
    request.overrides.vary = Some(vec!["durration".to_owned()]);
    let error = advise(&explainer, &request, rows, go_on).unwrap_err().to_string();
    assert!(error.contains("durration"), "{error}");
    request.protocol = Protocol::Paper;
    let error = advise(&explainer, &request, rows, go_on).unwrap_err().to_string();
    assert!(error.contains("`protocol` is paper"), "{error}");
}

#[test]
fn answers_of_the_paper_are_points_and_are_written_as_such() {
    let explainer = trained(0);
    let rows = &explainer.applicants().rejected(Part::Test)[..2];
    let request = Request::new("min-cost", Protocol::Paper, Norm::L2, Seed(3)).unwrap();
    let advice = advise(&explainer, &request, rows, |_| ControlFlow::Continue(())).unwrap();
    let table = AdviceFile::new(&explainer, &request).table(&advice, None).unwrap();
    for (line, each) in advice.iter().enumerate() {
        assert!(each.advised.is_none() && each.changes.is_empty());
        let point = &each.found().unwrap().point;
        for (name, value) in explainer.encoder().columns().iter().zip(point) {
            assert_eq!(table.column(name).unwrap().cell(line), value.to_string());
        }
    }
    // Read as rows, points would be encoded once more.
    let error = AdviceRows::read(explainer.schema(), &table).unwrap_err().to_string();
    assert!(error.contains("row 0 is a point of the protocol `paper`"), "{error}");
}

#[test]
fn a_feature_may_not_take_the_name_of_an_output_column() {
    let schema = Schema::from_toml(&SCHEMA.replace("\"income\"", "\"score\"")).unwrap();
    let csv = ROWS.replace("income", "score");
    let table = Table::from_csv(Path::new("rows.csv"), csv.as_bytes()).unwrap();
    let inputs = Inputs::Columns(vec![
        column("score", InputKind::Number),
        column("housing", InputKind::Text),
    ]);
    let model = linear(inputs, vec![number(0, 1.0, 0.0), one_hot(1, &["own", "rent"])]);
    let explainer = Explainer::with_model(Reference::read(&schema, table).unwrap(), model).unwrap();
    let error =
        AdviceFile::new(&explainer, &request("nn")).table(&[], None).unwrap_err().to_string();
    assert!(error.contains("`score`") && error.contains("rename"), "{error}");
}

#[test]
fn rows_of_another_schema_are_refused() {
    let explainer = trained(0);
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let row = Row::new(&schema, vec![Value::Number(1.0), Value::from("own")]).unwrap();
    assert!(matches!(explainer.score(&[row]), Err(Error::Dimension { .. })));
}

#[test]
fn trees_are_a_model_without_gradients_and_are_not_written() {
    let branch = branch(0, Comparison::LessOrEqual, 15.0, 1);
    let tree = vec![branch, leaf(0.25), leaf(0.75)];
    let trees = forest(3, &[tree]);
    let inputs = Inputs::Columns(vec![
        column("income", InputKind::Number),
        column("housing", InputKind::Text),
    ]);
    let steps = vec![number(0, 1.0, 0.0), one_hot(1, &["own", "rent"])];
    let model = ModelFile { core: Core::Trees(trees), ..linear(inputs, steps) };
    let schema = Schema::from_toml(SCHEMA).unwrap();
    let explainer = Explainer::with_model(rows(&schema), model).unwrap();
    assert_eq!(explainer.scores(), [0.25, 0.75, 0.25, 0.75]);
    assert!(explainer.model().differentiable().is_none());
    let rejected: Vec<usize> =
        explainer.applicants().rejected(Part::All).iter().map(|each| each.row).collect();
    assert_eq!(rejected, [0, 2]);
    assert!(matches!(explainer.to_onnx(), Err(Error::InvalidModel(_))));
}
