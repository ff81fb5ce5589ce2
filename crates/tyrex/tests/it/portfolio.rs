//! The statements about promises hold as often as stated: about one promise, about all of them, and
//! about successive updates; in simulated worlds, and with networks that are trained again.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::RngExt;
use tyrex::certificate::{KeptShares, Portfolio, PortfolioGroup, Retrained, Verdict};
use tyrex::change::{ModelChange, Reinitialise};
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Table};
use tyrex::explain::{
    Advice, Ask, Explainer, Part, PortfolioDocument, PortfolioTerms, Request, RetrainingTerms,
};
use tyrex::model::{Mlp, Model, THRESHOLD, TrainParams};
use tyrex::statistics::Proportion;
use tyrex::{Points, Seed};

use crate::support::advise;

const CONFIDENCE: f64 = 0.95;
const LEVEL: f64 = 1.0 - CONFIDENCE;

/// A level, and three standard errors of a share of that many trials.
fn most(level: f64, trials: f64) -> f64 {
    level + 3.0 * (level * (1.0 - level) / trials).sqrt()
}

fn normal(rng: &mut impl RngExt) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0));
    libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(std::f64::consts::TAU * angle)
}

/// A world: points, of which a model `w . x >= 1` with random `w` accepts most.
const DIM: usize = 6;

fn model(rng: &mut impl RngExt) -> Arc<dyn Model> {
    let weights: Vec<f32> = (0..DIM).map(|_| (1.0 + 0.6 * normal(rng)) as f32).collect();
    Arc::new(Mlp::linear(weights, -1.0).unwrap())
}

fn points(count: usize, rng: &mut impl RngExt) -> Points {
    let mut points = Points::new(DIM);
    for _ in 0..count {
        let point: Vec<f32> = (0..DIM).map(|_| rng.random_range(-0.3..1.0)).collect();
        points.push(&point);
    }
    points
}

fn judged(points: &Points, models: &[Arc<dyn Model>]) -> Portfolio {
    judged_in(&[points], models)
}

/// The promises, added one batch after the other.
fn judged_in(batches: &[&Points], models: &[Arc<dyn Model>]) -> Portfolio {
    let models: Vec<&dyn Model> = models.iter().map(|model| &**model).collect();
    let retrained = Retrained {
        models: &models,
        family: "simulated",
        steered: false,
        search: None,
        likeness: None,
    };
    let mut portfolio = Portfolio::new(&retrained);
    for points in batches {
        portfolio.add(points, &models).unwrap();
    }
    portfolio
}

/// The weights of the three kinds of statements: all promises, a group, and amounts with a heavy
/// tail.
fn weights(count: usize, rng: &mut impl RngExt) -> [Vec<f64>; 3] {
    let group = (0..count).map(|index| f64::from(u8::from(index % 3 == 0))).collect();
    let amounts = (0..count).map(|_| libm::exp(2.0 * normal(rng))).collect();
    [vec![1.0; count], group, amounts]
}

/// The shares are those of the scores, for any number of models, whether the promises are added at
/// once or in batches.
#[test]
fn shares_are_those_of_the_scores_in_one_batch_and_in_many() {
    let mut rng = Seed(7).derive("bits").rng();
    for count in [1, 61, 64, 65, 130] {
        let models: Vec<Arc<dyn Model>> = (0..count).map(|_| model(&mut rng)).collect();
        let batches: Vec<Points> = [17, 0, 1, 40].map(|n| points(n, &mut rng)).into();
        let mut all = Points::new(DIM);
        batches.iter().flat_map(Points::rows).for_each(|point| all.push(point));
        let whole = judged(&all, &models);
        assert_eq!(whole, judged_in(&batches.iter().collect::<Vec<_>>(), &models));
        for weights in weights(all.len(), &mut rng) {
            let total: f64 = weights.iter().sum();
            for (model, share) in models.iter().zip(whole.shares(&weights).unwrap()) {
                let scores = model.score(&all);
                let kept = scores.iter().zip(&weights).filter(|(score, _)| **score >= THRESHOLD);
                let expected = kept.map(|(_, weight)| weight).sum::<f64>() / total;
                assert!((share - expected).abs() < 1e-12, "{count} models: {share}, {expected}");
            }
        }
        let retrained: Vec<&dyn Model> = models.iter().map(|model| &**model).collect();
        assert!(judged(&all, &models).add(&all, &retrained[1..]).is_err());
    }
}

