//! The promise of one point holds as often as stated, also where the search fits its own models.
//!
//! In a world of `D` dimensions a model is `z(x) = w . x - 1` with `w ~ N(u, s^2 I)`, so a point is
//! accepted with the probability `Phi( (u . x - 1) / (s |x|) )`. There are fewer search models than
//! dimensions: the cheapest point that they accept follows their noise, and others reject it.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::RngExt;
use tyrex::action::FeasibleSet;
use tyrex::counterfactual::{
    Budget, Factual, MethodSpec, Norm, Problem, SearchModels, TrexE, find_all,
};
use tyrex::explain::{Ask, Promise, Threshold};
use tyrex::model::{Activation, Dense, Mlp, Model, Output, THRESHOLD};
use tyrex::statistics::Proportion;
use tyrex::{Points, Seed};

const DIM: usize = 40;
/// The standard deviation of a weight.
const SPREAD: f64 = 0.45;
const CONFIDENCE: f64 = 0.95;

/// A model with random weights around `u = (1, 0, ..., 0)`.
fn model(rng: &mut impl RngExt) -> Mlp {
    let mut normal = || {
        let (radius, angle): (f64, f64) = (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0));
        libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(std::f64::consts::TAU * angle)
    };
    let mut weights: Vec<f32> = (0..DIM).map(|_| (SPREAD * normal()) as f32).collect();
    weights[0] += 1.0;
    let layer = Dense { weights, bias: vec![-1.0], activation: Activation::Identity };
    Mlp::new(DIM, &[layer], Output::Sigmoid { favourable: true }).unwrap()
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

/// One answer: the bound by fresh models, the bound by the search models, and the truth.
struct Stated {
    fresh: f64,
    search: f64,
    truth: f64,
}

/// The answer of `trex-e` in a random world, if there is one.
fn stated(promise: Promise, seed: Seed) -> Option<Stated> {
    let mut rng = seed.rng();
    let mut models = |count: usize| -> Vec<Arc<dyn Model>> {
        (0..count).map(|_| Arc::new(model(&mut rng)) as Arc<dyn Model>).collect()
    };
    let own = models(1).remove(0);
    let search = models(5 + seed.0 as usize % 16);
    // With tuning models in every other world; without, the margin is any number.
    let tune = models(if seed.0.is_multiple_of(2) { 10 } else { 0 });
    let fresh = models(promise.fresh_models());
    let margin = if tune.is_empty() { rng.random_range(0.0..4.0) } else { 0.0 };
    let spec: MethodSpec =
        TrexE { tail: 0.1, margin, aim: promise.aim(), ..TrexE::default() }.into();

    let search_models = SearchModels::new(Arc::clone(&own), search.clone(), tune).unwrap();
    let (data, set) = (Points::new(DIM), FeasibleSet::everywhere(DIM));
    let problem = Problem::new(&*own, Norm::L2, &data).unwrap().with_search_models(&search_models);
    let method = spec.prepare(&problem, Seed(0)).unwrap();
    let origin = [0.0; DIM];
    let factuals = [Factual::new(&origin, &set)];
    let go_on = |_| ControlFlow::Continue(());
    let outcomes = find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();

    let point = &outcomes[0].found()?.point;
    let bound = |models: &[Arc<dyn Model>]| accepting(models, point).lower(1.0 - CONFIDENCE);
    Some(Stated {
        fresh: bound(&fresh).unwrap(),
        search: bound(&search).unwrap(),
        truth: acceptance(point),
    })
}

#[test]
fn a_bound_by_fresh_models_holds_and_one_by_the_search_models_does_not() {
    const WORLDS: u64 = 1000;
    for probability in [0.5, 0.9] {
        let promise = Promise::new(probability, CONFIDENCE).unwrap();
        let all: Vec<Stated> =
            (0..WORLDS).filter_map(|world| stated(promise, Seed(world))).collect();
        let worlds = all.len() as f64;
        let share = |holds: &dyn Fn(&Stated) -> bool| {
            all.iter().filter(|stated| holds(stated)).count() as f64 / worlds
        };
        let level = 1.0 - CONFIDENCE;
        let most = level + 3.0 * (level * (1.0 - level) / worlds).sqrt();

        let exceeded = share(&|stated| stated.fresh > stated.truth);
        assert!(exceeded <= most, "{probability}: the bound is too high in {exceeded}");
        let broken = share(&|stated| stated.fresh >= probability && stated.truth < probability);
        assert!(broken <= most, "{probability}: a promise is false in {broken}");
        // Both kinds of points occur: those that deserve the promise and those that do not.
        let kept = share(&|stated| stated.fresh >= probability);
        let deserving = share(&|stated| stated.truth >= probability);
        assert!(worlds > 0.8 * WORLDS as f64, "{worlds}");
        assert!((0.1..0.9).contains(&kept), "{probability}: {kept} are certified");
        assert!((0.1..0.95).contains(&deserving), "{probability}: {deserving} deserve it");

        // The models that the search has fitted say nothing about the next one.
        let exceeded = share(&|stated| stated.search > stated.truth);
        assert!(exceeded > 0.2, "{probability}: {exceeded}");
    }
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
