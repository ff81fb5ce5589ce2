//! The gate: candidates against the same promises.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tyrex::certificate::KeptShares;
use tyrex::counterfactual::{Norm, Protocol, Tick};
use tyrex::data::{Schema, Table, Value};
use tyrex::explain::{
    Explainer, Gate, GateCandidate, GateReport, Part, PromiseStatus, PromisedProbability,
    Reference, Repair, Request, Tally, UnlabelledRows, Values, WrittenPromise,
};
use tyrex::model::{Model, TrainParams};
use tyrex::report::gate_html;
use tyrex::statistics::{Proportion, fisher_exact, holm};
use tyrex::{Points, Seed};

const GO_ON: fn(Tick) -> ControlFlow<()> = |_| ControlFlow::Continue(());

fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

const SCHEMA: &str = include_str!("../../schemas/people.toml");

/// Accepts incomes from a limit on; other columns do not count.
#[derive(Debug)]
struct Limit(f32);

impl Model for Limit {
    fn dim(&self) -> usize {
        4
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        for (point, score) in points.rows().zip(scores) {
            *score = if point[0] >= self.0 { 0.9 } else { 0.1 };
        }
    }
}

fn table() -> Table {
    let mut csv = String::from("income,age,sex,paid\n");
    for row in 0..40 {
        let sex = if row % 3 == 0 { "male" } else { "female" };
        csv += &format!("{},{},{sex},{}\n", row, 20 + row, if row < 20 { "no" } else { "yes" });
    }
    Table::from_csv("rows.csv".as_ref(), csv.as_bytes()).unwrap()
}

fn limit(limit: f32) -> Explainer {
    let data = Reference::Unlabelled(UnlabelledRows::read(&schema(), table()).unwrap());
    Explainer::with_black_box(data, |_| Ok(Arc::new(Limit(limit)))).unwrap()
}

fn values(pairs: &[(&str, Value)]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// A promise to become someone with this income.
fn promise(index: usize, income: f64) -> WrittenPromise {
    let sex = if index.is_multiple_of(2) { "male" } else { "female" };
    let row = |income: f64| {
        let age = Value::Number(20.0 + index as f64);
        values(&[("income", income.into()), ("age", age), ("sex", sex.into())])
    };
    WrittenPromise {
        name: format!("row {index}"),
        factual: Some(row(3.0)),
        advised: row(income),
        meaning: None,
        promised: None,
    }
}

/// Promises of incomes 0, 1, 2 and so on.
fn promises(count: usize) -> Vec<WrittenPromise> {
    (0..count).map(|index| promise(index, index as f64)).collect()
}

fn request() -> Request {
    Request::new("nn", Protocol::Product, Norm::L1, Seed(4)).unwrap()
}

fn gate() -> Gate {
    let by = ["sex", "age:25,30"].map(|by| by.parse().unwrap()).to_vec();
    Gate { by, ..Gate::new(request()) }
}

fn candidates<'a>(all: &'a [(&str, Explainer)]) -> Vec<GateCandidate<'a>> {
    let one = |(name, explainer): &'a (&str, Explainer)| GateCandidate {
        name: (*name).to_owned(),
        explainer,
        has_only_promises: false,
    };
    all.iter().map(one).collect()
}

fn judged(gate: &Gate, all: &[(&str, Explainer)], promises: &[WrittenPromise]) -> GateReport {
    gate.judge(&candidates(all), promises, GO_ON).unwrap()
}

fn tally(promises: usize, kept: usize) -> (usize, usize, usize) {
    (promises, kept, promises - kept)
}

fn counts(tally: &Tally) -> (usize, usize, usize) {
    (tally.promises, tally.kept, tally.broken)
}

