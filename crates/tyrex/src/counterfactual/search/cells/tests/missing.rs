//! Values that may become known or missing, beside all rows there are.

use std::ops::ControlFlow;

use rand::RngExt as _;

use crate::action::Actions;
use crate::counterfactual::{
    Budget, Factual, MethodSpec, MinCost, Norm, Outcome, Problem, find_all,
};
use crate::data::{Encoder, Row, Schema, Value};
use crate::model::trees::{Aggregate, Comparison, Substitute, Transform, TreeNode};
use crate::model::{Model as _, THRESHOLD, TreeEnsemble};
use crate::points::Points;
use crate::seed::Seed;

/// Four features: a number and a whole number that the model gets missing, levels with a missing one,
/// and a whole number that is always known.
const SCHEMA: &str = r#"
format_version = 1
[label]
column = "y"
favourable = 1
[[feature]]
name = "income"
kind = "numeric"
range = [0, 10]
missing = "pass"
MAY
[[feature]]
name = "debt"
kind = "integer"
range = [0, 6]
missing = "pass"
action = "only-down"
MAY
[[feature]]
name = "home"
kind = "categorical"
levels = ["own", "rent", "free"]
missing = "level"
action = { levels = ["own", "rent"] }
MAY
[[feature]]
name = "age"
kind = "integer"
range = [0, 4]
action = "only-up"
"#;

struct World {
    rows: Vec<Row>,
    points: Points,
    actions: Actions,
    encoder: Encoder,
    model: TreeEnsemble,
    /// Whether missing values may become known, and known ones missing.
    may: [bool; 2],
}

const HOMES: [&str; 3] = ["own", "rent", "free"];
/// The columns of the point: two numbers with their marks, four levels, and a number.
const DIM: usize = 9;

fn world(seed: u64, word: &str) -> World {
    let schema = SCHEMA.replace("MAY", &format!("may_become = \"{word}\""));
    let schema = Schema::from_toml(&schema).unwrap();
    let mut rng = Seed(seed).rng();
    let rows: Vec<Row> = (0..80)
        .map(|_| {
            let income = f64::from(rng.random_range(0..1000_i32)) / 100.0;
            let (debt, age) = (rng.random_range(0..=6), rng.random_range(0..=4));
            let home = HOMES[rng.random_range(0..3)];
            let whole = |n: i32| Value::Number(f64::from(n));
            let mut values = vec![income.into(), whole(debt), home.into(), whole(age)];
            for value in &mut values[..3] {
                if rng.random_range(0..3) == 0 {
                    *value = Value::Missing;
                }
            }
            Row::new(&schema, values).unwrap()
        })
        .collect();
    let encoder = Encoder::fit(&schema, &rows.iter().collect::<Vec<_>>()).unwrap();
    let points = encoder.encode_rows(&rows).unwrap();
    assert_eq!(points.dim(), DIM);
    let mut tree = || -> Vec<TreeNode> {
        let mut branch = |next: usize| {
            let feature = [0, 0, 2, 4, 5, 6, 7, 8][rng.random_range(0..8)];
            TreeNode::Branch {
                feature,
                comparison: Comparison::LessOrEqual,
                threshold: points.row(rng.random_range(0..points.len()))[feature],
                missing: rng.random_range(0..2) == 0,
                yes: next,
                no: next + 1,
            }
        };
        let mut nodes: Vec<TreeNode> = [1, 3, 5].map(&mut branch).to_vec();
        let mut leaf = || TreeNode::Leaf { weights: vec![(0, rng.random_range(-1.0..0.8_f32))] };
        nodes.extend((0..4).map(|_| leaf()));
        nodes
    };
    let trees: Vec<Vec<TreeNode>> = (0..12).map(|_| tree()).collect();
    let transform = Transform::Logistic;
    let model = TreeEnsemble::new(DIM, &trees, Aggregate::Sum, vec![0.0], transform).unwrap();
    let marks = [0, 2].map(|column| Substitute { column, indicator: column + 1, value: f32::NAN });
    let model = model.with_substitutes(&marks);
    let actions = Actions::new(&schema, &encoder).unwrap();
    let may = [["known", "either"], ["missing", "either"]].map(|words| words.contains(&word));
    World { rows, points, actions, encoder, model, may }
}

