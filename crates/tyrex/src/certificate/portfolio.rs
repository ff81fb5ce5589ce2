//! The portfolio statement: `P( s >= s_(j) ) >= 1 - j/(n + 1)` for the share `s` of all promises
//! that the next model keeps.
//!
//! Of `n` retrained models that the search did not use, model `i` keeps the share `s_i` of the
//! promises, and `s_(j)` is the `j`-th smallest. If the next model is one more draw like them, all
//! `n + 1` shares are exchangeable. `s < s_(j)` means that at most `j - 1` of the `n` shares are
//! smaller or equal, so `s` is among the `j` smallest of all; the probability of that is at most
//! `j/(n + 1)`, also with ties.
//!
//! The statement is about all promises at once and needs no correction for their number, since it
//! counts models. It needs the promises, their groups and their weights to be chosen without the
//! retrained models. So every advice that was found is a promise here, also one that the retrained
//! models reject.

use serde::{Deserialize, Serialize};

use super::assumption::{Assumption, Verdict};
use super::ensemble::{exchangeable, unseen};
use super::{Retrained, at_least};
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// The bits of a number of [`Portfolio::kept`].
const BITS: usize = u64::BITS as usize;

/// The promises that each retrained model keeps: one bit for each promise and model.
#[derive(Debug, Clone, PartialEq)]
pub struct Portfolio {
    /// For each promise [`words`](Self::words) numbers; bit `j` belongs to model `j`.
    kept: Vec<u64>,
    models: usize,
    promises: usize,
    assumptions: Vec<Assumption>,
}

/// The share of promises that the next model keeps, with its probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortfolioStatement {
    /// The group of promises; absent for all promises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<PortfolioGroup>,
    /// The column of amounts that weight the promises; absent if each counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The number of promises.
    pub promises: usize,
    /// `1 - j/(n + 1)`
    pub probability: f64,
    /// `s_(j)`: with that probability, the next model keeps at least this share.
    pub at_least: f64,
    /// `j`
    pub rank: usize,
    /// The share that each of the `n` models keeps, in their order.
    pub shares: Vec<f64>,
    /// The statement as a sentence.
    pub sentence: String,
}

/// A group of promises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortfolioGroup {
    /// The column whose values make the groups.
    pub column: String,
    /// The level, or the range.
    pub name: String,
}

impl Portfolio {
    /// No promises yet.
    pub fn new(retrained: &Retrained) -> Self {
        Self {
            kept: Vec::new(),
            models: retrained.models.len(),
            promises: 0,
            assumptions: vec![exchangeable(retrained), unseen(retrained)],
        }
    }

    /// Adds promised points, scored with every one of the retrained models that this was made for.
    pub fn add(&mut self, points: &Points, models: &[&dyn Model]) -> Result<()> {
        if models.len() != self.models {
            let expected = format!("the {} models of the first promises", self.models);
            return Err(Error::param("models", models.len(), expected));
        }
        let (words, first) = (self.words(), self.kept.len());
        self.kept.resize(first + points.len() * words, 0);
        self.promises += points.len();
        for (number, model) in models.iter().enumerate() {
            if model.dim() != points.dim() {
                return Err(Error::Dimension {
                    what: "coordinates of a retrained model".into(),
                    expected: points.dim(),
                    got: model.dim(),
                });
            }
            let bits = self.kept[first..].chunks_exact_mut(words.max(1));
            for (bits, score) in bits.zip(model.score(points)) {
                bits[number / BITS] |= u64::from(score >= THRESHOLD) << (number % BITS);
            }
        }
        Ok(())
    }

    /// The numbers that hold the bits of a promise.
    fn words(&self) -> usize {
        self.models.div_ceil(BITS)
    }

    /// Whether a model keeps a promise.
    fn is_kept(&self, promise: usize, model: usize) -> bool {
        (self.kept[promise * self.words() + model / BITS] >> (model % BITS)) & 1 == 1
    }

    /// The number of models.
    pub fn models(&self) -> usize {
        self.models
    }

    /// For each promise, the number of models that keep it.
    pub(crate) fn keeping(&self) -> impl Iterator<Item = usize> {
        let count = |bits: &[u64]| bits.iter().map(|word| word.count_ones() as usize).sum();
        self.kept.chunks_exact(self.words().max(1)).map(count)
    }

    /// The assumptions of every statement.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// The verdict that follows from the assumptions.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(true, &self.assumptions)
    }

    /// The share of the weight that each model keeps: `sum_i w_i [kept by j] / sum_i w_i`. `None`
    /// if there is no weight. Weights are finite and not negative, one for each promise.
    pub fn shares(&self, weights: &[f64]) -> Option<Vec<f64>> {
        // Relative to the largest, so that no sum overflows.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let sum = |is_counted: &dyn Fn(usize) -> bool| -> f64 {
            let counted = weights.iter().enumerate().filter(|(index, _)| is_counted(*index));
            counted.map(|(_, weight)| weight / largest).sum()
        };
        let whole = sum(&|_| true);
        let share = |model: usize| sum(&|promise| self.is_kept(promise, model)) / whole;
        (largest > 0.0).then(|| (0..self.models).map(share).collect())
    }

    /// The statement about a group, or about all promises, each weighted by its amount or counted
    /// once. `weights` are the amounts, or 1, and 0 outside the group; `promises` is the number in
    /// the group. `None` if there are no models or no weight.
    ///
    /// `j` is the largest rank whose probability is at least the confidence, or 1 if there are too
    /// few models for it; the statement has the probability that results.
    pub fn statement(
        &self,
        group: Option<PortfolioGroup>,
        amount: Option<String>,
        promises: usize,
        weights: &[f64],
        confidence: f64,
    ) -> Option<PortfolioStatement> {
        let shares = self.shares(weights)?;
        let places = (shares.len() + 1) as f64;
        // The tolerance is for products that should be integers, like 0.05 times 20.
        let rank = (((1.0 - confidence) * places + 1e-9) as usize).clamp(1, shares.len().max(1));
        let mut sorted = shares.clone();
        sorted.sort_by(f64::total_cmp);
        let least = *sorted.get(rank - 1)?;
        let probability = 1.0 - rank as f64 / places;
        let of = match &group {
            None => String::new(),
            Some(PortfolioGroup { column, name }) => format!(" with {column} {name}"),
        };
        let share = match &amount {
            None => at_least(least),
            Some(column) => format!("{} of the {column}", at_least(least)),
        };
        let which = match promises {
            1 => "the 1 promise".to_owned(),
            some => format!("the {some} promises"),
        };
        let sentence = format!(
            "With probability {} the next model keeps at least {share} of {which}{of}: {} of {} \
             models retrained to check this keep less.",
            at_least(probability),
            sorted.iter().filter(|share| **share < least).count(),
            shares.len(),
        );
        Some(PortfolioStatement {
            group,
            amount,
            promises,
            probability,
            at_least: least,
            rank,
            shares,
            sentence,
        })
    }
}
