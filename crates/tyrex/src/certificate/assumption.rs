//! The assumptions of a certificate, and the verdict that follows from them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::likeness::Likeness;
use crate::lipschitz::{LipschitzBound, Region, Soundness};

/// The verdict on the claim of a tier.
///
/// - `certified`: the claim is about `M(x) >= 0.5`, and everything it rests on is proved,
///   declared by the user, or measured in a way that is part of the stated probability;
/// - `empirical`: the claim is made, but something it rests on is an estimate or unknown;
/// - `vacuous`: nothing is claimed about `M(x) >= 0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing is claimed.
    Vacuous,
    /// Claimed, but some evidence is not a proof.
    Empirical,
    /// Claimed, and it follows from the assumptions.
    Certified,
}

impl Verdict {
    /// The verdict on a claim, by whether it is made and by its assumptions.
    pub(super) fn of(is_claimed: bool, assumptions: &[Assumption]) -> Self {
        if !is_claimed {
            Self::Vacuous
        } else if assumptions.iter().all(|assumption| assumption.standing.is_firm()) {
            Self::Certified
        } else {
            Self::Empirical
        }
    }
}

choices! { Verdict "verdict" {
    Vacuous = "vacuous": "Nothing is claimed",
    Empirical = "empirical": "Claimed, but some evidence is not a proof",
    Certified = "certified": "Claimed, and it follows from the assumptions",
} }

/// The evidence for an assumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It follows from the model's weights.
    Proved,
    /// The user declares it.
    Declared,
    /// It was measured, and the stated probability includes the chance of a wrong measurement.
    Measured,
    /// It was estimated, without a bound on the error.
    Estimated,
    /// It was not examined.
    Unknown,
    /// It is known not to hold.
    Broken,
}

impl Standing {
    fn is_firm(self) -> bool {
        matches!(self, Self::Proved | Self::Declared | Self::Measured)
    }
}

/// One assumption of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Assumption {
    /// The assumption.
    #[serde(flatten)]
    pub about: About,
    /// The evidence for it.
    pub standing: Standing,
}

/// The assumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "assumes", rename_all = "kebab-case")]
pub enum About {
    /// `|m(a) - m(b)| <= gamma_m ||a - b||`
    ModelSlope {
        /// `gamma_m`
        gamma: LipschitzBound,
    },
    /// `|M(a) - M(b)| <= gamma ||a - b||` for the changed model.
    ChangedSlope {
        /// `gamma`
        gamma: LipschitzBound,
    },
    /// `|E[Z | M]| <= eps'`: around the point, the mean scores of the changed model and of the
    /// model are close.
    Shift {
        /// `eps'`, if there is a number.
        epsilon: Option<f64>,
        /// The width of the neighbourhood.
        sigma: f64,
    },
    /// The changed model is one more draw from the family the retrained models come from.
    Exchangeable {
        /// The declared family of change.
        family: String,
        /// The number of retrained models.
        models: usize,
        /// Whether the model looks like one of them, if that was examined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        likeness: Option<Likeness>,
    },
    /// The search did not use the retrained models.
    Unseen {
        /// The known facts about the models that searched, if they were compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search: Option<SearchRecord>,
    },
    /// No weight and no bias changes by more than `delta`.
    WeightsWithin {
        /// `delta`
        delta: f64,
    },
    /// The trees keep their shape; no leaf changes by more than `delta` and no threshold by more
    /// than `radius`.
    TreesWithin {
        /// `delta`
        delta: f64,
        /// `radius`
        radius: f64,
    },
    /// Given the training rows, the trees of a forest are independent draws, and so are those of
    /// the next forest, which is trained on the same rows.
    IndependentTrees {
        /// The number of trees of the next forest.
        trees: usize,
        /// The number of retrained forests.
        forests: usize,
        /// The p-value of the test that they are exchangeable across the retrained forests; `None`
        /// if there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p_value: Option<f64>,
    },
}

/// The known facts about the models that took part in the search. The standing of the assumption
/// that the retrained models are others follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "known", rename_all = "kebab-case")]
pub enum SearchRecord {
    /// They are not recorded, or have no fingerprints, and nobody says that they are others.
    Unknown,
    /// They are not recorded, or have no fingerprints; the user says that they are others.
    NotRecorded,
    /// None of the retrained models is among them, by their fingerprints.
    Others {
        /// Their number.
        models: usize,
    },
    /// Some of the retrained models are among them.
    Among {
        /// The number of those.
        models: usize,
    },
}