impl World {
    fn rejected(&self, most: usize) -> Vec<usize> {
        let scores = self.model.score(&self.points);
        (0..self.rows.len()).filter(|&row| scores[row] < THRESHOLD).take(most).collect()
    }

    fn answers(&self, rows: &[usize], norm: Norm) -> Vec<Outcome> {
        let set = |&row: &usize| self.actions.for_factual(&self.rows[row]).unwrap();
        let sets: Vec<_> = rows.iter().map(set).collect();
        let each = rows.iter().zip(&sets);
        let factuals: Vec<Factual> =
            each.map(|(&row, set)| Factual::new(self.points.row(row), set)).collect();
        let problem = Problem::new(&self.model, norm, &self.points).unwrap();
        let spec = MethodSpec::MinCost(MinCost { prove: true, ..MinCost::default() });
        let method = spec.prepare(&problem, Seed(0)).unwrap();
        let go_on = |_| ControlFlow::Continue(());
        find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap()
    }

    /// The values that a feature of a row may have, by the words of the schema. Of the income one
    /// number of each cell, the one with the column nearest to the row's.
    fn values(&self, row: usize, position: usize) -> Vec<Value> {
        let own = &self.rows[row].values()[position];
        let (is_missing, [known, missing]) = (*own == Value::Missing, self.may);
        let may_be_missing = position < 3 && if is_missing { known } else { missing };
        let whole = |range: std::ops::RangeInclusive<i32>| -> Vec<Value> {
            range.map(|n| Value::Number(f64::from(n))).collect()
        };
        let number = own.number();
        let mut values = match position {
            0 => {
                let cells = self.model.thresholds();
                let cells = cells.column(0);
                let (mut point, at) = (vec![0.0; DIM], self.points.row(row)[0]);
                let mut incomes = Vec::new();
                for cell in 0..cells.count() {
                    let end = cells.nearest(cell, at);
                    let inward = if end > at { 1e-7 } else { -1e-7 };
                    // The number of a column at an end of a cell may be in the next one, as numbers
                    // are scaled; a few steps of single precision inside it is not.
                    for step in 0..16_u8 {
                        point[0] = end + f32::from(step) * inward;
                        let income = self.encoder.decode(&point).values()[0].clone();
                        let mut values = self.rows[row].values().to_vec();
                        values[0] = income.clone();
                        let encoded = self.encoder.encode(&Row::from_checked(values)).unwrap();
                        // A cell outside the range has no number.
                        if cells.of(encoded.as_slice()[0]) == cell {
                            incomes.push(income);
                            break;
                        }
                    }
                }
                incomes
            }
            1 => whole(0..=number.map_or(6, |own| own as i32)),
            2 => HOMES[..2].iter().map(|&home| home.into()).collect(),
            _ => whole(number.map_or(0, |own| own as i32)..=4),
        };
        if is_missing && !known {
            values.clear();
        }
        if may_be_missing {
            values.push(Value::Missing);
        }
        values.push(own.clone());
        values
    }

    /// The least cost of a row that the model accepts; infinite if there is none.
    fn least(&self, row: usize, norm: Norm) -> f64 {
        let all: Vec<Vec<Value>> = (0..4).map(|position| self.values(row, position)).collect();
        let mut points = Points::new(DIM);
        for a in &all[0] {
            for b in &all[1] {
                for c in &all[2] {
                    for d in &all[3] {
                        let values = [a, b, c, d].map(Value::clone).to_vec();
                        let point = self.encoder.encode(&Row::from_checked(values)).unwrap();
                        points.push(point.as_slice());
                    }
                }
            }
        }
        let scores = self.model.score(&points);
        let accepted = points.rows().zip(scores).filter(|(_, score)| *score >= THRESHOLD);
        let costs = accepted.map(|(point, _)| norm.distance(point, self.points.row(row)));
        costs.fold(f64::INFINITY, f64::min)
    }
}

