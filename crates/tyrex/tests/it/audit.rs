//! Old promises under a new model, and under several: the gate.

mod gate;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use tyrex::counterfactual::{Norm, Protocol, Reason, Tick};
use tyrex::data::{Column, Row, Table};
use tyrex::explain::{
    AdviceFile, Applicant, Explainer, Gate, GateCandidate, GateReport, JudgedPromise, Part,
    PromiseStatus, Repair, RepairPart, Request, Values, WrittenPromise,
};
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

use crate::support::promises::{promise, row_of};
use crate::support::rules::broken;
use crate::support::{advise, german};

const GO_ON: fn(Tick) -> ControlFlow<()> = |_| ControlFlow::Continue(());

fn trained(seed: u64) -> Explainer {
    let params = TrainParams { hidden: vec![16], epochs: 25, ..TrainParams::paper() };
    Explainer::train(german(), &params, Seed(seed), |_| ControlFlow::Continue(())).unwrap()
}

fn request() -> Request {
    Request::new("min-cost", Protocol::Product, Norm::L1, Seed(4)).unwrap()
}

/// A promise, and the rows it is about.
struct Given {
    factual: Applicant,
    advised: Row,
    written: WrittenPromise,
}

/// The promises of a model, and the table that they were written to.
fn given(explainer: &Explainer) -> (Vec<Given>, Table) {
    let advice =
        advise(explainer, &request(), &explainer.applicants().rejected(Part::Test), GO_ON).unwrap();
    let table = AdviceFile::new(explainer, &request()).table(&advice, None).unwrap();
    let given = advice.into_iter().filter_map(|each| {
        let written = promise(explainer.schema(), &each)?;
        Some(Given { factual: each.applicant, advised: each.advised?, written })
    });
    (given.collect(), table)
}

fn written(given: &[Given]) -> Vec<WrittenPromise> {
    given.iter().map(|each| each.written.clone()).collect()
}

fn judge(
    explainer: &Explainer,
    promises: &[WrittenPromise],
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> GateReport {
    let name = "new".to_owned();
    let candidates = [GateCandidate { name, explainer, has_only_promises: false }];
    Gate::new(request()).judge(&candidates, promises, watch).unwrap()
}

/// Promises of one model, judged by another.
fn audited() -> (Explainer, Vec<Given>, GateReport) {
    let (given, _) = given(&trained(0));
    let new = trained(1);
    let report = judge(&new, &written(&given), GO_ON);
    (new, given, report)
}

fn score(explainer: &Explainer, row: &Row) -> f32 {
    explainer.score(std::slice::from_ref(row)).unwrap()[0]
}

/// The row after a repair that was found, and its cost.
fn found(explainer: &Explainer, repair: &Repair) -> Option<(Row, f64)> {
    match repair {
        Repair::Found { counterfactual, cost, .. } => {
            Some((row_of(explainer.schema(), counterfactual), cost.unwrap().l1))
        }
        Repair::NotFound { .. } => None,
    }
}

/// The repairs of a broken promise, each behind the row that it starts from.
fn repairs<'a>(given: &'a Given, judged: &'a JudgedPromise) -> Option<[(&'a Row, &'a Repair); 2]> {
    let repairs = judged.repairs.as_ref()?;
    let from_factual = repairs.from_factual.as_ref().unwrap();
    Some([(&given.advised, &repairs.from_promised), (&given.factual.values, from_factual)])
}

fn distance(explainer: &Explainer, one: &Row, other: &Row) -> f64 {
    let point = |row: &Row| explainer.encoder().encode(row).unwrap();
    Norm::L1.distance(point(one).as_slice(), point(other).as_slice())
}

#[test]
fn kept_and_broken_promises_are_counted_as_by_hand() {
    let (new, given, report) = audited();
    let judged = &report.candidates[0];
    assert_eq!(judged.promises.len(), given.len());
    let dim = new.points().dim();
    let seed = request().seed.derive("audit");
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, dim, 1000, 0.1, seed).unwrap();
    let mut kept = 0;
    for (given, promise) in given.iter().zip(&judged.promises) {
        let now = score(&new, &given.advised);
        assert_eq!(promise.score, Some(now));
        assert_eq!(promise.factual_score, Some(score(&new, &given.factual.values)));
        assert_eq!(promise.status == PromiseStatus::Kept, now >= 0.5);
        assert_eq!(promise.repairs.is_none(), now >= 0.5);
        kept += usize::from(now >= 0.5);
        let point = new.encoder().encode(&given.advised).unwrap();
        let point = Points::from_rows(dim, point.as_slice().to_vec()).unwrap();
        let gauge = Gauge::new(RelaxedStability {}, new.model(), &cloud).unwrap();
        assert!((gauge.read(&point)[0].value - promise.stability.unwrap()).abs() < 1e-6);
    }
    // The test means nothing unless both occur.
    assert!(kept > 5 && given.len() - kept > 5, "{kept} of {}", given.len());
    let tally = judged.tally;
    assert_eq!((tally.promises, tally.kept, tally.broken), (given.len(), kept, given.len() - kept));
    let share = kept as f64 / given.len() as f64;
    assert_eq!(tally.share_kept, Some(share));
    assert!(tally.interval.0 < share && share < tally.interval.1);
    for (summary, which) in [(&judged.from_promised, 0), (&judged.from_factual, 1)] {
        let pairs = given.iter().zip(&judged.promises);
        let costs: Vec<f64> = pairs
            .filter_map(|(given, promise)| Some(repairs(given, promise)?[which].1))
            .filter_map(|repair| Some(found(&new, repair)?.1))
            .collect();
        assert_eq!(summary.found, costs.len());
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        assert!((summary.mean_l1.unwrap() - mean).abs() < 1e-9);
        assert_eq!(
            summary.found + summary.not_found + summary.cancelled + summary.already_favourable,
            tally.broken
        );
    }
    assert_eq!(judged.from_promised.already_favourable, 0);
    // A person who has gone most of the way has less to do. Not a law, but so on the whole.
    assert!(judged.from_promised.mean_l1 < judged.from_factual.mean_l1, "{judged:?}");
}

