//! The forest tier: `P( M(x) >= 0.5 ) >= p` for a forest `M` that is grown again on the same rows.
//!
//! The score of a forest is the mean `S_N` of the votes `V_1, ..., V_N` of its trees at `x`, each from
//! 0 to 1. Given the training rows, the trees of random forests, extra trees and bagging are
//! independent draws. So the trees of retrained forests on these rows are draws of the same
//! distribution, and `T` of them tell far more than the few forests they make: 330 of 500 votes show
//! 0.99 for 100 trees, where five forests without dissent show 0.55.
//!
//! **Levels.** For levels `q_1 < ... < q_J` let `p_j` be Clopper and Pearson's lower bound on
//! `P(V >= q_j)` from the fresh trees, at the confidence `1 - alpha/J`. With confidence `1 - alpha`
//! all of them hold, so `V` is stochastically larger than `G` with `P(G >= q_j) = p_j`, and
//!
//! `P( S_N > c ) >= P( (G_1 + ... + G_N) / N > c )`,
//!
//! which is computed by adding up the trees (for more than `EXACT` of them, bounded as below). Fully
//! grown trees vote 0 or 1; then the one level is 1, and this is the exact tail of the binomial.
//!
//! **Shares.** With `Y = (1 - exp(-t V)) / (1 - exp(-t))`, which is from 0 to 1, and a lower bound
//! `l` on `E Y`, Markov's inequality for `exp(t (c - V))` gives
//!
//! `P( S_N <= c ) <= ( exp(t c) (1 - (1 - exp(-t)) l) )^N`.
//!
//! `l` is the `m` with `prod_i (1 + b (Y_i - m)) = 1/alpha` over the fresh trees: at `m = E Y` every
//! factor has expectation 1, and none is negative for `b` in `(0, 1)`, so the product reaches
//! `1/alpha` with a probability of at most `alpha` (Markov), and it falls with `m`. This is better
//! where few trees vote much alike.
//!
//! **Which of the two**, the levels, the tilt `t` and the stake `b` are chosen by the votes of the
//! model in use, which are independent of the fresh trees, given the rows: the way whose bound would
//! be the highest if the fresh trees voted as its own do. So nothing is chosen by the trees that
//! certify, and the confidence needs no correction.
//!
//! `c = 1/2 + 1e-5`, so that the rounding of scores to 32 bits changes no decision.
//!
//! **Not covered**: other rows. Forests that were trained on different rows, such as bootstraps of
//! them, have trees that are dependent within a forest. A permutation test compares how much the
//! forests differ with how much they differ when their trees are dealt out at random; if they differ
//! more, the assumption is broken and nothing is certified.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::assumption::{About, Assumption, Standing, Verdict};
use super::ensemble::{exchangeable, unseen};
use super::{At, Certifies, LeftOut, Maker, Says, Subject, Terms, Tier, at_least};
use crate::error::{Error, Result};
use crate::model::trees::Voters;
use crate::model::{Model, TreeEnsemble};
use crate::seed::Seed;
use crate::statistics::Proportion;

/// `c`
const MAJORITY: f64 = 0.5 + 1e-5;
/// The level of the permutation test, and its permutations: it rejects if none of them differs as
/// much.
const LEVEL: f64 = 0.01;
const PERMUTATIONS: usize = 99;
/// The points at which it compares.
const PROBES: usize = 32;
/// The numbers of levels to choose from, and their fineness: multiples of `1/FINEST`, or coarser ones
/// for many trees.
const LEVELS: [usize; 3] = [2, 6, 16];
const FINEST: usize = 64;
const SUMS: usize = 20_000;
/// The most trees that are added up one by one.
const EXACT: usize = 1000;
/// The largest stake.
const LARGEST_STAKE: f64 = 0.9;
/// The tilts to choose from: `2^(k/2)` times the least.
const LEAST_TILT: f64 = 0.25;
const TILTS: i32 = 16;
/// Steps of the bisection for `l`, and the rounding of a logarithm, added to its limit.
const HALVINGS: u32 = 60;
const ROUNDING: f64 = 1e-9;