#[test]
fn values_become_known_and_missing_only_where_the_schema_says_so() {
    for (word, expected) in [
        ("neither", [false, false]),
        ("known", [true, false]),
        ("missing", [false, true]),
        ("either", [true, true]),
    ] {
        let (mut cases, mut became) = (0, [false, false]);
        for seed in 0..8 {
            let world = world(seed, word);
            assert_eq!(world.may, expected);
            let rows = world.rejected(12);
            for norm in [Norm::L1, Norm::L2] {
                for (&row, outcome) in rows.iter().zip(world.answers(&rows, norm)) {
                    let least = world.least(row, norm);
                    let Some(found) = outcome.found() else {
                        assert!(least.is_infinite(), "{word}, seed {seed}, row {row}: {least}");
                        continue;
                    };
                    cases += 1;
                    // A scaled number lies a few steps of single precision inside its cell.
                    let near = |cost: f64| (cost - least).abs() <= 2e-5;
                    assert!(
                        near(found.cost),
                        "{word}, seed {seed}, row {row}: {} {least}",
                        found.cost
                    );
                    assert_eq!(found.least_cost, Some(found.cost));
                    let answer = found.row.as_ref().unwrap();
                    let point = world.encoder.encode(answer).unwrap();
                    assert_eq!(point.as_slice(), found.point);
                    let set = world.actions.for_factual(&world.rows[row]).unwrap();
                    assert!(set.violations(answer).is_empty());
                    for (from, to) in world.rows[row].values().iter().zip(answer.values()) {
                        became[0] |= *from == Value::Missing && *to != Value::Missing;
                        became[1] |= *from != Value::Missing && *to == Value::Missing;
                    }
                }
            }
        }
        assert!(cases > 40, "{word}: {cases}");
        assert_eq!(became, expected, "{word}");
    }
}

/// What a set allows, in its rows, its box and its words.
#[test]
fn a_set_holds_what_may_become_known() {
    let world = world(1, "known");
    let row = world.rows.iter().position(|row| row.values()[1] == Value::Missing).unwrap();
    let set = world.actions.for_factual(&world.rows[row]).unwrap();
    let with = |position: usize, value: Value| {
        let mut values = world.rows[row].values().to_vec();
        values[position] = value;
        Row::from_checked(values)
    };
    assert!(set.violations(&world.rows[row]).is_empty());
    assert!(set.contains(world.points.row(row)));
    for number in 0..=6_i32 {
        let known = with(1, f64::from(number).into());
        assert!(set.violations(&known).is_empty(), "{number}");
        let point = world.encoder.encode(&known).unwrap();
        assert!(set.contains(point.as_slice()), "{number}");
        // A point of the row settles to it.
        assert_eq!(set.settle(point.as_slice()).unwrap().0, known);
    }
    let refused = set.violations(&with(1, 7.0.into()))[0].to_string();
    assert_eq!(
        refused,
        "feature `debt`: found `7`, allowed is a whole number from 0 to 6, or missing as it is"
    );
    let refused = set.violations(&with(3, Value::Missing))[0].to_string();
    assert!(refused.starts_with("feature `age`: found a missing value, allowed is"), "{refused}");
    // Every single change of the row is an answer, and one gives the debt.
    let moves = set.moves(&world.rows[row]);
    let rows: Vec<Row> = (0..moves.points().count()).map(|index| moves.row(index)).collect();
    assert!(rows.iter().all(|row| set.violations(row).is_empty()));
    assert!(rows.iter().any(|row| row.values()[1] != Value::Missing));
}

#[test]
fn a_schema_that_cannot_keep_the_word_is_refused() {
    let schema = |from: &str, to: &str| {
        let text = SCHEMA.replace("MAY", "may_become = \"known\"").replacen(from, to, 1);
        Schema::from_toml(&text).unwrap_err().to_string()
    };
    let refused = schema("missing = \"pass\"", "missing = { fill = 1 }");
    assert!(refused.contains("feature `income`: `may_become` needs missing cells"), "{refused}");
    let rule = "[[feature]]\nname = \"age\"";
    let refused =
        schema(rule, &format!("[[rule]]\nterms = {{ debt = 1, age = 1 }}\nat_most = 9\n{rule}"));
    assert!(refused.contains("feature `debt`: `may_become` does not go with"), "{refused}");
    let refused = schema("\"known\"", "\"unknown\"");
    assert!(refused.contains("unknown variant `unknown`"), "{refused}");
}
