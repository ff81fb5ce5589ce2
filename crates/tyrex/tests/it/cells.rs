//! The search over cells, beside all rows there are: on small cases the cheapest row is known.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::RngExt as _;
use tyrex::action::{Actions, FeasibleSet};
use tyrex::counterfactual::{
    Budget, Factual, Margin, MethodSpec, MinCost, Norm, Outcome, Problem, Protocol, SearchModels,
    find_all,
};
use tyrex::data::{Encoder, Row, Schema, Value};
use tyrex::explain::Ask;
use tyrex::model::trees::{Aggregate, Comparison, Transform, TreeNode};
use tyrex::model::{Activation, Dense, Mlp, Model, Output, THRESHOLD, TreeEnsemble};
use tyrex::{Points, Seed};

use crate::support::{Grown, grown};

const SCHEMA: &str = r#"
format_version = 1
[label]
column = "y"
favourable = 1
[[feature]]
name = "age"
kind = "integer"
range = [0, 12]
action = "only-up"
[[feature]]
name = "debt"
kind = "integer"
range = [0, 12]
[[feature]]
name = "income"
kind = "numeric"
range = [0, 10]
[[feature]]
name = "home"
kind = "categorical"
levels = ["own", "rent", "free"]
[[feature]]
name = "grade"
kind = "ordinal"
levels = ["low", "middle", "high"]
action = "only-up"
RULE"#;
const RULE: &str = r"
[[rule]]
terms = { age = 1, debt = 1 }
at_most = 14
";

/// Rows with an encoder, and trees for them.
struct World {
    schema: Schema,
    rows: Vec<Row>,
    points: Points,
    encoder: Encoder,
    model: TreeEnsemble,
}

fn world(seed: u64, rule: &str, trees: usize) -> World {
    let schema = Schema::from_toml(&SCHEMA.replace("RULE", rule)).unwrap();
    let mut rng = Seed(seed).rng();
    let rows: Vec<Row> = (0..160)
        .map(|_| {
            let whole = |n: i32| Value::Number(f64::from(n));
            let (age, debt) = (rng.random_range(0..=12), rng.random_range(0..=12));
            let income = f64::from(rng.random_range(0..1000_i32)) / 100.0;
            let home = ["own", "rent", "free"][rng.random_range(0..3)];
            let grade = ["low", "middle", "high"][rng.random_range(0..3)];
            let values = vec![whole(age), whole(debt), income.into(), home.into(), grade.into()];
            Row::new(&schema, values).unwrap()
        })
        .collect();
    let encoder = Encoder::fit(&schema, &rows.iter().collect::<Vec<_>>()).unwrap();
    let points = encoder.encode_rows(&rows).unwrap();
    let labels: Vec<u32> = rows
        .iter()
        .map(|row| {
            let number = |at: usize| row.values()[at].number().unwrap();
            let home = if row.values()[3] == Value::from("own") { 2.5 } else { 0.0 };
            let good = 0.3 * number(0) - 0.7 * number(1) + 0.8 * number(2) + home - 5.0;
            u32::from(good + rng.random_range(-2.0..2.0) > 0.0)
        })
        .collect();
    let model = grown(&points, &labels, Grown { trees, depth: 3, rate: 0.4 }, Seed(seed));
    World { schema, rows, points, encoder, model }
}

impl World {
    fn rejected(&self, most: usize) -> Vec<usize> {
        let scores = self.model.score(&self.points);
        (0..self.rows.len()).filter(|&row| scores[row] < THRESHOLD).take(most).collect()
    }

    fn set(&self, row: usize) -> FeasibleSet {
        Actions::new(&self.schema, &self.encoder).unwrap().for_factual(&self.rows[row]).unwrap()
    }

    fn answers(&self, rows: &[usize], method: &str, norm: Norm) -> Vec<Outcome> {
        let sets: Vec<FeasibleSet> = rows.iter().map(|&row| self.set(row)).collect();
        let each = rows.iter().zip(&sets);
        let factuals: Vec<Factual> =
            each.map(|(&row, set)| Factual::new(self.points.row(row), set)).collect();
        let problem = Problem::new(&self.model, norm, &self.points).unwrap();
        let spec = MethodSpec::named(method, Protocol::Product).unwrap();
        let method = spec.prepare(&problem, Seed(0)).unwrap();
        let go_on = |_| ControlFlow::Continue(());
        find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap()
    }

