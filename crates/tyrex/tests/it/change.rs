//! Ensembles: what members depend on, what they look like on the data, and their folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rand::RngExt;
use tyrex::change::{
    Architecture, Dropout, Ensemble, LeaveOut, MANIFEST, ModelChange, PLAN, Plan, Reinitialise,
    WeightNoise,
};
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::onnx::ExportMetadata;
use tyrex::model::train::{EpochReport, OutputLayer};
use tyrex::model::{Activation, Examples, Mlp, Model, Output, TrainParams, train};
use tyrex::{Error, Overwrite, Points, Result, Seed};

const REINITIALISE: ModelChange = ModelChange::Reinitialise(Reinitialise {});
const LEAVE_OUT: ModelChange = ModelChange::LeaveOut(LeaveOut { fraction: 0.05 });

/// One of each, quick to train.
fn changes() -> Vec<ModelChange> {
    let small = Architecture { hidden: vec![vec![12], vec![16, 20], vec![16, 8, 8]] };
    let mut all = ModelChange::all();
    for change in &mut all {
        match change {
            ModelChange::Architecture(architecture) => *architecture = small.clone(),
            // At the default rate, two members of eight units may lose the same ones.
            ModelChange::Dropout(dropout) => *dropout = Dropout { rate: 0.3 },
            _ => {}
        }
    }
    all
}

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
    TrainParams { hidden: vec![8], epochs: 5, ..TrainParams::paper() }
}

fn quietly(_: usize, _: &EpochReport) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The base of the ensembles of these tests.
struct Workshop {
    points: Points,
    labels: Vec<u32>,
    rows: Vec<usize>,
    fresh: Vec<usize>,
    params: TrainParams,
    base: Mlp,
}

impl Workshop {
    /// Of the rows, every fifth is fresh.
    fn new(count: usize, params: TrainParams) -> Self {
        let (points, labels) = clouds(count);
        let (fresh, rows): (Vec<usize>, Vec<usize>) = (0..count).partition(|row| row % 5 == 0);
        let examples = Examples::new(&points, &labels).with_rows(&rows);
        let base = train(examples, &params, Seed(0)).unwrap().network;
        Self { points, labels, rows, fresh, params, base }
    }

    fn plan<'a>(&'a self, change: &'a ModelChange, members: usize) -> Plan<'a> {
        Plan {
            examples: Examples::new(&self.points, &self.labels).with_rows(&self.rows),
            fresh: &self.fresh,
            params: &self.params,
            change,
            members,
            seed: Seed(0),
        }
    }

    fn ensemble(&self, change: &ModelChange, members: usize) -> Ensemble {
        Ensemble::train(self.base.clone(), &self.plan(change, members), quietly).unwrap()
    }

    fn write(&self, folder: &Path, plan: &Plan<'_>) -> Result<Ensemble> {
        let base = self.base.clone();
        Ensemble::train_into(folder, base, plan, &metadata(), Overwrite::Refuse, quietly)
    }
}

#[test]
fn a_member_depends_on_its_number_and_the_change_alone() {
    let workshop = Workshop::new(200, small());
    let mut all: Vec<Arc<dyn Model>> = vec![Arc::new(workshop.base.clone())];
    for change in &changes() {
        let three = workshop.ensemble(change, 3);
        assert_eq!(three.members()[..2], *workshop.ensemble(change, 2).members());
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| workshop.ensemble(change, 3)), three, "{}", change.name());
        }
        all.extend_from_slice(three.members());
    }
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b), "model {i} came twice");
    }
}

#[test]
fn leaving_rows_out_is_training_without_them() {
    // The seed of the member, with all the rows.
    let workshop = Workshop::new(100, small());
    let Workshop { points, labels, rows, params, .. } = &workshop;
    let examples = Examples::new(points, labels).with_rows(rows);
    let seed = Seed(0).derive("leave-out").index(0);
    let whole = train(examples, params, seed).unwrap().network;
    assert_ne!(workshop.ensemble(&LEAVE_OUT, 1).members()[0].network(), Some(&whole));
    // Rows the plan does not name are not used either.
    let seed = Seed(0).derive("reinitialise").index(0);
    let member = workshop.ensemble(&REINITIALISE, 1).members()[0].clone();
    assert_eq!(member.network(), Some(&train(examples, params, seed).unwrap().network));
}

