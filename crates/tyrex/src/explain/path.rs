//! The way from an applicant to the advised row, in steps through usual rows.
//!
//! `min sum w(a, b)` over the paths from the applicant `x` to the answer `x'`, with
//!
//! `w(a, b) = 1/16 + s(a, b)^2 (1 + max(0, q - ln p((a + b) / 2)))`
//! `s(a, b) = 1/m sum_j |b - a|_j / |x' - x|_j`
//!
//! `s` is the part of the way from `a` to `b`, where each of the `m` features that change counts the
//! same. `p` is the density of accepted applicants and `q` its level at the least p-value of a row on
//! the way. As in FACE (Poyiadzi et al.), a path follows the edges of a graph of near neighbours, and an
//! edge weighs its length and how unusual its middle is. Without unusual middles the sum is least for
//! four equal steps: the square prefers short steps, and `1/16` few of them.
//!
//! That p-value is half of the one that is asked for. Advice often lies where the condition binds, and
//! the applicant beyond; half as usual is what a row between can be.
//!
//! The nodes differ from FACE's, which are rows of the data. Such a row is another person's, and showing
//! it would disclose it. Here a node lies *between* the applicant and the answer: every number between
//! both numbers, and every other feature as one of them has it. So no step goes back, rules such as
//! "only up" hold from each step to the next, and no row of the reference is shown. The nodes are those
//! rows between that the rules allow and that are usual enough. An edge leads to
//! one of the [`NEIGHBOURS`] nearest nodes ahead, or to the answer, which is ahead of all.
//!
//! Nodes are made on [`CHAINS`] ways to the answer: the straight line, and ways on which every feature
//! changes within an interval of its own, drawn from the seed.

use std::ops::Range;

use rand::RngExt as _;
use serde::Serialize;

use super::advice::changes;
use super::{Advice, Adviser, Costs, FeatureChange, usual};
use crate::action::FeasibleSet;
use crate::data::Row;
use crate::error::Result;
use crate::plausibility::Plausibility;
use crate::seed::Seed;

/// The steps to advice, each to a usual row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdvicePath {
    /// The steps, in their order; the last one leads to the advised row.
    pub steps: Vec<PathStep>,
    /// The same as a sentence.
    pub sentence: String,
}

/// A step on the way to advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PathStep {
    /// The changes since the step before, in the order of the schema.
    pub changes: Vec<FeatureChange>,
    /// The p-value among accepted applicants of the row after this step.
    pub usual: f64,
    /// The distances of that row from the applicant.
    pub cost: Costs,
}

/// The p-value that is asked for, if the question does not.
const ASKED: f64 = 0.1;
/// The least p-value of rows on the way, as a share of that.
const SHARE: f64 = 0.5;
/// The ways on which nodes are made.
const CHAINS: usize = 40;
/// The parts of a way: a node is made at the end of each but the last.
const PARTS: usize = 5;
/// The nearest nodes ahead to which edges lead.
const NEIGHBOURS: usize = 10;
/// The weight of any edge.
const STEP: f64 = 1.0 / 16.0;

/// A row on the way.
#[derive(Debug, Clone)]
struct Node {
    row: Row,
    point: Vec<f32>,
}

