//! The proof that no cheaper point passes, by branch and bound over the cells of trees.
//!
//! A *box* is a range of choices for each feature. Its cheapest corner costs `c`, the sum of the
//! least prices; every other point of the box costs more. Let `C` be the cost of the best point
//! known. A box needs no further look if `c >= C`, or if no point of it that costs less than `C`
//! passes. The second is shown by an upper bound of the sum of the trees:
//!
//! `F(x) <= sum_t max over leaves of w`,
//!
//! over the leaves of each tree that the box reaches at a cost below `C`. This lets each tree choose
//! alone, and so spend the whole of `C - c`. With multipliers `u >= 0` of trees and features, and
//! `e_j` what a leaf requires feature `j` to cost above the box's corner,
//!
//! `F(x) <= (C - c) max_j sum_t u_tj + sum_t max over leaves of (w - sum_j u_tj e_j)`
//!
//! holds for every `x` of the box below `C`, since `sum_j e_j(x) < C - c` there. Any multipliers
//! give a bound. They are improved by steps down its subgradient, from box to box.
//!
//! Boxes are taken in the order of `c`, so the least `c` of those left bounds the cost of all points
//! that pass. A box is divided where the best leaves of its trees exclude its corner. If none does,
//! the sum is largest at the corner, and so is the score, since sums and scores are rounded
//! monotonically: the box ends there.
//!
//! Rules between features are not part of the bound. Where a corner breaks one, the box is divided
//! further, and a box that cannot be divided is left open.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::run::{Run, Spot};
use super::{Cells, Choices, Density, WORTH};
use crate::counterfactual::field::Field;
use crate::counterfactual::search::{Candidate, Test};
use crate::counterfactual::{Factual, Meter, Norm};
use crate::model::routes::LeafBoxes;

/// The most boxes of a proof.
const MOST_BOXES: usize = 400_000;
/// The most ranges of all boxes that wait, 64 MB.
const MOST_RANGES: usize = 4_000_000;
/// Steps of the multipliers in the first box, and in each other one.
const FIRST_STEPS: usize = 100;
const STEPS: usize = 4;

/// The result of a proof.
#[derive(Debug)]
pub(crate) struct Proved {
    /// The best point, if one passes.
    pub(crate) best: Option<Candidate>,
    /// No point that passes costs less.
    pub(crate) least_cost: f64,
}

impl Cells {
    /// Why a search on these models cannot be proved; `None` if it can be.
    pub(crate) fn hinders_proof(&self) -> Option<&'static str> {
        match self.routes() {
            None => Some("trees whose least or largest weight counts have none"),
            Some(routes) if !routes.is_one_sum() => {
                Some("trees with more than two classes have none")
            }
            Some(_) => None,
        }
    }

    /// Looks for points that cost less than the best known one, until there is none or the budget
    /// ends. The test is a least score. `None` if the cells of two features depend on each other, or
    /// the budget is spent.
    pub(crate) fn prove(
        &self,
        factual: &Factual<'_>,
        norm: Norm,
        field: &mut dyn Field,
        (test, score): (Test, f64),
        best: Option<Candidate>,
        meter: &mut Meter,
    ) -> Option<Proved> {
        let routes = self.routes()?;
        let search = self.search(factual, norm, 1, Density::EVERY_CELL);
        let levers = 0..search.levers.len();
        let lines: Vec<_> =
            levers.map(|lever| search.line(lever, (0, search.levers[lever].len()))).collect();
        let trees = routes.leaf_boxes(factual.point, &lines)?;
        let mut run =
            Run { search: &search, field, test, meter, locked: None, limit: f64::INFINITY };
        let start = run.spot(factual.point)?;
        Some(Prover::new(run, start, trees, routes.least_sum(score)).prove(best))
    }
}

/// A box that was not looked at yet.
#[derive(Debug)]
struct Open {
    /// The price of its corner.
    base: f64,
    number: usize,
    ranges: Vec<Choices>,
}

/// The cheapest box is the greatest, as heaps want it; of equals the last one.
impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        other.base.total_cmp(&self.base).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

/// A box in which a point may pass.
struct Doubtful {
    /// Whether the corner may.
    at_corner: bool,
    /// The lever to divide, and the first choice of the second part; `None` if the sum is largest
    /// at the corner.
    split: Option<(usize, usize)>,
}

