//! The catalogue of samplings: each has a file and a line in the list below.

mod antithetic;
mod monte_carlo;
mod orthogonal;
mod sobol;
mod truncated_gaussian;
mod uniform_ball;

use rand_distr::{Distribution as _, StandardNormal};

use crate::catalogue::plain_catalogue;
use crate::error::Result;
use crate::seed::Rng;

plain_catalogue! {
    /// How offsets are drawn. All but the last two have the distribution `N(0, sigma^2 I)`, one by
    /// one; they differ in how evenly they cover it jointly.
    #[derive(Default)]
    Sampling by Draw {
        /// Independent draws: the paper.
        #[default]
        monte_carlo::MonteCarlo,
        /// Pairs `n, -n`: odd terms of the offset cancel.
        antithetic::Antithetic,
        /// Pairs `n, -n` whose directions are orthogonal, `d` at a time, with lengths drawn
        /// independently from the chi distribution.
        orthogonal::Orthogonal,
        /// Owen-scrambled Sobol points through the normal quantile. With a rotation
        /// ([`Neighbourhood::rotated`](super::Neighbourhood::rotated)) its best coordinates lie
        /// along the steepest directions of the model.
        sobol::Sobol,
        /// Independent draws, each coordinate conditioned on `|n_j| <= 2 sigma`: bounded, hence
        /// sub-Gaussian, as in the paper's remark on other distributions.
        truncated_gaussian::TruncatedGaussian,
        /// Uniform in the ball whose coordinates have standard deviation `sigma`, that is of
        /// radius `sigma sqrt(d + 2)`.
        uniform_ball::UniformBall,
    }
}

/// The description of a sampling, implemented in its own file.
trait Draw {
    /// At least `samples` offsets of `dim` coordinates, one after the other, whose coordinates
    /// have standard deviation 1.
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>>;

    /// The maximum number of coordinates.
    fn most_coordinates(&self) -> usize {
        usize::MAX
    }

    /// Whether its first coordinates cover better than the others, so that rotation matters.
    fn has_best_coordinates(&self) -> bool {
        false
    }
}

impl Sampling {
    /// The maximum number of coordinates of such offsets.
    pub(crate) fn most_coordinates(self) -> usize {
        self.kind().most_coordinates()
    }

    /// The same, or orthogonal offsets if there are too many coordinates for it.
    pub(crate) fn for_coordinates(self, dim: usize) -> Self {
        if dim > self.most_coordinates() { Self::Orthogonal } else { self }
    }

    pub(super) fn has_best_coordinates(self) -> bool {
        self.kind().has_best_coordinates()
    }

    pub(super) fn units(self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        self.kind().units(dim, samples, rng)
    }
}

fn independent(dim: usize, samples: usize, rng: &mut Rng) -> Vec<f64> {
    (0..samples * dim).map(|_| StandardNormal.sample(rng)).collect()
}

/// Each offset followed by its negative.
fn mirrored(units: &[f64], dim: usize) -> Vec<f64> {
    units
        .chunks_exact(dim)
        .flat_map(|unit| unit.iter().copied().chain(unit.iter().map(|value| -value)))
        .collect()
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn every_way_is_named_alike_in_files_and_draws_what_it_says() {
        let names = Sampling::ALL.map(Sampling::name);
        assert_eq!(
            names,
            [
                "monte-carlo",
                "antithetic",
                "orthogonal",
                "sobol",
                "truncated-gaussian",
                "uniform-ball"
            ]
        );
        for sampling in Sampling::ALL {
            let written = serde_json::to_value(sampling).unwrap();
            assert_eq!(written, sampling.name());
            assert_eq!(serde_json::from_value::<Sampling>(written).unwrap(), sampling);
            let units = sampling.units(3, 5000, &mut Seed(1).rng()).unwrap();
            assert!(units.len() >= 15_000, "{}", sampling.name());
            let square = units.iter().map(|unit| unit * unit).sum::<f64>() / units.len() as f64;
            let expected = if sampling == Sampling::TruncatedGaussian { 0.7737 } else { 1.0 };
            assert!((square - expected).abs() < 0.05, "{}: {square}", sampling.name());
        }
        assert_eq!(Sampling::Sobol.for_coordinates(256), Sampling::Sobol);
        assert_eq!(Sampling::Sobol.for_coordinates(257), Sampling::Orthogonal);
    }
}
