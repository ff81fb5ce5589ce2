//! Old promises under a new model, and under several: the gate.

mod gate;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use tyrex::counterfactual::{Norm, Protocol, Reason, Tick};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Dataset, Row, Table};
use tyrex::explain::{
    Advice, AuditSummary, AuditedPromise, Explainer, GivenRows, Part, Promise, Repairs, Request,
};
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

use crate::support::rules::broken;

const GO_ON: fn(Tick) -> ControlFlow<()> = |_| ControlFlow::Continue(());

fn german() -> Dataset {
    let catalogue = Catalogue::with_folders(Vec::new());
    catalogue.load("german", Variant::Product, Direction::Favourable).unwrap()
}

fn trained(seed: u64) -> Explainer {
    let params = TrainParams { hidden: vec![16], epochs: 25, ..TrainParams::default() };
    Explainer::train(german(), &params, Seed(seed), |_| ControlFlow::Continue(())).unwrap()
}

fn request() -> Request {
    Request::new("min-cost", Protocol::Product, Norm::L1, Seed(4)).unwrap()
}

/// What a model promised, and the table it was written down in.
fn given(explainer: &Explainer) -> (Vec<Promise>, Table) {
    let advice = explainer.advise(&explainer.rejected(Part::Test), &request(), GO_ON).unwrap();
    let table = explainer.advice_table(&advice, &request()).unwrap();
    let promises = advice.into_iter().filter_map(|each| {
        let Advice { applicant, advised, .. } = each;
        Some(Promise { row: applicant.row, factual: Some(applicant.values), advised: advised? })
    });
    (promises.collect(), table)
}

/// Promises of one model, audited under another.
fn audited() -> (Explainer, Vec<Promise>, Vec<AuditedPromise>) {
    let (promises, _) = given(&trained(0));
    let new = trained(1);
    let audit = new.audit(&promises, &request(), GO_ON).unwrap();
    (new, promises, audit)
}

fn score(explainer: &Explainer, row: &Row) -> f32 {
    explainer.score(std::slice::from_ref(row)).unwrap()[0]
}

#[test]
fn kept_and_broken_promises_are_counted_as_by_hand() {
    let (new, promises, audit) = audited();
    assert_eq!(audit.len(), promises.len());
    let mut kept = 0;
    let cloud = Neighbourhood::draw(
        Sampling::MonteCarlo,
        new.points().dim(),
        1000,
        0.1,
        request().seed.derive("audit"),
    )
    .unwrap();
    for (promise, audited) in promises.iter().zip(&audit) {
        let factual = audited.factual.as_ref().unwrap();
        assert_eq!((audited.promised.row, factual.row), (promise.row, promise.row));
        assert_eq!(audited.promised.values, promise.advised);
        assert_eq!(Some(&factual.values), promise.factual.as_ref());
        let now = score(&new, &promise.advised);
        assert_eq!(audited.promised.score, now);
        assert_eq!(factual.score, score(&new, &factual.values));
        assert_eq!(audited.is_kept(), now >= 0.5);
        assert_eq!(audited.repairs.is_none(), now >= 0.5);
        kept += usize::from(now >= 0.5);
        let point = Points::from_rows(new.points().dim(), audited.promised.point.clone()).unwrap();
        let gauge = Gauge::new(RelaxedStability {}, new.model(), &cloud).unwrap();
        assert!((gauge.read(&point)[0].value - audited.stability).abs() < 1e-6);
    }
    // The test means nothing unless both occur.
    assert!(kept > 5 && audit.len() - kept > 5, "{kept} of {}", audit.len());

    let summary = AuditSummary::of(&audit, 0.95).unwrap();
    assert_eq!((summary.promises, summary.kept), (audit.len(), kept));
    assert_eq!(summary.broken, audit.len() - kept);
    let share = kept as f64 / audit.len() as f64;
    assert_eq!(summary.share_kept, Some(share));
    assert!(summary.interval.0 < share && share < summary.interval.1);
    for (repairs, which) in [(&summary.from_promised, 0), (&summary.from_factual, 1)] {
        let advice: Vec<&Advice> = audit
            .iter()
            .filter_map(|each| each.repairs.as_ref())
            .map(|each| [&each.from_promised, each.from_factual.as_ref().unwrap()][which])
            .collect();
        let costs: Vec<f64> = advice.iter().filter_map(|each| Some(each.found()?.cost)).collect();
        assert_eq!(repairs.found, costs.len());
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        assert!((repairs.mean_l1.unwrap() - mean).abs() < 1e-9);
        assert_eq!(
            repairs.found + repairs.not_found + repairs.cancelled + repairs.already_favourable,
            summary.broken
        );
    }
    assert_eq!(summary.from_promised.already_favourable, 0);
    // Whoever has done most of the way has less to do. Not a law, but so on the whole.
    assert!(summary.from_promised.mean_l1 < summary.from_factual.mean_l1, "{summary:?}");
}

