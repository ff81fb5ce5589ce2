//! Ensembles: what members depend on, what they look like on the data, and their folder.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use rand::RngExt;
use tyrex::change::{Ensemble, LeaveOut, MANIFEST, ModelChange, Plan, Reinitialise};
use tyrex::model::onnx::{ExportMetadata, ImportOptions, OnnxModel};
use tyrex::model::train::{EpochReport, OutputLayer};
use tyrex::model::{Activation, Examples, Mlp, TrainParams, train};
use tyrex::{Error, Overwrite, Points, Seed};

const REINITIALISE: ModelChange = ModelChange::Reinitialise(Reinitialise {});
const LEAVE_OUT: ModelChange = ModelChange::LeaveOut(LeaveOut { fraction: 0.05 });

/// Two noisy clouds.
fn clouds(count: usize) -> (Points, Vec<u32>) {
    let mut rng = Seed(5).rng();
    let mut points = Points::new(3);
    let mut labels = Vec::new();
    for row in 0..count {
        let side = (row % 2) as f32;
        let mut near = |centre: f32| centre + rng.random_range(-0.6_f32..0.6);
        points.push(&[near(side), near(1.0 - side), near(0.5)]);
        labels.push(u32::from(row % 2 == 1));
    }
    (points, labels)
}

fn small() -> TrainParams {
    TrainParams { hidden: vec![8], epochs: 5, ..TrainParams::default() }
}

fn quietly(_: usize, _: &EpochReport) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn ensemble(change: ModelChange, members: usize, params: &TrainParams) -> Ensemble {
    let (points, labels) = clouds(200);
    let examples = Examples::new(&points, &labels);
    let base = train(examples, params, Seed(0)).unwrap().network;
    let plan = Plan { examples, params, change, members, seed: Seed(0) };
    Ensemble::train(base, &plan, quietly).unwrap()
}

#[test]
fn a_member_depends_on_its_number_and_the_change_alone() {
    let params = small();
    let three = ensemble(REINITIALISE, 3, &params);
    let two = ensemble(REINITIALISE, 2, &params);
    assert_eq!(three.members()[..2], *two.members());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| ensemble(REINITIALISE, 3, &params)), three);

    let others = ensemble(LEAVE_OUT, 3, &params);
    let all: Vec<&Mlp> =
        [three.base()].into_iter().chain(three.members()).chain(others.members()).collect();
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b), "model {i} came twice");
    }
}

#[test]
fn leaving_rows_out_is_training_without_them() {
    // The seed of the member, with all the rows.
    let (points, labels) = clouds(100);
    let params = small();
    let examples = Examples::new(&points, &labels);
    let seed = Seed(0).derive("leave-out").index(0);
    let whole = train(examples, &params, seed).unwrap().network;
    let base = train(examples, &params, Seed(0)).unwrap().network;
    let plan = Plan { examples, params: &params, change: LEAVE_OUT, members: 1, seed: Seed(0) };
    let member = Ensemble::train(base, &plan, quietly).unwrap().members()[0].clone();
    assert_ne!(member, whole);
    // Rows the plan does not name are not used either.
    let rows: Vec<usize> = (0..60).collect();
    let named = Plan { examples: examples.with_rows(&rows), change: REINITIALISE, ..plan };
    let base = train(examples, &params, Seed(0)).unwrap().network;
    let member = Ensemble::train(base, &named, quietly).unwrap().members()[0].clone();
    let seed = Seed(0).derive("reinitialise").index(0);
    assert_eq!(member, train(examples.with_rows(&rows), &params, seed).unwrap().network);
}

#[test]
fn retraining_changes_scores_on_the_data_a_little() {
    let params = TrainParams { hidden: vec![16, 16], epochs: 30, ..TrainParams::default() };
    let (points, _) = clouds(200);
    for change in [REINITIALISE, LEAVE_OUT] {
        let observed = ensemble(change, 8, &params).observed_change(&points).unwrap();
        assert!(observed.mean_change > 0.001 && observed.mean_change < 0.2, "{observed:?}");
        assert!(observed.flipped < 0.1, "{observed:?}");
        assert!(observed.bias <= observed.mean_change);
        assert!(observed.lemma_holds(), "{observed:?}");
    }
}