#[test]
fn all_none_and_some_are_counted_as_by_hand() {
    for (border, kept) in [(-1.0, 12), (100.0, 0), (5.0, 7)] {
        let report = judged(&gate(), &[("m", limit(border))], &promises(12));
        let candidate = &report.candidates[0];
        assert_eq!(counts(&candidate.tally), tally(12, kept));
        assert_eq!(candidate.tally.unreadable, 0);
        assert_eq!(candidate.tally.share_kept, Some(kept as f64 / 12.0));
        let (low, high) = Proportion::new(kept, 12).unwrap().between(0.05).unwrap();
        let interval = candidate.tally.interval;
        assert!((interval.0 - low).abs() < 1e-12 && (interval.1 - high).abs() < 1e-12);
        assert_eq!((candidate.passes, report.passes()), (kept == 12, kept == 12));
        // By brute force: the model accepts an income from the border on.
        for (index, promise) in candidate.promises.iter().enumerate() {
            let is_kept = index as f32 >= border;
            let status = if is_kept { PromiseStatus::Kept } else { PromiseStatus::Broken };
            assert_eq!((promise.status, promise.repairs.is_some()), (status, !is_kept));
            assert_eq!(promise.score, Some(if is_kept { 0.9 } else { 0.1 }));
            assert_eq!(promise.name, format!("row {index}"));
        }
        let sex = &candidate.groups[0];
        assert_eq!((sex.feature.as_str(), sex.unit.as_deref()), ("sex", None));
        let of = |start: usize| (start..12).step_by(2).filter(|n| *n as f32 >= border).count();
        let groups: Vec<_> =
            sex.groups.iter().map(|group| (&*group.name, counts(&group.tally))).collect();
        assert_eq!(groups, [("male", tally(6, of(0))), ("female", tally(6, of(1)))]);
        let age = &candidate.groups[1];
        assert_eq!(age.unit.as_deref(), Some("years"));
        let within = |low: usize, high: usize| (low..high).filter(|n| *n as f32 >= border).count();
        let groups: Vec<_> =
            age.groups.iter().map(|group| (&*group.name, counts(&group.tally))).collect();
        assert_eq!(
            groups,
            [
                ("below 25", tally(5, within(0, 5))),
                ("25 to below 30", tally(5, within(5, 10))),
                ("30 and above", tally(2, within(10, 12)))
            ]
        );
    }
}

/// Every second promise states a probability.
fn stating(count: usize) -> Vec<WrittenPromise> {
    let mut all = promises(count);
    for (index, promise) in all.iter_mut().enumerate().filter(|(index, _)| index % 2 == 0) {
        promise.promised = Some(PromisedProbability {
            probability: 0.8 + 0.01 * index as f64,
            confidence: 0.95,
            predictive: 0.9,
        });
    }
    all
}

#[test]
fn promised_probabilities_stand_beside_the_share_kept() {
    let report = judged(&gate(), &[("m", limit(5.0))], &stating(12));
    let stated = report.candidates[0].tally.stated.unwrap();
    // Incomes 0, 2, ..., 10 state 0.8, 0.82, ..., 0.9; the model accepts 6, 8 and 10.
    assert_eq!((stated.promises, stated.kept), (6, 3));
    assert!((stated.share_kept - 0.5).abs() < 1e-12);
    assert!((stated.mean_probability - 0.85).abs() < 1e-12);
    assert!((stated.mean_predictive - 0.9).abs() < 1e-12);
    // All of them are in the group of males.
    let groups = &report.candidates[0].groups[0].groups;
    assert_eq!(groups[0].tally.stated, Some(stated));
    assert_eq!(groups[1].tally.stated, None);
    let page = gate_html(&report);
    assert!(page.contains("Promised and kept") && page.contains("85.0"), "{page}");
    // Promises without a probability are reported as before.
    let plain = judged(&gate(), &[("m", limit(5.0))], &promises(12));
    let document = serde_json::to_value(&plain).unwrap();
    assert!(document["candidates"][0]["tally"].get("stated").is_none());
    assert!(!gate_html(&plain).contains("Promised and kept"));
    // A document of an earlier version has neither.
    let mut earlier = document;
    earlier.as_object_mut().unwrap().remove("updates").unwrap();
    let read: GateReport = serde_json::from_value(earlier).unwrap();
    assert_eq!(read, GateReport { updates: None, ..plain });
    let mut wrong = stating(2);
    wrong[0].promised.as_mut().unwrap().probability = f64::NAN;
    let error = gate().judge(&candidates(&[("m", limit(5.0))]), &wrong, GO_ON).unwrap_err();
    assert!(error.to_string().contains("`probability` is NaN"), "{error}");
}

