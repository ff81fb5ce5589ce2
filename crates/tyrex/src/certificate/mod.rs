//! Certificates: what is claimed of a point when the model changes, and what that rests on.
//!
//! A certificate has up to three tiers side by side, each with its verdict and its assumptions:
//!
//! | tier | says |
//! |---|---|
//! | [`theorem`] | `M(x)` is at least so much, with that probability |
//! | [`interval`] | every network whose weights differ by at most `delta` keeps the point valid |
//! | [`ensemble`] | the point stays valid with that probability under the declared change |
//!
//! It is made by a [`Certifier`] from the exact point that is handed out, on draws of its own, and
//! in no other way; [`verify`] makes it again and compares.

mod assumption;
mod document;
pub mod ensemble;
pub mod interval;
mod terms;
pub mod theorem;
mod verify;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use assumption::rests_on;
pub use assumption::{About, Assumption, Standing, Verdict};
pub use document::{CertificateDocument, CertificateWords, Claim};
pub use ensemble::EnsembleTier;
pub use interval::{IntervalCertifier, IntervalTier};
pub use terms::{Shift, Slope, Terms, TheoremTerms};
use theorem::Theorem;
pub use theorem::{Statement, TheoremTier};
pub use verify::{Difference, Verified, WrittenCertificate, verify};

use crate::error::{Error, Result};
use crate::lipschitz::LipschitzBound;
use crate::model::{Fingerprint, Model};
use crate::points::{Point, Points};
use crate::seed::Seed;

/// The layout of a certificate's file.
const FORMAT_VERSION: u32 = 1;

/// Models that came about as future ones will.
#[derive(Clone, Copy)]
pub struct Retrained<'a> {
    /// The models.
    pub models: &'a [&'a dyn Model],
    /// The declared family of change they were drawn from.
    pub family: &'a str,
    /// Whether they had a part in finding the point.
    pub steered: bool,
}

/// Which retrained models a certificate was made with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retraining {
    /// The declared family of change.
    pub family: String,
    /// Whether the models had a part in finding the point.
    pub steered: bool,
    /// Their fingerprints, as far as they have one.
    pub models: Vec<Option<Fingerprint>>,
}

/// One tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "tier", rename_all = "kebab-case")]
pub enum Tier {
    /// Theorem 1.
    Theorem(TheoremTier),
    /// Bounded change of weights.
    Interval(IntervalTier),
    /// Retrained models.
    Ensemble(EnsembleTier),
}

impl Tier {
    /// The name it has in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Theorem(_) => "theorem",
            Self::Interval(_) => "interval",
            Self::Ensemble(_) => "ensemble",
        }
    }

    /// What it is worth.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Theorem(tier) => tier.verdict,
            Self::Interval(tier) => tier.verdict,
            Self::Ensemble(tier) => tier.verdict,
        }
    }

    /// What it rests on.
    #[must_use]
    pub fn assumptions(&self) -> &[Assumption] {
        match self {
            Self::Theorem(tier) => &tier.assumptions,
            Self::Interval(tier) => &tier.assumptions,
            Self::Ensemble(tier) => &tier.assumptions,
        }
    }

    /// What is claimed, for a person.
    #[must_use]
    pub fn claim(&self) -> String {
        match self {
            Self::Theorem(tier) => tier.claim(),
            Self::Interval(tier) => tier.claim(),
            Self::Ensemble(tier) => tier.claim(),
        }
    }
}

/// A tier that is not there, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Omission {
    /// The tier's name.
    pub tier: String,
    /// Why.
    pub reason: String,
}

/// What is claimed of one point, and everything needed to check it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    format_version: u32,
    version: String,
    model: Option<Fingerprint>,
    retraining: Option<Retraining>,
    point: Vec<f32>,
    score: f32,
    seed: Seed,
    terms: Terms,
    tiers: Vec<Tier>,
    omitted: Vec<Omission>,
    /// SHA-256 of all the above, so that no field can be altered by accident.
    digest: String,
}