    /// For each feature, every value worth having: all whole numbers and levels, and of the income
    /// the number of each cell that is nearest to the row's.
    fn values(&self, row: &Row, point: &[f32]) -> Vec<Vec<Value>> {
        let whole = || (0..=12).map(|n| Value::Number(f64::from(n))).collect::<Vec<_>>();
        let place = self.encoder.columns().iter().position(|name| name == "income").unwrap();
        let thresholds = self.model.thresholds();
        let cells = thresholds.column(place);
        let mut incomes = vec![row.values()[2].clone()];
        for cell in 0..cells.count() {
            let x = cells.nearest(cell, point[place]);
            let mut wanted = point.to_vec();
            wanted[place] = x;
            incomes.push(self.encoder.decode(&wanted).values()[2].clone());
        }
        let levels = |names: [&str; 3]| names.map(Value::from).to_vec();
        vec![
            whole(),
            whole(),
            incomes,
            levels(["own", "rent", "free"]),
            levels(["low", "middle", "high"]),
        ]
    }

    /// The points of all rows that the applicant may become and the model accepts.
    fn accepted(&self, row: usize) -> Points {
        self.above(row, f64::from(THRESHOLD))
    }

    /// The points of all rows that the applicant may become with at least that score.
    fn above(&self, row: usize, score: f64) -> Points {
        let (set, own) = (self.set(row), &self.rows[row]);
        let all = self.values(own, self.points.row(row));
        let mut points = Points::new(self.points.dim());
        let mut choice = vec![0; all.len()];
        loop {
            let values = choice.iter().zip(&all).map(|(&at, own)| own[at].clone()).collect();
            let candidate = Row::new(&self.schema, values).unwrap();
            if set.violations(&candidate).is_empty() {
                points.push(self.encoder.encode(&candidate).unwrap().as_slice());
            }
            let Some(next) = (0..all.len()).find(|&at| choice[at] + 1 < all[at].len()) else {
                break;
            };
            choice[next] += 1;
            choice[..next].fill(0);
        }
        let scores = self.model.score(&points);
        let accepted: Vec<usize> =
            (0..points.len()).filter(|&index| f64::from(scores[index]) >= score).collect();
        points.select(&accepted)
    }
}

/// How often the search finds the cheapest row of all, and by how much it misses it.
#[test]
fn min_cost_finds_the_cheapest_row_of_all_in_nearly_all_cases() {
    let (mut cases, mut optimal, mut excess) = (0, 0, 0.0_f64);
    for seed in 0..6 {
        for rule in ["", RULE] {
            let world = world(seed, rule, 12);
            let rows = world.rejected(4);
            for norm in [Norm::L1, Norm::L2] {
                for (&row, outcome) in rows.iter().zip(world.answers(&rows, "min-cost", norm)) {
                    let accepted = world.accepted(row);
                    let from = world.points.row(row);
                    let least = accepted
                        .rows()
                        .map(|point| norm.distance(point, from))
                        .fold(f64::INFINITY, f64::min);
                    let Some(found) = outcome.found() else {
                        assert!(least.is_infinite(), "seed {seed}, row {row}: {least} is missed");
                        continue;
                    };
                    assert!(found.cost >= least - 1e-6, "{} is below {least}", found.cost);
                    cases += 1;
                    // A scaled number lies a few steps of single precision inside its cell.
                    optimal += usize::from(found.cost <= least + 2e-5);
                    excess = excess.max(found.cost / least - 1.0);
                }
            }
        }
    }
    assert!(cases > 60, "{cases}");
    assert!(optimal * 100 >= cases * 95, "{optimal} of {cases}");
    assert!(excess < 0.3, "{excess}");
}