#[test]
fn candidates_are_updates_in_the_order_given() {
    let gate = Gate { allow: 1.0, ..Gate::new(request()) };
    let all = [("c", limit(5.0)), ("a", limit(-1.0)), ("b", limit(3.0)), ("a again", limit(-1.0))];
    let report = judged(&gate, &all, &stating(12));
    let updates = report.updates.as_ref().unwrap();
    // Ranked by promises kept, but updates keep their order; a repeated model is not an update.
    assert_eq!(report.candidates[0].name, "a");
    let seen: Vec<_> = updates.updates.iter().map(|each| (&*each.name, each.share_kept)).collect();
    assert_eq!(seen, [("c", 7.0 / 12.0), ("a", 1.0), ("b", 9.0 / 12.0)]);
    let mut shares = Vec::new();
    for update in &updates.updates {
        shares.push(update.share_kept);
        let bound = KeptShares::new(shares.clone()).unwrap().lower(0.95).unwrap();
        assert_eq!(update.at_least.to_bits(), bound.to_bits());
    }
    assert_eq!(updates.at_least.to_bits(), updates.updates[2].at_least.to_bits());
    assert!((updates.mean_kept - 28.0 / 36.0).abs() < 1e-12);
    let said = "Over 3 updates in the order given the mean share kept is 0.778; promised with a \
                mean probability of 0.850. With confidence 0.95";
    assert!(updates.sentence.starts_with(said), "{}", updates.sentence);
    let page = gate_html(&report);
    assert!(page.contains("Update after update") && page.contains(said), "{page}");
    // Without promises there is nothing to bound.
    assert_eq!(judged(&gate, &all, &[]).updates, None);
}

#[test]
fn repairs_start_from_either_row() {
    let report = judged(&gate(), &[("m", limit(5.0))], &promises(12));
    let candidate = &report.candidates[0];
    // A promise of an income of 4; the person had 3. Only the income has to change.
    let broken = &candidate.promises[4];
    let repairs = broken.repairs.as_ref().unwrap();
    for (repair, from) in
        [(&repairs.from_promised, 4.0), (repairs.from_factual.as_ref().unwrap(), 3.0)]
    {
        let Repair::Found { changes, counterfactual, score, cost, sentence, .. } = repair else {
            panic!("{repair:?}")
        };
        let income = changes.iter().find(|change| change.feature == "income").unwrap();
        assert_eq!(income.from, Value::Number(from));
        assert!(income.to.number().unwrap() >= 5.0);
        assert_eq!(counterfactual["income"], income.to);
        assert_eq!(*score, 0.9);
        assert!(cost.unwrap().l1 > 0.0 && sentence.contains("income"));
    }
    assert_eq!(candidate.from_promised.found, 5);
    assert!(candidate.search.sentence.contains("nn found: by L1"), "{}", candidate.search.sentence);
    // The promise that asked for nothing new: what was advised is in words.
    assert_eq!(broken.sentence.as_deref(), Some("Raise income from 3 to 4 k€."));
    assert_eq!(candidate.promises[5].sentence, None);
}

#[test]
fn the_border_of_what_is_allowed_passes() {
    // The very number that was typed, for every count there is.
    for broken in 0..=100_usize {
        let all: Vec<_> =
            (0..100).map(|index| promise(index, if index < broken { 0.0 } else { 9.0 })).collect();
        if broken % 10 == 9 {
            let allow: f64 = format!("0.{broken:02}").parse().unwrap();
            let gate = Gate { by: Vec::new(), allow, ..gate() };
            let report = judged(&gate, &[("m", limit(5.0))], &all);
            assert!(report.passes(), "{broken} of 100 at {allow}");
            let strict = Gate { allow: allow - 1e-9, ..gate };
            assert!(!judged(&strict, &[("m", limit(5.0))], &all).passes());
        }
    }
    let tally = |promises, broken| Tally {
        promises,
        kept: promises - broken,
        broken,
        unreadable: 0,
        share_kept: None,
        interval: (0.0, 1.0),
        stated: None,
    };
    for promises in 1..400 {
        for broken in [0, 1, promises / 3, promises] {
            let share = broken as f64 / promises as f64;
            let gate = Gate { allow: share, ..gate() };
            assert!(gate.allows(&tally(promises, broken)));
            assert!(broken == promises || !gate.allows(&tally(promises, broken + 1)));
        }
    }
}

