//! The ensemble tier: `P( M(x) >= 0.5 ) >= p` for a changed model `M` of the declared family.
//!
//! Of `n` retrained models that the search did not use, `s` keep the point valid. If the next model
//! is one more independent draw, `s` is binomial and Clopper and Pearson's lower bound is at most
//! `P( M(x) >= 0.5 )` with the stated confidence. The tier also reports the same quantile of the
//! Beta posterior under Jeffreys' prior, a Bayesian bound that is slightly higher.

use serde::{Deserialize, Serialize};

use super::assumption::{About, Assumption, Standing, Verdict};
use super::{
    At, Certifies, LeftOut, Likeness, Maker, Retrained, Says, SearchRecord, Subject, Tier, at_least,
};
use crate::error::Result;
use crate::points::Points;
use crate::statistics::Proportion;

/// The result of the tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnsembleTier {
    /// Vacuous if the bound is below 0.5; at most empirical if the search used the models or
    /// the model does not look like one of them.
    pub verdict: Verdict,
    /// The number of retrained models.
    pub models: usize,
    /// How many of them score the point at least 0.5.
    pub valid: usize,
    /// `1 - alpha`
    pub confidence: f64,
    /// Clopper and Pearson's lower bound on the probability of staying valid.
    pub probability: f64,
    /// The `alpha` quantile of the posterior.
    pub posterior: f64,
    /// The assumptions.
    pub assumptions: Vec<Assumption>,
}

impl Says for EnsembleTier {
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    fn brief(&self) -> String {
        let Self { verdict, models, valid, probability, .. } = self;
        format!("{verdict}: {} ({valid}/{models})", at_least(*probability))
    }

    fn numbers(&self) -> Vec<String> {
        let Self { valid, models, probability, .. } = self;
        vec![valid.to_string(), models.to_string(), probability.to_string()]
    }

    fn claim(&self) -> String {
        let Self { verdict, models, valid, confidence, probability, .. } = self;
        let seen = format!("{valid} of {models} retrained models keep this point valid");
        if *verdict == Verdict::Vacuous {
            return format!("{seen}, which is too little to promise anything.");
        }
        format!(
            "{seen}: with confidence {confidence}, so does the next one with probability at least \
             {} ({verdict}).",
            at_least(*probability)
        )
    }
}

impl Certifies for EnsembleTier {
    const HEADING: &'static str = "ensemble: P >=";
    const NUMBERS: &'static [&'static str] = &["valid", "models", "probability"];

    fn prepare<'a>(subject: &Subject<'_, 'a>) -> Box<dyn Maker + 'a> {
        match subject.retrained {
            Some(retrained) => {
                Box::new(Prepared { retrained, confidence: subject.terms.confidence })
            }
            None => Box::new(LeftOut("there are no retrained models")),
        }
    }
}

struct Prepared<'a> {
    retrained: Retrained<'a>,
    confidence: f64,
}

impl Maker for Prepared<'_> {
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        certify(at.point, &self.retrained, self.confidence).map(|tier| Ok(tier.into()))
    }
}

/// The assumption that the search did not use the retrained models.
pub(super) fn unseen(retrained: &Retrained) -> Assumption {
    let Retrained { steered, search, .. } = *retrained;
    let standing = if steered { Standing::Broken } else { SearchRecord::standing(search) };
    About::Unseen { search }.standing(standing)
}

/// The assumption that the changed model is exchangeable with the retrained ones.
pub(super) fn exchangeable(retrained: &Retrained) -> Assumption {
    let Retrained { models, family, likeness, .. } = *retrained;
    About::Exchangeable {
        family: family.to_owned(),
        models: models.len(),
        likeness: likeness.cloned(),
    }
    .standing(Likeness::standing(likeness))
}

fn certify(x: &Points, retrained: &Retrained, confidence: f64) -> Result<EnsembleTier> {
    let valid = retrained.models.iter().filter(|model| model.score(x)[0] >= 0.5).count();
    let proportion = Proportion::new(valid, retrained.models.len())?;
    let alpha = 1.0 - confidence;
    let probability = proportion.lower(alpha)?;
    let assumptions = vec![exchangeable(retrained), unseen(retrained)];
    Ok(EnsembleTier {
        verdict: Verdict::of(probability >= 0.5, &assumptions),
        models: retrained.models.len(),
        valid,
        confidence,
        probability,
        posterior: proportion.posterior_lower(alpha)?,
        assumptions,
    })
}
