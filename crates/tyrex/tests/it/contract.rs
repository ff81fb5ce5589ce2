//! The contract of every method, on several models and data sets.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tyrex::action::{Actions, FeasibleSet};
use tyrex::counterfactual::{
    Answer, Budget, Domain, Factual, MethodSpec, ModelNeed, Norm, Outcome, Plausible, Problem,
    Protocol, Reason, ReferenceUse, SearchModels, Tick, TrexE, find_all,
};
use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::data::moons::moons;
use tyrex::measure::{Gauge, RelaxedStability};
use tyrex::model::{Activation, Examples, Mlp, Model, THRESHOLD, TrainParams, TreeEnsemble, train};
use tyrex::neighbourhood::{Neighbourhood, Sampling};
use tyrex::plausibility::Plausibility;
use tyrex::{Points, Seed};

use crate::support::{Grown, forest, grown, leaf};

/// A model, its data, and rows to explain with where their answers may lie.
struct World {
    name: &'static str,
    model: Arc<dyn Model>,
    /// Models retrained to search over.
    search: Vec<Arc<dyn Model>>,
    /// With those that choose the margin.
    search_models: Option<SearchModels>,
    data: Points,
    factuals: Vec<(Vec<f32>, FeasibleSet)>,
}

impl World {
    fn new<M: Model + 'static>(
        name: &'static str,
        model: M,
        retrained: Vec<M>,
        data: Points,
        set: impl Fn(usize) -> FeasibleSet,
    ) -> Self {
        let scores = model.score(&data);
        let rejected = (0..data.len()).filter(|&row| scores[row] < THRESHOLD).take(12);
        let factuals: Vec<_> = rejected.map(|row| (data.row(row).to_vec(), set(row))).collect();
        assert!(factuals.len() > 3, "{name} rejects too few rows to test anything");
        let model: Arc<dyn Model> = Arc::new(model);
        let mut search: Vec<Arc<dyn Model>> =
            retrained.into_iter().map(|model| Arc::new(model) as Arc<dyn Model>).collect();
        let tune = search.split_off(search.len().min(SEARCH_MODELS));
        let search_models = (!search.is_empty())
            .then(|| SearchModels::new(Arc::clone(&model), search.clone(), tune).unwrap());
        Self { name, model, search, search_models, data, factuals }
    }

    fn factuals(&self) -> Vec<Factual<'_>> {
        self.factuals.iter().map(|(point, set)| Factual::new(point, set)).collect()
    }

    /// The methods that take the model.
    fn specs(&self) -> Vec<MethodSpec> {
        specs().into_iter().filter(|spec| spec.takes(&*self.model)).collect()
    }

    fn problem(&self, norm: Norm) -> Problem<'_> {
        self.with_models(Problem::new(&*self.model, norm, &self.data).unwrap())
    }

    fn with_models<'a>(&'a self, problem: Problem<'a>) -> Problem<'a> {
        match &self.search_models {
            Some(models) => problem.with_search_models(models),
            None => problem,
        }
    }

    /// The search models without those that choose the margin.
    fn untuned(&self) -> SearchModels {
        SearchModels::new(Arc::clone(&self.model), self.search.clone(), Vec::new()).unwrap()
    }

    fn answers(&self, spec: &MethodSpec, norm: Norm, budget: Budget) -> Vec<Outcome> {
        self.answers_to(&self.problem(norm), spec, budget)
    }

    fn answers_to(&self, problem: &Problem, spec: &MethodSpec, budget: Budget) -> Vec<Outcome> {
        let method = spec.prepare(problem, Seed(5)).unwrap();
        find_all(problem, &*method, &self.factuals(), budget, |_| ControlFlow::Continue(()))
            .unwrap()
    }
}

/// Models of a world to search over, and those to choose the margin.
const SEARCH_MODELS: usize = 6;
const TUNING_MODELS: usize = 3;

fn moon_data() -> (Points, Vec<u32>) {
    let sample = moons(300, 0.15, Seed(3)).unwrap();
    let coordinates = sample.iter().flat_map(|p| [p.x1 as f32, p.x2 as f32]).collect();
    let labels = sample.iter().map(|p| u32::from(p.lower)).collect();
    (Points::from_rows(2, coordinates).unwrap(), labels)
}

