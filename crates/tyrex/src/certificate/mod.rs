//! Certificates: claims about a point under a changed model, with their assumptions.
//!
//! A certificate has up to four tiers, each with its verdict and its assumptions:
//!
//! | tier | claim |
//! |---|---|
//! | [`theorem`] | a lower bound on `M(x)`, with a probability |
//! | [`interval`] | every network whose weights differ by at most `delta` keeps the point valid; for trees, every ensemble of the same shape with leaves within `delta` and thresholds within `radius` |
//! | [`ensemble`] | a lower bound on the probability that the point stays valid |
//! | [`forest`] | the same for a forest that is grown again on the same rows, from the votes of fresh trees |
//!
//! Beside them, [`portfolio`] states the share of all promises that the next model keeps, and
//! [`anytime`] bounds the share that successive updates keep.
//!
//! Only a [`Certifier`] makes certificates. It uses the exact point that is returned to the user,
//! and its own draws. [`verify`] recomputes a certificate and compares.

pub mod anytime;
mod assumption;
mod document;
pub mod ensemble;
pub mod forest;
pub mod interval;
mod likeness;
mod moved_trees;
pub mod portfolio;
mod terms;
pub mod theorem;
mod verify;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use anytime::KeptShares;
use assumption::rests_on;
pub use assumption::{About, Assumption, SearchRecord, Standing, Verdict};
pub use document::{CertificateDocument, CertificateWords, Claim};
pub use interval::IntervalCertifier;
pub use likeness::{Deviation, Likeness, LikenessTest, RecipeSource, Statistic};
pub use moved_trees::TreeIntervalCertifier;
pub use portfolio::{Portfolio, PortfolioGroup, PortfolioStatement};
pub use terms::{DELTA, RADIUS, ShiftSource, SlopeSource, Terms, TheoremTerms};
pub use theorem::Statement;
pub use verify::{Difference, Verified, WrittenCertificate, verify};

use crate::catalogue::{Named, catalogue};
use crate::data::encode::{Affine, Scale};
use crate::error::{Error, Result};
use crate::model::{Fingerprint, Model};
use crate::points::{Point, Points};
use crate::seed::Seed;

/// The layout of a certificate's file.
const FORMAT_VERSION: u32 = 1;

/// Models retrained in the way that future models are expected to be.
#[derive(Clone, Copy)]
pub struct Retrained<'a> {
    /// The models.
    pub models: &'a [&'a dyn Model],
    /// The declared family of change they were drawn from.
    pub family: &'a str,
    /// Whether the search used them.
    pub steered: bool,
    /// The known facts about the models that searched, if they were compared.
    pub search: Option<SearchRecord>,
    /// Whether the model looks like one of them, if that was examined.
    pub likeness: Option<&'a Likeness>,
}

/// Which retrained models a certificate was made with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retraining {
    /// The declared family of change.
    pub family: String,
    /// Whether the search used the models.
    pub steered: bool,
    /// The known facts about the models that searched, if they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// Whether the model looks like one of them, if that was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
    /// Their fingerprints; `None` for a model without one.
    pub models: Vec<Option<Fingerprint>>,
}

catalogue! {
    /// One tier. Each tier has a file and a line here.
    Tier tagged "tier" by Says with TierKind {
        Theorem(theorem::TheoremTier),
        Interval(interval::IntervalTier),
        Ensemble(ensemble::EnsembleTier),
        Forest(forest::ForestTier),
    }
}

/// The result of a tier for one point.
trait Says {
    /// The verdict.
    fn verdict(&self) -> Verdict;

    /// The assumptions.
    fn assumptions(&self) -> &[Assumption];

    /// The claim as a sentence.
    fn claim(&self) -> String;

    /// The claim in a few words, for a table.
    fn brief(&self) -> String;

    /// Its numbers, in the order of [`Certifies::NUMBERS`].
    fn numbers(&self) -> Vec<String>;
}

/// How a tier is made; implemented in its own file.
trait Certifies: Named + Into<Tier> {
    /// The heading over [`Says::brief`].
    const HEADING: &'static str;
    /// The names of [`Says::numbers`].
    const NUMBERS: &'static [&'static str];

    /// Whether a certificate with these terms has the tier; one that was made before the tier was
    /// has not.
    fn applies(_: &Terms) -> bool {
        true
    }

    /// Computes the part that is the same for every point.
    fn prepare<'a>(subject: &Subject<'_, 'a>) -> Box<dyn Maker + 'a>;
}