/// The fresh networks of a set.
const FRESH: usize = 19;

/// Of all sets of [`FRESH`] of some networks, of which some accept a point: the share whose bound on
/// the probability of acceptance is above `truth`.
fn sets_above(accepting: usize, networks: usize, truth: f64) -> f64 {
    let log_choose = |n: usize, k: usize| {
        let of = |n: usize| libm::lgamma(n as f64 + 1.0);
        of(n) - of(k) - of(n - k)
    };
    let rejecting = networks - accepting;
    let valid = FRESH.saturating_sub(rejecting)..=FRESH.min(accepting);
    valid
        .filter(|&valid| Proportion::new(valid, FRESH).unwrap().lower(LEVEL).unwrap() > truth)
        .map(|valid| {
            let sets = log_choose(accepting, valid) + log_choose(rejecting, FRESH - valid);
            libm::exp(sets - log_choose(networks, FRESH))
        })
        .sum()
}

/// In every world the statement is made from the fresh models and judged by one more model.
#[test]
fn the_next_model_keeps_the_stated_share_as_often_as_stated() {
    const WORLDS: u32 = 3000;
    const PROMISES: usize = 30;
    for models in [19, 61] {
        let mut failures = [0.0; 3];
        let mut stated = 0.0;
        for world in 0..WORLDS {
            let mut rng = Seed(u64::from(world)).derive("portfolio").rng();
            let points = points(PROMISES, &mut rng);
            let all: Vec<Arc<dyn Model>> = (0..=models).map(|_| model(&mut rng)).collect();
            let (fresh, next) = all.split_at(models);
            let (fresh, next) = (judged(&points, fresh), judged(&points, next));
            for (kind, weights) in weights(PROMISES, &mut rng).iter().enumerate() {
                let statement = fresh.statement(None, None, PROMISES, weights, CONFIDENCE).unwrap();
                assert_eq!(statement.rank, if models == 19 { 1 } else { 3 });
                stated = statement.probability;
                let kept = next.shares(weights).unwrap()[0];
                failures[kind] += f64::from(u8::from(kept < statement.at_least));
            }
        }
        let allowed = 1.0 - stated;
        assert!((allowed - 0.05).abs() < 0.002 && stated >= CONFIDENCE, "{stated}");
        let worlds = f64::from(WORLDS);
        for (kind, failures) in failures.into_iter().enumerate() {
            let share = failures / worlds;
            assert!(share <= most(allowed, worlds), "{models} models, kind {kind}: {share}");
        }
        // Amounts make ties rare, so that the probability is attained: the test would notice a
        // statement about the next larger rank.
        let weighted = failures[2] / worlds;
        assert!(weighted >= 0.6 * allowed, "{models} models: {weighted}");
    }
}

/// `v/(n + 1)` is on average the probability that the next model accepts, up to `1/(n + 1)`.
#[test]
fn the_predictive_probability_is_that_of_the_next_model_on_average() {
    const WORLDS: u32 = 4000;
    const MODELS: usize = 18;
    let (mut predicted, mut accepted, mut squares) = (0.0, 0.0, 0.0);
    for world in 0..WORLDS {
        let mut rng = Seed(u64::from(world)).derive("predictive").rng();
        let points = points(1, &mut rng);
        let all: Vec<Arc<dyn Model>> = (0..=MODELS).map(|_| model(&mut rng)).collect();
        let votes = all.iter().map(|model| model.score(&points)[0] >= THRESHOLD);
        let votes: Vec<bool> = votes.collect();
        let valid = votes[..MODELS].iter().filter(|vote| **vote).count();
        let own = Proportion::new(valid, MODELS).unwrap().predictive();
        let next = f64::from(u8::from(votes[MODELS]));
        predicted += own;
        accepted += next;
        squares += (next - own).powi(2);
    }
    let worlds = f64::from(WORLDS);
    let error = 3.0 * (squares / worlds / worlds).sqrt();
    let surplus = (accepted - predicted) / worlds;
    let share = 1.0 / (MODELS + 1) as f64;
    assert!((-error..=share + error).contains(&surplus), "{surplus} within {error}");
    assert!(error < 0.6 * share, "{error}");
}

/// The shares of updates with a common expected share of 0.7, given the past.
type Updates = fn(&[f64], &mut dyn FnMut() -> f64) -> f64;
const EXPECTED: f64 = 0.7;