/// A network, and others that differ in their seed.
fn moon_networks(activation: Activation, hidden: &[usize]) -> (Mlp, Vec<Mlp>) {
    let (points, labels) = moon_data();
    let params = TrainParams {
        hidden: hidden.to_vec(),
        activation,
        epochs: 60,
        learning_rate: 5e-3,
        ..TrainParams::paper()
    };
    trained(Examples::new(&points, &labels), &params, 1)
}

fn trained(examples: Examples<'_>, params: &TrainParams, seed: u64) -> (Mlp, Vec<Mlp>) {
    let network = |seed: u64| train(examples, params, Seed(seed)).unwrap().network;
    let others = (100..).take(SEARCH_MODELS + TUNING_MODELS).map(network).collect();
    (network(seed), others)
}

/// Networks of three kinds on the moons, in all of space and in a box; the German rows with
/// their rules.
fn worlds() -> Vec<World> {
    let everywhere = |_| FeasibleSet::everywhere(2);
    let boxed = |_| FeasibleSet::within(vec![-1.5, -1.0], vec![2.5, 1.5]).unwrap();
    let (points, _) = moon_data();
    let (relu, relus) = moon_networks(Activation::Relu, &[16, 16]);
    let (tanh, tanhs) = moon_networks(Activation::Tanh, &[12]);
    let (linear, linears) = moon_networks(Activation::Relu, &[]);
    vec![
        World::new("moons, relu", relu, relus, points.clone(), everywhere),
        World::new("moons, tanh, in a box", tanh, tanhs, points.clone(), boxed),
        World::new("moons, linear", linear, linears, points.clone(), everywhere),
        german(),
        moon_trees(),
        german_trees(),
    ]
}

/// Boosted trees, and others that differ in their seed.
fn grown_all(points: &Points, labels: &[u32], shape: Grown) -> (TreeEnsemble, Vec<TreeEnsemble>) {
    let others = (100..).take(SEARCH_MODELS + TUNING_MODELS);
    let others = others.map(|seed| grown(points, labels, shape, Seed(seed))).collect();
    (grown(points, labels, shape, Seed(1)), others)
}

fn moon_trees() -> World {
    let (points, labels) = moon_data();
    let (model, others) = grown_all(&points, &labels, Grown { trees: 30, depth: 3, rate: 0.5 });
    World::new("moons, trees", model, others, points, |_| FeasibleSet::everywhere(2))
}

fn german_trees() -> World {
    let data =
        Catalogue::new(None).load("german", Variant::Product, Direction::Favourable).unwrap();
    let labels: Vec<u32> = data.labels().iter().map(|&label| u32::from(label)).collect();
    let shape = Grown { trees: 25, depth: 3, rate: 0.5 };
    let (model, others) = grown_all(data.points(), &labels, shape);
    let actions = Actions::new(data.schema(), data.encoder()).unwrap();
    let set = |row: usize| actions.for_factual(&data.rows()[row]).unwrap();
    World::new("german, trees", model, others, data.points().clone(), set)
}

fn german() -> World {
    let data =
        Catalogue::new(None).load("german", Variant::Product, Direction::Favourable).unwrap();
    let labels: Vec<u32> = data.labels().iter().map(|&label| u32::from(label)).collect();
    let params = TrainParams { hidden: vec![32, 32], epochs: 15, ..TrainParams::paper() };
    let examples = Examples::new(data.points(), &labels).with_rows(data.train());
    let (network, retrained) = trained(examples, &params, 0);
    let actions = Actions::new(data.schema(), data.encoder()).unwrap();
    let set = |row: usize| actions.for_factual(&data.rows()[row]).unwrap();
    World::new("german, with rules", network, retrained, data.points().clone(), set)
}

fn spec(name: &str) -> MethodSpec {
    let mut spec = MethodSpec::named(name, Protocol::Product).unwrap();
    if let Some(robustness) = spec.robustness_mut() {
        robustness.tau = 0.7;
    }
    spec
}

fn specs() -> Vec<MethodSpec> {
    MethodSpec::NAMES.into_iter().map(spec).collect()
}

fn same(a: &[Outcome], b: &[Outcome]) -> bool {
    let parts = |o: &Outcome| (o.answer.clone(), o.effort);
    a.iter().map(parts).eq(b.iter().map(parts))
}

