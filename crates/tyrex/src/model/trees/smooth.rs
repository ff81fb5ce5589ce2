//! The mean of a tree ensemble over Gaussian neighbours, exactly, with its gradient.
//!
//! `F(x) = base + sum over leaves of v P(x falls to the leaf)`, where the coordinates of a
//! neighbour are independent. A leaf's box is a set of cells of each column, so
//! `P = prod_j P_j(S_j)`, and along a path `P` is a product of conditional probabilities
//! `p_n = P_j(A) / P_j(B)`, with `B` the cells of column `j` that lead to node `n` and `A` those
//! that lead on to its first child. So one pass over the nodes gives every subtree's mean
//!
//! `G_n = p_n G_first + (1 - p_n) G_other`, `F = base + sum over trees of G_root`,
//!
//! and a second one, with `W_n` the product of the probabilities on the path to `n`, the gradient
//!
//! `dF/dx_j = sum over nodes that ask about j of W_n (G_first - G_other) dp_n/dx_j`.
//!
//! No leaf's product is divided by one of its factors, so a factor of zero loses no derivative.
//!
//! A column's distribution is one of three ([`Motion`]):
//!
//! - Gaussian: `P_j(x < c) = Phi((c - x_j) / s)`.
//! - Still: `P_j(x < c) = [x_j < c]`. A column that some node compares by `==`, `!=` or with a set
//!   holds codes; a Gaussian neighbour of a code is no code, so the mean over such neighbours
//!   would answer each of these questions by "no".
//! - Switch: 1 with probability `x_j`, else 0. A one-hot column holds 0 or 1. A Gaussian around it
//!   has almost no slope at both, and its mean would mix in points that encode no row. The linear
//!   form is the trees' own value at 0 and at 1, and its slope is what switching the level changes.
//!   Trees do not say which columns are one-hot, so the caller does
//!   ([`SmoothedTrees::with_switches`]); the columns that mark missing values always are switches.
//!
//! A column that counts as another number `v` beside a missing value is `v` with the probability of
//! that mark, independently of the other columns, and a missing value has no neighbours of its own.
//! Outside of `[0, 1]` a switch is constant.

mod build;
mod normal;

use build::{Builder, columns};
use normal::normal;

use super::{Aggregate, Substitute, Transform, TreeEnsemble};
use crate::error::{Error, Result};
use crate::model::committee::of_probability;
use crate::model::{DifferentiableModel, Model, ModelSummary};
use crate::points::Points;

/// The mean of a tree ensemble over Gaussian neighbours of a width: the link of the mean margin,
/// or the mean score of trees that give probabilities.
#[derive(Debug, Clone)]
pub struct SmoothedTrees {
    dim: usize,
    width: f64,
    columns: Vec<Column>,
    /// The length of a [`Tables`].
    entries: usize,
    trees: Vec<Tree>,
    /// Sets of cells that are more than one run.
    many: Vec<Vec<(u32, u32)>>,
    /// The values of each leaf, one for each output.
    values: Vec<f64>,
    base: Vec<f64>,
    /// 1, or 1 over the number of trees.
    share: f64,
    transform: Transform,
    summary: ModelSummary,
}

/// How the neighbours' values of a column are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Motion {
    Gaussian,
    Still,
    Switch,
}

/// A column that some tree asks about.
#[derive(Debug, Clone)]
struct Column {
    index: usize,
    motion: Motion,
    /// Where NaN counts: as a cell below all numbers, or above.
    nan_first: bool,
    cuts: Vec<f32>,
    /// Its first entry in the tables.
    offset: usize,
    substitute: Option<Substitute>,
}

/// A tree without the branches that no point reaches: its splits in preorder, then its leaves. The
/// root is the first.
#[derive(Debug, Clone)]
struct Tree {
    splits: Vec<Split>,
    /// Its leaves' values.
    values: std::ops::Range<usize>,
}

/// A question. It is small, since all of them are read in each evaluation.
#[derive(Debug, Clone)]
struct Split {
    /// The index in `columns`.
    column: u32,
    /// `B`: the cells of the column that lead here, as entries of the tables.
    all: Runs,
    /// `A`: those that lead to the first child.
    first: Runs,
    /// The next nodes of the tree.
    children: [u32; 2],
}

/// A set of cells as a run of them, which it nearly always is; else the index in
/// [`SmoothedTrees::many`], marked by an end before its start.
#[derive(Debug, Clone, Copy)]
struct Runs {
    from: u32,
    to: u32,
}