#[test]
fn the_bound_over_updates_holds_after_every_update() {
    const WORLDS: u32 = 1000;
    const LENGTH: usize = 40;
    let families: [(&str, Updates); 3] = [
        // An update keeps everything or nothing.
        ("all or nothing", |_, uniform| f64::from(u8::from(uniform() < EXPECTED))),
        ("many promises", |_, uniform| {
            let centre = 0.4 + 0.6 * uniform();
            (0..20).filter(|_| uniform() < centre).count() as f64 / 20.0
        }),
        // After a good update the next one varies more, with the same mean.
        ("depends on the past", |past, uniform| {
            let wide = past.last().is_some_and(|share| *share > EXPECTED);
            let spread = if wide { 0.3 } else { 0.05 };
            if uniform() < 0.5 { EXPECTED + spread } else { EXPECTED - spread }
        }),
    ];
    let mut repeated = 0.0;
    for (name, next) in families {
        let mut exceeded = 0.0;
        for world in 0..WORLDS {
            let mut rng = Seed(u64::from(world)).derive(name).rng();
            let mut uniform = || rng.random_range(0.0..1.0);
            let mut shares = Vec::new();
            let (mut ever, mut ever_plain) = (false, false);
            for _ in 0..LENGTH {
                let share = next(&shares, &mut uniform);
                shares.push(share);
                let kept = KeptShares::new(shares.clone()).unwrap();
                // `L_t > m` if and only if `K_t(m) >= 1/alpha`, up to rounding.
                ever |= kept.log_capital(EXPECTED) >= -libm::log(LEVEL);
                if name == "all or nothing" && !ever_plain {
                    let whole = shares.iter().sum::<f64>() as usize;
                    let bound = Proportion::new(whole, shares.len()).unwrap().lower(LEVEL);
                    ever_plain = bound.unwrap() > EXPECTED;
                }
            }
            let capital = KeptShares::new(shares).unwrap();
            let above = capital.lower(CONFIDENCE).unwrap() > EXPECTED;
            assert!(!above || ever, "{name}: the bound exceeds a mean that the capital does not");
            exceeded += f64::from(u8::from(ever));
            repeated += f64::from(u8::from(ever_plain));
        }
        let worlds = f64::from(WORLDS);
        assert!(exceeded / worlds <= most(LEVEL, worlds), "{name}: {}", exceeded / worlds);
    }
    // A bound for one number of updates, computed after each of them, fails more often than stated.
    let repeated = repeated / f64::from(WORLDS);
    assert!(repeated > 2.0 * LEVEL, "{repeated}");
}

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn german() -> Explainer {
    let catalogue = Catalogue::with_folders(Vec::new());
    let german = catalogue.load("german", Variant::Product, Direction::Favourable).unwrap();
    let params = TrainParams { hidden: vec![8], epochs: 20, ..TrainParams::default() };
    Explainer::train(german, &params, Seed(0), |_| ControlFlow::Continue(())).unwrap()
}