/// Every method on every world, networks and trees: what it finds is as usual as asked, and it finds
/// answers where the data have some.
#[test]
fn what_is_found_is_usual_if_that_is_asked() {
    let least = 0.2;
    for world in worlds() {
        let scores = world.model.score(&world.data);
        let accepted: Vec<usize> =
            (0..scores.len()).filter(|&row| scores[row] >= THRESHOLD).collect();
        let density = Plausibility::fit_numbers(&world.data.select(&accepted), Seed(1)).unwrap();
        for norm in [Norm::L1, Norm::L2] {
            let condition = Plausible::new(&density, least).unwrap();
            let problem = world.problem(norm).with_plausible(condition).unwrap();
            for spec in world.specs() {
                let what = format!("{} {norm:?} {}", world.name, spec.name());
                let plain = world.answers(&spec, norm, Budget::default());
                let answers = world.answers_to(&problem, &spec, Budget::default());
                let (mut found, mut reachable) = (0, 0);
                for (answer, plain) in answers.iter().zip(&plain) {
                    reachable += usize::from(plain.found().is_some());
                    match answer.found() {
                        Some(own) => {
                            found += 1;
                            let p_value = density.p_value(&own.point);
                            assert!(p_value >= least - 1e-12, "{what}: {p_value}");
                            assert!(own.score >= THRESHOLD, "{what}");
                        }
                        // Whether the condition is the reason, the method does not know.
                        None => assert!(
                            matches!(
                                answer.reason(),
                                Some(
                                    Reason::Stuck
                                        | Reason::NoCandidate
                                        | Reason::NoActionableRow
                                        | Reason::PromiseOutOfReach
                                        | Reason::BudgetSpent
                                )
                            ),
                            "{what}: {:?}",
                            answer.reason()
                        ),
                    }
                }
                assert!(2 * found >= reachable, "{what}: {found} of {reachable}");
                assert!(same(&answers, &world.answers_to(&problem, &spec, Budget::default())));
            }
        }
    }
}

