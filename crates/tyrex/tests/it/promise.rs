//! The promise of one point holds as often as stated, also where the search fits its own models.
//!
//! In a world of `D` dimensions a model is `z(x) = w . x - 1` with `w ~ N(u, s^2 I)`, so a point is
//! accepted with the probability `Phi( (u . x - 1) / (s |x|) )`. There are fewer search models than
//! dimensions: the cheapest point that they accept follows their noise, and others reject it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rayon::prelude::*;
use tyrex::action::FeasibleSet;
use tyrex::certificate::{SearchRecord, Verdict};
use tyrex::counterfactual::{
    Budget, Factual, MethodSpec, Norm, Problem, Protocol, SearchModels, TrexE, find_all,
};
use tyrex::data::{Schema, Table};
use tyrex::explain::{
    Ask, Explainer, GivenModel, GivenSet, Part, Promise, Reference, SEARCH_MODELS, TUNING_MODELS,
    Threshold,
};
use tyrex::model::files::{Core, InputBlock, InputColumn, InputKind, Inputs, ModelFile};
use tyrex::model::{Mlp, Model, THRESHOLD, TrainParams};
use tyrex::statistics::Proportion;
use tyrex::{Points, Seed};

use crate::support::german;

const DIM: usize = 40;
/// The standard deviation of a weight.
const SPREAD: f64 = 0.3;
const CONFIDENCE: f64 = 0.95;
const WORLDS: u64 = 2000;
/// The probability of each alarm in a simulation if all statements hold.
const FALSE_ALARM: f64 = 1e-6;

/// A model with random weights around `u = (1, 0, ..., 0)`.
fn model(rng: &mut impl RngExt) -> Mlp {
    let mut normal = || {
        let (radius, angle): (f64, f64) = (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0));
        libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(std::f64::consts::TAU * angle)
    };
    let mut weights: Vec<f32> = (0..DIM).map(|_| (SPREAD * normal()) as f32).collect();
    weights[0] += 1.0;
    Mlp::linear(weights, -1.0).unwrap()
}

/// The probability that a model accepts the point.
fn acceptance(point: &[f32]) -> f64 {
    let length = point.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    let logits = (f64::from(point[0]) - 1.0) / (SPREAD * length);
    0.5 * libm::erfc(-logits / std::f64::consts::SQRT_2)
}

fn accepting(models: &[Arc<dyn Model>], point: &[f32]) -> Proportion {
    let points = Points::from_rows(DIM, point.to_vec()).unwrap();
    let count = models.iter().filter(|model| model.score(&points)[0] >= THRESHOLD).count();
    Proportion::new(count, models.len()).unwrap()
}

type Models = Vec<Arc<dyn Model>>;

/// A random world: the model in use, models to search over, models that choose the margin of
/// `trex-e`, fresh models, and the margin of a search without the second ones.
struct World {
    own: Arc<dyn Model>,
    search: Models,
    tune: Models,
    fresh: Models,
    margin: f64,
}

impl World {
    fn new(promise: Promise, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let margin = rng.random_range(0.0..2.5);
        let count = rng.random_range(5..=20);
        let mut models = |count: usize| -> Models {
            (0..count).map(|_| Arc::new(model(&mut rng)) as Arc<dyn Model>).collect()
        };
        let own = models(1).remove(0);
        let (search, tune) = (models(count), models(10));
        Self { own, search, tune, fresh: models(promise.fresh_models()), margin }
    }

    /// The cheapest point at which all search models have at least the margin, in the Euclidean
    /// norm: by ascent over the multipliers of the models.
    fn cheapest(&self) -> Vec<f32> {
        let weights = |model: &Arc<dyn Model>| model.network().unwrap().layers()[0].weights.clone();
        let all: Vec<Vec<f32>> = self.search.iter().map(weights).collect();
        let dot =
            |a: &[f32], b: &[f64]| -> f64 { a.iter().zip(b).map(|(&a, b)| f64::from(a) * b).sum() };
        let (mut multipliers, mut point) = (vec![0.0; all.len()], vec![0.0; DIM]);
        for _ in 0..100 {
            for (weights, multiplier) in all.iter().zip(&mut multipliers) {
                let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
                let short = 1.0 + self.margin - dot(weights, &point);
                let change = (short / squares).max(-*multiplier);
                *multiplier += change;
                point.iter_mut().zip(weights).for_each(|(x, &w)| *x += change * f64::from(w));
            }
        }
        point.iter().map(|&x| x as f32).collect()
    }

