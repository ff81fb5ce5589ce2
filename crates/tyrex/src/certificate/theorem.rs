//! The theorem tier: the paper's Theorem 1, in the form that its proof supports.
//!
//! With draws `x_i = x + n_i` of width `sigma`, `R = 1/k sum_i (m(x_i) - gamma ||n_i||)`,
//! `Z = 1/k sum_i (m(x_i) - M(x_i))` and `G = gamma_m + gamma`:
//!
//! | `eps'` | `P( M(x) >= R - eps )` is at least | |
//! |---|---|---|
//! | unknown | `1 - exp( -k eps^2 / (8 G^2 sigma^2) )` | the paper, assuming `eps > 2 eps'` |
//! | given | `1 - exp( -k (eps - eps')^2 / (2 G^2 sigma^2) )` | the proof, before it is simplified |
//! | measured | `1 - j/(n+1)` for `eps = eps'` | free of distributions |
//!
//! **The proof.** `M` has slope at most `gamma`, so `M(x) >= M(x_i) - gamma ||n_i||`; on average
//! `M(x) >= R - Z`. Given `M`, `Z` is a function of the draws with slope `G / sqrt(k)`, so it
//! exceeds `E[Z | M]` by `t` with probability at most `exp(-k t^2 / (2 G^2 sigma^2))`; and `eps'`
//! bounds `|E[Z | M]|`. The paper puts `t = eps - eps' >= eps/2`. Keeping `eps - eps'` is never
//! worse and holds for every `eps > eps'`.
//!
//! **Measured.** `eps'` holds all the risk of a changed model; the assumption `E[M(x)] = m(x)`
//! would remove most of it. Let `M_1 .. M_n` be retrained models that are exchangeable with `M`,
//! and `Z_j` their `Z` on the *same* draws, which come from a seed and are independent of the
//! models. Then `|Z_1| .. |Z_n|, |Z|` are exchangeable, so `|Z|` exceeds the `j`-th largest of the
//! `n` with probability at most `j/(n+1)`. Let `eps'` be that `j`-th largest. Except with this
//! probability, `M(x) >= R - Z >= R - eps'`. This covers bias, since it assumes nothing about it.
//! No exponential is added: it bounds the distance of `Z` from its mean, and here `Z` itself was
//! measured. For the same reason `gamma_m` does not occur.
//!
//! The slope `gamma` of a future model is also needed. If the user gives it, it is an assumption.
//! Otherwise `R` uses `gamma = gamma_m`, which is known, with a penalty for steeper models:
//! `gamma_j` is computed for every `M_j`, and `|Z_j| + max(0, gamma_j - gamma) mean ||n_i||` takes
//! the place of `|Z_j|` above. Without measured shifts, the largest slope among the given models is
//! an estimate.
//!
//! `1 - j/(n+1)` is a probability over the retrained models and the new one together. In the other
//! direction, from a given `eps` (`R - 0.5` to stay valid) to a probability, `j` would depend on
//! the models, so the tier uses Clopper and Pearson's bound on the share of models that exceed
//! `eps`, which holds with the stated confidence.
//!
//! **Local slopes.** Gaussian draws are unbounded, and a slope on a ball or box does not apply to
//! draws outside it. With local slopes the draws are Gaussian with every coordinate cut off at
//! `2 sigma` and the region has to contain that box. The cut does not weaken the bound: the
//! distribution has a density `exp(-V)` on a convex set with `V'' >= 1/sigma^2`, so it is the image
//! of the Gaussian under a map of slope at most 1 (Caffarelli), and the same exponential holds.
//!
//! **The choice of `sigma`.** `R <= m(x)` whenever `gamma >= gamma_m`, and the smaller `sigma`, the
//! nearer `R` comes to `m(x)` and the smaller is the exponential: by these terms alone the best
//! `sigma` is 0, where `eps'` is the change of the score at `x` itself. So the deciding number is
//! `eps'`. The best `sigma` of a grid is found on draws of its own and without the retrained
//! models, since a choice that depends on them would invalidate the probability.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::assumption::{About, Assumption, Standing, Verdict, computed, given};
use super::terms::{ShiftSource, SlopeSource, TheoremTerms};
use super::{
    At, Certifies, Maker, NOT_ASKED_FOR, Retrained, Says, Subject, Tier, at_least, ensemble,
    rounded_down,
};
use crate::error::{Error, Result};
use crate::lipschitz::{LipschitzBound, Region, Soundness, local, sampled_gradients, spectral};
use crate::measure::{Gauge, Mean, Neighbourhood, Sampling};
use crate::model::Model;
use crate::points::Points;
use crate::seed::Seed;
use crate::statistics::Proportion;