#[test]
fn every_change_moves_scores_on_the_data_a_little() {
    let params = TrainParams { hidden: vec![16, 16], epochs: 80, ..TrainParams::paper() };
    let workshop = Workshop::new(250, params);
    for change in &changes() {
        let observed = workshop.ensemble(change, 8).observed_change(&workshop.points).unwrap();
        let name = change.name();
        assert!(observed.mean_change > 1e-4 && observed.mean_change < 0.2, "{name} {observed:?}");
        assert!(observed.flipped < 0.1, "{name} {observed:?}");
        assert!(observed.bias <= observed.mean_change);
        assert!(observed.mean_variance() <= observed.largest_variance());
    }
}

#[test]
fn fine_tuning_and_noise_stay_closer_than_training_anew() {
    let params = TrainParams { hidden: vec![16, 16], epochs: 30, ..TrainParams::paper() };
    let workshop = Workshop::new(250, params);
    let moved = |name: &str| {
        let ensemble = workshop.ensemble(&ModelChange::named(name).unwrap(), 8);
        ensemble.observed_change(&workshop.points).unwrap().mean_change
    };
    let anew = moved("reinitialise");
    assert!(moved("weight-noise") < anew);
    let tuned = moved("fine-tune");
    assert!(tuned < anew, "{tuned} {anew}");
}

