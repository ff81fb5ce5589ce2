//! Every answer of every method obeys every rule as a row, over random schemas, rules and models.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use rand::RngExt;
use tyrex::action::{Actions, FeasibleSet};
use tyrex::counterfactual::{
    Budget, Counterfactual, Factual, MethodSpec, Norm, Problem, Protocol, SearchModels,
    SearchNeighbours, find_all, relaxations,
};
use tyrex::data::{Encoder, Row, Schema};
use tyrex::model::{Activation, Dense, Mlp, Model, Output, THRESHOLD};
use tyrex::neighbourhood::Sampling;
use tyrex::{Points, Seed};

use crate::support::rules::{bound_world, broken};
use crate::support::schemas::fitted;
use crate::support::{activations, layers, logits, widen};

/// A rejected applicant, and every rule for an answer.
struct Case {
    schema: Schema,
    rows: Vec<Row>,
    encoder: Encoder,
    actions: Actions,
    model: Mlp,
    search_models: SearchModels,
    data: Points,
}

/// Networks with nearly the same weights.
fn similar(dim: usize, layers: &[Dense], output: Output, seed: u64) -> Vec<Arc<dyn Model>> {
    let mut rng = Seed(seed).rng();
    let mut moved = |layer: &Dense| Dense {
        weights: layer.weights.iter().map(|w| w + rng.random_range(-0.05..0.05)).collect(),
        ..layer.clone()
    };
    let mut network = || -> Arc<dyn Model> {
        let layers: Vec<Dense> = layers.iter().map(&mut moved).collect();
        Arc::new(Mlp::new(dim, &layers, output).unwrap())
    };
    (0..5).map(|_| network()).collect()
}

impl Case {
    /// The first row of the world is the factual. The network's last bias is moved so that it
    /// just rejects it.
    fn new(
        schema: Schema,
        rows: Vec<Row>,
        activation: Activation,
        seed: u64,
    ) -> Result<Self, TestCaseError> {
        let encoder = fitted(&schema, &rows)?;
        let actions = Actions::new(&schema, &encoder)?;
        let data = encoder.encode_rows(&rows)?;
        let output = Output::Sigmoid { favourable: true };
        let mut layers = layers(data.dim(), &[6, 4], activation, output, seed);
        let logit = logits(&layers, &widen(data.row(0)))[0];
        layers.last_mut().unwrap().bias[0] -= logit as f32 + 0.1;
        let model = Mlp::new(data.dim(), &layers, output)?;
        // Where columns are not scaled, a logit of thousands has no tenth.
        prop_assume!(model.score(&data)[0] < THRESHOLD);
        let mut search = similar(data.dim(), &layers, output, seed);
        let tune = search.split_off(3);
        let search_models = SearchModels::new(Arc::new(model.clone()), search, tune)?;
        Ok(Self { schema, rows, encoder, actions, model, search_models, data })
    }

    fn set(&self) -> FeasibleSet {
        self.actions.for_factual(&self.rows[0]).unwrap()
    }

    fn problem(&self, norm: Norm) -> Problem<'_> {
        let problem = Problem::new(&self.model, norm, &self.data).unwrap();
        problem.with_search_models(&self.search_models)
    }

    fn find(&self, spec: &MethodSpec, norm: Norm) -> Option<Counterfactual> {
        let problem = self.problem(norm);
        let method = spec.prepare(&problem, Seed(1)).unwrap();
        let set = self.set();
        let factuals = [Factual::new(self.data.row(0), &set)];
        let go_on = |_| ControlFlow::Continue(());
        find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap()[0]
            .found()
            .cloned()
    }

    /// The row of an answer, once it is the row of the point that the model accepts.
    fn checked(&self, found: &Counterfactual, norm: Norm) -> Result<Row, TestCaseError> {
        let Some(row) = found.row.clone() else {
            return Err(TestCaseError::fail("an answer without a row"));
        };
        prop_assert!(Row::new(&self.schema, row.values().to_vec()).is_ok(), "{row:?}");
        let point = self.encoder.encode(&row)?;
        prop_assert_eq!(point.as_slice(), &found.point[..]);
        let score = self.model.score(&Points::from_rows(self.data.dim(), point.into_vec())?)[0];
        prop_assert!(score >= THRESHOLD, "{score}");
        prop_assert_eq!(score.to_bits(), found.score.to_bits());
        let cost = norm.distance(&found.point, self.data.row(0));
        prop_assert_eq!(cost.to_bits(), found.cost.to_bits());
        prop_assert!(row != self.rows[0]);
        Ok(row)
    }
}