/// `P(x < c)` for every cut of every column, and its derivatives.
struct Tables {
    /// The probability, and its derivative by the column itself.
    own: Vec<[f64; 2]>,
    /// The derivative by the mark of the column's missing value; empty without such columns.
    by_mark: Vec<[f64; 1]>,
}

/// The working memory of one evaluation.
struct Scratch {
    tables: Tables,
    shares: Vec<f64>,
    /// `dp_n`, by the column and by the mark of its missing value.
    slopes: Vec<[f64; 2]>,
    means: Vec<f64>,
    weights: Vec<f64>,
    gradient: Vec<f64>,
}

impl TreeEnsemble {
    /// The mean over Gaussian neighbours of standard deviation `width`.
    ///
    /// An error if the width is not a positive number, or if the ensemble takes the least or the
    /// largest of its trees, which has no such form.
    pub fn smoothed(&self, width: f64) -> Result<SmoothedTrees> {
        SmoothedTrees::new(self, width)
    }
}

impl SmoothedTrees {
    fn new(ensemble: &TreeEnsemble, width: f64) -> Result<Self> {
        check_width(width)?;
        if matches!(ensemble.aggregate, Aggregate::Minimum | Aggregate::Maximum) {
            return Err(Error::InvalidModel(
                "the least or the largest of many trees has no mean over neighbours in closed form"
                    .into(),
            ));
        }
        let (columns, place) = columns(ensemble);
        let entries = columns.last().map_or(0, |last| last.offset + last.cuts.len() + 3);
        let k = ensemble.base.len();
        let mut values = Vec::new();
        let mut many = Vec::new();
        let trees = ensemble
            .roots
            .iter()
            .map(|&root| {
                Builder { ensemble, columns: &columns, place: &place, k }.tree(
                    root,
                    &mut values,
                    &mut many,
                )
            })
            .collect();
        let share = match ensemble.aggregate {
            Aggregate::Average => 1.0 / ensemble.roots.len().max(1) as f64,
            _ => 1.0,
        };
        Ok(Self {
            dim: ensemble.dim,
            width,
            columns,
            entries,
            trees,
            many,
            values,
            base: ensemble.base.iter().map(|&base| f64::from(base)).collect(),
            share,
            transform: ensemble.transform,
            summary: ensemble.summary(),
        })
    }

    /// The same where these columns hold 0 or 1 only, such as the levels of a one-hot group. A
    /// column with a value for missing ones stays as it is.
    pub fn with_switches(mut self, switches: &[usize]) -> Result<Self> {
        if let Some(column) = switches.iter().find(|&&column| column >= self.dim) {
            let last = self.dim - 1;
            return Err(Error::param("switches", column, format!("columns from 0 to {last}")));
        }
        for column in &mut self.columns {
            if switches.contains(&column.index) && column.substitute.is_none() {
                column.motion = Motion::Switch;
            }
        }
        Ok(self)
    }

    /// The same for neighbours of another width.
    pub fn with_width(mut self, width: f64) -> Result<Self> {
        check_width(width)?;
        self.width = width;
        Ok(self)
    }

    /// The standard deviation of the neighbours.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The logit of the favourable class at one point, with its gradient; as
    /// `TreeEnsemble::logit_into` takes it from the outputs.
    ///
    /// # Panics
    /// If the dimension of the point or of the gradient does not match.
    pub fn logit_and_gradient(&self, x: &[f32], gradient: &mut [f32]) -> f32 {
        assert_eq!(gradient.len(), self.dim, "the dimension of the gradient");
        let mut scratch = self.scratch();
        let (logit, slopes) = self.evaluate(x, &mut scratch, true, |outputs| self.logit(outputs));
        self.finish(&slopes, &mut scratch);
        for (to, from) in gradient.iter_mut().zip(&scratch.gradient) {
            *to = *from as f32;
        }
        logit as f32
    }

    fn scratch(&self) -> Scratch {
        // A tree has one leaf more than splits.
        let most = self.trees.iter().map(|tree| tree.splits.len()).max().unwrap_or(0);
        let marked = self.columns.iter().any(|column| column.substitute.is_some());
        Scratch {
            tables: Tables {
                own: vec![[0.0; 2]; self.entries],
                by_mark: vec![[0.0]; if marked { self.entries } else { 0 }],
            },
            shares: vec![0.0; most],
            slopes: vec![[0.0; 2]; most],
            means: vec![0.0; 2 * most + 1],
            weights: vec![0.0; 2 * most + 1],
            gradient: vec![0.0; self.dim],
        }
    }

