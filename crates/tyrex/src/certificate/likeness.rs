//! Whether the model in use looks like one of its retrained versions.
//!
//! Certificates from retrained models are about the next model only if the model in use could have
//! been one of them. `explain/siblings.rs` computes the test; a certificate contains its result.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::assumption::Standing;

/// The comparison of a model with its retrained versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Likeness {
    /// The source of the training parameters of the retrained models.
    pub recipe: RecipeSource,
    /// The test.
    pub test: LikenessTest,
}

/// The source of the training parameters of retrained models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecipeSource {
    /// The model was trained with them, by this process or according to its file.
    Known,
    /// The same, but the model was trained on other rows than those of a labelled reference.
    OtherRows,
    /// The user gave them.
    Given,
    /// The layers of the model and the default training, since nothing else is known.
    Assumed,
}

/// The result of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum LikenessTest {
    /// There was no test.
    NotTested {
        /// The reason.
        reason: String,
    },
    /// Every statistic was compared.
    Tested {
        /// The largest probability of a difference if the model is one of them.
        level: f64,
        /// The number of retrained models.
        siblings: usize,
        /// The number of labelled rows.
        rows: usize,
        /// The statistics in which the model differs; empty if it looks like one of them.
        differs: Vec<Deviation>,
    },
}

/// A statistic of a model on labelled rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The mean cross-entropy.
    CrossEntropy,
    /// The mean score.
    Score,
    /// The share of accepted rows.
    Accepted,
    /// The share of rows that another retrained model decides differently, on average.
    Disagreement,
}

/// A statistic in which the model differs from its retrained versions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deviation {
    /// The statistic.
    pub statistic: Statistic,
    /// Its value for the model.
    pub model: f64,
    /// Its mean over the retrained models.
    pub mean: f64,
    /// The largest difference from the mean that the test accepts.
    pub within: f64,
}

impl Likeness {
    /// A comparison without a test.
    pub(crate) fn not_tested(recipe: RecipeSource, reason: &str) -> Self {
        Self { recipe, test: LikenessTest::NotTested { reason: reason.to_owned() } }
    }

    /// Whether the test found a difference.
    pub fn is_refuted(&self) -> bool {
        matches!(&self.test, LikenessTest::Tested { differs, .. } if !differs.is_empty())
    }

    /// The standing of the assumption that the next model is exchangeable with the retrained ones.
    pub(super) fn standing(likeness: Option<&Self>) -> Standing {
        if likeness.is_some_and(Self::is_refuted) { Standing::Broken } else { Standing::Declared }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrossEntropy => "mean cross-entropy",
            Self::Score => "mean score",
            Self::Accepted => "share of accepted rows",
            Self::Disagreement => "disagreement with the others",
        })
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statistic, model, mean, within } = self;
        write!(f, "{statistic} {model:.4}, expected {mean:.4} +- {within:.4}")
    }
}

/// The end of the sentence of the assumption.
impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.recipe {
            RecipeSource::Known | RecipeSource::Given => {}
            RecipeSource::OtherRows => {
                f.write_str(", with a reference other than the training rows of the model in use")?;
            }
            RecipeSource::Assumed => {
                f.write_str(", trained by default since the training of the model is not known")?;
            }
        }
        match &self.test {
            LikenessTest::NotTested { reason } => {
                write!(f, ", not tested on the model in use: {reason}")
            }
            LikenessTest::Tested { level, siblings, differs, .. } if differs.is_empty() => write!(
                f,
                ", and the model in use looks like one of {siblings} retrained ones, tested at \
                 level {}",
                rounded_up(*level)
            ),
            LikenessTest::Tested { level, siblings, differs, .. } => {
                let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    ", but at level {} the model in use does not look like one of {siblings} \
                     retrained ones ({}), so give the parameters it was trained with, or an \
                     ensemble of models that were trained like it",
                    rounded_up(*level),
                    differs.join(", ")
                )
            }
        }
    }
}

/// A level with three decimals, at least itself.
fn rounded_up(level: f64) -> f64 {
    (1000.0 * level).ceil() / 1000.0
}