struct Prover<'r, 'w> {
    run: Run<'r, 'w>,
    /// The factual.
    start: Spot,
    trees: LeafBoxes,
    /// The least sum that may pass.
    least: f64,
    /// The multipliers `u` by slot: a slot is a feature in a tree.
    multipliers: Vec<f64>,
    /// The slots of each lever.
    slots_of: Vec<Vec<u32>>,
    /// The choice of each lever that costs nothing.
    own: Vec<usize>,
    look: BoxBounds,
}

/// The bounds of one box.
#[derive(Default)]
struct BoxBounds {
    /// The corner's choice and price, lever by lever.
    corner: Vec<(usize, f64)>,
    /// The leaves in reach.
    leaves: Vec<Reached>,
    /// The end of each tree among them.
    ends: Vec<usize>,
    /// The price that leaves require above the corner's, by slot.
    extras: Vec<(u32, f64)>,
    /// For each tree, the weight at the corner.
    at_corner: Vec<f64>,
    /// For each tree, the place of the leaf chosen last.
    chosen: Vec<usize>,
    /// The requirements of the chosen leaves, by slot.
    required: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Reached {
    /// Its place among all leaves.
    leaf: usize,
    weight: f64,
    first_extra: usize,
    last_extra: usize,
}

impl<'r, 'w> Prover<'r, 'w> {
    fn new(run: Run<'r, 'w>, start: Spot, trees: LeafBoxes, least: f64) -> Self {
        let mut slots_of = vec![Vec::new(); run.search.levers.len()];
        for (slot, &line) in (0..).zip(&trees.slots) {
            slots_of[line].push(slot);
        }
        let multipliers = vec![0.0; trees.slots.len()];
        let own = (0..slots_of.len()).map(|lever| run.search.own(lever).unwrap_or(0)).collect();
        Self { run, start, trees, least, multipliers, slots_of, own, look: BoxBounds::default() }
    }

    fn prove(&mut self, mut best: Option<Candidate>) -> Proved {
        let search = self.run.search;
        let mut known = best.as_ref().map_or(f64::INFINITY, |best| search.total(&best.point));
        let ranges = search.levers.iter().map(|lever| (0, lever.len())).collect();
        let mut open = BinaryHeap::from([Open { base: 0.0, number: 0, ranges }]);
        let mut number = 0;
        // The least price of a box that cannot be divided.
        let mut undecided = f64::INFINITY;
        for boxes in 0.. {
            let limit = known * (1.0 - WORTH);
            let Some(next) = open.pop() else { break };
            if next.base >= limit {
                open.clear();
                break;
            }
            let is_full = open.len() * next.ranges.len() > MOST_RANGES;
            if boxes == MOST_BOXES || is_full || !self.run.meter.take(0, 1) {
                open.push(next);
                break;
            }
            let steps = if boxes == 0 { FIRST_STEPS } else { STEPS };
            let Some(doubtful) = self.look_at(&next, limit, steps) else { continue };
            let mut split = doubtful.split;
            if doubtful.at_corner {
                let corner = self.look.corner.iter().enumerate();
                let changes: Vec<(usize, usize)> =
                    corner.map(|(lever, &(choice, _))| (lever, choice)).collect();
                if let Some((values, point)) = self.run.changed(&self.start, &changes) {
                    let Some(spot) = self.run.read(values, point) else {
                        open.push(next);
                        break;
                    };
                    if self.run.test.passes(spot.reading) {
                        self.run.meter.path.step(&spot.point);
                        known = spot.total;
                        best = Some(search.candidate(spot));
                        continue;
                    }
                } else {
                    split = self.rule_split(&next.ranges);
                    if split.is_none() {
                        undecided = undecided.min(next.base);
                    }
                }
            }
            let Some((lever, at)) = split else { continue };
            let (from, to) = next.ranges[lever];
            for range in [(from, at), (at, to)] {
                let base = next.base - self.look.corner[lever].1 + self.cheapest(lever, range).1;
                if base < limit {
                    number += 1;
                    let mut ranges = next.ranges.clone();
                    ranges[lever] = range;
                    open.push(Open { base, number, ranges });
                }
            }
        }
        let least = open.peek().map_or(f64::INFINITY, |next| next.base);
        Proved { best, least_cost: search.cost(least.min(undecided).min(known)) }
    }