#[test]
fn candidates_are_ranked_by_what_they_keep() {
    let all = [("b", limit(5.0)), ("z", limit(2.0)), ("a", limit(5.0)), ("worst", limit(50.0))];
    let report = judged(&gate(), &all, &promises(12));
    let ranks: Vec<(usize, &str, usize)> =
        report.candidates.iter().map(|each| (each.rank, &*each.name, each.tally.kept)).collect();
    assert_eq!(ranks, [(1, "z", 10), (2, "a", 7), (3, "b", 7), (4, "worst", 0)]);
    assert_eq!(report.verdict.best, "z");
    assert!(report.verdict.passing.is_empty());
    assert_eq!(
        report.verdict.sentence,
        "None of 4 candidates may be deployed: the best, z, keeps 10 of 12 promises and breaks 2 \
         (16.667 %); none may be broken."
    );
    let lenient = Gate { allow: 0.5, ..gate() };
    let report = judged(&lenient, &all, &promises(12));
    assert_eq!(report.verdict.passing, ["z", "a", "b"]);
    assert!(
        report
            .verdict
            .sentence
            .starts_with("3 of 4 candidates may be deployed: z, a, b. The best, z,")
    );
    // The order in which they are given changes nothing but who is the copy of whom.
    let turned: Vec<_> = all.into_iter().rev().collect();
    let again = judged(&lenient, &turned, &promises(12));
    assert_eq!(again.verdict, report.verdict);
    let same: Vec<_> = again.candidates.iter().map(|each| each.same_as.as_deref()).collect();
    assert_eq!(same, [None, None, Some("a"), None]);
}

/// Counts the same, more or less stable: incomes far from the border against those next to it.
#[test]
fn of_equals_the_more_stable_one_is_first() {
    let train = |seed| {
        let params = TrainParams { hidden: vec![8], epochs: 30, ..TrainParams::paper() };
        let catalogue = tyrex::data::Catalogue::with_folders(Vec::new());
        let german = catalogue
            .load(
                "german",
                tyrex::data::catalogue::Variant::Product,
                tyrex::data::catalogue::Direction::Favourable,
            )
            .unwrap();
        Explainer::train(german, &params, Seed(seed), |_| ControlFlow::Continue(())).unwrap()
    };
    let all = [("a", train(1)), ("b", train(2)), ("c", train(3))];
    // All three accept these, so only stability tells them apart.
    let schema = all[0].1.schema();
    let accepted: Vec<WrittenPromise> = all[0]
        .1
        .applicants()
        .part(Part::All)
        .into_iter()
        .filter(|row| {
            all.iter().all(|(_, m)| m.score(std::slice::from_ref(&row.values)).unwrap()[0] >= 0.5)
        })
        .take(30)
        .map(|row| {
            let names = schema.features.iter().map(|feature| feature.name.clone());
            let advised: Values = names.zip(row.values.values().iter().cloned()).collect();
            WrittenPromise {
                name: format!("row {}", row.row),
                factual: None,
                advised,
                meaning: None,
                promised: None,
            }
        })
        .collect();
    let gate = Gate::new(Request::new("min-cost", Protocol::Product, Norm::L1, Seed(4)).unwrap());
    let report = judged(&gate, &all, &accepted);
    assert!(report.candidates.iter().all(|each| each.tally.kept == 30));
    let means: Vec<f64> =
        report.candidates.iter().map(|each| each.mean_stability.unwrap()).collect();
    assert!(means[0] > means[1] && means[1] > means[2], "{means:?}");
    assert_eq!(report.verdict.passing.len(), 3);
}

#[test]
fn groups_that_differ_are_marked_by_the_corrected_test() {
    // Every promise to a woman is broken, every one to a man is kept.
    let split: Vec<_> =
        (0..40).map(|index| promise(index, if index % 2 == 0 { 9.0 } else { 0.0 })).collect();
    let by = ["sex", "age"].map(|by| by.parse().unwrap()).to_vec();
    let gate = Gate { by, ..gate() };
    let report = judged(&gate, &[("m", limit(5.0)), ("n", limit(-1.0))], &split);
    let groups: Vec<_> = report
        .candidates
        .iter()
        .flat_map(|candidate| &candidate.groups)
        .flat_map(|table| &table.groups)
        .collect();
    assert_eq!(groups.len(), 12);
    let p: Vec<f64> = groups
        .iter()
        .zip([40, 40, 40, 40, 40, 40, 20, 20, 20, 20, 20, 20])
        .map(|(group, kept)| {
            let own = Proportion::new(group.tally.kept, group.tally.promises).unwrap();
            let rest = Proportion::new(kept - group.tally.kept, 40 - group.tally.promises).unwrap();
            fisher_exact(own, rest)
        })
        .collect();
    for ((group, p), adjusted) in groups.iter().zip(&p).zip(holm(&p)) {
        assert_eq!((group.p_value, group.adjusted), (Some(*p), Some(adjusted)));
        assert_eq!(group.differs, adjusted <= 0.05);
    }
    let marked: Vec<&str> =
        groups.iter().filter(|group| group.differs).map(|group| &*group.name).collect();
    assert_eq!(marked, ["male", "female"]);
    // A single group has nothing to differ from.
    let men: Vec<_> = split.iter().step_by(2).cloned().collect();
    let report =
        judged(&Gate { by: vec!["sex".parse().unwrap()], ..gate }, &[("m", limit(5.0))], &men);
    let only = &report.candidates[0].groups[0].groups;
    assert_eq!((only.len(), only[0].p_value, only[0].differs), (1, None, false));
}