/// Answers of `min-cost` or `margin` with a proof.
fn proved(world: &World, rows: &[usize], score: f64, norm: Norm, budget: Budget) -> Vec<Outcome> {
    let sets: Vec<FeasibleSet> = rows.iter().map(|&row| world.set(row)).collect();
    let each = rows.iter().zip(&sets);
    let factuals: Vec<Factual> =
        each.map(|(&row, set)| Factual::new(world.points.row(row), set)).collect();
    let problem = Problem::new(&world.model, norm, &world.points).unwrap();
    let margin = Margin { score, prove: true, ..Margin::default() };
    let method = MethodSpec::Margin(margin).prepare(&problem, Seed(0)).unwrap();
    find_all(&problem, &*method, &factuals, budget, |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_proved_answer_is_the_cheapest_row_of_all() {
    let (mut cases, mut decided) = (0, 0);
    for seed in 40..44 {
        for (rule, trees) in [("", 12), (RULE, 12), ("", 40)] {
            let world = world(seed, rule, trees);
            let rows = world.rejected(4);
            for (norm, score) in [(Norm::L1, 0.5), (Norm::L2, 0.5), (Norm::L1, 0.6)] {
                let outcomes = proved(&world, &rows, score, norm, Budget::default());
                for (&row, outcome) in rows.iter().zip(outcomes) {
                    let from = world.points.row(row);
                    let above = world.above(row, score);
                    let costs = above.rows().map(|point| norm.distance(point, from));
                    let least = costs.fold(f64::INFINITY, f64::min);
                    let Some(found) = outcome.found() else {
                        assert!(least.is_infinite(), "seed {seed}, row {row}: {least} is missed");
                        continue;
                    };
                    let bound = found.least_cost.unwrap();
                    cases += 1;
                    // A scaled number lies a few steps of single precision inside its cell.
                    assert!(bound <= least + 2e-5, "seed {seed}, row {row}: {bound} > {least}");
                    if rule.is_empty() {
                        assert_eq!(bound, found.cost, "seed {seed}, row {row}");
                        assert!(found.cost <= least + 2e-5, "{} above {least}", found.cost);
                    }
                    decided += usize::from(bound >= found.cost * (1.0 - 1e-6));
                }
            }
        }
    }
    assert!(cases > 100, "{cases}");
    assert!(decided * 10 >= cases * 8, "{decided} of {cases}");
}

#[test]
fn a_proof_that_the_budget_ends_states_a_bound() {
    let world = world(45, "", 40);
    let rows = world.rejected(12);
    let whole = proved(&world, &rows, 0.5, Norm::L1, Budget::default());
    let mut gaps = 0;
    for (outcome, whole) in rows.iter().enumerate().filter_map(|(at, &row)| {
        let budget = whole[at].effort.evaluations * 9 / 10;
        let budget = Budget { evaluations: Some(budget), ..Budget::default() };
        Some((proved(&world, &[row], 0.5, Norm::L1, budget).pop()?, &whole[at]))
    }) {
        let (Some(found), Some(least)) = (outcome.found(), whole.found()) else { continue };
        let bound = found.least_cost.unwrap();
        assert!(bound <= least.cost + 1e-9, "{bound} above {}", least.cost);
        assert!(bound >= 0.0 && found.cost >= least.cost - 1e-9);
        gaps += usize::from(bound < least.cost - 1e-9);
    }
    assert!(gaps > 0);
}

#[test]
fn what_cannot_be_proved_is_refused() {
    let world = world(46, "", 5);
    let layer = Dense {
        weights: vec![1.0; world.points.dim()],
        bias: vec![0.0],
        activation: Activation::Identity,
    };
    let network =
        Mlp::new(world.points.dim(), &[layer], Output::Sigmoid { favourable: true }).unwrap();
    let problem = Problem::new(&network, Norm::L1, &world.points).unwrap();
    let spec = MethodSpec::MinCost(MinCost { prove: true, ..MinCost::default() });
    let refused = spec.prepare(&problem, Seed(0)).err().unwrap().to_string();
    assert!(refused.contains("trees that are added up"), "{refused}");
}

#[test]
fn a_question_asks_for_a_proof() {
    let ask = |method: &str| {
        let method = Some(method.to_owned());
        Ask { method, prove: true, ..Ask::default() }.request()
    };
    assert!(matches!(ask("min-cost").unwrap().method, MethodSpec::MinCost(own) if own.prove));
    assert!(matches!(ask("margin").unwrap().method, MethodSpec::Margin(own) if own.prove));
    let refused = ask("trex-o").unwrap_err().to_string();
    assert!(refused.contains("min-cost or margin"), "{refused}");
}

#[test]
fn no_single_feature_of_an_answer_can_be_moved_back() {
    for seed in 10..14 {
        for rule in ["", RULE] {
            let world = world(seed, rule, 40);
            let rows = world.rejected(10);
            for (method, norm) in [("min-cost", Norm::L1), ("margin", Norm::L2)] {
                let least = if method == "margin" { 0.7 } else { 0.5 };
                for (&row, outcome) in rows.iter().zip(world.answers(&rows, method, norm)) {
                    let Some(found) = outcome.found() else { continue };
                    let from = world.points.row(row);
                    let (set, own) = (world.set(row), found.row.as_ref().unwrap());
                    assert!(set.violations(own).is_empty());
                    let tried = world.values(&world.rows[row], from);
                    let mut cheaper = Points::new(from.len());
                    for (position, values) in tried.iter().enumerate() {
                        for value in values {
                            let mut changed = own.values().to_vec();
                            changed[position] = value.clone();
                            let changed = Row::new(&world.schema, changed).unwrap();
                            let point = world.encoder.encode(&changed).unwrap().into_vec();
                            let cost = norm.distance(&point, from);
                            if set.violations(&changed).is_empty() && cost < found.cost - 2e-5 {
                                cheaper.push(&point);
                            }
                        }
                    }
                    for score in world.model.score(&cheaper) {
                        assert!(f64::from(score) < least, "seed {seed} row {row}: {score}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_answer_costs_no_more_than_the_nearest_accepted_reference_row() {
    for seed in 20..24 {
        let world = world(seed, RULE, 40);
        let rows = world.rejected(20);
        for norm in [Norm::L1, Norm::L2] {
            let nearest = world.answers(&rows, "nn", norm);
            let cheapest = world.answers(&rows, "min-cost", norm);
            for (nearest, cheapest) in nearest.iter().zip(&cheapest) {
                if let Some(nearest) = nearest.found() {
                    assert!(cheapest.found().unwrap().cost <= nearest.cost + 1e-9);
                }
            }
        }
    }
}

/// A search over trees and networks together: the model in use is trees, or a network.
#[test]
fn trex_e_searches_trees_and_networks_together() {
    let world = world(30, RULE, 30);
    let dim = world.points.dim();
    let place = |name: &str| world.encoder.columns().iter().position(|own| own == name).unwrap();
    let network = |seed: u64| -> Arc<dyn Model> {
        let mut weights = vec![0.0; dim];
        (weights[place("income")], weights[place("debt")]) = (3.0 + 0.1 * seed as f32, -3.0);
        let layer = Dense { weights, bias: vec![-0.4], activation: Activation::Identity };
        Arc::new(Mlp::new(dim, &[layer], Output::Sigmoid { favourable: true }).unwrap())
    };
    let trees: Vec<Arc<dyn Model>> = (31..37)
        .map(|seed| Arc::new(self::world(seed, RULE, 30).model) as Arc<dyn Model>)
        .collect();
    let mixed: Vec<Arc<dyn Model>> = trees.iter().cloned().chain((0..3).map(network)).collect();
    let rows = world.rejected(8);
    for (model, search) in [
        (Arc::new(world.model.clone()) as Arc<dyn Model>, mixed.clone()),
        (network(9), trees.clone()),
    ] {
        let models = SearchModels::new(Arc::clone(&model), search.clone(), Vec::new()).unwrap();
        let problem = Problem::new(&*model, Norm::L1, &world.points).unwrap();
        let problem = problem.with_search_models(&models);
        let spec = MethodSpec::named("trex-e", Protocol::Product).unwrap();
        let method = spec.prepare(&problem, Seed(0)).unwrap();
        let sets: Vec<FeasibleSet> = rows.iter().map(|&row| world.set(row)).collect();
        let each = rows.iter().zip(&sets);
        let factuals: Vec<Factual> =
            each.map(|(&row, set)| Factual::new(world.points.row(row), set)).collect();
        let go_on = |_| ControlFlow::Continue(());
        let outcomes = find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();
        let mut found = 0;
        for counterfactual in outcomes.iter().filter_map(Outcome::found) {
            found += 1;
            let point = Points::from_rows(dim, counterfactual.point.clone()).unwrap();
            assert!(model.score(&point)[0] >= THRESHOLD);
            // The tail of a tenth of nine models is the lowest of them, and it is at least 0.
            assert!(search.iter().all(|other| other.score(&point)[0] >= THRESHOLD - 1e-4));
        }
        assert!(found >= 3, "{found} of {}", outcomes.len());
    }
}

/// Trees with a leaf weight for one of three classes each.
fn three_classes(seed: u64) -> TreeEnsemble {
    let mut rng = Seed(seed).rng();
    let mut tree =
        |class: usize| -> Vec<TreeNode> {
            let mut branch = |next: usize| TreeNode::Branch {
                feature: rng.random_range(0..3),
                comparison: Comparison::LessOrEqual,
                threshold: rng.random_range(-1.0..1.0),
                missing: true,
                yes: next,
                no: next + 1,
            };
            let mut nodes: Vec<TreeNode> = [1, 3, 5].map(&mut branch).to_vec();
            nodes.extend((0..4).map(|_| TreeNode::Leaf {
                weights: vec![(class, rng.random_range(-1.0..1.0_f32))],
            }));
            nodes
        };
    let trees: Vec<Vec<TreeNode>> = (0..18).map(|index| tree(index % 3)).collect();
    let transform = Transform::Softmax { favourable: 2 };
    TreeEnsemble::new(3, &trees, Aggregate::Sum, vec![0.0; 3], transform).unwrap()
}

/// The favourable one of three classes, beside every cell there is.
#[test]
fn advice_on_three_classes_is_the_cheapest_in_nearly_all_cases() {
    let (mut cases, mut optimal) = (0, 0);
    for seed in 0..12 {
        let model = three_classes(seed);
        let mut rng = Seed(seed).derive("rows").rng();
        let rows: Vec<f32> = (0..90).map(|_| rng.random_range(-1.5..1.5)).collect();
        let points = Points::from_rows(3, rows).unwrap();
        let scores = model.score(&points);
        let set = FeasibleSet::everywhere(3);
        let rejected: Vec<usize> =
            (0..points.len()).filter(|&row| scores[row] < THRESHOLD).take(8).collect();
        let factuals: Vec<Factual> =
            rejected.iter().map(|&row| Factual::new(points.row(row), &set)).collect();
        let cells = model.thresholds();
        for norm in [Norm::L1, Norm::L2] {
            let problem = Problem::new(&model, norm, &points).unwrap();
            let method = MethodSpec::named("min-cost", Protocol::Product).unwrap();
            let method = method.prepare(&problem, Seed(0)).unwrap();
            let go_on = |_| ControlFlow::Continue(());
            let outcomes =
                find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();
            for (&row, outcome) in rejected.iter().zip(&outcomes) {
                let from = points.row(row);
                let near = |column: usize| -> Vec<f32> {
                    let cells = cells.column(column);
                    (0..cells.count()).map(|cell| cells.nearest(cell, from[column])).collect()
                };
                let mut all = Points::new(3);
                for &a in &near(0) {
                    for &b in &near(1) {
                        for &c in &near(2) {
                            all.push(&[a, b, c]);
                        }
                    }
                }
                let scores = model.score(&all);
                let accepted = all.rows().zip(scores).filter(|(_, score)| *score >= THRESHOLD);
                let costs = accepted.map(|(point, _)| norm.distance(point, from));
                let least = costs.fold(f64::INFINITY, f64::min);
                let Some(found) = outcome.found() else {
                    assert!(least.is_infinite(), "seed {seed}, row {row}: {least} is missed");
                    continue;
                };
                assert!(model.score(&Points::one(&found.point))[0] >= THRESHOLD);
                assert!(found.cost >= least - 1e-6, "{} is below {least}", found.cost);
                cases += 1;
                optimal += usize::from(found.cost <= least + 1e-6);
            }
        }
        // Three classes have no proof: their score rises with no single sum.
        let problem = Problem::new(&model, Norm::L1, &points).unwrap();
        let spec = MethodSpec::MinCost(MinCost { prove: true, ..MinCost::default() });
        let refused = spec.prepare(&problem, Seed(0)).err().unwrap().to_string();
        assert!(refused.contains("more than two classes"), "{refused}");
    }
    assert!(cases > 60, "{cases}");
    assert!(optimal * 100 >= cases * 90, "{optimal} of {cases}");
}
