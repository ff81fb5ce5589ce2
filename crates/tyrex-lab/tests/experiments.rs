//! The experiments of the repository are what they say they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tyrex::counterfactual::Protocol;
use tyrex_lab::experiment::{Suite, Task};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn paper() -> Suite {
    Suite::read(&folder().join("paper.toml")).unwrap()
}

#[test]
fn the_suite_has_every_file_of_the_folder() {
    let names: BTreeSet<String> =
        paper().experiments.into_iter().map(|experiment| experiment.name).collect();
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "paper")
        .collect();
    assert_eq!(names, files);
}

#[test]
fn the_tables_of_the_paper_have_its_setting() {
    for dataset in ["heloc", "german", "ctg", "adult", "taiwan"] {
        let suite = paper();
        let table = suite.experiments.iter().find(|one| one.name == dataset).unwrap();
        assert_eq!(table.beside.as_deref(), Some(dataset));
        let world = &table.world;
        assert_eq!((world.reinitialise, world.leave_out), (50, 50));
        assert!(world.bases >= 3);
        assert_eq!(world.training, tyrex::model::TrainParams::paper());
        let Task::Comparison(task) = &table.task else { panic!("{dataset} is not a comparison") };
        assert_eq!((task.protocol, task.norms.len()), (Protocol::Paper, 2));
        let contenders = task.contenders().unwrap();
        assert!(world.search > 0 && world.tuning > 0);
        for method in
            ["min-cost", "margin", "trex-i", "trex-o", "trex-e", "sns", "roar", "nn", "trex-nn"]
        {
            let contender = contenders.iter().find(|one| one.label == method).unwrap();
            let has_threshold = ["margin", "trex-i", "trex-o", "trex-nn"].contains(&method);
            assert_eq!(contender.calibrated, has_threshold, "{method}");
            if let Some(robustness) = contender.method.robustness() {
                assert_eq!((robustness.sigma, robustness.samples), (0.1, 1000));
            }
        }
    }
}

/// The methods whose cost at the same validity is compared.
const CURVES: [&str; 6] = ["trex-i", "trex-o", "sns", "roar", "margin", "trex-e"];

#[test]
fn every_data_set_has_curves_with_the_papers_and_the_default_training() {
    use tyrex::model::TrainParams;
    for dataset in ["heloc", "german", "ctg", "adult", "taiwan"] {
        for (kind, training) in
            [("curve", TrainParams::paper()), ("regularised", TrainParams::default())]
        {
            let name = format!("{kind}-{dataset}");
            let suite = paper();
            let curve = suite.experiments.iter().find(|one| one.name == name).unwrap();
            assert_eq!(curve.world.training, training, "{name}");
            let Task::Comparison(task) = &curve.task else { panic!("{name} is not a comparison") };
            assert_eq!(task.norms.len(), 2);
            let contenders = task.contenders().unwrap();
            for method in CURVES {
                let swept = contenders.iter().filter(|one| one.label == method).count();
                assert!(swept >= 8, "{name}: {method} has {swept} values");
            }
        }
    }
}

#[test]
fn the_short_run_has_ten_models_to_judge_and_at_most_a_hundred_factuals() {
    for experiment in paper().quick().experiments {
        let world = &experiment.world;
        assert!(world.reinitialise + world.leave_out <= 10, "{}", experiment.name);
        assert!(world.factuals <= 100 && world.bases == 1, "{}", experiment.name);
    }
}

#[test]
fn an_experiment_survives_its_own_file() {
    for experiment in paper().experiments {
        let text = toml::to_string(&experiment).unwrap();
        assert_eq!(toml::from_str::<tyrex_lab::experiment::Experiment>(&text).unwrap(), experiment);
    }
}