impl Adviser {
    /// The path to advice, if the question asks for one and the advice is a row.
    pub(super) fn advice_path(&self, advice: &Advice) -> Result<Option<AdvicePath>> {
        let request = self.request();
        let (true, Some(found), Some(advised)) = (request.path, advice.found(), &advice.advised)
        else {
            return Ok(None);
        };
        let explainer = self.explainer();
        let density = explainer.plausibility()?;
        // No p-value is below 1 / (n + 1).
        let smallest = 1.0 / (density.held_out() + 1) as f64;
        let least = (SHARE * request.plausible.unwrap_or(ASKED)).max(smallest);
        let level = density.level(least)?;
        let applicant = &advice.applicant;
        let sets = self.feasible_sets(std::slice::from_ref(applicant))?;
        let blocks = explainer.encoder().placed().map(|(_, columns, _)| columns);
        let way = Way::new(blocks, &applicant.point, &found.point);
        let between = way.nodes(&sets[0], request.seed.derive("path"));
        let is_direct = between.is_empty();
        let is_usual = |node: &Node| density.log_density(&node.point) >= level;
        let first = Node { row: applicant.values.clone(), point: applicant.point.clone() };
        let last = Node { row: advised.clone(), point: found.point.clone() };
        let stations = between.into_iter().filter(is_usual);
        let nodes: Vec<Node> = std::iter::once(first).chain(stations).chain([last]).collect();
        let path = cheapest(&way.edges(&nodes, density, level));
        let steps: Vec<PathStep> = path
            .windows(2)
            .map(|step| {
                let [from, to] = [&nodes[step[0]], &nodes[step[1]]];
                PathStep {
                    changes: changes(explainer.schema(), &from.row, &to.row),
                    usual: density.p_value(&to.point),
                    cost: explainer.costs(&to.point, &applicant.point),
                }
            })
            .collect();
        let places = path[1..].iter().map(|&node| density.place(&nodes[node].point));
        let sentence = match steps.as_slice() {
            [_] if is_direct => "No row lies between: the change is one step.".to_owned(),
            [_] => format!(
                "No row between was found whose p-value is at least {least:.2}: the change is one \
                 step."
            ),
            steps => {
                let each = steps.iter().zip(places).enumerate().map(|(index, (step, place))| {
                    let (number, all) = (index + 1, steps.len());
                    let (words, place) =
                        (FeatureChange::in_words(&step.changes), usual::in_words(place));
                    format!("Step {number} of {all}: {words} {place}")
                });
                each.collect::<Vec<_>>().join(" ")
            }
        };
        Ok(Some(AdvicePath { steps, sentence }))
    }
}

/// The way from one point to another.
struct Way<'a> {
    from: &'a [f32],
    to: &'a [f32],
    /// The columns of each feature that changes.
    changed: Vec<Range<usize>>,
}

impl<'a> Way<'a> {
    fn new(features: impl Iterator<Item = Range<usize>>, from: &'a [f32], to: &'a [f32]) -> Self {
        let changed = features.filter(|own| from[own.clone()] != to[own.clone()]).collect();
        Self { from, to, changed }
    }