/// A kind of tier.
pub struct TierKind {
    /// Its name in files.
    pub name: &'static str,
    /// The heading over [`Tier::brief`].
    pub heading: &'static str,
    /// The names of [`Tier::numbers`].
    pub numbers: &'static [&'static str],
    applies: fn(&Terms) -> bool,
    prepare: for<'a> fn(&Subject<'_, 'a>) -> Box<dyn Maker + 'a>,
}

impl TierKind {
    const fn of<K: Certifies>() -> Self {
        Self {
            name: K::NAME,
            heading: K::HEADING,
            numbers: K::NUMBERS,
            applies: K::applies,
            prepare: K::prepare,
        }
    }
}

/// The model to certify, with its terms.
struct Subject<'t, 'a> {
    model: &'a dyn Model,
    /// `None` if the list is empty.
    retrained: Option<Retrained<'a>>,
    terms: &'t Terms,
}

/// The point to certify, and the seed of the draws.
struct At<'a> {
    point: &'a Points,
    seed: Seed,
}

/// A tier, prepared for a model.
trait Maker: Send + Sync {
    /// The tier at one point, or the reason for its omission.
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>>;
}

/// A tier that is omitted at every point.
struct LeftOut(&'static str);

impl Maker for LeftOut {
    fn make(&self, _: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        Ok(Err(self.0.to_owned()))
    }
}

const NOT_ASKED_FOR: LeftOut = LeftOut("it was not asked for");

impl Tier {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.kind().verdict()
    }

    /// The assumptions.
    pub fn assumptions(&self) -> &[Assumption] {
        self.kind().assumptions()
    }

    /// The claim as a sentence.
    pub fn claim(&self) -> String {
        self.kind().claim()
    }

    /// The claim in a few words, for a table.
    pub fn brief(&self) -> String {
        self.kind().brief()
    }

    /// Its numbers as text, in the order of [`TierKind::numbers`].
    pub fn numbers(&self) -> Vec<String> {
        self.kind().numbers()
    }
}

/// An omitted tier, and the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Omission {
    /// The tier's name.
    pub tier: String,
    /// The reason.
    pub reason: String,
}

/// The claims about one point, and everything needed to verify them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    format_version: u32,
    version: String,
    model: Option<Fingerprint>,
    retraining: Option<Retraining>,
    /// The scales of numbers in the point, by feature, if they are not those of the model file; the
    /// fingerprints are of models on this scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<BTreeMap<String, Affine>>,
    point: Vec<f32>,
    score: f32,
    seed: Seed,
    terms: Terms,
    tiers: Vec<Tier>,
    omitted: Vec<Omission>,
    /// SHA-256 of all fields above, to detect accidental changes.
    digest: String,
}

impl Certificate {
    /// The fingerprint of the model, if it has one.
    pub fn model(&self) -> Option<&Fingerprint> {
        self.model.as_ref()
    }

    /// The retrained models, if there were any.
    pub fn retraining(&self) -> Option<&Retraining> {
        self.retraining.as_ref()
    }

    /// The scales of numbers in the point, by feature, if they are not those of the model file.
    pub fn scale(&self) -> Option<&Scale> {
        self.scale.as_ref()
    }

    /// The point.
    pub fn point(&self) -> Point {
        self.point.clone().into()
    }

    /// `m(x)`
    pub fn score(&self) -> f32 {
        self.score
    }