/// The widths tried when none is given.
const SIGMAS: [f64; 6] = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001];

/// Where [`Sampling::TruncatedGaussian`] cuts, in units of `sigma`.
const CUT: f64 = 2.0;

/// `M(x) >= at_least` with at least this probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Statement {
    /// The lower bound on `M(x)`.
    pub at_least: f64,
    /// The probability with which it holds.
    pub probability: f64,
    /// The confidence of that probability, if it was inferred from retrained models.
    pub confidence: Option<f64>,
}

/// The result of the tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TheoremTier {
    /// Vacuous if the lower bound is below 0.5.
    pub verdict: Verdict,
    /// The largest lower bound that holds with the requested probability.
    pub bound: Statement,
    /// The probability of `M(x) >= R - eps`, if `eps` was given.
    pub at_epsilon: Option<Statement>,
    /// The probability of `M(x) >= 0.5`.
    pub validity: Statement,
    /// `R`
    pub stability: f64,
    /// The `gamma` in `R`.
    pub gamma: f64,
    /// `sigma`, given or chosen.
    pub sigma: f64,
    /// How the draws were made.
    pub sampling: Sampling,
    /// `eps'`, if there is a number.
    pub shift: Option<f64>,
    /// The rank of `eps'` among the measured shifts, largest first; `None` if there are too few
    /// models for the requested probability.
    pub rank: Option<usize>,
    /// The assumptions.
    pub assumptions: Vec<Assumption>,
}

impl Says for TheoremTier {
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    fn brief(&self) -> String {
        let Statement { at_least, probability, .. } = self.bound;
        let (at_least, probability) = (rounded_down(at_least, 2), rounded_down(probability, 2));
        format!("{}: {at_least} with {probability}", self.verdict)
    }

    fn numbers(&self) -> Vec<String> {
        vec![self.bound.at_least.to_string(), self.bound.probability.to_string()]
    }

    fn claim(&self) -> String {
        let Self { verdict, bound, validity, .. } = self;
        if *verdict == Verdict::Vacuous && bound.probability == 1.0 {
            return "The theorem promises nothing: there are too few retrained models for the \
                    probability asked for."
                .to_owned();
        }
        if *verdict == Verdict::Vacuous {
            return format!(
                "The theorem promises nothing for this point: of a changed model's score it only \
                 says that it is at least {} with probability {}.",
                at_least(bound.at_least),
                at_least(bound.probability)
            );
        }
        if self.assumptions.iter().any(|assumption| assumption.standing == Standing::Unknown) {
            return format!(
                "Assuming that changed models score around this point as the model does, which \
                 was not measured, a changed model scores it at least {} with probability at \
                 least {} ({verdict}).",
                at_least(bound.at_least),
                at_least(bound.probability)
            );
        }
        let confidence =
            validity.confidence.map(|c| format!(" at confidence {c}")).unwrap_or_default();
        format!(
            "A changed model scores this point at least {} with probability at least {}, and at \
             least 0.5 with probability at least {}{confidence} ({verdict}).",
            at_least(bound.at_least),
            at_least(bound.probability),
            at_least(validity.probability)
        )
    }
}