#[test]
fn an_ensemble_that_is_stopped_is_none() {
    let (points, labels) = clouds(50);
    let params = small();
    let examples = Examples::new(&points, &labels);
    let base = train(examples, &params, Seed(0)).unwrap().network;
    let plan = Plan { examples, params: &params, change: REINITIALISE, members: 4, seed: Seed(0) };
    let stop = |member, report: &EpochReport| match (member, report.epoch) {
        (1, 2) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let error = Ensemble::train(base, &plan, stop).unwrap_err().to_string();
    assert_eq!(error, "cancelled: not all 4 models were trained, and none is kept");
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let (points, labels) = clouds(50);
    let params = small();
    let examples = Examples::new(&points, &labels);
    let base = train(examples, &params, Seed(0)).unwrap().network;
    let plan = Plan { examples, params: &params, change: REINITIALISE, members: 1, seed: Seed(0) };
    let other = Points::zeros(50, 2);
    let no_epochs = TrainParams { epochs: 0, ..small() };
    let change = ModelChange::LeaveOut(LeaveOut { fraction: 2.0 });
    for (plan, expected) in [
        (Plan { members: 0, ..plan }, "parameter `models` is 0, expected at least 1"),
        (Plan { change, ..plan }, "parameter `fraction` is 2, expected a number between 0 and 1"),
        (Plan { params: &no_epochs, ..plan }, "parameter `epochs` is 0, expected at least 1"),
        (
            Plan { examples: Examples::new(&other, &labels), ..plan },
            "inputs of the base model, one for each coordinate of the examples: expected 2, got 3",
        ),
    ] {
        let error = Ensemble::train(base.clone(), &plan, quietly).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

fn metadata() -> ExportMetadata {
    ExportMetadata { schema: Some("a schema".into()), encoder: None }
}

fn written(folder: &Path) -> Ensemble {
    let ensemble = ensemble(LEAVE_OUT, 3, &small());
    ensemble.write(folder, &metadata(), Overwrite::Refuse).unwrap();
    ensemble
}

#[test]
fn a_folder_gives_back_what_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let softmax = OutputLayer::Softmax { classes: 2, favourable: 1 };
    let kinds = [
        TrainParams { output: softmax, ..small() },
        TrainParams { hidden: vec![], ..small() },
        TrainParams { hidden: vec![5, 4], activation: Activation::Elu { alpha: 0.7 }, ..small() },
    ];
    for (index, params) in kinds.iter().enumerate() {
        let place = folder.path().join(format!("new/{index}"));
        let ensemble = ensemble(LEAVE_OUT, 2, params);
        ensemble.write(&place, &metadata(), Overwrite::Refuse).unwrap();
        assert_eq!(Ensemble::read(&place).unwrap(), ensemble);
        let member =
            OnnxModel::read(&place.join("member-0001.onnx"), &ImportOptions::default()).unwrap();
        assert_eq!(member.metadata["schema"], "a schema");
    }
}

#[test]
fn an_ensemble_is_replaced_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let first = written(folder.path());
    let other = ensemble(REINITIALISE, 2, &small());
    let refused = other.write(folder.path(), &metadata(), Overwrite::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    assert_eq!(Ensemble::read(folder.path()).unwrap(), first);
    other.write(folder.path(), &metadata(), Overwrite::Force).unwrap();
    assert_eq!(Ensemble::read(folder.path()).unwrap(), other);
}

#[test]
fn a_folder_whose_writing_was_cut_short_is_no_ensemble() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    // The last file in the way: its place is taken by a folder.
    fs::remove_file(folder.path().join("member-0002.onnx")).unwrap();
    fs::create_dir(folder.path().join("member-0002.onnx")).unwrap();
    let failed = ensemble(LEAVE_OUT, 3, &small())
        .write(folder.path(), &metadata(), Overwrite::Force)
        .unwrap_err();
    assert!(failed.to_string().contains("member-0002.onnx"), "{failed}");
    let read = Ensemble::read(folder.path()).unwrap_err().to_string();
    assert!(read.starts_with("cannot read ") && read.contains(MANIFEST), "{read}");
}

#[test]
fn damage_is_named() {
    type Damage<'a> = &'a dyn Fn(&Path);
    let replaced = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let path = folder.join(MANIFEST);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
        }
    };
    let swap = |folder: &Path| {
        fs::copy(folder.join("member-0000.onnx"), folder.join("member-0001.onnx")).unwrap();
    };
    let lose = |folder: &Path| fs::remove_file(folder.join("member-0001.onnx")).unwrap();
    let empty = |folder: &Path| {
        let path = folder.join(MANIFEST);
        let mut text: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        text["members"] = serde_json::json!([]);
        fs::write(&path, text.to_string()).unwrap();
    };
    let cases: [(Damage, &str); 9] = [
        (&swap, "member-0001.onnx: the model's fingerprint is "),
        (&lose, "cannot read "),
        (&empty, "there are no members, expected at least one"),
        (
            &replaced("\"format_version\": 1", "\"format_version\": 2"),
            "`format_version` is 2, expected 1",
        ),
        (&replaced("\"dim\": 3", "\"dim\": 4"), "base.onnx: the model has 3 inputs, expected 4"),
        (&replaced("leave-out", "leave-in"), "not an ensemble: "),
        (&replaced("\"seed\"", "\"sede\""), "not an ensemble: "),
        (&replaced("base.onnx", "../base.onnx"), "`../base.onnx` is not in the folder"),
        (&replaced("{", ""), "not an ensemble: "),
    ];
    for (damage, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        damage(folder.path());
        let error = Ensemble::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} does not say: {expected}");
    }
}