#[test]
fn what_does_not_fit_is_unreadable_and_counts_as_broken() {
    let fine = promise(0, 9.0);
    let with = |name: &str, value: Value| {
        let mut other = fine.clone();
        other.advised.insert(name.to_owned(), value);
        other
    };
    let mut without = fine.clone();
    without.advised.remove("income");
    let mut extra = with("branch", "north".into());
    extra.name = "extra".to_owned();
    let mut odd_start = fine.clone();
    odd_start.factual.as_mut().unwrap().insert("sex".to_owned(), "unknown".into());
    let mut no_start = promise(0, 0.0);
    no_start.factual = None;
    let all = [
        fine.clone(),
        without,
        with("sex", "other".into()),
        with("age", "old".into()),
        with("age", 20.5.into()),
        with("income", Value::Missing),
        extra,
        odd_start,
        no_start,
    ];
    let report = judged(&Gate::new(request()), &[("m", limit(5.0))], &all);
    let candidate = &report.candidates[0];
    let found: Vec<(PromiseStatus, Option<&str>)> =
        candidate.promises.iter().map(|each| (each.status, each.reason.as_deref())).collect();
    let unreadable = |reason| (PromiseStatus::Unreadable, Some(reason));
    assert_eq!(
        found,
        [
            (PromiseStatus::Kept, None),
            unreadable("as advised, it has no `income`, which the model takes"),
            unreadable("as advised, `sex` is `other`, expected one of `male`, `female`"),
            unreadable("as advised, `age` is `old`, expected a whole number"),
            unreadable("as advised, `age` is `20.5`, expected a whole number"),
            unreadable(
                "as advised, `income` is missing, expected a number such as 12, -0.5 or 1e3"
            ),
            (PromiseStatus::Kept, None),
            (
                PromiseStatus::Kept,
                Some("as it was, `sex` is `unknown`, expected one of `male`, `female`")
            ),
            (PromiseStatus::Broken, None),
        ]
    );
    assert_eq!((candidate.tally.broken, candidate.tally.unreadable), (6, 5));
    assert_eq!(candidate.ignored, ["branch"]);
    assert!(report.verdict.sentence.contains("5 of them because it cannot read them"));
    let last = candidate.promises[8].repairs.as_ref().unwrap();
    assert!(last.from_factual.is_none());
    // No rows of its own, and no promise that it reads: still an answer.
    let data = Reference::of_promises(&schema(), &all[1..2]).unwrap();
    let model = Explainer::with_black_box(data, |_| Ok(Arc::new(Limit(5.0))));
    assert!(model.is_ok() || model.unwrap_err().to_string().contains("rows"));
}

#[test]
fn without_data_rows_no_repair_is_another_persons_row() {
    let explainer = limit(5.0);
    let candidate =
        GateCandidate { name: "m".to_owned(), explainer: &explainer, has_only_promises: true };
    let mut min_cost = request();
    min_cost.method =
        tyrex::counterfactual::MethodSpec::named("trex-o", Protocol::Product).unwrap();
    for request in [request(), min_cost.clone()] {
        let report = Gate::new(request)
            .judge(std::slice::from_ref(&candidate), &promises(12), GO_ON)
            .unwrap();
        let judged = &report.candidates[0];
        assert_eq!(judged.tally.broken, 5);
        assert!(judged.promises.iter().all(|promise| promise.repairs.is_none()));
        assert_eq!(judged.search.request, None);
        assert!(judged.search.sentence.starts_with("Repairs were not searched for"));
    }
    // A model without gradients is searched among its data, with the test that was asked for.
    min_cost.set_test(Some(0.7), Some(50), None).unwrap();
    let report = judged(&Gate::new(min_cost), &[("m", limit(5.0))], &promises(12));
    let search = &report.candidates[0].search;
    let used = search.request.as_ref().unwrap();
    assert_eq!(used.method.name(), "trex-nn");
    let test = used.method.robustness().unwrap();
    assert_eq!((test.tau, test.samples), (0.7, 50));
    assert!(search.sentence.contains("instead of trex-o, which needs gradients"));
}