impl Certifies for TheoremTier {
    const HEADING: &'static str = "theorem: M(x) >=";
    const NUMBERS: &'static [&'static str] = &["at_least", "probability"];

    fn prepare<'a>(subject: &Subject<'_, 'a>) -> Box<dyn Maker + 'a> {
        let &Subject { model, retrained, terms } = subject;
        let Some(theorem) = &terms.theorem else { return Box::new(NOT_ASKED_FOR) };
        let models = retrained.map_or(&[][..], |retrained| retrained.models);
        Box::new(Prepared {
            global: global_slopes(theorem.slope, model, models),
            terms: theorem.clone(),
            probability: terms.probability,
            confidence: terms.confidence,
            model,
            retrained,
        })
    }
}

struct Prepared<'a> {
    terms: TheoremTerms,
    probability: f64,
    confidence: f64,
    model: &'a dyn Model,
    retrained: Option<Retrained<'a>>,
    global: Vec<Option<LipschitzBound>>,
}

impl Maker for Prepared<'_> {
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        let theorem = Theorem {
            terms: &self.terms,
            probability: self.probability,
            confidence: self.confidence,
            model: self.model,
            retrained: self.retrained.as_ref(),
            global: &self.global,
            point: at.point,
            seed: at.seed,
        };
        match theorem.obstacle() {
            Some(reason) => Ok(Err(reason)),
            None => theorem.certify().map(|tier| Ok(tier.into())),
        }
    }
}

/// The theorem at one point.
struct Theorem<'a> {
    terms: &'a TheoremTerms,
    probability: f64,
    confidence: f64,
    model: &'a dyn Model,
    retrained: Option<&'a Retrained<'a>>,
    /// The result of [`global_slopes`].
    global: &'a [Option<LipschitzBound>],
    point: &'a Points,
    seed: Seed,
}

/// The global slopes of the model, then of the retrained models. They are slow to compute and the
/// same for every point. `None` if the terms ask for other slopes.
fn global_slopes(
    slope: SlopeSource,
    model: &dyn Model,
    retrained: &[&dyn Model],
) -> Vec<Option<LipschitzBound>> {
    if slope != SlopeSource::Spectral {
        return Vec::new();
    }
    let all: Vec<&dyn Model> = std::iter::once(model).chain(retrained.iter().copied()).collect();
    all.par_iter().map(|model| model.network().map(spectral)).collect()
}

/// One set of draws, and the model's scores and slope there.
struct View {
    cloud: Neighbourhood,
    gamma_m: LipschitzBound,
    gamma: LipschitzBound,
    /// `1/k sum_i m(x_i)`
    mean: f64,
    stability: f64,
}

/// How an `eps` becomes a probability.
enum Tail {
    /// `exp( -k (eps - shift)^2 / (divisor G^2 sigma^2) )`
    Gaussian { shift: f64, divisor: f64, scale: f64, samples: f64 },
    /// The measured shifts, largest first.
    Measured(Vec<f64>),
}

