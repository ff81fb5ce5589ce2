//! `sns`: a base counterfactual, then ascent of the path integral within a ball. Stable Neighbour
//! Search of Black et al.
//!
//! `max 1/s sum_{j=1..s} m(j/s x')  subject to  ||x' - base|| <= radius`
//!
//! All steps are taken, and the last point the model accepts is the answer. The authors start from
//! the base with a little noise; here the ascent starts at the base itself.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::Reader;
use crate::counterfactual::plausible::OF_PROBABILITIES;
use crate::counterfactual::search::Test;
use crate::counterfactual::search::ascent::{Ascent, Ball, Step};
use crate::counterfactual::search::cells::{Cells, Density};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure, PathIntegral};
use crate::seed::Seed;

use super::{Finish, MethodSpec, ModelNeed, Protocol, ReferenceUse, Spec, base, conclude, unread};

/// Parameters of `sns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Sns {
    /// The base method.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub base: Box<MethodSpec>,
    /// The points on the path, `s`.
    pub path: usize,
    /// The radius of the ball around the base.
    pub radius: f64,
    /// The length of a step.
    pub rate: f64,
    /// The number of steps.
    pub steps: usize,
}

impl Default for Sns {
    fn default() -> Self {
        Self {
            base: Box::new(base(Protocol::Product)),
            path: 20,
            radius: 0.2,
            rate: 0.01,
            steps: 100,
        }
    }
}

impl Spec for Sns {
    fn title(&self) -> &'static str {
        "SNS"
    }

    fn sentence(&self) -> &'static str {
        "The smallest change first, then further along the path integral of the score."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        Self { base: Box::new(base(protocol)), ..Self::default() }.into()
    }

    fn needs(&self) -> ModelNeed {
        self.base.needs().max(ModelNeed::GradientsOrTrees)
    }

    fn reference(&self) -> ReferenceUse {
        self.base.reference()
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        for (name, value) in [("radius", self.radius), ("rate", self.rate)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::param(name, value, "a number above 0"));
            }
        }
        let measure = Measure::PathIntegral(PathIntegral { steps: self.path });
        Ok(Box::new(Prepared {
            problem: *problem,
            base: self.base.prepare(problem, seed)?,
            cells: Cells::of(std::iter::once(problem.model))?,
            gauge: Gauge::new(measure, problem.model, &unread(problem.model)?)?,
            params: self.clone(),
        }))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    base: Box<dyn Method + 'a>,
    /// The cells of trees.
    cells: Option<Cells>,
    gauge: Gauge<'a>,
    params: Sns,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        // On trees the steps lead from row to row.
        let start = if self.cells.is_some() { *factual } else { factual.relaxed() };
        let base = match self.base.find(&start, meter)? {
            Answer::Found { counterfactual, .. } => counterfactual.point,
            answer @ Answer::NotFound { .. } => return Ok(answer),
        };
        if let Some(cells) = &self.cells {
            let field = Reader::with_routes(&self.gauge, cells.routes());
            let mut field = self.problem.usual(field, OF_PROBABILITIES);
            let Sns { steps, radius, .. } = self.params;
            let search = cells.search(factual, self.problem.norm, steps, Density::SCORE);
            let top = search.highest(&mut field, &base, radius, meter);
            return conclude(
                &self.problem,
                factual,
                &mut field,
                Test::ACCEPTED,
                top,
                Finish::Keep,
                meter,
            );
        }
        let mut field = self.problem.usual(Reader::new(&self.gauge), OF_PROBABILITIES);
        let ball = Ball { centre: &base, radius: self.params.radius };
        let ascent = Ascent {
            step: Step::Unit(self.params.rate),
            steps: self.params.steps,
            ball: Some(ball),
        };
        let top = ascent.climb(&mut field, factual.set, None, &base, meter)?;
        conclude(&self.problem, factual, &mut field, Test::ACCEPTED, top, Finish::Keep, meter)
    }
}