    /// `s(a, b)`
    fn part(&self, a: &[f32], b: &[f32]) -> f64 {
        let length = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).sum()
        };
        let each = self.changed.iter().map(|own| {
            let [a, b] = [a, b].map(|point| &point[own.clone()]);
            length(a, b) / length(&self.from[own.clone()], &self.to[own.clone()])
        });
        each.sum::<f64>() / self.changed.len().max(1) as f64
    }

    /// Rows between both points that a feasible set allows, without the ends.
    fn nodes(&self, set: &FeasibleSet, seed: Seed) -> Vec<Node> {
        let mut rng = seed.rng();
        let mut nodes: Vec<Node> = Vec::new();
        for chain in 0..CHAINS {
            // The part of the way in which each feature changes.
            let intervals: Vec<[f64; 2]> = self
                .changed
                .iter()
                .map(|_| {
                    let [a, b] = [0, 1].map(|_| rng.random_range(0.0..1.0));
                    if chain == 0 { [0.0, 1.0] } else { [f64::min(a, b), f64::max(a, b)] }
                })
                .collect();
            for part in 1..PARTS {
                let point = self.at(part as f64 / PARTS as f64, &intervals);
                let Some((row, point)) = set.settle(&point) else { continue };
                let is_end = point == self.from || point == self.to;
                let is_known = nodes.iter().any(|node| node.point == point);
                if !is_end && !is_known && is_between(&point, self.from, self.to) {
                    nodes.push(Node { row, point });
                }
            }
        }
        nodes
    }

    /// The point at a time between 0 and 1, if each feature changes within an interval. A feature of
    /// several columns changes in the middle of its interval.
    fn at(&self, time: f64, intervals: &[[f64; 2]]) -> Vec<f32> {
        let mut point = self.from.to_vec();
        for (own, [start, end]) in self.changed.iter().zip(intervals) {
            let share = ((time - start) / (end - start).max(1e-9)).clamp(0.0, 1.0);
            let (a, b) = (&self.from[own.clone()], &self.to[own.clone()]);
            match (&mut point[own.clone()], a, b) {
                ([x], [a], [b]) => {
                    *x = (f64::from(*a) + share * (f64::from(*b) - f64::from(*a))) as f32;
                }
                (x, _, b) if share >= 0.5 => x.copy_from_slice(b),
                _ => {}
            }
        }
        point
    }

    /// The edges from each node: the nodes that they lead to, with their weights. The first node is
    /// the applicant and the last one the answer.
    fn edges(&self, nodes: &[Node], density: &Plausibility, level: f64) -> Vec<Vec<(usize, f64)>> {
        let Some((last, others)) = nodes.split_last() else { return Vec::new() };
        let weight = |from: &[f32], to: &[f32]| {
            let middle: Vec<f32> = from.iter().zip(to).map(|(a, b)| 0.5 * (a + b)).collect();
            let unusual = (level - density.log_density(&middle)).max(0.0);
            STEP + self.part(from, to).powi(2) * (1.0 + unusual)
        };
        let from = |index: usize, node: &Node| {
            let mut ahead: Vec<(f64, usize)> = (1..others.len())
                .filter(|&other| other != index)
                .filter(|&other| is_between(&others[other].point, &node.point, &last.point))
                .map(|other| (self.part(&node.point, &others[other].point), other))
                .collect();
            ahead.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            ahead.truncate(NEIGHBOURS);
            let to = ahead.into_iter().map(|(_, other)| other).chain([others.len()]);
            to.map(|to| (to, weight(&node.point, &nodes[to].point))).collect()
        };
        let mut edges: Vec<Vec<(usize, f64)>> =
            others.iter().enumerate().map(|(index, node)| from(index, node)).collect();
        edges.push(Vec::new());
        edges
    }
}

/// Whether every coordinate lies between those of two points.
fn is_between(point: &[f32], from: &[f32], to: &[f32]) -> bool {
    let mut each = point.iter().zip(from.iter().zip(to));
    each.all(|(x, (a, b))| a.min(*b) <= *x && *x <= a.max(*b))
}