impl Certificate {
    /// The fingerprint of the model, if it has one.
    #[must_use]
    pub fn model(&self) -> Option<&Fingerprint> {
        self.model.as_ref()
    }

    /// The retrained models, if there were any.
    #[must_use]
    pub fn retraining(&self) -> Option<&Retraining> {
        self.retraining.as_ref()
    }

    /// The point.
    #[must_use]
    pub fn point(&self) -> Point {
        self.point.clone().into()
    }

    /// `m(x)`
    #[must_use]
    pub fn score(&self) -> f32 {
        self.score
    }

    /// What was asked.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The tiers, in the order theorem, interval, ensemble.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The theorem tier, if it is there.
    #[must_use]
    pub fn theorem(&self) -> Option<&TheoremTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Theorem(tier) => Some(tier),
            _ => None,
        })
    }

    /// The interval tier, if it is there.
    #[must_use]
    pub fn interval(&self) -> Option<&IntervalTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Interval(tier) => Some(tier),
            _ => None,
        })
    }

    /// The ensemble tier, if it is there.
    #[must_use]
    pub fn ensemble(&self) -> Option<&EnsembleTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Ensemble(tier) => Some(tier),
            _ => None,
        })
    }

    /// The tiers that were left out, and why.
    #[must_use]
    pub fn omitted(&self) -> &[Omission] {
        &self.omitted
    }

    /// The best verdict of its tiers.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.tiers.iter().map(Tier::verdict).max().unwrap_or(Verdict::Vacuous)
    }

    /// What is claimed and what it rests on, for a person: a sentence or two for every tier that
    /// claims something, or that nothing is claimed.
    #[must_use]
    pub fn sentence(&self) -> String {
        let verdict = self.verdict();
        let says = |tier: &&Tier| verdict == Verdict::Vacuous || tier.verdict() > Verdict::Vacuous;
        let tiers: Vec<&Tier> = self.tiers.iter().filter(says).collect();
        let mut parts: Vec<String> = tiers.iter().map(|tier| tier.claim()).collect();
        if verdict == Verdict::Vacuous {
            parts.insert(0, "Nothing is promised about this point once the model changes.".into());
            return parts.join(" ");
        }
        // Tiers share assumptions; each is said once.
        let mut assumptions: Vec<Assumption> = Vec::new();
        for assumption in tiers.iter().flat_map(|tier| tier.assumptions()) {
            if !assumptions.contains(assumption) {
                assumptions.push(assumption.clone());
            }
        }
        parts.push(rests_on(&assumptions));
        parts.join(" ")
    }

    fn computed_digest(&self) -> Result<String> {
        let blank = Self { digest: String::new(), ..self.clone() };
        let text = serde_json::to_string(&blank).map_err(|problem| unwritable(&problem))?;
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
        Ok(Sha256::digest(text).iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect())
    }
}

/// A lower bound for a person: rounded down, since rounded up it would claim too much.
fn at_least(bound: f64) -> String {
    // The tolerance is for numbers that should have three digits, like 0.29.
    format!("{:.3}", (1000.0 * bound + 1e-9).floor() / 1000.0)
}

fn unwritable(problem: &serde_json::Error) -> Error {
    Error::InvalidModel(format!("a certificate that cannot be written: {problem}"))
}

/// A model, its retrained versions and the terms, ready to certify points.
pub struct Certifier<'a> {
    model: &'a dyn Model,
    retrained: Option<Retrained<'a>>,
    terms: Terms,
    interval: Option<IntervalCertifier>,
    slopes: Vec<Option<LipschitzBound>>,
    identity: Option<Fingerprint>,
    retraining: Option<Retraining>,
}