    /// A function of the mean outputs, with its derivative by each; for one output the gradient
    /// of the mean output is in the scratch space then, if it is asked for.
    fn evaluate(
        &self,
        x: &[f32],
        scratch: &mut Scratch,
        with_gradient: bool,
        of: impl Fn(&[f64]) -> (f64, Vec<f64>),
    ) -> (f64, Vec<f64>) {
        assert_eq!(x.len(), self.dim, "points of another dimension");
        self.fill_tables(x, &mut scratch.tables);
        let k = self.base.len();
        let mut outputs = vec![0.0; k];
        if k == 1 {
            scratch.gradient.fill(0.0);
        }
        for tree in &self.trees {
            self.shares(tree, scratch);
            for (class, output) in outputs.iter_mut().enumerate() {
                *output += tree.means(&self.values, k, scratch, |leaf| leaf[class]);
            }
            if with_gradient && k == 1 {
                self.add_gradient(tree, scratch);
            }
        }
        for (output, base) in outputs.iter_mut().zip(&self.base) {
            *output = *output * self.share + base;
        }
        of(&outputs)
    }

    /// Puts the gradient `sum_o slope_o dz_o/dx` into the scratch space, after
    /// [`evaluate`](Self::evaluate) at the same point.
    fn finish(&self, slopes: &[f64], scratch: &mut Scratch) {
        let k = self.base.len();
        let mut scale = self.share;
        if k == 1 {
            scale *= slopes[0];
        } else {
            scratch.gradient.fill(0.0);
            let value = |leaf: &[f64]| leaf.iter().zip(slopes).map(|(v, s)| v * s).sum();
            for tree in &self.trees {
                self.shares(tree, scratch);
                tree.means(&self.values, k, scratch, value);
                self.add_gradient(tree, scratch);
            }
        }
        for partial in &mut scratch.gradient {
            *partial *= scale;
        }
    }

    /// `p_n` of every split of a tree, and its derivatives.
    fn shares(&self, tree: &Tree, scratch: &mut Scratch) {
        let Scratch { tables: Tables { own, by_mark }, shares, slopes, .. } = scratch;
        for ((split, share), slopes) in tree.splits.iter().zip(shares).zip(slopes) {
            let [first, first_slope] = split.first.of(own, &self.many);
            let [all, all_slope] = split.all.of(own, &self.many);
            let marked = self.columns[split.column as usize].substitute.is_some();
            let [first_mark, all_mark] = if marked {
                [split.first, split.all].map(|cells| cells.of(by_mark, &self.many)[0])
            } else {
                [0.0; 2]
            };
            if all > 0.0 {
                let inverse = 1.0 / all;
                *share = (first * inverse).clamp(0.0, 1.0);
                *slopes = [(first_slope - *share * all_slope) * inverse, 0.0];
                if marked {
                    slopes[1] = (first_mark - *share * all_mark) * inverse;
                }
                continue;
            }
            // No neighbour gets here. The share to which a path comes close, along which the first
            // ones would.
            *slopes = [0.0; 2];
            let directions = [(first_slope, all_slope), (first_mark, all_mark)];
            let limit = directions.into_iter().find(|(_, all)| *all != 0.0);
            *share = limit.map_or(0.0, |(first, all)| (first / all).clamp(0.0, 1.0));
        }
    }

    /// Adds a tree's `W_n (G_first - G_other) dp_n/dx` to the gradient.
    fn add_gradient(&self, tree: &Tree, scratch: &mut Scratch) {
        let Scratch { shares, slopes, means, weights, gradient, .. } = scratch;
        weights[0] = 1.0;
        let each = tree.splits.iter().zip(shares.iter().zip(slopes.iter()));
        for (index, (split, (&share, &[slope, by_mark]))) in each.enumerate() {
            let [first, other] = split.children.map(|child| child as usize);
            let weight = weights[index];
            weights[first] = weight * share;
            weights[other] = weight * (1.0 - share);
            let change = weight * (means[first] - means[other]);
            let column = &self.columns[split.column as usize];
            gradient[column.index] += change * slope;
            if let Some(Substitute { indicator, .. }) = column.substitute {
                gradient[indicator] += change * by_mark;
            }
        }
    }