/// The result of the tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForestTier {
    /// Vacuous if the bound is below 0.5; at most empirical if the search used the forests, the
    /// model does not look like one of them, or their trees are not independent.
    pub verdict: Verdict,
    /// `T`, the trees of all retrained forests.
    pub fresh_trees: usize,
    /// The retrained forests.
    pub forests: usize,
    /// `N`, the trees of the next forest: as many as the model has.
    pub trees: usize,
    /// How votes are counted.
    pub counted: Counted,
    /// The sum of the fresh trees' votes.
    pub votes: f64,
    /// `1 - alpha`
    pub confidence: f64,
    /// The lower bound on the probability of staying valid.
    pub probability: f64,
    /// The assumptions.
    pub assumptions: Vec<Assumption>,
}

/// How the votes of trees are counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "votes", rename_all = "kebab-case")]
pub enum Counted {
    /// A vote counts as the largest of these levels up to it, or as 0.
    Levels {
        /// `q_1 < ... < q_J`
        levels: Vec<f64>,
    },
    /// Votes count as they are.
    Shares {
        /// `t`
        tilt: f64,
        /// `b`
        stake: f64,
    },
}

impl Says for ForestTier {
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    fn brief(&self) -> String {
        let Self { verdict, votes, fresh_trees, probability, .. } = self;
        format!("{verdict}: {} ({votes:.0}/{fresh_trees})", at_least(*probability))
    }

    fn numbers(&self) -> Vec<String> {
        let Self { votes, fresh_trees, probability, .. } = self;
        vec![votes.to_string(), fresh_trees.to_string(), probability.to_string()]
    }

    fn claim(&self) -> String {
        let Self { verdict, fresh_trees, forests, trees, votes, confidence, probability, .. } =
            self;
        let seen = format!(
            "The {fresh_trees} trees of {forests} retrained forests vote {:.3} for this point on \
             average",
            votes / (*fresh_trees).max(1) as f64
        );
        if *verdict == Verdict::Vacuous {
            return format!("{seen}, which is too little to promise anything.");
        }
        format!(
            "{seen}: with confidence {confidence}, a forest of {trees} trees that is grown again on \
             the same rows keeps it valid with probability at least {} ({verdict}).",
            at_least(*probability)
        )
    }
}

impl Certifies for ForestTier {
    const HEADING: &'static str = "forest: P >=";
    const NUMBERS: &'static [&'static str] = &["votes", "trees", "probability"];

    fn applies(terms: &Terms) -> bool {
        terms.forest
    }

    fn prepare<'a>(subject: &Subject<'_, 'a>) -> Box<dyn Maker + 'a> {
        const NO_FOREST: LeftOut = LeftOut(
            "the score is not the mean of votes from 0 to 1: boosted trees depend on each other, \
             and raw scores have no bounds that are known before",
        );
        let voters = |model: &'a dyn Model| model.trees().and_then(TreeEnsemble::voters);
        let Some(own) = voters(subject.model) else { return Box::new(NO_FOREST) };
        let Some(retrained) = subject.retrained else {
            return Box::new(LeftOut("there are no retrained forests"));
        };
        let forests: Option<Vec<Voters<'a>>> =
            retrained.models.iter().map(|&m| voters(m)).collect();
        let Some(forests) = forests else {
            return Box::new(LeftOut("some of the retrained models are not forests"));
        };
        let trees = subject.model.trees().map(probes).unwrap_or_default();
        let confidence = subject.terms.confidence;
        let independent = independent(&own, &forests, &trees);
        let assumptions = vec![exchangeable(&retrained), unseen(&retrained), independent];
        Box::new(Prepared { own, forests, confidence, assumptions })
    }
}

struct Prepared<'a> {
    own: Voters<'a>,
    forests: Vec<Voters<'a>>,
    confidence: f64,
    assumptions: Vec<Assumption>,
}