#[test]
fn an_ensemble_that_is_stopped_is_none() {
    let workshop = Workshop::new(50, small());
    let stop = |member, report: &EpochReport| match (member, report.epoch) {
        (1, 2) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let plan = workshop.plan(&REINITIALISE, 4);
    let error = Ensemble::train(workshop.base.clone(), &plan, stop).unwrap_err().to_string();
    assert_eq!(error, "cancelled: not all 4 models were made");
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let workshop = Workshop::new(50, small());
    let plan = workshop.plan(&REINITIALISE, 1);
    let other = Points::zeros(50, 2);
    let no_epochs = TrainParams { epochs: 0, ..small() };
    let wider = TrainParams { hidden: vec![9], ..small() };
    let too_many = ModelChange::LeaveOut(LeaveOut { fraction: 2.0 });
    let fine_tune = &ModelChange::named("fine-tune").unwrap();
    let noise = ModelChange::WeightNoise(WeightNoise { delta: -1.0 });
    let none = ModelChange::Architecture(Architecture { hidden: vec![] });
    let hyperparameters = ModelChange::with_params("hyperparameters", "batch = 0.5").unwrap();
    for (plan, expected) in [
        (Plan { members: 0, ..plan }, "parameter `models` is 0, expected at least 1"),
        (
            Plan { members: usize::MAX, ..plan },
            "parameter `models` is 18446744073709551615, expected at most 10000",
        ),
        (
            Plan { change: &too_many, ..plan },
            "parameter `fraction` is 2, expected a number between 0 and 1",
        ),
        (Plan { params: &no_epochs, ..plan }, "parameter `epochs` is 0, expected at least 1"),
        (
            Plan { examples: Examples::new(&other, &workshop.labels), ..plan },
            "inputs of the base model, one for each coordinate of the examples: expected 2, got 3",
        ),
        (
            Plan { change: fine_tune, fresh: &[], ..plan },
            "parameter `fresh` is 0 rows, expected at least 4, with labels, that the base was not \
             trained on: 10 % of its 40 rows are replaced by new ones",
        ),
        (
            Plan { change: fine_tune, params: &wider, ..plan },
            "parameter `hidden` is [9], expected [8], the layers of the network to start from",
        ),
        (
            Plan { change: fine_tune, fresh: &[100, 101, 102, 103], ..plan },
            "training: row 100 was requested, but there are 50",
        ),
        (Plan { change: &noise, ..plan }, "parameter `delta` is -1, expected a positive number"),
        (
            Plan { change: &none, ..plan },
            "parameter `hidden` is [], expected at least one list of widths to draw from",
        ),
        (
            Plan { change: &hyperparameters, ..plan },
            "parameter `batch` is 0.5, expected a factor from 1 to 100",
        ),
    ] {
        let base = workshop.base.clone();
        let error = Ensemble::train(base, &plan, quietly).unwrap_err().to_string();
        assert_eq!(error, expected);
        // The same into a folder, which does not become an ensemble.
        let folder = tempfile::tempdir().unwrap();
        let error = workshop.write(folder.path(), &plan).unwrap_err().to_string();
        assert_eq!(error, expected);
        assert!(!folder.path().join(MANIFEST).exists());
        // And nothing is in the way of a better plan.
        workshop.write(folder.path(), &workshop.plan(&REINITIALISE, 1)).unwrap();
    }
}

fn metadata() -> ExportMetadata {
    ExportMetadata { schema: Some("a schema".into()), ..ExportMetadata::default() }
}

fn written(folder: &Path) -> Ensemble {
    let ensemble = Workshop::new(200, small()).ensemble(&LEAVE_OUT, 3);
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
    for (index, params) in kinds.into_iter().enumerate() {
        let place = folder.path().join(format!("new/{index}"));
        let ensemble = Workshop::new(200, params).ensemble(&LEAVE_OUT, 2);
        ensemble.write(&place, &metadata(), Overwrite::Refuse).unwrap();
        assert_eq!(Ensemble::read(&place).unwrap(), ensemble);
        let member =
            ModelFile::read(&place.join("member-0001.onnx"), &ImportOptions::default()).unwrap();
        assert_eq!(member.metadata["schema"], "a schema");
    }
}

/// Networks from elsewhere may have their logits the other way round.
#[test]
fn a_folder_gives_back_networks_of_any_output() {
    let folder = tempfile::tempdir().unwrap();
    let workshop = Workshop::new(50, small());
    let noise = ModelChange::WeightNoise(WeightNoise { delta: 0.1 });
    let plan = workshop.plan(&noise, 2);
    for (index, output) in [
        Output::Sigmoid { favourable: true },
        Output::Sigmoid { favourable: false },
        Output::Softmax { favourable: 0 },
        Output::Softmax { favourable: 2 },
    ]
    .into_iter()
    .enumerate()
    {
        let mut layers = workshop.base.layers();
        if let (Output::Softmax { .. }, Some(last)) = (output, layers.last_mut()) {
            last.weights = last.weights.iter().flat_map(|&w| [w, 0.2 - w, 0.5 * w]).collect();
            last.bias = vec![0.1, 0.2, 0.3];
        }
        let base = Mlp::new(3, &layers, output).unwrap();
        let place = folder.path().join(index.to_string());
        let into = || {
            let base = base.clone();
            Ensemble::train_into(&place, base, &plan, &metadata(), Overwrite::Refuse, quietly)
        };
        let ensemble = into().unwrap();
        assert_eq!(Ensemble::read(&place).unwrap(), ensemble, "{output:?}");
        let before = files(&place);
        assert_eq!(into().unwrap(), ensemble, "{output:?}");
        assert!(files(&place) == before, "{output:?}");
    }
}

#[test]
fn an_ensemble_is_replaced_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let first = written(folder.path());
    let other = Workshop::new(200, small()).ensemble(&REINITIALISE, 2);
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
    let failed = Workshop::new(200, small())
        .ensemble(&LEAVE_OUT, 3)
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
    let repeat = |copies: bool| {
        move |folder: &Path| {
            let path = folder.join(MANIFEST);
            let mut text: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let mut again = text["members"][0].clone();
            if copies {
                let file = folder.join(again["file"].as_str().unwrap());
                fs::copy(file, folder.join("member-0007.onnx")).unwrap();
                again["file"] = "member-0007.onnx".into();
            }
            text["members"].as_array_mut().unwrap().push(again);
            fs::write(&path, text.to_string()).unwrap();
        }
    };
    let (repeated, copied) = (repeat(false), repeat(true));
    let cases: [(Damage, &str); 11] = [
        (&repeated, "`member-0000.onnx` is listed twice, expected each member once"),
        (&copied, "`member-0007.onnx` is the same model as `member-0000.onnx`"),
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

/// The manifest as the first version wrote it, word by word.
#[test]
fn folders_of_the_first_version_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let ensemble = written(folder.path());
    let print = |model: &Arc<dyn Model>| model.identity().unwrap();
    let members = ensemble.members();
    let text = format!(
        r#"{{"format_version": 1, "change": {{"name": "leave-out", "fraction": 0.05}}, "seed": 0,
        "params": {{"hidden": [8], "activation": "relu", "output": "sigmoid",
        "initialisation": "glorot-uniform", "epochs": 5, "batch": 32, "learning-rate": 0.001,
        "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7, "schedule": "constant", "l2": 0.0,
        "dropout": 0.0, "class-weights": "none", "early-stopping": null}}, "dim": 3,
        "base": {{"file": "base.onnx", "fingerprint": "{}"}}, "members": [
        {{"file": "member-0000.onnx", "fingerprint": "{}"}},
        {{"file": "member-0001.onnx", "fingerprint": "{}"}},
        {{"file": "member-0002.onnx", "fingerprint": "{}"}}]}}"#,
        print(ensemble.base()),
        print(&members[0]),
        print(&members[1]),
        print(&members[2])
    );
    fs::write(folder.path().join(MANIFEST), text).unwrap();
    assert_eq!(Ensemble::read(folder.path()).unwrap(), ensemble);
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Trains into the folder; the members that were made and not read.
fn made(workshop: &Workshop, folder: &Path, plan: &Plan<'_>) -> (Ensemble, BTreeSet<usize>) {
    let heard = Mutex::new(BTreeSet::new());
    let listen = |member, _: &EpochReport| {
        heard.lock().unwrap().insert(member);
        ControlFlow::Continue(())
    };
    let base = workshop.base.clone();
    let refuse = Overwrite::Refuse;
    let made = Ensemble::train_into(folder, base, plan, &metadata(), refuse, listen).unwrap();
    (made, heard.into_inner().unwrap())
}