    /// The distribution of every column around a point.
    fn fill_tables(&self, x: &[f32], tables: &mut Tables) {
        for column in &self.columns {
            let entries = column.offset..column.offset + column.cuts.len() + 3;
            let own = &mut tables.own[entries.clone()];
            column.fill(x[column.index], self.width, own);
            if let Some(Substitute { indicator, value, .. }) = column.substitute {
                let mark = f64::from(x[indicator]);
                let (q, moves) = (mark.clamp(0.0, 1.0), (0.0..=1.0).contains(&mark));
                let mut at_value = vec![[0.0; 2]; own.len()];
                column.fill_at(value, &mut at_value);
                let each = own.iter_mut().zip(&mut tables.by_mark[entries]).zip(at_value);
                for (([probability, slope], [by_mark]), [at_value, _]) in each {
                    *by_mark = if moves { at_value - *probability } else { 0.0 };
                    *probability += q * (at_value - *probability);
                    *slope *= 1.0 - q;
                }
            }
        }
    }

    /// The score of mean outputs, with its derivatives.
    fn link(&self, outputs: &[f64]) -> (f64, Vec<f64>) {
        match self.transform {
            Transform::Identity => (outputs[0], vec![1.0]),
            Transform::Logistic => {
                let score = 1.0 / (1.0 + libm::exp(-outputs[0]));
                (score, vec![score * (1.0 - score)])
            }
            Transform::Softmax { favourable } => {
                let highest = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = outputs.iter().map(|z| libm::exp(z - highest)).collect();
                let sum: f64 = powers.iter().sum();
                let own = powers[favourable] / sum;
                let slope = |(class, power): (usize, &f64)| {
                    own * (f64::from(u8::from(class == favourable)) - power / sum)
                };
                (own, powers.iter().enumerate().map(slope).collect())
            }
        }
    }

    /// The logit of mean outputs, with its derivatives.
    fn logit(&self, outputs: &[f64]) -> (f64, Vec<f64>) {
        match self.transform {
            Transform::Identity => {
                const LEAST: f64 = 1e-12;
                let score = outputs[0];
                let slope = 1.0 / (score * (1.0 - score)).max(LEAST);
                (of_probability(score), vec![slope])
            }
            Transform::Logistic => (outputs[0], vec![1.0]),
            Transform::Softmax { .. } if outputs.len() == 1 => (of_probability(1.0), vec![0.0]),
            Transform::Softmax { favourable } => {
                let is_rival = |class: usize| class != favourable;
                let rivals = outputs.iter().enumerate().filter(|(class, _)| is_rival(*class));
                let highest = rivals.map(|(_, z)| *z).fold(f64::NEG_INFINITY, f64::max);
                let power = |(class, z): (usize, &f64)| {
                    if is_rival(class) { libm::exp(z - highest) } else { 0.0 }
                };
                let powers: Vec<f64> = outputs.iter().enumerate().map(power).collect();
                let sum: f64 = powers.iter().sum();
                let slopes = powers
                    .iter()
                    .enumerate()
                    .map(|(class, power)| if is_rival(class) { -power / sum } else { 1.0 });
                (outputs[favourable] - highest - libm::log(sum), slopes.collect())
            }
        }
    }
}

impl Model for SmoothedTrees {
    fn dim(&self) -> usize {
        self.dim
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        assert_eq!(points.dim(), self.dim, "points of another dimension");
        assert_eq!(points.len(), scores.len(), "one score per point");
        let mut scratch = self.scratch();
        for (point, score) in points.rows().zip(scores) {
            let (value, _) = self.evaluate(point, &mut scratch, false, |z| self.link(z));
            *score = value as f32;
        }
    }

    fn differentiable(&self) -> Option<&dyn DifferentiableModel> {
        Some(self)
    }

    fn summary(&self) -> ModelSummary {
        self.summary.clone()
    }
}