impl Maker for Prepared<'_> {
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        let (x, confidence) = (at.point.row(0), self.confidence);
        let (mut own, mut fresh) = (Vec::new(), Vec::new());
        self.own.vote_into(x, &mut own);
        self.forests.iter().for_each(|forest| forest.vote_into(x, &mut fresh));
        let (counted, probability) = bound(&own, &fresh, confidence)?;
        let tier = ForestTier {
            verdict: Verdict::of(probability >= 0.5, &self.assumptions),
            fresh_trees: fresh.len(),
            forests: self.forests.len(),
            trees: own.len(),
            counted,
            votes: fresh.iter().sum(),
            confidence,
            probability,
            assumptions: self.assumptions.clone(),
        };
        Ok(Ok(tier.into()))
    }
}

// ------------------------------------------------------------------------------------ the bound

/// The bound for a forest of as many trees as `own`, whose votes choose how the fresh ones are
/// counted.
fn bound(own: &[f64], fresh: &[f64], confidence: f64) -> Result<(Counted, f64)> {
    let alpha = 1.0 - confidence;
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(Error::param("confidence", confidence, "a number between 0 and 1"));
    }
    let trees = own.len();
    let (tilt, stake, log_failure) = chosen(own, fresh.len(), alpha);
    let mut best = (Counted::Shares { tilt, stake }, -libm::expm1(trees as f64 * log_failure));
    // For whole votes levels are exact.
    if own.iter().all(|vote| *vote == 0.0 || *vote == 1.0) {
        best.1 = -1.0;
    }
    for levels in candidates(own) {
        // As many fresh votes of each level as the own ones suggest.
        let expected = |level: &f64| reached(own, *level) * fresh.len() / (trees + 1);
        let counts: Vec<usize> = levels.iter().map(expected).collect();
        let probability = by_levels(&levels, &counts, fresh.len(), trees, alpha)?;
        if probability > best.1 {
            best = (Counted::Levels { levels }, probability);
        }
    }
    let probability = match &best.0 {
        Counted::Levels { levels } => {
            let counts: Vec<usize> = levels.iter().map(|level| reached(fresh, *level)).collect();
            by_levels(levels, &counts, fresh.len(), trees, alpha)?
        }
        Counted::Shares { tilt, stake } => {
            let tilted: Vec<f64> = fresh.iter().map(|vote| tilted(*vote, *tilt)).collect();
            let log_failure = trees as f64 * log_tail(lower(&tilted, *stake, alpha), *tilt);
            -libm::expm1(log_failure)
        }
    };
    Ok((best.0, probability.clamp(0.0, 1.0)))
}

/// The votes that reach a level.
fn reached(votes: &[f64], level: f64) -> usize {
    votes.iter().filter(|vote| **vote >= level - ROUNDING).count()
}

/// `1/r` divides all levels for this many trees.
fn fineness(trees: usize) -> usize {
    FINEST.min(SUMS / trees.max(1)).max(16)
}

/// Sets of levels to choose from: quantiles of these votes.
fn candidates(own: &[f64]) -> Vec<Vec<f64>> {
    let fine = fineness(own.len());
    let mut sorted = own.to_vec();
    sorted.sort_by(f64::total_cmp);
    let units = |count: usize| -> Vec<usize> {
        let quantiles = (0..count).map(|k| sorted[k * sorted.len() / count]);
        let mut units: Vec<usize> =
            quantiles.map(|vote| (vote * fine as f64 + ROUNDING) as usize).collect();
        units.dedup();
        units.retain(|unit| *unit > 0);
        units
    };
    let mut sets: Vec<Vec<usize>> = LEVELS.iter().map(|count| units(*count)).collect();
    sets.dedup();
    sets.retain(|set| !set.is_empty());
    let level = |unit: &usize| *unit as f64 / fine as f64;
    sets.iter().map(|set| set.iter().map(level).collect()).collect()
}