/// Every method, with little work for its test.
fn specs() -> Vec<MethodSpec> {
    let lighter = |name: &&str| {
        let mut spec = MethodSpec::named(name, Protocol::Product).unwrap();
        if let Some(robustness) = spec.robustness_mut() {
            (robustness.tau, robustness.sigma, robustness.samples) = (0.5, 0.05, 64);
            robustness.search = SearchNeighbours { sampling: Sampling::Antithetic, samples: 32 };
        }
        spec
    };
    MethodSpec::NAMES.iter().map(lighter).collect()
}

fn norms() -> impl Strategy<Value = Norm> {
    prop_oneof![Just(Norm::L1), Just(Norm::L2)]
}

/// Runs the cases of a strategy, always the same ones.
fn check<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: std::fmt::Debug,
{
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let seed = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    match TestRunner::new_with_rng(config, seed).run(strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\n{value:?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[test]
fn no_method_returns_a_row_that_breaks_a_rule() {
    let found_by: Mutex<BTreeMap<&str, usize>> = Mutex::default();
    let worlds = (bound_world(), activations(), any::<u64>(), norms());
    check(400, &worlds, |((schema, rows, _), activation, seed, norm)| {
        let case = Case::new(schema, rows, activation, seed)?;
        for spec in specs() {
            let Some(found) = case.find(&spec, norm) else { continue };
            let row = case.checked(&found, norm)?;
            let wrong = broken(&case.schema, &case.rows[0], &row);
            prop_assert!(wrong.is_empty(), "{} {wrong:?}", spec.name());
            prop_assert_eq!(case.set().violations(&row), vec![]);
            if let Some(robustness) = spec.robustness() {
                prop_assert!(found.value >= robustness.tau);
            }
            *found_by.lock().unwrap().entry(spec.name()).or_default() += 1;
        }
        Ok(())
    });
    let found_by = found_by.into_inner().unwrap();
    // The test shows nothing without answers.
    for name in MethodSpec::NAMES {
        assert!(found_by.get(name).is_some_and(|&count| count >= 15), "{name}: {found_by:?}");
    }
}

#[test]
fn what_one_rule_less_would_allow_breaks_that_rule_alone() {
    let helped: Mutex<(usize, usize)> = Mutex::default();
    let worlds = (bound_world(), activations(), any::<u64>(), norms());
    check(400, &worlds, |((schema, rows, _), activation, seed, norm)| {
        let case = Case::new(schema, rows, activation, seed)?;
        let spec = MethodSpec::named("min-cost", Protocol::Product).unwrap();
        if case.find(&spec, norm).is_some() {
            return Ok(());
        }
        let problem = case.problem(norm);
        let method = spec.prepare(&problem, Seed(1)).unwrap();
        let ask = |tries| {
            let factual = &case.rows[0];
            let (budget, go_on) = (Budget::default(), |_| ControlFlow::Continue(()));
            relaxations(&problem, &*method, &case.actions, factual, budget, tries, go_on)
        };
        let answer = ask(100)?;
        prop_assert_eq!(answer.untried, 0);
        prop_assert!(answer.tried <= case.actions.constraints().len());
        prop_assert!(answer.helpful.len() <= answer.tried);
        let costs: Vec<f64> = answer.helpful.iter().map(|one| one.counterfactual.cost).collect();
        prop_assert!(costs.is_sorted(), "{costs:?}");
        for one in &answer.helpful {
            let row = case.checked(&one.counterfactual, norm)?;
            let without = case.actions.without(&one.constraint)?;
            prop_assert!(broken(without.schema(), &case.rows[0], &row).is_empty());
            let others = one.breaks.iter().filter(|broken| broken.constraint != one.constraint);
            prop_assert_eq!(others.count(), 0, "{:?}", one);
        }
        let first = ask(1)?;
        prop_assert_eq!(first.tried + first.untried, answer.tried);
        let mut helped = helped.lock().unwrap();
        helped.0 += usize::from(!answer.helpful.is_empty());
        helped.1 += 1;
        Ok(())
    });
    let (helped, asked) = helped.into_inner().unwrap();
    assert!(helped >= 10, "{helped} of {asked}");
}