impl DifferentiableModel for SmoothedTrees {
    fn vjp_into(
        &self,
        points: &Points,
        cotangents: &[f32],
        scores: &mut [f32],
        gradients: &mut Points,
    ) {
        assert_eq!(points.dim(), self.dim, "points of another dimension");
        assert_eq!(points.len(), cotangents.len(), "one cotangent per point");
        assert_eq!(points.len(), scores.len(), "one score per point");
        assert_eq!(gradients.len(), points.len(), "one gradient per point");
        assert_eq!(gradients.dim(), self.dim, "gradients of another dimension");
        let mut scratch = self.scratch();
        for (index, point) in points.rows().enumerate() {
            let (value, mut slopes) = self.evaluate(point, &mut scratch, true, |z| self.link(z));
            scores[index] = value as f32;
            slopes.iter_mut().for_each(|slope| *slope *= f64::from(cotangents[index]));
            self.finish(&slopes, &mut scratch);
            for (to, from) in gradients.row_mut(index).iter_mut().zip(&scratch.gradient) {
                *to = *from as f32;
            }
        }
    }
}

impl Runs {
    /// The sum over the cells of the differences between their ends.
    #[inline]
    fn of<const N: usize>(self, table: &[[f64; N]], many: &[Vec<(u32, u32)>]) -> [f64; N] {
        let of_run = |from: u32, to: u32| {
            let (from, to) = (&table[from as usize], &table[to as usize]);
            std::array::from_fn(|i| to[i] - from[i])
        };
        if self.to >= self.from {
            return of_run(self.from, self.to);
        }
        let mut sum = [0.0; N];
        for &(from, to) in &many[self.to as usize] {
            sum.iter_mut().zip(of_run(from, to)).for_each(|(sum, part)| *sum += part);
        }
        sum
    }
}

impl Tree {
    /// `G_n` of every node; that of the root. A leaf's is a function of its `k` values.
    fn means(
        &self,
        values: &[f64],
        k: usize,
        scratch: &mut Scratch,
        of: impl Fn(&[f64]) -> f64,
    ) -> f64 {
        let Scratch { shares, means, .. } = scratch;
        let values = values[self.values.clone()].chunks_exact(k);
        means[self.splits.len()..].iter_mut().zip(values).for_each(|(mean, leaf)| *mean = of(leaf));
        for (index, (split, share)) in self.splits.iter().zip(shares.iter()).enumerate().rev() {
            let [first, other] = split.children.map(|child| means[child as usize]);
            means[index] = share * first + (1.0 - share) * other;
        }
        means[0]
    }
}

impl Column {
    /// The cells of the numbers, among all.
    fn numbers(&self) -> std::ops::Range<usize> {
        let first = usize::from(self.nan_first);
        first..first + self.cuts.len() + 1
    }

    /// The distribution around `x`: entry `i` is the probability of the first `i` cells, and its
    /// derivative.
    fn fill(&self, x: f32, width: f64, entries: &mut [[f64; 2]]) {
        if x.is_nan() || self.motion == Motion::Still {
            self.fill_at(x, entries);
            return;
        }
        let numbers = self.numbers();
        entries[..=numbers.start].fill([0.0; 2]);
        entries[numbers.end..].fill([1.0, 0.0]);
        let each = entries[numbers.start + 1..numbers.end].iter_mut().zip(&self.cuts);
        let x = f64::from(x);
        if self.motion == Motion::Switch {
            let (on, moves) = (x.clamp(0.0, 1.0), (0.0..=1.0).contains(&x));
            for (entry, &cut) in each {
                let [off_below, on_below] =
                    [0.0, 1.0].map(|value| f64::from(u8::from(value < cut)));
                let slope = if moves { on_below - off_below } else { 0.0 };
                *entry = [(1.0 - on) * off_below + on * on_below, slope];
            }
            return;
        }
        let inverse = 1.0 / width;
        for (entry, &cut) in each {
            let [cumulative, density] = normal((f64::from(cut) - x) * inverse);
            *entry = [cumulative, -density * inverse];
        }
    }

    /// The distribution of one value.
    fn fill_at(&self, x: f32, entries: &mut [[f64; 2]]) {
        let numbers = self.numbers();
        let cell = if x.is_nan() {
            if self.nan_first { 0 } else { numbers.end }
        } else {
            numbers.start + self.cuts.partition_point(|&cut| cut <= x)
        };
        entries[..=cell].fill([0.0; 2]);
        entries[cell + 1..].fill([1.0, 0.0]);
    }
}

fn check_width(width: f64) -> Result<()> {
    if (1e-30..=1e30).contains(&width) {
        return Ok(());
    }
    Err(Error::param("width", width, "a positive number from 1e-30 to 1e30"))
}

#[cfg(test)]
mod tests;