#[test]
fn repairs_are_accepted_and_obey_the_rules() {
    let (new, _, audit) = audited();
    let mut found = 0;
    for each in &audit {
        let Some(repairs) = &each.repairs else { continue };
        let factual = each.factual.as_ref().unwrap();
        let from_factual = repairs.from_factual.as_ref().unwrap();
        for (start, repair) in [(&each.promised, &repairs.from_promised), (factual, from_factual)] {
            assert_eq!(&repair.applicant, start);
            let Some(row) = &repair.advised else { continue };
            found += 1;
            assert!(score(&new, row) >= 0.5);
            let wrong = broken(new.schema(), &start.values, row);
            assert!(wrong.is_empty(), "row {}: {wrong:?}", start.row);
            // What a rule forbids the person, the repair of a promise does not ask either.
            assert!(broken(new.schema(), &factual.values, row).is_empty());
            let point = new.encoder().encode(row).unwrap();
            let cost = Norm::L1.distance(point.as_slice(), &start.point);
            assert!((repair.cost.unwrap().l1 - cost).abs() < 1e-6);
            assert!(!repair.changes.is_empty());
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn no_repair_is_missed_that_the_other_start_found() {
    let (new, _, audit) = audited();
    let mut shared = 0;
    for each in audit.iter().filter(|each| !each.is_kept()) {
        let (Some(repairs), Some(factual)) = (&each.repairs, &each.factual) else { panic!() };
        let from_factual = repairs.from_factual.as_ref().unwrap();
        for (start, own, other) in [
            (&each.promised, &repairs.from_promised, from_factual),
            (factual, from_factual, &repairs.from_promised),
        ] {
            assert_eq!(&own.applicant, start);
            if own.outcome.reason() == Some(Reason::AlreadyFavourable) {
                continue;
            }
            let Some(row) = &other.advised else { continue };
            if !broken(new.schema(), &start.values, row).is_empty() {
                continue;
            }
            let point = new.encoder().encode(row).unwrap();
            let cost = Norm::L1.distance(point.as_slice(), &start.point);
            assert!(own.found().is_some_and(|found| found.cost <= cost + 1e-9), "{}", start.row);
            shared += usize::from(own.advised.as_ref() == Some(row));
        }
    }
    assert!(shared > 0);
}

#[test]
fn a_model_keeps_its_own_promises() {
    let explainer = trained(0);
    let (promises, _) = given(&explainer);
    let answers = AtomicUsize::new(0);
    let audit = explainer
        .audit(&promises, &request(), |tick| {
            answers.fetch_add(usize::from(tick == Tick::Answered), Ordering::Relaxed);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(audit.iter().all(|each| each.is_kept() && each.repairs.is_none()));
    assert_eq!(answers.into_inner(), 2 * promises.len());
    let summary = AuditSummary::of(&audit, 0.95).unwrap();
    assert_eq!((summary.kept, summary.share_kept), (promises.len(), Some(1.0)));
    assert_eq!(summary.from_promised.mean_l1, None);
    // Nothing promised, nothing broken.
    let none = AuditSummary::of(&explainer.audit(&[], &request(), GO_ON).unwrap(), 0.95).unwrap();
    assert_eq!((none.promises, none.share_kept, none.interval), (0, None, (0.0, 1.0)));
}

/// An audit as text, without times.
fn text(explainer: &Explainer, audit: &[AuditedPromise]) -> String {
    let documents: Vec<_> =
        audit.iter().map(|each| explainer.audit_document(each).unwrap()).collect();
    let summary = AuditSummary::of(audit, 0.95).unwrap();
    serde_json::to_string(&(summary, documents)).unwrap()
}

#[test]
fn threads_change_nothing() {
    let (promises, _) = given(&trained(0));
    let new = trained(1);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| text(&new, &new.audit(&promises, &request(), GO_ON).unwrap()))
    };
    let one = with(1);
    assert_eq!(one, with(4));
    // A promise is judged alone as among others.
    let alone = new.audit(&promises[3..4], &request(), GO_ON).unwrap();
    let all: serde_json::Value = serde_json::from_str(&one).unwrap();
    let alone: serde_json::Value = serde_json::from_str(&text(&new, &alone)).unwrap();
    assert_eq!(all[1][3], alone[1][0]);
    assert_eq!(all[1][3]["row"], promises[3].row);
}

#[test]
fn work_that_was_stopped_is_reported() {
    let (promises, _) = given(&trained(0));
    let new = trained(1);
    let whole = new.audit(&promises, &request(), GO_ON).unwrap();
    let kept = AuditSummary::of(&whole, 0.95).unwrap().kept;
    for after in [0, 1, 2 * kept, 2 * kept + 10] {
        let answers = AtomicUsize::new(0);
        let audit = new
            .audit(&promises, &request(), |tick| match tick {
                Tick::Answered if answers.fetch_add(1, Ordering::Relaxed) >= after => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            })
            .unwrap();
        let summary = AuditSummary::of(&audit, 0.95).unwrap();
        assert_eq!(summary.kept, kept, "what is kept is known all the same");
        let cancelled = summary.from_promised.cancelled + summary.from_factual.cancelled;
        assert!(cancelled > 0 && cancelled <= 2 * summary.broken);
        if after < 2 * kept {
            assert_eq!(cancelled, 2 * summary.broken);
        }
        // What was finished is what it would have been.
        for (each, full) in audit.iter().zip(&whole) {
            let (Some(own), Some(full)) = (&each.repairs, &full.repairs) else { continue };
            let later = |repairs: &Repairs| repairs.from_factual.clone().unwrap();
            let stopped = |repair: &Advice| repair.outcome.reason() == Some(Reason::Cancelled);
            // Each learns from the other, once both are there.
            if stopped(&own.from_promised) || stopped(&later(own)) {
                continue;
            }
            for (own, full) in
                [(&own.from_promised, &full.from_promised), (&later(own), &later(full))]
            {
                assert_eq!(own.outcome.answer, full.outcome.answer);
            }
        }
    }
}

#[test]
fn the_table_of_an_audit_is_a_file_of_advice_again() {
    let old = trained(0);
    let (promises, file) = given(&old);
    let new = trained(1);
    let read = GivenRows::read(new.schema(), &file).unwrap();
    assert_eq!(read.promises(&new.applicants(Part::All)).unwrap(), promises);
    let audit = new.audit(&promises, &request(), GO_ON).unwrap();
    let table = new.audit_table(&audit, &request()).unwrap();
    assert_eq!(table.rows(), promises.len());
    let column = |name: &str| -> Vec<&str> { table.column(name).unwrap().cells().collect() };
    let kept = column("promise").iter().filter(|&&word| word == "kept").count();
    assert_eq!(kept, AuditSummary::of(&audit, 0.95).unwrap().kept);
    for (line, each) in audit.iter().enumerate() {
        assert_eq!(column("promised_score")[line], each.promised.score.to_string());
        if each.is_kept() {
            assert_eq!(column("changed")[line], "0");
            assert_eq!(column("factual_status")[line], "");
        }
    }
    // The next audit under the same model finds nothing broken.
    let mended = GivenRows::read(new.schema(), &table).unwrap();
    assert_eq!(mended.model.as_deref(), Some(new.fingerprint().as_str()));
    let mended = mended.promises(&new.applicants(Part::All)).unwrap();
    assert!(mended.len() > kept);
    let again = new.audit(&mended, &request(), GO_ON).unwrap();
    assert!(again.iter().all(AuditedPromise::is_kept));
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let explainer = trained(0);
    let (promises, file) = given(&explainer);
    let given = GivenRows::read(explainer.schema(), &file).unwrap();
    let error = given.promises(&[]).unwrap_err().to_string();
    assert!(error.contains("advice for row") && error.contains("none of the rows"), "{error}");
    let paper = Request::new("min-cost", Protocol::Paper, Norm::L1, Seed(4)).unwrap();
    let error = explainer.audit(&promises, &paper, GO_ON).unwrap_err().to_string();
    assert_eq!(error, "parameter `protocol` is paper, expected product, since promises are rows");
    for confidence in [0.0, 1.0, f64::NAN] {
        assert!(AuditSummary::of(&[], confidence).is_err());
    }
    // A row of another schema.
    let schema = tyrex::data::Schema::from_toml(
        "format_version = 1\n[label]\ncolumn = \"y\"\nfavourable = 1\n[[feature]]\nname = \"x\"\nkind \
         = \"numeric\"\n",
    )
    .unwrap();
    let other = Row::new(&schema, vec![1.0.into()]).unwrap();
    let promise = Promise { row: 7, factual: Some(other), advised: promises[0].advised.clone() };
    let error = explainer.audit(&[promise], &request(), GO_ON).unwrap_err().to_string();
    assert!(error.contains("the promise to row 7"), "{error}");
}