    /// The cheapest choice in a range, the first of equals, and its price.
    fn cheapest(&self, lever: usize, (from, to): Choices) -> (usize, f64) {
        let search = self.run.search;
        let prices = &search.prices[lever];
        if search.levers[lever].is_number && !search.levers[lever].ends_missing {
            // Prices rise with the distance from the factual's number.
            let own = self.own[lever].clamp(from, to - 1);
            return (own, prices[own]);
        }
        let choices = (from..to).map(|choice| (choice, prices[choice]));
        choices.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((from, prices[from]))
    }

    /// Looks at a box; `None` if nothing in it passes below the limit.
    fn look_at(&mut self, next: &Open, limit: f64, steps: usize) -> Option<Doubtful> {
        let slack = limit - next.base;
        self.reach(&next.ranges, slack);
        let heaviest: f64 = self.choose(false);
        if heaviest < self.least {
            return None;
        }
        let at_corner = self.look.at_corner.iter().sum::<f64>() >= self.least;
        let split_by_weight = self.split();
        if slack.is_finite() && !self.is_doubtful(slack, heaviest, steps) {
            return None;
        }
        Some(Doubtful { at_corner, split: self.split().or(split_by_weight) })
    }

    /// Finds the leaves that a box reaches for less than `slack` above its corner.
    fn reach(&mut self, ranges: &[Choices], slack: f64) {
        let mut look = std::mem::take(&mut self.look);
        look.corner.clear();
        look.corner.extend((0..).zip(ranges).map(|(lever, &range)| self.cheapest(lever, range)));
        look.leaves.clear();
        look.ends.clear();
        look.extras.clear();
        look.at_corner.clear();
        let mut leaf = 0;
        for &end in &self.trees.ends {
            let mut at_corner = 0.0;
            'leaves: while leaf < end {
                let this = leaf;
                leaf += 1;
                let first_extra = look.extras.len();
                let (mut total, mut has_corner) = (0.0, true);
                for span in self.trees.spans(this) {
                    let lever = self.trees.slots[span.slot as usize];
                    let (from, to) = ranges[lever];
                    let (from, to) = (from.max(span.from), to.min(span.to));
                    if from >= to {
                        look.extras.truncate(first_extra);
                        continue 'leaves;
                    }
                    let (corner, price) = look.corner[lever];
                    if from <= corner && corner < to {
                        continue;
                    }
                    has_corner = false;
                    let extra = self.cheapest(lever, (from, to)).1 - price;
                    if extra > 0.0 {
                        look.extras.push((span.slot, extra));
                        total += extra;
                    }
                }
                if total >= slack {
                    look.extras.truncate(first_extra);
                    continue;
                }
                let weight = self.trees.weights[this];
                if has_corner {
                    at_corner = weight;
                }
                let last_extra = look.extras.len();
                look.leaves.push(Reached { leaf: this, weight, first_extra, last_extra });
            }
            look.at_corner.push(at_corner);
            look.ends.push(look.leaves.len());
        }
        self.look = look;
    }

    /// The sum of the best leaves of all trees, by weight alone or less what the multipliers charge.
    fn choose(&mut self, is_charged: bool) -> f64 {
        let BoxBounds { leaves, ends, extras, chosen, .. } = &mut self.look;
        chosen.clear();
        let (mut sum, mut start) = (0.0, 0);
        for &end in &*ends {
            let (mut best, mut place) = (f64::NEG_INFINITY, start);
            for (at, leaf) in (start..).zip(&leaves[start..end]) {
                let mut worth = leaf.weight;
                if is_charged {
                    for &(slot, extra) in &extras[leaf.first_extra..leaf.last_extra] {
                        worth -= self.multipliers[slot as usize] * extra;
                    }
                }
                if worth > best {
                    (best, place) = (worth, at);
                }
            }
            sum += best;
            chosen.push(place);
            start = end;
        }
        sum
    }

    /// Whether the bound with multipliers leaves a point of the box that may pass, after some steps
    /// of them.
    fn is_doubtful(&mut self, slack: f64, heaviest: f64, steps: usize) -> bool {
        if self.multipliers.iter().all(|&u| u == 0.0) {
            let rate = (heaviest - self.least).max(0.0) / slack;
            for slots in &self.slots_of {
                for &slot in slots {
                    self.multipliers[slot as usize] = rate / slots.len() as f64;
                }
            }
        }
        for step in 0..=steps {
            let rate = self.rate();
            let bound = slack * rate + self.choose(true);
            if bound < self.least {
                return false;
            }
            if step < steps {
                self.descend(slack, rate, bound - self.least);
            }
        }
        true
    }