/// Dijkstra's path of least weight from the first node to the last one, which edges reach.
fn cheapest(edges: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut least = vec![f64::INFINITY; edges.len()];
    let mut before = vec![0; edges.len()];
    let mut open: Vec<usize> = (0..edges.len()).collect();
    least[0] = 0.0;
    // The nearest open node; of equals the first.
    while let Some(place) =
        (0..open.len()).min_by(|&a, &b| least[open[a]].total_cmp(&least[open[b]]))
    {
        let node = open.remove(place);
        for &(to, weight) in &edges[node] {
            if least[node] + weight < least[to] {
                (least[to], before[to]) = (least[node] + weight, node);
            }
        }
    }
    let mut path = vec![edges.len() - 1];
    while let Some(&node) = path.last().filter(|node| **node != 0) {
        path.push(before[node]);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Points;
    use proptest::prelude::*;

    /// The least weight over all paths, by trying each.
    fn tried(edges: &[Vec<(usize, f64)>], node: usize) -> f64 {
        if node + 1 == edges.len() {
            return 0.0;
        }
        let each = edges[node].iter().map(|&(to, weight)| weight + tried(edges, to));
        each.fold(f64::INFINITY, f64::min)
    }

    fn weight_of(edges: &[Vec<(usize, f64)>], path: &[usize]) -> f64 {
        let weight = |step: &[usize]| {
            edges[step[0]].iter().find(|(to, _)| *to == step[1]).expect("an edge").1
        };
        path.windows(2).map(weight).sum()
    }

    proptest! {
        #[test]
        fn no_path_weighs_less_than_dijkstras(
            weights in prop::collection::vec(0.0..1.0_f64, 45), kept in prop::collection::vec(any::<bool>(), 45),
        ) {
            // Forward edges between 10 nodes, each of them to the last one as well.
            let mut drawn = weights.into_iter().zip(kept);
            let edges: Vec<Vec<(usize, f64)>> = (0..10)
                .map(|from| {
                    let all = (from + 1..10).map(|to| (to, drawn.next().unwrap()));
                    all.filter(|(to, (_, kept))| *kept || *to == 9)
                        .map(|(to, (weight, _))| (to, weight))
                        .collect()
                })
                .collect();
            let path = cheapest(&edges);
            prop_assert_eq!((path[0], path[path.len() - 1]), (0, 9));
            prop_assert!((weight_of(&edges, &path) - tried(&edges, 0)).abs() < 1e-12);
        }
    }

    /// Where all is usual, four equal steps weigh least: `n / 16 + 1 / n` has its least value at 4.
    #[test]
    fn through_usual_points_four_equal_steps_weigh_least() {
        let sum = |steps: usize| steps as f64 * STEP + 1.0 / steps as f64;
        for steps in [1, 2, 3, 5, 6, 10] {
            assert!(sum(4) < sum(steps), "{steps}");
        }
        let line = |x: f32| Node { row: Row::from_checked(Vec::new()), point: vec![x] };
        // A density whose level all points of the line pass.
        let cloud = Points::from_rows(1, (0..400).map(|x| x as f32 / 400.0).collect()).unwrap();
        let density = Plausibility::fit_numbers(&cloud, Seed(0)).unwrap();
        let nodes: Vec<Node> = (0..=8_u8).map(|x| line(f32::from(x) / 8.0)).collect();
        let way = Way::new(std::iter::once(0..1), &[0.0], &[1.0]);
        assert_eq!(way.part(&[0.25], &[0.75]), 0.5);
        let edges = way.edges(&nodes, &density, f64::NEG_INFINITY);
        assert_eq!(cheapest(&edges), [0, 2, 4, 6, 8]);
    }

    /// The way turns where the density is.
    #[test]
    fn an_edge_over_unusual_points_weighs_more() {
        let mut rng = Seed(3).rng();
        // A corner: along the first axis, then along the second.
        let mut cloud = Points::new(2);
        for _ in 0..600 {
            let along: f32 = rng.random_range(0.0..1.0);
            let off: f32 = rng.random_range(-0.02..0.02);
            let point = if rng.random_range(0..2) == 0 { [along, off] } else { [1.0 + off, along] };
            cloud.push(&point);
        }
        let density = Plausibility::fit_numbers(&cloud, Seed(0)).unwrap();
        let level = density.level(0.1).unwrap();
        let node = |x: f32, y: f32| Node { row: Row::from_checked(Vec::new()), point: vec![x, y] };
        let nodes = [node(0.0, 0.0), node(0.5, 0.5), node(1.0, 0.0), node(1.0, 1.0)];
        assert!(density.p_value(&[0.5, 0.5]) < 0.05);
        let way = Way::new([0..1, 1..2].into_iter(), &[0.0, 0.0], &[1.0, 1.0]);
        // Both ways have two equal parts, and only the one around the corner is usual.
        assert_eq!(cheapest(&way.edges(&nodes, &density, level)), [0, 2, 3]);
        let weights = way.edges(&nodes, &density, f64::NEG_INFINITY);
        assert_eq!(weight_of(&weights, &[0, 1, 3]), weight_of(&weights, &[0, 2, 3]));
    }

    #[test]
    fn between_is_in_every_coordinate() {
        assert!(is_between(&[0.5, 1.0], &[0.0, 1.0], &[1.0, 1.0]));
        assert!(is_between(&[0.5, 0.0], &[1.0, 0.0], &[0.0, 2.0]));
        assert!(!is_between(&[0.5, 1.1], &[0.0, 1.0], &[1.0, 1.0]));
        assert!(!is_between(&[-0.1, 1.0], &[0.0, 1.0], &[1.0, 1.0]));
    }
}
