//! The terms of a certificate.

use serde::{Deserialize, Serialize};

use super::interval::{check_delta, check_radius};
use crate::error::{Error, Result};
use crate::lipschitz::LipschitzBound;
use crate::model::Model;
use crate::neighbourhood::Neighbourhood;

/// The terms of a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CertificateTerms))]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// The required probability of the theorem's lower bound.
    pub probability: f64,
    /// `1 - alpha`, the confidence of bounds inferred from retrained models.
    pub confidence: f64,
    /// The theorem's terms; `None` to omit it.
    pub theorem: Option<TheoremTerms>,
    /// The interval tier's `delta`; `None` to omit it.
    pub delta: Option<f64>,
    /// The interval tier's `radius`, the largest change of a threshold of trees; the default if a
    /// front end gets none. Only certificates of trees have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// Whether there is a forest tier. Only certificates of trees have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forest: bool,
}

/// The default `radius` of the interval tier, in the units of the points.
pub const RADIUS: f64 = 0.01;
/// The default `delta` of the interval tier.
pub const DELTA: f64 = 0.01;

impl Default for Terms {
    fn default() -> Self {
        Self {
            probability: 0.9,
            confidence: 0.95,
            theorem: Some(TheoremTerms::default()),
            delta: Some(DELTA),
            radius: None,
            forest: false,
        }
    }
}

impl Terms {
    /// The terms for a model: for trees with the forest tier and the default `radius` if none is
    /// given, without them for any other model.
    #[must_use]
    pub fn for_model(self, model: &dyn Model) -> Self {
        let radius = model.trees().map(|_| self.radius.unwrap_or(RADIUS));
        Self { radius, forest: radius.is_some(), ..self }
    }

    /// Checks what can be checked before there is a model.
    pub fn check(&self) -> Result<()> {
        self.check_probabilities()?;
        if let Some(delta) = self.delta {
            check_delta(delta)?;
        }
        if let Some(radius) = self.radius {
            check_radius(radius)?;
        }
        match &self.theorem {
            Some(theorem) => Neighbourhood::check(theorem.samples, theorem.sigma.unwrap_or(1.0)),
            None => Ok(()),
        }
    }

    pub(super) fn check_probabilities(&self) -> Result<()> {
        for (name, value) in [("probability", self.probability), ("confidence", self.confidence)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::param(name, value, "a number between 0 and 1"));
            }
        }
        Ok(())
    }
}

/// The terms of the theorem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TheoremTerms {
    /// `k`, the number of draws.
    pub samples: usize,
    /// `sigma`; chosen if it is not given.
    pub sigma: Option<f64>,
    /// `eps`, to get the probability of `M(x) >= R - eps`.
    pub epsilon: Option<f64>,
    /// Where `gamma_m` and `gamma` come from.
    pub slope: SlopeSource,
    /// Where `eps'` comes from.
    pub shift: ShiftSource,
}

impl Default for TheoremTerms {
    fn default() -> Self {
        Self {
            samples: 1000,
            sigma: None,
            epsilon: None,
            slope: SlopeSource::Local,
            shift: ShiftSource::Measured,
        }
    }
}

/// Where the slopes `gamma_m` and `gamma` come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SlopeSource {
    /// The product of spectral norms: sound everywhere.
    Spectral,
    /// Intervals of the Jacobian over the box of the draws: sound there.
    Local,
    /// The largest gradient among the draws: an estimate.
    SampledGradients,
    /// Given by the user; sound ones count as declared.
    Given {
        /// `gamma_m`
        model: LipschitzBound,
        /// `gamma`, for every changed model.
        changed: LipschitzBound,
    },
}

/// Where `eps'` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ShiftSource {
    /// From the retrained models; unknown if there are none.
    Measured,
    /// Declared by the user, for the given width.
    Given {
        /// `eps'`
        epsilon: f64,
    },
    /// Unknown.
    Unknown,
}