    /// `max_j sum_t u_tj`
    fn rate(&self) -> f64 {
        let sum =
            |slots: &Vec<u32>| slots.iter().map(|&slot| self.multipliers[slot as usize]).sum();
        self.slots_of.iter().map(sum).fold(0.0, f64::max)
    }

    /// A step of the multipliers down the subgradient, as long as the bound would need to fall by
    /// `excess`. The multipliers of each feature sum to one rate.
    fn descend(&mut self, slack: f64, rate: f64, excess: f64) {
        let BoxBounds { leaves, extras, chosen, required, .. } = &mut self.look;
        required.clear();
        required.resize(self.multipliers.len(), 0.0);
        for &place in &*chosen {
            let leaf = leaves[place];
            for &(slot, extra) in &extras[leaf.first_extra..leaf.last_extra] {
                required[slot as usize] = extra;
            }
        }
        let mean = |slots: &[u32]| {
            slots.iter().map(|&slot| required[slot as usize]).sum::<f64>() / slots.len() as f64
        };
        let (mut square, mut of_rate) = (0.0, slack);
        for slots in self.slots_of.iter().filter(|slots| !slots.is_empty()) {
            let mean = mean(slots);
            for &slot in slots {
                let (u, own) = (self.multipliers[slot as usize], required[slot as usize]);
                square += (own - mean).powi(2);
                if rate > 0.0 {
                    of_rate -= u / rate * own;
                }
            }
        }
        square += of_rate.powi(2);
        if square <= 0.0 {
            return;
        }
        let length = excess / square;
        let next_rate = (rate - length * of_rate).max(0.0);
        for slots in self.slots_of.iter().filter(|slots| !slots.is_empty()) {
            let mean = mean(slots);
            let mut sum = 0.0;
            for &slot in slots {
                let u = &mut self.multipliers[slot as usize];
                *u = (*u + length * (required[slot as usize] - mean)).max(0.0);
                sum += *u;
            }
            for &slot in slots {
                let u = &mut self.multipliers[slot as usize];
                *u = if sum > 0.0 { *u * next_rate / sum } else { next_rate / slots.len() as f64 };
            }
        }
    }

    /// Where the chosen leaves exclude the corner: the lever that matters most, and the border that
    /// most of the weight wants to pass.
    fn split(&self) -> Option<(usize, usize)> {
        let look = &self.look;
        let mut borders: Vec<(usize, usize, f64)> = Vec::new();
        for (&place, at_corner) in look.chosen.iter().zip(&look.at_corner) {
            let Reached { leaf, weight, .. } = look.leaves[place];
            let gain = (weight - at_corner).max(f64::MIN_POSITIVE);
            for span in self.trees.spans(leaf) {
                let lever = self.trees.slots[span.slot as usize];
                let corner = look.corner[lever].0;
                if corner < span.from {
                    borders.push((lever, span.from, gain));
                } else if corner >= span.to {
                    borders.push((lever, span.to, gain));
                }
            }
        }
        borders.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let total = |of_lever: &[(usize, usize, f64)]| of_lever.iter().map(|b| b.2).sum::<f64>();
        let of_levers = borders.chunk_by(|a, b| a.0 == b.0);
        let lever = of_levers.max_by(|a, b| total(a).total_cmp(&total(b)))?;
        let of_borders = lever.chunk_by(|a, b| a.1 == b.1);
        let border = of_borders.max_by(|a, b| total(a).total_cmp(&total(b)))?;
        border.first().map(|&(lever, at, _)| (lever, at))
    }

    /// Where to divide a box whose corner breaks a rule: the longest range of the rules.
    fn rule_split(&self, ranges: &[Choices]) -> Option<(usize, usize)> {
        let length = |lever: &usize| ranges[*lever].1 - ranges[*lever].0;
        let bound = (0..ranges.len()).filter(|&lever| self.run.search.levers[lever].is_bound);
        let lever = bound.filter(|lever| length(lever) > 1).max_by_key(length)?;
        let (from, corner) = (ranges[lever].0, self.look.corner[lever].0);
        Some((lever, if corner > from { corner } else { corner + 1 }))
    }
}