impl<'a> Certifier<'a> {
    /// Prepares a model.
    pub fn new(
        model: &'a dyn Model,
        retrained: Option<Retrained<'a>>,
        terms: Terms,
    ) -> Result<Self> {
        for (name, value) in [("probability", terms.probability), ("confidence", terms.confidence)]
        {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::param(name, value, "a number between 0 and 1"));
            }
        }
        let models = retrained.map_or(&[][..], |retrained| retrained.models);
        for other in models {
            if other.dim() != model.dim() {
                return Err(Error::Dimension {
                    what: "coordinates of a retrained model".into(),
                    expected: model.dim(),
                    got: other.dim(),
                });
            }
        }
        let retraining = retrained.map(|retrained| Retraining {
            family: retrained.family.to_owned(),
            steered: retrained.steered,
            models: retrained.models.iter().map(|model| model.identity()).collect(),
        });
        let interval = terms.delta.and(model.network()).map(IntervalCertifier::new);
        let slope = terms.theorem.as_ref().map(|theorem| theorem.slope);
        let slopes =
            slope.map(|slope| theorem::global_slopes(slope, model, models)).unwrap_or_default();
        let identity = model.identity();
        Ok(Self { model, retrained, terms, interval, slopes, identity, retraining })
    }

    /// The certificate of one point, from draws of this seed. The point should be the one that is
    /// handed out, and the seed one that the search has not used.
    pub fn certify(&self, x: &[f32], seed: Seed) -> Result<Certificate> {
        check_point(x, self.model.dim())?;
        let mut point = Points::new(x.len());
        point.push(x);
        let score = self.model.score(&point)[0];
        check_score(f64::from(score))?;
        let mut tiers = Vec::new();
        let mut omitted = Vec::new();
        let mut omit = |tier: &str, reason: &str| {
            omitted.push(Omission { tier: tier.to_owned(), reason: reason.to_owned() });
        };
        let models = self.retrained.as_ref().filter(|retrained| !retrained.models.is_empty());
        if let Some(terms) = &self.terms.theorem {
            let theorem = Theorem {
                terms,
                probability: self.terms.probability,
                confidence: self.terms.confidence,
                model: self.model,
                retrained: models,
                global: &self.slopes,
                point: &point,
                seed,
            };
            match theorem.obstacle() {
                Some(reason) => omit("theorem", &reason),
                None => tiers.push(Tier::Theorem(theorem.certify()?)),
            }
        } else {
            omit("theorem", "it was not asked for");
        }
        match (self.terms.delta, &self.interval) {
            (Some(delta), Some(interval)) => {
                tiers.push(Tier::Interval(interval.certify(x, delta)?));
            }
            (Some(_), None) => omit("interval", "only a network has weights that change by little"),
            (None, _) => omit("interval", "it was not asked for"),
        }
        match models {
            Some(models) => {
                let tier = ensemble::certify(&point, models, self.terms.confidence)?;
                tiers.push(Tier::Ensemble(tier));
            }
            None => omit("ensemble", "there are no retrained models"),
        }
        let mut certificate = Certificate {
            format_version: FORMAT_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.identity.clone(),
            retraining: self.retraining.clone(),
            point: x.to_vec(),
            score,
            seed,
            terms: self.terms.clone(),
            tiers,
            omitted,
            digest: String::new(),
        };
        certificate.digest = certificate.computed_digest()?;
        Ok(certificate)
    }
}

/// The certificate of one point: [`Certifier`] for one use.
pub fn certify(
    model: &dyn Model,
    x: &[f32],
    retrained: Option<Retrained>,
    terms: &Terms,
    seed: Seed,
) -> Result<Certificate> {
    Certifier::new(model, retrained, terms.clone())?.certify(x, seed)
}

/// A score that is a number.
fn check_score(score: f64) -> Result<f64> {
    if score.is_finite() {
        return Ok(score);
    }
    Err(Error::InvalidModel(format!("it scores the point {score}, expected a probability")))
}

/// A point a model can score.
fn check_point(x: &[f32], dim: usize) -> Result<()> {
    if x.len() != dim {
        return Err(Error::Dimension {
            what: "coordinates of the point".into(),
            expected: dim,
            got: x.len(),
        });
    }
    if let Some(coordinate) = x.iter().find(|coordinate| !coordinate.is_finite()) {
        return Err(Error::param("x", coordinate, "finite coordinates"));
    }
    Ok(())
}