impl Theorem<'_> {
    /// The reason why the theorem does not apply to this model, if any.
    fn obstacle(&self) -> Option<String> {
        let has_slope = |model: &dyn Model| match self.terms.slope {
            SlopeSource::Spectral | SlopeSource::Local => model.network().is_some(),
            SlopeSource::SampledGradients => model.differentiable().is_some(),
            SlopeSource::Given { .. } => true,
        };
        if !has_slope(self.model) {
            return Some("no slope is known of a model that is not a network".to_owned());
        }
        let is_missing = self.models().iter().any(|&model| !has_slope(model));
        is_missing.then(|| "no slope is known of some retrained models".to_owned())
    }

    fn certify(&self) -> Result<TheoremTier> {
        self.check()?;
        let sigma = match self.terms.sigma {
            Some(sigma) => sigma,
            None => self.choose_sigma()?,
        };
        let view = self.look(sigma, self.seed.derive("theorem"))?;
        let (tail, assumptions) = self.tail(&view)?;
        let (bound, shift, rank) = self.bound(&view, &tail);
        let says = |epsilon: f64| self.statement(&view, &tail, epsilon);
        Ok(TheoremTier {
            verdict: Verdict::of(bound.at_least >= 0.5, &assumptions),
            bound,
            at_epsilon: self.terms.epsilon.map(says).transpose()?,
            validity: Statement { at_least: 0.5, ..says(view.stability - 0.5)? },
            stability: view.stability,
            gamma: view.gamma.value,
            sigma,
            sampling: self.sampling(),
            shift,
            rank,
            assumptions,
        })
    }

    fn check(&self) -> Result<()> {
        let is_number = |value: f64| value >= 0.0 && value.is_finite();
        if let Some(epsilon) = self.terms.epsilon.filter(|&epsilon| !is_number(epsilon)) {
            return Err(Error::param("epsilon", epsilon, "a number of at least 0"));
        }
        if let ShiftSource::Given { epsilon } = self.terms.shift
            && !is_number(epsilon)
        {
            return Err(Error::param("shift", epsilon, "a number of at least 0"));
        }
        if let SlopeSource::Given { model, changed } = self.terms.slope {
            for bound in [model, changed] {
                if !is_number(bound.value) {
                    return Err(Error::param("gamma", bound.value, "a number of at least 0"));
                }
            }
        }
        match self.terms.sigma {
            Some(sigma) if !self.fits(sigma) => Err(Error::param(
                "sigma",
                sigma,
                "a width whose draws, cut off at 2 sigma, stay where the slopes hold",
            )),
            _ => Ok(()),
        }
    }

    fn models(&self) -> &[&dyn Model] {
        self.retrained.map_or(&[], |retrained| retrained.models)
    }

    /// Number 0 is the model, the others are the retrained ones.
    fn model(&self, index: usize) -> &dyn Model {
        index
            .checked_sub(1)
            .and_then(|index| self.models().get(index))
            .copied()
            .unwrap_or(self.model)
    }

    fn is_measured(&self) -> bool {
        self.terms.shift == ShiftSource::Measured && !self.models().is_empty()
    }

    /// Whether the slopes hold only near the point.
    fn is_local(&self) -> bool {
        match self.terms.slope {
            SlopeSource::Spectral => false,
            SlopeSource::Local | SlopeSource::SampledGradients => true,
            SlopeSource::Given { model, changed } => {
                [model, changed].iter().any(|bound| bound.region != Region::Global)
            }
        }
    }

    /// Whether given slopes cover all draws of this width; computed ones always do.
    fn fits(&self, sigma: f64) -> bool {
        let SlopeSource::Given { model, changed } = self.terms.slope else { return true };
        let side = CUT * sigma * (1.0 + 1e-6);
        [model, changed].iter().all(|bound| match bound.region {
            Region::Global => true,
            Region::Box { radius } => side <= radius,
            Region::Ball { radius } => side * (self.point.dim() as f64).sqrt() <= radius,
        })
    }

    /// The width of the grid with the best bound, on draws of its own.
    fn choose_sigma(&self) -> Result<f64> {
        let mut best: Option<(f64, f64)> = None;
        for (index, sigma) in SIGMAS.into_iter().enumerate().filter(|(_, sigma)| self.fits(*sigma))
        {
            let view = self.look(sigma, self.seed.derive("pilot").index(index))?;
            // The measured shifts must not influence the choice.
            let epsilon = if self.is_measured() {
                0.0
            } else {
                self.gaussian(&view).epsilon(1.0 - self.probability)
            };
            let bound = view.stability - epsilon;
            if best.is_none_or(|(largest, _)| bound > largest) {
                best = Some((bound, sigma));
            }
        }
        best.map(|(_, sigma)| sigma).ok_or_else(|| {
            let least = SIGMAS[SIGMAS.len() - 1];
            Error::param(
                "slope",
                "known in too small a region",
                format!("a region that holds draws of width {least}, cut off at twice that"),
            )
        })
    }

    /// A local slope holds on a ball, so the draws must stay in it.
    fn sampling(&self) -> Sampling {
        if self.is_local() { Sampling::TruncatedGaussian } else { Sampling::MonteCarlo }
    }

    /// Draws of width `sigma`, and the model on them.
    fn look(&self, sigma: f64, seed: Seed) -> Result<View> {
        let dim = self.point.dim();
        let cloud = Neighbourhood::draw(self.sampling(), dim, self.terms.samples, sigma, seed)?;
        let (gamma_m, gamma) = if let SlopeSource::Given { model, changed } = self.terms.slope {
            (model, changed)
        } else {
            let own = self.slope(0, &cloud)?;
            // Measured shifts include the slope of each model.
            let others = if self.is_measured() { 0 } else { self.models().len() };
            let mut largest = own;
            for index in 1..=others {
                largest.value = largest.value.max(self.slope(index, &cloud)?.value);
            }
            (own, largest)
        };
        let mean = self.mean(0, &cloud)?;
        let stability = mean - gamma.value * cloud.mean_distance();
        Ok(View { cloud, gamma_m, gamma, mean, stability })
    }

    /// `1/k sum_i m(x_i)`
    fn mean(&self, index: usize, cloud: &Neighbourhood) -> Result<f64> {
        let mean = Gauge::new(Mean {}, self.model(index), cloud)?.read(self.point)[0].value;
        super::check_score(mean)
    }

    /// The slope of one model on the draws.
    fn slope(&self, index: usize, cloud: &Neighbourhood) -> Result<LipschitzBound> {
        let (x, model) = (self.point.row(0), self.model(index));
        let unknown = || Error::InvalidModel("no slope is known of this model".into());
        let mut bound = match self.terms.slope {
            SlopeSource::Spectral => {
                self.global.get(index).copied().flatten().ok_or_else(unknown)?
            }
            SlopeSource::Local => {
                // The box of the draws, widened by the rounding of single precision.
                let largest = x.iter().fold(0.0_f64, |most, &v| most.max(f64::from(v).abs()));
                let radius = CUT * cloud.sigma() * (1.0 + 1e-6) + 1e-6 * largest;
                local(model.network().ok_or_else(unknown)?, x, Region::Box { radius })?
            }
            SlopeSource::SampledGradients => {
                sampled_gradients(model.differentiable().ok_or_else(unknown)?, x, cloud)
            }
            SlopeSource::Given { changed, .. } => changed,
        };
        // The slope of huge weights overflows; nothing is claimed then.
        bound.value = bound.value.min(1e300);
        Ok(bound)
    }

    /// How `eps` becomes a probability, with the assumptions of that.
    fn tail(&self, view: &View) -> Result<(Tail, Vec<Assumption>)> {
        let is_given = matches!(self.terms.slope, SlopeSource::Given { .. });
        let standing = if is_given { given } else { computed };
        let sigma = view.cloud.sigma();
        if let Some(retrained) = self.retrained.filter(|_| self.is_measured()) {
            let (shifts, steepest) = self.shifts(view)?;
            let own = match standing(steepest) {
                // The measured shifts include the slope of every model.
                Standing::Proved => Standing::Measured,
                other => other,
            };
            let assumptions = vec![
                ensemble::exchangeable(retrained),
                ensemble::unseen(retrained),
                About::ChangedSlope { gamma: steepest }.standing(own),
            ];
            return Ok((Tail::Measured(shifts), assumptions));
        }
        // The slopes of the given models do not bound those of others.
        let changed = if is_given { given(view.gamma) } else { Standing::Estimated };
        let shift = match self.terms.shift {
            ShiftSource::Given { epsilon } => {
                About::Shift { epsilon: Some(epsilon), sigma }.standing(Standing::Declared)
            }
            ShiftSource::Measured | ShiftSource::Unknown => {
                About::Shift { epsilon: None, sigma }.standing(Standing::Unknown)
            }
        };
        let assumptions = vec![
            About::ModelSlope { gamma: view.gamma_m }.standing(standing(view.gamma_m)),
            About::ChangedSlope { gamma: view.gamma }.standing(changed),
            shift,
        ];
        Ok((self.gaussian(view), assumptions))
    }

    fn gaussian(&self, view: &View) -> Tail {
        let (shift, divisor) = match self.terms.shift {
            ShiftSource::Given { epsilon } => (epsilon, 2.0),
            ShiftSource::Measured | ShiftSource::Unknown => (0.0, 8.0),
        };
        let scale = (view.gamma_m.value + view.gamma.value) * view.cloud.sigma();
        Tail::Gaussian { shift, divisor, scale, samples: view.cloud.samples() as f64 }
    }

    /// `|Z_j| + max(0, gamma_j - gamma) mean ||n_i||` of every retrained model, largest first,
    /// and the largest slope among them.
    fn shifts(&self, view: &View) -> Result<(Vec<f64>, LipschitzBound)> {
        let mut steepest = LipschitzBound { soundness: Soundness::Sound, ..view.gamma };
        let measured: Vec<(f64, LipschitzBound)> = (1..=self.models().len())
            .into_par_iter()
            .map(|index| Ok((self.mean(index, &view.cloud)?, self.slope(index, &view.cloud)?)))
            .collect::<Result<_>>()?;
        let mut shifts = Vec::with_capacity(measured.len());
        for (mean, slope) in measured {
            steepest.value = steepest.value.max(slope.value);
            steepest.soundness = steepest.soundness.min(slope.soundness);
            let excess = (slope.value - view.gamma.value).max(0.0) * view.cloud.mean_distance();
            shifts.push((view.mean - mean).abs() + excess);
        }
        shifts.sort_by(|a, b| b.total_cmp(a));
        Ok((shifts, steepest))
    }

    /// The largest lower bound with the requested probability, its `eps'` and its rank.
    fn bound(&self, view: &View, tail: &Tail) -> (Statement, Option<f64>, Option<usize>) {
        let failure = 1.0 - self.probability;
        match tail {
            Tail::Gaussian { shift, .. } => {
                let at_least = inside(view.stability - tail.epsilon(failure));
                let shift = matches!(self.terms.shift, ShiftSource::Given { .. }).then_some(*shift);
                let probability = self.probability;
                (Statement { at_least, probability, confidence: None }, shift, None)
            }
            Tail::Measured(shifts) => {
                let places = (shifts.len() + 1) as f64;
                // The tolerance is for products that should be integers, like 0.1 times 10.
                let rank = ((failure * places + 1e-9) as usize).min(shifts.len());
                let Some(&shift) = rank.checked_sub(1).and_then(|index| shifts.get(index)) else {
                    // Too few models: the only certain bound is that a score is not negative.
                    let nothing = Statement { at_least: 0.0, probability: 1.0, confidence: None };
                    return (nothing, None, None);
                };
                let at_least = inside(view.stability - shift);
                let probability = 1.0 - rank as f64 / places;
                (Statement { at_least, probability, confidence: None }, Some(shift), Some(rank))
            }
        }
    }

    /// The probability of `M(x) >= R - eps`.
    fn statement(&self, view: &View, tail: &Tail, epsilon: f64) -> Result<Statement> {
        let at_least = inside(view.stability - epsilon);
        match tail {
            Tail::Gaussian { .. } => {
                let probability = 1.0 - tail.failure(epsilon);
                Ok(Statement { at_least, probability, confidence: None })
            }
            Tail::Measured(shifts) => {
                let exceeding = shifts.iter().filter(|&&shift| shift > epsilon).count();
                let share = Proportion::new(exceeding, shifts.len())?;
                let probability = 1.0 - share.upper(1.0 - self.confidence)?;
                Ok(Statement { at_least, probability, confidence: Some(self.confidence) })
            }
        }
    }
}

impl Tail {
    /// An upper bound on the probability of `Z >= eps`; 1 for measured shifts.
    fn failure(&self, epsilon: f64) -> f64 {
        let &Self::Gaussian { shift, divisor, scale, samples } = self else { return 1.0 };
        let t = epsilon - shift;
        if t <= 0.0 {
            return 1.0;
        }
        let ratio = t / scale;
        libm::exp(-samples * ratio * ratio / divisor)
    }

    /// The `eps` with that probability of failure.
    fn epsilon(&self, failure: f64) -> f64 {
        let &Self::Gaussian { shift, divisor, scale, samples } = self else { return 0.0 };
        shift + scale * (-divisor * libm::log(failure) / samples).sqrt()
    }
}

/// Clips a bound on a score to [0, 1].
fn inside(bound: f64) -> f64 {
    bound.clamp(0.0, 1.0)
}