    /// The answer of `trex-e` with tuning models, if there is one.
    fn by_trex_e(&self, promise: Promise) -> Option<Vec<f32>> {
        let spec: MethodSpec =
            TrexE { aim: promise.aim(promise.fresh_models()), ..TrexE::default() }.into();
        let (search, tune) = (self.search.clone(), self.tune.clone());
        let models = SearchModels::new(Arc::clone(&self.own), search, tune).unwrap();
        let (mut data, set) = (Points::new(DIM), FeasibleSet::everywhere(DIM));
        for step in 1..=40 {
            let mut point = [0.0; DIM];
            point[0] = 0.5 * step as f32;
            data.push(&point);
        }
        let problem = Problem::new(&*self.own, Norm::L2, &data).unwrap();
        let problem = problem.with_search_models(&models);
        let method = spec.prepare(&problem, Seed(0)).unwrap();
        let origin = [0.0; DIM];
        let factuals = [Factual::new(&origin, &set)];
        let go_on = |_| ControlFlow::Continue(());
        let outcomes = find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();
        outcomes[0].found().map(|found| found.point.clone())
    }
}

/// The statements about the answers in all worlds.
#[derive(Debug)]
struct Shares {
    /// Worlds with an answer.
    worlds: f64,
    /// Of them: the bound by fresh models is above the truth.
    exceeded: f64,
    /// The share at which that is expected: the mean of its exact probabilities.
    expected: f64,
    /// The bound reaches the promise.
    kept: f64,
    /// The bound reaches the promise, which the truth does not.
    broken: f64,
    /// The truth reaches the promise.
    deserving: f64,
    /// The bound by the search models is above the truth.
    exceeded_by_search: f64,
}

fn shares(promise: Promise, search: impl Fn(&World) -> Option<Vec<f32>> + Sync) -> Shares {
    let fresh = promise.fresh_models();
    let all: Vec<[f64; 3]> = (0..WORLDS)
        .into_par_iter()
        .filter_map(|seed| {
            let world = World::new(promise, Seed(seed));
            let point = search(&world)?;
            let bound =
                |models: &Models| accepting(models, &point).lower(1.0 - CONFIDENCE).unwrap();
            Some([bound(&world.fresh), bound(&world.search), acceptance(&point)])
        })
        .collect();
    let worlds = all.len() as f64;
    let share = |holds: &dyn Fn(&[f64; 3]) -> bool| {
        all.iter().filter(|stated| holds(stated)).count() as f64 / worlds
    };
    let promised = promise.probability();
    Shares {
        worlds,
        exceeded: share(&|[fresh, _, truth]| fresh > truth),
        expected: all.iter().map(|own| exceeding(fresh, own[2])).sum::<f64>() / worlds,
        kept: share(&|[fresh, ..]| *fresh >= promised),
        broken: share(&|[fresh, _, truth]| *fresh >= promised && *truth < promised),
        deserving: share(&|[.., truth]| *truth >= promised),
        exceeded_by_search: share(&|[_, search, truth]| search > truth),
    }
}

/// The exact probability that the bound by `n` fresh models is above the probability `truth` with
/// which each of them accepts the point.
fn exceeding(n: usize, truth: f64) -> f64 {
    let bound = |rejecting: usize| {
        Proportion::new(n - rejecting, n).unwrap().lower(1.0 - CONFIDENCE).unwrap()
    };
    let (mut term, mut sum) = (truth.powi(n as i32), 0.0);
    for rejecting in (0..=n).take_while(|&rejecting| bound(rejecting) > truth) {
        sum += term;
        term *= (n - rejecting) as f64 / (rejecting + 1) as f64 * (1.0 - truth) / truth;
    }
    sum
}

