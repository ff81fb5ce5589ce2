//! The charges of the search, on fields whose pairs of values cannot be read together, and values
//! that may become known or missing.

mod missing;

use std::sync::Arc;

use super::*;
use crate::action::FeasibleSet;
use crate::counterfactual::Budget;
use crate::counterfactual::field::Reader;
use crate::counterfactual::tail::{Tail, TailShape};
use crate::measure::{Gauge, RelaxedStability};
use crate::model::trees::{Aggregate, Comparison, Transform, TreeNode};
use crate::model::{Committee, TreeEnsemble};
use crate::neighbourhood::{Neighbourhood, Sampling};
use crate::seed::Seed;

const DIM: usize = 6;

/// One tree per column, whose leaves are both the same: no change gains anything.
fn flat() -> TreeEnsemble {
    let leaf = || TreeNode::Leaf { weights: vec![(0, -0.5)] };
    let trees: Vec<Vec<TreeNode>> = (0..DIM)
        .map(|feature| {
            let (comparison, threshold) = (Comparison::LessOrEqual, 0.5);
            let branch =
                TreeNode::Branch { feature, comparison, threshold, missing: true, yes: 1, no: 2 };
            vec![branch, leaf(), leaf()]
        })
        .collect();
    let (base, transform) = (vec![0.0], Transform::Logistic);
    TreeEnsemble::new(DIM, &trees, Aggregate::Sum, base, transform).unwrap()
}

/// The evaluations of a search that finds nothing, from one start.
fn charged(cells: &Cells, field: &mut dyn Field, threshold: f64) -> u64 {
    let (set, point) = (FeasibleSet::everywhere(DIM), [0.0; DIM]);
    let factual = Factual::new(&point, &set);
    let search = cells.search(&factual, Norm::L1, 10, Density::MODELS);
    assert_eq!(search.levers.len(), DIM);
    let mut meter = Meter::new(Budget::default());
    let found = search.cheapest(field, Test { threshold }, &[&point], Care::Full, &mut meter);
    assert!(found.unwrap().reading.value < threshold);
    meter.effort().evaluations
}

/// The start, and for each of the two powers one walk along all features.
fn expected(field: &dyn Field) -> u64 {
    field.evaluations() * (1 + 2 * (2 + DIM as u64))
}

#[test]
fn a_stuck_search_on_stability_is_not_charged_for_pairs() {
    let trees = flat();
    let cells = Cells::of(std::iter::once(&trees as &dyn Model)).unwrap().unwrap();
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, DIM, 32, 0.1, Seed(1)).unwrap();
    let gauge = Gauge::new(RelaxedStability {}, &trees, &cloud).unwrap();
    let mut field = Reader::with_routes(&gauge, cells.routes());
    assert_eq!(charged(&cells, &mut field, 0.8), expected(&field));
}

#[test]
fn a_stuck_search_on_a_tail_is_not_charged_for_pairs() {
    let model = || Arc::new(flat()) as Arc<dyn Model>;
    let committee = Committee::new((0..9).map(|_| model()).collect()).unwrap();
    let cells = Cells::of(committee.models().iter().map(|model| &**model)).unwrap().unwrap();
    let routes = cells.all_routes();
    let shape = TailShape { share: 0.5, temperature: 0.1 };
    let mut field = Tail::new(&committee, shape).with_routes(routes.as_deref());
    assert_eq!(charged(&cells, &mut field, 0.0), expected(&field));
}