/// The bound from the number of votes that reach each level.
fn by_levels(
    levels: &[f64],
    counts: &[usize],
    fresh: usize,
    trees: usize,
    alpha: f64,
) -> Result<f64> {
    let own_alpha = alpha / levels.len() as f64;
    let mut shares = Vec::with_capacity(levels.len());
    for count in counts {
        shares.push(Proportion::new(*count, fresh)?.lower(own_alpha)?);
    }
    // A forest that reaches a level also reaches all lower levels.
    for place in (1..shares.len()).rev() {
        shares[place - 1] = shares[place].max(shares[place - 1]);
    }
    Ok(kept(levels, &shares, trees))
}

/// `P( (G_1 + ... + G_N) / N > c )` for `P(G >= q_j) = p_j`.
fn kept(levels: &[f64], shares: &[f64], trees: usize) -> f64 {
    let next = shares.iter().skip(1).chain([&0.0]);
    let none = 1.0 - shares.first().copied().unwrap_or(0.0);
    let masses: Vec<(f64, f64)> = [(0.0, none)]
        .into_iter()
        .chain(levels.iter().zip(shares.iter().zip(next)).map(|(q, (p, above))| (*q, p - above)))
        .collect();
    if trees > EXACT {
        let log_tail = |k: i32| {
            let tilt = LEAST_TILT * libm::exp2(0.5 * f64::from(k));
            let mean: f64 = masses.iter().map(|(q, p)| p * libm::exp(-tilt * q)).sum();
            (tilt * MAJORITY + libm::log(mean)).min(0.0)
        };
        let least = (0..TILTS).map(log_tail).fold(0.0, f64::min);
        return -libm::expm1(trees as f64 * least);
    }
    let fine = if levels == [1.0] { 1 } else { fineness(trees) };
    let unit = |q: f64| (q * fine as f64).round() as usize;
    let most = levels.last().map_or(0, |q| unit(*q));
    let (mut sums, mut after) = (vec![0.0; trees * most + 1], vec![0.0; trees * most + 1]);
    sums[0] = 1.0;
    for tree in 0..trees {
        let end = tree * most + 1;
        after[..end + most].fill(0.0);
        for (q, p) in &masses {
            let to = &mut after[unit(*q)..][..end];
            to.iter_mut().zip(&sums[..end]).for_each(|(to, from)| *to += p * from);
        }
        std::mem::swap(&mut sums, &mut after);
    }
    let rejected = (MAJORITY * (trees * fine) as f64) as usize;
    sums.iter().skip(rejected + 1).sum::<f64>() * (1.0 - ROUNDING)
}

/// `Y`
fn tilted(vote: f64, tilt: f64) -> f64 {
    (libm::expm1(-tilt * vote) / libm::expm1(-tilt)).clamp(0.0, 1.0)
}

/// `ln( exp(t c) (1 - (1 - exp(-t)) l) )`, at most 0.
fn log_tail(expected: f64, tilt: f64) -> f64 {
    (tilt * MAJORITY + libm::log1p(libm::expm1(-tilt) * expected)).min(0.0)
}

/// `l`; 0 if even that is not shown.
fn lower(values: &[f64], stake: f64, alpha: f64) -> f64 {
    let limit = -libm::log(alpha) + ROUNDING;
    let log_capital =
        |m: f64| -> f64 { values.iter().map(|value| libm::log1p(stake * (value - m))).sum() };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if log_capital(middle) >= limit { low = middle } else { high = middle }
    }
    low
}

/// The tilt and the stake with the best bound to be expected, if the fresh votes are like these, and
/// the logarithm of what each tree adds to it.
///
/// With variance `v` of `Y` the bound is about `mean - ln(1/alpha) / (T b) - b v / 2`, which is
/// largest for `b = sqrt(2 ln(1/alpha) / (T v))`.
fn chosen(own: &[f64], fresh: usize, alpha: f64) -> (f64, f64, f64) {
    let (count, fresh) = (own.len() as f64, fresh.max(1) as f64);
    let need = -libm::log(alpha);
    let candidates = (0..TILTS).map(|k| {
        let tilt = LEAST_TILT * libm::exp2(0.5 * f64::from(k));
        let values = || own.iter().map(|vote| tilted(*vote, tilt));
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        // Few votes that agree do not show that all do.
        let variance = variance + 0.25 / (count * count);
        let stake = (2.0 * need / (fresh * variance)).sqrt().min(LARGEST_STAKE);
        let expected = mean - need / (fresh * stake) - 0.5 * stake * variance;
        (log_tail(expected.max(0.0), tilt), tilt, stake)
    });
    let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((LEAST_TILT, LARGEST_STAKE, 0.0), |(tail, tilt, stake)| (tilt, stake, tail))
}

