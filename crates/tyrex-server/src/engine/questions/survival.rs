//! Scores under retrained models.

use std::ops::ControlFlow;
use std::sync::Arc;

use tyrex::explain::{Applicant, Fresh, RowSurvival};

use crate::engine::Served;
use crate::engine::error::Result;
use crate::engine::pool::Question;

/// Scores of these retrained models.
#[derive(Debug, Clone)]
pub(crate) struct Surviving(pub(crate) Arc<Fresh>);

impl PartialEq for Surviving {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Question for Surviving {
    type Answer = RowSurvival;
    const AT_ONCE: usize = 256;

    fn answer(
        &self,
        model: &Served,
        applicants: &[Applicant],
        _: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<RowSurvival>> {
        Ok(model.explainer().survival(applicants, &self.0.ensemble)?)
    }
}