impl SearchRecord {
    /// The standing of the assumption that the search did not use the retrained models.
    pub(super) fn standing(record: Option<Self>) -> Standing {
        match record {
            Some(Self::Unknown) => Standing::Unknown,
            Some(Self::Among { .. }) => Standing::Broken,
            Some(Self::NotRecorded | Self::Others { .. }) | None => Standing::Declared,
        }
    }
}

impl About {
    pub(super) fn standing(self, standing: Standing) -> Assumption {
        Assumption { about: self, standing }
    }
}

/// The standing of a bound that is computed.
pub(super) fn computed(bound: LipschitzBound) -> Standing {
    match bound.soundness {
        Soundness::Sound => Standing::Proved,
        Soundness::Estimate => Standing::Estimated,
    }
}

/// The standing of a bound that the user gives.
pub(super) fn given(bound: LipschitzBound) -> Standing {
    match bound.soundness {
        Soundness::Sound => Standing::Declared,
        Soundness::Estimate => Standing::Estimated,
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            About::ModelSlope { gamma } => {
                write!(f, "the model's slope is at most {:.3} {}", gamma.value, place(*gamma))?;
            }
            About::ChangedSlope { gamma } => {
                let place = place(*gamma);
                write!(f, "a changed model's slope is at most {:.3} {place}", gamma.value)?;
            }
            About::Shift { epsilon: Some(epsilon), sigma } => {
                write!(f, "around the point (width {sigma}) a changed model's mean score ")?;
                write!(f, "is within {epsilon:.3} of the model's")?;
            }
            About::Shift { epsilon: None, sigma } => {
                write!(f, "around the point (width {sigma}) a changed model's mean score ")?;
                write!(f, "is near the model's")?;
            }
            About::Exchangeable { family, models, likeness } => {
                write!(
                    f,
                    "the next model is produced like the {models} retrained ones ({family})"
                )?;
                if let Some(likeness) = likeness {
                    likeness.fmt(f)?;
                }
            }
            About::Unseen { search } => {
                f.write_str("the retrained models had no part in the search")?;
                match search {
                    Some(SearchRecord::Others { models }) => {
                        write!(f, ": none of them is among the {models} that searched")?;
                    }
                    Some(SearchRecord::Unknown | SearchRecord::NotRecorded) => {
                        f.write_str(", which is not recorded")?;
                    }
                    Some(SearchRecord::Among { models }) => {
                        write!(f, ", but {models} of them searched")?;
                    }
                    None => {}
                }
            }
            About::WeightsWithin { delta } => {
                write!(f, "no weight or bias changes by more than {delta}")?;
            }
            About::TreesWithin { delta, radius } => {
                write!(
                    f,
                    "the trees keep their shape, no threshold changes by more than {radius} "
                )?;
                write!(
                    f,
                    "and no leaf by more than {delta}; trees of another shape are not covered"
                )?;
            }
            About::IndependentTrees { trees, forests, p_value } => {
                write!(
                    f,
                    "given the training rows, trees are grown independently, and the next forest \
                     has {trees} trees grown on the same rows; other rows are not covered"
                )?;
                if let Some(p) = p_value {
                    let differ = match self.standing {
                        Standing::Broken => "more than",
                        _ => "no more than",
                    };
                    write!(
                        f,
                        ", and the {forests} retrained forests differ {differ} their trees explain, \
                         p = {p:.2}"
                    )?;
                }
            }
        }
        f.write_str(match self.standing {
            Standing::Proved => " (proved)",
            Standing::Declared => " (declared)",
            Standing::Measured => " (measured)",
            Standing::Estimated => " (estimated)",
            Standing::Unknown => " (not known)",
            Standing::Broken => " (not so)",
        })
    }
}

fn place(bound: LipschitzBound) -> String {
    match bound.region {
        Region::Global => "everywhere".to_owned(),
        Region::Ball { radius } => format!("within a distance of {radius:.3}"),
        Region::Box { radius } => format!("within {radius:.3} in every coordinate"),
    }
}

/// Assumptions as the end of a sentence.
pub(super) fn rests_on(assumptions: &[Assumption]) -> String {
    let parts: Vec<String> = assumptions.iter().map(ToString::to_string).collect();
    format!("This rests on: {}.", parts.join("; "))
}