/// The share that independent events with this mean probability exceed, or fall below, with a
/// probability of at most [`FALSE_ALARM`] each, by Chernoff's bound: `exp(-worlds KL(share, mean))`.
fn limits(mean: f64, worlds: f64) -> [f64; 2] {
    let information = |share: f64| {
        let part = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * libm::log(a / b) };
        part(share, mean) + part(1.0 - share, 1.0 - mean)
    };
    let enough = -libm::log(FALSE_ALARM) / worlds;
    [0.0, 1.0].map(|end| {
        let (mut near, mut far) = (mean, end);
        for _ in 0..60 {
            let middle = 0.5 * (near + far);
            if information(middle) < enough { near = middle } else { far = middle }
        }
        far
    })
}

/// The bounds fail as often as fresh models that the search never saw make them fail, and so at most
/// as often as stated.
fn assert_honest(shares: &Shares, promise: Promise) {
    let probability = promise.probability();
    assert!(shares.expected <= 1.0 - CONFIDENCE, "{probability}: {shares:?}");
    let [least, most] = limits(shares.expected, shares.worlds);
    assert!((least..=most).contains(&shares.exceeded), "{probability}: {least} {most} {shares:?}");
    assert!(shares.broken <= shares.exceeded, "{probability}: {shares:?}");
}

#[test]
fn a_bound_by_fresh_models_holds_and_one_by_the_search_models_does_not() {
    for probability in [0.5, 0.9] {
        let promise = Promise::new(probability, CONFIDENCE).unwrap();
        let shares = shares(promise, |world| Some(world.cheapest()));
        assert_honest(&shares, promise);
        // Some points deserve the promise and some do not, so both could be confused.
        assert!((0.1..0.9).contains(&shares.deserving), "{probability}: {shares:?}");
        assert!(shares.kept > 0.02, "{probability}: {shares:?}");
        // The models that the search has fitted say little about the next one.
        let [_, most] = limits(1.0 - CONFIDENCE, shares.worlds);
        assert!(shares.exceeded_by_search > 3.0 * most, "{probability}: {shares:?}");
    }
}

#[test]
fn the_bound_holds_for_the_answers_of_trex_e() {
    for probability in [0.5, 0.9] {
        let promise = Promise::new(probability, CONFIDENCE).unwrap();
        let shares = shares(promise, |world| world.by_trex_e(promise));
        assert!(shares.worlds > 0.5 * WORLDS as f64, "{probability}: {shares:?}");
        assert_honest(&shares, promise);
        assert!(shares.kept > 0.3, "{probability}: {shares:?}");
    }
}

/// The columns of the worlds of the whole pipeline.
const COLUMNS: usize = 6;

/// A schema of numbers on their own scale, from `-end` to `end` in advice.
fn schema(end: f64) -> Schema {
    let mut text =
        "format_version = 1\n[label]\ncolumn = \"paid\"\nfavourable = \"yes\"\n[scaling]\n\
                    method = \"none\"\n[model]\ninput = \"raw\"\n"
            .to_owned();
    for column in 0..COLUMNS {
        text += &format!(
            "[[feature]]\nname = \"x{column}\"\nkind = \"numeric\"\n\
             action = {{ within = [-{end:.1}, {end:.1}] }}\n"
        );
    }
    Schema::from_toml(&text).unwrap()
}

fn linear(weights: &[f32]) -> ModelFile {
    let inputs = (0..COLUMNS)
        .map(|each| InputColumn { name: format!("x{each}"), kind: InputKind::Number })
        .collect();
    let number = |column| InputBlock::Number { column, missing: None, scale: 1.0, shift: 0.0 };
    ModelFile {
        inputs: Inputs::Columns(inputs),
        preprocessing: (0..COLUMNS).map(number).collect(),
        core: Core::Mlp(Mlp::linear(weights.to_vec(), -1.0).unwrap()),
        output: "probability".into(),
        classes: 2,
        favourable: 1,
        labels: None,
        metadata: BTreeMap::new(),
    }
}

fn explainer(schema: &Schema, weights: &[f32]) -> Explainer {
    let table = Table::from_csv(Path::new("rows.csv"), ROWS.as_bytes()).unwrap();
    Explainer::with_model(Reference::read(schema, table).unwrap(), linear(weights)).unwrap()
}

fn weights(rng: &mut impl RngExt) -> Vec<f32> {
    model(rng).layers()[0].weights[..COLUMNS].to_vec()
}