#[test]
fn repairs_are_accepted_and_obey_the_rules() {
    let (new, given, report) = audited();
    let mut count = 0;
    for (given, promise) in given.iter().zip(&report.candidates[0].promises) {
        for (start, repair) in repairs(given, promise).into_iter().flatten() {
            let Some((row, cost)) = found(&new, repair) else { continue };
            count += 1;
            assert!(score(&new, &row) >= 0.5);
            let wrong = broken(new.schema(), start, &row);
            assert!(wrong.is_empty(), "{}: {wrong:?}", promise.name);
            // The repair of a promise obeys the rules of the person too.
            assert!(broken(new.schema(), &given.factual.values, &row).is_empty());
            assert!((cost - distance(&new, &row, start)).abs() < 1e-6);
            assert!(!repair.changes().unwrap().is_empty());
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn no_repair_is_missed_that_the_other_start_found() {
    let (new, given, report) = audited();
    let mut shared = 0;
    for (given, promise) in given.iter().zip(&report.candidates[0].promises) {
        let Some([promised, factual]) = repairs(given, promise) else { continue };
        for ((start, own), (_, other)) in [(promised, factual), (factual, promised)] {
            if matches!(own, Repair::NotFound { reason: Reason::AlreadyFavourable, .. }) {
                continue;
            }
            let Some((row, _)) = found(&new, other) else { continue };
            if !broken(new.schema(), start, &row).is_empty() {
                continue;
            }
            let cost = distance(&new, &row, start);
            let (own, own_cost) = found(&new, own).unwrap();
            assert!(own_cost <= cost + 1e-9, "{}", promise.name);
            shared += usize::from(own == row);
        }
    }
    assert!(shared > 0);
}

#[test]
fn a_model_keeps_its_own_promises() {
    let explainer = trained(0);
    let (given, _) = given(&explainer);
    let answers = AtomicUsize::new(0);
    let report = judge(&explainer, &written(&given), |tick| {
        answers.fetch_add(usize::from(tick == Tick::Answered), Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    assert!(report.passes());
    let judged = &report.candidates[0];
    assert!(judged.promises.iter().all(|each| each.status == PromiseStatus::Kept));
    assert!(judged.promises.iter().all(|each| each.repairs.is_none()));
    assert_eq!(answers.into_inner(), 2 * given.len());
    assert_eq!((judged.tally.kept, judged.tally.share_kept), (given.len(), Some(1.0)));
    assert_eq!(judged.from_promised.mean_l1, None);
}

#[test]
fn threads_change_nothing() {
    let (given, _) = given(&trained(0));
    let (new, written) = (trained(1), written(&given));
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let report = pool.install(|| judge(&new, &written, GO_ON));
        serde_json::to_string(&report).unwrap()
    };
    let one = with(1);
    assert_eq!(one, with(4));
    // A promise is judged alone as among others.
    let alone = judge(&new, &written[3..4], GO_ON);
    let all: GateReport = serde_json::from_str(&one).unwrap();
    let value = |report: &GateReport, place: usize| {
        serde_json::to_value(&report.candidates[0].promises[place]).unwrap()
    };
    assert_eq!(value(&all, 3), value(&alone, 0));
}

#[test]
fn work_that_was_stopped_is_reported() {
    let (given, _) = given(&trained(0));
    let (new, written) = (trained(1), written(&given));
    let whole = judge(&new, &written, GO_ON).candidates.remove(0);
    let kept = whole.tally.kept;
    for after in [0, 1, 2 * kept, 2 * kept + 10] {
        let answers = AtomicUsize::new(0);
        let judged = judge(&new, &written, |tick| match tick {
            Tick::Answered if answers.fetch_add(1, Ordering::Relaxed) >= after => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })
        .candidates
        .remove(0);
        assert_eq!(judged.tally.kept, kept, "what is kept is known all the same");
        let cancelled = judged.from_promised.cancelled + judged.from_factual.cancelled;
        assert!(cancelled > 0 && cancelled <= 2 * judged.tally.broken);
        if after < 2 * kept {
            assert_eq!(cancelled, 2 * judged.tally.broken);
        }
        // The finished rows are those of a whole run. Each start uses the other's result once both
        // are there.
        for (own, full) in judged.promises.iter().zip(&whole.promises) {
            let Some(repairs) = &own.repairs else { continue };
            let stopped = |repair: &Repair| {
                matches!(repair, Repair::NotFound { reason: Reason::Cancelled, .. })
            };
            if !stopped(&repairs.from_promised)
                && !repairs.from_factual.as_ref().is_some_and(stopped)
            {
                assert_eq!(own, full);
            }
        }
    }
}

#[test]
fn files_of_advice_and_of_earlier_audits_become_promises() {
    let old = trained(0);
    let (given, file) = given(&old);
    let new = trained(1);
    let people = old.reference().table();
    let read = WrittenPromise::of_advice(&file, Some(people)).unwrap();
    let statuses = |promises: &[WrittenPromise]| -> Vec<PromiseStatus> {
        let report = judge(&new, promises, GO_ON);
        report.candidates[0].promises.iter().map(|each| each.status).collect()
    };
    assert_eq!(statuses(&read), statuses(&written(&given)));
    // The audits of earlier versions wrote files of advice with columns of their own.
    let mut columns: Vec<Column> = file.columns().to_vec();
    for name in ["promise", "promised_score", "factual_status", "factual_cost_l1"] {
        let mut column = Column::new(name);
        (0..file.rows()).for_each(|_| column.push("0"));
        columns.push(column);
    }
    let audit = Table::new("audit", columns).unwrap();
    assert_eq!(WrittenPromise::of_advice(&audit, Some(people)).unwrap(), read);
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let explainer = trained(0);
    let (given, _) = given(&explainer);
    let paper = Request::new("min-cost", Protocol::Paper, Norm::L1, Seed(4)).unwrap();
    let name = "new".to_owned();
    let candidates = [GateCandidate { name, explainer: &explainer, has_only_promises: false }];
    let error = Gate::new(paper).judge(&candidates, &written(&given), GO_ON).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parameter `protocol` is paper, expected product, since promises are rows"
    );
    let over_models = Request::new("trex-e", Protocol::Product, Norm::L1, Seed(4)).unwrap();
    let error = Gate::new(over_models).judge(&candidates, &written(&given), GO_ON).unwrap_err();
    assert!(
        error.to_string().contains("a candidate with an ensemble of its retrained models"),
        "{error}"
    );
    // A row of another schema cannot be read, and counts as broken.
    let other = Values::from([("x".to_owned(), 1.0.into())]);
    let name = "row 7".to_owned();
    let promise =
        WrittenPromise { name, factual: None, advised: other, meaning: None, promised: None };
    let report = judge(&explainer, &[promise], GO_ON);
    let judged = &report.candidates[0].promises[0];
    assert_eq!((judged.status, report.passes()), (PromiseStatus::Unreadable, false));
}

#[test]
fn the_parts_of_an_audit_make_the_whole() {
    let (given, _) = given(&trained(0));
    let promises = written(&given);
    let (one, other) = (trained(1), trained(2));
    let named = [("one", &one), ("other", &other)];
    let candidates = named.map(|(name, explainer)| GateCandidate {
        name: name.to_owned(),
        explainer,
        has_only_promises: false,
    });
    let gate = Gate { by: vec!["age:25,40".parse().unwrap()], ..Gate::new(request()) };
    let whole = gate.judge(&candidates, &promises, GO_ON).unwrap();
    let broken = whole.candidates.iter().map(|own| own.tally.broken).max().unwrap();
    assert!(broken > 4, "{broken}");
    // More parts than promises leave some of them empty.
    for parts in [1, 3, broken + 2] {
        let mut reports: Vec<GateReport> = (1..=parts)
            .rev()
            .map(|part| {
                let part = RepairPart::new(part, parts).unwrap();
                let report =
                    gate.judge_part(Some(part), &candidates, promises.clone(), GO_ON).unwrap();
                // As it is kept in a file.
                serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap()
            })
            .collect();
        let joined = GateReport::joined(reports.clone()).unwrap();
        let [joined, whole] = [&joined, &whole].map(|own| {
            // Times are not answers, and reports have none.
            serde_json::to_string(own).unwrap()
        });
        assert_eq!(joined, whole, "{parts}");
        let refused = |reports: Vec<GateReport>, words: &str| {
            let error = GateReport::joined(reports).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        if parts == 3 {
            refused(reports[1..].to_vec(), "3/3 is missing");
            refused(vec![reports[0].clone(); 3], "is missing");
            refused([&reports[..], &reports[..1]].concat(), "3/3 is repeated");
            reports[1].allow = 0.5;
            refused(reports, "has other promises, candidates or terms");
        }
    }
    let error = GateReport::joined(vec![whole]).unwrap_err().to_string();
    assert!(error.contains("one is not of a part"), "{error}");
    for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/3"] {
        assert!(wrong.parse::<RepairPart>().is_err(), "{wrong}");
    }
    assert_eq!("2/8".parse::<RepairPart>().unwrap().to_string(), "2/8");
}