/// 760 networks: 20 disjoint sets of 19 fresh ones make the statements, the other 380 judge them.
#[test]
fn networks_that_are_trained_again_keep_the_statements() {
    const SETS: usize = 20;

    let explainer = german();
    // The cheapest advice is near the boundary, so that networks disagree about it.
    let request = Request::new("min-cost", Protocol::Product, Norm::L1, Seed(2)).unwrap();
    let mut rejected = explainer.applicants().rejected(Part::All);
    rejected.truncate(40);
    let advice = advise(&explainer, &request, &rejected, go_on).unwrap();
    let mut points = Points::new(explainer.points().dim());
    let found: Vec<&Advice> = advice.iter().filter(|each| each.found().is_some()).collect();
    found.iter().for_each(|each| points.push(&each.found().unwrap().point));
    assert!(points.len() > 25, "{}", points.len());
    let terms = RetrainingTerms {
        change: ModelChange::Reinitialise(Reinitialise {}),
        models: 2 * SETS * FRESH,
        params: explainer.retraining().params().unwrap(),
        seed: Seed(7),
    };
    let ensemble = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap();
    let (fresh, judges) = ensemble.members().split_at(SETS * FRESH);
    let judges = judged(&points, judges);
    let amounts = explainer.schema().position("credit_amount").unwrap();
    let number = |each: &&Advice| each.applicant.values.values()[amounts].to_string();
    let amounts = found.iter().map(|each| number(each).parse().unwrap()).collect();
    let count = points.len();
    let group = (0..count).map(|index| f64::from(u8::from(index % 2 == 0))).collect();
    for (kind, weights) in [vec![1.0; count], group, amounts].iter().enumerate() {
        let judging = judges.shares(weights).unwrap();
        let truth = judging.iter().sum::<f64>() / judging.len() as f64;
        assert!((0.3..0.97).contains(&truth), "{kind}: {truth}");
        let (mut failures, mut exceeded) = (0.0, 0);
        for set in fresh.chunks(FRESH) {
            let set = judged(&points, set);
            let statement = set.statement(None, None, count, weights, CONFIDENCE).unwrap();
            assert_eq!((statement.rank, set.verdict()), (1, Verdict::Certified));
            let less = judging.iter().filter(|share| **share < statement.at_least).count();
            failures += less as f64 / judging.len() as f64;
            // The set as 19 updates, one after another.
            let shares = set.shares(weights).unwrap();
            let ever = (1..=FRESH).any(|updates| {
                let kept = KeptShares::new(shares[..updates].to_vec()).unwrap();
                kept.lower(CONFIDENCE).unwrap() > truth
            });
            exceeded += usize::from(ever);
        }
        // Without ties the failures of a set are Beta(1, 19): mean 0.05, standard deviation 0.048.
        let failures = failures / SETS as f64;
        let error = 0.048 / (SETS as f64).sqrt() + 0.05 / (judging.len() as f64).sqrt();
        assert!(failures <= 0.05 + 3.0 * error, "{kind}: {failures}");
        // More than 4 of 20 have a probability of 0.003 at 0.05 each.
        assert!(exceeded <= 4, "{kind}: {exceeded}");
    }
    // One promise at a time: the bound at a confidence, and the predictive probability.
    let (mut highest, mut surplus) = (0.0_f64, 0.0);
    for place in 0..count {
        let mut only = vec![0.0; count];
        only[place] = 1.0;
        let accepted = |portfolio: &Portfolio| portfolio.shares(&only).unwrap();
        let accepting = accepted(&judges).iter().sum::<f64>() as usize;
        let truth = accepting as f64 / (SETS * FRESH) as f64;
        // Of all sets of these networks, the exact share whose bound is above the truth.
        let above = sets_above(accepting, SETS * FRESH, truth);
        assert!(above <= LEVEL, "{place}: {above}");
        highest = highest.max(above);
        for set in fresh.chunks(FRESH) {
            let valid = accepted(&judged(&points, set)).iter().sum::<f64>() as usize;
            let proportion = Proportion::new(valid, FRESH).unwrap();
            surplus += truth - proportion.predictive();
        }
    }
    let pairs = (count * SETS) as f64;
    // Some promise is near the level, so that a bound at a higher level would be noticed.
    assert!(highest > 0.5 * LEVEL, "{highest}");
    let surplus = surplus / pairs;
    assert!((-0.02..=1.0 / (FRESH + 1) as f64 + 0.02).contains(&surplus), "{surplus}");
}

#[test]
fn a_statement_has_the_rank_of_its_probability() {
    let mut rng = Seed(1).rng();
    let points = points(10, &mut rng);
    let all: Vec<Arc<dyn Model>> = (0..200).map(|_| model(&mut rng)).collect();
    let state = |models: usize, confidence: f64| {
        let portfolio = judged(&points, &all[..models]);
        portfolio.statement(None, None, 10, &[1.0; 10], confidence)
    };
    for (models, confidence, rank) in
        [(19, 0.95, 1), (18, 0.95, 1), (39, 0.95, 2), (199, 0.95, 10), (9, 0.5, 5), (1, 0.95, 1)]
    {
        let statement = state(models, confidence).unwrap();
        assert_eq!(statement.rank, rank, "{models}");
        let probability = 1.0 - rank as f64 / (models + 1) as f64;
        assert!((statement.probability - probability).abs() < 1e-12);
        let mut sorted = statement.shares.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(statement.at_least.to_bits(), sorted[rank - 1].to_bits());
    }
    assert_eq!(state(0, 0.95), None);
    let nobody = judged(&points, &all[..5]).statement(None, None, 0, &[0.0; 10], 0.95);
    assert_eq!(nobody, None);
    // The sentence names the group and the amount.
    let group = PortfolioGroup { column: "sex".to_owned(), name: "male".to_owned() };
    let portfolio = judged(&points, &all[..19]);
    let amount = Some("loan".to_owned());
    let said = portfolio.statement(Some(group), amount, 10, &[f64::MAX; 10], 0.95).unwrap();
    let end = "of the loan of the 10 promises with sex male: 0 of 19 models retrained to check this \
               keep less.";
    assert!(said.sentence.starts_with("With probability 0.950 the next model keeps at least"));
    assert!(said.sentence.ends_with(end), "{}", said.sentence);
}

