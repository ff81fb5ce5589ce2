//! The observed differences between an ensemble's members and their base.

use serde::Serialize;

use super::Ensemble;
use crate::error::{Error, Result};
use crate::model::THRESHOLD;
use crate::points::Points;

/// The effect of a change on the scores of some points `x_1 .. x_n`, over members `M_1 .. M_p`.
///
/// Definition 2 of the paper asks for `E[M(x)] = m(x)` and `Var[M(x)] <= nu` on the data. Its Lemma
/// 1 concludes `E[1/n sum_i |M(x_i) - m(x_i)|] <= sqrt(nu)`. Retraining may violate the definition:
/// then `bias` is not zero, and the lemma's left side may be larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObservedChange {
    /// `p`
    pub models: usize,
    /// `n`
    pub points: usize,
    /// `1/(p n) sum_j sum_i |M_j(x_i) - m(x_i)|`: the left side of the lemma.
    pub mean_change: f64,
    /// `1/n sum_i |mean_j M_j(x_i) - m(x_i)|`: zero by the definition, up to the error of a mean
    /// over `p` members.
    pub bias: f64,
    /// The share of pairs of member and point whose decision differs from the base's.
    pub flipped: f64,
    /// `nu_x`, the unbiased variance of `M_j(x)` over the members, point by point.
    pub variances: Vec<f64>,
}

impl ObservedChange {
    /// `nu`, the largest of the variances.
    pub fn largest_variance(&self) -> f64 {
        self.variances.iter().copied().fold(0.0, f64::max)
    }

    /// `1/n sum_i nu_{x_i}`: the mean variance.
    pub fn mean_variance(&self) -> f64 {
        self.variances.iter().sum::<f64>() / self.variances.len().max(1) as f64
    }

    /// `sqrt(nu)`, the right side of Lemma 1.
    pub fn lemma_bound(&self) -> f64 {
        self.largest_variance().sqrt()
    }

    /// Whether the observed means satisfy Lemma 1.
    pub fn lemma_holds(&self) -> bool {
        self.mean_change <= self.lemma_bound()
    }
}