#[test]
fn what_is_found_is_valid_feasible_stable_and_costs_what_it_says() {
    for world in worlds() {
        let cloud =
            Neighbourhood::draw(Sampling::MonteCarlo, world.data.dim(), 10_000, 0.1, Seed(99))
                .unwrap();
        let gauge = Gauge::new(RelaxedStability {}, &*world.model, &cloud).unwrap();
        for spec in world.specs() {
            for norm in [Norm::L1, Norm::L2] {
                let outcomes = world.answers(&spec, norm, Budget::default());
                let mut found = 0;
                for (outcome, factual) in outcomes.iter().zip(world.factuals()) {
                    let place = format!("{} {} {norm:?}", world.name, spec.name());
                    let Some(counterfactual) = outcome.found() else { continue };
                    found += 1;
                    let point = &counterfactual.point;
                    let batch = Points::from_rows(point.len(), point.clone()).unwrap();
                    let score = world.model.score(&batch)[0];
                    assert!(score >= THRESHOLD, "{place}: {score}");
                    assert_eq!(score.to_bits(), counterfactual.score.to_bits(), "{place}");
                    let cost = norm.distance(point, factual.point);
                    assert_eq!(cost.to_bits(), counterfactual.cost.to_bits(), "{place}");
                    assert!(cost > 0.0, "{place}: the factual is not a counterfactual of itself");
                    assert!(factual.set.contains(point), "{place}: {point:?}");
                    if factual.domain == Domain::Encodable {
                        let (row, encoded) = factual.set.settle(point).unwrap();
                        assert_eq!(&encoded, point, "{place}: not the point of a row");
                        assert!(factual.set.violations(&row).is_empty(), "{place}: {row:?}");
                    }
                    if let Some(robustness) = spec.robustness() {
                        assert!(counterfactual.value >= robustness.tau, "{place}");
                        // The value from 1000 samples agrees with that from 10,000 others, up to their noise.
                        let again = gauge.read(&batch)[0].value;
                        assert!(again >= robustness.tau - 0.04, "{place}: {again}");
                    }
                }
                // ROAR may find the worst case too bad; the others have what they need here.
                if !world.name.starts_with("german") && spec.name() != "roar" {
                    assert_eq!(found, outcomes.len(), "{} {}", world.name, spec.name());
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    for world in worlds() {
        for spec in world.specs() {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| world.answers(&spec, Norm::L1, Budget::default()))
            };
            assert!(same(&on(1), &on(3)), "{} {}", world.name, spec.name());
        }
    }
}

#[test]
fn budgets_are_kept_and_what_is_found_within_them_still_passes() {
    for world in worlds() {
        for spec in world.specs() {
            for budget in [
                Budget { steps: Some(3), ..Budget::default() },
                Budget { evaluations: Some(700), ..Budget::default() },
                Budget { evaluations: Some(1), ..Budget::default() },
            ] {
                for outcome in world.answers(&spec, Norm::L2, budget) {
                    let place = format!("{} {} {budget:?}", world.name, spec.name());
                    assert!(
                        budget.steps.is_none_or(|most| outcome.effort.steps <= most),
                        "{place}"
                    );
                    let most = budget.evaluations.unwrap_or(u64::MAX);
                    assert!(outcome.effort.evaluations <= most, "{place}: {:?}", outcome.effort);
                    match &outcome.answer {
                        Answer::Found { counterfactual, .. } => {
                            assert!(counterfactual.score >= THRESHOLD, "{place}");
                        }
                        Answer::NotFound { best, .. } => {
                            assert!(best.iter().all(|b| b.point.iter().all(|x| x.is_finite())));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_search_can_be_cancelled_and_keeps_what_it_has() {
    let world = &worlds()[0];
    let problem = world.problem(Norm::L1);
    let method = spec("min-cost").prepare(&problem, Seed(0)).unwrap();
    let done = AtomicUsize::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let outcomes = pool.install(|| {
        find_all(&problem, &*method, &world.factuals(), Budget::default(), |tick| {
            if tick == Tick::Answered && done.fetch_add(1, Ordering::Relaxed) == 2 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
        .unwrap()
    });
    let cancelled = outcomes.iter().filter(|o| o.reason() == Some(Reason::Cancelled)).count();
    assert_eq!(cancelled, outcomes.len() - 3);
    assert_eq!(outcomes.iter().filter(|o| o.found().is_some()).count(), 3);
}

#[test]
fn a_search_ends_in_the_middle_of_a_row_when_it_is_told_to() {
    let world = &worlds()[0];
    let problem = world.problem(Norm::L1);
    for spec in specs() {
        let method = spec.prepare(&problem, Seed(0)).unwrap();
        let readings = AtomicUsize::new(0);
        let outcomes = find_all(&problem, &*method, &world.factuals(), Budget::default(), |_| {
            readings.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        })
        .unwrap();
        let name = spec.name();
        assert!(
            outcomes.iter().all(|outcome| outcome.reason() == Some(Reason::Cancelled)
                || outcome.reason() == Some(Reason::AlreadyFavourable)),
            "{name}"
        );
        // Nothing more is read: each thread hears the first `Break` at the latest.
        assert!(readings.load(Ordering::Relaxed) <= rayon::current_num_threads(), "{name}");
        assert!(outcomes.iter().all(|outcome| outcome.effort.evaluations == 0), "{name}");
    }
}

#[test]
fn trex_o_never_costs_more_than_trex_i_and_finds_at_least_as_many() {
    for world in worlds() {
        for norm in [Norm::L1, Norm::L2] {
            let [climbed, cheapest] = ["trex-i", "trex-o"].map(|name| {
                let mut spec = MethodSpec::named(name, Protocol::Product).unwrap();
                spec.robustness_mut().unwrap().tau = 0.8;
                world.answers(&spec, norm, Budget::default())
            });
            for (i, o) in climbed.iter().zip(&cheapest) {
                if let Some(i) = i.found() {
                    assert!(o.found().unwrap().cost <= i.cost, "{} {norm:?}", world.name);
                }
            }
        }
    }
}

/// The logit of a score.
fn logit(score: f32) -> f64 {
    let score = f64::from(score);
    (score / (1.0 - score)).ln()
}

/// For each point that the model in use accepts, the mean of the lowest share of the logits of the
/// others.
fn exact_tail(world: &World, points: &Points, share: f64) -> Vec<f64> {
    let of_models: Vec<Vec<f32>> = world.search.iter().map(|model| model.score(points)).collect();
    let own = world.model.score(points);
    let value = |index: usize| {
        let mut logits: Vec<f64> = of_models.iter().map(|scores| logit(scores[index])).collect();
        logits.sort_by(f64::total_cmp);
        let mut left = (share * logits.len() as f64).max(1.0);
        let all = left;
        let mut sum = 0.0;
        for z in logits {
            let part = left.clamp(0.0, 1.0);
            left -= part;
            if part > 0.0 {
                sum += part * z;
            }
        }
        if own[index] >= 0.5 { sum / all } else { f64::NEG_INFINITY }
    };
    (0..points.len()).map(value).collect()
}

#[test]
fn trex_e_is_accepted_by_the_model_and_by_the_tail_of_the_search_models() {
    for world in worlds() {
        let untuned = world.untuned();
        for (norm, tail, margin) in
            [(Norm::L1, 0.1, 0.0), (Norm::L2, 0.5, 0.0), (Norm::L2, 0.3, 0.4), (Norm::L1, 1.0, 0.2)]
        {
            let spec: MethodSpec = TrexE { tail, margin, ..TrexE::default() }.into();
            let place = format!("{} {norm:?} {tail} {margin}", world.name);
            let plain = Problem::new(&*world.model, norm, &world.data).unwrap();
            let plain = plain.with_search_models(&untuned);
            let mut outcomes = world.answers_to(&plain, &spec, Budget::default());
            let found = outcomes.iter().filter(|outcome| outcome.found().is_some()).count();
            assert!(found >= 4, "{place}: {found} found");
            // Models that choose the margin may refuse all answers; those that are left are higher.
            outcomes.extend(world.answers(&spec, norm, Budget::default()));
            for counterfactual in outcomes.iter().filter_map(Outcome::found) {
                let point = &counterfactual.point;
                let batch = Points::from_rows(point.len(), point.clone()).unwrap();
                let exact = exact_tail(&world, &batch, tail)[0];
                assert!(exact >= margin - 1e-4, "{place}: {exact}");
                // The smooth tail of the search is a lower bound. The exact one comes from scores,
                // which have few digits for high logits.
                let smooth = counterfactual.value;
                let is_bound = smooth <= exact + 1e-3 || exact > 8.0;
                assert!(smooth >= margin && is_bound, "{place}: {smooth} {exact}");
            }
        }
    }
}

/// Without models that raise the margin: where a data point passes, the answer costs no more.
#[test]
fn trex_e_never_costs_more_than_the_nearest_data_point_that_passes() {
    for world in worlds().iter().filter(|world| !world.name.starts_with("german")) {
        let models = world.untuned();
        let values = exact_tail(world, &world.data, 0.2);
        for (norm, margin) in [(Norm::L1, 0.0), (Norm::L2, 0.3)] {
            let problem = Problem::new(&*world.model, norm, &world.data).unwrap();
            let problem = problem.with_search_models(&models);
            let spec: MethodSpec = TrexE { tail: 0.2, margin, ..TrexE::default() }.into();
            let outcomes = world.answers_to(&problem, &spec, Budget::default());
            for (outcome, factual) in outcomes.iter().zip(world.factuals()) {
                let passing = world.data.rows().zip(&values).filter(|(row, value)| {
                    // More than the smooth tail of the search is lower.
                    **value >= margin + 0.3 && factual.set.contains(row)
                });
                let nearest = passing
                    .map(|(row, _)| norm.distance(row, factual.point))
                    .fold(f64::INFINITY, f64::min);
                assert!(nearest.is_finite(), "{}: no data point passes", world.name);
                let cost = outcome.found().expect("a data point passes").cost;
                assert!(cost <= nearest, "{} {norm:?}: {cost} {nearest}", world.name);
            }
        }
    }
}

#[test]
fn trex_e_needs_models_to_search_over() {
    let world = &worlds()[0];
    let problem = Problem::new(&*world.model, Norm::L1, &world.data).unwrap();
    let error = spec("trex-e").prepare(&problem, Seed(0)).err().unwrap().to_string();
    assert!(error.contains("retrained models to search over"), "{error}");
}

#[test]
fn margin_reaches_its_score_and_at_one_half_it_is_min_cost() {
    let margin = |score: f64| -> MethodSpec {
        serde_json::from_value(serde_json::json!({ "method": "margin", "score": score })).unwrap()
    };
    for world in worlds() {
        for norm in [Norm::L1, Norm::L2] {
            let answers = |spec: &MethodSpec| world.answers(spec, norm, Budget::default());
            assert!(same(&answers(&margin(0.5)), &answers(&spec("min-cost"))), "{}", world.name);
            let mut found = 0;
            for outcome in answers(&margin(0.9)) {
                let Some(counterfactual) = outcome.found() else { continue };
                found += 1;
                assert!(f64::from(counterfactual.score) >= 0.9, "{}", world.name);
            }
            assert!(found >= 4, "{} {norm:?}: {found} found", world.name);
        }
    }
}

/// On the plane the closest accepted point can be found by trying them all.
#[test]
fn min_cost_is_as_close_as_a_fine_grid() {
    let world = &worlds()[0];
    let step = 0.02_f32;
    let mut grid = Points::new(2);
    for i in -100..150 {
        for j in -100..100 {
            grid.push(&[i as f32 * step, j as f32 * step]);
        }
    }
    let scores = world.model.score(&grid);
    for norm in [Norm::L1, Norm::L2] {
        let outcomes = world.answers(&spec("min-cost"), norm, Budget::default());
        let mut excess = Vec::new();
        for (outcome, factual) in outcomes.iter().zip(world.factuals()) {
            let accepted = grid.rows().zip(&scores).filter(|(_, score)| **score >= THRESHOLD);
            let nearest = accepted
                .map(|(p, _)| norm.distance(p, factual.point))
                .fold(f64::INFINITY, f64::min);
            excess.push(outcome.found().unwrap().cost / nearest);
        }
        excess.sort_by(f64::total_cmp);
        // A local search may end at another piece of the boundary, but rarely.
        assert!(excess[excess.len() / 2] < 1.02, "{excess:?}");
        assert!(excess[excess.len() - 2] < 1.3, "{excess:?}");
    }
}

#[test]
fn methods_that_need_gradients_refuse_trees_and_say_what_to_use() {
    let world = moon_trees();
    let problem = world.problem(Norm::L2);
    for name in ["roar", "elastic-net"] {
        let error = spec(name).prepare(&problem, Seed(0)).err().unwrap().to_string();
        let said = format!(
            "model: {name} needs gradients, which trees and black boxes do not have; use trex-e, \
             trex-i, trex-o, trex-nn, min-cost, margin, nn or sns"
        );
        assert_eq!(error, said);
    }
    // The base decides too.
    let nested = serde_json::json!({ "method": "trex-i", "base": { "method": "roar" } });
    let nested: MethodSpec = serde_json::from_value(nested).unwrap();
    assert_eq!(nested.needs(), ModelNeed::Gradients);
    assert!(nested.prepare(&problem, Seed(0)).is_err());
}

/// A model that hides what it is.
#[derive(Debug)]
struct Opaque(TreeEnsemble);

impl Model for Opaque {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        self.0.score_into(points, scores);
    }
}

#[test]
fn black_boxes_are_explained_by_neighbours_and_refused_elsewhere() {
    let (points, labels) = moon_data();
    let model = grown(&points, &labels, Grown { trees: 30, depth: 3, rate: 0.5 }, Seed(1));
    let everywhere = |_| FeasibleSet::everywhere(2);
    let world = World::new("moons, a black box", Opaque(model), Vec::new(), points, everywhere);
    for spec in specs() {
        let name = spec.name();
        if spec.needs() == ModelNeed::Scores {
            let outcomes = world.answers(&spec, Norm::L2, Budget::default());
            assert!(outcomes.iter().all(|outcome| outcome.found().is_some()), "{name}");
            continue;
        }
        let problem = world.problem(Norm::L2);
        let error = spec.prepare(&problem, Seed(0)).err().unwrap().to_string();
        assert!(error.starts_with(&format!("model: {name} needs gradients")), "{error}");
        assert!(error.ends_with("; use trex-nn or nn"), "{error}");
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let world = &worlds()[0];
    let problem = world.problem(Norm::L1);
    for (text, part) in [
        (r#"{"method": "min-cost", "steps": 0}"#, "`steps` is 0"),
        (r#"{"method": "margin", "steps": 0}"#, "`steps` is 0"),
        (r#"{"method": "margin", "score": 0.49}"#, "`score` is 0.49"),
        (r#"{"method": "margin", "score": 1.0}"#, "`score` is 1"),
        (r#"{"method": "trex-e", "steps": 0}"#, "`steps` is 0"),
        (r#"{"method": "trex-e", "tail": 0.0}"#, "`tail` is 0"),
        (r#"{"method": "trex-e", "aim": 1.0}"#, "`aim` is 1"),
        (r#"{"method": "trex-i", "robustness": {"tau": 1.5}}"#, "`tau` is 1.5"),
        (r#"{"method": "trex-i", "robustness": {"samples": 0}}"#, "`k` is 0"),
        (r#"{"method": "trex-i", "robustness": {"sigma": -1.0}}"#, "`sigma` is -1"),
        (r#"{"method": "trex-i", "step": {"raw": 0.0}}"#, "`step` is 0"),
        (r#"{"method": "trex-o", "steps": 0}"#, "`steps` is 0"),
        (r#"{"method": "trex-nn", "neighbours": 0}"#, "`neighbours` is 0"),
        (r#"{"method": "sns", "radius": 0.0}"#, "`radius` is 0"),
        (r#"{"method": "sns", "path": 0}"#, "`steps` is 0"),
        (r#"{"method": "roar", "delta": -0.1}"#, "`delta` is -0.1"),
        (r#"{"method": "elastic-net", "rate": 2.0}"#, "`rate` is 2"),
        (r#"{"method": "elastic-net", "beta": -1.0}"#, "`beta` is -1"),
    ] {
        let spec: MethodSpec = serde_json::from_str(text).unwrap();
        let error = spec.prepare(&problem, Seed(0)).err().unwrap().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in [r#"{"method": "min-cost", "stepps": 3}"#, r#"{"method": "magic"}"#, "{}"] {
        assert!(serde_json::from_str::<MethodSpec>(text).is_err(), "{text}");
    }
    for spec in specs() {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<MethodSpec>(&text).unwrap(), spec);
    }
}

/// Names and parameters stand in files of users: this is what the first version wrote.
#[test]
fn documents_are_pinned_for_every_method_and_protocol() {
    let test = |tau: f64, sigma: f64, search: &str| {
        format!(
            r#"{{"measure":{{"name":"relaxed-stability"}},"tau":{tau},"samples":1000,"sigma":{sigma},"search":{search}}}"#
        )
    };
    let sobol = r#"{"sampling":"sobol","samples":256}"#;
    let plain = r#"{"sampling":"monte-carlo","samples":1000}"#;
    let closest = r#"{"method":"min-cost","steps":200}"#;
    let released = r#"{"method":"elastic-net","beta":null,"confidence":0.5,"rate":0.001,"steps":60,"rounds":9,"as_released":true}"#;
    for (protocol, base, tau, sigma, search, step, neighbours, delta) in [
        (
            Protocol::Product,
            closest,
            0.8,
            0.1,
            sobol,
            r#""adaptive","steps":200,"rescue":true"#,
            "null",
            0.1,
        ),
        (
            Protocol::Paper,
            closest,
            0.8,
            0.1,
            plain,
            r#"{"raw":0.01},"steps":200,"rescue":false"#,
            "1000",
            0.1,
        ),
        (
            Protocol::Reference,
            released,
            0.75,
            0.05,
            plain,
            r#"{"unit":0.01},"steps":20,"rescue":false"#,
            "null",
            0.001,
        ),
    ] {
        let (own, ours) = (test(tau, sigma, search), test(tau, sigma, sobol));
        let elastic_net = match protocol {
            Protocol::Reference => released.to_owned(),
            _ => r#"{"method":"elastic-net","beta":null,"confidence":0.0,"rate":0.02,"steps":200,"rounds":12,"as_released":false}"#.to_owned(),
        };
        let expected = [
            r#"{"method":"trex-e","tail":0.1,"margin":0.0,"aim":0.98,"steps":100}"#.to_owned(),
            format!(r#"{{"method":"trex-i","base":{base},"robustness":{own},"step":{step}}}"#),
            format!(
                r#"{{"method":"trex-o","start":{{"base":{base},"robustness":{ours},"step":"adaptive","steps":200,"rescue":true}},"steps":60}}"#
            ),
            format!(r#"{{"method":"trex-nn","neighbours":{neighbours},"robustness":{own}}}"#),
            base.to_owned(),
            r#"{"method":"margin","score":0.7,"steps":200}"#.to_owned(),
            r#"{"method":"nn"}"#.to_owned(),
            format!(
                r#"{{"method":"sns","base":{base},"path":20,"radius":0.2,"rate":0.01,"steps":100}}"#
            ),
            format!(r#"{{"method":"roar","delta":{delta},"steps":200}}"#),
            elastic_net,
        ];
        let written = MethodSpec::NAMES.map(|name| {
            let spec = MethodSpec::named(name, protocol).unwrap();
            serde_json::to_string(&spec).unwrap()
        });
        assert_eq!(written, expected, "{}", protocol.name());
    }
}

/// The description of each method in the catalogue.
#[test]
fn every_method_says_of_itself_what_is_true_of_it() {
    use ModelNeed::{Gradients, GradientsOrTrees, Scores};
    use ReferenceUse::{Optional, Required, Unused};
    let trees = moon_trees();
    let said: Vec<_> = MethodSpec::all()
        .iter()
        .map(|spec| (spec.name(), spec.title(), spec.needs(), spec.reference()))
        .collect();
    assert_eq!(
        said,
        [
            ("trex-e", "T-Rex:E", GradientsOrTrees, Optional),
            ("trex-i", "T-Rex:I", GradientsOrTrees, Optional),
            ("trex-o", "T-Rex:O", GradientsOrTrees, Optional),
            ("trex-nn", "T-Rex:NN", Scores, Required),
            ("min-cost", "min-cost", GradientsOrTrees, Optional),
            ("margin", "margin", GradientsOrTrees, Optional),
            ("nn", "NN", Scores, Required),
            ("sns", "SNS", GradientsOrTrees, Optional),
            ("roar", "ROAR", Gradients, Optional),
            ("elastic-net", "elastic-net", Gradients, Unused),
        ]
    );
    for mut spec in MethodSpec::all() {
        let document = serde_json::to_value(&spec).unwrap();
        assert_eq!(document["method"], spec.name());
        let name_alone = serde_json::json!({ "method": spec.name() });
        assert_eq!(serde_json::from_value::<MethodSpec>(name_alone).unwrap(), spec);
        assert_eq!(MethodSpec::named(spec.name(), Protocol::Product).unwrap(), spec);
        assert!(spec.sentence().ends_with('.'), "{}", spec.sentence());
        assert_eq!(spec.robustness().cloned(), spec.robustness_mut().cloned());
        let black_box = Opaque(forest(2, &[vec![leaf(0.4)]]));
        for model in [&black_box as &dyn Model, &*trees.model] {
            let instead = spec.for_model(model, Protocol::Product).unwrap();
            assert!(instead.takes(model), "{}", spec.name());
            assert_eq!(instead.robustness(), spec.robustness());
        }
    }
    assert_eq!(MethodSpec::listed(MethodSpec::is_robust), "trex-i, trex-o or trex-nn");
    assert_eq!(MethodSpec::listed(MethodSpec::needs_models), "trex-e");
}

/// A method without data points: one that requires them says so, the others answer.
#[test]
fn without_data_points_only_the_methods_that_require_them_refuse() {
    let world = &worlds()[0];
    let none = Points::new(2);
    let problem = world.with_models(Problem::new(&*world.model, Norm::L1, &none).unwrap());
    let mut nested = serde_json::to_value(spec("trex-i")).unwrap();
    nested["base"] = serde_json::json!({ "method": "nn" });
    let nested: MethodSpec = serde_json::from_value(nested).unwrap();
    for spec in specs().into_iter().chain([nested]) {
        let prepared = spec.prepare(&problem, Seed(5));
        assert_eq!(prepared.is_err(), spec.reference() == ReferenceUse::Required, "{spec:?}");
        let Ok(method) = prepared else { continue };
        let alone = find_all(&problem, &*method, &world.factuals(), Budget::default(), |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(alone.iter().any(|outcome| outcome.found().is_some()), "{}", spec.name());
        if spec.reference() == ReferenceUse::Unused {
            let beside = world.answers(&spec, Norm::L1, Budget::default());
            assert!(same(&alone, &beside), "{}", spec.name());
        }
    }
}