#[test]
fn a_resumed_ensemble_has_the_bits_of_an_undisturbed_one() {
    let workshop = Workshop::new(100, small());
    for change in &changes() {
        let plan = workshop.plan(change, 4);
        let (quiet, disturbed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let undisturbed = workshop.write(quiet.path(), &plan).unwrap();
        assert_eq!(undisturbed, workshop.ensemble(change, 4), "{}", change.name());
        assert_eq!(Ensemble::read(quiet.path()).unwrap(), undisturbed);

        // Two members are lost, one is cut short, and there is what a killed process leaves.
        let folder = disturbed.path().join("not/there");
        workshop.write(&folder, &plan).unwrap();
        fs::remove_file(folder.join(MANIFEST)).unwrap();
        fs::remove_file(folder.join("member-0000.onnx")).unwrap();
        fs::remove_file(folder.join("member-0003.onnx")).unwrap();
        let whole = fs::read(folder.join("member-0002.onnx")).unwrap();
        fs::write(folder.join("member-0002.onnx"), &whole[..whole.len() / 2]).unwrap();
        fs::write(folder.join(".tyrex-killed.part"), "half").unwrap();
        let (resumed, heard) = made(&workshop, &folder, &plan);
        assert_eq!(resumed, undisturbed);
        // Members are heard of where all of them are trained.
        if change.epochs(plan.params) > 0.0 {
            assert_eq!(heard, [0, 2, 3].into());
        }
        fs::remove_file(folder.join(".tyrex-killed.part")).unwrap();
        assert!(files(&folder) == files(quiet.path()), "{}", change.name());

        // A member in another's place is found out by the manifest.
        fs::copy(folder.join("member-0000.onnx"), folder.join("member-0001.onnx")).unwrap();
        assert_eq!(made(&workshop, &folder, &plan).0, undisturbed);
        assert!(files(&folder) == files(quiet.path()), "{}", change.name());

        // Complete: nothing is made, nothing is written.
        let before = fs::metadata(folder.join(MANIFEST)).unwrap().modified().unwrap();
        assert_eq!(made(&workshop, &folder, &plan), (undisturbed, BTreeSet::new()));
        assert_eq!(fs::metadata(folder.join(MANIFEST)).unwrap().modified().unwrap(), before);
    }
}

#[test]
fn a_stopped_ensemble_keeps_what_is_finished() {
    let workshop = Workshop::new(100, small());
    let plan = workshop.plan(&REINITIALISE, 4);
    let folder = tempfile::tempdir().unwrap();
    let stop = |member, report: &EpochReport| match (member, report.epoch) {
        (2, 3) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    // On one thread members are made one after the other.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let stopped = pool.install(|| {
        let base = workshop.base.clone();
        let refuse = Overwrite::Refuse;
        Ensemble::train_into(folder.path(), base, &plan, &metadata(), refuse, stop)
    });
    let error = stopped.unwrap_err().to_string();
    assert_eq!(error, "cancelled: not all 4 models were made; those that were are kept");
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["base.onnx", "member-0000.onnx", "member-0001.onnx", PLAN]);
    let (resumed, heard) = made(&workshop, folder.path(), &plan);
    assert_eq!(heard, [2, 3].into());
    assert_eq!(resumed, workshop.ensemble(&REINITIALISE, 4));
}

