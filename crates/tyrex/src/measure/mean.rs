//! `1/k sum m_i`

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::formula::{Formula, Weighed, mean};
use super::{Evaluation, Kind};
use crate::error::Result;
use crate::model::Model;
use crate::neighbourhood::Neighbourhood;

/// The mean score of the neighbours: the ablation's second baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Mean {}

impl Kind for Mean {
    fn symbol(&self) -> &'static str {
        "r_k"
    }

    fn way<'a>(&self, _: &'a dyn Model) -> Result<Evaluation<'a>> {
        Ok(Evaluation::Scores(Arc::new(*self)))
    }
}

impl Formula for Mean {
    fn weigh(&self, _: &Neighbourhood, _: f32, scores: &[f32], weights: &mut [f32]) -> Weighed {
        Weighed { value: mean(scores, weights), of_centre: 0.0 }
    }
}
