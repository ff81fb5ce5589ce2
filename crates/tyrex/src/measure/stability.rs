//! `1/k sum (m_i - gamma norm(n_i))`

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::formula::{Formula, Weighed, mean};
use super::{Evaluation, Kind};
use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::lipschitz;
use crate::model::{Mlp, Model};
use crate::neighbourhood::Neighbourhood;

/// The paper's `R`, which its theorem is about.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Stability {
    /// The Lipschitz constant in it.
    pub gamma: Gamma,
}

/// The Lipschitz constant in the stability `R`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gamma {
    /// A number.
    Given(f64),
    /// The product of the layers' spectral norms, a bound that is proved and holds everywhere.
    /// Local bounds would be tighter, but depend on the point; this one is a constant of the model,
    /// as in the paper's theorem.
    Sound,
    /// The paper's estimate, `max_i abs(m_0 - m_i) / norm(n_i)`. It is not a bound.
    #[default]
    SampledSlopes,
    /// `max_i norm(dm(x_i))`, over the neighbours and the point. It is not a bound either, but
    /// includes slopes that average out between points.
    SampledGradients,
}

impl Choice for Gamma {
    const ALL: &'static [Self] = &[Self::SampledSlopes, Self::SampledGradients, Self::Sound];

    fn word(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::SampledSlopes => "slopes",
            Self::SampledGradients => "gradients",
            Self::Sound => "sound",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Given(_) => "A number",
            Self::SampledSlopes => "The largest slope to a neighbour, as in the paper; an estimate",
            Self::SampledGradients => "The largest gradient among the neighbours; an estimate",
            Self::Sound => "The product of the layers' spectral norms; a bound that is proved",
        }
    }
}

impl Kind for Stability {
    fn symbol(&self) -> &'static str {
        "R"
    }

    fn way<'a>(&self, model: &'a dyn Model) -> Result<Evaluation<'a>> {
        Ok(match self.gamma {
            Gamma::Given(gamma) if gamma >= 0.0 && gamma.is_finite() => {
                Evaluation::Scores(Arc::new(Constant { gamma }))
            }
            Gamma::Given(gamma) => {
                return Err(Error::param("gamma", gamma, "a number of at least 0"));
            }
            Gamma::Sound => {
                let gamma = lipschitz::spectral(network(model, "sound")?).value;
                Evaluation::Scores(Arc::new(Constant { gamma }))
            }
            Gamma::SampledSlopes => Evaluation::Scores(Arc::new(Slopes)),
            Gamma::SampledGradients => Evaluation::Gradients(network(model, "sampled-gradients")?),
        })
    }
}

fn network<'a>(model: &'a dyn Model, gamma: &str) -> Result<&'a Mlp> {
    model.network().ok_or_else(|| {
        Error::InvalidModel(format!(
            "gamma `{gamma}` needs a network, which trees and black boxes are not; \
             use a number or `sampled-slopes`"
        ))
    })
}

/// With a constant `gamma`.
#[derive(Debug)]
struct Constant {
    gamma: f64,
}

impl Formula for Constant {
    fn weigh(&self, cloud: &Neighbourhood, _: f32, scores: &[f32], weights: &mut [f32]) -> Weighed {
        let value = mean(scores, weights) - self.gamma * cloud.mean_distance();
        Weighed { value, of_centre: 0.0 }
    }
}

/// With the largest slope between the point and a neighbour for `gamma`.
#[derive(Debug)]
struct Slopes;

impl Formula for Slopes {
    fn weigh(
        &self,
        cloud: &Neighbourhood,
        score: f32,
        scores: &[f32],
        weights: &mut [f32],
    ) -> Weighed {
        let mean = mean(scores, weights);
        let slopes = scores.iter().zip(cloud.distances());
        let slopes = slopes.map(|(&s, distance)| f64::from((score - s).abs()) / distance);
        let (steepest, gamma) = slopes
            .enumerate()
            .fold((0, 0.0), |best, (i, slope)| if slope > best.1 { (i, slope) } else { best });
        let width = cloud.mean_distance();
        // The steepest neighbour also changes gamma.
        let pull = width / cloud.distances()[steepest];
        let sign = f64::from((score - scores[steepest]).signum());
        weights[steepest] += (pull * sign) as f32;
        Weighed { value: mean - gamma * width, of_centre: -pull * sign }
    }
}