#[test]
fn an_ensemble_can_grow() {
    let workshop = Workshop::new(100, small());
    let folder = tempfile::tempdir().unwrap();
    let grown = |members| made(&workshop, folder.path(), &workshop.plan(&LEAVE_OUT, members));
    assert_eq!(grown(2).1, [0, 1].into());
    let (four, heard) = grown(4);
    assert_eq!(heard, [2, 3].into());
    assert_eq!(four, workshop.ensemble(&LEAVE_OUT, 4));
    // The folder has the models of the last plan.
    let (three, heard) = grown(3);
    assert_eq!((three.members(), heard.len()), (&four.members()[..3], 0));
    assert_eq!(Ensemble::read(folder.path()).unwrap(), three);
}

#[test]
fn another_plan_is_refused_or_replaces_everything() {
    let workshop = Workshop::new(100, small());
    let plan = workshop.plan(&REINITIALISE, 4);
    let longer = TrainParams { epochs: 6, ..small() };
    let flipped: Vec<u32> = workshop.labels.iter().map(|label| 1 - label).collect();
    let retold = Examples::new(&workshop.points, &flipped).with_rows(&workshop.rows);
    let fewer = Examples::new(&workshop.points, &workshop.labels).with_rows(&workshop.rows[1..]);
    for (other, differs) in [
        (Plan { change: &LEAVE_OUT, ..plan }, "`change`"),
        (Plan { seed: Seed(1), ..plan }, "`seed`"),
        (Plan { params: &longer, ..plan }, "`params`"),
        (Plan { examples: retold, ..plan }, "`data`"),
        (Plan { examples: fewer, ..plan }, "`data`"),
        (Plan { fresh: &[], ..plan }, "`data`"),
        (Plan { change: &LEAVE_OUT, seed: Seed(1), ..plan }, "`change`, `seed`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        workshop.write(folder.path(), &plan).unwrap();
        let before = files(folder.path());
        let error = workshop.write(folder.path(), &other).unwrap_err().to_string();
        let expected = format!("of another plan, which differs in {differs}");
        assert!(error.contains(&expected), "{error}");
        assert!(files(folder.path()) == before);
        // With half of the members, so that none of the others may be taken for one of them.
        let base = || workshop.base.clone();
        let two = Plan { members: 2, ..other };
        let replace = Overwrite::Force;
        Ensemble::train_into(folder.path(), base(), &two, &metadata(), replace, quietly).unwrap();
        let four = Plan { members: 4, ..other };
        let grown = workshop.write(folder.path(), &four).unwrap();
        assert_eq!(grown, Ensemble::train(base(), &four, quietly).unwrap());
    }
}

#[test]
fn what_no_plan_made_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let workshop = Workshop::new(200, small());
    let plan = workshop.plan(&LEAVE_OUT, 3);
    written(folder.path());
    let refused = workshop.write(folder.path(), &plan).unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    // Not even without a manifest: who knows whose they are.
    fs::remove_file(folder.path().join(MANIFEST)).unwrap();
    let refused = workshop.write(folder.path(), &plan).unwrap_err().to_string();
    assert!(refused.contains("member-0000.onnx"), "{refused}");

    // Nor is an ensemble that was written over a plan's taken for what the plan made.
    let folder = tempfile::tempdir().unwrap();
    workshop.write(folder.path(), &plan).unwrap();
    let other = workshop.ensemble(&REINITIALISE, 3);
    other.write(folder.path(), &metadata(), Overwrite::Force).unwrap();
    assert!(!folder.path().join(PLAN).exists());
    workshop.write(folder.path(), &plan).unwrap_err();
    assert_eq!(Ensemble::read(folder.path()).unwrap(), other);
    // Damage to the plan itself is named.
    let folder = tempfile::tempdir().unwrap();
    workshop.write(folder.path(), &plan).unwrap();
    fs::write(folder.path().join(PLAN), "{").unwrap();
    let refused = workshop.write(folder.path(), &plan).unwrap_err().to_string();
    assert!(refused.contains("not a plan"), "{refused}");
}
