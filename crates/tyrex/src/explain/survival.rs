//! The scores of rows under retrained models.

use rayon::prelude::*;
use serde::Serialize;

use super::{Applicant, Explainer};
use crate::change::Ensemble;
use crate::counterfactual::SearchModels;
use crate::error::{Error, Result};
use crate::model::THRESHOLD;
use crate::points::Points;

/// The scores of one row under retrained models.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RowSurvival {
    /// The row in the table, counted from 0 without the header.
    pub row: usize,
    /// `m(x)`
    pub score: f32,
    /// `M(x)` of every retrained model, in their order.
    pub scores: Vec<f32>,
    /// The number of models that accept it: `M(x) >= 0.5`.
    pub survives: usize,
    /// The scores under the models that searches use, if there are any. They do not count: advice
    /// is chosen so that most of them accept it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searched: Vec<f32>,
}

impl Explainer {
    /// The scores of rows under every model of an ensemble, in the rows' order. They depend neither
    /// on the number of threads nor on the other rows.
    pub fn survival(
        &self,
        applicants: &[Applicant],
        ensemble: &Ensemble,
    ) -> Result<Vec<RowSurvival>> {
        self.retraining().check(ensemble)?;
        let mut points = Points::new(self.points().dim());
        for applicant in applicants {
            points.push(&applicant.point);
        }
        let by_model: Vec<Vec<f32>> =
            ensemble.members().par_iter().map(|member| member.score(&points)).collect();
        let search = self.search_models.as_deref().map(SearchModels::retrained).unwrap_or_default();
        let by_search: Vec<Vec<f32>> =
            search.par_iter().map(|model| model.score(&points)).collect();
        applicants
            .iter()
            .enumerate()
            .map(|(index, applicant)| {
                let scores: Vec<f32> = by_model.iter().map(|scores| scores[index]).collect();
                let searched = by_search.iter().map(|scores| scores[index]).collect();
                if let Some(member) = scores.iter().position(|score| !score.is_finite()) {
                    return Err(Error::InvalidModel(format!(
                        "the score of row {} under retrained model {member} is {}, expected a \
                         probability",
                        applicant.row, scores[member]
                    )));
                }
                let survives = scores.iter().filter(|&&score| score >= THRESHOLD).count();
                let Applicant { row, score, .. } = *applicant;
                Ok(RowSurvival { row, score, scores, survives, searched })
            })
            .collect()
    }
}