/// Models to search over, so many; to choose the margin; and enough to certify the promise.
fn given_models(promise: Promise, search: usize, rng: &mut impl RngExt) -> Vec<GivenModel> {
    let tune = 2 * search;
    let fresh = promise.fresh_models();
    let sets = [(GivenSet::Search, search), (GivenSet::Tune, tune), (GivenSet::Fresh, fresh)];
    let mut models = Vec::new();
    for (set, count) in sets {
        for each in 0..count {
            let model = Arc::new(Mlp::linear(weights(rng), -1.0).unwrap()) as Arc<dyn Model>;
            models.push(GivenModel { name: format!("{set:?} {each}"), set: Some(set), model });
        }
    }
    models
}

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The bound that the certificate states, its verdict, and the truth, of the answer of the whole
/// pipeline: given models, of which a search takes some, and others certify. If `leaks`, the search
/// gets models that certify.
fn answered(
    schema: &Schema,
    promise: Promise,
    seed: Seed,
    leaks: bool,
) -> Option<(f64, Verdict, f64)> {
    let mut rng = seed.rng();
    let explainer = explainer(schema, &weights(&mut rng));
    let models = given_models(promise, 5, &mut rng);
    let given = explainer.retraining().given("the test".into(), models.clone()).unwrap();
    let explainer = if leaks {
        let of = |set| {
            let own = models.iter().filter(move |model| model.set == Some(set));
            own.map(|model| Arc::clone(&model.model)).collect::<Vec<_>>()
        };
        let fresh = of(GivenSet::Fresh);
        explainer.with_search_models(fresh.clone(), fresh).unwrap()
    } else {
        explainer
    };
    let ask = Ask {
        promise: Some(promise.probability()),
        confidence: promise.confidence(),
        ..Ask::default()
    };
    let applicants = explainer.applicants().rejected(Part::All);
    let given = if leaks { given.fresh() } else { given };
    let answered = explainer.answer(&applicants[..1], &ask, Some(&given), go_on).unwrap();
    let certificate = answered.certificates[0].as_ref()?;
    let point = answered.advice[0].found()?.point.clone();
    let length = point.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    let logits = (f64::from(point[0]) - 1.0) / (SPREAD * length);
    let truth = 0.5 * libm::erfc(-logits / std::f64::consts::SQRT_2);
    let tier = certificate.ensemble().unwrap();
    Some((tier.probability, tier.verdict, truth))
}

const ROWS: &str = "\
x0,x1,x2,x3,x4,x5,paid
0,0,0,0,0,0,no
3,0,0,0,0,0,yes
6,0,0,0,0,0,yes
12,0,0,0,0,0,yes
";

/// Through the whole pipeline, the stated bounds fail as often as fresh models make them fail. A
/// search that gets models that certify is noticed by the certificate, however little it gains.
#[test]
fn models_that_certify_do_not_leak_into_the_search() {
    const WORLDS: u64 = 400;
    let promise = Promise::new(0.7, CONFIDENCE).unwrap();
    let schema = schema(20.0);
    let simulated = |leaks: bool| -> Vec<(f64, Verdict, f64)> {
        let world = |seed| answered(&schema, promise, Seed(seed).derive("pipeline"), leaks);
        (0..WORLDS).into_par_iter().filter_map(world).collect()
    };
    let share = |all: &[(f64, Verdict, f64)]| {
        all.iter().filter(|(bound, _, truth)| bound > truth).count() as f64 / all.len() as f64
    };
    let honest = simulated(false);
    assert!(honest.len() as f64 > 0.5 * WORLDS as f64, "{}", honest.len());
    let fresh = promise.fresh_models();
    let expected = honest.iter().map(|own| exceeding(fresh, own.2)).sum::<f64>();
    let expected = expected / honest.len() as f64;
    let [_, most] = limits(expected, honest.len() as f64);
    assert!(expected <= 1.0 - CONFIDENCE && share(&honest) <= most, "{} {most}", share(&honest));
    let certified = honest.iter().filter(|own| own.1 == Verdict::Certified).count();
    assert!(certified > 100, "{certified} of {}", honest.len());

    let leaking = simulated(true);
    assert!(leaking.len() > 100, "{}", leaking.len());
    assert!(leaking.iter().all(|own| own.1 != Verdict::Certified));
}