// ---------------------------------------------------------------------------------- independence

/// The assumption that trees are independent, tested as far as it can be.
fn independent(own: &Voters<'_>, forests: &[Voters<'_>], probes: &[Vec<f32>]) -> Assumption {
    let sizes: Vec<usize> = forests.iter().map(Voters::count).collect();
    // Tree by tree, its votes at all probes.
    let mut votes = Vec::with_capacity(sizes.iter().sum::<usize>() * probes.len());
    for forest in forests {
        let mut of_forest = Vec::with_capacity(forest.count() * probes.len());
        probes.iter().for_each(|probe| forest.vote_into(probe, &mut of_forest));
        let at = |tree: usize| (0..probes.len()).map(move |probe| probe * forest.count() + tree);
        votes.extend((0..forest.count()).flat_map(|tree| at(tree).map(|place| of_forest[place])));
    }
    let p_value = (forests.len() > 1 && !probes.is_empty())
        .then(|| permutation_p_value(&votes, &sizes, probes.len(), Seed(0).derive("forests")));
    let standing = match p_value {
        Some(p) if p <= LEVEL => Standing::Broken,
        _ => Standing::Declared,
    };
    let (trees, forests) = (own.count(), forests.len());
    About::IndependentTrees { trees, forests, p_value }.standing(standing)
}

/// Points whose coordinates are thresholds of the trees, each drawn at random, or 0 without any.
fn probes(trees: &TreeEnsemble) -> Vec<Vec<f32>> {
    let mut rng = Seed(0).derive("probes").rng();
    let thresholds = trees.thresholds();
    let mut coordinate = |cuts: &[f32]| match cuts.len() {
        0 => 0.0,
        some => cuts[rng.random_range(0..some)],
    };
    let mut probe = || thresholds.columns().iter().map(|cells| coordinate(cells.cuts())).collect();
    (0..PROBES).map(|_| probe()).collect()
}

/// The share of deals in which forests differ at least as much as these, this one included.
///
/// They differ by `sum over probes and forests of n_f (mean of f - mean of all)^2`. If trees are
/// exchangeable, all deals of them to the forests are equally likely, and the p-value is at most `q`
/// with a probability of at most `q`.
fn permutation_p_value(votes: &[f64], sizes: &[usize], probes: usize, seed: Seed) -> f64 {
    let count: usize = sizes.iter().sum();
    let mut mean = vec![0.0; probes];
    for tree in votes.chunks_exact(probes) {
        mean.iter_mut().zip(tree).for_each(|(sum, vote)| *sum += vote / count as f64);
    }
    let mut sums = vec![0.0; probes];
    let mut differ = |order: &[usize]| -> f64 {
        let (mut start, mut total) = (0, 0.0);
        for &size in sizes {
            sums.fill(0.0);
            for &tree in &order[start..start + size] {
                let own = &votes[tree * probes..][..probes];
                for ((sum, vote), mean) in sums.iter_mut().zip(own).zip(&mean) {
                    *sum += vote - mean;
                }
            }
            total += sums.iter().map(|sum| sum * sum).sum::<f64>() / size.max(1) as f64;
            start += size;
        }
        total
    };
    let mut order: Vec<usize> = (0..count).collect();
    // Sums in another order differ by their rounding only.
    let seen = differ(&order) * (1.0 - 1e-9);
    let mut rng = seed.rng();
    let as_much = (0..PERMUTATIONS).filter(|_| {
        order.shuffle(&mut rng);
        differ(&order) >= seen
    });
    (as_much.count() + 1) as f64 / (PERMUTATIONS + 1) as f64
}

#[cfg(test)]
mod tests;