#[test]
fn nothing_promised_is_nothing_broken() {
    let report = judged(&gate(), &[("m", limit(5.0))], &[]);
    assert!(report.passes());
    assert_eq!(report.verdict.sentence, "There are no open promises, so nothing can be broken.");
    assert_eq!(report.candidates[0].tally.share_kept, None);
    assert_eq!(report.table().unwrap().rows(), 0);
    assert!(gate_html(&report).contains("no open promises"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let m = limit(5.0);
    let refusal = |gate: &Gate, names: &[&str], promises: &[WrittenPromise]| {
        let candidates: Vec<_> = names
            .iter()
            .map(|name| GateCandidate {
                name: (*name).to_owned(),
                explainer: &m,
                has_only_promises: false,
            })
            .collect();
        gate.judge(&candidates, promises, GO_ON).unwrap_err().to_string()
    };
    let some = promises(2);
    for (got, expected) in [
        (
            refusal(&gate(), &[], &some),
            "parameter `candidates` is nothing, expected one model or more",
        ),
        (
            refusal(&gate(), &["a", "a"], &some),
            "parameter `candidates` is a, expected names that differ",
        ),
        (
            refusal(&Gate { allow: 1.5, ..gate() }, &["a"], &some),
            "parameter `allow` is 1.5, expected a share between 0 and 1",
        ),
        (
            refusal(&Gate { allow: f64::NAN, ..gate() }, &["a"], &some),
            "parameter `allow` is NaN, expected a share between 0 and 1",
        ),
        (
            refusal(&Gate { confidence: 1.0, ..gate() }, &["a"], &some),
            "parameter `confidence` is 1, expected a number between 0 and 1",
        ),
        (
            refusal(&Gate { by: vec!["shoe".parse().unwrap()], ..gate() }, &["a"], &some),
            "parameter `by` is shoe, expected a column of the rows as they were: `age`, `income`, `sex`",
        ),
    ] {
        assert_eq!(got, expected);
    }
    // Candidates that mean opposite things by their scores cannot be compared.
    let turned = Schema::from_toml(
        &SCHEMA
            .replace("favourable = \"yes\"", "favourable = \"no\"")
            .replace("unfavourable = \"no\"", "unfavourable = \"yes\""),
    )
    .unwrap();
    let data = Reference::Unlabelled(UnlabelledRows::read(&turned, table()).unwrap());
    let other = Explainer::with_black_box(data, |_| Ok(Arc::new(Limit(5.0)))).unwrap();
    let all = [("a", limit(5.0)), ("b", other)];
    let error = gate().judge(&candidates(&all), &some, GO_ON).unwrap_err().to_string();
    assert!(error.contains("b calls `no` favourable, but a calls `yes` so"), "{error}");
}

/// A score that is not a number is neither kept nor broken.
#[test]
fn a_model_that_gives_no_probability_is_an_error_with_its_name() {
    #[derive(Debug)]
    struct Odd;
    impl Model for Odd {
        fn dim(&self) -> usize {
            4
        }
        fn score_into(&self, points: &Points, scores: &mut [f32]) {
            for (point, score) in points.rows().zip(scores) {
                *score = if point[0] == 7.5 { f32::NAN } else { 0.9 };
            }
        }
    }
    let data = Reference::Unlabelled(UnlabelledRows::read(&schema(), table()).unwrap());
    let odd = Explainer::with_black_box(data, |_| Ok(Arc::new(Odd))).unwrap();
    let all = [("odd.onnx", odd)];
    let some = [promise(0, 1.0), promise(1, 7.5)];
    let error = gate().judge(&candidates(&all), &some, GO_ON).unwrap_err().to_string();
    assert_eq!(error, "odd.onnx: its score of the promise to row 1 is NaN, expected a probability");
}

#[test]
fn the_document_and_the_table_say_the_same() {
    let all = [("a", limit(5.0)), ("b", limit(8.0))];
    let mut given = promises(12);
    given[2].advised.remove("sex");
    let report = judged(&gate(), &all, &given);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<GateReport>(&text).unwrap(), report);
    let table = report.table().unwrap();
    assert_eq!(table.rows(), 24);
    let column = |name: &str| -> Vec<&str> { table.column(name).unwrap().cells().collect() };
    let lines = report
        .candidates
        .iter()
        .flat_map(|candidate| candidate.promises.iter().map(move |promise| (candidate, promise)));
    for (line, (candidate, promise)) in lines.enumerate() {
        assert_eq!(column("candidate")[line], candidate.name);
        assert_eq!(column("promise")[line], promise.name);
        assert_eq!(column("status")[line], promise.status.name());
        let number = |number: Option<f64>| number.map(|x| x.to_string()).unwrap_or_default();
        assert_eq!(column("stability")[line], number(promise.stability));
        assert_eq!(column("factual.income")[line], "3");
        assert_eq!(column("promised.income")[line], (line % 12).to_string());
        let found = match promise.repairs.as_ref().map(|repairs| &repairs.from_promised) {
            Some(Repair::Found { counterfactual, .. }) => counterfactual["income"].to_string(),
            _ => String::new(),
        };
        assert_eq!(column("repair.income")[line], found);
        assert_eq!(column("repair_status")[line], if found.is_empty() { "" } else { "found" });
    }
    assert_eq!(column("promised.sex")[2], "");
}

#[test]
fn every_answer_is_heard_of_and_work_can_be_stopped() {
    let all = [("a", limit(5.0)), ("b", limit(50.0))];
    let mut given = promises(12);
    given[1].advised.remove("age");
    given[0].factual = None;
    let answers = AtomicUsize::new(0);
    let whole = gate()
        .judge(&candidates(&all), &given, |tick| {
            answers.fetch_add(usize::from(tick == Tick::Answered), Ordering::Relaxed);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(answers.into_inner(), 2 * 12 * 2);
    let stopped = gate().judge(&candidates(&all), &given, |_| ControlFlow::Break(())).unwrap();
    let tallies = |report: &GateReport| -> Vec<Tally> {
        report.candidates.iter().map(|candidate| candidate.tally).collect()
    };
    assert_eq!(tallies(&stopped), tallies(&whole));
    assert_eq!(stopped.verdict, whole.verdict);
    // One per thread may have been answered before anybody was asked.
    let cancelled: usize = stopped.candidates.iter().map(|each| each.from_promised.cancelled).sum();
    assert!(cancelled > 0 && cancelled <= 4 + 11, "{cancelled}");
}

#[test]
fn nothing_from_data_is_read_as_html() {
    let evil = "<script>alert('x')</script>\"&\u{1}";
    let toml = format!(
        "format_version = 1\n[label]\ncolumn = \"y\"\nfavourable = 1\n[scaling]\nmethod = \"none\"\n\
         [[feature]]\nname = '''<img src=x onerror=\"e()\">'''\nkind = \"numeric\"\nunit = \"<b>\"\n\
         [[feature]]\nname = \"sex\"\nkind = \"categorical\"\nlevels = [\"male\", {}]\n",
        serde_json::to_string(evil).unwrap()
    );
    let schema = Schema::from_toml(&toml).unwrap();
    let name = "<img src=x onerror=\"e()\">";
    let row = |income: f64| values(&[(name, income.into()), ("sex", evil.into())]);
    let given: Vec<WrittenPromise> = (0..9)
        .map(|index| WrittenPromise {
            name: format!("{evil}{index}"),
            factual: Some(row(-9.0)),
            advised: if index == 8 {
                values(&[("sex", evil.into())])
            } else {
                row(f64::from(index))
            },
            meaning: None,
            promised: None,
        })
        .collect();
    #[derive(Debug)]
    struct First(f32);
    impl Model for First {
        fn dim(&self) -> usize {
            3
        }
        fn score_into(&self, points: &Points, scores: &mut [f32]) {
            for (point, score) in points.rows().zip(scores) {
                *score = if point[0] >= self.0 { 0.9 } else { 0.1 };
            }
        }
    }
    let data = Reference::of_promises(&schema, &given).unwrap();
    let model = Explainer::with_black_box(data, |_| Ok(Arc::new(First(6.0)))).unwrap();
    let gate = Gate { by: vec!["sex".parse().unwrap()], ..Gate::new(request()) };
    let report = judged(&gate, &[(evil, model)], &given);
    assert_eq!((report.candidates[0].tally.broken, report.candidates[0].tally.unreadable), (7, 1));
    let html = gate_html(&report);
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("<b>alert"));
    assert!(!html.contains("onerror=\"") && !html.contains('\u{1}'));
    assert!(html.contains("&lt;script&gt;") && html.contains("&lt;img"));
    // Nothing is loaded, and every element that is opened is closed.
    for outside in ["http://", "https://", "@import", "url(", "<link", "src="] {
        let inside = html.replace("&lt;img src=x", "");
        assert!(!inside.contains(outside), "{outside}");
    }
    for element in
        ["table", "section", "figure", "details", "svg", "tr", "td", "th", "p", "ol", "dl"]
    {
        let opened = html.matches(&format!("<{element} ")).count()
            + html.matches(&format!("<{element}>")).count();
        assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "{element}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The groups of a feature part the promises, whatever becomes of them.
    #[test]
    fn groups_add_up(
        incomes in prop::collection::vec(0.0..10.0_f64, 1..40),
        border in 0.0..10.0_f32,
        missing in prop::collection::vec(any::<bool>(), 40),
    ) {
        let mut given: Vec<WrittenPromise> =
            incomes.iter().enumerate().map(|(index, income)| promise(index, *income)).collect();
        for (promise, missing) in given.iter_mut().zip(missing).skip(1) {
            if missing {
                promise.factual = None;
            }
        }
        let by = ["sex", "age", "age:22,30", "income"].map(|by| by.parse().unwrap()).to_vec();
        let gate = Gate { by, ..Gate::new(request()) };
        let report = judged(&gate, &[("m", limit(border))], &given);
        let candidate = &report.candidates[0];
        let kept = incomes.iter().filter(|income| **income as f32 >= border).count();
        prop_assert_eq!(candidate.tally.kept, kept);
        for table in &candidate.groups {
            let sum = |of: fn(&Tally) -> usize| -> usize {
                table.groups.iter().map(|group| of(&group.tally)).sum()
            };
            prop_assert_eq!(sum(|tally| tally.promises), given.len());
            prop_assert_eq!(sum(|tally| tally.kept), kept);
            prop_assert_eq!(sum(|tally| tally.broken), given.len() - kept);
            for group in &table.groups {
                let (low, high) = group.tally.interval;
                let share = group.tally.share_kept.unwrap_or(0.5);
                prop_assert!(low <= share && share <= high);
            }
        }
    }
}

#[test]
fn a_file_of_advice_becomes_promises() {
    let advice = "row,status,reason,income,age,sex,score,model,format_version\n\
                  3,found,,9,23,male,0.9,abc,1\n\
                  4,not_found,stuck,,,,,,\n\
                  7,found,,8,27,female,0.9,abc,1\n";
    let advice = Table::from_csv("cf.csv".as_ref(), advice.as_bytes()).unwrap();
    let rows = table();
    let promises = WrittenPromise::of_advice(&advice, Some(&rows)).unwrap();
    let names: Vec<&str> = promises.iter().map(|promise| &*promise.name).collect();
    assert_eq!(names, ["row 3", "row 7"]);
    let text =
        |values: &BTreeMap<String, Value>, name: &str| values.get(name).map(ToString::to_string);
    let factual = promises[1].factual.as_ref().unwrap();
    assert_eq!(
        (text(factual, "income"), text(factual, "paid")),
        (Some("7".into()), Some("no".into()))
    );
    // Of the advice only the features are left.
    let own: Vec<&str> = promises[0].advised.keys().map(String::as_str).collect();
    assert_eq!(own, ["age", "income", "sex"]);
    assert_eq!(WrittenPromise::of_advice(&advice, None).unwrap()[0].factual, None);
    let short = Table::from_csv("few.csv".as_ref(), b"income,age,sex\n1,2,male\n").unwrap();
    let error = WrittenPromise::of_advice(&advice, Some(&short)).unwrap_err().to_string();
    assert!(error.contains("advice for row 3, but few.csv has 1 rows"), "{error}");
    let odd = Table::from_csv("cf.csv".as_ref(), b"row,income\nx,1\n").unwrap();
    let error = WrittenPromise::of_advice(&odd, None).unwrap_err().to_string();
    assert!(error.contains("row 0, column `row`: found `x`"), "{error}");
}