/// The document of the answer for one of the [`ROWS`].
fn document(schema: &Schema, weights: &[f32], row: usize, promise: Promise) -> serde_json::Value {
    let explainer = explainer(schema, weights);
    let given = given_models(promise, SEARCH_MODELS, &mut Seed(4).rng());
    let given = explainer.retraining().given("the test".into(), given).unwrap();
    let ask = Ask {
        promise: Some(promise.probability()),
        confidence: promise.confidence(),
        relax: Some(false),
        ..Ask::default()
    };
    let applicant = explainer.applicants().at(row).unwrap();
    let answered = explainer.answer(&[applicant], &ask, Some(&given), go_on).unwrap();
    serde_json::to_value(&answered.rows(1, go_on).unwrap()[0]).unwrap()
}

const UPRIGHT: [f32; COLUMNS] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// No point within 1.5 of the origin is accepted with a probability above
/// `Phi(0.5 / (0.3 1.5)) = 0.867`.
#[test]
fn where_a_promise_is_out_of_reach_the_highest_one_and_its_cost_are_named() {
    let promise = Promise::new(0.95, CONFIDENCE).unwrap();
    let row = document(&schema(1.5), &UPRIGHT, 0, promise);
    let advice = &row["advice"];
    assert_eq!(advice["status"], "not_found", "{row}");
    assert_eq!(advice["reason"], "promise-out-of-reach", "{row}");
    let highest = &advice["highest"];
    let shown = &highest["promise"];
    assert_eq!((&shown["asked"], &shown["kept"]), (&0.95.into(), &false.into()), "{row}");
    assert_eq!(shown["models"], promise.fresh_models());
    let (models, accepting) = (promise.fresh_models(), shown["accepting"].as_u64().unwrap());
    let proportion = Proportion::new(accepting as usize, models).unwrap();
    let bound = proportion.lower(1.0 - CONFIDENCE).unwrap();
    assert_eq!(shown["shown"].as_f64(), Some(bound), "{row}");
    assert!((0.6..0.867).contains(&bound), "{row}");
    // The best point has the first column at its end.
    let changes = highest["changes"].as_array().unwrap();
    assert_eq!((&changes[0]["feature"], &changes[0]["to"]), (&"x0".into(), &1.5.into()), "{row}");
    let cost: f64 = changes.iter().map(|each| each["to"].as_f64().unwrap().abs()).sum();
    assert!((highest["cost"]["l1"].as_f64().unwrap() - cost).abs() < 1e-5, "{row}");
    let sentence = row["retraining"].as_str().unwrap();
    assert_eq!(highest["sentence"], sentence);
    for piece in [
        format!("The best change found costs {cost:.2} in L1: "),
        format!("{accepting} of {models} models retrained to check this accept it"),
        "0.95 was asked for and is not shown".to_owned(),
    ] {
        assert!(sentence.contains(&piece), "{piece}: {sentence}");
    }
}

/// The model in use rejects a row that nearly all others accept.
#[test]
fn advice_that_is_no_better_than_doing_nothing_says_so() {
    let promise = Promise::new(0.5, CONFIDENCE).unwrap();
    let schema = schema(20.0);
    let weights = [0.3, 0.0, 0.0, 0.0, 0.0, 0.0];
    let says = "accept the applicant without any change, so for the next model the advice is no \
                better than doing nothing.";
    let row = document(&schema, &weights, 1, promise);
    let shown = &row["advice"]["promise"];
    assert_eq!(shown["unchanged"], row["unchanged"]["accepting"]);
    assert!(shown["unchanged"].as_u64() >= shown["accepting"].as_u64(), "{row}");
    assert!(row["retraining"].as_str().unwrap().ends_with(says), "{row}");
    // Nobody accepts the first row as it is.
    let row = document(&schema, &weights, 0, promise);
    assert_eq!(row["unchanged"]["accepting"], 0, "{row}");
    assert!(row["advice"]["promise"]["accepting"].as_u64() > Some(5), "{row}");
    assert!(!row["retraining"].as_str().unwrap().contains("doing nothing"), "{row}");
}

