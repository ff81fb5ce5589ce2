//! From a dirty table to a file of advice and back: what is written is what was tested.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use rand::RngExt;
use tyrex::counterfactual::{MethodSpec, Norm, Protocol, SearchNeighbours};
use tyrex::data::{Dataset, Row, Schema, Table};
use tyrex::explain::{AdviceFile, AdviceRows, Explainer, Part, Request};
use tyrex::model::TrainParams;
use tyrex::neighbourhood::Sampling;
use tyrex::{Overwrite, Seed};

use crate::support::rules::broken;
use crate::support::{advise, with_search_models};

/// Cells finer than their step and beyond their clip, codes, missing cells that are not empty,
/// levels with commas and quotes, and a rule that some rows break.
const SCHEMA: &str = include_str!("../schemas/everything.toml");

fn table() -> Table {
    let mut rng = Seed(11).rng();
    let mut csv = "income,instalment,age,debts,savings,home,grade,paid\n".to_owned();
    for _ in 0..500 {
        let income = rng.random_range(300.0..11_000.0_f64);
        let instalment = rng.random_range(0.0..300.0_f64);
        let debts = if rng.random_bool(0.1) { -9 } else { rng.random_range(0..=40) };
        let savings = rng.random_range(-1e4..1e5_f64);
        let home = rng.random_range(0..4_usize);
        let grade = rng.random_range(0..3_usize);
        let worth = income / 3000.0 - instalment / 100.0 - f64::from(debts.max(0)) / 15.0
            + savings / 4e4
            + grade as f64;
        let savings = if rng.random_bool(0.2) { "?".to_owned() } else { savings.to_string() };
        let home = ["\"rent, \"\"furnished\"\"\"", "own", "free", "?"][home];
        let grade = ["low", "middle", "high"][grade];
        let paid = if worth > 1.5 { "yes" } else { "no" };
        let age = rng.random_range(18..=99);
        let _ =
            writeln!(csv, "{income},{instalment},{age},{debts},{savings},{home},{grade},{paid}");
    }
    Table::from_csv(Path::new("people.csv"), csv.as_bytes()).unwrap()
}

fn explainer() -> Explainer {
    let dataset = Dataset::load(&Schema::from_toml(SCHEMA).unwrap(), table()).unwrap();
    let params = TrainParams { hidden: vec![12], epochs: 30, ..TrainParams::paper() };
    Explainer::train(dataset, &params, Seed(2), |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_file_of_advice_holds_the_rows_that_were_tested() {
    let explainer = with_search_models(&explainer());
    let rejected = explainer.applicants().rejected(Part::Train);
    let rows = &rejected[..60];
    let folder = tempfile::tempdir().unwrap();
    for name in MethodSpec::NAMES {
        let mut request = Request::new(name, Protocol::Product, Norm::L1, Seed(4)).unwrap();
        if let Some(robustness) = request.method.robustness_mut() {
            (robustness.tau, robustness.samples) = (0.6, 200);
            robustness.search = SearchNeighbours { sampling: Sampling::Antithetic, samples: 64 };
        }
        let advice = advise(&explainer, &request, rows, |_| ControlFlow::Continue(())).unwrap();
        let found: Vec<_> = advice.iter().filter(|each| each.found().is_some()).collect();
        // ROAR guards against more than some of these people can do.
        assert!(found.len() >= if name == "roar" { 5 } else { 40 }, "{name}: {}", found.len());
        for each in &found {
            let before = &each.applicant.values;
            let after = each.advised.as_ref().unwrap();
            let wrong = broken(explainer.schema(), before, after);
            assert!(wrong.is_empty(), "{name}, row {}: {wrong:?}", each.applicant.row);
            // The stated changes are the changes, to the last digit.
            let differ = before.values().iter().zip(after.values()).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), each.changes.len());
            assert!(!each.changes.is_empty());
            let columns = explainer.encoder().encode(after).unwrap().into_vec();
            assert_eq!(columns, each.found().unwrap().point);
        }
        for file in ["advice.csv", "advice.jsonl", "advice.parquet"] {
            let path = folder.path().join(format!("{name}-{file}"));
            let table = AdviceFile::new(&explainer, &request).table(&advice, None).unwrap();
            table.write(&path, Overwrite::Refuse).unwrap();
            let given = AdviceRows::read(explainer.schema(), &Table::read(&path).unwrap()).unwrap();
            let expected: Vec<&Row> =
                found.iter().map(|each| each.advised.as_ref().unwrap()).collect();
            let read: Vec<&Row> = given.data.rows().iter().collect();
            assert_eq!(read, expected, "{name} {file}");
            assert_eq!(given.not_found, rows.len() - found.len());
            let factuals: Vec<usize> = found.iter().map(|each| each.applicant.row).collect();
            assert_eq!(given.factuals, factuals);
        }
    }
}