/// A question with a promise, answered by given models.
fn answered(explainer: &Explainer, terms: &PortfolioTerms) -> tyrex::Result<PortfolioDocument> {
    let ask = Ask { promise: Some(0.5), ..Ask::default() };
    let retraining = RetrainingTerms {
        change: ModelChange::Reinitialise(Reinitialise {}),
        models: 40,
        params: explainer.retraining().params().unwrap(),
        seed: Seed(5),
    };
    let ensemble =
        explainer.retraining().train(&retraining, |_, _| ControlFlow::Continue(())).unwrap();
    let mut rejected = explainer.applicants().rejected(Part::Test);
    rejected.truncate(12);
    let answered = explainer.answer(&rejected, &ask, Some(&ensemble), go_on).unwrap();
    let found = answered.advice.iter().filter(|each| each.found().is_some()).count();
    let document = answered.portfolio.unwrap().document(
        terms,
        explainer.reference().table(),
        explainer.schema(),
    )?;
    assert_eq!(document.statements[0].promises, found);
    // The first statement counts the promises that each fresh model accepts, as the certificates.
    let accepting: Vec<usize> = answered
        .certificates
        .iter()
        .flatten()
        .map(|certificate| certificate.ensemble().unwrap().valid)
        .collect();
    let shares: f64 = document.statements[0].shares.iter().sum();
    let kept = (shares * found as f64).round() as usize;
    assert_eq!(kept, accepting.iter().sum::<usize>());
    Ok(document)
}

#[test]
fn groups_part_the_promises_and_amounts_weight_them() {
    let explainer = german();
    let by = ["personal_status", "age:30"].map(|by| by.parse().unwrap()).to_vec();
    let terms = PortfolioTerms { by, amount: Some("credit_amount".to_owned()) };
    let document = answered(&explainer, &terms).unwrap();
    let all = document.statements[0].promises;
    for column in ["personal_status", "age"] {
        let groups = document.statements.iter().filter(|statement| {
            statement.amount.is_none()
                && statement.group.as_ref().is_some_and(|group| group.column == column)
        });
        assert_eq!(groups.map(|statement| statement.promises).sum::<usize>(), all, "{column}");
    }
    let weighted = document.statements.iter().filter(|statement| statement.amount.is_some());
    assert_eq!(2 * weighted.count(), document.statements.len());
    assert_eq!(document.sentence, document.statements[0].sentence);
    assert_eq!(document.rests_on.len(), 2, "{:?}", document.rests_on);
}

#[test]
fn columns_and_amounts_are_checked() {
    let table =
        Table::from_csv("people.csv".as_ref(), b"loan,sex\n10,m\n-1,f\nmuch,f\n,m\n").unwrap();
    let amount = |name: &str| PortfolioTerms { amount: Some(name.to_owned()), by: Vec::new() };
    let says = |terms: &PortfolioTerms, rows: &[usize]| {
        terms.check(&table, rows.iter().copied()).unwrap_err().to_string()
    };
    assert!(amount("loan").check(&table, [0]).is_ok());
    for row in 1..=3 {
        let error = says(&amount("loan"), &[row]);
        let place = format!("people.csv, row {row}");
        assert!(error.contains(&place) && error.contains("an amount, at least 0"), "{error}");
    }
    assert!(says(&amount("lone"), &[]).contains("did you mean `loan`"));
    assert!(says(&amount("loan"), &[9]).contains("it has no row 9"));
    let by = |names: &[&str]| PortfolioTerms {
        by: names.iter().map(|name| name.parse().unwrap()).collect(),
        amount: None,
    };
    assert!(by(&["sex"]).check(&table, [0, 1]).is_ok());
    assert!(says(&by(&["age"]), &[]).contains("no column `age`"));
    assert!(says(&by(&["sex", "sex"]), &[]).contains("each grouping once"));
}