impl Ensemble {
    /// How much the members changed on the given points. A variance needs two members.
    pub fn observed_change(&self, points: &Points) -> Result<ObservedChange> {
        if points.dim() != self.base.dim() {
            return Err(Error::Dimension {
                what: "coordinates of the points to observe".into(),
                expected: self.base.dim(),
                got: points.dim(),
            });
        }
        let at_least = |name, got: usize, least: usize| {
            if got < least {
                return Err(Error::param(name, got, format!("at least {least}")));
            }
            Ok(())
        };
        at_least("models", self.members.len(), 2)?;
        at_least("points", points.len(), 1)?;
        let models = self.members.len() as f64;
        let base = self.base.score(points);
        // Sums over the members of M - m and of its square, point by point: the difference is
        // small, so its square loses nothing that its variance needs.
        let mut sums = vec![0.0_f64; points.len()];
        let mut squares = vec![0.0_f64; points.len()];
        let (mut distance, mut flips) = (0.0, 0_usize);
        for member in &self.members {
            let scores = member.score(points);
            for (point, (&score, &before)) in scores.iter().zip(&base).enumerate() {
                let difference = f64::from(score) - f64::from(before);
                sums[point] += difference;
                squares[point] += difference * difference;
                distance += difference.abs();
                flips += usize::from((score >= THRESHOLD) != (before >= THRESHOLD));
            }
        }
        let pairs = models * points.len() as f64;
        let variances = sums
            .iter()
            .zip(&squares)
            .map(|(sum, square)| ((square - sum * sum / models) / (models - 1.0)).max(0.0))
            .collect();
        Ok(ObservedChange {
            models: self.members.len(),
            points: points.len(),
            mean_change: distance / pairs,
            bias: sums.iter().map(|sum| sum.abs()).sum::<f64>() / pairs,
            flipped: flips as f64 / pairs,
            variances,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ModelChange, Reinitialise};
    use crate::model::{Mlp, TrainParams};
    use crate::seed::Seed;

    /// `m(x) = sigmoid(slope x + logit)`
    fn model(slope: f32, logit: f32) -> Mlp {
        Mlp::linear(vec![slope], logit).unwrap()
    }

    fn ensemble(base: Mlp, members: Vec<Mlp>) -> Ensemble {
        let change = ModelChange::Reinitialise(Reinitialise {});
        Ensemble::of_networks(base, members, change, Seed(0), TrainParams::default()).unwrap()
    }

    fn points() -> Points {
        Points::from_rows(1, vec![-2.0, 0.5, 3.0]).unwrap()
    }

    #[test]
    fn members_that_are_the_base_have_not_changed() {
        let observed = ensemble(model(1.0, 0.3), vec![model(1.0, 0.3); 4]);
        let observed = observed.observed_change(&points()).unwrap();
        assert_eq!((observed.models, observed.points), (4, 3));
        assert_eq!((observed.mean_change, observed.bias, observed.flipped), (0.0, 0.0, 0.0));
        assert_eq!(observed.variances, [0.0; 3]);
        assert!(observed.lemma_holds());
    }

    #[test]
    fn members_that_always_disagree_break_the_lemma() {
        let observed = ensemble(model(0.0, 100.0), vec![model(0.0, -100.0); 2]);
        let observed = observed.observed_change(&points()).unwrap();
        assert_eq!((observed.mean_change, observed.bias, observed.flipped), (1.0, 1.0, 1.0));
        // All members alike, so no variance, though nothing is as it was: all of it is bias.
        assert_eq!(observed.largest_variance(), 0.0);
        assert!(!observed.lemma_holds());
    }

    #[test]
    fn every_number_follows_its_formula() {
        let members = [model(1.0, 0.1), model(1.5, -0.4), model(-0.2, 0.9)];
        let ensemble = ensemble(model(1.1, 0.0), members.to_vec());
        let observed = ensemble.observed_change(&points()).unwrap();
        let score = |slope: f64, logit: f64, x: f64| 1.0 / (1.0 + (-slope * x - logit).exp());
        let (mut change, mut bias, mut flipped) = (0.0, 0.0, 0.0);
        for (x, got) in [-2.0, 0.5, 3.0].into_iter().zip(&observed.variances) {
            let base = score(1.1, 0.0, x);
            let all = [score(1.0, 0.1, x), score(1.5, -0.4, x), score(-0.2, 0.9, x)];
            let mean = all.iter().sum::<f64>() / 3.0;
            let variance = all.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 2.0;
            assert!((got - variance).abs() < 1e-6, "{got} {variance}");
            change += all.iter().map(|m| (m - base).abs()).sum::<f64>() / 9.0;
            bias += (mean - base).abs() / 3.0;
            flipped += all.iter().filter(|m| (**m >= 0.5) != (base >= 0.5)).count() as f64 / 9.0;
        }
        assert!((observed.mean_change - change).abs() < 1e-6);
        assert!((observed.bias - bias).abs() < 1e-6);
        assert_eq!(observed.flipped, flipped);
        assert!(flipped > 0.0 && flipped < 1.0);
        let largest = observed.variances.iter().copied().fold(0.0, f64::max);
        assert_eq!(observed.lemma_bound(), largest.sqrt());
        let mean = observed.variances.iter().sum::<f64>() / 3.0;
        assert_eq!(observed.mean_variance(), mean);
        assert!(mean > 0.0 && mean < largest);
    }

    #[test]
    fn what_cannot_be_observed_is_refused() {
        let alone = ensemble(model(1.0, 0.0), vec![model(1.0, 0.1)]);
        let two = ensemble(model(1.0, 0.0), vec![model(1.0, 0.1); 2]);
        for (ensemble, points, expected) in [
            (&alone, points(), "parameter `models` is 1, expected at least 2"),
            (&two, Points::new(1), "parameter `points` is 0, expected at least 1"),
            (&two, Points::zeros(3, 2), "coordinates of the points to observe: expected 1, got 2"),
        ] {
            assert_eq!(ensemble.observed_change(&points).unwrap_err().to_string(), expected);
        }
    }
}