    /// The terms.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The tiers, in the order theorem, interval, ensemble, forest.
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The theorem tier, if present.
    pub fn theorem(&self) -> Option<&TheoremTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Theorem(tier) => Some(tier),
            _ => None,
        })
    }

    /// The interval tier, if present.
    pub fn interval(&self) -> Option<&IntervalTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Interval(tier) => Some(tier),
            _ => None,
        })
    }

    /// The ensemble tier, if present.
    pub fn ensemble(&self) -> Option<&EnsembleTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Ensemble(tier) => Some(tier),
            _ => None,
        })
    }

    /// The forest tier, if present.
    pub fn forest(&self) -> Option<&ForestTier> {
        self.tiers.iter().find_map(|tier| match tier {
            Tier::Forest(tier) => Some(tier),
            _ => None,
        })
    }

    /// The omitted tiers, with the reasons.
    pub fn omitted(&self) -> &[Omission] {
        &self.omitted
    }

    /// The best verdict of its tiers.
    pub fn verdict(&self) -> Verdict {
        self.tiers.iter().map(Tier::verdict).max().unwrap_or(Verdict::Vacuous)
    }

    /// The claims and their assumptions in words: one or two sentences for every tier that is not
    /// vacuous, or a statement that nothing is claimed.
    pub fn sentence(&self) -> String {
        let verdict = self.verdict();
        let says = |tier: &&Tier| verdict == Verdict::Vacuous || tier.verdict() > Verdict::Vacuous;
        let tiers: Vec<&Tier> = self.tiers.iter().filter(says).collect();
        let mut parts: Vec<String> = tiers.iter().map(|tier| tier.claim()).collect();
        if verdict == Verdict::Vacuous {
            parts.insert(0, "Nothing is promised about this point once the model changes.".into());
            return parts.join(" ");
        }
        // Tiers share assumptions; each is listed once.
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

/// A lower bound as text, rounded down to three digits: rounding up would claim too much.
pub fn at_least(bound: f64) -> String {
    rounded_down(bound, 3)
}

/// A bound with this many digits, rounded down: rounding up would claim too much.
fn rounded_down(bound: f64, digits: i32) -> String {
    let unit = 10_f64.powi(digits);
    // The tolerance keeps numbers that have exactly these digits, like 0.29.
    format!("{:.*}", digits as usize, (unit * bound + 1e-9).floor() / unit)
}

fn unwritable(problem: &serde_json::Error) -> Error {
    Error::InvalidModel(format!("a certificate that cannot be written: {problem}"))
}

/// A model, its retrained versions and the terms, ready to certify points.
pub struct Certifier<'a> {
    model: &'a dyn Model,
    terms: Terms,
    tiers: Vec<(&'static str, Box<dyn Maker + 'a>)>,
    identity: Option<Fingerprint>,
    retraining: Option<Retraining>,
    scale: Option<Scale>,
}

impl<'a> Certifier<'a> {
    /// Prepares a model.
    pub fn new(
        model: &'a dyn Model,
        retrained: Option<Retrained<'a>>,
        terms: Terms,
    ) -> Result<Self> {
        terms.check_probabilities()?;
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
            search: retrained.search,
            likeness: retrained.likeness.cloned(),
            models: retrained.models.iter().map(|model| model.identity()).collect(),
        });
        let retrained = retrained.filter(|retrained| !retrained.models.is_empty());
        let subject = Subject { model, retrained, terms: &terms };
        let kinds = Tier::KINDS.iter().filter(|kind| (kind.applies)(&terms));
        let tiers = kinds.map(|kind| (kind.name, (kind.prepare)(&subject))).collect();
        Ok(Self { model, tiers, identity: model.identity(), retraining, scale: None, terms })
    }

    /// The same, for models that take points on this scale of numbers.
    #[must_use]
    pub fn on_scale(self, scale: Option<&Scale>) -> Self {
        Self { scale: scale.cloned(), ..self }
    }

    /// The certificate of one point, from draws of this seed. The point should be the one that is
    /// returned to the user, and the seed one that the search has not used.
    pub fn certify(&self, x: &[f32], seed: Seed) -> Result<Certificate> {
        check_point(x, self.model.dim())?;
        let point = Points::one(x);
        let score = self.model.score(&point)[0];
        check_score(f64::from(score))?;
        let (mut tiers, mut omitted) = (Vec::new(), Vec::new());
        let at = At { point: &point, seed };
        for (name, maker) in &self.tiers {
            match maker.make(&at)? {
                Ok(tier) => tiers.push(tier),
                Err(reason) => omitted.push(Omission { tier: (*name).to_owned(), reason }),
            }
        }
        let mut certificate = Certificate {
            format_version: FORMAT_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.identity.clone(),
            retraining: self.retraining.clone(),
            scale: self.scale.clone(),
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

/// Checks that a score is a finite number.
fn check_score(score: f64) -> Result<f64> {
    if score.is_finite() {
        return Ok(score);
    }
    Err(Error::InvalidModel(format!("it scores the point {score}, expected a probability")))
}

/// Checks that the model can score the point.
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
