//! Certificates of rows for a changed model.

use std::ops::ControlFlow;
use std::sync::Arc;

use tyrex::certificate::{Certificate, Terms};
use tyrex::explain::{Applicant, Explainer, Fresh};
use tyrex::{Points, Seed};

use crate::engine::Served;
use crate::engine::error::Result;
use crate::engine::pool::Question;

/// Certificates with these terms and retrained models.
#[derive(Debug, Clone)]
pub(crate) struct Certifying {
    pub(crate) terms: Terms,
    pub(crate) seed: Seed,
    pub(crate) fresh: Option<Arc<Fresh>>,
}

impl PartialEq for Certifying {
    fn eq(&self, other: &Self) -> bool {
        let same_models = match (&self.fresh, &other.fresh) {
            (None, None) => true,
            (Some(own), Some(other)) => own.are(other),
            _ => false,
        };
        same_models && self.terms == other.terms && self.seed == other.seed
    }
}

impl Certifying {
    /// A certificate for each point. The search did not use the retrained models.
    pub(crate) fn certify<'a>(
        &self,
        explainer: &Explainer,
        points: impl Iterator<Item = &'a [f32]>,
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Certificate>> {
        let mut all = Points::new(explainer.points().dim());
        points.for_each(|point| all.push(point));
        let fresh = self.fresh.as_deref();
        Ok(explainer.certify(&all, fresh, &self.terms, self.seed, go_on)?)
    }
}

impl Question for Certifying {
    type Answer = Certificate;
    const AT_ONCE: usize = 16;

    fn answer(
        &self,
        model: &Served,
        applicants: &[Applicant],
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Certificate>> {
        self.certify(model.explainer(), applicants.iter().map(|applicant| &*applicant.point), go_on)
    }
}
