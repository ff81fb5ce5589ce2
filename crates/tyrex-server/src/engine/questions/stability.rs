//! Stability of the model's scores.

use std::ops::ControlFlow;

use tyrex::explain::{Applicant, RowStability, StabilityTerms};

use crate::engine::Served;
use crate::engine::error::Result;
use crate::engine::pool::Question;

/// Stability with these terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measuring(pub(crate) StabilityTerms);

impl Question for Measuring {
    type Answer = RowStability;
    const AT_ONCE: usize = 64;

    fn answer(
        &self,
        model: &Served,
        applicants: &[Applicant],
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<RowStability>> {
        Ok(model.gauge(&self.0)?.read(applicants, go_on)?)
    }
}