#[test]
fn the_models_of_an_answer_are_three_disjoint_sets() {
    let params = TrainParams { hidden: vec![4], epochs: 2, ..TrainParams::default() };
    let on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(german(), &params, Seed(0), on).unwrap();
    let applicants = explainer.applicants().rejected(Part::Test);
    let ask = Ask { promise: Some(0.5), confidence: 0.9, ..Ask::default() };
    let answered = explainer.answer(&applicants[..1], &ask, None, go_on).unwrap();
    let searched = serde_json::to_value(answered.adviser.explainer().searched()).unwrap();
    let prints = searched["fingerprints"].as_array().unwrap();
    let sets = SEARCH_MODELS + TUNING_MODELS;
    // A set of distinct ones.
    assert_eq!((&searched["models"], prints.len()), (&sets.into(), sets), "{searched}");
    let fresh = answered.fresh.as_deref().unwrap();
    let members = fresh.ensemble.members().iter().map(|own| own.identity().unwrap().to_string());
    let members: BTreeSet<String> = members.collect();
    assert_eq!(members.len(), Promise::new(0.5, 0.9).unwrap().fresh_models());
    let own = explainer.fingerprint().to_string();
    for print in prints.iter().map(|print| print.as_str().unwrap()) {
        assert!(members.iter().all(|member| !member.starts_with(print)), "{print}");
        assert!(!own.starts_with(print), "{print}");
    }
    assert_eq!(fresh.search, Some(SearchRecord::Others { models: sets }));
}

#[test]
fn a_search_without_a_limit_has_the_default_budget() {
    let evaluations = |ask: Ask| ask.request().unwrap().budget.evaluations;
    let named = |method: &str| Ask { method: Some(method.to_owned()), ..Ask::default() };
    assert_eq!(evaluations(Ask { promise: Some(0.9), ..Ask::default() }), Some(1_000_000));
    assert_eq!(evaluations(named("min-cost")), Some(1_000_000));
    assert_eq!(evaluations(Ask { k: Some(100), ..named("trex-o") }), Some(1_000_000));
    assert_eq!(evaluations(Ask { k: Some(5000), ..named("trex-o") }), Some(5_000_000));
    assert_eq!(evaluations(Ask { protocol: Protocol::Paper, ..named("trex-i") }), None);
    // Any limit of the question takes its place.
    let budget = Budget { steps: Some(7), ..Budget::default() };
    assert_eq!(Ask { budget, ..named("min-cost") }.request().unwrap().budget, budget);
}

/// The closed form of the acceptance, by draws.
#[test]
fn the_probability_of_acceptance_is_that_of_many_draws() {
    let mut rng = Seed(1).rng();
    let models: Vec<Arc<dyn Model>> =
        (0..20_000).map(|_| Arc::new(model(&mut rng)) as Arc<dyn Model>).collect();
    let mut point = [0.05; DIM];
    point[0] = 1.4;
    let proportion = accepting(&models, &point);
    let (low, high) = (proportion.lower(1e-4).unwrap(), proportion.upper(1e-4).unwrap());
    let truth = acceptance(&point);
    assert!(low <= truth && truth <= high, "{low} {truth} {high}");
}

#[test]
fn a_promise_has_one_method_and_no_test_of_stability() {
    let ask = Ask { promise: Some(0.9), ..Ask::default() };
    let MethodSpec::TrexE(method) = ask.request().unwrap().method else { panic!("trex-e") };
    assert!((method.tail - 0.1).abs() < 1e-12 && method.aim > 0.9, "{method:?}");
    let named = |method: &str| Some(method.to_owned());
    for (ask, says) in [
        (Ask { method: named("trex-o"), ..ask.clone() }, "`method` is trex-o, expected trex-e"),
        (Ask { tau: Some(Threshold::Given(0.8)), ..ask.clone() }, "expected no `tau`"),
        (Ask { tau: Some(Threshold::AUTO), ..ask.clone() }, "expected no `tau`"),
        (Ask { k: Some(10), ..ask.clone() }, "expected no `tau`"),
        (Ask { sigma: Some(0.1), ..ask.clone() }, "expected no `tau`"),
        (Ask { promise: Some(1.0), ..ask.clone() }, "`promise` is 1, expected a probability"),
        (Ask { promise: Some(f64::NAN), ..ask.clone() }, "`promise` is NaN"),
        (Ask { confidence: 0.3, ..ask.clone() }, "`confidence` is 0.3"),
        (Ask { confidence: f64::NAN, ..Ask::default() }, "`confidence` is NaN"),
    ] {
        let error = ask.request().unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}
