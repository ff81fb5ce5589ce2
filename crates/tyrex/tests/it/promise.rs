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
use tyrex::model::{Mlp, Model, THRESHOLD};
use tyrex::statistics::Proportion;
use tyrex::{Points, Seed};

const DIM: usize = 40;
/// The standard deviation of a weight.
const SPREAD: f64 = 0.3;
const CONFIDENCE: f64 = 0.95;
const WORLDS: u64 = 1000;

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
    /// The bound reaches the promise.
    kept: f64,
    /// The bound reaches the promise, which the truth does not.
    broken: f64,
    /// The truth reaches the promise.
    deserving: f64,
    /// The bound by the search models is above the truth.
    exceeded_by_search: f64,
}

fn shares(promise: Promise, search: impl Fn(&World) -> Option<Vec<f32>>) -> Shares {
    let all: Vec<[f64; 3]> = (0..WORLDS)
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
        kept: share(&|[fresh, ..]| *fresh >= promised),
        broken: share(&|[fresh, _, truth]| *fresh >= promised && *truth < promised),
        deserving: share(&|[.., truth]| *truth >= promised),
        exceeded_by_search: share(&|[_, search, truth]| search > truth),
    }
}

/// The level, and three standard errors of a share of that many worlds.
fn most(worlds: f64) -> f64 {
    let level = 1.0 - CONFIDENCE;
    level + 3.0 * (level * (1.0 - level) / worlds).sqrt()
}

#[test]
fn a_bound_by_fresh_models_holds_and_one_by_the_search_models_does_not() {
    for probability in [0.5, 0.9] {
        let promise = Promise::new(probability, CONFIDENCE).unwrap();
        let shares = shares(promise, |world| Some(world.cheapest()));
        let most = most(shares.worlds);
        assert!(shares.exceeded <= most && shares.broken <= most, "{probability}: {shares:?}");
        // Some points deserve the promise and some do not, so both could be confused.
        assert!((0.1..0.9).contains(&shares.deserving), "{probability}: {shares:?}");
        assert!(shares.kept > 0.02, "{probability}: {shares:?}");
        // The models that the search has fitted say little about the next one.
        assert!(shares.exceeded_by_search > 3.0 * most, "{probability}: {shares:?}");
    }
}

#[test]
fn the_bound_holds_for_the_answers_of_trex_e() {
    for probability in [0.5, 0.9] {
        let promise = Promise::new(probability, CONFIDENCE).unwrap();
        let shares = shares(promise, |world| world.by_trex_e(promise));
        assert!(shares.worlds > 0.5 * WORLDS as f64, "{probability}: {shares:?}");
        let most = most(shares.worlds);
        assert!(shares.exceeded <= most && shares.broken <= most, "{probability}: {shares:?}");
        assert!(shares.kept > 0.3, "{probability}: {shares:?}");
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
